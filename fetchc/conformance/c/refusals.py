"""Which refusals are right for an expression: what no fetch-arg reaches, and what nobody knows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fetchc.conformance.c.expressions import Expression
from fetchc.conformance.c.family import Family
from fetchc.conformance.c.program import Probe
from fetchc.conformance.c.run import Build, Told
from fetchc.conformance.c.types import Array, CType, Member, Number, Struct, resolved
from fetchc.conformance.results import LIMITS
from fetchc.diag.diagnostic import Diagnostic

__all__ = ["Refusals"]

_AWAY = frozenset(["FC0401", "FC0402", "FC0404", "FC0405", "FC0406"])


class Refusals:
    """What may be refused at one stage of a probe."""

    def __init__(self, family: Family, probe: Probe, stage: str, build: Build, told: Told) -> None:
        self._tag = probe.tag
        self._sizes = told.sizes
        self._vectors = told.stops[probe.tag, stage].vectors
        # Optimised code holds a variable where it likes, and not always.
        self._away = stage == "inner" and "-O0" not in build.options
        passed = [probe.result] if stage == "leave" else [it.type for it in probe.parameters]
        types = [resolved(it) for it in passed if it is not None]
        self._unnamed = any(_unnamed(it) for it in types)
        self._full = {it.name for it in _bit_fields(family) if _is_full(it)}

    def right(
        self, expression: Expression, first: Diagnostic, told: list[int | bytes]
    ) -> str | None:
        """None where the refusal is right, else what is wrong with it."""
        said = f"{first.code}: {first.message}"
        if first.code not in self.allowed(expression) and not self._unsaid(first):
            return said
        if first.code == "FC0402" and expression.kind == "float" and not expression.counted:
            (value,) = told
            assert isinstance(value, bytes)
            if not self._away and not any(value in each for each in self._vectors):
                return f"{said}; {value!r} is in no vector register"
        return None

    def allowed(self, expression: Expression) -> frozenset[str]:
        """The codes that are right by what the expression asks."""
        allowed = expression.refusals | LIMITS
        if self._away:
            return allowed | _AWAY
        size = self._sizes.get((self._tag, expression.root.name), 0)
        # gcc counts unnamed bit fields when it classifies; debug information has none.
        if expression.root.held and self._unnamed:
            allowed |= {"FC0401", "FC0407"}
        # Source: System V ABI, x86-64, 3.2.3: what is longer than two words is in memory.
        return allowed | expression.held if size <= 16 else allowed

    def _unsaid(self, first: Diagnostic) -> bool:
        # What a compiler leaves out of its debug information.
        match first.code:
            case "FC0401" if "unsaid" in first.message:
                return True  # clang 14: how some structures lie on the stack
            case "FC0904":  # clang 14: where packed bit fields begin that are as wide as a type
                return bool(self._full & set(re.findall(r"`(\w+)`", first.message)))
            case _:
                return False


def _unnamed(made: CType) -> bool:
    inner = resolved(made)
    if not isinstance(inner, Struct):
        return isinstance(inner, Array) and _unnamed(inner.element)
    if any(_unnamed(base) for base in inner.bases):
        return True
    return any((it.width is not None and not it.name) or _unnamed(it.type) for it in inner.members)


def _bit_fields(family: Family) -> Iterator[Member]:
    waiting = [it for it in family.declared if isinstance(it, Struct)]
    while waiting:
        for member in waiting.pop().members:
            inner = resolved(member.type)
            if member.width is not None:
                yield member
            elif isinstance(inner, Struct) and not inner.tag:
                waiting.append(inner)


def _is_full(member: Member) -> bool:
    inner = resolved(member.type)
    return isinstance(inner, Number) and member.width == 8 * inner.size
