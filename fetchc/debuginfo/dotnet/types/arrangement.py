"""Fields one behind the other, in each of the ways in which runtimes arrange them.

Offsets count from the first field: the start of a structure, and behind the header of an object.
``start`` is the end of what a class inherits; ``value`` tells structures from classes.
Source: dotnet/runtime, src/coreclr/vm/methodtablebuilder.cpp and classlayoutinfo.cpp; mono/mono,
mono/metadata/class-init.c.
"""

from __future__ import annotations

from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.target.dotnet_runtimes import LayoutRules

__all__ = [
    "WORD", "Field", "Layout", "Open", "by_size", "explicit", "references_first",
    "sequential", "up",
]  # fmt: skip

WORD = 8


class Field(Record):
    """A field that a type declares: its row, name, closed type and offset."""

    row: int
    name: str
    type: int
    offset: int


class Layout(Record):
    """The fields of a type itself, the bytes of these and of all bases, and their alignment.

    ``repeated`` is how often an inline array or a fixed buffer has its one field; 1 of all others.
    ``passed`` is how often a structure has it where it is passed, though it holds it once.
    """

    fields: tuple[Field, ...]
    size: int
    alignment: int
    repeated: int = 1
    passed: int = 1


class Open(Record):
    """A field without its place. ``kind``: number, reference, byref, structure."""

    row: int
    name: str
    type: int
    kind: str
    size: int
    alignment: int
    references: bool

    def at(self, offset: int) -> Field:
        """The field at that place."""
        return Field(self.row, self.name, self.type, offset)


def explicit(
    listed: list[Open],
    offsets: list[int],
    start: int,
    most: int,
    stated: int,
    value: bool,
    rounds: bool,
) -> Layout:
    """Fields at ``offsets``, which the source says.

    Each is aligned to ``most`` bytes at most; ``rounds``: the size is a multiple of the alignment
    where none is ``stated``.
    """
    fields, end, alignment = [], start, 1
    for one, own in zip(listed, offsets, strict=True):
        offset = start + own
        fields.append(one.at(offset))
        end = max(end, offset + one.size)
        alignment = max(alignment, min(one.alignment, most))
    if stated:
        end = max(end, start + stated)
    elif rounds:
        end = up(end, alignment)
    return Layout(tuple(fields), end or int(value), alignment)


def sequential(
    listed: list[Open], start: int, pack: int, stated: int, value: bool, rules: LayoutRules
) -> Layout:
    """Fields in the order of the source, as in C; ``pack`` and ``stated`` size are 0 if unsaid."""
    most = pack or rules.greatest_alignment
    fields, position, alignment = [], start, 1
    for one in listed:
        own = min(one.alignment, most)
        if one.references and rules.algorithm == "mono":
            own = max(own, WORD)  # whatever packing is stated
        alignment = max(alignment, own)
        position = up(position, own)
        fields.append(one.at(position))
        position += one.size
    if stated:
        position = max(position, start + stated)
    elif value or rules.algorithm == "mono":
        position = up(position, alignment)
    least = rules.least_structure if value else rules.least_class
    return Layout(tuple(fields), position or least, alignment)


def references_first(listed: list[Open], start: int, alignment: int) -> Layout:
    """Mono's classes: what holds references first, all else in the order of the source.

    A class is aligned as its base is.
    """
    fields, position = {}, start
    for one in sorted(listed, key=lambda one: not one.references):
        alignment = max(alignment, one.alignment)
        position = up(position, one.alignment)
        fields[one.row] = one.at(position)
        position += one.size
    return Layout(tuple([fields[one.row] for one in listed]), up(position, alignment), alignment)


def by_size(listed: list[Open], start: int, value: bool, rules: LayoutRules) -> Layout:
    """CoreCLR's automatic layout: big fields first, references before numbers, structures last."""
    position = start
    fields: dict[int, Field] = {}

    def put(one: Open) -> None:
        nonlocal position
        fields[one.row] = one.at(position)
        position += one.size

    groups: dict[int, list[Open]] = {1: [], 2: [], 4: [], 8: []}
    for one in listed:
        if one.kind in ("number", "byref"):
            groups[one.size].append(one)
    references = [one for one in listed if one.kind == "reference"]
    structures = [one for one in listed if one.kind == "structure"]
    waiting = {**groups, WORD: references + groups[WORD]}
    # A hole behind the base's fields takes small ones, if one that fits it not is waiting.
    size = 1
    while size < WORD:
        if position % (2 * size) == 0:
            size *= 2
            continue
        if not any(waiting[bigger] for bigger in (2, 4, 8) if bigger > size):
            break
        fitting = next((small for small in (4, 2, 1) if small <= size and waiting[small]), 0)
        if not fitting:
            break
        position = up(position, fitting)
        put(waiting[fitting].pop(0))
        size = 2 * fitting
    for size in (8, 4, 2, 1):
        if waiting[size]:
            position = up(position, size)
        for one in waiting[size]:
            put(one)
    alignment = 1
    for one in structures:
        own = max(rules.structure_alignment, one.alignment if rules.vectors_aligned else 1)
        if one.references:
            own = max(own, WORD)
        position = up(position, own)
        put(one)
        position = _up_from(position, one.size, rules.structure_size_multiple)
        alignment = max(alignment, own)
    if value:
        position = position or 1
        if position <= WORD:
            alignment = 1 << (position - 1).bit_length()
        elif len(structures) < len(listed) or rules.structure_alignment == WORD:
            alignment = max(alignment, WORD)
        position = up(position, alignment)
    else:
        alignment = WORD
    return Layout(tuple([fields[one.row] for one in listed]), position, alignment)


def up(position: int, alignment: int) -> int:
    """The next multiple of ``alignment``."""
    return (position + alignment - 1) // alignment * alignment


def _up_from(position: int, size: int, multiple: int) -> int:
    # A structure of ``size`` bytes that ends here takes a multiple of bytes.
    return position + -size % multiple
