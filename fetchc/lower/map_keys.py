"""Whether an entry of a map has a key: for the walk that looks a value up.

A key of the map is compared with a constant in one round. A string that a value of the program is
has any length: a round compares eight bytes of it, and the walk stays at the entry meanwhile.
"""

from __future__ import annotations

from fetchc.check.walks import text_parts
from fetchc.ir.arithmetic import TRUTH
from fetchc.ir.fetch import Chosen, Cursor, Deref, Part
from fetchc.ir.term_operators import MASK, both, calculate, converted, negated
from fetchc.lower.element_addresses import numeral
from fetchc.lower.fetches import (
    Memory,
    bit_field_of,
    number,
    pointer,
    smallest_container,
    where,
)
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.check.walks import TextParts
    from fetchc.ir.fetch import Term, Value

__all__ = ["Comparison", "compared"]

_WORD = 8


class Comparison(Record):
    """``equal`` is 1 in the round that has found an entry with the key.

    ``unfinished`` is 1 where the next round compares more of the same entry; None: in no round.
    ``next`` has what the cursors of the comparison are then.
    """

    equal: Term
    unfinished: Term | None = None
    next: tuple[tuple[Cursor, Term], ...] = ()


def compared(
    checker: Checker,
    key: Typed,
    wanted: int | bytes | Typed,
    found: Term,
    places: tuple[Term, ...],
    cursor: Callable[[Term], Cursor],
) -> Comparison:
    """The comparison of ``wanted`` with ``key``, which is read where ``found``, 0 or 1, is 1.

    ``places`` are those of an entry. ``cursor`` adds a cursor that begins with a term.
    """
    of_entry = _Reader(checker, places)
    parts = text_parts(checker, key)
    if parts is not None and isinstance(wanted, bytes):
        start, size = of_entry.text(parts, found)
        same_size = both(found, calculate("eq", size, len(wanted)))
        return Comparison(_has(start, wanted, same_size))
    if parts is not None:
        assert not isinstance(wanted, int | bytes)
        of_program = text_parts(checker, wanted)
        assert of_program is not None
        start, size = map(cursor, _Reader(checker, ()).text(of_program, None))
        return _text(of_entry.text(parts, found), (start, size), cursor(0), found)
    assert not isinstance(wanted, bytes)
    bytes_of_key = checker.size(key.type) or _WORD
    if isinstance(wanted, int):
        content = (wanted & (1 << 8 * bytes_of_key) - 1).to_bytes(bytes_of_key, "little")
        return Comparison(_has(of_entry.address(key, found), content, found))
    low = calculate("and", numeral(checker, wanted, number).term, (1 << 8 * bytes_of_key) - 1)
    same = calculate("eq", of_entry.number(key, found), cursor(low))
    return Comparison(both(found, same))


def _has(start: Term, content: bytes, when: Term) -> Term:
    # Whether these bytes are there.
    passed = 0
    while passed < len(content):
        size = min(_WORD, 1 << (len(content) - passed).bit_length() - 1)
        same = int.from_bytes(content[passed : passed + size], "little")
        when = both(when, calculate("eq", Part(start, passed, size, when), same))
        passed += size
    return when


def _text(
    one: tuple[Term, Term], other: tuple[Term, Term], passed: Cursor, found: Term
) -> Comparison:
    # Two strings, each an address and its bytes; those before `passed` are the same.
    (start, size), (wanted, wanted_size) = one, other
    same = both(found, calculate("eq", size, wanted_size))

    def equal(at: Term, width: int, when: Term) -> Term:
        left, right = (Part(calculate("add", base, at), 0, width, when) for base in (start, wanted))
        return calculate("eq", left, right)

    short = calculate("lt", size, _WORD)
    # The last word ends where the string does.
    last = calculate("sub", size, _WORD)
    word = Chosen(calculate("lt", last, passed), last, passed)
    equal_so_far = both(same, equal(word, _WORD, both(same, negated(short))))
    for width, at in ((4, 0), (2, calculate("and", size, 4)), (1, calculate("and", size, 6))):
        has_some = converted(calculate("and", size, width), TRUTH).term
        when = both(both(same, short), has_some)
        equal_so_far = both(equal_so_far, equal(at, width, when))
    following = calculate("add", passed, _WORD)
    unfinished = both(equal_so_far, calculate("lt", following, size))
    complete = both(equal_so_far, negated(unfinished))
    return Comparison(complete, unfinished, ((passed, Chosen(unfinished, following, 0)),))


class _Reader:
    """Reads where a condition, 0 or 1, is 1; None: always. ``places`` are the first cursors."""

    def __init__(self, checker: Checker, places: tuple[Term, ...]) -> None:
        self._checker = checker
        self._site = checker.site
        self._places = places

    def _word(self, value: Value, when: Term | None) -> Term:
        # What a chain of loads leads to.
        if isinstance(value, Deref):
            return Part(self._word(value.base, when), value.offset, _WORD, when, value.user)
        if isinstance(value, Cursor) and value.number < len(self._places):
            return self._places[value.number]
        return value

    def address(self, node: Typed, when: Term | None) -> Term:
        """Where ``node`` is in memory."""
        at = where(self._site, node)
        assert isinstance(at, Memory)
        return calculate("add", self._word(at.base, when), at.offset & MASK)

    def number(self, node: Typed, when: Term | None) -> Term:
        """The unsigned number ``node``."""
        field = bit_field_of(node)
        at = where(self._site, node if field is None else field.base)
        if not isinstance(at, Memory):
            return numeral(self._checker, node, number).term
        base = self._word(at.base, when)
        if field is None or field.bits is None:
            return Part(base, at.offset, self._checker.size(node.type) or _WORD, when, at.user)
        first, width = field.bits.offset, field.bits.width
        byte, container = smallest_container(first, width, None, node.span)
        word = Part(base, at.offset + byte, container // 8, when, at.user)
        return calculate("and", calculate("rsh", word, first - 8 * byte), (1 << width) - 1)

    def text(self, parts: TextParts, when: Term | None) -> tuple[Term, Term]:
        """Where a string begins, and how many bytes it has: of a null reference all bits are 1."""
        if parts.long is None:
            data, moved = pointer(self._site, parts.data)
            start = calculate("add", self._word(data, when), (moved + parts.lead) & MASK)
            at = where(self._site, parts.length)
            if not (isinstance(at, Memory) and isinstance(at.base, Deref)):
                return start, calculate("mul", self.number(parts.length, when), parts.unit)
            there = converted(self._word(at.base, when), TRUTH).term
            length = self.number(parts.length, there if when is None else both(when, there))
            return start, Chosen(there, calculate("mul", length, parts.unit), MASK)
        flag, long = parts.long
        is_long = converted(self.number(flag, when), TRUTH).term
        short = self.text(parts.replaced(long=None), when)
        longer = self.text(long, both(when, is_long))
        start, size = (Chosen(is_long, *two) for two in zip(longer, short, strict=True))
        return start, size
