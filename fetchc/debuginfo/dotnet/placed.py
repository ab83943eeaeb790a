"""What is known of variables inside of precompiled methods, as answers of a Program.

At a method's first instruction its parameters are where the calling convention puts them; behind
it the image's own debug information says where variables are.
"""

from __future__ import annotations

from fetchc.debuginfo.dotnet.image.ready_to_run import ReadyToRun
from fetchc.debuginfo.dotnet.methods.parameters import CONTEXT
from fetchc.debuginfo.dotnet.types.statics import static_fields, static_place
from fetchc.debuginfo.without_dwarf import Plain
from fetchc.program.entities import Absent, Variable
from fetchc.program.types import PointerType, SequenceType, StructType
from fetchc.quantities import DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.debug.method_debug import MethodDebug
    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly
    from fetchc.debuginfo.dotnet.methods.methods import Method
    from fetchc.debuginfo.dotnet.types.types import DotnetTypes
    from fetchc.program.entities import Extent, Function, Place
    from fetchc.program.protocol import CodeMap
    from fetchc.quantities import Address

__all__ = ["Placed"]

STATIC = 1 << 96  # in the number of a variable: it is a static field, by its row


class Placed(Plain):
    """A base of the Program of an assembly, which has its methods, types and parameters."""

    __slots__ = ("_assembly", "_described")

    _assembly: Assembly
    _described: MethodDebug | None

    if TYPE_CHECKING:

        @property
        def _types(self) -> DotnetTypes: ...

        def _method(self, function: Function) -> Method: ...

        def _arguments(self, method: Method) -> tuple[tuple[int, ...], tuple[int, ...]]: ...

        def parameters(self, function: Function) -> tuple[Variable, ...]:
            """Those of the method."""

    @property
    def _debug(self) -> MethodDebug | None:
        native = self._assembly.native
        if self._described is None and isinstance(native, ReadyToRun):
            from fetchc.debuginfo.dotnet.debug.method_debug import MethodDebug

            self._described = MethodDebug(self._assembly, native, self._method)
        return self._described

    def variables(self, function: Function, address: Address) -> tuple[Variable, ...]:
        """The parameters, and locals that a PDB beside the image or inside has names of."""
        parameters, debug = self.parameters(function), self._debug
        if debug is None or function.die is None:
            return parameters
        method, found = self._method(function), []
        arguments = self._arguments(method)
        named = debug.locals(method, address - function.address)
        kinds = debug.local_types(method) if named else ()
        for one in named:
            if one.slot < len(kinds):
                kind = self._types.closed.close(self._assembly, kinds[one.slot], *arguments)
                at = DieOffset(function.die << 16 | len(parameters) + one.slot)
                found.append(Variable(one.name, self._types.variable(kind), "local", at, 0))
        return (*found, *parameters)

    def global_variables(
        self, name: str, function: Function | None, loosely: bool = False
    ) -> tuple[Variable, ...]:
        """Static fields and constants: ``Type.Field``, inside of a type's methods ``Field``."""
        owner = self._method(function).owner if function is not None and function.die else 0
        found = []
        for row, field in static_fields(self._assembly, name, owner):
            if self._assembly.type_parameters(row):
                continue  # each instantiation has its own
            kind = self._types.closed.close(self._assembly, self._assembly.field_type(field))
            at = DieOffset(STATIC | field)
            found.append(Variable(name, self._types.variable(kind), "global", at, 0))
        return tuple(found)

    def place(self, variable: Variable, function: Function | None, address: Address) -> Place:
        """Where the image says so; at the first instruction the calling convention does."""
        if variable.die & STATIC:
            return static_place(self._assembly, variable.die & ~STATIC)
        if self._debug is None or function is None:
            what = "nothing says where it is behind the method's first instruction"
            return Absent("FC0401", what)
        if address == function.address:
            return Absent("FC0401", "it is a local variable, and no statement has run at the entry")
        number, size = self._number(variable, function), self._bytes(variable)
        behind = address - function.address
        return self._debug.place(self._method(function), number, size, behind)

    def extents(self, variable: Variable, function: Function | None) -> tuple[Extent, ...]:
        """Where the image says that a variable is, behind the method's first instructions."""
        if self._debug is None or function is None or variable.die & STATIC:
            return ()
        number, size = self._number(variable, function), self._bytes(variable)
        return self._debug.extents(self._method(function), number, size)

    def _number(self, variable: Variable, function: Function) -> int:
        # As the image counts: parameters that are declared, then locals; hidden ones do not count.
        at = variable.die & 0xFFFF
        hidden = [one.name for one in self.parameters(function)[: at + 1]].count(CONTEXT)
        return -1 if variable.name == CONTEXT else at - hidden

    def _bytes(self, variable: Variable) -> int | None:
        made = self._types.type(variable.type)
        return made.size if isinstance(made, StructType | SequenceType | PointerType) else 8

    def code_map(self) -> CodeMap | None:
        """The lines of a PDB; None without one."""
        return None if self._debug is None else self._debug.code_map()

    def source_line(self, function: Function) -> str | None:
        """``Program.cs:12``, where a PDB says so."""
        return None if self._debug is None else self._debug.source_line(function)
