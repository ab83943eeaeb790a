"""A Go program without debug information as a :class:`~fetchc.program.protocol.Program`.

Its functions are in the table that the run time prints tracebacks from, its types in the
descriptors that the run time needs. Without debug information the file does not describe
parameters, results and their types, variables, source lines, and types that no value of the
program is allocated or converted as.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.dwarf_facts import DwarfEvidence, DwarfGo
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.debuginfo.dwarf.go_name_lookup import escaped, package_of, unescaped
from fetchc.debuginfo.dwarf.subprograms import LOCAL
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.environment import DEFAULT
from fetchc.debuginfo.go.moduledata import Memory, module, supported_version
from fetchc.debuginfo.go.pclntab import function_table
from fetchc.debuginfo.go.rtype_names import FIRST, Shapes, descriptor_of, label, linker_name, named
from fetchc.debuginfo.go.rtypes import Descriptors
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.compiler import compiler_of
from fetchc.program.entities import AtAddress, Function, RuntimeType, Variable
from fetchc.program.types import IntType, Member, StructType
from fetchc.quantities import Address, ByteOffset, ByteSize, DieOffset
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.environment import Environment
    from fetchc.debuginfo.go.pclntab import FunctionTable, Row
    from fetchc.program.entities import Place
    from fetchc.program.protocol import Program, RuntimeTypes
    from fetchc.program.types import Type
    from fetchc.quantities import TypeId

__all__ = ["StrippedGoProgram", "stripped_go"]

LANGUAGE = "go"
# What compiled a function. The file does not say which calling convention assembly follows.
COMPILER, ASSEMBLY = "Go cmd/compile", "Go cmd/asm"
ABI0 = ".abi0"  # the linker's mark of the stack convention, in symbols only
_MODULE = "runtime.firstmoduledata"


def stripped_go(
    path: str, architecture: str, environment: Environment = DEFAULT
) -> StrippedGoProgram | None:
    """A file without debug information as a program of Go; None where it is none.

    DebugInfoError FC0904 where its table of functions is damaged.
    """
    functions = function_table(Memory(Elf(path, environment=environment), architecture))
    return None if functions is None else StrippedGoProgram(path, functions, environment)


class StrippedGoProgram(DwarfProgram):
    """What the run time knows, in the place of debug information."""

    __slots__ = ("_shapes", "_table")

    def debug_info_advice(self) -> tuple[tuple[str, ...], str]:
        """Go keeps it in the program, so no debug file is named."""
        return (), "link the program with its debug information: without `-w` in `-ldflags`"

    def __init__(self, path: str, functions: FunctionTable, environment: Environment) -> None:
        super().__init__(path, environment=environment)
        self._table = functions
        self._shapes: Shapes | None = None

    @property
    def evidence(self) -> StrippedGoEvidence:
        """What code and symbols say."""
        return StrippedGoEvidence(self)

    @property
    def go(self) -> RuntimeFacts:
        """What its descriptors of types say."""
        return RuntimeFacts(self)

    @property
    def has_debug_info(self) -> bool:
        """Whether types can be asked for: the run time's."""
        return True

    def functions_named(self, name: str) -> tuple[Function, ...]:
        """Every function of that name, else what symbols and debug information have: code of C."""
        for spelling in escaped(name):
            rows = self._table.named(spelling)
            if rows:
                return tuple([self._function(row) for row in rows])
        found = []
        for one in super().functions_named(name):
            row = self._table.beginning_at(one.address)
            found.append(one if row is None else self._function(row))
        return tuple(found)

    def function_at(self, address: Address) -> Function | None:
        """The function whose code holds ``address``."""
        row = self._table.at(address)
        return super().function_at(address) if row is None else self._function(row)

    def function_names(self) -> Iterator[str]:
        """Names of all functions of Go, then of others that have a symbol."""
        yield from self._table.every_name()
        for symbol in self._elf.function_symbols():
            begins = self._table.begins(symbol.address)  # nearly all do, and that is soon known
            if not begins and self._table.at(symbol.address) is None:
                yield symbol.name

    def _function(self, row: Row) -> Function:
        version = supported_version(self._table.memory)
        first = table("runtime/go/program")["registers"].get(self.architecture)
        registers = first is not None and version.minor >= first
        # Symbols tell which convention assembly follows, but for functions of one file.
        symbols = self._elf.symbols_at(row.address)
        own_symbols = [one for one in symbols if one.name.removesuffix(ABI0) == row.name]
        own = not own_symbols or (
            own_symbols[0].binding == LOCAL and not own_symbols[0].name.endswith(ABI0)
        )
        assembly = own and self._table.is_assembly(row)
        tool = ASSEMBLY if assembly else COMPILER
        return Function(
            unescaped(row.name),
            own_symbols[0].name if own_symbols else row.name,
            row.address,
            ByteSize(self._table.size(row)),
            None,
            LANGUAGE,
            compiler_of(f"{tool} {version.text}{'; regabi' if registers else ''}"),
            True,
        )

    def main_language(self) -> str:
        """Go: there is a table of its functions."""
        return LANGUAGE

    @property
    def _runtime_shapes(self) -> Shapes:
        if self._shapes is None:
            memory = self._table.memory
            found = Descriptors(memory, module(self._table), supported_version(memory))
            self._shapes = Shapes(found, self._types)
        return self._shapes

    def type(self, type_id: TypeId) -> Type:
        """The type itself, by its descriptor."""
        return self._runtime_shapes.type(type_id) if type_id >= FIRST else super().type(type_id)

    def completed(self, type_id: TypeId) -> TypeId:
        """Itself: descriptors are complete; of C the definition."""
        return type_id if type_id >= FIRST else super().completed(type_id)

    def types_named(self, name: str, function: Function | None) -> tuple[TypeId, ...]:
        """The types of that name that the run time has a descriptor of; in C code those of C."""
        if function is not None and function.language != LANGUAGE:
            return super().types_named(name, function)
        package = "" if function is None else package_of(function.symbol)
        return tuple(dict.fromkeys(named(self._runtime_shapes, name, package)))

    def type_names(self) -> Iterator[str]:
        """Names of the types that have one and can be reached."""
        shapes = self._runtime_shapes
        for one in shapes.descriptors.every():
            if one.named:
                yield shapes.name(one)

    def global_variables(
        self, name: str, function: Function | None, loosely: bool = False
    ) -> tuple[Variable, ...]:
        """The C variables of that name; for Go only ``runtime.firstmoduledata``."""
        if name != _MODULE:
            return super().global_variables(name, function, loosely) if self._info.present else ()
        found = module(self._table)
        word = self.intern(IntType("uintptr", ByteSize(self.word_bytes), False))
        offset = ByteOffset(found.types_word * self.word_bytes)
        size = ByteSize(offset + self.word_bytes)
        struct = StructType(_MODULE, "struct", size, (Member("types", word, offset),))
        place = DieOffset(FIRST + found.address)
        return (Variable(name, self.intern(struct), "global", place, 0),)

    def place(self, variable: Variable, function: Function | None, address: Address) -> Place:
        """Where :meth:`global_variables` said: the variable's ``die`` has its address."""
        if variable.die < FIRST:
            return super().place(variable, function, address)
        return AtAddress(Address(variable.die - FIRST))


class StrippedGoEvidence(DwarfEvidence):
    """What code and symbols say, without debug information."""

    __slots__ = ()

    def lacks_code(self, name: str) -> bool:
        """False: the run time lists code alone."""
        return False

    def may_be_copied(self, variable: Variable, address: Address) -> bool:
        """False for the run time's own variables."""
        return variable.name != _MODULE and super().may_be_copied(variable, address)


class RuntimeFacts(DwarfGo):
    """What the descriptors of the runtime answer as :class:`~fetchc.program.protocol.GoFacts`."""

    __slots__ = ("_stripped",)

    def __init__(self, program: StrippedGoProgram) -> None:
        super().__init__(program)
        self._stripped = program

    def packages_called(self, name: str) -> tuple[str, ...]:
        """Import paths of the packages whose types the run time knows by that beginning."""
        try:
            descriptors = self._stripped._runtime_shapes.descriptors
            types = [
                one for one in descriptors.every() if one.named and one.name.startswith(f"{name}.")
            ]
        except DebugInfoError:
            return ()  # damaged types: functions have their names all the same
        return tuple(dict.fromkeys(package_of(linker_name(descriptors, one)) for one in types))

    def runtime_types(self) -> RuntimeTypes:
        """What Go's run time knows of the types."""
        return _ByAddress(self._stripped._runtime_shapes)


class _ByAddress:
    """Descriptors by type and by their distance from the first."""

    __slots__ = ("_shapes",)

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes

    def of(self, type_id: TypeId) -> RuntimeType | None:
        """The descriptor of a type; None where the program has none of it."""
        descriptors = self._shapes.descriptors
        if type_id >= FIRST:
            return self.at(type_id - FIRST - descriptors.start)
        found = descriptor_of(self._shapes, self._shapes.type(type_id))
        return None if found is None else self.at(found.address - descriptors.start)

    def at(self, offset: int) -> RuntimeType | None:
        """The descriptor ``offset`` bytes from the first one, None where there is none."""
        descriptors = self._shapes.descriptors
        try:
            found = descriptors.at(descriptors.start + offset)
        except DebugInfoError:
            return None
        return RuntimeType(found.name, offset, found.direct)

    def label(self, offset: int) -> str | None:
        """The name of the type there, with import paths where it would mean several."""
        descriptors = self._shapes.descriptors
        try:
            return label(descriptors, descriptors.at(descriptors.start + offset), lambda name: ())
        except DebugInfoError:
            return None

    def methods(self, offset: int) -> frozenset[str]:
        """Names of the methods of the type there, and of pointers to it."""
        descriptors = self._shapes.descriptors
        try:
            return descriptors.methods(descriptors.start + offset)
        except DebugInfoError:
            return frozenset()


if TYPE_CHECKING:

    def _is_program(opened: StrippedGoProgram) -> Program:
        return opened
