"""FUNCDATA and _func of Go: what Go's function table says of a function's arguments.

The table (.gopclntab) is there in every Go program, stripped or not. Two things of it prove or
disprove that the debug information lists every parameter: the bytes that a call's parameters
and results take in the caller's frame, and, from Go 1.17 on, the argument stream that tracebacks
are printed by (FUNCDATA_ArgInfo).

Source: Go 1.15 to 1.21, src/runtime/symtab.go and runtime2.go (pcHeader, functab, _func,
funcdata), src/cmd/link/internal/ld/pcln.go. Up to 1.15 the table is one, then in parts;
addresses became offsets from the text in 1.18, a start line was put in with 1.20.
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import Cursor
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.elf.elf_file import Elf
    from fetchc.debuginfo.elf.headers import Buffer

__all__ = ["argument_bytes", "argument_stream"]

_TABLE_SECTIONS = (
    ".gopclntab",
    ".data.rel.ro.gopclntab",
)  # the second in position-independent programs
_GO_12, _GO_116, _GO_118, _GO_120 = 0xFFFFFFFB, 0xFFFFFFFA, 0xFFFFFFF0, 0xFFFFFFF1
_ARGUMENT_STREAM = 5  # FUNCDATA_ArgInfo
_NO_DATA = 0xFFFFFFFF
# Its end: (5 levels * 3 operators + 2) * 10 components + 1. Source: ssagen.EmitArgInfo, maxLen.
_STREAM_BYTES = 171


class _Table:
    """The table of one file: its header, and where a function's row (_func) is."""

    __slots__ = ("_data", "_elf", "_name", "entry_bytes", "functions", "magic", "rows", "word")

    def __init__(self, elf: Elf, name: str, data: Buffer) -> None:
        self._elf, self._name, self._data = elf, name, data
        self.word = elf.word_bytes
        self.magic = self.at(0).u32()
        relative = self.magic in (_GO_118, _GO_120)
        self.entry_bytes = 4 if relative else self.word
        # Words of the header before the offset of the part with the functions.
        self.functions = 0 if self.magic == _GO_12 else self._header(7 if relative else 6)
        self.rows = 8 + self.word if self.magic == _GO_12 else self.functions

    def at(self, offset: int) -> Cursor:
        little = self._elf.little_endian
        return Cursor(self._elf.path, self._name, self._data, offset, little=little)

    def _header(self, index: int) -> int:
        return self.at(8 + index * self.word).unsigned(self.word)

    def function(self, address: Address) -> int | None:
        """Offset of the row of the function that begins at ``address``."""
        wanted = address - self._text()
        low, high = 0, self._header(0)
        while low < high:
            middle = (low + high) // 2
            row = self.at(self.rows + middle * 2 * self.entry_bytes)
            entry = row.unsigned(self.entry_bytes)
            if entry == wanted:
                return self.functions + row.unsigned(self.entry_bytes)
            if entry < wanted:
                low = middle + 1
            else:
                high = middle
        return None

    def _text(self) -> int:
        if self.magic in (_GO_12, _GO_116):
            return 0
        # The header has it too, as a relocation in position-independent programs.
        return next((s.address for s in self._elf.symbols_named("runtime.text")), self._header(2))


def _table(elf: Elf) -> _Table | None:
    for name in _TABLE_SECTIONS:
        data = elf.section(name)
        if data is not None:
            table = _Table(elf, name, data)
            is_supported = table.magic in (_GO_12, _GO_116, _GO_118, _GO_120)
            return table if is_supported else None
    return None


def argument_bytes(elf: Elf, address: Address) -> int | None:
    """Bytes of parameters and results in the caller's frame of the function at ``address``.

    With a register convention they include the room for spilling register parameters. None
    where the file has no table or the function is written in assembly without a declared
    size. DebugInfoError for a damaged table.
    """
    table = _table(elf)
    row = None if table is None else table.function(address)
    if table is None or row is None:
        return None
    size = table.at(row + table.entry_bytes + 4).signed(4)
    return size if size >= 0 else None


def argument_stream(elf: Elf, address: Address) -> bytes | None:
    """What tracebacks print of the parameters, all of them: offsets, sizes and operators.

    The terminator and what follows are cut off. None where the function has none: no
    parameters, assembly, an older Go. DebugInfoError for a damaged table.
    """
    table = _table(elf)
    row = None if table is None else table.function(address)
    if table is None or row is None or table.magic == _GO_12:
        return None
    # entry, nameOff, args, deferreturn, pcsp, pcfile, pcln; then npcdata, cuOffset, startLine
    fields = table.at(row + table.entry_bytes + 6 * 4)
    pcdata_count = fields.u32()
    fields.skip(8 if table.magic == _GO_120 else 4)
    fields.skip(3)  # funcID, flag, padding
    if fields.u8() <= _ARGUMENT_STREAM:
        return None
    fields.skip(4 * pcdata_count)
    if table.magic == _GO_116:
        where = _pointer(table, fields.offset)
    else:
        fields.skip(4 * _ARGUMENT_STREAM)
        relative = fields.u32()
        base = elf.symbols_named("go:func.*") or elf.symbols_named("go.func.*")
        where = None if relative == _NO_DATA or not base else base[0].address + relative
    if where is None:
        return None
    stream, end, _ = elf.read(Address(where), _STREAM_BYTES).partition(b"\xff")
    return stream if end else None


def _pointer(table: _Table, offset: int) -> int | None:
    # Go 1.17: pointers, aligned as in memory; a relocation leaves none in the file.
    offset += -offset % table.word
    return table.at(offset + _ARGUMENT_STREAM * table.word).unsigned(table.word) or None
