"""Values of Go that have a length: all of it, the beginning with a mark, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from fetchc.tracer.display_values import CutList, CutString, printed
from fetchc.tracer.events import Event
from tests.live.watching import watched
from tests.support.go_programs import go_program
from tests.support.toolchains import GO_VERSIONS, require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = r"""
package main

import (
	"os"
	"strings"
)

type part struct {
	name string
	tag  *part
	ids  []int32
}

type thing struct {
	text  string
	parts []part
	names []string
	bytes []byte
	words []uint64
	table map[string]int
	queue chan int
	any   interface{}
}

//go:noinline
func take(t *thing, text string, round int) int { return len(t.text) + len(text) + round }

func main() {
	names := []string{"", "a\x00b", "ünï\xff\"\n\x1b[31m\u202e", strings.Repeat("é", 200)}
	for i, name := range names {
		t := &thing{text: name, names: names[:i], bytes: []byte(name)}
		for j := 0; j < 30*i; j++ {
			t.words = append(t.words, uint64(j)<<40)
		}
		if i > 0 {
			t.parts = []part{{name: name, ids: []int32{1, -2}}, {tag: &part{}}}
			t.table = map[string]int{name: 1}
			t.queue = make(chan int, 4)
			t.queue <- 1
		}
		take(t, name, i)
	}
	var none *thing
	defer func() {
		recover()
		os.Stdin.Read(make([]byte, 1)) // stays until its memory was looked at
	}()
	take(none, "last", -1)
}
"""
NAMES = ["", "a\0b", 'ünï\udcff"\n\x1b[31m\u202e', "é" * 200]
WANTED = [
    "round", "text", "t.text", "t.names", "t.bytes", "t.words", "t.parts", "len(t.table)",
    "t.table", "t.queue", "t.parts[1].tag.name", "t.names[0:2]",
]  # fmt: skip


def _hits(folder: Path, version: str) -> list[Event]:
    program = go_program(version, folder, SOURCE, name="values")
    probe = fetchc.open(str(program)).probe("main.take")
    _, events = watched(
        lambda group: [probe.plan(WANTED, group)], [program], while_running=len(NAMES) + 1
    )
    return events


@pytest.mark.parametrize("version", GO_VERSIONS)
def test_values_with_a_length(version: str, tmp_path: Path) -> None:
    require_uprobes()
    require(f"go{version}")
    *hits, last = _hits(tmp_path, version)
    for i, (hit, name) in enumerate(zip(hits, NAMES, strict=True)):
        args = hit.args
        assert args["round"] == i
        data = name.encode("utf-8", "surrogateescape")
        for label in ("text", "t.text"):
            text = args[label]
            assert isinstance(text, str)
            assert name.startswith(text)
            assert isinstance(text, CutString) == (text != name)
            assert printed(text).isprintable()
        numbers = args["t.bytes"]
        assert isinstance(numbers, list)
        assert numbers == list(data[:64])
        assert isinstance(numbers, CutList) == (len(data) > 64)
        words = args["t.words"]
        assert isinstance(words, list)
        assert words == [j << 40 for j in range(min(30 * i, 64))]
        assert not isinstance(words, CutList) or words.length == 30 * i
        assert args["t.names"] == NAMES[:i]
        assert args["t.table"] == args["len(t.table)"] == args["t.queue"] == min(i, 1)
        parts = args["t.parts"]
        if i == 0:
            assert parts == []
            assert "t.parts[1].tag.name" in hit.faults
            continue
        assert isinstance(parts, list)
        first, second = parts
        assert isinstance(first, dict)
        assert isinstance(second, dict)
        assert isinstance(first["name"], str)
        assert first["ids"] == [1, -2]
        assert name.startswith(first["name"])
        assert (second["name"], second["ids"]) == ("", [])
        assert args["t.parts[1].tag.name"] == ""
    text = hits[3].args["t.text"]
    assert isinstance(text, CutString)
    assert text.length == 400
    assert len(text) > 30
    # A NULL on the way: all that is after it, and only that.
    assert last.args["text"] == "last"
    assert last.faults == tuple(one for one in WANTED if one not in ("round", "text"))
