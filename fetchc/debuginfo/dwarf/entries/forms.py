"""How attribute values are encoded: one small reader for each form.

Readers work on the bytes of a whole unit and raise IndexError, ValueError or struct.error
where those end; :data:`DAMAGED` is caught where the entry's offset is known.
Source: DWARF 5, section 7.5.5 and table 7.5; DWARF 2 to 4, the same sections.
"""

from __future__ import annotations

import struct
from struct import Struct

from fetchc.debuginfo.byte_reader import MAX_LEB128
from fetchc.debuginfo.dwarf.entries import constants as c

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Value = int | bytes
    Reader = Callable[[bytes, int], tuple[Value, int]]

__all__ = [
    "ADDRESS_FORMS",
    "ADDRESS_INDEX_FORMS",
    "ALTERNATE_REFERENCE_FORMS",
    "ALTERNATE_STRING_FORMS",
    "BLOCK_FORMS",
    "CONSTANT_FORMS",
    "DAMAGED",
    "LOCAL_REFERENCE_FORMS",
    "SIGNED_FORMS",
    "STRING_INDEX_FORMS",
    "Encoding",
    "encoding",
    "read_sleb",
    "read_uleb",
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
ALTERNATE_REFERENCE_FORMS = frozenset(
    (c.DW_FORM_ref_sup4, c.DW_FORM_ref_sup8, c.DW_FORM_GNU_ref_alt)
)
ALTERNATE_STRING_FORMS = frozenset((c.DW_FORM_strp_sup, c.DW_FORM_GNU_strp_alt))
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


def read_uleb(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned LEB128 number and the position behind it."""
    value = data[at]
    at += 1
    if value < 0x80:
        return value, at
    value &= 0x7F
    for shift in range(7, 7 * MAX_LEB128, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("LEB128 number too long")


def read_sleb(data: bytes, at: int) -> tuple[int, int]:
    """A signed LEB128 number and the position behind it."""
    value, end = read_uleb(data, at)
    if data[end - 1] & 0x40:
        value -= 1 << 7 * (end - at)
    return value, end


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
    DW_FORM_implicit_const, whose value stands in the abbreviation. ``key`` tells encodings
    apart in caches.
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
        order = "<" if little else ">"
        self.numbers = {
            size: Struct(order + code) for size, code in zip((1, 2, 4, 8), "BHIQ", strict=True)
        }
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
            return int.from_bytes(raw, "little" if little else "big"), end

        return odd

    def _sized_block(self, width: int) -> Reader:
        unpack = self.numbers[width].unpack_from

        def block(data: bytes, at: int) -> tuple[bytes, int]:
            return _block(data, at + width, unpack(data, at)[0])

        return block

    def indirect(self, data: bytes, at: int) -> tuple[int, Value, int]:
        """DW_FORM_indirect: the form that stands in front of the value, the value, its end."""
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
