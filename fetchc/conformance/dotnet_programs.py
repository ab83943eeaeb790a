"""C# programs of drawn methods: their parameters are what the program prints of them.

Structures of every size and alignment, segments of arrays, nullables, tuples, decimal numbers,
strings, dictionaries and sets, in methods with and without an object, compiled ahead of time by
Mono. Their code is loaded while the program runs, so only the engines of the running kernel look.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from random import Random

from fetchc.conformance.child_processes import call, unbuilt, written
from fetchc.conformance.container_drawing import MOST, SIZES
from fetchc.conformance.results import LIMITS, Reproducer, Tally
from fetchc.conformance.shown_values import ShownFailure, ShownProbe, check
from fetchc.record import Record

__all__ = [
    "DotnetProgram",
    "MonoBuild",
    "build_dotnet",
    "check_dotnet",
    "draw_dotnet",
    "reproducer",
]

_BUILD_SECONDS = 120
_NUMBERS = {"byte": 8, "short": 15, "ushort": 16, "int": 31, "uint": 32, "long": 62}
_STRUCTURES, _CALLS = 8, 2
_IN_VECTORS = "FC0402"  # what is in such a register no probe fetches
_Parts = list[tuple[str, str]]


class MonoBuild(Record):
    """Mono's ``mono``, with the compiler ``mcs`` of the same directory."""

    command: str
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join([self.command, "--aot", *self.options])

    def lines(self, file: Path | str, assembly: Path | str) -> tuple[tuple[str, ...], ...]:
        """The commands that build ``assembly`` of the source ``file``, one after the other."""
        compiler = os.path.join(os.path.dirname(self.command), "mcs")
        ahead = f"--aot=dwarfdebug,outfile={assembly}.so"
        return (
            (compiler, "-debug", "-langversion:latest", f"-out:{assembly}", str(file)),
            (self.command, "--debug", *self.options, ahead, str(assembly)),
        )


def build_dotnet(source: str, build: MonoBuild, folder: Path) -> Path:
    """An assembly with its code beside it; raises ConformanceError (FC0802) where there is none."""
    file, assembly = folder / "drawn.cs", folder / "drawn.exe"
    code = Path(f"{assembly}.so")
    file.write_text(source)
    for old in (assembly, code):
        old.unlink(missing_ok=True)
    for line, made in zip(build.lines(file, assembly), (assembly, code), strict=True):
        done = call(line, folder, _BUILD_SECONDS)
        if done.status or not made.exists():
            help = "build a C# program by hand, or name another Mono"
            raise unbuilt(build, done, help)
    return assembly


# ------------------------------------------------------------------------------
# Drawing.


class DotnetProgram(Record):
    """A program, and its probed methods."""

    source: str
    probes: tuple[ShownProbe, ...]


def draw_dotnet(random: Random, methods: int) -> DotnetProgram:
    """A program of ``methods`` methods, each of which is called with two lists of values."""
    drawing = _Drawing(random)
    declared = [drawing.method(number) for number in range(methods)]
    types = [
        f"public struct S{number} {{ {' '.join(f'public {t} F{at};' for at, t in each)} }}"
        for number, each in enumerate(drawing.structures)
    ]
    source = "\n".join([*_HEAD, *types, _CLASS, *declared, _MAIN, *drawing.calls, "} }", ""])
    return DotnetProgram(source, tuple(drawing.probes))


_HEAD = (
    "using System;",
    "using System.Collections.Generic;",
    "using System.Runtime.CompilerServices;",
)
_CLASS = "public class Drawn { public static int Calls;"
_MAIN = "public static void Main() {"


class _Drawing:
    def __init__(self, random: Random) -> None:
        self._random = random
        self.structures = [self._structure() for _ in range(_STRUCTURES)]
        self.probes: list[ShownProbe] = []
        self.calls: list[str] = []

    def _structure(self) -> list[tuple[int, str]]:
        kinds = [*_NUMBERS, "double", "string"]
        count = self._random.choice([1, 1, 2, 3, 3, 5])
        return list(enumerate(self._random.choice(kinds) for _ in range(count)))

    def method(self, number: int) -> str:
        """The source of a method; its calls and its expressions are noted."""
        kinds = [self._kind() for _ in range(self._random.randrange(6, 13))]
        static = self._random.random() < 0.5
        named = ", ".join(f"{kind} a{at}" for at, kind in enumerate(kinds))
        texts: dict[str, None] = {}
        called = []
        for _ in range(_CALLS):
            made = [self._made(kind) for kind in kinds]
            parts = {f"a{at}{end}": one for at, (_, each) in enumerate(made) for end, one in each}
            texts |= dict.fromkeys(parts)
            called.append((parts, ", ".join(value for value, _ in made)))
        holder = "Drawn" if static else "new Drawn()"
        for parts, values in called:
            said = f"M{number} [{', '.join(parts[text] for text in texts)}]"
            self.calls += [
                f"Console.WriteLine({json.dumps(said)});",
                f"{holder}.M{number}({values});",
            ]
        self.probes.append(ShownProbe(f"Drawn.M{number}", f"M{number}", None, tuple(texts)))
        inlining = "[MethodImpl(MethodImplOptions.NoInlining)]"
        word = "static " if static else ""
        return f"{inlining} public {word}void M{number}({named}) {{ Calls++; }}"

    def _kind(self) -> str:
        plain = [*_NUMBERS, "double", "string", "decimal", "ArraySegment<int>"]
        others = ["int?", "long?", "byte?", "ValueTuple<byte, long, short>"]
        others += ["ValueTuple<int, string>", "ValueTuple<long, ArraySegment<int>>"]
        others += ["Dictionary<short, string>", "Dictionary<string, uint>", "HashSet<int>"]
        return self._random.choice([*plain, *others, *[f"S{n}" for n in range(_STRUCTURES)]])

    def _made(self, kind: str) -> tuple[str, _Parts]:
        # A value of a type, and what its parts are as JSON, by what follows the name.
        random = self._random
        if kind in _NUMBERS:
            return self._number(kind)
        if kind == "double":
            return "1.5", []
        if kind == "string":
            text = random.choice(["", "a", "bc", "def" * 3])
            return f'"{text}"', [("", json.dumps(text))]
        if kind == "decimal":
            value = f"{random.getrandbits(90)}.{random.randrange(1, 10)}"
            return f"{value}m", [("", json.dumps(value))]
        if kind.endswith("?"):
            value, _ = self._number(kind[:-1])
            there = random.random() < 0.7
            has = [(".HasValue", "true" if there else "false")]
            shown = [("", value.partition(")")[2].rstrip("L") if there else "null")]
            return (f"({kind}){value}" if there else f"({kind})null"), has + shown
        if kind == "ArraySegment<int>":
            offset, count = random.randrange(9), random.randrange(1, 9)
            parts = [(".Offset", str(offset)), (".Count", str(count))]
            return f"new ArraySegment<int>(new int[20], {offset}, {count})", parts
        if kind.startswith(("Dictionary<", "HashSet<")):
            return self._collection(kind)
        if kind.startswith("ValueTuple<"):
            inner = [one.strip() for one in kind[len("ValueTuple<") : -1].split(",")]
            made = [self._made(one) for one in inner]
            parts = [(f".Item{at}{end}", v) for at, (_, p) in enumerate(made, 1) for end, v in p]
            return f"new {kind}({', '.join(value for value, _ in made)})", parts
        fields = self.structures[int(kind[1:])]
        each = [(at, *self._made(one)) for at, one in fields]
        parts = [(f".F{at}{end}", value) for at, _, listed in each for end, value in listed]
        return f"new {kind} {{ {', '.join(f'F{at} = {value}' for at, value, _ in each)} }}", parts

    def _number(self, kind: str) -> tuple[str, _Parts]:
        value = str(self._random.getrandbits(_NUMBERS[kind]))
        return f"({kind}){value}L", [("", value)]

    def _collection(self, kind: str) -> tuple[str, _Parts]:
        # Its elements are in the order in which they come, as long as none is removed.
        key, _, value = kind.rstrip(">").partition("<")[2].partition(", ")
        entries: dict[str, tuple[str, str]] = {}
        for number in range(self._random.choice(SIZES)):
            name = f'"k{number}"' if key == "string" else str(self._random.randrange(-20, 150))
            made, parts = self._made(value) if value else ("", [("", "")])
            entries[name] = made, parts[0][1]
        if value:
            given = ", ".join(f"{{ {name}, {made} }}" for name, (made, _) in entries.items())
            each = [f'{{"key": {one}, "value": {of}}}' for one, (_, of) in entries.items()]
        else:
            given, each = ", ".join(entries), list(entries)
        listed = ", ".join(each)
        parts = [
            (f"[:{most if most != MOST else ''}]", f'{{"walked": [{listed}], "most": {most}}}')
            for most in (5, MOST)
        ]
        if value:
            constant = '"k1"' if key == "string" else "7"
            parts.append((f"[{constant}]", entries.get(constant, ("", "null"))[1]))
        return f"new {kind} {{ {given} }}", [*parts, (".Count", str(len(entries)))]


# ------------------------------------------------------------------------------
# Comparing.


def check_dotnet(
    program: DotnetProgram, build: MonoBuild, folder: Path, engines: Sequence[str]
) -> tuple[Tally, list[ShownFailure]]:
    """Build, run and compare; ``engines`` are those that record a run."""
    assembly = build_dotnet(program.source, build, folder)
    tally = Tally()
    tally.programs, tally.types = 1, _STRUCTURES
    allowed = LIMITS | {_IN_VECTORS}
    found = check(assembly, program.probes, tally, allowed, engines, runtime=build.command)
    return tally, found


def reproducer(program: DotnetProgram, failure: ShownFailure, build: MonoBuild) -> Reproducer:
    """What shows the failure; the program has all of its methods."""
    first, second = build.lines("reproducer.cs", "reproducer.exe")
    command = f"{written(first)} && {written(second)}"
    part = f"(a parameter of `{failure.probe.function}`)"
    return failure.reproducer(command, part, program.source)
