"""Random Rust functions of the shapes that rustc takes apart: what is shown is what was passed.

``FETCHC_SEEDS=1000-1040`` draws others, ``FETCHC_LONG=1`` takes every compiler and level.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import fetchc
from tests.live.rustc import COMPILERS, compiled
from tests.live.watching import watched
from tests.support.seeds import seeds
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

LEVELS = ["0", "2", "s"]
FUNCTIONS = 30 if os.environ.get("FETCHC_LONG") else 12
CEILING = 0.03  # of the numbers and pointers that functions are passed, those refused
NO_CODE = "FC0202"
HEADER = """#![allow(unused, static_mut_refs)]
fn held<T: Copy>(v: T) -> T { unsafe { std::ptr::read_volatile(&v) } }
static mut SINK: i64 = 0;
fn sunk(n: i64) { unsafe { SINK = SINK.wrapping_add(held(n)); } }
#[inline(never)] fn mark() { sunk(3); }
#[derive(Clone, Copy)] pub struct Pair { a: i32, b: u64 }
#[derive(Clone, Copy)] pub struct Small { a: u8, b: i16 }
#[derive(Clone, Copy)] pub struct Large { a: i64, b: u32, c: [i16; 6], d: u64 }
#[derive(Clone, Copy)] pub enum Hue { Red, Green = 7, Blue }
"""
INTEGERS = {
    f"{sign}{bits}": (0 if sign == "u" else -(1 << bits - 1), (1 << bits - (sign == "i")) - 1)
    for sign in "iu"
    for bits in (8, 16, 32, 64)
}
# A type: what is asked and how the program evaluates it, and uses of the parameter.
SHAPES: dict[str, tuple[dict[str, str], list[str]]] = {
    "&str": ({"@": "@", "len(@)": "@.len()"}, ["@.len() as i64", "@.as_ptr() as i64"]),
    "&[i32]": ({"@": "@", "len(@)": "@.len()"}, ["@.len() as i64", "@[0] as i64"]),
    "&[u8]": ({"len(@)": "@.len()"}, ["@.len() as i64", "@[0] as i64"]),
    "Pair": ({"@.a": "@.a", "@.b": "@.b"}, ["@.a as i64", "@.b as i64"]),
    "Small": ({"@.a": "@.a", "@.b": "@.b"}, ["@.a as i64", "@.b as i64"]),
    "Large": ({"@.a": "@.a", "@.c[2]": "@.c[2]", "@.d": "@.d"}, ["@.a", "@.b as i64"]),
    "[u32; 4]": ({"@[2]": "@[2]"}, ["@[1] as i64", "@[2] as i64"]),
    "(i32, u64)": ({"@.0": "@.0", "@.1": "@.1"}, ["@.0 as i64", "@.1 as i64"]),
    "&Pair": ({"@.a": "@.a", "@.b": "@.b"}, ["@.a as i64", "@.b as i64"]),
    "Hue": ({"@": "@ as i64"}, ["@ as i64"]),
    "Option<&Pair>": ({}, ["if let Some(p) = @ { p.a as i64 } else { 0 }"]),
    "Option<u32>": ({}, ["@.unwrap_or(3) as i64"]),
    "u128": ({}, ["@ as i64", "(@ >> 64) as i64"]),
    "f64": ({}, ["@ as i64"]),
    "bool": ({"@": "@"}, ["@ as i64"]),
    **{kind: ({"@": "@"}, ["@ as i64"]) for kind in INTEGERS},
}


class Shapes:
    """The source of one program; of each function what is asked. ``marks``: its line ``mark()``.

    ``numbers`` are those of it that are numbers or read through one pointer. Optimised functions
    are passed only what they use, which of ``&str`` may be half.
    """

    def __init__(self, seed: str, count: int, optimised: bool) -> None:
        self._random = random = Random(seed)
        self._optimised = optimised
        self.asked: dict[str, list[str]] = {}
        self.numbers: dict[str, set[str]] = {}
        self.marks: dict[str, int] = {}
        self.lines = HEADER.splitlines()
        self.calls: list[str] = []
        before: tuple[list[str], dict[str, str]] | None = None
        for number in range(count):
            kinds = [random.choice(list(SHAPES)) for _ in range(random.choice([1, 2, 3, 4, 7]))]
            uses = {}
            for at, kind in enumerate(kinds):
                if random.random() < 0.75:
                    use = f"sunk({random.choice(SHAPES[kind][1])});"
                    uses[f"v{at}"] = use.replace("@", f"v{at}")
            if before is not None and random.random() < 0.2:
                kinds, uses = before  # the same code: the compiler or linker makes one of them
            before = kinds, uses
            self._function(f"f{number}", kinds, uses)
        self.lines += ["fn main() {", *self.calls, "}", ""]

    def _function(self, name: str, kinds: list[str], uses: dict[str, str]) -> None:
        taken = ", ".join(f"v{at}: {kind}" for at, kind in enumerate(kinds))
        visible = self._random.choice(["", "pub "])
        self.lines += ["#[inline(never)]", f"{visible}fn {name}({taken}) {{"]
        self.lines += [f"    {use}" for use in uses.values()]
        self.lines += ["    mark();", "    sunk(1);", "}"]
        self.marks[name] = len(self.lines) - 2
        evaluated = {
            text.replace("@", f"v{at}"): value.replace("@", f"v{at}")
            for at, kind in enumerate(kinds)
            for text, value in SHAPES[kind][0].items()
        }
        self.asked[name] = list(evaluated)
        known = [f"v{at}" for at in range(len(kinds)) if not self._optimised or f"v{at}" in uses]
        self.numbers[name] = {
            text.replace("@", f"v{at}")
            for at, kind in enumerate(kinds)
            if f"v{at}" in known
            if kind in INTEGERS or kind == "&Pair" or (kind[0] == "&" and not self._optimised)
            for text in SHAPES[kind][0]
        }
        form = ", ".join(f'\\"{text}\\": {{:?}}' for text in evaluated)
        values = "".join(f", {value}" for value in evaluated.values())
        passed = ", ".join(f"v{at}" for at in range(len(kinds)))
        for _ in range(2):
            given = [f"let v{at}: {kind} = {self._value(kind)};" for at, kind in enumerate(kinds)]
            printed = (
                f'println!("{{{{\\"f\\": \\"{name}\\", \\"args\\": {{{{{form}}}}}}}}}"{values});'
            )
            self.calls += ["    {", *given, printed, f"{name}({passed});", "    }"]

    def _value(self, kind: str) -> str:
        random = self._random
        if kind in INTEGERS:
            return f"held({random.randint(*INTEGERS[kind])})"
        number = random.randrange(1, 1 << 30)
        return "held({})".format(
            {
                "&str": f'"text {number}"',
                "&[i32]": f"&[{number}, -2, 3][..]",
                "&[u8]": f"&[{number % 256}, 2, 3, 4][..]",
                "Pair": f"Pair {{ a: -{number}, b: {number << 20} }}",
                "&Pair": f"&Pair {{ a: -{number}, b: {number << 20} }}",
                "Small": f"Small {{ a: {number % 256}, b: -{number % 32768} }}",
                "Large": f"Large {{ a: -{number}, b: {number}, c: [{number % 32768}; 6], d: 9 }}",
                "[u32; 4]": f"[1, {number}, {number + 1}, 4]",
                "(i32, u64)": f"(-{number}, {number << 21})",
                "Hue": random.choice(["Hue::Red", "Hue::Green", "Hue::Blue"]),
                "Option<&Pair>": random.choice(["None", "Some(&Pair { a: 3, b: 4 })"]),
                "Option<u32>": random.choice(["None", f"Some({number})"]),
                "u128": f"{number << 70}",
                "f64": f"{number}.5",
                "bool": random.choice(["true", "false"]),
            }[kind]
        )


def plain(value: Any) -> Any:
    """A value of the trace as the program prints it."""
    return value.get("value") if isinstance(value, dict) else value


def unlike(name: str, shown: list[dict[str, Any]], right: list[dict[str, Any]]) -> list[str]:
    """What the events of a function show that its calls did not pass."""
    if len(shown) != len(right):
        return [f"{name}: {len(shown)} events, not {len(right)}"]
    return [
        f"{name}: {text} is {value!r}, not {one[text]!r}"
        for event, one in zip(shown, right, strict=True)
        for text, value in event.items()
        if plain(value) != one[text]
    ]


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("compiler", COMPILERS if os.environ.get("FETCHC_LONG") else COMPILERS[:1])
def test_what_is_shown_was_passed(compiler: str, level: str, seed: int, tmp_path: Path) -> None:
    require_uprobes()
    shapes = Shapes(f"{seed} {level}", FUNCTIONS, level != "0")
    source = tmp_path / "shapes/main.rs"
    source.parent.mkdir()
    source.write_text("\n".join(shapes.lines))
    binary = compiled(compiler, source, tmp_path / "program", "-C", f"opt-level={level}")
    program = fetchc.open(str(binary))
    refused: Counter[str] = Counter()
    missing: list[str] = []
    needed = sum(map(len, shapes.numbers.values()))
    asked: dict[str, tuple[fetchc.Probe, list[Any]]] = {}
    merged: set[str] = set()
    for name, texts in shapes.asked.items():
        found = []
        try:
            probe = program.probe(f"shapes::{name}", at="body" if level == "0" else None)
        except fetchc.CompileError as error:
            code = error.diagnostics[0].code
            refused[code] += len(texts)
            assert level != "0" or code != NO_CODE
            needed -= len(shapes.numbers[name])  # one with another function, whose code it has
            missing += [f"{name} {text}" for text in shapes.numbers[name] if code != NO_CODE]
            continue
        for text in texts:
            try:
                found.append(probe.asked(text))
            except fetchc.CompileError as error:
                refused[error.diagnostics[0].code] += 1
                missing += [f"{name} {text}"] * (text in shapes.numbers[name])
                continue
            merged |= {name for one in probe.warnings if one.code in ("FC0624", "FC0628")}
        if found:
            asked[name] = probe, found
        there = accepted(program, f"shapes::{name}", shapes.marks[name], texts, refused)
        if there is not None:
            asked[f"{name}_line"] = there
    output, events = watched(
        lambda group: [probe.plan(found, group, name) for name, (probe, found) in asked.items()],
        [binary],
    )
    passed: dict[str, list[dict[str, Any]]] = {}
    for line in output.splitlines():
        one = json.loads(line)
        passed.setdefault(one["f"], []).append(one["args"])
    wrong, compared = [], 0
    for name in asked:
        shown = [event.args for event in events if event.name == name]
        compared += sum(len(event) for event in shown)
        function = name.removesuffix("_line")
        if len(shown) <= len(passed[function]) or function not in merged:
            wrong += unlike(name, shown, passed[function])
    print(f"{compiler} {level} seed {seed}: {compared} values, refused {dict(refused)}")
    print("wrong:", *wrong, sep="\n  ")
    print(f"of {needed} numbers and what pointers lead to {len(missing)}: {missing}")
    assert wrong == []
    if level == "0":
        # rustc merges nothing that it does not optimize. Old ones give what is passed by its
        # address no slot: such a function looks optimized.
        by_address = rf"fn ({'|'.join(merged)})\(.*(\[\w+; \d+\]|Large)"
        assert merged == {found[1] for found in re.finditer(by_address, source.read_text())}
    assert compared > FUNCTIONS
    assert len(missing) <= CEILING * needed, missing


BY_ADDRESS = (
    HEADER
    + """
#[inline(never)]
fn taken(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, v: Large, w: [u32; 4], n: u64) {
    sunk((a ^ b ^ c ^ d ^ e ^ f) as i64);
    sunk(v.a + v.d as i64);
    sunk(w[2] as i64 + n as i64);
    mark();
    sunk(1);
}
fn main() {
    let large = Large { a: held(-7), b: held(8), c: held([9; 6]), d: held(10) };
    let four = held([1, 2, 33, 4]);
    taken(held(1), held(2), held(3), held(4), held(5), held(6), large, four, held(77));
}
"""
)


@pytest.mark.parametrize("level", ["0", "1", "2", "s"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_an_address_on_the_stack_is_not_taken_for_what_is_there(
    compiler: str, level: str, tmp_path: Path
) -> None:
    require_uprobes()
    source = tmp_path / "address/main.rs"
    source.parent.mkdir()
    source.write_text(BY_ADDRESS)
    binary = compiled(compiler, source, tmp_path / "program", "-C", f"opt-level={level}")
    program = fetchc.open(str(binary))
    right = {"v.a": -7, "v.d": 10, "w[2]": 33, "n": 77, "f": 6}
    line = 1 + BY_ADDRESS[: BY_ADDRESS.index("    mark();")].count("\n")
    points: dict[str, tuple[fetchc.Probe, list[Any]]] = {}
    for at in ("entry", f":{line}"):
        probe = program.probe("address::taken", at=None if at == "entry" else at)
        found = []
        for text in right:
            try:
                found.append(probe.asked(text))
            except fetchc.CompileError as error:
                assert error.diagnostics[0].code in ("FC0401", "FC0406")  # noqa: PT017
        points[at.strip(":")] = probe, found
    _, events = watched(
        lambda group: [
            probe.plan(found, group, f"at_{at}") for at, (probe, found) in points.items()
        ],
        [binary],
    )
    for event in events:
        assert event.args.items() <= right.items()
    seen = {text for event in events for text in event.args}
    assert "n" in seen
    assert level != "0" or seen == right.keys()


def accepted(
    program: fetchc.Program, function: str, line: int, texts: list[str], refused: Counter[str]
) -> tuple[fetchc.Probe, list[Any]] | None:
    """What can be asked at a line that has one address; parameters are not assigned before it."""
    try:
        probe = program.probe(function, at=f":{line}")
    except fetchc.CompileError as error:
        refused[f"line {error.diagnostics[0].code}"] += len(texts)
        return None
    found = []
    for text in texts:
        try:
            found.append(probe.asked(text))
        except fetchc.CompileError as error:
            refused[f"line {error.diagnostics[0].code}"] += 1
    return (probe, found) if found and len(probe.each()) == 1 else None


def test_a_wrong_value_is_noticed() -> None:
    assert unlike("f", [{"v0": 3}], [{"v0": 3}]) == []
    assert unlike("f", [{"v0": {"name": "Red", "value": 0}}], [{"v0": 0}]) == []
    assert unlike("f", [{"v0": 3}], [{"v0": 4}]) == ["f: v0 is 3, not 4"]
    assert unlike("f", [], [{"v0": 4}]) == ["f: 0 events, not 1"]
