"""Decodes attribute values: one small reader for each form.

Readers work on the bytes of a whole unit and raise IndexError, ValueError or struct.error
where those end; :data:`DAMAGED` is caught by the callers that have the entry's offset.
Source: DWARF 5, section 7.5.5 and table 7.5; DWARF 2 to 4, the same sections.
"""

from __future__ import annotations

import struct

from fetchc.debuginfo.byte_reader import decode_number, number_layouts, read_sleb, read_uleb
from fetchc.debuginfo.dwarf import constants as c
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.debuginfo.dwarf.units import Unit

    Value = int | bytes
    Reader = Callable[[bytes, int], tuple[Value, int]]
    Skipper = Callable[[bytes, int], int]

__all__ = [
    "ADDRESS_FORMS",
    "ADDRESS_INDEX_FORMS",
    "BLOCK_FORMS",
    "CONSTANT_FORMS",
    "DAMAGED",
    "LOCAL_REFERENCE_FORMS",
    "SIGNED_FORMS",
    "STRING_INDEX_FORMS",
    "SUPPLEMENTARY_REFERENCE_FORMS",
    "SUPPLEMENTARY_STRING_FORMS",
    "Encoding",
    "IndexTables",
    "encoding",
    "fixed_size",
    "interpreted",
    "skipper",
]

# What reading past the end of a unit's bytes raises, before it gets its place in the file.
DAMAGED = (IndexError, ValueError, OverflowError, struct.error)

ADDRESS_INDEX_FORMS = frozenset(
    (
        c.DW_FORM_addrx,
        c.DW_FORM_addrx1,
        c.DW_FORM_addrx2,
        c.DW_FORM_addrx3,
        c.DW_FORM_addrx4,
        c.DW_FORM_GNU_addr_index,
    )
)
ADDRESS_FORMS = ADDRESS_INDEX_FORMS | {c.DW_FORM_addr}
STRING_INDEX_FORMS = frozenset(
    (
        c.DW_FORM_strx,
        c.DW_FORM_strx1,
        c.DW_FORM_strx2,
        c.DW_FORM_strx3,
        c.DW_FORM_strx4,
        c.DW_FORM_GNU_str_index,
    )
)
LOCAL_REFERENCE_FORMS = frozenset(
    (
        c.DW_FORM_ref1,
        c.DW_FORM_ref2,
        c.DW_FORM_ref4,
        c.DW_FORM_ref8,
        c.DW_FORM_ref_udata,
    )
)
BLOCK_FORMS = frozenset(
    (c.DW_FORM_block, c.DW_FORM_block1, c.DW_FORM_block2, c.DW_FORM_block4, c.DW_FORM_exprloc)
)
_DATA_SIZES = {
    c.DW_FORM_data1: 1,
    c.DW_FORM_data2: 2,
    c.DW_FORM_data4: 4,
    c.DW_FORM_data8: 8,
    c.DW_FORM_data16: 16,
}
SIGNED_FORMS = frozenset((c.DW_FORM_sdata, c.DW_FORM_implicit_const))
CONSTANT_FORMS = frozenset(_DATA_SIZES) | SIGNED_FORMS | {c.DW_FORM_udata}
# Their targets are in a file shared by several programs (dwz -m, .gnu_debugaltlink).
SUPPLEMENTARY_REFERENCE_FORMS = frozenset(
    (c.DW_FORM_ref_sup4, c.DW_FORM_ref_sup8, c.DW_FORM_GNU_ref_alt)
)
SUPPLEMENTARY_STRING_FORMS = frozenset((c.DW_FORM_strp_sup, c.DW_FORM_GNU_strp_alt))
_NUMBERS = ((1, "B"), (2, "H"), (4, "I"), (8, "Q"))
_ULEB_FORMS = (
    c.DW_FORM_udata,
    c.DW_FORM_ref_udata,
    c.DW_FORM_strx,
    c.DW_FORM_addrx,
    c.DW_FORM_loclistx,
    c.DW_FORM_rnglistx,
    c.DW_FORM_GNU_addr_index,
    c.DW_FORM_GNU_str_index,
)
_OFFSET_FORMS = (
    c.DW_FORM_strp,
    c.DW_FORM_sec_offset,
    c.DW_FORM_line_strp,
    c.DW_FORM_strp_sup,
    c.DW_FORM_GNU_ref_alt,
    c.DW_FORM_GNU_strp_alt,
)
_FIXED_SIZES = {
    **_DATA_SIZES,
    c.DW_FORM_flag: 1,
    c.DW_FORM_flag_present: 0,
    c.DW_FORM_implicit_const: 0,
    c.DW_FORM_ref1: 1,
    c.DW_FORM_ref2: 2,
    c.DW_FORM_ref4: 4,
    c.DW_FORM_ref8: 8,
    c.DW_FORM_ref_sig8: 8,
    c.DW_FORM_ref_sup4: 4,
    c.DW_FORM_ref_sup8: 8,
    c.DW_FORM_strx1: 1,
    c.DW_FORM_strx2: 2,
    c.DW_FORM_strx3: 3,
    c.DW_FORM_strx4: 4,
    c.DW_FORM_addrx1: 1,
    c.DW_FORM_addrx2: 2,
    c.DW_FORM_addrx3: 3,
    c.DW_FORM_addrx4: 4,
}


def _block(data: bytes, start: int, size: int) -> tuple[bytes, int]:
    end = start + size
    if end > len(data):
        raise IndexError("block runs past the end of the unit")
    return data[start:end], end


def _uleb_block(data: bytes, at: int) -> tuple[bytes, int]:
    size, start = read_uleb(data, at)
    return _block(data, start, size)


def _byte_block(data: bytes, at: int) -> tuple[bytes, int]:
    return _block(data, at + 1, data[at])


def _string(data: bytes, at: int) -> tuple[bytes, int]:
    end = data.index(0, at)
    return data[at:end], end + 1


def _present(_data: bytes, at: int) -> tuple[int, int]:
    return 1, at


class Encoding:
    """What a unit's header says about the size of its values, and the readers that follow.

    ``sizes`` has the forms of fixed size; ``readers`` has every form except
    DW_FORM_implicit_const, whose value is in the abbreviation. ``key`` distinguishes
    encodings in caches.
    """

    __slots__ = (
        "address_size",
        "key",
        "little",
        "numbers",
        "offset_size",
        "readers",
        "sizes",
        "version",
    )

    def __init__(self, version: int, offset_size: int, address_size: int, little: bool) -> None:
        self.key = (version, offset_size, address_size, little)
        self.version = version
        self.offset_size = offset_size
        self.address_size = address_size
        self.little = little
        self.numbers = number_layouts(little)
        # Source: DWARF 3, section 7.5.4: ref_addr had the size of an address in version 2 only.
        self.sizes: dict[int, int] = {
            **_FIXED_SIZES,
            **dict.fromkeys(_OFFSET_FORMS, offset_size),
            c.DW_FORM_addr: address_size,
            c.DW_FORM_ref_addr: address_size if version < 3 else offset_size,
        }
        self.readers: dict[int, Reader] = {
            **{form: self.number_reader(size) for form, size in self.sizes.items()},
            **dict.fromkeys(_ULEB_FORMS, read_uleb),
            c.DW_FORM_sdata: read_sleb,
            c.DW_FORM_string: _string,
            c.DW_FORM_block: _uleb_block,
            c.DW_FORM_exprloc: _uleb_block,
            c.DW_FORM_block1: _byte_block,
            c.DW_FORM_block2: self._sized_block(2),
            c.DW_FORM_block4: self._sized_block(4),
            c.DW_FORM_flag_present: _present,
        }
        del self.readers[c.DW_FORM_implicit_const]

    def number_reader(self, size: int) -> Reader:
        """A reader of unsigned numbers of ``size`` bytes."""
        if size in self.numbers:
            unpack = self.numbers[size].unpack_from

            def number(data: bytes, at: int) -> tuple[int, int]:
                value: int = unpack(data, at)[0]
                return value, at + size

            return number
        little = self.little

        def odd(data: bytes, at: int) -> tuple[int, int]:
            raw, end = _block(data, at, size)
            return decode_number(raw, little), end

        return odd

    def _sized_block(self, width: int) -> Reader:
        unpack = self.numbers[width].unpack_from

        def block(data: bytes, at: int) -> tuple[bytes, int]:
            return _block(data, at + width, unpack(data, at)[0])

        return block

    def indirect(self, data: bytes, at: int) -> tuple[int, Value, int]:
        """DW_FORM_indirect: the form before the value, the value, its end."""
        form, at = read_uleb(data, at)
        reader = self.readers.get(form)
        if reader is None:
            raise ValueError(f"indirect form {form:#x}")
        value, end = reader(data, at)
        return form, value, end


# At most 4 versions x 2 offset sizes x 2 address sizes x 2 byte orders.
_encodings: dict[tuple[int, int, int, bool], Encoding] = {}


def encoding(version: int, offset_size: int, address_size: int, little: bool) -> Encoding:
    """The one Encoding of these properties."""
    key = (version, offset_size, address_size, little)
    found = _encodings.get(key)
    if found is None:
        found = _encodings[key] = Encoding(version, offset_size, address_size, little)
    return found


# ------------------------------------------------------------------------------
# Functions that jump over attribute values, generated for each sequence of forms.
#
# Walking is what a reader does most: 15 million entries in a kernel. A function written out for
# one sequence (fixed sizes summed, LEB128 loops in line) walks 4 to 10 million entries a second,
# a hundred times what an interpreter of forms does. Producers use about a thousand sequences in a
# kernel and a few dozen in most programs; the cache is bounded nevertheless.

_MOST = 4096  # generated functions cached, about 1 kB each
_skippers: dict[tuple[tuple[int, ...], tuple[int, int, int, bool]], Skipper] = {}


def fixed_size(forms: tuple[int, ...], encoding: Encoding) -> int | None:
    """Size of the values together, None where one of them has no fixed size."""
    total = 0
    for form in forms:
        size = encoding.sizes.get(form)
        if size is None:
            return None
        total += size
    return total


def interpreted(forms: tuple[int, ...], encoding: Encoding) -> Skipper:
    """A function that does the same form by form, for sequences met only a few times."""
    readers = encoding.readers

    def skip(data: bytes, at: int) -> int:
        for form in forms:
            if form == c.DW_FORM_indirect:
                at = encoding.indirect(data, at)[2]
            elif form != c.DW_FORM_implicit_const:
                at = readers[form](data, at)[1]
        return at

    return skip


def skipper(forms: tuple[int, ...], encoding: Encoding) -> Skipper:
    """A generated function (data, position of the first value) -> position after the last.

    It raises one of forms.DAMAGED where the data ends.
    """
    key = (forms, encoding.key)
    found = _skippers.get(key)
    if found is None:
        if len(_skippers) >= _MOST:
            _skippers.clear()
        found = _skippers[key] = _generated(forms, encoding)
    return found


def _generated(forms: tuple[int, ...], encoding: Encoding) -> Skipper:
    # Only these literal lines are ever executed: no text of the input gets into the source.
    lines: list[str] = []
    pending = 0
    for form in forms:
        size = encoding.sizes.get(form)
        if size is not None:
            pending += size
            continue
        if pending:
            lines.append(f" p += {pending}")
            pending = 0
        lines.extend(_LINES.get(form, _LEB128))
    lines.append(f" return p + {pending}" if pending else " return p")
    names: dict[str, object] = {
        "uleb": read_uleb,
        "u16": encoding.numbers[2].unpack_from,
        "u32": encoding.numbers[4].unpack_from,
        "indirect": encoding.indirect,
    }
    exec("def skip(b, p):\n" + "\n".join(lines), names)
    skipper: Skipper = names["skip"]  # type: ignore[assignment]  # exec defines it
    return skipper


# These loops stay in line: a call for each value costs more than reading it.
_LEB128 = (" while b[p] > 127: p += 1", " p += 1")
_ULEB_BLOCK = (
    " n = b[p]; p += 1",
    " if n > 127: n, p = uleb(b, p - 1)",
    " p += n",
)
_LINES = {
    c.DW_FORM_string: (" p = b.index(0, p) + 1",),
    c.DW_FORM_block: _ULEB_BLOCK,
    c.DW_FORM_exprloc: _ULEB_BLOCK,
    c.DW_FORM_block1: (" p += 1 + b[p]",),
    c.DW_FORM_block2: (" p += 2 + u16(b, p)[0]",),
    c.DW_FORM_block4: (" p += 4 + u32(b, p)[0]",),
    c.DW_FORM_indirect: (" p = indirect(b, p)[2]",),
}


# ------------------------------------------------------------------------------
# Tables of what the entries of a unit refer to by numbers: addresses, strings, lists.
#
# Source: DWARF 5, sections 7.26 to 7.29; of DWARF 4 https://gcc.gnu.org/wiki/DebugFission, whose
# tables have no headers.


class IndexTables:
    """A unit's parts of the sections of tables.

    Without an attribute that says where, the first part of a section is meant, which is after the
    header. Source: DWARF 5, section 7.3.5 defines that for split units; the same header sizes.
    """

    __slots__ = ("_addr_base", "_str_offsets_base", "_unit")

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._addr_base: int | None = None
        self._str_offsets_base: int | None = None

    @property
    def addr_base(self) -> int:
        """Offset of the unit's addresses in .debug_addr."""
        if self._addr_base is None:
            top = self._unit.skeleton.top
            stated = top.raw(c.DW_AT_addr_base)
            if stated is None:
                stated = top.raw(c.DW_AT_GNU_addr_base)
            self._addr_base = stated if isinstance(stated, int) else self._after_header()
        return self._addr_base

    @property
    def str_offsets_base(self) -> int:
        """Offset of the unit's entries in .debug_str_offsets."""
        if self._str_offsets_base is None:
            stated = self._unit.top.raw(c.DW_AT_str_offsets_base)
            self._str_offsets_base = stated if isinstance(stated, int) else self._after_header()
        return self._str_offsets_base

    def _after_header(self) -> int:
        if self._unit.version < 5:
            return 0
        return 8 if self._unit.offset_size == 4 else 16

    def address_at(self, index: int) -> Address:
        """Entry ``index`` of .debug_addr (DW_OP_addrx, DW_FORM_addrx)."""
        return Address(self._entry(".debug_addr", self.addr_base, index, self._unit.address_size))

    def string_offset(self, index: int) -> int:
        """Entry ``index`` of .debug_str_offsets: an offset in .debug_str."""
        base = self.str_offsets_base
        return self._entry(".debug_str_offsets", base, index, self._unit.offset_size)

    def list_offset(self, name: str, index: int) -> int:
        """Where list ``index`` of .debug_loclists or .debug_rnglists starts in that section.

        Source: DWARF 5, section 7.28: the table holds distances from the table's own start.
        """
        unit = self._unit
        lists = name == ".debug_loclists"
        stated = unit.top.raw(c.DW_AT_loclists_base if lists else c.DW_AT_rnglists_base)
        header = 12 if unit.offset_size == 4 else 20
        base = stated if isinstance(stated, int) else header
        return base + self._entry(name, base, index, unit.offset_size)

    def _entry(self, name: str, base: int, index: int, size: int) -> int:
        section = self._unit.info.required_section(name, self._unit)
        return section.unsigned(base + index * size, size)
