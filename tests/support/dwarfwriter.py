"""DWARF from trees of entries given as data: versions 2 to 5, both byte orders, 32 and 64 bits.

``write(units, ...)`` gives the sections, ``program(units, ...)`` an ELF file with them. An
entry is ``Entry(tag, attributes, children, label)``; references name labels. The factories
below (``struct_die`` and so on) write what compilers write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fetchc.debuginfo.dwarf import constants as c
from tests.support.assembler import Assembler, sleb, uleb
from tests.support.dwarfforms import WRITERS, Attr, Context, Entry, Ref, Sections, Unit, Value
from tests.support.elfwriter import Load, Sym, elf_file

__all__ = [
    "Attr",
    "Entry",
    "Ref",
    "Unit",
    "Value",
    "base_die",
    "compile_unit",
    "member_die",
    "pointer_die",
    "program",
    "struct_die",
    "subprogram_die",
    "typedef_die",
    "variable_die",
    "write",
]


def write(units: Sequence[Unit], *, little: bool = True, address_size: int = 8) -> dict[str, bytes]:
    """The debug sections of the units; the pools of indexes have one contribution for all."""
    pool = Sections(little, address_size)
    for index, unit in enumerate(units):
        _write_unit(pool, unit, index)
    sections = {
        ".debug_info": pool.info.finished(),
        ".debug_types": pool.types.finished(),
        ".debug_abbrev": pool.abbrev,
        ".debug_str": pool.strings,
        ".debug_line_str": pool.line_strings,
        ".debug_str_offsets": _pool(pool, pool.string_offsets, units, 2),
        ".debug_addr": _pool(pool, pool.addresses, units, 1),
    }
    return {name: content for name, content in sections.items() if content}


def _pool(pool: Sections, values: list[int], units: Sequence[Unit], kind: int) -> bytes:
    # .debug_str_offsets (kind 2: entries of offset size) or .debug_addr (kind 1).
    if not values:
        return b""
    wide = units[0].offset_size
    size = wide if kind == 2 else pool.address_size
    out = Assembler(pool.little)
    out.length(wide, "end")
    out.number(5, 2)
    out.number(0 if kind == 2 else pool.address_size, 2 if kind == 2 else 1)
    if kind == 1:
        out.number(0, 1)
    for value in values:
        out.number(value, size)
    out.label("end")
    return out.finished()


def _write_unit(pool: Sections, unit: Unit, index: int) -> None:
    old_types = unit.version == 4 and unit.kind == c.DW_UT_type
    out = pool.types if old_types else pool.info
    start = len(out.data)
    end = f"unit {index} end"
    out.length(unit.offset_size, end)
    out.number(unit.version, 2)
    abbrev_offset = len(pool.abbrev)
    if unit.version >= 5:
        out.number(unit.kind, 1)
        out.number(pool.address_size, 1)
        out.number(abbrev_offset, unit.offset_size)
    else:
        out.number(abbrev_offset, unit.offset_size)
        out.number(pool.address_size, 1)
    if unit.kind == c.DW_UT_type:
        out.number(unit.signature, 8)
        out.reference(unit.type_label, unit.offset_size, start)
    codes: dict[bytes, int] = {}
    _write_entry(Context(pool, out, unit, start), unit.root, codes)
    out.label(end)
    pool.abbrev += b"".join(uleb(code) + raw for raw, code in codes.items()) + b"\0"


def _write_entry(context: Context, entry: Entry, codes: dict[bytes, int]) -> None:
    out = context.out
    start = len(out.data)
    if entry.label:
        out.label(entry.label)
    behind = f"behind {id(out)} {start}"
    attributes = entry.attributes
    if entry.sibling:
        attributes += (Attr(c.DW_AT_sibling, c.DW_FORM_ref4, Ref(behind)),)
    raw = uleb(entry.tag) + bytes([bool(entry.children)])
    for attribute in attributes:
        raw += uleb(attribute.attribute) + uleb(attribute.form)
        constant = attribute.value
        if attribute.form == c.DW_FORM_implicit_const and isinstance(constant, int):
            raw += sleb(constant)
    out.raw(uleb(codes.setdefault(raw + b"\0\0", len(codes) + 1)))
    for attribute in attributes:
        WRITERS[attribute.form](context, attribute.value)
    if entry.children:
        for child in entry.children:
            _write_entry(context, child, codes)
        out.raw(b"\0")
    out.label(behind)


def program(
    path: Path,
    units: Sequence[Unit],
    *,
    little: bool = True,
    address_size: int = 8,
    symbols: Sequence[Sym] = (),
    loads: Sequence[Load] = (),
    extra: Mapping[str, bytes] | None = None,
    machine: int = 62,
) -> str:
    """Write an ELF file with the units' sections, ``extra`` ones over them; its path."""
    sections = write(units, little=little, address_size=address_size) | dict(extra or {})
    path.write_bytes(
        elf_file(
            sections,
            symbols=symbols,
            loads=loads,
            bits=8 * address_size,
            little=little,
            machine=machine,
        )
    )
    return str(path)


def _named(name: str) -> Attr:
    return Attr(c.DW_AT_name, c.DW_FORM_string, name)


def _typed(target: str) -> tuple[Attr, ...]:
    return (Attr(c.DW_AT_type, c.DW_FORM_ref4, Ref(target)),) if target else ()


def compile_unit(
    *children: Entry,
    name: str = "unit.c",
    language: int = c.DW_LANG_C99,
    low: int | None = None,
    high: int | None = None,
    extra: tuple[Attr, ...] = (),
) -> Entry:
    """The top entry of a unit."""
    attributes: tuple[Attr, ...] = (
        _named(name),
        Attr(c.DW_AT_language, c.DW_FORM_data1, language),
    )
    if low is not None and high is not None:
        attributes += (
            Attr(c.DW_AT_low_pc, c.DW_FORM_addr, low),
            Attr(c.DW_AT_high_pc, c.DW_FORM_addr, high),
        )
    return Entry(c.DW_TAG_compile_unit, attributes + extra, children)


def base_die(name: str, size: int, encoding: int, label: str = "") -> Entry:
    """A base type; the label is its name unless another is given."""
    return Entry(
        c.DW_TAG_base_type,
        (
            _named(name),
            Attr(c.DW_AT_byte_size, c.DW_FORM_data1, size),
            Attr(c.DW_AT_encoding, c.DW_FORM_data1, encoding),
        ),
        (),
        label or name,
    )


def pointer_die(target: str, label: str, size: int = 8) -> Entry:
    """A pointer to the type with that label; an empty one makes ``void *``."""
    return Entry(
        c.DW_TAG_pointer_type,
        (Attr(c.DW_AT_byte_size, c.DW_FORM_data1, size), *_typed(target)),
        (),
        label,
    )


def typedef_die(name: str, target: str, label: str = "") -> Entry:
    """Another name of a type."""
    return Entry(c.DW_TAG_typedef, (_named(name), *_typed(target)), (), label or name)


def member_die(name: str, target: str, offset: int, *extra: Attr) -> Entry:
    """A member at a constant offset."""
    return Entry(
        c.DW_TAG_member,
        (
            _named(name),
            *_typed(target),
            Attr(c.DW_AT_data_member_location, c.DW_FORM_udata, offset),
            *extra,
        ),
    )


def struct_die(
    name: str, size: int, members: Sequence[Entry], label: str = "", *extra: Attr
) -> Entry:
    """A structure with its members."""
    return Entry(
        c.DW_TAG_structure_type,
        (_named(name), Attr(c.DW_AT_byte_size, c.DW_FORM_udata, size), *extra),
        tuple(members),
        label or name,
    )


def variable_die(name: str, target: str, location: bytes, label: str = "") -> Entry:
    """A variable with one expression (block1, as DWARF 2 to 5 all allow)."""
    return Entry(
        c.DW_TAG_variable,
        (_named(name), *_typed(target), Attr(c.DW_AT_location, c.DW_FORM_block1, location)),
        (),
        label or name,
    )


def subprogram_die(
    name: str, low: int, high: int, *children: Entry, label: str = "", sibling: bool = False
) -> Entry:
    """A function with absolute bounds."""
    return Entry(
        c.DW_TAG_subprogram,
        (
            _named(name),
            Attr(c.DW_AT_low_pc, c.DW_FORM_addr, low),
            Attr(c.DW_AT_high_pc, c.DW_FORM_addr, high),
        ),
        children,
        label or name,
        sibling,
    )
