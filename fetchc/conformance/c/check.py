"""A program of random types through fetchc and the machine: what is not as the program told.

The machine runs the text that fetchc prints, on the registers and the memory that the program
showed; ``decode`` makes a value of it, and that is compared with the compiler's own.
"""

from __future__ import annotations

from pathlib import Path

import fetchc
from fetchc.conformance.c.expressions import Expression
from fetchc.conformance.c.family import Family
from fetchc.conformance.c.program import STAGES, Probe, c_source
from fetchc.conformance.c.refusals import Refusals
from fetchc.conformance.c.run import Build, Told, run
from fetchc.conformance.machine import Machine, Memory
from fetchc.conformance.reading import Change, as_it_is, fetched
from fetchc.conformance.results import LIMITS, REFUSED, Tally
from fetchc.record import Record

__all__ = ["KERNEL", "Failure", "check"]

KERNEL = "6.12"
_TREES = 4  # one in so many is also read by its tree, which takes a second compilation


class Failure(Record):
    """One expression whose value is wrong, or that is refused without need."""

    family: Family
    probe: Probe
    expression: Expression
    stage: str
    fetcharg: str
    got: object
    told: object


def check(
    families: list[tuple[Family, list[Probe]]],
    build: Build,
    folder: Path,
    changed: Change = as_it_is,
) -> tuple[Tally, list[Failure]]:
    """Build, run and compare; ``changed`` lets a test falsify each fetch-arg."""
    binary, told = run(c_source(families), build, folder)
    program = fetchc.open(str(binary))
    tally, failures = Tally(), []
    tally.programs = 1
    for family, probes in families:
        tally.types += len(family.declared)
        for probe in probes:
            tally.functions += 1
            number = 0
            for stage in STAGES:
                if not probe.asked[stage]:
                    continue
                refusals = Refusals(family, probe, stage, build, told)
                asked = _Asked(program, told, probe, stage, refusals, tally, changed)
                for expression in probe.asked[stage]:
                    wrong = asked.wrong(expression, told.values[probe.tag, number])
                    number += 1
                    if wrong:
                        failures.append(Failure(family, probe, expression, stage, *wrong))
    return tally, failures


class _Asked:
    """One probe point: expressions go in, what is wrong comes out."""

    def __init__(
        self,
        program: fetchc.Program,
        told: Told,
        probe: Probe,
        stage: str,
        refusals: Refusals,
        tally: Tally,
        changed: Change,
    ) -> None:
        entry, mark = told.addresses[probe.tag]
        name = f"{'give' if stage == 'leave' else 'probe'}_{probe.tag}"
        at = f"+{mark - entry:#x}" if stage == "inner" else None
        self._point = program.probe(name, at=at, returns=stage == "leave", kernel=KERNEL)
        stop = told.stops[probe.tag, stage]
        memory = Memory(told.regions | dict([stop.stack]))
        bias = entry - program.probe(f"probe_{probe.tag}", kernel=KERNEL).offset
        self._machine = Machine(stop.registers, memory, bias, returning=stage == "leave")
        self._refusals = refusals
        self._tally = tally
        self._changed = changed

    def wrong(
        self, expression: Expression, told: list[int | bytes]
    ) -> tuple[str, object, object] | None:
        """None where the value is right or the refusal is."""
        self._tally.expressions += 1
        try:
            argument = self._point.compile(expression.text)
            if expression.members:
                return self._members(expression, argument, told)
            if expression.kind == "refused":
                return argument.fetcharg, "accepted", "not a value that a fetch holds"
            plain, decode = argument.fetcharg, argument.decode
        except fetchc.CompileError as refusal:
            first = refusal.diagnostics[0]
            said = self._refusals.right(expression, first, told)
            self._tally.refused[first.code] += said is None
            return None if said is None else (REFUSED, said, told)
        text, decode = self._changed(plain, decode)
        tree = None
        if text == plain and self._tally.expressions % _TREES == 0:
            tree = {part.body: part.fetch for part in argument.whole.parts}.get(text)
        values = fetched(text, decode, self._machine, tree)
        self._tally.compared += 1
        if decode.kind != expression.kind or (decode.count is not None) != expression.counted:
            return text, decode, f"kind {expression.kind}, {told}"
        return None if values == told else (f"{text} {decode}", values, told)

    def _members(
        self, expression: Expression, argument: fetchc.Argument, told: list[int | bytes]
    ) -> tuple[str, object, object] | None:
        parts = {part.suffix: part for part in argument.whole.parts}
        for name, value in zip(expression.members, told, strict=True):
            if name not in parts:
                if self._refusals.allowed(expression) - LIMITS:
                    continue
                return argument.text, f"no part {name}", value
            part = parts[name]
            text, decode = self._changed(part.body, part.decode)
            got = fetched(text, decode, self._machine, part.fetch if text == part.body else None)
            if got != [value]:
                return f"{name}={text} {decode}", got, value
        self._tally.compared += 1
        return None
