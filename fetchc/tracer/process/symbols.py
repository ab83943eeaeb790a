"""Addresses of a file to its functions, for stacks and function pointers."""

from __future__ import annotations

from bisect import bisect_right

from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
    from fetchc.debuginfo.dotnet.perf_map_methods import MappedMethods
    from fetchc.debuginfo.elf.elf_file import Segment
    from fetchc.debuginfo.go.pclntab import FunctionTable

    Ask = Callable[..., Any]

__all__ = [
    "FileSymbols",
    "ImageSymbols",
    "RemoteSymbols",
    "SymbolFiles",
    "open_symbols",
    "remote_symbols",
]


class FileSymbols:
    """The function symbols of one ELF file, by address; read when first asked for."""

    __slots__ = ("_asked_go", "_elf", "_ends", "_go", "_names", "_starts", "path")

    def __init__(self, elf: Elf) -> None:
        self._elf = elf
        self.path = elf.path
        self._starts: list[int] | None = None
        self._ends: list[int] = []
        self._names: list[str] = []
        self._asked_go = False
        self._go: FunctionTable | None = None

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The parts of the file that are mapped."""
        return self._elf.segments

    def address_at(self, offset: int) -> Address | None:
        """The address that the file states for its byte ``offset``; None where it is not mapped."""
        return _address_at(self._elf.segments, offset)

    def find(self, address: int) -> tuple[str, int] | None:
        """The function that holds ``address``, and how far into it that is."""
        if self._starts is None:
            self._load()
        assert self._starts is not None
        at = bisect_right(self._starts, address) - 1
        if at < 0 or address >= self._ends[at]:
            return self._of_go(address)
        return self._names[at], address - self._starts[at]

    def _of_go(self, address: int) -> tuple[str, int] | None:
        # Go's run time names the functions of a program without symbols, too.
        from fetchc.debuginfo.dwarf.dies import linked_by_go

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
            known_symbols = list(self._elf.function_symbols())
        except DebugInfoError:
            known_symbols = []  # damaged, or in a file of another build: addresses are shown
        for symbol in known_symbols:
            rank = (symbol.binding == 0, len(symbol.name), symbol.name)
            known = found.get(symbol.address)
            if known is None or rank < known[0]:
                found[symbol.address] = (rank, int(symbol.size))
        self._starts = sorted(found)
        following = [*self._starts[1:], 1 << 64]  # one too many where there is no symbol
        for start, after in zip(self._starts, following, strict=False):
            (_, _, name), size = found[start]
            # Assembly often states no size: it reaches to the next function then.
            self._ends.append(start + size if size else after)
            self._names.append(name)


class ImageSymbols:
    """The same of a precompiled image of .NET; offsets in the file stand for addresses."""

    __slots__ = ("_methods", "_program", "path")

    def __init__(self, program: DotnetProgram) -> None:
        self._program = program
        self._methods: MappedMethods | None = None
        self.path = program.path

    @property
    def segments(self) -> tuple[Segment, ...]:
        """None: it is the runtime that maps the file."""
        return ()

    def address_at(self, offset: int) -> Address | None:
        """The offset itself."""
        return Address(offset)

    def find(self, address: int) -> tuple[str, int] | None:
        """The method that holds a byte of the file, and how far into it that is."""
        if self._methods is None:
            from fetchc.debuginfo.dotnet.perf_map_methods import MappedMethods

            self._methods = MappedMethods(self._program)
        found = self._methods.holding(address)
        return None if found is None else (found.symbol, address - found.offset)


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


class SymbolFiles:
    """What a process that reads files answers to :func:`remote_symbols`: files by number."""

    __slots__ = ("_files",)

    def __init__(self) -> None:
        self._files: list[FileSymbols | ImageSymbols] = []

    def opened(self, path: str) -> tuple[int, bool, tuple[Segment, ...]] | None:
        """Number, whether it is an image of .NET, and segments; None as :func:`open_symbols`."""
        symbols = open_symbols(path)
        if symbols is None:
            return None
        self._files.append(symbols)
        return len(self._files) - 1, isinstance(symbols, ImageSymbols), symbols.segments

    def function_at(self, number: int, address: int) -> tuple[str, int] | None:
        """The function of that file that holds ``address``, and how far into it that is."""
        return self._files[number].find(address)


def remote_symbols(ask: Ask, path: str) -> RemoteSymbols | None:
    """:func:`open_symbols` in the process that ``ask`` asks."""
    opened = ask("symbols", path)
    return None if opened is None else RemoteSymbols(ask, path, *opened)


def _address_at(segments: tuple[Segment, ...], offset: int) -> Address | None:
    for segment in segments:
        if segment.offset <= offset < segment.offset + segment.file_size:
            return Address(offset - segment.offset + segment.address)
    return None


def open_symbols(path: str) -> FileSymbols | ImageSymbols | None:
    """The symbols of the file at ``path``; None where it cannot be read, or has none."""
    try:
        return FileSymbols(Elf(path))
    except DebugInfoError as refused:
        if refused.code != "FC0902":
            return None
    from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram

    try:
        image = DotnetProgram(path)
        return ImageSymbols(image) if image.is_compiled else None
    except DebugInfoError:
        return None


if TYPE_CHECKING:
    Symbols = FileSymbols | ImageSymbols | RemoteSymbols
