"""Elements by an index that varies, in programs of four languages: the right one, or a fault.

Every program calls its function with the indices 0 to 5, and a cursor that is one less.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fetchc
from fetchc.emit import output_formats
from tests.live.built import built
from tests.live.test_bpf_c_programs import attached, quiet
from tests.live.traced import SECONDS, trace
from tests.support.libbpf_programs import compiled, hits
from tests.support.tools import bpftrace_version, missing, run_bpftrace
from tests.support.tracefs import require_bpf, require_uprobes

pytestmark = pytest.mark.live

CALLS = range(6)

CPP = r"""
#include <array>
#include <cstdlib>
#include <string>
#include <vector>
struct item { int id; const char *name; item *next; short tags[4]; };
struct open { long count; long last[1]; };
struct state {
  int grid[4][3]; open *tail;
  item *items; item **pointers; std::vector<std::string> words; std::array<item, 3> fixed;
  std::vector<item> rows; short cursor;
};
long table[256];
__attribute__((noipa)) void look(const state &s, char **argv, int argc, long i, unsigned mask)
{ __asm__ volatile("" :: "r"(&s), "r"(argv), "r"(argc), "r"(i), "r"(mask) : "memory"); }
int main(int argc, char **argv) {
  static item items[8]; static item *pointers[8]; static std::string names[8]; state s{};
  for (int at = 0; at < 8; at++) {
    names[at] = "item" + std::to_string(at);
    items[at] = {at * 10, names[at].c_str(), &items[(at + 1) % 8], {short(at), short(-at)}};
    pointers[7 - at] = &items[at];
    if (at < 4) s.words.push_back("word" + std::to_string(at)), s.rows.push_back(items[at]);
    if (at < 3) s.fixed[at] = items[at];
  }
  for (int at = 0; at < 256; at++) table[at] = at * at;
  s.tail = static_cast<open *>(calloc(9, sizeof(long)));
  for (int at = 0; at < 8; at++) s.tail->last[at] = at + 100;
  for (int at = 0; at < 12; at++) s.grid[at / 3][at % 3] = at;
  s.items = items + 1; s.pointers = pointers;
  for (int at = 0; at < 6; at++) s.cursor = at - 1, look(s, argv, argc, at, at * 77);
}
"""
GO = """package main
import "strconv"
type item struct { name string; id int; tags []string }
type state struct { items []item; pointers []*item; fixed [70]item; cursor int16 }
//go:noinline
func look(s *state, names []string, i int, text string) int { return len(names) + len(text) + i }
func main() {
  s := &state{}
  for at := 0; at < 4; at++ {
    one := item{"item" + strconv.Itoa(at), at * 10, []string{"a" + strconv.Itoa(at), "b"}}
    s.items, s.fixed[at] = append(s.items, one), one
  }
  for at := range s.items { s.pointers = append(s.pointers, &s.items[3-at]) }
  for at := 0; at < 6; at++ { s.cursor = int16(at - 1); look(s, []string{"x", "y"}, at, "hello") }
}
"""
RUST = r"""
pub struct Item { pub id: u32, pub name: String }
pub struct State {
    pub items: Vec<Item>, pub fixed: [Item; 2], pub words: Vec<&'static str>, pub cursor: i16
}
#[inline(never)]
pub fn look(s: &State, i: usize) -> usize {
    s.items.len() + s.fixed[0].name.len() + s.words.len() + i + s.cursor as usize % 2
        + s.items[0].id as usize
}
fn item(at: u32) -> Item { Item { id: at * 10, name: format!("item{}", at) } }
fn main() {
    let items = (0..4).map(item).collect();
    let mut s = State { items, fixed: [item(0), item(1)], words: vec!["x", "yy"], cursor: 0 };
    for at in 0..6 { s.cursor = at as i16 - 1; println!("EVENT {}", look(&s, at)); }
}
"""
CSHARP = r"""
using System.Runtime.CompilerServices;
class Item { public int Id; public string Name; }
struct Point { public short X; public long Y; }
class State {
    public Item[] items = new Item[4]; public Point[] points = new Point[3]; public short cursor;
}
class Indexed {
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Look(State s, string[] names, int i) { return s.items.Length + names.Length + i; }
    static int Main() {
        var s = new State();
        for (int at = 0; at < 4; at++) s.items[at] = new Item { Id = at * 10, Name = "item" + at };
        for (int at = 0; at < 3; at++) s.points[at] = new Point { X = (short)-at, Y = at * 100 };
        int all = 0;
        for (int at = 0; at < 6; at++) {
            s.cursor = (short)(at - 1);
            all += Look(s, new[] { "x", "y" }, at);
        }
        return all == -1 ? 1 : 0;
    }
}
"""


def item(at: int, *, below: int = 4) -> str | None:
    """The name of an item; None where there is none."""
    return f"item{at}" if 0 <= at < below else None


def one_of(values: str | list[Any], at: int) -> Any:
    """An element; None where there is none."""
    return values[at] if 0 <= at < len(values) else None


# By language: the function, and of each expression what it is at a call; None is a fault.
Expected = Callable[[int], Any]
CASES: dict[str, tuple[str, str, dict[str, Expected]]] = {
    "c++": (CPP, "look", {
        "s.items[i].name": lambda i: f"item{i + 1}",  # a pointer: it knows no end
        "s.items[s.cursor].id": lambda i: 10 * i,
        "s.items[i - 1]->next->name": lambda i: f"item{i + 1}",
        "s.items[i].tags[1]": lambda i: -i - 1,
        "s.pointers[(unsigned char)i]->name": lambda i: f"item{7 - i}",
        "argv[argc - 1]": lambda _: "last",
        "table[mask & 255]": lambda i: (i * 77 & 255) ** 2,
        "table[s.items[i].id]": lambda i: (i * 10 + 10) ** 2,
        "s.words[i]": lambda i: f"word{i}" if i < 4 else None,
        "s.words[s.words.size() - 1]": lambda _: "word3",
        "s.rows[s.cursor].name": lambda i: item(i - 1),
        "s.fixed[i].name": lambda i: item(i, below=3),
        "s.grid[i][s.cursor]": lambda i: 4 * i - 1 if 0 < i < 4 else None,
        "s.tail->last[i]": lambda i: i + 100,  # the end of an object: it knows no end, either
    }),
    "go": (GO, "main.look", {
        "names[i]": lambda i: one_of(["x", "y"], i),
        "text[i]": lambda i: one_of([*b"hello"], i),
        "s.items[s.cursor].name": lambda i: item(i - 1),
        "s.items[i].tags[s.cursor]": lambda i: one_of([f"a{i}", "b"], i - 1) if i < 4 else None,
        "s.items[len(s.items)-1].id": lambda _: 30,
        "s.pointers[i].name": lambda i: item(3 - i),
        "s.fixed[s.items[i].id / 10]": lambda i: {
            "name": f"item{i}", "id": i * 10, "tags": [f"a{i}", "b"]} if i < 4 else None,
    }),
    "rust": (RUST, "indexed::look", {
        "s.items[i].name": item,
        "s.items[s.cursor]": lambda i: {
            "id": 10 * i - 10, "name": f"item{i - 1}"} if 0 < i < 5 else None,
        "s.fixed[i].id": lambda i: one_of([0, 10], i),
        "s.words[s.cursor]": lambda i: one_of(["x", "yy"], i - 1),
    }),
    "mono": (CSHARP, "Indexed.Look", {
        "s.items[i].Name": item,
        "names[s.cursor]": lambda i: one_of(["x", "y"], i - 1),
        "s.points[i]": lambda i: {"X": -i, "Y": 100 * i} if i < 3 else None,
    }),
}  # fmt: skip
LANGUAGES = [
    one if one in ("c++", "go") else pytest.param(one, marks=pytest.mark.long) for one in CASES
]


def wrong(hits: list[dict[str, Any]], expressions: dict[str, Expected]) -> list[Any]:
    """What is not as it should be in the hits of all calls."""
    if len(hits) != len(CALLS):
        return [hits]
    return [
        (call, label, hit["args"][label])
        for call, hit in zip(CALLS, hits, strict=True)
        for label, expected in expressions.items()
        if hit["args"][label] != expected(call)
        or (label in hit["faults"]) != (expected(call) is None)
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_element_is_that_of_the_program(
    language: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_bpf()
    source, function, expressions = CASES[language]
    program = built(language, source, "indexed", tmp_path)
    asked = [*expressions, "--format", "jsonl", "-x", program[-1], "-f", function]
    done = trace(capfd, *asked, "--", *program, *(["one", "last"] if language == "c++" else []))
    assert done.status == 0, done.errors
    assert wrong(done.objects, expressions) == []


def written(
    format: str,
    program: str | Path,
    function: str,
    expressions: dict[str, Expected],
    version: str = "",
) -> str:
    """The text of a format for the expressions, each named after its number."""
    probe = fetchc.open(str(program)).probe(function)
    named = [f"v{n}={one}" for n, one in enumerate(expressions)]
    asked = [probe.compile(one, computes=True) for one in named]
    return output_formats.written(format, probe.events(asked), "", version).text


def arguments(language: str) -> list[str]:
    return ["one", "last"] if language == "c++" else []


def shown_otherwise(
    found: list[dict[str, str | None]], expressions: dict[str, Expected], fault: dict[type, Any]
) -> list[Any]:
    """What a tool shows otherwise; ``fault`` is what it shows in place of a number and a string."""
    if len(found) != len(CALLS):
        return [found]
    differences = []
    for call, hit in zip(CALLS, found, strict=True):
        for n, (label, expected) in enumerate(expressions.items()):
            value = expected(call)
            kind = next(type(expected(i)) for i in CALLS if expected(i) is not None)
            wanted = fault[kind] if value is None else str(value)
            if hit[f"v{n}"] != wanted:
                differences.append((call, label, hit[f"v{n}"], wanted))
    return differences


def whole_values(language: str) -> tuple[str, str, dict[str, Expected]]:
    """The case of a language without its structures."""
    source, function, expressions = CASES[language]
    kept = {
        label: expected
        for label, expected in expressions.items()
        if not any(isinstance(expected(i), dict) for i in CALLS)
    }
    return source, function, kept


@pytest.mark.long
@pytest.mark.parametrize("language", CASES)
def test_c_for_libbpf_has_the_element(language: str, tmp_path: Path) -> None:
    require_uprobes()
    source, function, expressions = whole_values(language)
    program = built(language, source, "indexed", tmp_path)
    text = written("bpf-c", program[-1], function, expressions)
    compiled(tmp_path, text)
    with attached(tmp_path, text) as child:
        try:
            command = [*program, *arguments(language)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=SECONDS)
            found = [values for _, values in hits(quiet(child).decode(), text)]
        finally:
            child.kill()
    fault = {int: None, str: None}
    assert shown_otherwise(found, expressions, fault) == []
    found[0]["v0"] = "another"
    assert len(shown_otherwise(found, expressions, fault)) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("language", "which"), [("c++", "installed"), ("go", "installed"), ("c++", "newer")]
)
def test_bpftrace_has_the_element(language: str, which: str, tmp_path: Path) -> None:
    require_uprobes()
    if reason := missing("bpftrace"):
        pytest.skip(reason)
    source, function, expressions = whole_values(language)
    expressions.pop("names[i]", None)  # texts in pages that nobody has read, which it does not
    program = built(language, source, "indexed", tmp_path)
    text = written("bpftrace", program[-1], function, expressions, bpftrace_version(which))
    command = Path(" ".join(map(str, [*program, *arguments(language)])))
    reported, _ = run_bpftrace(text, command, tmp_path, which)
    (listed,) = reported.values()
    found: list[dict[str, str | None]]
    found = [{name: value.strip('"') for name, value in hit.items()} for hit in listed]
    assert shown_otherwise(found, expressions, {int: "0", str: ""}) == []


def test_elements_are_keys_measures_and_conditions(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_bpf()
    program = built("c++", CPP, "indexed", tmp_path)
    asked = ["--count-by", "s.words[i & 1]", "--sum", "table[s.items[i].id]", "--format", "jsonl"]
    asked += ["--filter", 's.pointers[i]->id != 60 && s.items[i].name != "item3"']
    done = trace(capfd, *asked, "-x", program[0], "-f", "look", "--", *program)
    assert done.status == 0, done.errors
    rows = {row["key"]: row for row in done.objects}
    kept = [i for i in CALLS if i not in (1, 2)]
    for key in (0, 1):
        own = [(i * 10 + 10) ** 2 for i in kept if i % 2 == key]
        row = rows[f"word{key}"]
        assert (row["count"], row["total"]) == (len(own), sum(own)), row
    alone = ["s.items[i].name", "--engine", "tracefs", "-x", program[0], "-f", "look"]
    refused = trace(capfd, *alone, "--", *program)
    assert refused.status != 0
    assert "only an eBPF program computes the place of an element" in refused.errors
