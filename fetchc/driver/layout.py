"""The layout of a type, row by row, with the holes between members."""

from __future__ import annotations

from fetchc.program.types import (
    EnumType,
    InterfaceType,
    Member,
    NamedType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
)
from fetchc.quantities import ByteSize
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.probe_site import Checker
    from fetchc.program.types import BitField, Type
    from fetchc.quantities import TypeId

__all__ = ["Layout", "Row", "VariantRows", "layout"]


class Row(Record):
    """A member, or a hole (``name`` is None). Offsets and sizes are bytes."""

    name: str | None
    type: str
    offset: int
    size: int | None
    bits: BitField | None
    embedded: bool


class VariantRows(Record):
    """A variant of an enum, and the rows of its fields.

    ``value`` is the discriminant that tells it; None of the one that every other number tells.
    """

    name: str
    value: int | None
    rows: tuple[Row, ...]


class Layout(Record):
    """A type: its spelling, its size, and the rows of its members (none for a scalar)."""

    name: str
    size: int | None
    kind: str
    rows: tuple[Row, ...]
    variants: tuple[VariantRows, ...] = ()


def layout(checker: Checker, type_id: TypeId) -> Layout:
    """The layout of a type; a typedef shows what it stands for."""
    made = checker.resolved(type_id)
    name = checker.spell(type_id)
    if isinstance(checker.program.type(type_id), NamedType):
        under = checker.spell(checker.bare(type_id))
        name = name if under == name else f"{name} = {under}"
    rows = tuple(_rows(checker, made))
    return Layout(name, checker.size(type_id), _kind(made), rows, _variants(checker, made))


def _variants(checker: Checker, made: Type) -> tuple[VariantRows, ...]:
    if isinstance(made, EnumType):
        return tuple([VariantRows(name, value, ()) for name, value in made.enumerators])
    if not isinstance(made, StructType):
        return ()
    found = []
    for variant in made.variants:
        fields = checker.resolved(variant.member.type)
        rows = _rows(checker, fields, holes=False)
        found.append(VariantRows(variant.member.name, variant.value, tuple(rows)))
    return tuple(found)


def _kind(made: Type) -> str:
    if isinstance(made, StructType):
        return made.kind
    return type(made).__name__.removesuffix("Type").lower()


def _rows(checker: Checker, made: Type, holes: bool = True) -> list[Row]:
    match made:
        case SequenceType(members=members, size=size):
            known = max([m.offset + (checker.size(m.type) or 0) for m in members], default=0)
            return _with_holes(checker, members, ByteSize(size or known), union=False)
        case StructType(members=members, size=size, kind=kind, variants=variants):
            # What is around an enum's tag and around a variant's fields is of the others.
            overlapping = kind == "union" or bool(variants) or not holes
            return _with_holes(checker, members, size, union=overlapping)
        case (
            StringType(members=members, size=size)
            | SliceType(members=members, size=size)
            | InterfaceType(members=members, size=size)
        ):
            return _with_holes(checker, members, size, union=False)
        case _:
            return []


def _with_holes(checker: Checker, members: tuple[Member, ...], size: int, union: bool) -> list[Row]:
    rows: list[Row] = []
    reached = 0  # in bits, from the start of the object
    # Rust's compiler puts members where they fit, and lists them as the source does.
    for member in members if union else sorted(members, key=lambda member: member.offset):
        each = checker.size(member.type)
        start: int
        end: int
        if member.bits is not None:
            start, end = member.bits.offset, member.bits.offset + member.bits.width
        else:
            start = 8 * member.offset
            end = start + 8 * (each or 0)
        if not union and start - reached >= 8:
            first = (reached + 7) // 8
            rows.append(Row(None, "", first, start // 8 - first, None, False))
        rows.append(
            Row(
                member.name,
                checker.spell(member.type),
                start // 8,
                each,
                member.bits,
                member.embedded,
            )
        )
        reached = max(reached, end)
    tail = size - (reached + 7) // 8
    if members and not union and tail > 0:
        rows.append(Row(None, "", (reached + 7) // 8, tail, None, False))
    return [row for row in rows if row.name is not None or row.size]
