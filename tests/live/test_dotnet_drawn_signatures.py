"""Parameters of drawn methods, most of them on the stack: each value is what the program printed.

Structures of every size and alignment, segments of arrays, nullables, tuples, decimal numbers and
strings, in methods with and without an object, compiled ahead of time by Mono. ``FETCHC_SEEDS=7-9``
draws other programs, ``FETCHC_CSHARP=25`` more methods.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from random import Random

import pytest

import fetchc
from fetchc.diag.diagnostic import CompileError
from tests.live.traced import trace
from tests.support.dotnet import ahead_of_time
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

METHODS = int(os.environ.get("FETCHC_CSHARP", "4"))
NUMBERS = {"byte": 8, "short": 15, "ushort": 16, "int": 31, "uint": 32, "long": 62}
STRUCTURES = 8
IN_VECTORS = "FC0402"  # what is in such a register no probe fetches


class Drawn:
    """A program: its source, and of each method the expressions that it prints."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.structures = [self._structure() for _ in range(STRUCTURES)]
        self.expressions: list[list[str]] = []
        self.calls: list[str] = []
        methods = [self._method(number) for number in range(METHODS)]
        types = [
            f"public struct S{number} {{ {' '.join(f'public {t} F{at};' for at, t in each)} }}"
            for number, each in enumerate(self.structures)
        ]
        self.source = "\n".join([*HEAD, *types, CLASS, *methods, MAIN, *self.calls, "} }"])

    def _structure(self) -> list[tuple[int, str]]:
        kinds = [*NUMBERS, "double", "string"]
        count = self.random.choice([1, 1, 2, 3, 3, 5])
        return list(enumerate(self.random.choice(kinds) for _ in range(count)))

    def _number(self, kind: str) -> tuple[str, list[tuple[str, str]]]:
        value = str(self.random.getrandbits(NUMBERS[kind]))
        return f"({kind}){value}L", [("", value)]

    def _made(self, kind: str) -> tuple[str, list[tuple[str, str]]]:
        """A value of a type, and what its parts are as JSON, by what follows the name."""
        if kind in NUMBERS:
            return self._number(kind)
        if kind == "double":
            return "1.5", []
        if kind == "string":
            text = self.random.choice(["", "a", "bc", "def" * 3])
            return f'"{text}"', [("", json.dumps(text))]
        if kind == "decimal":
            value = f"{self.random.getrandbits(90)}.{self.random.randrange(1, 10)}"
            return f"{value}m", [("", json.dumps(value))]
        if kind.endswith("?"):
            value, _ = self._number(kind[:-1])
            there = self.random.random() < 0.7
            has = [(".HasValue", "true" if there else "false")]
            shown = [("", value.partition(")")[2].rstrip("L") if there else "null")]
            return (f"({kind}){value}" if there else f"({kind})null"), has + shown
        if kind == "ArraySegment<int>":
            offset, count = self.random.randrange(9), self.random.randrange(1, 9)
            parts = [(".Offset", str(offset)), (".Count", str(count))]
            return f"new ArraySegment<int>(new int[20], {offset}, {count})", parts
        if kind.startswith("ValueTuple<"):
            inner = [one.strip() for one in kind[len("ValueTuple<") : -1].split(",")]
            made = [self._made(one) for one in inner]
            parts = [(f".Item{at}{end}", v) for at, (_, p) in enumerate(made, 1) for end, v in p]
            return f"new {kind}({', '.join(value for value, _ in made)})", parts
        fields = self.structures[int(kind[1:])]
        each = [(at, *self._made(one)) for at, one in fields]
        parts = [(f".F{at}{end}", value) for at, _, listed in each for end, value in listed]
        return f"new {kind} {{ {', '.join(f'F{at} = {value}' for at, value, _ in each)} }}", parts

    def _kind(self) -> str:
        plain = [*NUMBERS, "double", "string", "decimal", "ArraySegment<int>"]
        others = ["int?", "long?", "byte?", "ValueTuple<byte, long, short>"]
        others += ["ValueTuple<int, string>", "ValueTuple<long, ArraySegment<int>>"]
        return self.random.choice([*plain, *others, *[f"S{n}" for n in range(STRUCTURES)]])

    def _method(self, number: int) -> str:
        kinds = [self._kind() for _ in range(self.random.randrange(6, 13))]
        static = self.random.random() < 0.5
        named = ", ".join(f"{kind} a{at}" for at, kind in enumerate(kinds))
        for _ in range(2):
            made = [self._made(kind) for kind in kinds]
            parts = {
                f"a{at}{end}": value for at, (_, listed) in enumerate(made) for end, value in listed
            }
            if len(self.expressions) == number:
                self.expressions.append(list(parts))
            shown = ", ".join(f"{json.dumps(one)}: {value}" for one, value in parts.items())
            event = json.dumps(f'EVENT {{"method": {number}, "values": {{{shown}}}}}')
            holder = "Drawn" if static else "new Drawn()"
            values = ", ".join(value for value, _ in made)
            self.calls += [f"Console.WriteLine({event});", f"{holder}.M{number}({values});"]
        word = "static " if static else ""
        return f"[MethodImpl(MethodImplOptions.NoInlining)] public {word}void M{number}({named}) {{ Calls++; }}"  # noqa: E501


HEAD = ("using System;", "using System.Runtime.CompilerServices;")
CLASS = "public class Drawn { public static int Calls;"
MAIN = "public static void Main() {"


def seeds() -> list[int]:
    first, _, last = os.environ.get("FETCHC_SEEDS", "1").partition("-")
    return list(range(int(first), int(last or first) + 1))


@pytest.mark.parametrize("seed", seeds())
def test_parameters(seed: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    require_uprobes()
    drawn = Drawn(seed)
    source = tmp_path / "drawn.cs"
    source.write_text(drawn.source)
    program = ahead_of_time(source, tmp_path / "drawn.exe")
    opened = fetchc.open(str(program))
    refused: Counter[str] = Counter()
    on_stack = compared = 0
    for number, listed in enumerate(drawn.expressions):
        probe = opened.probe(f"Drawn.M{number}")
        expressions = []
        for one in listed:
            try:
                probe.plan([one], "fetchc_drawn")
                expressions.append(one)
            except CompileError as error:
                refused[error.diagnostics[0].code] += 1
        where: list[str | Path] = ["-x", program, "-f", f"Drawn.M{number}", "--format", "jsonl"]
        found = trace(capfd, *expressions, *where, "--", "mono", program)
        assert found.status == 0, found.errors
        lines = [json.loads(line.removeprefix("EVENT ")) for line in found.program]
        printed = [each["values"] for each in lines if each["method"] == number]
        printed = [{one: values[one] for one in expressions} for values in printed]
        assert len(printed) == 2
        assert found.args == printed, f"M{number} of seed {seed}"
        compared += len(expressions)
        plan = probe.plan(expressions, "fetchc_drawn")
        on_stack += sum("(%sp)" in word for word in plan.definitions[0].split())
    assert on_stack > 4 * METHODS
    assert sum(refused.values()) <= 0.03 * compared, refused
