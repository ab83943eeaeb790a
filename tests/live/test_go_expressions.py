"""Expressions of Go against Go: a program evaluates random ones itself, and a trace has the same.

Slices of slices, their lengths and rooms, conversions, and what is in interfaces, channels,
function values and constants. Where Go panics, the trace has a fault.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import fetchc
from tests.live.watching import watched
from tests.support.go_programs import go_program
from tests.support.toolchains import GO_VERSIONS
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

_SEED = int(os.environ.get("FETCHC_SEEDS", "20").split("-")[0])
_EXPRESSIONS = 60
_CALLS = 8
_TEXTS = ("e.text", "string(e.raw)", "title(e.raw)", "string(e.name)", "title(e.text)")
_LISTS = ("e.numbers", "others(e.numbers)", "e.halves")
_BYTES = ("e.raw", "octets(e.raw)")

_SOURCE = """
package main

import (
	"encoding/json"
	"fmt"
)

type title string
type octets []byte
type others []int32
type colour uint8
type point struct{ X, Y int16 }
type spot struct{ X, Y int16 }
type shape interface{ area() int }
type square struct {
	Side int32
	Name string
	Tag  int16
}
type circle struct {
	Radius int64
	Tag    string
}

const (
	red colour = iota
	green
	blue
)
const limit = 3

func (s *square) area() int { return int(s.Side) }
func (c circle) area() int  { return int(c.Radius) }

func list(values interface{}) interface{} {
	var numbers []int
	switch values := values.(type) {
	case []byte:
		for _, one := range values {
			numbers = append(numbers, int(one))
		}
		return append([]int{}, numbers...)
	case octets:
		return list([]byte(values))
	}
	return values
}

func named(value colour) interface{} {
	names := []string{"red", "green", "blue"}
	var name interface{}
	if int(value) < len(names) {
		name = names[value]
	}
	return map[string]interface{}{"name": name, "value": value}
}

func try(evaluate func() interface{}) (value interface{}) {
	defer func() {
		if recover() != nil {
			value = "(fault)"
		}
	}()
	return evaluate()
}

func of(value interface{}, wanted interface{}) interface{} {
	if got, want := fmt.Sprintf("%T", value), fmt.Sprintf("%T", wanted); got != want {
		if got == "<nil>" {
			got = "nil"
		}
		return map[string]interface{}{"type": got}
	}
	return nil
}

type input struct {
	text    string
	raw     []byte
	name    title
	numbers []int32
	rows    *[4]int32
	halves  []int16
	hue     colour
	at      *point
	held    shape
	any     []interface{}
	queue   chan point
	both    complex128
	from    int
}

//go:noinline
func show(e *input) int { return e.from }

//go:noinline
func kept(s spot, o others, t title, b octets) int { return int(s.X) + len(o) + len(t) + len(b) }

func report(e *input) {
	values := []interface{}{
@EVALUATED@
	}
	line, err := json.Marshal(values)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

func main() {
	kept(spot{1, 2}, others{1}, "t", octets("o"))
	queue := make(chan point, 3)
	queue <- point{7, -7}
	queue <- point{8, -8}
	spare := make([]int32, 12)
	for i := range spare {
		spare[i] = int32(i * i)
	}
	letters := []byte("abcdefghijklmnopqrstuvwxyz")
	shorts := []int16{-1, -2, -3, -4, -5}
	held := []shape{&square{5, "five", -5}, circle{6, "six"}, nil}
	for i := 0; i < @CALLS@; i++ {
		any := []interface{}{i, "s", nil}[: i%4 : 3]
		if i%4 == 3 {
			any = []interface{}{"first", i, at(i)}
		}
		e := &input{string(letters[:3*i]), letters[i : 2*i : 20], title(letters[i : i+3]),
			spare[:i:8], &[4]int32{1, 2, int32(i), 4}, shorts[:i%6], colour(i % 4), at(i),
			held[i%3], any, queue, complex(float64(i)+0.5, -2), i}
		report(e)
		show(e)
	}
}

func at(i int) *point { return &point{int16(i), int16(-i)} }
"""

# An expression and what Go evaluates for it, where that is not the expression itself.
_FIXED = {
    "[]byte(e.text)": "list([]byte(e.text))",
    "[]byte(e.text)[1]": None,
    "[]byte(e.text)[1:]": "list([]byte(e.text)[1:])",
    "string([]byte(string(e.raw)))": None,
    "len([]byte(e.text)[green:])": None,
    "spot(*e.at)": None,
    "spot(*e.at).Y": None,
    "(*spot)(e.at).X": None,
    "title(e.text)": None,
    "string(e.raw)": None,
    "octets(e.raw)": "list(e.raw)",
    "others(e.numbers)": None,
    "e.rows[1:3]": None,
    "e.rows[2:]": None,
    "e.rows[1:3][1:3]": None,
    "cap(e.rows[1:2])": None,
    "real(e.both)": None,
    "imag(e.both)": None,
    "uint8(e.hue)": "int(e.hue)",
    "e.hue": "named(e.hue)",
    "colour(e.from)": "named(colour(e.from))",
    "limit": None,
    "main.limit": "limit",
    "main.blue": "named(blue)",
    "e.text[:limit]": None,
    "e.queue.qcount": "len(e.queue)",
    "e.queue.buf[0]": "point{7, -7}",
    "e.queue.buf[1].Y": "-8",
    "e.queue.buf[3]": '"(fault)"',
    "len(e.queue.buf)": "cap(e.queue)",
    "e.held.Side": "func() interface{} { if s, ok := e.held.(*square); ok { return s.Side }; "
    "return of(e.held, &square{}) }()",
    "e.held.Radius": "func() interface{} { if c, ok := e.held.(circle); ok { return c.Radius }; "
    "return of(e.held, circle{}) }()",
    "e.held.Tag": "func() interface{} { switch v := e.held.(type) { case *square: return v.Tag; "
    "case circle: return v.Tag }; return of(e.held, true) }()",
    "e.any[0].(int)": "func() interface{} { if n, ok := e.any[0].(int); ok { return n }; "
    "return of(e.any[0], 0) }()",
    "e.any[1].(string)": "func() interface{} { if s, ok := e.any[1].(string); ok { return s }; "
    'return of(e.any[1], "") }()',
    "e.any[2].(*point).X": "func() interface{} { if p, ok := e.any[2].(*point); ok { return p.X }; "
    "return of(e.any[2], e.at) }()",
}


def _range(chosen: random.Random, base: str, depth: int) -> str:
    for _ in range(depth):
        low, high, most = sorted(chosen.choices(range(7), k=3))
        forms = ["{0}:{1}", "{0}:", ":{1}", ":", "{0}:e.from", "green:limit"]
        form = chosen.choice(forms if base.startswith(_TEXTS) else [*forms, "{0}:{1}:{2}"])
        if form == "{0}:e.from" and "[" in base:
            form = "{0}:"
        high = max(high, low + 1)
        base += f"[{form.format(low, high, max(most, high))}]"
    return base


def drawn(seed: int) -> dict[str, str]:
    """Expressions with what Go is to evaluate for each."""
    chosen = random.Random(seed)
    found = {text: evaluated or text for text, evaluated in _FIXED.items()}
    while len(found) < len(_FIXED) + _EXPRESSIONS:
        kind = chosen.choice((_TEXTS, _LISTS, _BYTES))
        base = chosen.choice(kind)
        cut = _range(chosen, base, chosen.choice((1, 1, 2, 3)))
        if "from" in cut.rpartition("[")[0]:
            continue  # a part of a part whose length varies
        form = chosen.choice(("whole", "whole", "len", "cap", "element"))
        if form == "whole":
            found[cut] = f"list([]byte({cut}))" if kind is _BYTES else cut
        elif form == "element" and "from" not in cut:
            one = f"{cut}[{chosen.choice((0, 1, 2, 3, 'limit', 'limit-1', 'green'))}]"
            found[one] = f"int({one})"
        elif form != "element" and not (form == "cap" and kind is _TEXTS) and "from" not in cut:
            found[f"{form}({cut})"] = f"{form}({cut})"
    return found


def program(version: str, folder: Path, expressions: Mapping[str, str]) -> Path:
    evaluated = "\n".join(
        f"\t\ttry(func() interface{{}} {{ return {one} }})," for one in expressions.values()
    )
    source = _SOURCE.replace("@EVALUATED@", evaluated).replace("@CALLS@", str(_CALLS))
    return go_program(version, folder, source.lstrip(), name="expressions")


def traced(binary: Path, expressions: Sequence[str]) -> tuple[list[str], list[list[object]]]:
    """What the program printed, and of each call the values, a fault as Go's panic is written."""
    probe = fetchc.open(str(binary)).probe("main.show")
    asked = []
    for text in expressions:
        try:
            asked.append(probe.asked(text))
        except fetchc.CompileError as refused:
            if not _may_be_refused(refused, text):
                raise
    some = 16
    parts = [asked[at : at + some] for at in range(0, len(asked), some)]
    output, events = watched(
        lambda group: [probe.plan(part, group, f"part{n}") for n, part in enumerate(parts)],
        [binary],
    )
    values: dict[str, list[object]] = {one.label: [] for one in asked}
    for event in events:
        for label, value in event.args.items():
            values[label].append("(fault)" if label in event.faults else value)
    calls = [
        [values[text][call] if text in values else _REFUSED for text in expressions]
        for call in range(_CALLS)
    ]
    return output.splitlines(), calls


_REFUSED = object()


def _may_be_refused(refused: fetchc.CompileError, text: str) -> bool:
    # What Go's compiler would refuse, too, or what is known to be empty.
    (first,) = refused.diagnostics
    return first.code == "FC0303" or (first.code == "FC0309" and text.startswith("cap("))


def compared(lines: list[str], calls: list[list[object]], texts: Sequence[str]) -> list[str]:
    """What differs, in words. Go writes an empty list where nothing was made as null."""
    assert len(lines) == len(calls) == _CALLS
    wrong = []
    for number, (line, values) in enumerate(zip(lines, calls, strict=True)):
        for text, printed, value in zip(texts, json.loads(line), values, strict=True):
            shown = [] if value == [] and printed is None else value
            if shown is _REFUSED or shown == printed or (printed is None and shown == []):
                continue
            wrong.append(f"call {number}: {text} is {printed!r}, traced {shown!r}")
    return wrong


@pytest.mark.parametrize("version", GO_VERSIONS)
def test_go_evaluates_the_same(version: str, tmp_path: Path) -> None:
    require_uprobes()
    expressions = drawn(_SEED)
    binary = program(version, tmp_path, expressions)
    lines, calls = traced(binary, list(expressions))
    assert not compared(lines, calls, list(expressions))
    refused = sum(one is _REFUSED for one in calls[0])
    assert refused < len(expressions) // 4


def test_of_several_types_a_lone_fetch_arg_is_refused(tmp_path: Path) -> None:
    binary = program(GO_VERSIONS[-1], tmp_path, {"e.from": "e.from"})
    probe = fetchc.open(str(binary)).probe("main.show")
    with pytest.raises(fetchc.CompileError) as caught:
        probe.compile("e.held.Tag")
    (refused,) = caught.value.diagnostics
    assert refused.code == "FC0312"
    assert "`.(*main.square)`" in refused.notes[0]
    assert "`.(main.circle)`" in refused.notes[0]
    alone = probe.compile("e.held.Side")
    assert [one.code for one in alone.warnings] == ["FC0614"]


def test_a_wrong_value_would_be_noticed() -> None:
    line = json.dumps([1, [2, 3], "(fault)"])
    right: list[object] = [1, [2, 3], "(fault)"]
    texts = ["a", "b", "c"]
    assert not compared([line] * _CALLS, [right] * _CALLS, texts)
    for at, value in ((0, 2), (1, [2]), (2, 0)):
        wrong = list(right)
        wrong[at] = value
        found = compared([line] * _CALLS, [right] * (_CALLS - 1) + [wrong], texts)
        assert len(found) == 1
