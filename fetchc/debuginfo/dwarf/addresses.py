"""Which unit has the code at an address.

.debug_aranges says it where there is one (gcc, rustc); Go and clang write none, there the
top entries of the units are read, as far as needed, and kept.
Source: DWARF 5, section 6.1.2 (unchanged since version 2).
"""

from __future__ import annotations

from bisect import bisect_right
from struct import Struct

from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf.ranges import ranges
from fetchc.units import Address, DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.info import DebugInfo
    from fetchc.debuginfo.dwarf.units import Unit
    from fetchc.debuginfo.sections import Section

__all__ = ["AddressTable", "aranges"]

_WITH_CODE = (c.DW_UT_compile, c.DW_UT_partial, c.DW_UT_skeleton)


def aranges(section: Section) -> Iterator[tuple[Address, Address, DieOffset]]:
    """(start, end, unit offset) of every range in .debug_aranges."""
    at = 0
    while at < section.size:
        reader = section.cursor(at)
        length, offset_size = reader.initial_length()
        end = reader.offset + length
        reader.end = end
        version = reader.u16()
        unit = DieOffset(reader.unsigned(offset_size))
        address_size, segment_size = reader.u8(), reader.u8()
        if version != 2 or address_size not in (4, 8) or segment_size != 0:
            raise section.error(
                f"address ranges of version {version}, address size {address_size}, "
                f"segment size {segment_size}",
                at,
            )
        # The first pair is aligned to the size of a pair, counted from the set's own start.
        pair = 2 * address_size
        start = at + -(-(reader.offset - at) // pair) * pair
        layout = Struct(("<" if section.little else ">") + ("QQ" if address_size == 8 else "II"))
        if start < end:
            raw = section.bytes_between(start, end - (end - start) % pair)
            for low, size in layout.iter_unpack(raw):
                if size:
                    yield Address(low), Address(low + size), unit
        at = end


class AddressTable:
    """Answers for one file; grows as far as the questions need."""

    __slots__ = ("_info", "_pending", "_scanned", "_sorted", "_starts")

    def __init__(self, info: DebugInfo) -> None:
        self._info = info
        self._sorted: list[tuple[Address, Address, DieOffset]] | None = None
        self._starts: list[int] = []
        self._scanned: list[tuple[Address, Address, Unit]] = []
        self._pending: Iterator[Unit] | None = None

    def unit_of(self, address: Address) -> Unit | None:
        """The unit, None where no unit claims the address."""
        offset = self._from_aranges(address)
        if offset is not None:
            return self._info.unit_starting(offset)
        for low, high, unit in self._scanned:
            if low <= address < high:
                return unit
        if self._pending is None:
            self._pending = self._info.units()
        for unit in self._pending:
            if unit.kind not in _WITH_CODE:
                continue
            covered = ranges(unit.top)
            self._scanned.extend([(low, high, unit) for low, high in covered])
            if any(low <= address < high for low, high in covered):
                return unit
        return None

    def _from_aranges(self, address: Address) -> DieOffset | None:
        if self._sorted is None:
            section = self._info.elf.open_section(".debug_aranges")
            self._sorted = [] if section is None else sorted(aranges(section))
            self._starts = [start for start, _, _ in self._sorted]
        at = bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        _, end, offset = self._sorted[at]
        if address < end:
            return offset
        # Ranges should not overlap; where they do, an earlier and longer one may hold it.
        for start, end, offset in self._sorted[:at]:
            if start <= address < end:
                return offset
        return None
