"""Values of a call's entry, which its return has: numbers and strings, as words of 64 bits.

A string is up to eight words, with zeros after its end; one with a length has that before
them. The entry of a call with a longer string is recorded, as one whose memory cannot be read.
"""

from __future__ import annotations

from fetchc.ir.arithmetic import Number
from fetchc.ir.fetch import Decode, OfEntry, Part, Scalar
from fetchc.ir.term_operators import Numeral, calculate, fails_where
from fetchc.record import Record
from fetchc.tracer.bpf.computed_terms import (
    decoded,
    floating,
    numeral,
    store_of,
    stored_as,
    stored_string,
)
from fetchc.tracer.value_shapes import Leaf, StringShape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fetchc.ir.fetch import Deref, Fetch, Term
    from fetchc.ir.steps import Program
    from fetchc.tracer.events import Plan
    from fetchc.tracer.value_shapes import Shape

__all__ = ["Entering", "Noted", "StringWords", "entering", "words_of"]

_WORD_BYTES = 8
_LONGEST = 64  # bytes of a string
_MASK = (1 << 64) - 1
_LOW, _HIGH = 0x0101010101010101, 0x8080808080808080  # a bit of each byte of a word
_FIELD, _LENGTH = "entry {}", "length at entry {}"
_WORD, _NUMBER = Scalar("u", 64), Number(64, False)


class StringWords(Record):
    """A string as words; ``length`` is its length in bytes, None where it ends at a NUL."""

    words: tuple[Term, ...]
    length: Term | None = None


class Noted(Record):
    """A value of the entry of a call, as its return has it.

    ``shape`` reads it from ``fields`` of the return: their names, their words, and how the key of a
    table stores each of these. ``value`` is what filters compare and measures count.
    """

    label: str
    shape: Shape
    fields: tuple[tuple[str, tuple[Term, ...], Scalar], ...]
    value: Numeral | StringWords


class Entering(Record):
    """The entries of calls that are timed: for each definition of a plan what identifies them.

    ``noted`` are values that they note for the return.
    """

    calls: tuple[Program, ...]
    noted: tuple[Noted, ...] = ()


def words_of(noted: Sequence[Noted]) -> int:
    """How many words the values take."""
    return sum(len(words) for one in noted for _, words, _ in one.fields)


def entering(
    plan: Plan,
    labels: tuple[str, ...],
    identify: Callable[[tuple[tuple[Term, ...], ...]], tuple[Program, ...]],
) -> Entering | None:
    """How the entries of a plan's calls note the values ``labels``; None: they cannot.

    ``identify`` makes the steps of what each definition notes.
    """
    shapes = {one.label: one.shape for one in plan.values}
    terms: list[tuple[Term, ...]] = []
    at_return: dict[str, Noted] = {}
    for fields in plan.fields:
        fetches = dict(fields)
        of_one: list[Term] = []
        for label in labels:
            found = _noted(label, shapes[label], fetches, len(of_one))
            if found is None or at_return.setdefault(label, found[1]) != found[1]:
                return None
            of_one += found[0]
        terms.append(tuple(of_one))
    calls = identify(tuple(terms))
    return Entering(calls, tuple(at_return.values())) if calls else None


def _noted(
    label: str, shape: Shape, fetches: Mapping[str, Fetch], first: int
) -> tuple[list[Term], Noted] | None:
    # What the entry notes, from the word of that number on, and what the return has.
    field = _FIELD.format(label)
    number = numeral(shape, fetches) or floating(shape, fetches)
    if number is not None:
        at_return = Numeral(OfEntry(first), number.number)
        leaf = Leaf(field, stored_as(number, decoded(shape)))
        fields = (field, (at_return.term,), store_of(number))
        return [number.term], Noted(label, leaf, (fields,), at_return)
    string = stored_string(shape, fetches)
    if string is None or (string.limit or 0) > _LONGEST:
        return None
    if string.length is None:
        terms = _to_nul(string.start, string.limit)
        words = tuple([OfEntry(first + at) for at in range(len(terms))])
        text = StringShape(field, string.limit or _LONGEST, limit=string.limit)
        return terms, Noted(label, text, ((field, words, _WORD),), StringWords(words))
    terms = _of_length(string.start, string.length.term)
    words = tuple([OfEntry(first + 1 + at) for at in range(len(terms))])
    length = Leaf(_LENGTH.format(label), Decode("integer", 64, string.length.number.signed))
    listed = (length.field, (OfEntry(first),), store_of(string.length)), (field, words, _WORD)
    text = StringShape(field, _LONGEST, length=length)
    value = StringWords(words, OfEntry(first))
    return [string.length.term, *terms], Noted(label, text, listed, value)


def _to_nul(start: Deref, limit: int | None = None) -> list[Term]:
    # A word is read where none before it has a NUL.
    words: list[Term] = []
    goes_on: Term = 1
    most = limit or _LONGEST
    for at in range(0, most, _WORD_BYTES):
        word = _word(start, at, goes_on, min(_WORD_BYTES, most - at))
        # The highest bit of the bytes that are 0; that of the first one is exact.
        zeros = calculate(
            "and",
            calculate("and", calculate("sub", word, _LOW), calculate("xor", word, _MASK)),
            _HIGH,
        )
        first = calculate("and", zeros, calculate("sub", 0, zeros))
        words.append(calculate("and", word, calculate("sub", first, 1)))
        goes_on = calculate("and", goes_on, calculate("eq", zeros, 0))
    if limit is None:
        words[-1] = fails_where(goes_on, Numeral(words[-1], _NUMBER), None).term
    return words


def _of_length(start: Deref, length: Term) -> list[Term]:
    words: list[Term] = []
    for at in range(0, _LONGEST, _WORD_BYTES):
        rest = calculate("sub", length, at)
        word = _word(start, at, calculate("lt", at, length))
        # Of the last word the bytes after the end are left out.
        bits = calculate(
            "mul",
            calculate("lt", rest, _WORD_BYTES),
            calculate("sub", 64, calculate("lsh", rest, 3)),
        )
        words.append(calculate("and", word, calculate("rsh", _MASK, bits)))
    longer = calculate("lt", _LONGEST, length)
    words[-1] = fails_where(longer, Numeral(words[-1], _NUMBER), None).term
    return words


def _word(start: Deref, at: int, when: Term, size: int = _WORD_BYTES) -> Part:
    return Part(start.base, start.offset + at, size, when, start.user)
