"""ELF files with a symbol table and nothing else: names for code of files that are no ELF files.

perf looks for symbols below ``--symfs`` under the path of each mapped file, and reads ELF alone.
Addresses are offsets in the file that is described, which is what perf asks by.
"""

from __future__ import annotations

from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["MACHINES", "symbol_file"]

MACHINES = {"x86_64": 62, "aarch64": 183}  # e_machine
HEADER = Struct("<16sHHIQQQIHHHHHH")
SEGMENT = Struct("<IIQQQQQQ")
SECTION = Struct("<IIQQQQIIQQ")
SYMBOL = Struct("<IBBHQQ")
IDENT = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")  # 64 bits, little-endian
SHARED, LOAD, READ_EXECUTE = 3, 1, 5
NO_BITS, SYMBOLS, STRINGS, ALLOCATED_CODE = 8, 2, 3, 6
GLOBAL_FUNCTION = 0x12
NAMES = b"\0.text\0.symtab\0.strtab\0.shstrtab\0"


def symbol_file(architecture: str, symbols: Iterable[tuple[int, int, str]]) -> bytes:
    """A file with these symbols: offset, size and name of each. Little-endian, 64 bits."""
    table, names, end = bytearray(SYMBOL.size), bytearray(1), 0
    for offset, size, name in symbols:
        table += SYMBOL.pack(len(names), GLOBAL_FUNCTION, 0, 1, offset, size)
        names += name.encode("utf-8", "surrogateescape") + b"\0"
        end = max(end, offset + size)
    at_table = HEADER.size + SEGMENT.size
    at_names = at_table + len(table)
    at_own = at_names + len(names)
    at_sections = (at_own + len(NAMES) + 7) & -8
    machine = MACHINES[architecture]
    made = HEADER.pack(
        IDENT, SHARED, machine, 1, 0, HEADER.size, at_sections, 0, HEADER.size, SEGMENT.size, 1,
        SECTION.size, 5, 4,
    )  # fmt: skip
    made += SEGMENT.pack(LOAD, READ_EXECUTE, 0, 0, 0, end, end, 0x1000)
    made += bytes(table) + bytes(names) + NAMES
    sections = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (1, NO_BITS, ALLOCATED_CODE, 0, 0, end, 0, 0, 16, 0),
        (7, SYMBOLS, 0, 0, at_table, len(table), 3, 1, 8, SYMBOL.size),
        (15, STRINGS, 0, 0, at_names, len(names), 0, 0, 1, 0),
        (23, STRINGS, 0, 0, at_own, len(NAMES), 0, 0, 1, 0),
    ]
    return made.ljust(at_sections, b"\0") + b"".join(SECTION.pack(*one) for one in sections)
