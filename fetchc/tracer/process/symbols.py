"""Addresses of a file to its functions, for stacks and function pointers."""

from __future__ import annotations

from bisect import bisect_right

from fetchc.debuginfo.elf.file import Elf
from fetchc.diag.errors import DebugInfoError
from fetchc.units import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.mapped import MappedMethods
    from fetchc.debuginfo.dotnet.program import DotnetProgram
    from fetchc.debuginfo.elf.file import Segment
    from fetchc.debuginfo.go.functable import FunctionTable

__all__ = ["FileSymbols", "ImageSymbols", "open_symbols"]


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
        for segment in self._elf.segments:
            if segment.offset <= offset < segment.offset + segment.file_size:
                return Address(offset - segment.offset + segment.address)
        return None

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
        from fetchc.debuginfo.dwarf.entries.attributes import linked_by_go

        if not linked_by_go(self._elf):
            return None
        from fetchc.debuginfo.elf.machines import architecture_of
        from fetchc.debuginfo.go.functable import function_table
        from fetchc.debuginfo.go.memory import Memory

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
            from fetchc.debuginfo.dotnet.mapped import MappedMethods

            self._methods = MappedMethods(self._program)
        found = self._methods.holding(address)
        return None if found is None else (found.symbol, address - found.offset)


def open_symbols(path: str) -> FileSymbols | ImageSymbols | None:
    """The symbols of the file at ``path``; None where it cannot be read, or has none."""
    try:
        return FileSymbols(Elf(path))
    except DebugInfoError as refused:
        if refused.code != "FC0902":
            return None
    from fetchc.debuginfo.dotnet.program import DotnetProgram

    try:
        image = DotnetProgram(path)
        return ImageSymbols(image) if image.is_compiled else None
    except DebugInfoError:
        return None
