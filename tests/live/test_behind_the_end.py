"""An index after the last element: no value, whatever the memory there holds."""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from fetchc.tracer.events import Event
from tests.live.rustc import COMPILERS, compiled
from tests.live.traced import trace
from tests.live.watching import watched
from tests.support.dotnet import ahead_of_time
from tests.support.go_programs import go_program
from tests.support.toolchains import GO_VERSIONS
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

GO = r"""
package main

type item struct {
	name string
	ids  []int32
}

//go:noinline
func take(items []item, text string, levels ...int8) int {
	return len(items) + len(text) + len(levels)
}

func main() {
	items := []item{{"a", []int32{1, 2}}, {"b", nil}, {"c", []int32{3}}}
	take(items[:2], "text of more"[:4], []int8{5, 6, 7, 8}[:2]...)
	take(items[:0:0], "", []int8{5, 6, 7, 8}[:0]...)
}
"""
# With what each gives in the first and in the second call; None: (fault).
GO_WANTED: dict[str, tuple[object, object]] = {
    "items[0].name": ("a", None),
    "items[1].name": ("b", None),
    "items[2].name": (None, None),
    "items[0].ids[1]": (2, None),
    "items[0].ids[2]": (None, None),
    "items[1].ids[0]": (None, None),
    "items[0].name[0]": (97, None),
    "items[0].name[1]": (None, None),
    "text[3]": (ord("t"), None),
    "text[4]": (None, None),
    "text[1:4]": ("ext", None),
    "text[1:4]:u8": ([101, 120, 116], None),
    "text[1:5]": (None, None),
    "levels[1]": (6, None),
    "levels[2]": (None, None),
    # As in Go, up to the capacity.
    "levels[1:4]": ([6, 7, 8], [6, 7, 8]),
    "levels[1:5]": (None, None),
}


def _held_against(events: list[Event], wanted: dict[str, tuple[object, object]]) -> None:
    assert len(events) == 2
    for number, event in enumerate(events):
        assert {label: event.args[label] for label in wanted} == {
            label: each[number] for label, each in wanted.items()
        }
        missing = {label for label, each in wanted.items() if each[number] is None}
        assert set(event.faults) == missing


@pytest.mark.parametrize("version", GO_VERSIONS)
def test_go(version: str, tmp_path: Path) -> None:
    require_uprobes()
    program = go_program(version, tmp_path, GO, name="behind")
    probe = fetchc.open(str(program)).probe("main.take")
    _, events = watched(lambda group: [probe.plan(list(GO_WANTED), group)], [program])
    _held_against(events, GO_WANTED)


LONG = r"""
package main

type held struct {
	two  [2]chan int
	text *[9000]byte
}

//go:noinline
func take(two []chan int, one chan int) int { return len(two) + len(one) }

func main() {
	text := &[9000]byte{}
	for i := range text {
		text[i] = 'x'
	}
	one := make(chan int, 2)
	one <- 5
	h := &held{[2]chan int{one, one}, text}
	take(h.two[:], one)
	println(h.text[0])
}
"""


def test_a_text_behind_the_end_takes_no_room(tmp_path: Path) -> None:
    # Whether a number behind a pointer was read, a string at it says: here it would have no end.
    require_uprobes()
    program = go_program("1.22", tmp_path, LONG, name="long")
    probe = fetchc.open(str(program)).probe("main.take")
    _, (event,) = watched(lambda group: [probe.plan(["two", "two[0:]", "one"], group)], [program])
    assert event.args == {"two": [1, 1], "two[0:]": [1, 1], "one": 1}
    assert event.comm == "long"


RUST = r"""
struct Item { name: String, ids: Vec<i32> }

#[inline(never)]
fn take(items: &[Item], text: &str, levels: &Vec<i8>) -> usize {
    items.len() + text.len() + levels.len()
}

fn main() {
    let mut levels = vec![5i8, 6, 7, 8];
    let item = |name: &str, ids: Vec<i32>| Item { name: name.to_string(), ids };
    let items = [item("a", vec![1, 2]), item("b", vec![]), item("c", vec![3])];
    levels.truncate(2);
    println!("{}", take(&items[..2], &"text of more"[..4], &levels));
    levels.clear();
    println!("{}", take(&items[..0], "", &levels));
    println!("{}", items.iter().map(|one| one.name.len() + one.ids.len()).sum::<usize>());
}
"""
RUST_WANTED: dict[str, tuple[object, object]] = {
    "items[1].name": ("b", None),
    "items[2].name": (None, None),
    "items[0].ids[1]": (2, None),
    "items[0].ids[2]": (None, None),
    "levels[1]": (6, None),
    "levels[2]": (None, None),
}


@pytest.mark.parametrize("compiler", COMPILERS)
def test_rust(compiler: str, tmp_path: Path) -> None:
    require_uprobes()
    source = tmp_path / "behind" / "main.rs"
    source.parent.mkdir()
    source.write_text(RUST)
    program = compiled(compiler, source, tmp_path / "program")
    probe = fetchc.open(str(program)).probe("behind::take", at="body")
    _, events = watched(lambda group: [probe.plan(list(RUST_WANTED), group)], [program])
    _held_against(events, RUST_WANTED)


DOTNET = r"""
using System.Collections.Generic;
using System.Runtime.CompilerServices;

class Item { public string Name; public int[] Ids; }

class Behind {
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Take(Item[] items, List<int> list, string text) { return items.Length + list.Count; }

    static void Main() {
        var list = new List<int> { 5, 6, 7, 8 };
        list.RemoveRange(2, 2);
        Take(new[] { new Item { Name = "a", Ids = new[] { 1, 2 } } }, list, "text");
        Take(new Item[0], new List<int>(), "");
    }
}
"""
DOTNET_WANTED: dict[str, tuple[object, object]] = {
    "items[0].Name": ("a", None),
    "items[1].Name": (None, None),
    "items[0].Ids[1]": (2, None),
    "items[0].Ids[2]": (None, None),
    "list[1]": (6, None),
    "list[2]": (None, None),
    "text[3]": ("t", None),
    "text[4]": (None, None),
}


def test_dotnet(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    require_uprobes()
    source = tmp_path / "behind.cs"
    source.write_text(DOTNET)
    program = ahead_of_time(source, tmp_path / "behind.exe")
    words: list[str | Path] = [
        "-x",
        program,
        "-f",
        "Behind.Take",
        "--format",
        "jsonl",
        "--",
        "mono",
        program,
    ]
    found = trace(capfd, *DOTNET_WANTED, *words)
    assert found.status == 0, found.errors
    for number, args in enumerate(found.args):
        assert args == {label: each[number] for label, each in DOTNET_WANTED.items()}
    assert len(found.args) == 2
