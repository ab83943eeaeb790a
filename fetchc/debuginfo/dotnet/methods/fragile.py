"""Fragile native images of .NET Core 2 (``NAME.ni.dll``), by the map that crossgen writes of them.

Where methods are, is in structures of the runtime that no document describes. But the exception
directory lists where each piece of code begins and ends, and ``crossgen /CreatePerfMap`` names them
in ``NAME.ni.{MVID}.map``; the MVID is the module's own number, and each line is held against the
directory. Source of the directory: the PE format of Microsoft, "The .pdata Section"; read from the
core library of .NET Core 2.1, whose code its methods' pointers lead to.
"""

from __future__ import annotations

import os

from fetchc.debuginfo.dotnet.image.pe import map_file
from fetchc.debuginfo.dotnet.metadata.written_names import parameters_fit, written
from fetchc.debuginfo.dotnet.methods.by_address import CodeByAddress
from fetchc.debuginfo.dotnet.methods.methods import Methods
from fetchc.debuginfo.perf_map_format import parse_lines
from fetchc.debuginfo.safe_open import is_regular
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly

__all__ = ["FragileCode", "map_of"]

EXCEPTIONS = 3  # the data directory
STRIDE = 12  # begin, end and unwinding of a piece of code, on x86-64
LARGEST_MAP = 1 << 28


class FragileCode(CodeByAddress):
    """The code of an image's methods; a method's piece of code goes by its address."""

    __slots__ = ("_ends", "_lines", "_methods")

    def __init__(self, assembly: Assembly, path: str) -> None:
        super().__init__(assembly)
        self._methods = Methods(assembly)
        self._ends = _pieces(assembly)
        self._lines: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        lines = parse_lines(path, map_file(path)[:LARGEST_MAP])
        known = 0
        for line in lines:
            begin = self._begun(line.start)
            if begin is None:
                continue
            known += 1
            asked = written(line.symbol)
            if "::" in line.symbol and asked.parameters is not None:
                key = f"{'.'.join(asked.types)}.{asked.method}"
                self._lines.setdefault(key, []).append((asked.parameters, begin))
        if known * 2 < len(lines):
            what = f"{len(lines) - known} of its {len(lines)} lines begin at no code of the image"
            raise DebugInfoError("FC0908", path, f"the map is of another build: {what}")

    def _begun(self, number: int) -> int | None:
        # Addresses up to 2.2, for some weeks offsets.
        if number in self._ends:
            return number
        try:
            address = int(self._assembly.image.address(number))
        except DebugInfoError:
            return None
        return address if address in self._ends else None

    def entry(self, method: int) -> int | None:
        """Where a method begins, by its row; None where the map does not name it alone."""
        assembly = self._assembly
        owner = assembly.type_name(assembly.owner(method)).replace("+", ".")
        lines = self._lines.get(f"{owner}.{assembly.method_name(method)}", ())
        symbol = self._methods.symbol(method) if lines else ""
        found = [begin for parameters, begin in lines if parameters_fit(symbol, parameters)]
        return found[0] if len(found) == 1 else None

    def end(self, address: int) -> Address:
        """The address behind the code of a method."""
        return Address(self._ends[address])


def map_of(assembly: Assembly, folders: Sequence[str]) -> str | None:
    """The map of this very module, in the first of the folders that has one."""
    name = f"{assembly.name}.ni.{{{assembly.module_id()}}}.map"
    for folder in folders:
        path = os.path.join(folder, name)
        # The name comes out of the file: it must not lead out of the folder.
        if os.sep not in name and is_regular(path):
            return path
    return None


def _pieces(assembly: Assembly) -> dict[int, int]:
    # Begin and end of each piece of code.
    image = assembly.image
    if len(image.directories) <= EXCEPTIONS or image.machine != "x86_64":
        return {}
    address, size = image.directories[EXCEPTIONS]
    cursor = image.cursor(address, "exception directory", size)
    found = {}
    for _ in range(size // STRIDE):
        begin, end = cursor.u32(), cursor.u32()
        cursor.skip(4)
        found[begin] = end
    return found
