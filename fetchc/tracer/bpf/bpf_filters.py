"""A filter as what an eBPF program computes at a hit, of the fields that the hit's record has.

A text is compared byte by byte, eight at a time, with its NUL: no loop, and no buffer. What is
behind the end of a shorter one may not be there; such a hit is recorded, and the reader says.
"""

from __future__ import annotations

from fetchc.ir.fetch import Calculated, Contents, Deref, Part, Scalar, Text
from fetchc.record import Record, assert_never
from fetchc.tracer.bpf.counting import guards_fail, is_plain
from fetchc.tracer.filter_conditions import All, AnyOf, Condition, comparison
from fetchc.tracer.value_shapes import Leaf, StringShape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from fetchc.ir.fetch import Fetch, Term
    from fetchc.tracer.events import Plan
    from fetchc.tracer.filter_conditions import Filter

__all__ = ["Passing", "passing"]

_WORD_BYTES = 8
_LONGEST = 64  # bytes of a text; each eight of them are a call
_MASK = (1 << 64) - 1
_AS_STORED = ("integer", "duration", "enum", "pointer", "char", "bool", "text")


class Passing(Record):
    """``condition`` is not 0 where a filter lets a hit pass; ``whole``: and nowhere else."""

    condition: Term
    whole: bool


def passing(plan: Plan, fields: tuple[tuple[str, Fetch], ...], filter: Filter) -> Passing | None:
    """What the kernel can test of a filter; None: nothing.

    The expressions of ``filter`` are the labels of their values.
    """
    return _passing(plan, dict(fields), filter)


def _passing(plan: Plan, fetches: Mapping[str, Fetch], filter: Filter) -> Passing | None:
    match filter:
        case All(parts=parts):
            found = [_passing(plan, fetches, part) for part in parts]
            taken = [one for one in found if one is not None]
            if not taken:
                return None
            whole = len(taken) == len(parts) and all(one.whole for one in taken)
            return Passing(_every([one.condition for one in taken]), whole)
        case AnyOf(parts=parts):
            either = [_passing(plan, fetches, part) for part in parts]
            none: Term = 1
            for one in either:
                if one is None:
                    return None
                none = Calculated("and", none, _is(one.condition, 0))
            return Passing(_is(none, 0), all(one is not None and one.whole for one in either))
        case Condition():
            shapes = {one.label: one.shape for one in plan.values}
            shape = shapes.get(filter.expression)
            if isinstance(shape, StringShape):
                return _of_length(shape, fetches, filter)
            condition = _compared(plan, fetches, filter)
            if condition is None:
                return None
            # The reader compares nothing but the field, and refuses no more than what failed.
            whole = False
            if isinstance(shape, Leaf):
                whole = shape.decode.kind in _AS_STORED and guards_fail(shape.guards)
            return Passing(condition, whole)
        case _:
            assert_never(filter)


def _of_length(
    shape: StringShape, fetches: Mapping[str, Fetch], condition: Condition
) -> Passing | None:
    # A text of so many bytes: they are read where it has as many as the constant.
    constant, value = condition.constant, fetches[shape.field].value
    if isinstance(value, Contents):
        value = value.start
    if shape.length is None or (shape.kind, shape.offset) != ("text", 0):
        return None
    length = fetches[shape.length.field]
    if (
        not isinstance(constant, str)
        or not constant.isascii()
        or len(constant) > min(_LONGEST, shape.size)
    ):
        return None
    if condition.operator not in ("==", "!=") or not isinstance(value, Deref):
        return None
    if length.store not in (Scalar("s", 64), Scalar("u", 64)) or not is_plain(shape.length, length):
        return None
    number: Term = length.value
    if isinstance(length.value, Deref):
        number = Part(length.value.base, length.value.offset, _WORD_BYTES)
    as_long = _is(number, len(constant))
    words = _words(Part(value.base, value.offset, 0, as_long), constant.encode("ascii"))
    every = _every([as_long, *words])
    passes = _is(every, 0) if condition.operator == "!=" else every
    return Passing(passes, guards_fail((*shape.guards, *shape.length.guards)))


def _compared(plan: Plan, fetches: Mapping[str, Fetch], condition: Condition) -> Term | None:
    compared = comparison(plan, condition)
    fetch = None if compared is None else fetches.get(compared.field)
    if compared is None or fetch is None:
        return None
    value, store = fetch.value, fetch.store
    if isinstance(compared.constant, str):
        if not isinstance(store, Text) or not isinstance(value, Deref):
            return None
        return _text(Part(value.base, value.offset, 0), compared.operator, compared.constant)
    if not isinstance(store, Scalar):
        return None
    number: Term = value
    if isinstance(value, Deref):
        number = Part(value.base, value.offset, store.bits // 8)
    return _number(number, store, compared.operator, compared.constant)


def _number(number: Term, store: Scalar, symbol: str, constant: int) -> Term:
    mask = (1 << store.bits) - 1
    if symbol == "&":
        return _is(_is(Calculated("and", number, constant & mask), 0), 0)
    half = 1 << store.bits - 1 if store.kind == "s" else 0  # then the order is that of no sign
    left = Calculated("and", Calculated("add", number, half), mask)
    right = constant + half
    match symbol:
        case "==":
            return _is(left, right)
        case "!=":
            return _is(_is(left, right), 0)
        case "<":
            return Calculated("lt", left, right)
        case ">=":
            return _is(Calculated("lt", left, right), 0)
        case ">":
            return Calculated("lt", right, left)
        case _:
            return _is(Calculated("lt", right, left), 0)


def _text(start: Part, symbol: str, constant: str) -> Term | None:
    wanted = constant.encode("ascii")
    if symbol == "~":
        if wanted[:1] == b"*":
            return None  # the end of a text, or the middle: the reader finds it
        wanted = wanted[:-1] if wanted[-1:] == b"*" else wanted + b"\0"
    else:
        wanted += b"\0"
    if not 0 < len(wanted) <= _LONGEST:
        return None
    every = _every(_words(start, wanted))
    return _is(every, 0) if symbol == "!=" else every


def _words(start: Part, wanted: bytes) -> list[Term]:
    # Whether the bytes from a place on are the wanted ones.
    same: list[Term] = []
    at = 0
    while at < len(wanted):
        size = min(_WORD_BYTES, 1 << (len(wanted) - at).bit_length() - 1)
        number = int.from_bytes(wanted[at : at + size], "little")
        same.append(_is(start.replaced(offset=start.offset + at, size=size), number))
        at += size
    return same


def _every(conditions: list[Term]) -> Term:
    all: Term = 1
    for one in conditions:
        all = Calculated("and", all, one)
    return all


def _is(left: Term, right: int) -> Term:
    return Calculated("eq", left, right & _MASK)
