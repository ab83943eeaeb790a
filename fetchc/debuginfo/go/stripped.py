"""A Go program without debug information as a :class:`~fetchc.program.protocol.Program`.

Its functions are in the table that tracebacks are printed by, its types in the descriptors that the
run time needs. What nothing says without debug information: parameters, results and their types,
variables, source lines, and types that no value of the program is allocated or converted as.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.go_names import escaped, package_of, unescaped
from fetchc.debuginfo.elf import Elf
from fetchc.debuginfo.go.descriptors import Descriptors
from fetchc.debuginfo.go.functable import function_table
from fetchc.debuginfo.go.memory import Memory
from fetchc.debuginfo.go.module import known_version, module
from fetchc.debuginfo.go.shapes import Shapes
from fetchc.debuginfo.go.typesearch import descriptor_of, named
from fetchc.debuginfo.program import DwarfProgram
from fetchc.diag.errors import DebugInfoError
from fetchc.program.model import Function, RuntimeType, Variable
from fetchc.program.places import AtAddress
from fetchc.program.types import IntType, Member, StructType
from fetchc.target.load import table
from fetchc.units import Address, ByteOffset, ByteSize, DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.go.functable import FunctionTable, Row
    from fetchc.program.places import Place
    from fetchc.program.protocol import Program, RuntimeTypes
    from fetchc.program.types import Type
    from fetchc.units import TypeId

__all__ = ["StrippedGoProgram", "stripped_go"]

LANGUAGE = "go"
ASSEMBLY = "Go cmd/asm"  # the producer of functions that no compiler of Go made
_MODULE = "runtime.firstmoduledata"


def stripped_go(path: str, architecture: str) -> StrippedGoProgram | None:
    """A file without debug information as a program of Go; None where it is none.

    DebugInfoError FC0904 where its table of functions is damaged.
    """
    functions = function_table(Memory(Elf(path), architecture))
    return None if functions is None else StrippedGoProgram(path, functions)


class StrippedGoProgram(DwarfProgram):
    """What the run time knows, in the place of debug information."""

    __slots__ = ("_shapes", "_table")

    def __init__(self, path: str, functions: FunctionTable) -> None:
        super().__init__(path)
        self._table = functions
        self._shapes: Shapes | None = None

    @property
    def has_debug_info(self) -> bool:
        """Whether types can be asked for: the run time's."""
        return True

    def functions_named(self, name: str) -> tuple[Function, ...]:
        """Every function of that name, else what the symbol table has: code of C."""
        for spelling in escaped(name):
            rows = self._table.named(spelling)
            if rows:
                return tuple([self._function(row) for row in rows])
        known = super().functions_named(name)
        return tuple([one for one in known if self._table.at(one.address) is None])

    def function_at(self, address: Address) -> Function | None:
        """The function whose code holds ``address``."""
        row = self._table.at(address)
        return super().function_at(address) if row is None else self._function(row)

    def function_names(self) -> Iterator[str]:
        """Names of all functions of Go, then of others that have a symbol."""
        yield from self._table.every_name()
        for symbol in self._elf.function_symbols():
            if self._table.at(symbol.address) is None:
                yield symbol.name

    def _function(self, row: Row) -> Function:
        version = known_version(self._table.memory)
        assembly = self._table.is_assembly(row)
        maker = ASSEMBLY if assembly else "Go cmd/compile"
        first = table("runtime/go/program")["registers"].get(self.architecture)
        registers = first is not None and version.minor >= first
        return Function(
            unescaped(row.name),
            row.name,
            row.address,
            ByteSize(self._table.size(row)),
            None,
            LANGUAGE,
            f"{maker} {version.text}{'; regabi' if registers else ''}",
            True,
        )

    def is_inlined(self, function: Function) -> bool:
        """False: nothing says so without debug information."""
        return False

    def is_only_inlined(self, name: str) -> bool:
        """False: nothing says so without debug information."""
        return False

    def code_map(self) -> None:
        """None: lines and inlined calls are of the debug information."""

    def main_language(self) -> str:
        """Go: there is a table of its functions."""
        return LANGUAGE

    @property
    def _known(self) -> Shapes:
        if self._shapes is None:
            memory = self._table.memory
            found = Descriptors(memory, module(self._table), known_version(memory))
            self._shapes = Shapes(found, self._types)
        return self._shapes

    def type(self, type_id: TypeId) -> Type:
        """The type itself, by its descriptor."""
        return self._known.type(type_id)

    def completed(self, type_id: TypeId) -> TypeId:
        """Itself: descriptors are complete."""
        return type_id

    def types_named(self, name: str, function: Function | None) -> tuple[TypeId, ...]:
        """The types of that name that the run time has a descriptor of."""
        package = "" if function is None else package_of(function.symbol)
        return tuple(dict.fromkeys(named(self._known, name, package)))

    def type_names(self) -> Iterator[str]:
        """Names of the types that have one and can be reached."""
        known = self._known
        for one in known.descriptors.every():
            if one.named:
                yield known.name(one)

    def runtime_types(self) -> RuntimeTypes:
        """What Go's run time knows of the types."""
        return _ByAddress(self._known)

    def global_variables(self, name: str, function: Function | None) -> tuple[Variable, ...]:
        """Only the run time's description of the program is where it is found to be."""
        if name != _MODULE:
            return ()
        found = module(self._table)
        word = self.intern(IntType("uintptr", ByteSize(self.word_bytes), False))
        offset = ByteOffset(found.types_word * self.word_bytes)
        size = ByteSize(offset + self.word_bytes)
        made = StructType(_MODULE, "struct", size, (Member("types", word, offset),))
        return (Variable(name, self.intern(made), "global", DieOffset(found.address), 0),)

    def place(self, variable: Variable, function: Function | None, address: Address) -> Place:
        """Where :meth:`global_variables` said: the variable's ``die`` is its address."""
        return AtAddress(Address(variable.die))

    def may_be_copied(self, name: str, address: Address) -> bool:
        """False: nobody else has the run time's own variables."""
        return False


class _ByAddress:
    """Descriptors by type and by their distance from the first."""

    __slots__ = ("_shapes",)

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes

    def of(self, type_id: TypeId) -> RuntimeType | None:
        """The descriptor of a type; None where the program has none of it."""
        known = self._shapes.descriptors
        if type_id >= 0:
            return self.at(type_id - known.start)
        found = descriptor_of(self._shapes, self._shapes.type(type_id))
        return None if found is None else self.at(found.address - known.start)

    def at(self, offset: int) -> RuntimeType | None:
        """The descriptor ``offset`` bytes from the first one, None where there is none."""
        known = self._shapes.descriptors
        try:
            found = known.at(known.start + offset)
        except DebugInfoError:
            return None
        return RuntimeType(found.name, offset, found.direct)


if TYPE_CHECKING:

    def _is_program(opened: StrippedGoProgram) -> Program:
        return opened
