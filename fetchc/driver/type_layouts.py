"""The layout of a type, row by row, with the holes between members."""

from __future__ import annotations

import re

from fetchc.check.checker import Checker
from fetchc.check.indexing import element_at
from fetchc.check.members import follow_path, named_member
from fetchc.check.probe_site import Site
from fetchc.check.typed_tree import Located, Subobject
from fetchc.diag.diagnostic import reject
from fetchc.driver.listings import matching
from fetchc.lang import language
from fetchc.program.entities import AtAddress
from fetchc.program.types import (
    BitField,
    EnumType,
    InterfaceType,
    Member,
    NamedType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
)
from fetchc.quantities import Address, BitOffset, ByteSize
from fetchc.record import Record
from fetchc.source import Span
from fetchc.syntax.tree import DEPTH
from fetchc.target.machines import architecture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.typed_tree import Typed
    from fetchc.program.protocol import Program
    from fetchc.program.types import Type
    from fetchc.quantities import TypeId

__all__ = [
    "Layout",
    "Offset",
    "Row",
    "VariantRows",
    "layout",
    "layouts",
    "named_types",
    "offsets",
    "types_checker",
]


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

    ``value`` is its discriminant; None of the one that every other number means.
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


def named_types(program: Program, glob: str) -> list[TypeId]:
    """The types that match; a name without wildcards is looked up directly."""
    exact = "*" not in glob and ("?" not in glob or bool(program.types_named(glob, None)))
    names = [glob] if exact else matching(program.type_names(), glob)
    return [type_id for name in names for type_id in program.types_named(name, None)]


def layouts(program: Program, glob: str) -> list[Layout]:
    """Layouts of the types that match, each once."""
    checker = types_checker(program)
    result: list[Layout] = []
    for type_id in named_types(program, glob):
        shown = layout(checker, type_id)
        if shown not in result:
            result.append(shown)
    return result


def layout(checker: Checker, type_id: TypeId) -> Layout:
    """The layout of a type; of a typedef, that of its target."""
    resolved = checker.resolved(type_id)
    name = checker.spell(type_id)
    if isinstance(checker.program.type(type_id), NamedType):
        under = checker.spell(checker.bare(type_id))
        name = name if under == name else f"{name} = {under}"
    rows = tuple(_rows(checker, resolved))
    return Layout(name, checker.size(type_id), _kind(resolved), rows, _variants(checker, resolved))


def _variants(checker: Checker, resolved: Type) -> tuple[VariantRows, ...]:
    if isinstance(resolved, EnumType):
        return tuple([VariantRows(name, value, ()) for name, value in resolved.enumerators])
    if not isinstance(resolved, StructType):
        return ()
    found = []
    for variant in resolved.variants:
        fields = checker.resolved(variant.member.type)
        rows = _rows(checker, fields, holes=False)
        found.append(VariantRows(variant.member.name, variant.value, tuple(rows)))
    return tuple(found)


def _kind(resolved: Type) -> str:
    if isinstance(resolved, StructType):
        return resolved.kind
    return type(resolved).__name__.removesuffix("Type").lower()


def _rows(checker: Checker, resolved: Type, holes: bool = True) -> list[Row]:
    match resolved:
        case SequenceType(members=members, size=size):
            end = max([m.offset + (checker.size(m.type) or 0) for m in members], default=0)
            return _with_holes(checker, members, ByteSize(size or end), union=False)
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


# ------------------------------------------------------------------------------
# Where members are in their types: the rows of a table of offsets.

_INDEXED = re.compile(r"[^\[\]]+(\[[0-9]{1,9}\])+\Z")
_INDEX = re.compile(r"\[([0-9]+)\]")
_SHOWN = 4  # of several types with one name
_DEEPEST = 16  # members without a name inside of each other


class Offset(Record):
    """A type (``offset`` 0), or a member: ``offset`` bytes from the start of the type asked for.

    ``field`` is its whole name, ``type`` its type as the language writes it. ``size`` is in
    bytes, None where it has none. The offset of ``bits`` counts from the same start.
    """

    field: str
    type: str
    offset: int
    size: int | None
    bits: BitField | None


def offsets(program: Program, text: str) -> tuple[Offset, ...]:
    """``TYPE.FIELD``, fields of fields and elements too; of a ``TYPE`` itself and all its members.

    Raises CompileError where a name is unknown (FC0204, FC0302), means several things that differ
    (FC0208), or is reached through a pointer (FC0301).
    """
    checker = types_checker(program)
    name = _type_of(program, text)
    whole = len(name) == len(text)
    answers: dict[tuple[Offset, ...], TypeId] = {}
    for type_id in program.types_named(name, None):
        found = _all(checker, type_id, name) if whole else _one(checker, type_id, text, len(name))
        answers.setdefault(found, type_id)
    if len(answers) > 1:
        shown = [f"{rows[0].offset} of {rows[0].size} bytes" for rows in list(answers)[:_SHOWN]]
        raise reject(
            "FC0208",
            f"{len(answers)} types are called `{name}`, and differ in this",
            Span(0, len(name)),
            "which one is meant",
            notes=(f"it is at {', '.join(shown)}",),
            help="ask where only one of them is: in the debug information of another library",
        )
    return next(iter(answers))


def types_checker(program: Program) -> Checker:
    """What reads types where no function is probed."""
    machine = architecture(program.architecture)
    rules = language(program.main_language())
    return Checker(Site(program, machine, rules, None, Address(0), False, False))


def _type_of(program: Program, text: str) -> str:
    # Names of types have dots: the longest part of the text that names one is the type.
    stem = text.strip(".").partition(".")[0]
    name, glob = text, f"*{stem}*" if stem else "*"
    if text.count(".") > DEPTH:
        span = Span(0, len(text))
        raise reject("FC0102", f"more than {DEPTH} members within each other", span, "too deep")
    while not program.types_named(name, None):
        name, dot, _ = name.rpartition(".")
        if not dot:
            raise reject(
                "FC0204",
                f"no type of the file begins with `{text}`",
                Span(0, len(text)),
                "unknown type",
                help=f"list the types: `fetchc types '{glob}'`",
            )
    return name


def _one(checker: Checker, type_id: TypeId, text: str, start: int) -> tuple[Offset, ...]:
    # As if an object were at address 0: what is reached through a pointer has no offset in it.
    reached: Typed = Located(AtAddress(Address(0)), text[:start], type_id, Span(0, start))
    for name in text[start + 1 :].split("."):
        plain, bracket, _ = name.partition("[")
        indexed = _INDEXED.match(name) if bracket else None
        plain = plain if indexed else name
        span = Span(start + 1, start + 1 + len(plain))
        if not plain:
            raise reject("FC0302", "a member without a name cannot be asked for", span, "no name")
        before = text[: span.start - 1]
        outer, reached = reached, named_member(checker, reached, plain, span)
        for each in _INDEX.finditer(name) if indexed else ():
            if _offset(reached) is None:
                break
            at = Span(start + 1 + each.start(1), start + 1 + each.end(1))
            before = text[: at.start - 1]
            outer, reached = reached, element_at(checker, reached, int(each[1]), span, at)
        start += 1 + len(name)
        if _offset(reached) is None:
            raise reject(
                "FC0301",
                f"`{name}` is reached through a pointer",
                span,
                "not in the same object",
                notes=(f"`{before}` is a `{checker.spell(outer.type)}`",),
                help="ask for the offset in the type that the pointer points to",
            )
    return (_row(checker, text, reached),)


def _all(checker: Checker, type_id: TypeId, name: str) -> tuple[Offset, ...]:
    whole = Located(AtAddress(Address(0)), name, type_id, Span(0, len(name)))
    itself = Offset(name, checker.spell(type_id), 0, checker.size(type_id), None)
    return (itself, *_members(checker, whole, name, 0))


def _members(checker: Checker, base: Typed, name: str, depth: int) -> list[Offset]:
    rows: list[Offset] = []
    match checker.resolved(base.type):
        case (
            StructType(members=members)
            | StringType(members=members)
            | SliceType(members=members)
            | SequenceType(members=members)
            | InterfaceType(members=members)
        ):
            names = [each.name for each in members]
            for each in members:
                reached = follow_path(checker, base, (each,), base.span)
                if each.name and names.count(each.name) == 1:  # Go has any number of `_`
                    rows.append(_row(checker, f"{name}.{each.name}", reached))
                elif not each.name and each.embedded and depth < _DEEPEST:
                    # Members of one without a name are written as members of what it is in.
                    rows += _members(checker, reached, name, depth + 1)
        case _:
            pass
    return rows


def _row(checker: Checker, field: str, reached: Typed) -> Offset:
    offset = _offset(reached)
    assert offset is not None
    bits = reached.bits if isinstance(reached, Subobject) else None
    if bits is not None and isinstance(reached, Subobject):
        before = _offset(reached.base) or 0
        bits = BitField(BitOffset(8 * before + bits.offset), bits.width)
        offset = bits.offset // 8
    spelled = checker.spell(reached.type)
    return Offset(field, spelled, offset, checker.size(reached.type), bits)


def _offset(reached: Typed) -> int | None:
    # Bytes from the root, None behind a pointer.
    match reached:
        case Located():
            return 0
        case Subobject(base=base, offset=offset):
            before = _offset(base)
            return None if before is None else before + offset
        case _:
            return None
