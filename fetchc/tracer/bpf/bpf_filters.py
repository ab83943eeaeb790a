"""A filter as what an eBPF program computes at a hit, of the fields that the hit's record has.

A text is compared byte by byte, eight at a time, with its NUL: no loop, and no buffer. What is
behind the end of a shorter one may not be there; such a hit is recorded, and the reader says.
"""

from __future__ import annotations

from fetchc.ir.arithmetic import Number
from fetchc.ir.fetch import Calculated, Contents, Decode, Deref, OfHit, Part, Scalar, Text
from fetchc.ir.steps import COMM_BYTES, NANOSECONDS, TASK_NAME_WORDS
from fetchc.ir.term_operators import Numeral
from fetchc.record import Record, assert_never
from fetchc.tracer.bpf.computed_terms import (
    compared,
    floating,
    guards_fail,
    numeral,
    place_in_context,
)
from fetchc.tracer.bpf.counting import is_plain
from fetchc.tracer.filter_conditions import All, AnyOf, Condition, accepts, comparison
from fetchc.tracer.value_shapes import Leaf, StringShape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from fetchc.ir.fetch import Fetch, Term
    from fetchc.tracer.bpf.computed_terms import Noted
    from fetchc.tracer.events import Plan
    from fetchc.tracer.filter_conditions import Filter

__all__ = ["Passing", "passing"]

_WORD_BYTES = 8
_LONGEST = 64  # bytes of a text; each eight of them are a call
_MASK = (1 << 64) - 1
_SPECIAL = frozenset("*?[]\\")  # in a glob
_AS_STORED = ("integer", "duration", "enum", "pointer", "char", "bool", "text")


class Passing(Record):
    """``condition`` is not 0 where a filter lets a hit pass; ``whole``: and nowhere else."""

    condition: Term
    whole: bool


def passing(
    plan: Plan,
    fields: tuple[tuple[str, Fetch], ...],
    filter: Filter,
    timed: bool = False,
    noted: tuple[Noted, ...] = (),
) -> Passing | None:
    """What the kernel can test of a filter; None: nothing.

    The expressions of ``filter`` are the labels of their values. ``timed``: the program has the
    time since the entry, and what was ``noted`` there.
    """
    known = {one.label: one.numeral for one in noted}
    known |= {label: Numeral(OfHit(name), Number(32, False)) for label, name in _OF_TASK.items()}
    return _passing(plan, dict(fields), filter, timed, known)


def _passing(
    plan: Plan,
    fetches: Mapping[str, Fetch],
    filter: Filter,
    timed: bool,
    known: Mapping[str, Numeral],
) -> Passing | None:
    match filter:
        case All(parts=parts):
            found = [_passing(plan, fetches, part, timed, known) for part in parts]
            taken = [one for one in found if one is not None]
            if not taken:
                return None
            whole = len(taken) == len(parts) and all(one.whole for one in taken)
            return Passing(_every([one.condition for one in taken]), whole)
        case AnyOf(parts=parts):
            either = [_passing(plan, fetches, part, timed, known) for part in parts]
            none: Term = 1
            for one in either:
                if one is None:
                    return None
                none = Calculated("and", none, _is(one.condition, 0))
            return Passing(_is(none, 0), all(one is not None and one.whole for one in either))
        case Condition(expression="$function"):
            return Passing(int(accepts(filter)(plan.function)), True)
        case Condition(expression="$comm"):
            return _of_name(filter)
        case Condition(expression="$latency"):
            return _of_time(filter) if timed else None
        case Condition():
            return _of_value(plan, fetches, filter, known)
        case _:
            assert_never(filter)


def _of_value(
    plan: Plan,
    fetches: Mapping[str, Fetch],
    condition: Condition,
    known: Mapping[str, Numeral],
) -> Passing | None:
    shapes = {one.label: one.shape for one in plan.values}
    shape = shapes.get(condition.expression)
    if isinstance(shape, StringShape):
        return _of_length(shape, fetches, condition)
    number = known.get(condition.expression)
    if shape is not None:
        number = numeral(shape, fetches) or floating(shape, fetches)
    constant = condition.constant
    fits = condition.operator != "&" or (isinstance(constant, int) and constant <= _MASK)
    if number is not None and isinstance(constant, int | float) and fits:
        return Passing(compared(number, condition.operator, constant), True)
    in_field = _compared(plan, fetches, condition)
    if in_field is None:
        return None
    # The reader compares nothing but the field, and refuses no more than what failed.
    whole = False
    if isinstance(shape, Leaf):
        whole = shape.decode.kind in _AS_STORED and guards_fail(shape.guards)
    return Passing(in_field, whole)


_OF_TASK = {"$pid": "process", "$tid": "thread", "$cpu": "cpu"}


def _of_name(condition: Condition) -> Passing | None:
    # The task's name is two words, with zeros behind its end.
    constant = condition.constant
    if not isinstance(constant, str) or not constant.isascii() or "\0" in constant:
        return None
    begins = condition.operator == "~" and constant[-1:] == "*"
    wanted = constant[:-1] if begins else constant + "\0"
    if condition.operator == "~" and (not begins or _SPECIAL & set(wanted)):
        return None
    if len(wanted) > COMM_BYTES:  # no name is so long
        return Passing(int(condition.operator == "!="), True)
    same: list[Term] = []
    for word, start in zip(TASK_NAME_WORDS, range(0, len(wanted), _WORD_BYTES), strict=False):
        bytes = wanted[start : start + _WORD_BYTES].encode("ascii")
        mask = (1 << 8 * len(bytes)) - 1
        name = Calculated("and", OfHit(word), mask)
        same.append(_is(name, int.from_bytes(bytes, "little")))
    every = _every(same)
    return Passing(_is(every, 0) if condition.operator == "!=" else every, True)


def _of_time(condition: Condition) -> Passing | None:
    # Microseconds, rounded to nanoseconds.
    constant = condition.constant
    if isinstance(constant, str) or constant is None or condition.operator == "&":
        return None
    time = round(constant * NANOSECONDS)
    if time / NANOSECONDS != constant:
        return None
    elapsed = Numeral(OfHit("elapsed"), Number(64, False))
    return Passing(compared(elapsed, condition.operator, time), True)


def _of_length(
    shape: StringShape, fetches: Mapping[str, Fetch], condition: Condition
) -> Passing | None:
    # A text of so many bytes: they are read where it has as many as the constant, or begins so.
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
    begins = condition.operator == "~" and constant[-1:] == "*"
    wanted = constant.removesuffix("*") if begins else constant
    if condition.operator == "~" and (not begins or not wanted or _SPECIAL & set(wanted)):
        return None
    if condition.operator not in ("==", "!=", "~") or not isinstance(value, Deref):
        return None
    if length.store not in (Scalar("s", 64), Scalar("u", 64)) or not is_plain(shape.length, length):
        return None
    number: Term = length.value
    if isinstance(length.value, Deref):
        number = Part(length.value.base, length.value.offset, _WORD_BYTES)
    as_long = _is(number, len(wanted))
    if begins:
        as_long = _is(Calculated("lt", number, len(wanted)), 0)
    words = _words(Part(value.base, value.offset, 0, as_long), wanted.encode("ascii"))
    every = _every([as_long, *words])
    passes = _is(every, 0) if condition.operator == "!=" else every
    # A length that no object can have may pass as one that is great enough.
    whole = not begins and guards_fail((*shape.guards, *shape.length.guards))
    return Passing(passes, whole)


def _compared(plan: Plan, fetches: Mapping[str, Fetch], condition: Condition) -> Term | None:
    field = comparison(plan, condition)
    fetch = None if field is None else fetches.get(field.field)
    if field is None or fetch is None:
        return None
    value, store = fetch.value, fetch.store
    if isinstance(field.constant, str):
        if not isinstance(store, Text):
            return None
        if isinstance(value, Deref):
            start = Part(value.base, value.offset, 0, user=store.user or value.user)
        elif (place := place_in_context(value)) is not None:
            start = Part(place, 0, 0)
        else:
            return None
        return _text(start, field.operator, field.constant)
    if not isinstance(store, Scalar):
        return None
    as_stored = Leaf(field.field, Decode("integer", store.bits, store.kind == "s"))
    number = numeral(as_stored, fetches)
    return None if number is None else compared(number, field.operator, field.constant)


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
