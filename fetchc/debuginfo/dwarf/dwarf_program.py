"""One ELF file with DWARF as a :class:`~fetchc.program.protocol.Program`.

Opening reads the ELF headers and nothing else. Every question goes to the module of
its concept (functions, variables, types, names); this one only holds them together and
owns what they cache. They are imported where they are used: a listing of symbols needs none.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.constants import DW_TAG_structure_type
from fetchc.debuginfo.dwarf.dwarf_facts import (
    DwarfCpp,
    DwarfEvidence,
    DwarfGo,
    ElfSymbols,
    in_kernel,
    store,
)
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.elf.headers import architecture_of
from fetchc.debuginfo.environment import DEFAULT
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address, DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.call_sites import CodeUses
    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import Die
    from fetchc.debuginfo.dwarf.type_entries import Reader, TypeTable
    from fetchc.debuginfo.environment import Environment
    from fetchc.debuginfo.separate.debug_file_search import Search
    from fetchc.program.entities import (
        AtAddress,
        Callers,
        Extent,
        Function,
        Indirect,
        Place,
        Variable,
    )
    from fetchc.program.protocol import CodeMap, Program, RuntimeTypes
    from fetchc.program.types import Type
    from fetchc.quantities import FileOffset, TypeId

__all__ = ["DwarfProgram"]

# Where NativeAOT puts methods: dotnet/runtime, src/coreclr/tools/aot/ILCompiler.Compiler.
MANAGED_CODE = "__managedcode"


class DwarfProgram:
    """Answers every question of :class:`~fetchc.program.protocol.Program`, lazily."""

    dotnet = None
    in_memory = False
    kernel = None  # tracepoints are described by BTF

    __slots__ = (
        "_bodies",
        "_callers",
        "_code_uses",
        "_constants",
        "_definitions",
        "_elf",
        "_functions",
        "_globals",
        "_interface_tables",
        "_language",
        "_parameters",
        "_read_info",
        "_read_types",
        "_runtime_types",
        "_visible",
        "architecture",
        "build_id",
        "elf",
        "in_kernel",
        "little_endian",
        "machine_flags",
        "path",
        "word_bytes",
    )

    def __init__(
        self,
        path: str,
        search: Search | None = None,
        online: bool = False,
        environment: Environment = DEFAULT,
    ) -> None:
        self._elf = elf = Elf(path, search, online, environment)
        self.architecture: str = architecture_of(elf)
        self.path: str = path
        self.word_bytes: int = elf.word_bytes
        self.little_endian: bool = elf.little_endian
        self.machine_flags: int = elf.flags
        self.build_id: str | None = elf.build_id()
        self.in_kernel = in_kernel(elf)
        self.elf = ElfSymbols(elf)
        self._read_info: DebugInfo | None = None
        self._read_types: TypeTable | None = None
        self._bodies: dict[tuple[DieOffset | None, Address], Address] = {}
        self._callers: dict[tuple[Address, Address], Callers] = {}
        self._constants: dict[TypeId, tuple[tuple[str, int], ...]] = {}
        self._code_uses: CodeUses | None = None
        self._functions: dict[str, tuple[Function, ...]] = {}
        self._parameters: dict[DieOffset, tuple[Variable, ...]] = {}
        self._visible: dict[tuple[DieOffset, Address], tuple[Variable, ...]] = {}
        self._definitions: dict[TypeId, TypeId] = {}
        self._globals: dict[tuple[str, DieOffset | None, bool], tuple[Variable, ...]] = {}
        self._interface_tables: tuple[tuple[str, str], ...] | None = None
        self._language: str | None = None
        self._runtime_types: RuntimeTypes | None = None

    @property
    def identity(self) -> str:
        """That of the program's own file."""
        return self._elf.identity

    @property
    def has_debug_info(self) -> bool:
        """Whether names and types can be asked for at all."""
        return self._elf.open_section(".debug_info") is not None

    def debug_info_advice(self) -> tuple[tuple[str, ...], str]:
        """Where fetchc looked for its debug file, and how to get one."""
        if self.has_debug_info:
            return (), "build that part of the program with -g"
        notes, help = self._elf.finder.advice()
        if self._elf.section_address(MANAGED_CODE) is not None:
            notes += ("its code is C# that NativeAOT compiled, and its names are not in the file",)
            help = "fetch registers at addresses (`%di --at 0x...`), or publish it with ReadyToRun"
        return notes, help

    def function_names(self) -> Iterator[str]:
        """Names of the symbol table that have code, each once."""
        return self._elf.function_names()

    def names_identity(self) -> str | None:
        """What tells the files that the symbols are in from all others."""
        return self._elf.names_identity()

    def file_offset(self, address: Address) -> FileOffset:
        """Where the byte at ``address`` is in the file, by the PT_LOAD that holds it."""
        return self._elf.file_offset(address)

    def image_offset(self, address: Address, probe: Address) -> int:
        """The OFF of ``@+OFF`` that reads ``address`` from a probe at ``probe``."""
        return address - self._elf.image_start(probe)

    def code(self, address: Address, size: int) -> bytes:
        """Machine code at ``address``, shorter where the segment ends, none outside of all."""
        if self._elf.segment_of(address) is None:
            return b""
        return self._elf.read(address, size)

    @property
    def _info(self) -> DebugInfo:
        if self._read_info is None:
            from fetchc.debuginfo.dwarf.debug_info import DebugInfo

            self._read_info = DebugInfo(self._elf)
        return self._read_info

    @property
    def _types(self) -> TypeTable:
        if self._read_types is None:
            from fetchc.debuginfo.dwarf.type_entries import TypeTable

            self._read_types = TypeTable(self._info, self.word_bytes, _reader_of)
        return self._read_types

    @property
    def evidence(self) -> DwarfEvidence:
        """What supports or contradicts its debug information."""
        return DwarfEvidence(self)

    @property
    def cpp(self) -> DwarfCpp:
        """What classes of C++ declare."""
        return DwarfCpp(self)

    @property
    def go(self) -> DwarfGo:
        """What Go's runtime and linker say."""
        return DwarfGo(self)

    @property
    def lacks_go(self) -> bool:
        """Whether Go linked the program, and its debug information is of C alone or missing."""
        from fetchc.debuginfo.dwarf.languages import is_go, linked_by_go

        return linked_by_go(self._elf) and not any(map(is_go, self._info.units()))

    def functions_named(self, name: str) -> tuple[Function, ...]:
        """Every function of that name and its clones; see :mod:`.subprograms`."""
        found = self._functions.get(name)
        if found is None:
            from fetchc.debuginfo.dwarf.subprograms import functions_named

            found = functions_named(self._elf, self._info, name)
            store(self._functions, name, found)
        return found

    def function_at(self, address: Address) -> Function | None:
        """The function whose code holds ``address``."""
        from fetchc.debuginfo.dwarf.subprograms import function_at

        return function_at(self._elf, self._info, address)

    def parameters(self, function: Function) -> tuple[Variable, ...]:
        """Declared parameters in order, unused ones included; Go results follow (kind result)."""
        die = self._die(function)
        found = self._parameters.get(die.offset)
        if found is None:
            from fetchc.debuginfo.dwarf.variables import parameters

            found = parameters(self._info, die)
            if not found and function.language == "go" and function.external:
                from fetchc.debuginfo.go.moduledata import declared_by_twin

                found = declared_by_twin(self._elf, self._info, function)
            if self.in_kernel:
                from fetchc.debuginfo.kernel_variables import marked_parameters

                found = marked_parameters(self, function.name, found)
            store(self._parameters, die.offset, found)
        return found

    def result(self, function: Function) -> TypeId | None:
        """Type of the result; None for void, and for Go, whose results are variables."""
        from fetchc.debuginfo.dwarf.variables import is_undescribed, result
        from fetchc.program.types import UnknownType

        die = self._die(function)
        found = result(self._info, die)
        if found is None and is_undescribed(self._info, die):
            return self.intern(UnknownType("", None, "it was compiled with line tables alone"))
        return found

    def variables(self, function: Function, address: Address) -> tuple[Variable, ...]:
        """Locals and parameters visible at ``address``, innermost scope first."""
        die = self._die(function)
        found = self._visible.get((die.offset, address))
        if found is None:
            from fetchc.debuginfo.dwarf.variables import locals_at

            found = locals_at(self._info, die, address) + self.parameters(function)
            store(self._visible, (die.offset, address), found)
        return found

    def scope_at(self, function: Function, address: Address) -> Function:
        """``function``, or the innermost one whose body was put there."""
        from fetchc.debuginfo.dwarf.subprograms import inlined_function
        from fetchc.debuginfo.dwarf.variables import innermost_call

        call = innermost_call(self._info, self._die(function), address)
        return function if call is None else inlined_function(self._info, function, call)

    def global_variables(
        self, name: str, function: Function | None, loosely: bool = False
    ) -> tuple[Variable, ...]:
        """Variables of that name outside functions; the function's own unit is preferred."""
        from fetchc.debuginfo.dwarf.global_variables import global_variables

        self._require()
        key = name, None if function is None else function.die, loosely
        found = self._globals.get(key)
        if found is None:
            linked = lambda die, name: self._linked(die, name) is not None  # noqa: E731
            within = self._within(function)
            found = global_variables(self._info, name, within, linked, loosely)
            store(self._globals, key, found)
        return found

    def enumerators(self, name: str, function: Function | None) -> tuple[tuple[int, TypeId], ...]:
        """The values that enumerators of that name have, each with its enumeration."""
        from fetchc.debuginfo.dwarf.global_variables import enumerators

        if not self._info.present:
            return ()
        return enumerators(self._info, name, self._within(function))

    def _linked(self, die: Die, name: str) -> AtAddress | Indirect | None:
        from fetchc.debuginfo.kernel_variables import linked_place

        if self.in_kernel:
            return None
        return linked_place(self._info, self._elf, self.architecture, die, name)

    def extents(self, variable: Variable, function: Function | None) -> tuple[Extent, ...]:
        """What the debug information says of the variable's place, by address range.

        Places relative to the frame stay so: each address has its own rule for the CFA.
        """
        from fetchc.debuginfo.dwarf.variable_extents import extents

        if variable.elsewhere:
            return ()
        die = self._info.die(variable.die)
        return extents(self._info, die, self._around(variable, function))

    def place(self, variable: Variable, function: Function | None, address: Address) -> Place:
        """The debug information's place at ``address``, the frame base taken apart.

        A place relative to the CFA becomes relative to the register that the call-frame
        information names there, so the answer is valid at ``address`` only.
        """
        from fetchc.debuginfo.dwarf.variables import place_at
        from fetchc.program.entities import Absent, AtAddress, is_frame_relative

        if variable.elsewhere:
            return Absent(
                "no location", "the debug information does not describe locations in assembly"
            )
        die = self._info.die(variable.die)
        around = self._around(variable, function)
        place = place_at(self._info, die, around, address)
        place = self._at_entry(place, around, address)
        if variable.kind == "global":
            from fetchc.program.entities import NO_LOCATION

            if place == NO_LOCATION:
                return self._linked(die, variable.name) or place
            if isinstance(place, AtAddress) and self.evidence.may_be_copied(
                variable, place.address
            ):
                return self._loaded(die, variable.name) or place
        if self.in_kernel and isinstance(place, AtAddress):
            from fetchc.debuginfo.kernel_variables import symbol_place

            found = self.elf.symbol_addresses(variable.name)
            return symbol_place(self._elf, variable.name, place.address, found)
        if not is_frame_relative(place):
            return place
        from fetchc.debuginfo.dwarf.call_frames import cfa_at
        from fetchc.debuginfo.dwarf.symbolic_values import resolve_frame

        start = None if function is None else function.address
        return resolve_frame(place, cfa_at(self._elf, address, start))

    def _loaded(self, die: Die, name: str) -> Indirect | None:
        from fetchc.debuginfo.kernel_variables import linked_symbol, loaded_place

        symbol = linked_symbol(self._info, die, name)
        return loaded_place(self._elf, self.architecture, symbol)

    def _at_entry(self, place: Place, around: Die | None, address: Address) -> Place:
        from fetchc.program.entities import Absent, AtAddress, FrameRelative, InMemory, InRegister

        if isinstance(place, InRegister | InMemory | FrameRelative | AtAddress | Absent):
            return place
        from fetchc.debuginfo.dwarf.symbolic_values import at_entry

        # What is split off as cold has a first instruction too, and is a later range.
        ranges = () if around is None else self._info.ranges(around)
        return at_entry(place) if ranges and ranges[0][0] == address else place

    def array_length(
        self, array: TypeId, function: Function, address: Address
    ) -> tuple[Place, int] | None:
        """Where the number of a variable-length array's elements is, and what to add to it."""
        if array < 0:
            return None
        from fetchc.debuginfo.dwarf.call_frames import cfa_at
        from fetchc.debuginfo.dwarf.symbolic_values import resolve_frame
        from fetchc.debuginfo.dwarf.variable_extents import array_length

        die = self._types.die(array)
        found = array_length(self._info, die, self._die(function), address)
        if found is None:
            return None
        return resolve_frame(found[0], cfa_at(self._elf, address, function.address)), found[1]

    def body_address(self, function: Function) -> Address:
        """The first instruction after the prologue, by the line table."""
        key = function.die, function.address
        found = self._bodies.get(key)
        if found is None:
            from fetchc.debuginfo.dwarf import line_tables

            found = line_tables.body_address(self._info, self._die(function), function.address)
            store(self._bodies, key, found)
        return found

    def code_map(self) -> CodeMap | None:
        """Lines and inlined calls; None without DWARF."""
        from fetchc.debuginfo.dwarf import line_tables

        return line_tables.CodeMap(self._elf, self._info) if self._info.present else None

    def type(self, type_id: TypeId) -> Type:
        """The type itself; typedefs and qualifiers are types of their own."""
        found = (self._read_types or self._types).type(type_id)  # asked most often of all
        if self.in_kernel:
            from fetchc.program.types import StructType

            if isinstance(found, StructType):
                from fetchc.debuginfo.kernel_variables import marked_members

                return marked_members(self, found)
        return found

    def completed(self, type_id: TypeId) -> TypeId:
        """The definition of a declaration, looked for in the other units; itself if none."""
        if type_id < 0:
            return type_id
        from fetchc.program.types import DeclaredType

        if not isinstance(self._types.type(type_id), DeclaredType):
            return type_id
        found = self._definitions.get(type_id)
        if found is None:
            from fetchc.debuginfo.dwarf.type_lookup import definition

            found = definition(self._types, type_id)
            store(self._definitions, type_id, found)
        return found

    def types_named(self, name: str, function: Function | None) -> tuple[TypeId, ...]:
        """Definitions of that name: ``struct s``, ``s``, ``int``, ``pkg.T``."""
        from fetchc.debuginfo.dwarf.type_lookup import types_named

        self._require()
        return types_named(self._types, name, self._within(function))

    def type_names(self) -> Iterator[str]:
        """Names of the types that are defined outside functions; walks all units."""
        from fetchc.debuginfo.dwarf.type_lookup import type_names

        self._require()
        return type_names(self._types)

    def main_language(self) -> str:
        """Language key of the program's own code: Go where Go linked it, else the first unit's."""
        if self._language is None:
            from fetchc.debuginfo.dwarf.languages import main_language

            self._language = main_language(self._elf, self._info)
        return self._language

    def intern(self, resolved: Type) -> TypeId:
        """An id for a type that no debug information has (a cast's pointer)."""
        return self._types.intern(resolved)

    def source_line(self, function: Function) -> str | None:
        """``file.c:17`` of the declaration, None where unknown."""
        from fetchc.debuginfo.dwarf import line_tables

        die = self._within(function)
        return None if die is None else line_tables.source_line(self._info, die)

    def _require(self) -> None:
        if not self._info.present:
            notes, help = self.debug_info_advice()
            what = "the file has no debug information"
            raise DebugInfoError("FC0903", self.path, what, help=help, notes=notes)

    def _die(self, function: Function) -> Die:
        self._require()
        if function.die is None:
            from fetchc.program.demangle import readable

            notes, help = self.debug_info_advice()
            what = f"no debug information describes `{readable(function.name)}`"
            raise DebugInfoError("FC0903", self.path, what, help=help, notes=notes)
        return self._info.die(function.die)

    def _within(self, function: Function | None) -> Die | None:
        if function is None or function.die is None:
            return None
        return self._info.die(function.die)

    def _around(self, variable: Variable, function: Function | None) -> Die | None:
        return None if variable.kind == "global" else self._within(function)


if TYPE_CHECKING:

    def _is_program(opened: DwarfProgram) -> Program:
        return opened


def _reader_of(die: Die) -> Reader | None:
    # Of types that Go and Rust describe in ways of their own.
    from fetchc.debuginfo.dwarf.languages import is_go, is_rust

    if is_go(die.unit):
        from fetchc.debuginfo.dwarf import go_types

        return go_types.READERS.get(die.tag)
    if die.tag == DW_TAG_structure_type and is_rust(die.unit):
        from fetchc.debuginfo.dwarf import rust_types

        return rust_types.structure
    return None
