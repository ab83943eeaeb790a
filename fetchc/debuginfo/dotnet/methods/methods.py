"""Methods of an assembly by the names that people write, and which of them have code."""

from __future__ import annotations

from fetchc.debuginfo.dotnet.metadata.signatures import Defined, Generic, Primitive
from fetchc.debuginfo.dotnet.metadata.spelling import holder_spelled, open_spelled
from fetchc.debuginfo.dotnet.metadata.written_names import (
    Written,
    arguments_fit,
    parameters_fit,
    without_arguments,
    written,
)
from fetchc.debuginfo.dotnet.methods.instances import generic_code
from fetchc.debuginfo.dotnet.methods.mono import MonoCode
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly
    from fetchc.debuginfo.dotnet.metadata.signatures import Signature

__all__ = ["Method", "Methods"]

CANON = Primitive("__Canon")  # all classes, which share code
_DEEPEST = 100  # namespaces and types in front of a method's name
ACCESSORS = ("get_", "set_", "add_", "remove_")  # of properties and events


class Method(Record):
    """A method with code: its row, and of an instantiation the types for its parameters.

    ``name`` is without parameters, ``symbol`` with them, as maps have it ``in_map``.
    ``function`` is the piece of code.
    """

    row: int
    owner: int
    name: str
    symbol: str
    in_map: str
    function: int
    of_type: tuple[Signature, ...] = ()
    of_method: tuple[Signature, ...] = ()


class Methods:
    """The methods of one assembly."""

    __slots__ = ("_assembly", "_found", "_spelled")

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._found: dict[str, list[Method]] = {}
        self._spelled: dict[tuple[int, Sequence[str], Sequence[str]], str] = {}

    def types(self, parts: Sequence[str]) -> list[int]:
        """Rows of the types that a written name, or the end of a whole one, can mean."""
        if not parts:
            return []
        plain = [without_arguments(part).partition("`")[0] for part in parts]
        wanted = ".".join(plain)
        called = self._assembly.types_called(plain[-1], b"\0`")
        names = {row: holder_spelled(self._assembly.type_name(row), ()) for row in called}
        exact = [row for row, name in names.items() if name == wanted]
        return exact or [row for row, name in names.items() if name.endswith("." + wanted)]

    def called(self, name: str) -> list[int]:
        """Rows of all methods, with code or without, that a written name can mean."""
        asked = written(name)
        plain = without_arguments(asked.method)
        if not asked.types:
            offsets = self._assembly.metadata.names_at(plain)
            rows = self._assembly.metadata.rows("MethodDef")
            return [number for number, row in enumerate(rows, 1) if row[3] in offsets]
        if len(asked.types) > _DEEPEST:
            return []
        # A method that implements an interface explicitly has the interface's name in its own.
        for cut in range(len(asked.types), 0, -1):
            known = {
                method: self._assembly.method_name(method)
                for row in self.types(asked.types[:cut])
                for method in self._assembly.methods(row)
            }
            own = ".".join([*asked.types[cut:], plain])
            accessors = [prefix + own for prefix in ACCESSORS]
            found = [method for method, name in known.items() if name == own]
            found = found or [method for method, name in known.items() if name in accessors]
            found = found or [at for at, name in known.items() if name.endswith(f".{own}")]
            if found:
                return found
        return []

    def named(self, name: str) -> list[Method]:
        """The methods with code that a written name can mean."""
        known = self._found.get(name)
        if known is None:
            known = self._found[name] = self._named(written(name), self.called(name))
        return known

    def _named(self, asked: Written, rows: list[int]) -> list[Method]:
        if asked.parameters is not None:
            count = len(asked.parameters)
            signature = self._assembly.method_signature
            rows = [row for row in rows if len(signature(row).parameters) == count]
        found: list[Method] = []
        generic = set()
        for row in rows:
            if self._is_generic(row):
                generic.add(row)
            else:
                found += self._plain(row)
        if generic:
            found += self.instantiated(generic)
            found = [one for one in found if arguments_fit(one.symbol, asked)]
        if asked.parameters is None:
            return found
        # `M(int)` and `M(ref int)` are two methods; which of them has code does not matter.
        exact = {row for row in rows if parameters_fit(self.symbol(row), asked.parameters)}
        exact |= {one.row for one in found if parameters_fit(one.symbol, asked.parameters)}
        if exact:
            return [one for one in found if one.row in exact]
        return [
            one for one in found if parameters_fit(one.symbol.replace("&", ""), asked.parameters)
        ]

    def shared_by(self, name: str, is_class: Callable[[str], bool]) -> list[Method]:
        """The code of all classes that a name with a class in it means."""
        asked = written(name)
        generic = {row for row in self.called(name) if self._is_generic(row)}
        found = list(self.instantiated(generic)) if generic else []
        return [one for one in found if arguments_fit(one.symbol, asked, is_class)]

    def overloads(self, name: str) -> list[int]:
        """Of the rows that ``called`` tells, those with the parameters that are written."""
        wanted = written(name).parameters
        return [
            row
            for row in self.called(name)
            if wanted is None or parameters_fit(self.symbol(row), wanted)
        ]

    def _is_generic(self, row: int) -> bool:
        assembly = self._assembly
        owner = assembly.owner(row)
        return bool(
            assembly.type_parameters_of("TypeDef", owner)
            or assembly.type_parameters_of("MethodDef", row)
        )

    def _plain(self, row: int) -> list[Method]:
        native = self._assembly.native
        index = None if native is None else native.entry(row)
        if index is None:
            return []
        return [self._made(row, self._assembly.owner(row), index, (), ())]

    def every(self) -> Iterator[Method]:
        """All methods with code."""
        native = self._assembly.native
        if native is None:
            return
        owners = self._owners()
        found: dict[str, list[Method]] = {}
        for row, index in sorted(native.entries()):
            one = self._made(row, owners[row], index, (), ())
            found.setdefault(one.symbol, []).append(one)
            yield one
        for one in self.instantiated(owners=owners):
            found.setdefault(one.symbol, []).append(one)
            yield one
        self._found |= found  # who goes through all asks for many of them by name

    def _owners(self) -> list[int]:
        # The type of each method, by its row.
        assembly, found = self._assembly, [0] * (self._assembly.metadata.count("MethodDef") + 1)
        for owner in range(1, assembly.metadata.count("TypeDef") + 1):
            for row in assembly.methods(owner):
                found[row] = owner
        return found

    def instantiated(
        self, rows: Collection[int] = (), owners: Sequence[int] = ()
    ) -> Iterator[Method]:
        """The instantiations of generic methods, of all or of these ``rows``.

        Of each the code, not stubs that lead to it. ``owners`` are types of methods, if known.
        """
        count = self._assembly.metadata.count("MethodDef")
        for one in generic_code(self._assembly, rows):
            of_type: tuple[Signature, ...] = ()
            if isinstance(one.owner, Generic):
                if not isinstance(one.owner.of, Defined) or one.owner.of.token.table != "TypeDef":
                    continue
                of_type = one.owner.arguments
            if one.unboxing or not 0 < one.method <= count:
                continue
            owner = owners[one.method] if owners else self._assembly.owner(one.method)
            yield self._made(one.method, owner, one.function, of_type, one.arguments)
        yield from self._shared(rows or range(1, count + 1))

    def _shared(self, rows: Iterable[int]) -> Iterator[Method]:
        # Mono's instantiations for all classes: the symbols say of no other one what it is.
        native, names = self._assembly.native, self._assembly.type_parameters_of
        if not isinstance(native, MonoCode):
            return
        for row in rows:
            function = native.shared(row)
            if function is not None:
                owner = self._assembly.owner(row)
                of_type = (CANON,) * len(names("TypeDef", owner))
                of_method = (CANON,) * len(names("MethodDef", row))
                yield self._made(row, owner, function, of_type, of_method)

    def symbol(self, row: int) -> str:
        """The name of a method with its parameters, whether it has code or not."""
        return self._made(row, self._assembly.owner(row), 0, (), ()).symbol

    def _made(
        self,
        row: int,
        owner: int,
        function: int,
        of_type: tuple[Signature, ...],
        of_method: tuple[Signature, ...],
    ) -> Method:
        assembly = self._assembly
        types = tuple([open_spelled(assembly, one, (), ()) for one in of_type])
        methods = tuple([open_spelled(assembly, one, (), ()) for one in of_method])
        columns = assembly.metadata.row("MethodDef", row)
        short = assembly.metadata.text(columns[3])
        if methods:
            short += f"<{', '.join(methods)}>"
        holder = holder_spelled(assembly.type_name(owner), types)
        name = f"{holder}.{short}"
        key = (columns[4], types, methods)  # methods that take the same share a signature
        inside = self._spelled.get(key)
        if inside is None:
            signature = assembly.method_signature(row)
            words = [open_spelled(assembly, one, types, methods) for one in signature.parameters]
            inside = self._spelled[key] = ", ".join(words)
        symbol, in_map = f"{name}({inside})", f"{holder}::{short}({inside})"
        return Method(row, owner, name, symbol, in_map, function, of_type, of_method)
