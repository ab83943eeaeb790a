"""Methods that the runtime compiled while a process runs, by the perf map that it writes.

A line ends with the tier of the code. A method is compiled again when it was called often, and both
pieces stay: the newest one is what calls reach.

Source: dotnet/runtime, src/coreclr/vm/perfmap.cpp (PerfMap::LogJITCompiledMethod) and
src/coreclr/vm/prestub.cpp (PrepareCodeConfig::GetJitOptimizationTierStr); maps of .NET 3.1 and 9.
"""

from __future__ import annotations

from fetchc.debuginfo.dotnet.csharp_names import (
    KNOWN_AS,
    map_line_parts,
    parameters_fit,
    split_outside,
)
from fetchc.debuginfo.dotnet.metadata_signatures import (
    PRIMITIVES,
    Defined,
    Primitive,
    open_spelled,
)
from fetchc.debuginfo.dotnet.metadata_tables import Token
from fetchc.debuginfo.dotnet.method_code import CodeByMap
from fetchc.debuginfo.dotnet.mono_aot import CANON
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fetchc.debuginfo.dotnet.assemblies import Assembly
    from fetchc.debuginfo.dotnet.metadata_signatures import Signature
    from fetchc.debuginfo.perf_map_format import MapLine

    Arguments = tuple[Signature, ...]

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
        for line in lines:
            self._lines_seen += 1
            name, _, tier = line.symbol.rpartition("[")
            tier = tier.removesuffix("]")
            before = self._names.get(line.start)
            if before is not None and before != name:  # the memory has other code now
                self._begins[self._names.pop(line.start)].remove(line.start)
            if tier not in TIERS or map_line_parts(line.symbol)[0] != self._assembly.name:
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

    def instantiations(self, method: int) -> Iterator[tuple[Arguments, Arguments, int]]:
        """Code of a generic type's methods, by the type arguments that the lines have.

        Of those that are ``__Canon`` (any class), numbers, and types of the assembly itself. A line
        does not have the type arguments of a method, so that such code is nobody's.
        """
        lines, assembly = self.lines(method), self._assembly
        if not lines or assembly.type_parameters_of("MethodDef", method):
            return
        names = assembly.type_parameters_of("TypeDef", assembly.owner(method))
        marks = [f"!{at}" for at in range(len(names))]
        parameters = assembly.method_signature(method).parameters
        inside = ", ".join([open_spelled(assembly, one, marks, ()) for one in parameters])
        found: dict[str, list[int]] = {}
        for given, wanted, begin in lines:
            if begin in self._names and parameters_fit(f"({inside})", wanted):
                found.setdefault(given, []).append(begin)
        for given, begins in found.items():
            arguments = [self._argument(one) for one in split_outside(given, ",")]
            known = tuple([one for one in arguments if one is not None])
            if len(known) == len(names) == len(arguments):
                yield known, (), max(begins, key=self._order.__getitem__)

    def _argument(self, name: str) -> Signature | None:
        short = name.removeprefix("System.")
        if short != name and "." not in short:
            word = CANON.name if short == CANON.name else KNOWN_AS.get(short, "")
            return Primitive(word) if word in PRIMITIVES.values() else None
        row = self._assembly.type_named(name)
        return Defined(Token("TypeDef", row), True) if row else None

    def end(self, address: int) -> Address:
        """The address behind the code of a method."""
        return Address(self._ends[address])
