"""Random Go types and expressions that walk them: fetched values against the program's own.

``FETCHC_SEEDS=1000-1003`` draws other types.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest

import fetchc
from fetchc.conformance.c.check import KERNEL
from fetchc.conformance.go.layouts import GoExpression, GoLayouts, GoProbe
from fetchc.conformance.machine import Machine, Memory
from fetchc.conformance.machine import run as run_machine
from fetchc.conformance.reading import Change, as_it_is, decoded
from fetchc.conformance.stops import Stop, run_with_stops, unavailable
from fetchc.ir.decode import Decode
from tests.support.toolchains import GO_VERSIONS, build_go, require

TYPES, EXPRESSIONS = 40, 24
# The kernel's names by DWARF number: System V ABI, AMD64 supplement, figure 3.36.
NAMES = dict(enumerate(["ax", "dx", "cx", "bx", "si", "di", "bp", "sp"]))
NAMES |= {number: f"r{number}" for number in range(8, 16)}


def seeds() -> list[int]:
    first, _, last = os.environ.get("FETCHC_SEEDS", "1").partition("-")
    return list(range(int(first), int(last or first) + 1))


class Ran:
    """One program: built, stopped at every probe, and what it told."""

    def __init__(self, seed: str, version: str, folder: Path, types: int = TYPES) -> None:
        require(f"go{version}")
        reason = unavailable()
        if reason:
            pytest.skip(reason)
        # Up to Go 1.21 the debug information leaves parameters out: what follows is not certain.
        self.certain = version not in ("1.15",)
        self.layouts = GoLayouts(seed, types, EXPRESSIONS, generics=version != "1.15")
        binary = build_go(self.layouts.source(), version, folder)
        program = fetchc.open(str(binary))
        self.points = {
            probe.name: program.probe(f"main.{probe.name}", kernel=KERNEL)
            for probe in self.layouts.probes
        }
        printed, self.stops = run_with_stops(binary, [it.address for it in self.points.values()])
        self.regions: dict[int, bytes] = {}
        self.values: dict[tuple[str, int], list[int | bytes]] = {}
        for line in printed.splitlines():
            word, name, rest, *items = line.split(" ")
            if word == "region":
                self.regions[int(name, 16)] = bytes.fromhex(rest)
            else:
                read = [bytes.fromhex(it[1:]) if it[:1] == "t" else int(it) for it in items]
                self.values[name, int(rest)] = read

    def machine(self, probe: GoProbe) -> Machine:
        """The machine at a probe's stop; Go's programs are where their files say."""
        point = self.points[probe.name]
        stop: Stop = self.stops[point.address]
        registers = {
            name: int.from_bytes(stop.registers[number][:8], "little")
            for number, name in NAMES.items()
        }
        memory = Memory(self.regions | {registers["sp"]: stop.stack})
        return Machine(registers, memory, point.address - point.offset)


def compared(ran: Ran, changed: Change = as_it_is) -> tuple[Counter[str], list[str]]:
    """Counts of what was compared and refused, and what is wrong."""
    tally: Counter[str] = Counter()
    wrong = []
    for probe in ran.layouts.probes:
        machine = ran.machine(probe)
        for number, expression in enumerate(probe.expressions):
            tally["expressions"] += 1
            told = ran.values[probe.name, number]
            try:
                got, texts = fetched(ran.points[probe.name], expression, machine, changed)
            except fetchc.CompileError as refusal:
                first = refusal.diagnostics[0]
                tally[first.code] += 1
                allowed = {"FC0501", "FC0502"} | (
                    {"FC0312"} if expression.kind == "refused" else set()
                )
                if expression.held:
                    allowed |= {"FC0402", "FC0404"}
                if not ran.certain and expression.text.lstrip("(*&len").startswith("v"):
                    allowed |= {"FC0407"}
                if first.code in allowed:
                    continue
                got, texts = f"{first.code}: {first.message}", "none"
            else:
                tally["compared"] += 1
            if got != told:
                wrong.append(
                    f"{expression.text}  [{probe.parameters}]\n  fetch-arg: {texts}\n"
                    f"  fetched:   {got}\n  program:   {told}"
                )
    return tally, wrong


def fetched(
    point: fetchc.Probe, expression: GoExpression, machine: Machine, changed: Change
) -> tuple[object, str]:
    """The values of an expression and the fetch-args they come from."""
    argument = point.compile(expression.text)
    if expression.kind not in ("text", "words"):
        text, decode = changed(argument.fetcharg, argument.decode)
        shown = run_machine(text, machine)
        values = None if shown is None else decoded(shown, decode)
        if expression.kind == "float" and values is not None:
            return [int.from_bytes(it, "little") for it in values if isinstance(it, bytes)], text
        return values, f"{text} {decode}"
    values, texts = [], []
    for part in argument.whole.parts:
        text, decode = changed(part.body, part.decode)
        texts.append(text)
        shown = run_machine(text, machine)
        if shown is None:
            return None, " ".join(texts)
        if decode.kind == "text":
            words = [int(it, 16).to_bytes(8, "little") for it in shown.strip("{}").split(",")]
            values.append(b"".join(words))
        else:
            values += decoded(shown, decode)
    if expression.kind == "text":
        content, length = values
        assert isinstance(content, bytes)
        assert isinstance(length, int)
        return [content[:length]], " ".join(texts)
    return values, " ".join(texts)


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("version", GO_VERSIONS)
def test_values_are_as_the_program_tells_them(seed: int, version: str, tmp_path: Path) -> None:
    ran = Ran(f"{seed} {version}", version, tmp_path)
    tally, wrong = compared(ran)
    counts = ", ".join(f"{what} {count}" for what, count in sorted(tally.items()))
    print(f"seed {seed}, Go {version}: {TYPES} types, {counts}")
    assert not wrong, f"{len(wrong)} wrong, the first:\n{wrong[0]}\n\n{ran.layouts.source()}"
    assert tally["compared"] > 0.8 * tally["expressions"]


def other_offset(text: str, decode: Decode) -> tuple[str, Decode]:
    changed = re.sub(r"[+-]\d+(?=\()", lambda found: f"{int(found[0]) + 1:+}", text, count=1)
    return changed, decode


def other_register(text: str, decode: Decode) -> tuple[str, Decode]:
    return text.replace("%ax", "%bx"), decode


def other_sign(text: str, decode: Decode) -> tuple[str, Decode]:
    return text, Decode(decode.kind, decode.bits, not decode.signed, decode.count)


@pytest.mark.parametrize("falsified", [other_offset, other_register, other_sign])
def test_a_wrong_emission_is_noticed(falsified: Change, tmp_path: Path) -> None:
    tally, wrong = compared(Ran("falsified", "1.22", tmp_path, types=8), falsified)
    assert 3 < len(wrong) < tally["expressions"]
    assert "fetch-arg:" in wrong[0]
