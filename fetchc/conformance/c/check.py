"""A program of random types through fetchc and the machine: what is not as the program told.

The machine runs the text that fetchc prints, on the registers and the memory that the program
showed; ``decode`` makes a value of it, and that is compared with the compiler's own.
"""

from __future__ import annotations

from pathlib import Path

import fetchc
from fetchc.conformance.c.expressions import Expression
from fetchc.conformance.c.program import STAGES, Probe, c_source
from fetchc.conformance.c.run import Build, Told, run
from fetchc.conformance.c.types import Array, CType, Family, Struct, resolved
from fetchc.conformance.machine import Machine, Memory
from fetchc.conformance.reading import Change, as_it_is, fetched
from fetchc.conformance.results import LIMITS, Tally
from fetchc.record import Record

__all__ = ["KERNEL", "Failure", "check"]

KERNEL = "6.12"
_AWAY = frozenset(["FC0401", "FC0402", "FC0404", "FC0405", "FC0406"])


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
            for stage in STAGES:
                if not probe.asked[stage]:
                    continue
                asked = _Asked(program, told, probe, stage, build, tally, changed)
                for expression in probe.asked[stage]:
                    wrong = asked.wrong(expression)
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
        build: Build,
        tally: Tally,
        changed: Change,
    ) -> None:
        entry, mark = told.addresses[probe.tag]
        name = f"{'give' if stage == 'leave' else 'probe'}_{probe.tag}"
        at = f"+{mark - entry:#x}" if stage == "inner" else None
        self._point = program.probe(name, at=at, returns=stage == "leave", kernel=KERNEL)
        self._inner = stage == "inner" and "-O0" not in build.options
        self._values, self._sizes = told.values, told.sizes
        self._numbers = {id(each): n for n, each in enumerate(probe.expressions)}
        self._tag = probe.tag
        self._stop = told.stops[self._tag, stage]
        memory = Memory(told.regions | dict([self._stop.stack]))
        bias = entry - program.probe(f"probe_{probe.tag}", kernel=KERNEL).offset
        registers = self._stop.registers
        self._machine = Machine(registers, memory, bias, returning=stage == "leave")
        self._tally = tally
        self._changed = changed
        passed = [probe.result] if stage == "leave" else [it.type for it in probe.parameters]
        held = any(made is not None and isinstance(resolved(made), Struct) for made in passed)
        self._classes = build.plus and held
        self._unnamed = any(made is not None and _unnamed(made) for made in passed)

    def wrong(self, expression: Expression) -> tuple[str, object, object] | None:
        """None where the value is right or the refusal is."""
        self._tally.expressions += 1
        told = self._values[self._tag, self._numbers[id(expression)]]
        try:
            argument = self._point.compile(expression.text)
            if expression.members:
                return self._members(expression, argument, told)
            if expression.kind == "refused":
                return argument.fetcharg, "accepted", "not a value that a fetch holds"
            plain, decode = argument.fetcharg, argument.decode
        except fetchc.CompileError as refusal:
            return self._refused(expression, refusal, told)
        text, decode = self._changed(plain, decode)
        trees = {part.body: part.fetch for part in argument.whole.parts} if text == plain else {}
        values = fetched(text, decode, self._machine, trees.get(text))
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
                if self._allowed(expression) - LIMITS:
                    continue
                return argument.text, f"no part {name}", value
            part = parts[name]
            text, decode = self._changed(part.body, part.decode)
            got = fetched(text, decode, self._machine)
            if got != [value]:
                return f"{name}={text} {decode}", got, value
        self._tally.compared += 1
        return None

    def _refused(
        self, expression: Expression, refusal: fetchc.CompileError, told: list[int | bytes]
    ) -> tuple[str, object, object] | None:
        first = refusal.diagnostics[0]
        # clang 14 says of some structures too little to tell how they lie on the stack.
        unsaid = first.code == "FC0401" and "unsaid" in first.message
        # g++ does not tell which classes are passed by reference.
        if self._classes:
            unsaid |= first.code == "FC0401" and "does not say" in first.message
            unsaid |= first.code == "FC0312" and bool(expression.members)
        if first.code not in self._allowed(expression) and not unsaid:
            return "none", f"{first.code}: {first.message}", told
        if first.code == "FC0402" and expression.kind == "float" and not expression.counted:
            (value,) = told
            assert isinstance(value, bytes)
            if not self._inner and not any(value in each for each in self._stop.vectors):
                return "none", f"{first.code}: {first.message}", f"{value!r} in no vector register"
        self._tally.refused[first.code] += 1
        return None

    def _allowed(self, expression: Expression) -> frozenset[str]:
        allowed = expression.refusals | LIMITS
        if self._inner:
            return allowed | _AWAY
        size = self._sizes.get((self._tag, expression.root.name), 0)
        # Source: System V ABI, x86-64, 3.2.3: what is longer than two words is in memory.
        if expression.root.held and self._unnamed:
            allowed |= {"FC0401", "FC0407"}
        return allowed | expression.held if size <= 16 else allowed


def _unnamed(made: CType) -> bool:
    """Whether an unnamed bit field may be in it: debug information has none, gcc counts them."""
    inner = resolved(made)
    if not isinstance(inner, Struct):
        return isinstance(inner, Array) and _unnamed(inner.element)
    if any(_unnamed(base) for base in inner.bases):
        return True
    return any((it.width is not None and not it.name) or _unnamed(it.type) for it in inner.members)
