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
    Generic,
    Primitive,
    open_spelled,
    token_name,
)
from fetchc.debuginfo.dotnet.metadata_tables import Token
from fetchc.debuginfo.dotnet.method_code import CodeByMap
from fetchc.debuginfo.dotnet.mono_aot import CANON
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

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

    __slots__ = (
        "_assemblies_with", "_begins", "_ends", "_lines_seen", "_names", "_order", "_structures",
    )  # fmt: skip

    def __init__(
        self,
        assembly: Assembly,
        lines: Iterable[MapLine],
        assemblies_with: Callable[[str], Collection[str]],
    ) -> None:
        """``assemblies_with`` gives the assemblies of the process that define a type, by name."""
        super().__init__(assembly)
        self._assemblies_with = assemblies_with
        self._structures: dict[str, Defined | None] = {}
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

        A line does not have the type arguments of a method: such code is left out.
        """
        assembly = self._assembly
        if assembly.type_parameters_of("MethodDef", method):
            return
        count = len(assembly.type_parameters_of("TypeDef", assembly.owner(method)))
        for given, begins in self._instantiated(method).items():
            arguments = self._arguments(given)
            if arguments is not None and len(arguments) == count:
                yield arguments, (), max(begins, key=self._order.__getitem__)

    def _instantiated(self, method: int) -> dict[str, list[int]]:
        # Where code of a generic type's method begins, by the type arguments of its lines.
        lines = [one for one in self.lines(method) if one[0] and one[2] in self._names]
        if not lines:
            return {}
        assembly, found = self._assembly, dict[str, list[int]]()
        names = assembly.type_parameters_of("TypeDef", assembly.owner(method))
        marks = [f"!{at}" for at in range(len(names))]
        parameters = assembly.method_signature(method).parameters
        inside = ", ".join([open_spelled(assembly, one, marks, ()) for one in parameters])
        for given, wanted, begin in lines:
            if parameters_fit(f"({inside})", wanted):
                found.setdefault(given, []).append(begin)
        return found

    def _arguments(self, given: str) -> Arguments | None:
        # Types by their names in a line, None where one of them is not certain.
        found = [self._argument(one) for one in split_outside(given, ",")]
        known = tuple([one for one in found if one is not None])
        return known if len(known) == len(found) else None

    def _argument(self, name: str) -> Signature | None:
        # A structure or enumeration, a number, or any class: `System.__Canon`.
        short = name.removeprefix("System.")
        word = CANON.name if short == CANON.name else KNOWN_AS.get(short, "")
        if short != name and word in PRIMITIVES.values():
            return Primitive(word)
        whole, bracket, inside = name.partition("[")
        of = self._structure(whole)
        if of is None or not bracket:
            return of
        arguments = self._arguments(inside.removesuffix("]"))
        return None if arguments is None else Generic(of, arguments)

    def _structure(self, name: str) -> Defined | None:
        # A line does not say which assembly a type is of: only one of the process may define it,
        # and this one has to define it or refer to it.
        if name not in self._structures:
            found = self._token(name)
            certain = found is not None and len(self._assemblies_with(name)) == 1
            self._structures[name] = Defined(found, True) if found and certain else None
        return self._structures[name]

    def _token(self, name: str) -> Token | None:
        assembly = self._assembly
        if row := assembly.type_named(name):
            return Token("TypeDef", row)
        for row in range(1, assembly.metadata.count("TypeRef") + 1):
            if token_name(assembly, "TypeRef", row) == name:
                return Token("TypeRef", row)
        return None

    def why_unknown(self, method: int) -> str:
        """That it was not compiled, or what the map does not say of its code."""
        if self._assembly.type_parameters_of("MethodDef", method):
            begins = [f"{begin:#x}" for *_, begin in self.lines(method) if begin in self._names]
            if begins:
                return (
                    "the perf map does not have a method's type arguments, which decide where its "
                    f"parameters are; registers are at `--at {' or '.join(begins)}`"
                )
        given = self._instantiated(method)
        unknown = [f"`{one}`" for one in given if self._arguments(one) is None]
        if unknown:
            return f"which assembly has its type arguments is not certain: {', '.join(unknown)}"
        if given:
            return f"it is compiled for other types: {', '.join(f'`{one}`' for one in given)}"
        return "the process has not compiled it: nobody called it, or its callers have it inlined"

    def end(self, address: int) -> Address:
        """The address after the code of a method."""
        return Address(self._ends[address])
