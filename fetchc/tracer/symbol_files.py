"""The functions of files by address, for stacks and function pointers.

A file is ELF, a precompiled image of .NET, or the perf map of a process. As root, a child process
without rights reads them.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left, bisect_right
from contextlib import suppress
from operator import itemgetter

from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.perf_map_format import GrowingMap, parse_line
from fetchc.debuginfo.safe_open import open_regular
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
    from fetchc.debuginfo.dotnet.perf_map_methods import Mapped, MappedMethods
    from fetchc.debuginfo.dwarf.call_frames import Row
    from fetchc.debuginfo.dwarf.line_tables import CodeLines
    from fetchc.debuginfo.elf.elf_file import Segment
    from fetchc.debuginfo.go.pclntab import FunctionTable
    from fetchc.debuginfo.unwind_tables import UnwindTables

    Ask = Callable[..., Any]

__all__ = [
    "KEEPS_FRAME_POINTER",
    "FileSymbols",
    "ImageSymbols",
    "PerfMapSymbols",
    "RemoteSymbols",
    "SymbolFiles",
    "open_symbols",
    "remote_symbols",
]

KEEPS_FRAME_POINTER = "keeps the frame pointer"
"""The answer for code without tables whose compilers keep the frame pointer: .NET's."""

_PERF_MAP = re.compile(r"/perf-\d+\.map\Z")
_begin, _end = itemgetter(0), itemgetter(1)  # of a line of a map of perf
_PROLOGUE_BYTES = 24  # of a method: more than its prologue has up to where the frame is there
_MOST_LINES = 1 << 19  # of a map: each later one takes longer to put in
_MAP_BYTES = 64 << 20  # of a map of perf that are read at once


class FileSymbols:
    """The function symbols of one ELF file, by address; read when first asked for."""

    __slots__ = (
        "_asked_go", "_code_lines", "_elf", "_ends", "_go", "_names", "_starts", "_tables", "path",
    )  # fmt: skip

    def __init__(self, elf: Elf) -> None:
        self._elf = elf
        self.path = elf.path
        self._starts: list[int] | None = None
        self._ends: list[int] = []
        self._names: list[str] = []
        self._asked_go = False
        self._go: FunctionTable | None = None
        self._tables: UnwindTables | None = None
        self._code_lines: CodeLines | None = None

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The parts of the file that are mapped."""
        return self._elf.segments

    def address_at(self, offset: int) -> Address | None:
        """The address that the file states for its byte ``offset``; None where it is not mapped."""
        return _address_at(self._elf.segments, offset)

    def find(self, address: int) -> tuple[str, int] | None:
        """The function that holds ``address``, by the name users write, and how far into it."""
        found = self._symbol(address)
        if found is None:
            return None
        from fetchc.program.demangle import demangled

        symbol = found[0].partition("@")[0]  # without the version: `__libc_start_main@@GLIBC_2.34`
        name = demangled(symbol)
        if name is None:
            return symbol or found[0], found[1]
        from fetchc.lang.cpp_function_names import shortened

        return shortened(name), found[1]

    def _symbol(self, address: int) -> tuple[str, int] | None:
        if self._starts is None:
            self._load()
        assert self._starts is not None
        at = bisect_right(self._starts, address) - 1
        if at < 0 or address >= self._ends[at]:
            return self._of_go(address)
        return self._names[at], address - self._starts[at]

    def unwind_row(self, address: int) -> Row | str:
        """How to find the caller of the code at ``address``; in words, why that is not known."""
        if self._tables is None:
            from fetchc.debuginfo.unwind_tables import UnwindTables

            self._tables = UnwindTables(self._elf)
        return self._tables.row(Address(address))

    def lines(self, address: int) -> tuple[tuple[str, str | None], ...]:
        """The functions whose source is at ``address``, those that were inlined there first.

        Each with its line, ``file.c:17``; nothing where the file has no debug information.
        """
        if self._code_lines is None:
            from fetchc.debuginfo.dwarf.line_tables import CodeLines

            self._code_lines = CodeLines(self._elf)
        return self._code_lines.at(Address(address))

    def _of_go(self, address: int) -> tuple[str, int] | None:
        # Go's run time names the functions of a program without symbols, too.
        from fetchc.debuginfo.dwarf.languages import linked_by_go

        if not linked_by_go(self._elf):
            return None
        from fetchc.debuginfo.elf.headers import architecture_of
        from fetchc.debuginfo.go.moduledata import Memory
        from fetchc.debuginfo.go.pclntab import function_table

        try:
            if not self._asked_go:
                self._asked_go = True
                self._go = function_table(Memory(self._elf, architecture_of(self._elf)))
            row = None if self._go is None else self._go.at(address)
        except DebugInfoError:
            return None  # a damaged table: addresses are shown
        return None if row is None else (row.name, address - row.address)

    def _load(self) -> None:
        # Of several names of an address the global one says most, then the shortest: it is
        # the one without the marks of versions and aliases.
        found: dict[int, tuple[tuple[bool, int, str], int]] = {}
        try:
            function_symbols = list(self._elf.function_symbols())
        except DebugInfoError:
            function_symbols = []  # damaged, or in a file of another build: addresses are shown
        for symbol in function_symbols:
            rank = (symbol.binding == 0, len(symbol.name), symbol.name)
            best = found.get(symbol.address)
            if best is None or rank < best[0]:
                found[symbol.address] = (rank, int(symbol.size))
        self._starts = sorted(found)
        following = [*self._starts[1:], 1 << 64]  # one too many where there is no symbol
        for start, after in zip(self._starts, following, strict=False):
            (_, _, name), size = found[start]
            # Assembly often states no size: it reaches to the next function then.
            self._ends.append(start + size if size else after)
            self._names.append(name)


class _SymbolsByOffset:
    """Symbols of code of a runtime, which no segments map: an offset is the address itself."""

    __slots__ = ()

    @property
    def segments(self) -> tuple[Segment, ...]:
        """None: it is no file that the kernel maps by them."""
        return ()

    def address_at(self, offset: int) -> Address | None:
        """The offset itself."""
        return Address(offset)

    def unwind_row(self, address: int) -> Row | str:
        """By the prologue of the method; other such code is taken to keep the frame pointer."""
        from fetchc.debuginfo.unwind_tables import prologue_row

        code = self._prologue(address)
        return prologue_row(code) if code else KEEPS_FRAME_POINTER

    def _prologue(self, address: int) -> bytes:
        # The first instructions of the method of .NET that holds the address; none of other code.
        raise NotImplementedError

    def lines(self, address: int) -> tuple[tuple[str, str | None], ...]:
        """None: there is no DWARF."""
        return ()


class ImageSymbols(_SymbolsByOffset):
    """The same of a precompiled image of .NET; offsets in the file take the place of addresses."""

    __slots__ = ("_methods", "_program", "path")

    def __init__(self, program: DotnetProgram) -> None:
        self._program = program
        self._methods: MappedMethods | None = None
        self.path = program.path

    def find(self, address: int) -> tuple[str, int] | None:
        """The method that holds a byte of the file, and how far into it that is."""
        found = self._holding(address)
        return None if found is None else (found.symbol, address - found.offset)

    def _holding(self, address: int) -> Mapped | None:
        if self._methods is None:
            from fetchc.debuginfo.dotnet.perf_map_methods import MappedMethods

            self._methods = MappedMethods(self._program)
        return self._methods.holding(address)

    def _prologue(self, address: int) -> bytes:
        found = self._holding(address)
        if found is None or self._program.architecture != "x86_64":
            return b""
        return self._program.code(found.address, min(found.size, _PROLOGUE_BYTES))


class PerfMapSymbols(_SymbolsByOffset):
    """The same of code that a runtime compiled, by the map that it writes for perf.

    Its offsets are the addresses in the process. The map grows while the runtime compiles; a later
    line is about code that has taken the memory of earlier code.
    """

    __slots__ = ("_code", "_map", "_seen", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._code: list[tuple[int, int, str]] = []  # begin, end, name: in order, none overlaps
        self._map = GrowingMap()
        self._seen: tuple[int, int] = (-1, 0)  # the map's size, and when it was written, when read
        self._read_on()

    def find(self, address: int) -> tuple[str, int] | None:
        """The function that was compiled to that address, and how far into it that is."""
        found = self._holding(address)
        if found is None:
            return None
        begin, _, symbol = found
        from fetchc.debuginfo.dotnet.csharp_names import of_map_line

        return of_map_line(symbol), address - begin

    def _holding(self, address: int) -> tuple[int, int, str] | None:
        with suppress(OSError):  # the process has ended: what it compiled has its names still
            now = os.stat(self.path)  # for each frame: no file is opened
            if (now.st_size, now.st_mtime_ns) != self._seen:
                self._read_on()
        at = bisect_right(self._code, address, key=_begin) - 1
        return self._code[at] if at >= 0 and address < self._code[at][1] else None

    def _prologue(self, address: int) -> bytes:
        from fetchc.debuginfo.dotnet.csharp_names import of_map_line

        found = self._holding(address)
        if found is None or of_map_line(found[2]) == found[2]:
            return b""
        begin, end, _ = found
        try:
            handle, _ = open_regular(f"{self.path.partition('/root/')[0]}/mem")
            with os.fdopen(handle, "rb", buffering=0) as memory:
                return os.pread(memory.fileno(), min(end - begin, _PROLOGUE_BYTES), begin)
        except OSError:  # the process has ended
            return b""

    def _read_on(self) -> None:
        handle, status = open_regular(self.path)
        with os.fdopen(handle, "rb"):
            whole, anew = self._map.read(handle, _MAP_BYTES)
        self._seen = status.st_size, status.st_mtime_ns
        if anew:  # or it is that of another process of that number
            self._code = []
        for text in whole.decode("utf-8", "surrogateescape").split("\n"):
            line = parse_line(text)
            if line is None or not line.size or len(self._code) == _MOST_LINES:
                continue
            end = line.start + line.size
            first = bisect_right(self._code, line.start, key=_end)
            after = bisect_left(self._code, end, key=_begin)
            self._code[first:after] = [(line.start, end, line.symbol)]


class RemoteSymbols:
    """The same of a file that another process reads: :class:`SymbolFiles`, asked by ``ask``."""

    __slots__ = ("_ask", "_is_image", "_number", "path", "segments")

    def __init__(
        self,
        ask: Ask,
        path: str,
        number: int,
        is_image: bool,
        segments: tuple[Segment, ...],
    ) -> None:
        self._ask = ask
        self._number = number
        self._is_image = is_image
        self.path = path
        self.segments = segments

    def address_at(self, offset: int) -> Address | None:
        """As :meth:`FileSymbols.address_at` and :meth:`ImageSymbols.address_at`."""
        return Address(offset) if self._is_image else _address_at(self.segments, offset)

    def find(self, address: int) -> tuple[str, int] | None:
        """The function that holds ``address``, and how far into it that is."""
        found: tuple[str, int] | None = self._ask("function", self._number, address)
        return found

    def unwind_row(self, address: int) -> Row | str:
        """As :meth:`FileSymbols.unwind_row`."""
        found: Row | str = self._ask("unwind", self._number, address)
        return found

    def lines(self, address: int) -> tuple[tuple[str, str | None], ...]:
        """As :meth:`FileSymbols.lines`."""
        found: tuple[tuple[str, str | None], ...] = self._ask("lines", self._number, address)
        return found


class SymbolFiles:
    """What a process that reads files answers to :func:`remote_symbols`: files by number."""

    __slots__ = ("_files",)

    def __init__(self) -> None:
        self._files: list[FileSymbols | ImageSymbols | PerfMapSymbols] = []

    def opened(self, path: str) -> tuple[int, bool, tuple[Segment, ...]] | None:
        """Number, whether it is an image of .NET, and segments; None as :func:`open_symbols`."""
        symbols = open_symbols(path)
        if symbols is None:
            return None
        self._files.append(symbols)
        by_offset = isinstance(symbols, _SymbolsByOffset)
        return len(self._files) - 1, by_offset, symbols.segments

    def function_at(self, number: int, address: int) -> tuple[str, int] | None:
        """The function of that file that holds ``address``, and how far into it that is."""
        return self._files[number].find(address)

    def unwind_row(self, number: int, address: int) -> Row | str:
        """How to find the caller of the code of that file at ``address``."""
        return self._files[number].unwind_row(address)

    def lines(self, number: int, address: int) -> tuple[tuple[str, str | None], ...]:
        """The functions and lines of that file's source at ``address``."""
        return self._files[number].lines(address)


def remote_symbols(ask: Ask, path: str) -> RemoteSymbols | None:
    """:func:`open_symbols` in the process that ``ask`` asks."""
    opened = ask("symbols", path)
    return None if opened is None else RemoteSymbols(ask, path, *opened)


def _address_at(segments: tuple[Segment, ...], offset: int) -> Address | None:
    for segment in segments:
        if segment.offset <= offset < segment.offset + segment.file_size:
            return Address(offset - segment.offset + segment.address)
    return None


def open_symbols(path: str) -> FileSymbols | ImageSymbols | PerfMapSymbols | None:
    """The symbols of the file at ``path``; None where it cannot be read, or has none."""
    if _PERF_MAP.search(path):
        try:
            return PerfMapSymbols(path)
        except OSError:
            return None
    try:
        return FileSymbols(Elf(path))
    except DebugInfoError as refused:
        if refused.reason != "not an ELF file":
            return None
    from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram

    try:
        image = DotnetProgram(path)
        return ImageSymbols(image) if image.is_compiled else None
    except DebugInfoError:
        return None


if TYPE_CHECKING:
    Symbols = FileSymbols | ImageSymbols | PerfMapSymbols | RemoteSymbols
