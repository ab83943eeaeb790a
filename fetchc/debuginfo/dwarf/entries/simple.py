"""Location expressions of one operation: nearly all that compilers write.

They are answered without the stack machine of :mod:`fetchc.debuginfo.dwarf.locations.expr`, whose
import costs more than the rest of a location list. A test holds the two together.
Source: DWARF 5, section 2.6.1.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.forms import read_sleb
from fetchc.program.entities import Absent, AtAddress, FrameRelative, InRegister
from fetchc.quantities import Address, ByteOffset, DwarfRegister

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.entries.units import Unit
    from fetchc.program.entities import Place

__all__ = ["LEFT_OUT", "NO_LOCATION", "simple_place"]

NO_LOCATION = Absent("FC0401", "the compiler gives it no location (it was optimised out)")
LEFT_OUT = "of a part of the program that the linker left out"  # of an address

# Source: DWARF 5, table 7.9.
_ADDR = 0x03
_REG0, _REG31 = 0x50, 0x6F
_FBREG = 0x91
_CALL_FRAME_CFA = 0x9C
_FAR = 1 << 30  # offsets from here on may wrap around


def simple_place(expression: bytes, unit: Unit, frame_base: Place | None) -> Place | None:
    """What the expression describes; None where that is not simple, which proves nothing."""
    if not expression:
        return NO_LOCATION
    code, size = expression[0], len(expression)
    if size == 1:
        if _REG0 <= code <= _REG31:
            return InRegister(DwarfRegister(code - _REG0))
        return FrameRelative(ByteOffset(0)) if code == _CALL_FRAME_CFA else None
    if code == _FBREG and isinstance(frame_base, FrameRelative) and expression[-1] < 0x80:
        try:
            number, end = read_sleb(expression, 1)
        except ValueError:
            return None
        offset = frame_base.offset + number
        return FrameRelative(ByteOffset(offset)) if end == size and abs(offset) < _FAR else None
    if code == _ADDR and size == 1 + unit.address_size:
        address = Address(int.from_bytes(expression[1:], "little" if unit.little else "big"))
        if unit.info.elf.is_discarded(address):
            return Absent("FC0405", f"its address is {LEFT_OUT}")
        return AtAddress(address)
    return None
