"""Captured variables at the entry of closures: each value is what the program says it is.

By value and by reference, in one register, in several, larger than registers, nested, of
closures that ``go`` and ``defer`` call. Where in a closure a variable is, Go says from 1.23 on;
whether it is there itself, or its address, no version does.
"""

from __future__ import annotations

import json
import subprocess
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

import fetchc
from fetchc import CompileError, Probe
from fetchc.code.disassembly import instruction_starts
from fetchc.debuginfo.open_file import open_binary
from fetchc.quantities import Address, ByteSize
from fetchc.tracer.events import Plan
from tests.live.watching import watched
from tests.support.go_programs import go_program
from tests.support.toolchains import ALL_GO_VERSIONS, go_number
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = """
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

type point struct {
	x int
	s string
}

type row struct {
	cells [40]int
	name  string
}

var kept []interface{}

//go:noinline
func sink(values ...interface{}) { kept = append(kept[:0], values...) }

func report(function string, values map[string]interface{}) {
	text, err := json.Marshal(values)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(os.Stdout, "%s %s\\n", function, text)
}

type named map[string]interface{}

//go:noinline
func byValue(n int, label string, p point, b byte, list []int, small int16, f [3]byte) func(int) {
	report("main.byValue.func1", named{"n": n, "label": label, "p.x": p.x, "p.s": p.s, "b": b,
		"list[1]": list[1], "len(list)": len(list), "small": small, "f[2]": f[2], "step": 5})
	return func(step int) {
		sink(n, label, p, b, list, step)
		sink(small, f)
	}
}

//go:noinline
func byReference(n int, label string, r row) (func(int), func()) {
	total, count := n, int32(0)
	add := func(step int) {
		report("main.byReference.func2", named{"total": total + step, "label": label + "+",
			"r.name": r.name, "r.cells[3]": r.cells[3] + 1, "count": count + 1})
		total += step
		count++
		label += "+"
		r.cells[3]++
	}
	return add, func() { sink(total, label, r, count) }
}

//go:noinline
func nested(k int, name string) func() func() {
	report("main.nested.func1", named{"k": k, "name": name})
	report("main.nested.func1.1", named{"name": name})
	return func() func() {
		sink(name, k)
		k++
		return func() {
			k++
			sink(name, k)
		}
	}
}

//go:noinline
func partly(label string, p point, list []string) func() int {
	report("main.partly.func1", named{"len(label)": len(label), "p.x": p.x, "cap(list)": cap(list)})
	return func() int {
		sink(1)
		return len(label) + p.x + cap(list)
	}
}

//go:noinline
func copied(n int, label string) func() int {
	report("main.copied.func1", named{"n": n, "label": label})
	return func() int {
		m, other := n, label
		sink(m)
		for m < 100 {
			m += n
		}
		sink(other, m)
		other += label
		sink(other)
		return m + n
	}
}

//go:noinline
func waited(n int, s string) {
	done := make(chan int)
	report("main.waited.func1", named{"n": n, "s": s})
	go func() {
		sink(s, n)
		done <- n
	}()
	<-done
}

func main() {
	for round := 1; round < 4; round++ {
		list := []int{round, 10 * round, 3}
		byValue(round, fmt.Sprint("label ", round), point{7 * round, "point"}, byte(200+round),
			list, int16(-round), [3]byte{1, 2, byte(round)})(5)
		add, show := byReference(100*round, "r", row{[40]int{0, 1, 2, round}, "row"})
		add(round)
		show()
		nested(round, fmt.Sprint("nested ", round))()()
		partly("partly", point{round, "x"}, make([]string, round, 3*round))()
		copied(round, fmt.Sprint("copied ", round))()
		waited(round, "waited")
	}
}
"""

# What must be had in every version, optimised.
ALWAYS = {
    "main.byValue.func1": {"n", "label", "step"},
    "main.byReference.func2": {"total"},
    "main.nested.func1": {"name"},
    "main.waited.func1": {"s"},
}


def expected(program: Path) -> dict[str, list[dict[str, object]]]:
    printed = subprocess.run([program], check=True, capture_output=True, text=True, timeout=60)
    values: dict[str, list[dict[str, object]]] = {}
    for line in printed.stdout.splitlines():
        function, _, text = line.partition(" ")
        values.setdefault(function, []).append(json.loads(text))
    return values


def refused(probe: Probe, text: str) -> str | None:
    try:
        probe.compile(text)
    except CompileError as refusal:
        return refusal.diagnostics[0].code
    return None


def fetchable(
    probes: dict[str, Probe], expected: dict[str, list[dict[str, object]]]
) -> dict[str, list[str]]:
    """What compiles of what the program tells; the rest is refused as not visible or not known."""
    found: dict[str, list[str]] = {}
    for function, probe in probes.items():
        for text in expected[function][0]:
            code = refused(probe, text)
            assert code in (None, "FC0201", "FC0401"), (function, text)
            if code is None:
                found.setdefault(function, []).append(text)
    return found


def before_stores(program: Path, entries: dict[str, Probe]) -> dict[str, Probe]:
    """After each closure's first instruction, where it has not stored what it captured."""
    opened, read, found = fetchc.open(str(program)), open_binary(str(program)), {}
    for function, entry in entries.items():
        assert entry.function is not None
        begin = Address(entry.address)
        starts = instruction_starts(read.code(begin, ByteSize(64)), begin, read.architecture)
        behind = next(islice(starts, 1, None)) - entry.function.address
        found[function] = opened.probe(function, at=f"+{behind}")
    return found


@pytest.mark.parametrize("flags", [(), ("-gcflags=-N -l",)], ids=["optimised", "debug"])
@pytest.mark.parametrize("version", ALL_GO_VERSIONS)
def test_every_captured_value_is_the_programs(
    version: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    require_uprobes()
    program = go_program(version, tmp_path, SOURCE, *flags, name="closures")
    wanted = expected(program)
    opened = fetchc.open(str(program))
    entries = {function: opened.probe(function) for function in wanted}
    found = fetchable(entries, wanted)
    for function, needed in ALWAYS.items():
        assert needed <= set(found.get(function, ())), (function, found)
    probed = [(entries[function], function, texts) for function, texts in found.items()]
    if flags:
        later = before_stores(program, entries)
        texts_there = fetchable(later, wanted)
        probed += [(later[function], function, texts) for function, texts in texts_there.items()]

    def plans(group: str) -> list[Plan]:
        return [
            probe.plan(texts, group, f"e{number}")
            for number, (probe, _, texts) in enumerate(probed)
        ]

    _, events = watched(plans, [program])
    for number, (_, function, texts) in enumerate(probed):
        seen = [event for event in events if event.name == f"e{number}"]
        assert not [event.faults for event in seen if event.faults]
        shown = [{text: event.args[text] for text in texts} for event in seen]
        assert shown == [{text: row[text] for text in texts} for row in wanted[function]], function


_PARTS = """
package main

import "fmt"

type pair struct {
	A, B int32
	N    string
	C    int64
}

//go:noinline
func length(s []int32, t string, n int) func() int {
	return func() int { return len(s) + len(t) + n }
}

//go:noinline
func room(s []int32, m int) func() int { return func() int { return cap(s) * m } }

//go:noinline
func field(p pair, n int) func() int { return func() int { return int(p.B) + len(p.N) + n } }

//go:noinline
func call(f func() int) int { return f() }

func main() {
	s := make([]int32, 3, 7)
	p := pair{1, 2, "abc", 77}
	fmt.Println(call(length(s, "hello", 5)), call(room(s, 6)), call(field(p, 9)))
}
"""


def _plans(probe: Probe, texts: list[str], group: str) -> list[Plan]:
    return [probe.plan([probe.asked(text) for text in texts], group, "parts")]


@pytest.mark.parametrize("version", ALL_GO_VERSIONS)
def test_of_what_is_loaded_in_part_no_part_is_guessed(version: str, tmp_path: Path) -> None:
    # Up to Go 1.22 the debug information has the word that is loaded as all of the variable.
    require_uprobes()
    program = go_program(version, tmp_path, _PARTS.lstrip(), name="parts")
    values = {
        "length": {"len(t)": 5, "n": 5},
        "room": {"cap(s)": 7, "m": 6},
        "field": {"p.B": 2, "len(p.N)": 3, "n": 9},
    }
    has_offsets = go_number(version) >= (1, 23)
    had: dict[str, int] = {}
    for name, wanted in values.items():
        probe = fetchc.open(str(program)).probe(f"main.{name}.func1")
        can = [text for text in wanted if refused(probe, text) is None]
        if can:
            _, events = watched(partial(_plans, probe, can), [program])
            assert [dict(event.args) for event in events] == [{one: wanted[one] for one in can}]
            had[name] = len(can)
    assert has_offsets <= (had.get("room") == 2)
    if not has_offsets:
        room = fetchc.open(str(program)).probe("main.room.func1")
        with pytest.raises(CompileError) as caught:
            room.compile("s.len")
        (said,) = caught.value.diagnostics
        if said.code == "FC0401":  # else the debug information does not even list it
            assert "loads a part of it, from byte 24 of the closure's object" in said.message
            assert not said.notes
