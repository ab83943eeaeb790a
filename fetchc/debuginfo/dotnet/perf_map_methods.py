"""Finds precompiled methods by address, and matches them with lines of perf maps.

crossgen's maps had addresses relative to the image up to .NET Core 2.2, offsets in the file for
some weeks of 2019, then addresses again. Source: dotnet/coreclr, pull requests 25638 and 26403.
A number is taken for what it is when a method begins there, so that either reading is checked.
"""

from __future__ import annotations

from bisect import bisect_right

from fetchc.debuginfo.perf_map_format import MapLine
from fetchc.diag.diagnostic import reject
from fetchc.quantities import Address, ByteSize, FileOffset
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram

__all__ = ["Mapped", "MappedMethods"]


class Mapped(Record):
    """A method's code: its address in the image, its file offset, its name in perf maps.

    ``symbol`` is its name as ``fetchc functions`` prints it.
    """

    address: Address
    size: ByteSize
    offset: FileOffset
    symbol: str
    shown: str

    @property
    def line(self) -> MapLine:
        """It as a line of crossgen's map."""
        return MapLine(self.address, self.size, self.shown)


class MappedMethods:
    """All methods of an image that have code, in the order of their offsets."""

    __slots__ = ("_begins", "_program", "methods")

    def __init__(self, program: DotnetProgram) -> None:
        self._program = program
        by_offset: dict[int, Mapped] = {}
        for method, begin, end in program.precompiled():
            at = program.file_offset(begin)
            # Code that several instantiations share has the name of the first.
            if at not in by_offset:
                shown = f"[{program.assembly_name}] {method.in_map}[ReadyToRun]"
                size = ByteSize(end - begin)
                by_offset[at] = Mapped(begin, size, at, method.symbol, shown)
        self._begins = sorted(by_offset)
        self.methods = tuple([by_offset[at] for at in self._begins])

    def holding(self, offset: int) -> Mapped | None:
        """The method that a byte of the file belongs to."""
        at = bisect_right(self._begins, offset) - 1
        if at < 0 or offset >= self._begins[at] + self.methods[at].size:
            return None
        return self.methods[at]

    def begun(self, number: int, symbol: str = "") -> Mapped:
        """The method that a map's number means, and its name, where there is one, fits.

        Raises CompileError FC0206.
        """
        found = [one for one in self.methods if number in (one.address, one.offset)]
        path = self._program.path
        if not found:
            raise reject(
                "FC0206",
                f"no method of {path} begins at {number:#x}, as address or as offset",
                notes=("the map is of another build of the image",) if symbol else (),
                help="`fetchc perfmap find NAME -x IMAGE` prints the line that a method has",
            )
        if symbol:
            named = {one.address for one in self._program.functions_named(symbol)}
            found = [one for one in found if one.address in named]
        if len(found) == 1:
            return found[0]
        if symbol:
            raise reject(
                "FC0206",
                f"the method of {path} that begins at {number:#x} is not `{symbol}`",
                notes=("the map is of another build of the image",),
                help="`fetchc perfmap find NAME -x IMAGE` prints the line that a method has",
            )
        raise reject(
            "FC0206",
            f"{number:#x} is the address of one method of {path}, and the offset of another",
            notes=tuple([f"{one.address:x} {one.size:x} {one.shown}" for one in found]),
            help="give the whole line of the map",
        )
