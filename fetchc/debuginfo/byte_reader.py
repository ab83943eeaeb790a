"""The byte reader: numbers, LEB128 and strings, in bytes and at a cursor in a section.

A cursor raises a :class:`~fetchc.diag.diagnostic.DebugInfoError` (FC0904) that names the section
and the offset; it does not advance then.
"""

from __future__ import annotations

from struct import Struct

from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap

    from fetchc.debuginfo.elf.headers import Buffer, Section

__all__ = [
    "MAX_LEB128",
    "Cursor",
    "compressed_bytes",
    "decode_number",
    "encode_number",
    "number_at",
    "number_layouts",
    "read_compressed",
    "read_sleb",
    "read_uleb",
    "record_layout",
    "skip_leb",
    "uleb_bytes",
]

# A 64-bit LEB128 has ten bytes; assemblers pad some, nobody pads beyond this. The limit keeps
# a hostile run of continuation bytes from building a number of a million digits.
MAX_LEB128 = 16

# ------------------------------------------------------------------------------
# Numbers and records in bytes without a section.


def decode_number(raw: bytes | memoryview, little: bool, signed: bool = False) -> int:
    """The number that exactly these bytes are."""
    return int.from_bytes(raw, "little" if little else "big", signed=signed)


def number_at(data: Buffer | mmap, at: int, size: int, little: bool) -> int:
    """An unsigned number of ``size`` bytes; IndexError where the data ends before."""
    raw = data[at : at + size]
    if len(raw) != size:
        raise IndexError(f"truncated {size}-byte number")
    return int.from_bytes(raw, "little" if little else "big")


def encode_number(value: int, size: int, little: bool) -> bytes:
    """A number as the file has it, to search for; OverflowError where ``size`` is too small."""
    return value.to_bytes(size, "little" if little else "big")


def record_layout(little: bool, fields: str) -> Struct:
    """A record without padding, its fields spelled as :mod:`struct` does."""
    return Struct(("<" if little else ">") + fields)


# ------------------------------------------------------------------------------
# LEB128 numbers in bytes without a section (DWARF 5, section 7.6). They raise IndexError where the
# bytes end and ValueError for a number that is too long; DWARF's readers locate both.


def read_uleb(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned LEB128 number and the position after it."""
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
    """A signed LEB128 number and the position after it."""
    value, end = read_uleb(data, at)
    if data[end - 1] & 0x40:
        value -= 1 << 7 * (end - at)
    return value, end


def skip_leb(data: bytes, at: int) -> int:
    """The position after a LEB128 number, however long it is."""
    while data[at] > 0x7F:
        at += 1
    return at + 1


def uleb_bytes(value: int) -> bytes:
    """The shortest unsigned LEB128 form of a number, which compilers write."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_compressed(data: bytes, at: int) -> tuple[int, int]:
    """A compressed unsigned number of .NET metadata and the position after it.

    Where ``data`` ends before it the position is past the end. Source: ECMA-335, II.23.2.
    """
    first = data[at] if at < len(data) else 0xFF
    if first < 0x80:
        return first, at + 1
    size, mask = (2, 0x3FFF) if first < 0xC0 else (4, 0x1FFFFFFF)
    if first >= 0xE0 or at + size > len(data):
        return 0, len(data) + 1
    return number_at(data, at, size, False) & mask, at + size


def compressed_bytes(value: int) -> bytes:
    """A compressed unsigned number as it is written, at most 2 ** 29 - 1."""
    if value < 0x80:
        return bytes((value,))
    size, mark = (2, 0x8000) if value < 0x4000 else (4, 0xC0000000)
    return encode_number(value | mark, size, False)


# ------------------------------------------------------------------------------
# Sections.

_LITTLE = {1: Struct("<B"), 2: Struct("<H"), 4: Struct("<I"), 8: Struct("<Q")}
_BIG = {1: Struct(">B"), 2: Struct(">H"), 4: Struct(">I"), 8: Struct(">Q")}


def number_layouts(little: bool) -> dict[int, Struct]:
    """Unsigned numbers by their bytes, 1, 2, 4 and 8: for readers that are generated from these."""
    return _LITTLE if little else _BIG


class Cursor:
    """A position in a section's bytes.

    ``data`` starts at the section's offset 0, ``offset`` is the next byte, ``end`` the first
    byte that may not be read. With ``source``, ``data`` may be shorter than ``end`` (a section
    that is inflated as far as it is read) and grows on demand; what is before the first
    ``offset`` is not to be read then.
    """

    __slots__ = (
        "_first",
        "_numbers",
        "_source",
        "data",
        "end",
        "little",
        "offset",
        "path",
        "section",
    )

    def __init__(
        self,
        path: str,
        section: str,
        data: Buffer,
        offset: int = 0,
        end: int | None = None,
        little: bool = True,
        source: Section | None = None,
    ) -> None:
        self.path = path
        self.section = section
        self.data = data
        self.offset = self._first = offset
        self.end = len(data) if end is None else end
        self.little = little
        self._numbers = number_layouts(little)
        self._source = source
        if not 0 <= offset <= self.end or (source is None and self.end > len(data)):
            raise self.error("the offset is outside the section")

    def error(self, what: str, offset: int | None = None) -> DebugInfoError:
        """A located FC0904 for ``raise``; at the next byte unless ``offset`` says otherwise."""
        at = self.offset if offset is None else offset
        return DebugInfoError("FC0904", self.path, what, self.section, at)

    def at_end(self) -> bool:
        """Nothing is left to read."""
        return self.offset >= self.end

    def remaining(self) -> int:
        """How many bytes are left."""
        return self.end - self.offset

    def _need(self, size: int, what: str) -> None:
        stop = self.offset + size
        if size < 0 or stop > self.end:
            raise self.error(f"truncated {what}")
        if stop > len(self.data):
            if self._source is None:
                raise self.error(f"truncated {what}")
            self.data = self._source.reaching(self._first, stop)

    def unsigned(self, size: int) -> int:
        """An unsigned number of 1, 2, 3, 4, 8 or 16 bytes in the byte order of the file."""
        self._need(size, f"{size}-byte number")
        reader = self._numbers.get(size)
        if reader is not None:
            value: int = reader.unpack_from(self.data, self.offset)[0]
        else:
            raw = bytes(self.data[self.offset : self.offset + size])
            value = int.from_bytes(raw, "little" if self.little else "big")
        self.offset += size
        return value

    def u8(self) -> int:
        """One byte."""
        self._need(1, "byte")
        value = self.data[self.offset]
        self.offset += 1
        return value

    def u16(self) -> int:
        """A 2-byte unsigned number."""
        return self.unsigned(2)

    def u32(self) -> int:
        """A 4-byte unsigned number."""
        return self.unsigned(4)

    def u64(self) -> int:
        """An 8-byte unsigned number."""
        return self.unsigned(8)

    def signed(self, size: int) -> int:
        """A two's complement number of ``size`` bytes."""
        value = self.unsigned(size)
        return value - (1 << 8 * size) if value >> (8 * size - 1) else value

    def address(self, size: int) -> int:
        """A target address of ``size`` bytes (the unit's address_size)."""
        return self.unsigned(size)

    def uleb(self) -> int:
        """An unsigned LEB128 number."""
        return self._leb("unsigned LEB128 number")[0]

    def sleb(self) -> int:
        """A signed LEB128 number."""
        value, bits, last = self._leb("signed LEB128 number")
        return value - (1 << bits) if last & 0x40 else value

    def _leb(self, what: str) -> tuple[int, int, int]:
        # Value, number of bits, last byte.
        start = self.offset
        value = bits = 0
        while True:
            at = start + bits // 7
            if at >= self.end or at >= len(self.data):
                self._need(at - start + 1, what)
            byte = self.data[at]
            value |= (byte & 0x7F) << bits
            bits += 7
            if byte < 0x80:
                self.offset = at + 1
                return value, bits, byte
            if bits >= 7 * MAX_LEB128:
                raise self.error(f"{what} too long")

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes."""
        self._need(size, f"block of {size} bytes")
        taken = bytes(self.data[self.offset : self.offset + size])
        self.offset += size
        return taken

    def skip(self, size: int) -> None:
        """Leave out ``size`` bytes."""
        if size < 0 or self.offset + size > self.end:
            raise self.error(f"truncated block of {size} bytes")
        self.offset += size

    def cstring(self) -> bytes:
        """The bytes up to the next NUL, which is read too."""
        start = self.offset
        size = 32
        while True:
            stop = min(start + size, self.end)
            if stop > len(self.data) and self._source is not None:
                self.data = self._source.reaching(self._first, stop)
            found = bytes(self.data[start:stop]).find(b"\0")
            if found >= 0:
                self.offset = start + found + 1
                return bytes(self.data[start : start + found])
            if stop >= self.end:
                raise self.error("string without an end")
            size *= 4

    def initial_length(self) -> tuple[int, int]:
        """Length and offset size (4, or 8 for 64-bit DWARF) of what follows.

        Source: DWARF 5, section 7.2.2: 0xffffffff announces 64 bits, the 15 below are reserved.
        """
        start = self.offset
        length = self.u32()
        offset_size = 4
        if length == 0xFFFFFFFF:
            try:
                length = self.u64()
            except DebugInfoError:
                self.offset = start
                raise
            offset_size = 8
        elif length >= 0xFFFFFFF0:
            self.offset = start
            raise self.error(f"reserved unit length {length:#x}")
        if length > self.end - self.offset:
            self.offset = start
            raise self.error(f"a length of {length:#x} bytes runs past the end of the section")
        return length, offset_size
