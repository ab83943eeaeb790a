"""A program of random layouts through fetchc and the machine: what is not as the program told.

The machine runs the text that fetchc prints, on the registers and the memory that the program
showed; ``decode`` makes a value of it, and that is compared with the compiler's own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import fetchc
from fetchc.conformance.c.program import Probe, Stop, Told, c_source, run
from fetchc.conformance.c.types import Array, CType, Family, Pointer, Record, resolved
from fetchc.conformance.c.walks import Expression, Root, walk
from fetchc.conformance.machine import Machine, Memory
from fetchc.conformance.machine import run as run_machine
from fetchc.ir.decode import Decode

__all__ = ["KERNEL", "Change", "Failure", "Tally", "as_it_is", "check", "decoded", "probes_of"]

KERNEL = "6.12"
# The kernel's own limits: right wherever they are said, and counted.
_LIMITS = frozenset(["FC0501", "FC0502"])
Value = int | bytes | None
Change = Callable[[str, Decode], tuple[str, Decode]]


def as_it_is(text: str, decode: Decode) -> tuple[str, Decode]:
    """No change; a test of the test has others."""
    return text, decode


@dataclass
class Tally:
    """How much was compared."""

    types: int = 0
    expressions: int = 0
    compared: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Count another program in."""
        self.types += other.types
        self.expressions += other.expressions
        self.compared += other.compared
        self.refused += other.refused

    def __str__(self) -> str:
        refused = ", ".join(f"{code} {count}" for code, count in sorted(self.refused.items()))
        return (
            f"{self.types} types, {self.expressions} expressions, {self.compared} compared, "
            f"refused: {refused or 'none'}"
        )


@dataclass
class Failure:
    """One expression whose value is wrong, or that is refused without need."""

    family: Family
    probe: Probe
    expression: Expression
    where: str
    fetcharg: str
    got: object
    told: object

    def __str__(self) -> str:
        return (
            f"{self.expression.text}  [{self.probe.signature}, {self.where}]\n"
            f"  fetch-arg: {self.fetcharg}\n  fetched:   {self.got}\n  program:   {self.told}"
        )


def probes_of(random: Random, family: Family, many: int) -> list[Probe]:
    """A probe for each structure of the family, with expressions that walk from what it sees."""
    probes = []
    for root, others in zip(family.roots, family.signatures, strict=True):
        parameters = [("p", Pointer(root)), *((f"v{n}", it) for n, it in enumerate(others))]
        probe = Probe(root, parameters)
        for number in range(many):
            name, made = parameters[0] if random.random() < 0.6 else random.choice(parameters)
            if number % 4:
                probe.entry.append(walk(random, Root(name, made, name != "p"), family.roots))
            else:
                name = random.choice(["", "l_"]) + name
                probe.inner.append(walk(random, Root(name, made), family.roots))
        probes.append(probe)
    return probes


def check(
    families: list[tuple[Family, list[Probe]]],
    compiler: str,
    options: tuple[str, ...],
    folder: Path,
    changed: Change = as_it_is,
) -> tuple[Tally, list[Failure]]:
    """Build, run and compare; ``changed`` lets a test falsify each fetch-arg."""
    binary, told = run(c_source(families), compiler, options, folder)
    program = fetchc.open(str(binary))
    tally, failures = Tally(), []
    optimised = "-O0" not in options
    for family, probes in families:
        for probe in probes:
            tally.types += 1
            for where, expressions in (("entry", probe.entry), ("inner", probe.inner)):
                asked = _Asked(program, told, probe, where, optimised, tally, changed)
                for expression in expressions:
                    wrong = asked.wrong(expression)
                    if wrong:
                        failures.append(Failure(family, probe, expression, where, *wrong))
    return tally, failures


class _Asked:
    """One probe point: expressions go in, what is wrong comes out."""

    def __init__(
        self,
        program: fetchc.Program,
        told: Told,
        probe: Probe,
        where: str,
        optimised: bool,
        tally: Tally,
        changed: Change,
    ) -> None:
        entry, mark = told.addresses[probe.root.tag]
        at = None if where == "entry" else f"+{mark - entry:#x}"
        self._point = program.probe(probe.name, at=at, kernel=KERNEL)
        self._inner = where == "inner" and optimised
        self._values, self._sizes = told.values, told.sizes
        self._first = 0 if where == "entry" else len(probe.entry)
        self._numbers = {id(e): n for n, e in enumerate((*probe.entry, *probe.inner))}
        self._tag = probe.root.tag
        stop: Stop = told.stops[self._tag, where]
        memory = Memory(told.regions | dict([stop.stack]))
        bias = (entry if at is None else mark) - self._point.offset
        self._machine = Machine(stop.registers, memory, bias)
        self._tally = tally
        self._changed = changed
        self._unnamed = any(_unnamed(made) for _, made in probe.parameters)

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
            text, decode = self._changed(argument.fetcharg, argument.decode)
        except fetchc.CompileError as refusal:
            return self._refused(expression, refusal, told)
        shown = run_machine(text, self._machine)
        values = [shown] if shown is None else decoded(shown, decode)
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
                if self._allowed(expression) - _LIMITS:
                    continue
                return argument.text, f"no part {name}", value
            part = parts[name]
            text, decode = self._changed(part.body, part.decode)
            shown = run_machine(text, self._machine)
            got = None if shown is None else decoded(shown, decode)
            if got != [value]:
                return f"{name}={text} {decode}", got, value
        self._tally.compared += 1
        return None

    def _refused(
        self, expression: Expression, refusal: fetchc.CompileError, told: object
    ) -> tuple[str, object, object] | None:
        first = refusal.diagnostics[0]
        # clang 14 says of some structures too little to tell how they lie on the stack.
        unsaid = first.code == "FC0401" and "unsaid" in first.message
        if first.code not in self._allowed(expression) and not unsaid:
            return "none", f"{first.code}: {first.message}", told
        self._tally.refused[first.code] += 1
        return None

    def _allowed(self, expression: Expression) -> frozenset[str]:
        allowed = expression.refusals | _LIMITS
        if self._inner:
            return allowed | {"FC0401", "FC0402", "FC0404", "FC0405", "FC0406"}
        size = self._sizes.get((self._tag, expression.root.name), 0)
        # Source: System V ABI, x86-64, 3.2.3: what is longer than two words is in memory.
        if expression.root.held and self._unnamed:
            allowed |= {"FC0401", "FC0407"}
        return allowed | expression.held if size <= 16 else allowed


def _unnamed(made: CType) -> bool:
    """Whether an unnamed bit field may be in it: debug information has none, gcc counts them."""
    inner = resolved(made)
    if not isinstance(inner, Record):
        return isinstance(inner, Array) and _unnamed(inner.element)
    return any((it.width is not None and not it.name) or _unnamed(it.type) for it in inner.members)


def decoded(shown: str, decode: Decode) -> list[Value]:
    """The values of what the event shows, as ``decode`` says."""
    if decode.kind == "text":
        if decode.count is None:
            found = [shown]
        else:
            found = re.findall(r'"[^"]*"|\(fault\)', shown)
        return [
            None if it == "(fault)" else it[1:-1].encode("latin-1")[: decode.limit] for it in found
        ]
    words = shown.strip("{}").split(",")
    assert decode.bits is not None
    return [_number(int(word, 0), decode.kind, decode.bits, decode.signed) for word in words]


def _number(value: int, kind: str, bits: int, signed: bool) -> int | bytes:
    value %= 1 << bits
    if kind == "float":
        return value.to_bytes(bits // 8, "little")
    return value - (1 << bits) if signed and value >> (bits - 1) else value
