"""How the DWARF writer encodes one value: a small function for each form, in a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fetchc.debuginfo.dwarf import constants as c
from tests.support.assembler import Assembler, sleb, uleb

__all__ = [
    "WRITERS",
    "Attr",
    "Context",
    "Entry",
    "Ref",
    "Sections",
    "Unit",
    "Value",
]


@dataclass(frozen=True)
class Ref:
    """The offset of the entry with that label."""

    label: str


Value = int | bytes | str | Ref
"""A number, a block or inline string, a pooled string, or a reference."""


@dataclass(frozen=True)
class Attr:
    """An attribute, its form, its value."""

    attribute: int
    form: int
    value: Value = 1


@dataclass(frozen=True)
class Entry:
    """A DIE. ``sibling`` adds a DW_AT_sibling that is right."""

    tag: int
    attributes: tuple[Attr, ...] = ()
    children: tuple[Entry, ...] = ()
    label: str = ""
    sibling: bool = False


@dataclass(frozen=True)
class Unit:
    """One unit; ``types`` puts a type unit of version 4 into .debug_types."""

    root: Entry
    version: int = 5
    offset_size: int = 4
    kind: int = c.DW_UT_compile
    signature: int = 0
    type_label: str = ""


@dataclass
class Sections:
    """What is being written, and the pools shared by the units."""

    little: bool
    address_size: int
    info: Assembler = field(init=False)
    types: Assembler = field(init=False)
    abbrev: bytes = b""
    strings: bytes = b"\0"
    line_strings: bytes = b"\0"
    string_offsets: list[int] = field(default_factory=list)
    addresses: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.info = Assembler(self.little)
        self.types = Assembler(self.little)


@dataclass
class Context:
    """Where the value of one attribute goes."""

    sections: Sections
    out: Assembler
    unit: Unit
    start: int

    def number(self, value: Value, size: int) -> None:
        """A number, or the distance of a label from the unit's start."""
        if isinstance(value, Ref):
            self.out.reference(value.label, size, self.start)
        else:
            self.out.number(_int(value), size)


def _int(value: Value) -> int:
    assert isinstance(value, int), value
    return value


def _bytes(value: Value) -> bytes:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else _raw(value)


def _raw(value: Value) -> bytes:
    assert isinstance(value, bytes), value
    return value


Writer = Callable[[Context, Value], None]


def _fixed(size: int) -> Writer:
    return lambda context, value: context.number(value, size)


def _offset(context: Context, value: Value) -> None:
    context.out.number(_int(value), context.unit.offset_size)


def _address(context: Context, value: Value) -> None:
    context.out.number(_int(value), context.sections.address_size)


def _uleb(context: Context, value: Value) -> None:
    if isinstance(value, Ref):
        context.out.uleb_reference(value.label, context.start)
    else:
        context.out.raw(uleb(_int(value)))


def _sleb(context: Context, value: Value) -> None:
    context.out.raw(sleb(_int(value)))


def _sized_block(size: int) -> Writer:
    def write_block(context: Context, value: Value) -> None:
        context.out.number(len(_raw(value)), size)
        context.out.raw(_raw(value))

    return write_block


def _uleb_block(context: Context, value: Value) -> None:
    context.out.raw(uleb(len(_raw(value))) + _raw(value))


def _inline(context: Context, value: Value) -> None:
    context.out.raw(_bytes(value) + b"\0")


def _nothing(_context: Context, _value: Value) -> None:
    pass


def _pooled(context: Context, value: Value) -> int:
    pool = context.sections
    at = len(pool.strings)
    pool.strings += _bytes(value) + b"\0"
    return at


def _strp(context: Context, value: Value) -> None:
    number = value if isinstance(value, int) else _pooled(context, value)
    context.out.number(number, context.unit.offset_size)


def _line_strp(context: Context, value: Value) -> None:
    pool = context.sections
    at = len(pool.line_strings)
    pool.line_strings += _bytes(value) + b"\0"
    context.out.number(at, context.unit.offset_size)


def _index_of_string(context: Context, value: Value) -> int:
    if isinstance(value, int):
        return value
    context.sections.string_offsets.append(_pooled(context, value))
    return len(context.sections.string_offsets) - 1


def _index_of_address(context: Context, value: Value) -> int:
    context.sections.addresses.append(_int(value))
    return len(context.sections.addresses) - 1


def _indexed(index: Callable[[Context, Value], int], size: int) -> Writer:
    def write_index(context: Context, value: Value) -> None:
        if size:
            context.out.number(index(context, value), size)
        else:
            context.out.raw(uleb(index(context, value)))

    return write_index


def _ref_addr(context: Context, value: Value) -> None:
    assert isinstance(value, Ref)
    size = context.sections.address_size if context.unit.version < 3 else context.unit.offset_size
    context.out.reference(value.label, size)


WRITERS: dict[int, Writer] = {
    c.DW_FORM_addr: _address,
    c.DW_FORM_block1: _sized_block(1),
    c.DW_FORM_block2: _sized_block(2),
    c.DW_FORM_block4: _sized_block(4),
    c.DW_FORM_block: _uleb_block,
    c.DW_FORM_exprloc: _uleb_block,
    c.DW_FORM_data1: _fixed(1),
    c.DW_FORM_data2: _fixed(2),
    c.DW_FORM_data4: _fixed(4),
    c.DW_FORM_data8: _fixed(8),
    c.DW_FORM_data16: _fixed(16),
    c.DW_FORM_sdata: _sleb,
    c.DW_FORM_udata: _uleb,
    c.DW_FORM_implicit_const: _nothing,
    c.DW_FORM_flag: _fixed(1),
    c.DW_FORM_flag_present: _nothing,
    c.DW_FORM_string: _inline,
    c.DW_FORM_strp: _strp,
    c.DW_FORM_line_strp: _line_strp,
    c.DW_FORM_strx: _indexed(_index_of_string, 0),
    c.DW_FORM_strx1: _indexed(_index_of_string, 1),
    c.DW_FORM_strx2: _indexed(_index_of_string, 2),
    c.DW_FORM_strx3: _indexed(_index_of_string, 3),
    c.DW_FORM_strx4: _indexed(_index_of_string, 4),
    c.DW_FORM_addrx: _indexed(_index_of_address, 0),
    c.DW_FORM_addrx1: _indexed(_index_of_address, 1),
    c.DW_FORM_addrx2: _indexed(_index_of_address, 2),
    c.DW_FORM_addrx3: _indexed(_index_of_address, 3),
    c.DW_FORM_addrx4: _indexed(_index_of_address, 4),
    c.DW_FORM_sec_offset: _offset,
    c.DW_FORM_loclistx: _uleb,
    c.DW_FORM_rnglistx: _uleb,
    c.DW_FORM_ref1: _fixed(1),
    c.DW_FORM_ref2: _fixed(2),
    c.DW_FORM_ref4: _fixed(4),
    c.DW_FORM_ref8: _fixed(8),
    c.DW_FORM_ref_udata: _uleb,
    c.DW_FORM_ref_addr: _ref_addr,
    c.DW_FORM_ref_sig8: _fixed(8),
    c.DW_FORM_GNU_ref_alt: _offset,
    c.DW_FORM_GNU_strp_alt: _offset,
}
