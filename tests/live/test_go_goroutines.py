"""``$goid`` is the number that the runtime itself prints, at entries and at returns."""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from tests.support.go_programs import go_program
from tests.support.toolchains import ALL_GO_VERSIONS, go_number
from tests.support.tracefs import Session, require_uprobes

pytestmark = pytest.mark.live

SOURCE = """
package main

import (
	"runtime"
	"strings"
	"sync"
)

// number is what the goroutine's own traceback says: "goroutine 18 [running]:".
func number() string {
	buffer := make([]byte, 64)
	return strings.Fields(string(buffer[:runtime.Stack(buffer, false)]))[1]
}

//go:noinline
func work(serial int, grow int) int {
	var frame [1024]byte
	frame[grow] = byte(serial)
	if grow > 0 {
		return work(serial, grow-1) + int(frame[grow]) - int(frame[grow])
	}
	runtime.Gosched()
	return serial
}

func main() {
	var all sync.WaitGroup
	var lines sync.Mutex
	for n := 0; n < 40; n++ {
		all.Add(1)
		go func(n int) {
			defer all.Done()
			work(n, n%20)
			lines.Lock()
			println(n, number())
			lines.Unlock()
		}(n)
	}
	all.Wait()
}
"""


@pytest.mark.parametrize("version", ALL_GO_VERSIONS)
def test_the_number_is_the_one_that_tracebacks_show(version: str, tmp_path: Path) -> None:
    require_uprobes()
    binary = go_program(version, tmp_path, SOURCE, name="routines")
    program = fetchc.open(str(binary))
    entry, back = program.probe("main.work"), program.probe("main.work", returns=True)
    by_register = go_number(version) >= (1, 17)
    results = ["serial=$ret0"] if go_number(version) != (1, 17) else []  # which lists none
    with Session() as session:
        entered = [entry.compile(text) for text in ("serial", "grow", "goid=$goid")]
        session.add(entry.definition(entered, session.group, "entry"))
        if by_register:
            returned = [back.compile(text) for text in (*results, "goid=$goid")]
            for line in back.definition(returned, session.group, "back").split("\n"):
                session.add(line)
        else:
            with pytest.raises(fetchc.CompileError, match="FC0403"):
                back.compile("$goid")
        printed = session.run(["/bin/sh", "-c", f"exec {binary} 2>&1"])
        entries = session.hits("entry")
        backs = session.hits("back") if by_register else entries
    expected = dict(line.split() for line in printed.splitlines())
    assert len(expected) == 40
    assert len(set(expected.values())) == 40
    assert {(h.values["serial"], h.values["goid"]) for h in entries} == set(expected.items())
    assert {h.values["goid"] for h in backs} == set(expected.values())
    if results:
        assert {(h.values["serial"], h.values["goid"]) for h in backs} == set(expected.items())
    assert len(entries) == len(backs) == sum(n % 20 + 1 for n in range(40))
