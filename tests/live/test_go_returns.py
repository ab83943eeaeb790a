"""Probes on Go's return instructions under load: nothing is lost and the program is not changed.

100,000 calls by several goroutines whose stacks grow and shrink in the middle of them, with
the garbage collector running: what ends a program that has a return probe.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.go_programs import go_program
from tests.support.toolchains import ALL_GO_VERSIONS, go_number
from tests.support.tracefs import Session, require_uprobes

pytestmark = pytest.mark.live

CALLS = 100_000
SOURCE = """
package main

import "runtime"

type counted struct{ odd, even int }

//go:noinline
func deep(n int) int {
	var frame [512]byte
	frame[n%512] = byte(n)
	if n == 0 {
		return 0
	}
	return deep(n-1) + int(frame[n%512])/256 + 1
}

//go:noinline
func (c *counted) step(n int) (result int, err error) {
	if n%1000 == 0 {
		result = deep(40 + n/1000)
		runtime.GC()
		return result - 40 - n/1000 + n, nil
	}
	if n%2 == 1 {
		c.odd++
		return n, nil
	}
	c.even++
	return n, nil
}

func main() {
	done := make(chan [3]int)
	for g := 0; g < 4; g++ {
		go func(g int) {
			c, sum := &counted{}, 0
			for n := g * 25000; n < (g+1)*25000; n++ {
				got, _ := c.step(n)
				sum += got
			}
			done <- [3]int{sum, c.odd, c.even}
		}(g)
	}
	sum, odd, even := 0, 0, 0
	for g := 0; g < 4; g++ {
		part := <-done
		sum, odd, even = sum+part[0], odd+part[1], even+part[2]
	}
	println("sum", sum, "odd", odd, "even", even)
}
"""


@pytest.mark.parametrize("version", ALL_GO_VERSIONS)
def test_no_return_is_lost_while_stacks_grow(version: str, tmp_path: Path) -> None:
    require_uprobes()
    binary = go_program(version, tmp_path, SOURCE, name="flood")
    plain = subprocess.run([binary], capture_output=True, text=True, timeout=60, check=True)
    probe = fetchc.open(str(binary)).probe("main.(*counted).step", returns=True)
    if go_number(version) == (1, 17):  # which lists no results in registers
        with pytest.raises(fetchc.CompileError, match="FC0201"):
            probe.compile("result")
    argument = probe.compile("result" if go_number(version) != (1, 17) else "result=%ax:s64")
    with Session(kilobytes=16384) as session:
        lines = probe.definition([argument], session.group, "step").split("\n")
        assert len(lines) > 1
        for line in lines:
            session.add(line)
        printed = session.run(["/bin/sh", "-c", f"exec {binary} 2>&1"])
        hits = session.hits("step")
    assert printed == plain.stderr
    # Each result is its parameter, whichever instruction returned it.
    assert sorted(int(hit.values["result"]) for hit in hits) == list(range(CALLS))
    assert len({hit.address for hit in hits}) > 1
