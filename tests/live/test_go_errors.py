"""Errors and plain values in interfaces are shown in words, others by their type's name alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fetchc
from tests.live.watching import watched
from tests.support.go_programs import go_program
from tests.support.toolchains import ALL_GO_VERSIONS
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = """
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
)

// lookalike has the layout of errors.errorString.
type lookalike struct{ s string }

func (l *lookalike) Error() string { return l.s }

//go:noinline
func report(err error, v interface{}) error { return err }

func tell(err error, v interface{}, kind string, text, value interface{}) {
	line, _ := json.Marshal(map[string]interface{}{
		"type": fmt.Sprintf("%T", err), "text": text, "kind": kind, "value": value})
	fmt.Println(string(line))
	report(err, v)
}

func main() {
	_, open := os.Open("/dev/null/none")
	_, number := strconv.Atoi("zz")
	_, dial := net.Dial("tcp", "127.0.0.1:1")
	for i := 0; i < 3; i++ {
		tell(errors.New("plain"), 5+i, "int", "plain", 5+i)
		tell(fmt.Errorf("wrap: %w", errors.New("inner")), "text", "string", "wrap: inner", "text")
		tell(open, 2.5, "float64", "open /dev/null/none: ENOTDIR", 2.5)
		tell(number, true, "bool", "strconv.Atoi: parsing zz: invalid syntax", true)
		tell(dial, uint8(7), "uint8", "dial tcp: connect: ECONNREFUSED", 7)
		tell(syscall.EPERM, int64(-3), "int64", "EPERM", -3)
		tell(&lookalike{"alike"}, []int{1}, "[]int", nil, nil)
		tell(nil, nil, "nil", nil, nil)
		tell(&os.PathError{Op: "op", Path: "", Err: errors.New("why")}, errors.New("held"),
			"*errors.errorString", "op : why", "held")
		tell(&os.PathError{Op: "op", Path: "p", Err: &lookalike{"x"}}, map[string]int{},
			"map[string]int", "op p: *main.lookalike", nil)
	}
}
"""


@pytest.mark.parametrize("version", ALL_GO_VERSIONS)
def test_each_is_what_the_program_says_it_is(version: str, tmp_path: Path) -> None:
    require_uprobes()
    program = go_program(version, tmp_path, SOURCE, name="errors")
    probe = fetchc.open(str(program)).probe("main.report")
    output, events = watched(lambda group: [probe.plan(["err", "v"], group, "e")], [program])
    printed = [json.loads(line) for line in output.splitlines()]
    assert len(printed) == len(events) == 30
    for row, event in zip(printed, events, strict=True):
        err, value = event.args["err"], event.args["v"]
        assert isinstance(err, dict)
        assert isinstance(value, dict)
        assert not event.faults
        shown = (str(err["type"]), str(value["type"]), value.get("value"))
        assert shown == (row["type"].replace("<nil>", "nil"), row["kind"], row["value"])
        text = err.get("value")
        assert (None if text is None else str(text)) == row["text"]
