"""Variables of a shared library that an executable may hold a copy of.

An executable that names a library's variable directly gets a copy of it in its own
memory (a copy relocation), and the library then uses that copy: its own bytes go stale.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.cursor import Cursor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.elf.file import Elf
    from fetchc.quantities import Address

__all__ = ["may_be_copied"]

_ET_DYN = 3
_STT_OBJECT = 1
_STB_LOCAL = 0
# Source: <elf.h>, DT_NULL, DT_FLAGS_1, DF_1_PIE (set by binutils 2.26 and later, and lld).
_DT_NULL = 0
_DT_FLAGS_1 = 0x6FFFFFFB
_DF_1_PIE = 0x08000000


def may_be_copied(elf: Elf, name: str, address: Address) -> bool:
    """Whether the variable ``name`` at ``address`` is exported by a shared library."""
    if elf.kind != _ET_DYN or _is_executable(elf):
        return False
    return any(
        symbol.address == address and symbol.kind == _STT_OBJECT and symbol.binding != _STB_LOCAL
        for symbol in elf.exported(name)
    )


def _is_executable(elf: Elf) -> bool:
    # A position-independent executable is ET_DYN too.
    data = elf.section(".dynamic")
    if data is None:
        return True  # static: nothing can be copied out of it
    cursor = Cursor(elf.path, ".dynamic", data, little=elf.little_endian)
    while not cursor.at_end():
        tag = cursor.unsigned(elf.word_bytes)
        value = cursor.unsigned(elf.word_bytes)
        if tag == _DT_FLAGS_1:
            return bool(value & _DF_1_PIE)
        if tag == _DT_NULL:
            break
    return False
