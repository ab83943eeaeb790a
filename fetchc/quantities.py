"""Numbers that carry their unit in their type.

At run time each is ``int`` itself (``typing`` is slow to import); type checkers
keep them apart, so that an offset in a section cannot index an object.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NewType

    ByteOffset = NewType("ByteOffset", int)
    ByteSize = NewType("ByteSize", int)
    BitOffset = NewType("BitOffset", int)
    BitSize = NewType("BitSize", int)
    Address = NewType("Address", int)
    FileOffset = NewType("FileOffset", int)
    DieOffset = NewType("DieOffset", int)
    DwarfRegister = NewType("DwarfRegister", int)
    TypeId = NewType("TypeId", int)
else:
    ByteOffset = int  # within an object; may be negative relative to a register
    ByteSize = int
    BitOffset = int  # from the start of an object, in the order of the target's bit numbering
    BitSize = int
    Address = int  # as the file states it: a virtual address before any load bias
    FileOffset = int  # of a byte in the file on disk
    DieOffset = int  # of a debugging information entry, from the start of .debug_info
    DwarfRegister = int  # register number of the platform's DWARF supplement
    TypeId = int  # names a type of one Program; a DieOffset, or negative for a made-up type

__all__ = [
    "Address",
    "BitOffset",
    "BitSize",
    "ByteOffset",
    "ByteSize",
    "DieOffset",
    "DwarfRegister",
    "FileOffset",
    "TypeId",
]
