"""Methods that the runtime compiled while a process runs, by the perf map that it writes.

A line ends with the tier of the code. A method is compiled again when it was called often, and both
pieces stay: the newest one is what calls reach.

Source: dotnet/runtime, src/coreclr/vm/perfmap.cpp (PerfMap::LogJITCompiledMethod) and
src/coreclr/vm/prestub.cpp (PrepareCodeConfig::GetJitOptimizationTierStr); maps of .NET 3.1 and 9.
"""

from __future__ import annotations

from fetchc.debuginfo.dotnet.method_code import CodeByMap
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.debuginfo.dotnet.assemblies import Assembly
    from fetchc.debuginfo.perf_map_format import MapLine

__all__ = ["TIERS", "JitCode"]

# Code that begins with the method's entry, from what is replaced to what replaces it. Code that a
# loop jumps to (OptimizedTier1OSR) has its arguments in other places.
TIERS = {
    "MinOptJitted": 0,
    "QuickJitted": 0,
    "InstrumentedTier": 1,
    "InstrumentedTierOptimized": 1,
    "Optimized": 2,
    "OptimizedTier1": 2,
}


class JitCode(CodeByMap):
    """The code that a process has of an assembly's methods now."""

    __slots__ = ("_begins", "_ends", "_lines_seen", "_names", "_order")

    def __init__(self, assembly: Assembly, lines: Iterable[MapLine]) -> None:
        super().__init__(assembly)
        self._ends: dict[int, int] = {}
        self._names: dict[int, str] = {}  # of the code that begins at an address
        self._begins: dict[str, list[int]] = {}  # of the code of a name
        self._order: dict[int, tuple[int, int]] = {}  # the later, the newer
        self._lines_seen = 0
        self.add(lines)

    def add(self, lines: Iterable[MapLine]) -> None:
        """Take lines that the runtime has written since."""
        mark = f"[{self._assembly.name}] "
        for line in lines:
            self._lines_seen += 1
            name, _, tier = line.symbol.rpartition("[")
            tier = tier.removesuffix("]")
            before = self._names.get(line.start)
            if before is not None and before != name:  # the memory has other code now
                self._begins[self._names.pop(line.start)].remove(line.start)
            if mark not in line.symbol.partition("(")[0] or tier not in TIERS:
                continue
            if before != name:
                self._take(line.symbol, line.start)
                self._names[line.start] = name
                self._begins.setdefault(name, []).append(line.start)
            # Earlier methods are listed by address when the map begins, not by age.
            self._order[line.start] = TIERS[tier], self._lines_seen
            self._ends[line.start] = line.start + line.size

    def versions(self, address: int) -> list[int]:
        """Where all code begins of the method that has code at ``address``; the newest first.

        Empty where another method has that memory now. An address where no code has begun stays.
        """
        if address not in self._order:
            return [address]
        begins = self._begins.get(self._names.get(address, ""), [])
        return sorted(begins, key=self._order.__getitem__, reverse=True)

    def entry(self, method: int) -> int | None:
        """Where the newest code of a method begins, by its row; None where it has none."""
        begins = [one for one in self.begins(method) if one in self._names]
        return max(begins, key=self._order.__getitem__, default=None)

    def end(self, address: int) -> Address:
        """The address behind the code of a method."""
        return Address(self._ends[address])
