"""What Go's own function table says of a function, beside the debug information.

The table (.gopclntab) is there in every Go program, stripped or not. Only its size of
arguments is read here: with the stack convention it proves or disproves that the debug
information lists every parameter.

Source: Go 1.15 debug/gosym/pclntab.go and runtime/symtab.go (one table, magic
0xfffffffb), Go 1.16 and 1.17 the same files (parts at offsets, magic 0xfffffffa). Later
tables describe register conventions, where the size says something else.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.cursor import Cursor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.elf import Elf
    from fetchc.units import Address

__all__ = ["argument_bytes"]

_SECTION = ".gopclntab"
_GO_12 = 0xFFFFFFFB
_GO_116 = 0xFFFFFFFA
_FUNCTION_PART = 6  # words before the offset of the part with functions: Go 1.16, pcHeader


def argument_bytes(elf: Elf, address: Address) -> int | None:
    """Bytes of parameters and results on the stack of the function at ``address``.

    None where the file has no table, or one of a Go with a register convention, or the
    function is written in assembly without a declared size. DebugInfoError for a damaged
    table.
    """
    data = elf.section(_SECTION)
    if data is None:
        return None

    def at(offset: int) -> Cursor:
        return Cursor(elf.path, _SECTION, data, offset, little=elf.little_endian)

    header = at(0)
    magic = header.u32()
    if magic not in (_GO_12, _GO_116):
        return None
    word = elf.word_bytes
    count = at(8).unsigned(word)
    functions = 0  # where the part begins that offsets of functions count from
    table = 8 + word
    if magic == _GO_116:
        functions = table = at(8 + _FUNCTION_PART * word).unsigned(word)
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        row = at(table + middle * 2 * word)
        entry = row.unsigned(word)
        if entry == address:
            size = at(functions + row.unsigned(word) + word + 4).signed(4)
            return size if size >= 0 else None
        if entry < address:
            low = middle + 1
        else:
            high = middle
    return None
