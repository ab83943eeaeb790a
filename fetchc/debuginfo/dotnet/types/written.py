"""The types that a written name means: ``int``, ``Ns.Type``, ``List<string>``, ``byte[]``."""

from __future__ import annotations

from fetchc.debuginfo.dotnet.metadata.written_names import desugared, made_name, split_outside
from fetchc.debuginfo.dotnet.methods.methods import Methods
from fetchc.debuginfo.dotnet.types.closed import Code, Instance, Items, Link
from fetchc.debuginfo.dotnet.types.numbers import NUMBERS
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly
    from fetchc.debuginfo.dotnet.types.types import DotnetTypes
    from fetchc.quantities import TypeId

__all__ = ["WrittenTypes"]

DEEPEST = 16
IN_ONE_TUPLE = 7  # elements of a ValueTuple


class WrittenTypes(Record):
    """Looks names up in an assembly first, then in the runtime's core library, in the assemblies
    that it refers to, and in all those of ``folders``: what a library is given is of its caller.
    """

    types: DotnetTypes
    assembly: Assembly
    folders: tuple[str, ...] = ()

    def named(self, name: str) -> tuple[TypeId, ...]:
        """The objects of that type, more than one where the name is not whole."""
        return tuple([self.types.object(one) for one in self._named(name.strip(), 0)])

    def _named(self, name: str, depth: int) -> list[int]:
        closed = self.types.closed
        if depth > DEEPEST or not name:
            return []
        if name.endswith("]"):
            # Of several brackets the last are those of the innermost array, as in C#.
            start = name.find("[", max(name.rfind(">"), name.rfind(")")) + 1)
            commas_of = name[start + 1 : -1].split("][")
            if start < 0 or any(one.strip(", ") for one in commas_of):
                return []
            ranks = [one.count(",") for one in commas_of]
            found = self._named(name[:start].strip(), depth + 1)
            for commas in reversed(ranks):
                found = [closed.number(Items(one, commas and commas + 1)) for one in found]
            return found
        if name.endswith("?") or name.startswith("("):
            return self._named(desugared(name), depth + 1)
        if name.endswith("*"):
            found = self._named(name[:-1].strip(), depth + 1)
            return [closed.number(Link("pointer", one)) for one in found]
        if name in NUMBERS:
            return [closed.number(Code(name))]
        if name in ("string", "object"):
            return [closed.code(name)]
        if name == "decimal":
            name = "System.Decimal"  # the one keyword of C# that has no code in signatures
        arguments: list[int] = []
        parts = split_outside(name.replace("+", "."), ".")
        for part in parts:
            _, opened, inside = part[len(made_name(part)) :].partition("<")
            if opened:
                for one in split_outside(inside.rpartition(">")[0], ","):
                    found = self._named(one, depth + 1)
                    if len(found) != 1:
                        return []
                    arguments += found
        plain = parts[-1].partition("<")[0]
        if plain == "Nullable" and len(arguments) == 1 and self.types.is_reference(arguments[0]):
            return arguments  # `string?` says nothing about the type
        if plain == "ValueTuple" and len(arguments) > IN_ONE_TUPLE and not self._nests(arguments):
            # The elements behind the seventh are in a tuple of their own.
            words = [closed.spelled(one) for one in arguments]
            rest = ", ".join(words[IN_ONE_TUPLE:])
            first = ", ".join(words[:IN_ONE_TUPLE])
            whole = f"System.ValueTuple<{first}, System.ValueTuple<{rest}>>"
            return self._named(whole, depth + 1)
        given = tuple(arguments)
        defined = next(self._defining(parts, len(given)), None)
        if defined is None:
            others = dict.fromkeys(closed.references.within(self.folders))
            defined = [each for one in others for each in _called(one, parts, len(given))]
        return [closed.number(Instance(assembly, row, given)) for assembly, row in defined]

    def _nests(self, arguments: list[int]) -> bool:
        last = self.types.closed.spelled(arguments[-1])
        return len(arguments) == IN_ONE_TUPLE + 1 and last.startswith("System.ValueTuple<")

    def _defining(self, parts: list[str], arity: int) -> Iterator[list[tuple[Assembly, int]]]:
        # What each assembly in question has of them, those first that are meant before others.
        references = self.types.closed.references
        for assembly in (self.assembly, references.core()):
            if found := _called(assembly, parts, arity):
                yield found
        for assembly in references.referred(self.assembly):
            if found := _called(assembly, parts, arity):
                yield found
            # What it only stands for, as System.Runtime does, is elsewhere.
            whole = ".".join(parts)
            if moved := assembly.forwarded(whole):
                defining, row = references.type_named(moved, whole)
                yield [(defining, row)]


def _called(assembly: Assembly, parts: list[str], arity: int) -> list[tuple[Assembly, int]]:
    # Its types that a written name, or the end of a whole one, can mean.
    rows = Methods(assembly).types(parts)
    return [(assembly, row) for row in rows if assembly.type_parameters(row) == arity]
