"""Addresses of a file to its functions, for stacks and function pointers."""

from __future__ import annotations

from bisect import bisect_right

from fetchc.debuginfo.elf import Elf
from fetchc.diag.errors import DebugInfoError
from fetchc.units import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.elf import Segment

__all__ = ["FileSymbols", "open_symbols"]


class FileSymbols:
    """The function symbols of one ELF file, by address; read when first asked for."""

    __slots__ = ("_elf", "_ends", "_names", "_starts", "path")

    def __init__(self, elf: Elf) -> None:
        self._elf = elf
        self.path = elf.path
        self._starts: list[int] | None = None
        self._ends: list[int] = []
        self._names: list[str] = []

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
            return None
        return self._names[at], address - self._starts[at]

    def _load(self) -> None:
        # Of several names of an address the global one says most, then the shortest: it is
        # the one without the marks of versions and aliases.
        found: dict[int, tuple[tuple[bool, int, str], int]] = {}
        for symbol in self._elf.function_symbols():
            rank = (symbol.binding == 0, len(symbol.name), symbol.name)
            known = found.get(symbol.address)
            if known is None or rank < known[0]:
                found[symbol.address] = (rank, int(symbol.size))
        self._starts = sorted(found)
        following = [*self._starts[1:], 1 << 64]
        for start, after in zip(self._starts, following, strict=True):
            (_, _, name), size = found[start]
            # Assembly often states no size: it reaches to the next function then.
            self._ends.append(start + size if size else after)
            self._names.append(name)


def open_symbols(path: str) -> FileSymbols | None:
    """The symbols of the file at ``path``; None where it cannot be read or is no ELF file."""
    try:
        return FileSymbols(Elf(path))
    except DebugInfoError:
        return None
