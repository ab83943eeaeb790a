"""A filter as what an eBPF program computes at a hit, of the fields that the hit's record has.

A string is compared byte by byte, eight at a time, with its NUL: no loop, and no buffer. What is
after the end of a shorter one may not be there; such a hit is recorded, and the reader says.
"""

from __future__ import annotations

from fetchc.ir.arithmetic import TRUTH, Number
from fetchc.ir.fetch import Calculated, Decode, Deref, OfHit, Part, Scalar, Text
from fetchc.ir.steps import NANOSECONDS, TASK_NAME_WORDS
from fetchc.ir.term_operators import Numeral, fails_where
from fetchc.record import Record, assert_never
from fetchc.tracer.bpf.computed_terms import (
    compared,
    floating,
    guards_fail,
    numeral,
    place_in_context,
    stored_string,
)
from fetchc.tracer.bpf.noted_values import StringWords
from fetchc.tracer.filter_conditions import All, AnyOf, Condition, accepts, comparison
from fetchc.tracer.guards import HIGHEST
from fetchc.tracer.value_shapes import Leaf, SizedStringShape, StringShape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from fetchc.ir.fetch import Fetch, Term
    from fetchc.tracer.bpf.computed_terms import StoredString
    from fetchc.tracer.bpf.noted_values import Noted
    from fetchc.tracer.events import Plan
    from fetchc.tracer.filter_conditions import Filter

__all__ = ["Passing", "passing"]

_WORD_BYTES = 8
_LONGEST = 64  # bytes of a string; each eight of them are a call
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
    known: dict[str, Numeral | StringWords] = {
        label: Numeral(OfHit(name), Number(32, False)) for label, name in _OF_TASK.items()
    }
    known["$comm"] = StringWords(tuple([OfHit(name) for name in TASK_NAME_WORDS]))
    known |= {one.label: one.value for one in noted}
    return _passing(plan, dict(fields), filter, timed, known)


def _passing(
    plan: Plan,
    fetches: Mapping[str, Fetch],
    filter: Filter,
    timed: bool,
    known: Mapping[str, Numeral | StringWords],
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
    known: Mapping[str, Numeral | StringWords],
) -> Passing | None:
    shapes = {one.label: one.shape for one in plan.values}
    shape = shapes.get(condition.expression)
    if isinstance(shape, StringShape | SizedStringShape):
        string = stored_string(shape, fetches)
        if string is not None and string.length is not None:
            size = shape.size if isinstance(shape, StringShape) else _LONGEST
            return _of_length(string, string.length, min(size, _LONGEST), condition)
        if string is not None and string.limit is not None:
            return _of_array(string, string.limit, condition)
    number = known.get(condition.expression)
    if shape is None and isinstance(number, StringWords):
        return _of_words(number, condition)
    if shape is not None:
        number = numeral(shape, fetches) or floating(shape, fetches)
    constant = condition.constant
    fits = condition.operator != "&" or (isinstance(constant, int) and constant <= _MASK)
    if isinstance(number, Numeral) and isinstance(constant, int | float) and fits:
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


def _wanted(condition: Condition) -> tuple[str, bool] | None:
    """The text that a string is compared with, and whether it only begins so; None: others."""
    constant = condition.constant
    if not isinstance(constant, str) or not constant.isascii():
        return None
    if condition.operator in ("==", "!="):
        return constant, False
    wanted = constant.removesuffix("*")
    if condition.operator != "~" or wanted == constant or _SPECIAL & set(wanted):
        return None
    return wanted, True


def _of_words(string: StringWords, condition: Condition) -> Passing | None:
    # After the end of the string are zeros.
    found = _wanted(condition)
    if found is None or "\0" in found[0]:
        return None
    wanted, begins = found
    same: list[Term] = []
    room = _WORD_BYTES * len(string.words)
    if len(wanted) > room:  # no such string is so long
        same, wanted = [_is(Calculated("and", string.words[0], 0), 1)], ""
    elif string.length is not None and not begins:
        same.append(_is(string.length, len(wanted)))
    elif not begins:
        wanted = (wanted + "\0")[:room]
    for word, start in zip(string.words, range(0, len(wanted), _WORD_BYTES), strict=False):
        bytes = wanted[start : start + _WORD_BYTES].encode("ascii")
        part = Calculated("and", word, (1 << 8 * len(bytes)) - 1)
        same.append(_is(part, int.from_bytes(bytes, "little")))
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
    string: StoredString, length: Numeral, size: int, condition: Condition
) -> Passing | None:
    # A string of so many bytes: they are read where it has as many as the constant, or begins so.
    found = _wanted(condition)
    if found is None or found == ("", True) or len(found[0]) + found[1] > size:
        return None
    wanted, begins = found
    as_long = _is(length.term, len(wanted))
    if begins:
        as_long = _is(Calculated("lt", length.term, len(wanted)), 0)
    start = Part(string.start.base, string.start.offset, 0, as_long, string.start.user)
    every = _every([as_long, *_words(start, wanted.encode("ascii"))])
    passes = _is(every, 0) if condition.operator == "!=" else every
    if condition.operator != "==":  # a length that no object can have
        impossible = _is(Calculated("lt", length.term, HIGHEST), 0)
        passes = fails_where(impossible, Numeral(passes, TRUTH), None).term
    return Passing(passes, True)


def _of_array(string: StoredString, limit: int, condition: Condition) -> Passing | None:
    # A string up to its NUL, which an array that is full does not have.
    constant = condition.constant
    if not isinstance(constant, str) or not constant.isascii() or "\0" in constant:
        return None
    if condition.operator == "~" and _SPECIAL & set(constant.removesuffix("*")):
        return None
    if len(constant.removesuffix("*" if condition.operator == "~" else "")) > limit:
        return None
    start = Part(string.start.base, string.start.offset, 0, user=string.start.user)
    found = _text(start, condition.operator, constant, limit)
    return None if found is None else Passing(found, True)


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


def _text(start: Part, symbol: str, constant: str, limit: int | None = None) -> Term | None:
    wanted = constant.encode("ascii")
    if symbol == "~" and wanted[:1] == b"*":
        return None  # the end of a string, or the middle: the reader finds it
    if symbol == "~" and wanted[-1:] == b"*":
        wanted = wanted[:-1]
    else:
        wanted = (wanted + b"\0")[:limit]
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
