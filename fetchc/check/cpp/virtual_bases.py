"""Members of virtual bases: how far such a base is from the object, the object's table says.

A fetch-arg adds constants alone. So a reader is given the distance, and the member at each of the
distances that the program's tables have; which of them it is, the record tells. A distance that no
table of the file has is a fault. Source: Itanium C++ ABI, 2.5.2 (vbase offsets) and 2.5.3.
"""

from __future__ import annotations

from fetchc.check import members
from fetchc.check.typed import Address, Convert, Either, Follow, Part, Reckoned, Shift, Term
from fetchc.program.types import PointerType, StructType, UnknownType
from fetchc.quantities import ByteOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Literal

    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.program.protocol import Program
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = ["each_of", "of_virtual_base", "pointer_to_virtual_base"]

_TABLES = ("_ZTV", "_ZTC")  # vtables, and those of objects under construction
_MOST_TABLES = 2000
_TABLE_WORDS = 128  # looked at from a table's symbol on
_MOST = 6  # distances; each is a value to fetch
_FARTHEST = 1 << 16  # bytes
_DEEPEST_VIRTUAL = 3  # virtual bases of virtual bases, of each of which the distances multiply
_DEEPEST = 16  # classes below each other; only a cyclic, hostile type has more


def of_virtual_base(
    checker: Checker,
    holder: Typed,
    name: str,
    span: Span,
    named: str = "",
    deepest: int = _DEEPEST_VIRTUAL,
) -> Typed | None:
    """The member ``name`` of a virtual base of the object ``holder``; None where none has it.

    ``named`` is the class to take it of, where it is written.
    """
    for inner, base in _virtual_bases(checker, holder):
        if named and base.name != named and not base.name.endswith(f"::{named}"):
            continue
        if base.target is None or base.slot is None:
            continue
        path = members.find(checker, base.target, name, span)
        if path is None:
            continue
        address = _address(checker, inner)
        distance = _distance(checker, address, base.slot, span)
        known = _distances(checker, inner, base)
        found = []
        for one in known:
            moved = Shift(address, ByteOffset(one), checker.pointer_to(base.target), span)
            whole = Follow(moved, base.target, span)
            found.append((one, members.through(checker, whole, path, span)))
        return _picked(checker, distance, found, span) if found else None
    return _further(checker, holder, name, span, named, deepest) if deepest else None


def _further(
    checker: Checker, holder: Typed, name: str, span: Span, named: str, deepest: int
) -> Typed | None:
    # A member of a virtual base of a virtual base.
    for inner, base in _virtual_bases(checker, holder):
        if base.target is None or base.slot is None:
            continue
        pointer = checker.pointer_to(base.target)
        place = (base.name, 0)
        step = pointer_to_virtual_base(
            checker, pointer, _address(checker, inner), inner.type, place, span, 0
        )

        def member(one: Typed, target: TypeId = base.target) -> Typed | None:
            whole = Follow(one, target, span)
            return of_virtual_base(checker, whole, name, span, named, deepest - 1)

        if step is not None and member(step.at_none) is not None:
            return each_of(checker, step, lambda one: member(one) or one)
    return None


def pointer_to_virtual_base(
    checker: Checker,
    wanted: TypeId,
    pointer: Typed,
    source: TypeId,
    place: tuple[str, int],
    span: Span,
    deepest: int = _DEEPEST_VIRTUAL,
) -> Either | None:
    """``pointer``, which leads to a ``source``, as ``wanted``: moved to ``place`` in its object.

    That is the name of a virtual base and bytes from its start. None where the debug information
    does not say which word of the object's table has the distance.
    """
    holder = Follow(pointer, source, span)
    known = [
        (inner, base, base.slot, base.target)
        for inner, base in _virtual_bases(checker, holder)
        if base.slot is not None and base.target is not None
    ]
    for inner, base, slot, _ in known:
        if base.name == place[0]:
            address = _address(checker, inner)
            distance = _distance(checker, address, slot, span)
            found: list[tuple[int, Typed]] = [
                (one, Shift(address, ByteOffset(one + place[1]), wanted, span))
                for one in _distances(checker, inner, base)
            ]
            return _picked(checker, distance, found, span)
    for _, base, _, target in known if deepest else ():
        # A virtual base of a virtual base.
        between = checker.pointer_to(target)
        step = pointer_to_virtual_base(checker, between, pointer, source, (base.name, 0), span, 0)
        if step is None:
            continue

        def move(one: Typed, target: TypeId = target) -> Typed:
            moved = pointer_to_virtual_base(checker, wanted, one, target, place, span, deepest - 1)
            return one if moved is None else moved

        made = each_of(checker, step, move)
        if made.type == wanted:
            return made
    return None


def each_of(checker: Checker, node: Either, make: Callable[[Typed], Typed]) -> Either:
    """``node`` with what ``make`` makes of each of the objects that it can be.

    What ``make`` takes for granted of one of them has to hold where it is that one alone.
    """
    made, given = [], []
    for one, before in zip((node.at_none, node.other), node.given, strict=True):
        mark = len(checker.assertions)
        made.append(each_of(checker, one, make) if isinstance(one, Either) else make(one))
        given.append((*before, *checker.assertions[mark:]))
        del checker.assertions[mark:]
    (first, other), span = made, made[0].span
    together = (given[0], given[1])
    return Either(node.number, first, other, first.type, span, node.side_by_side, together)


def _virtual_bases(checker: Checker, holder: Typed) -> Iterator[tuple[Typed, UnknownType]]:
    # With the part of the object that has them: its first word leads to the table.
    level = [holder]
    for _ in range(_DEEPEST):
        below: list[Typed] = []
        for inner in level:
            made = checker.resolved(inner.type)
            for step in made.members if isinstance(made, StructType) else ():
                kind = checker.resolved(step.type)
                if not step.embedded or not step.name or isinstance(kind, PointerType):
                    continue
                if isinstance(kind, UnknownType):
                    yield inner, kind
                else:
                    below.append(Part(inner, step.offset, None, step.type, inner.span))
        level = below


def _address(checker: Checker, inner: Typed) -> Typed:
    # As `(char *)p + N` has it, where the object is what a pointer leads to.
    offset = 0
    while isinstance(inner, Part):
        offset += inner.offset
        inner = inner.base
    pointer = checker.pointer_to(inner.type)
    start = inner.base if isinstance(inner, Follow) else Address(inner, pointer, inner.span)
    return Shift(start, ByteOffset(offset), pointer, inner.span) if offset else start


def _distance(checker: Checker, address: Typed, slot: int, span: Span) -> Typed:
    word = checker.word(signed=True)
    words = checker.pointer_to(word)
    table = Follow(Convert(address, checker.pointer_to(words), span), words, span)
    entry = Shift(table, ByteOffset(slot * checker.program.word_bytes), words, span)
    return Follow(entry, word, span)


def _picked(
    checker: Checker, distance: Typed, found: list[tuple[int, Typed]], span: Span
) -> Either:
    (value, node), *further = found
    terms = [Term(distance, None, 1, 1)]
    if not further:
        terms.append(Term(distance, None, value, 0))  # any other distance is a fault
    number = Reckoned(tuple(terms), -value, False, checker.word(signed=True), span)
    other = _picked(checker, distance, further, span) if further else node
    return Either(number, node, other, node.type, span)


def _distances(checker: Checker, inner: Typed, base: UnknownType) -> list[int]:
    """How far the base can be, of an object of the class itself and of derived ones."""
    made = checker.resolved(inner.type)
    assert isinstance(made, StructType)
    fixed = [one for one in made.members if not isinstance(checker.resolved(one.type), UnknownType)]
    word = checker.program.word_bytes
    least = max([word, *[one.offset + (checker.size(one.type) or 0) for one in fixed]])
    assert base.slot is not None
    nearest = -(-least // word) * word
    known = _in_tables(checker.program, base.slot, least)
    return list(dict.fromkeys([nearest, *sorted(known)]))[:_MOST]


def _in_tables(program: Program, slot: int, least: int) -> set[int]:
    # In a table: distances of virtual bases, that to the whole object, its type, then functions.
    word = program.word_bytes
    order: Literal["little", "big"] = "little" if program.little_endian else "big"
    names = [name for prefix in _TABLES for name in program.symbols_beginning(prefix)]
    found = set()
    for name in names[:_MOST_TABLES]:
        for address in program.symbol_addresses(name):
            data = program.code(address, _TABLE_WORDS * word)
            words = [
                int.from_bytes(data[at : at + word], order, signed=True)
                for at in range(0, len(data) - word + 1, word)
            ]
            for at in range(max(2, -slot), len(words)):
                far = words[at + slot]
                to_whole = words[at - 2]
                if least <= far < _FARTHEST and far % 4 == 0 and -_FARTHEST < to_whole <= 0:
                    found.add(far)
    return found
