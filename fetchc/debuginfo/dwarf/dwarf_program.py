"""One ELF file with DWARF as a :class:`~fetchc.program.protocol.Program`.

Opening reads the ELF headers and nothing else. Every question goes to the module of
its concept (functions, variables, types, names); this one only holds them together and
owns what they cache. They are imported where they are used: a listing of symbols needs none.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.constants import DW_TAG_structure_type
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.elf.headers import architecture_of
from fetchc.debuginfo.elf.symbols import STT_GNU_IFUNC
from fetchc.debuginfo.environment import DEFAULT
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address, ByteOffset, DieOffset

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
        BuildInfo,
        Callers,
        Extent,
        Function,
        Indirect,
        Place,
        StaticProbe,
        Uses,
        Variable,
    )
    from fetchc.program.protocol import CodeMap, Program, RuntimeTypes
    from fetchc.program.types import Type
    from fetchc.quantities import FileOffset, TypeId

__all__ = ["DwarfProgram"]

CACHED_ANSWERS = 4096  # of each kind, in one process that compiles many expressions


# What the kernel exports to modules: no program has it. Source: include/asm-generic/vmlinux.lds.h.
KERNEL_SECTION = "__ksymtab"
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
            _keep(self._functions, name, found)
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
            _keep(self._parameters, die.offset, found)
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
            _keep(self._visible, (die.offset, address), found)
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
            _keep(self._globals, key, found)
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
        """The first instruction behind the prologue, by the line table."""
        key = function.die, function.address
        found = self._bodies.get(key)
        if found is None:
            from fetchc.debuginfo.dwarf import line_tables

            found = line_tables.body_address(self._info, self._die(function), function.address)
            _keep(self._bodies, key, found)
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
            _keep(self._definitions, type_id, found)
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


# ------------------------------------------------------------------------------
# The parts of a Program that not every file has.


def in_kernel(elf: Elf) -> bool:
    """Whether the file is a kernel or a module of one."""
    return elf.section_address(KERNEL_SECTION) is not None


class ElfSymbols:
    """What an ELF file answers as :class:`~fetchc.program.protocol.ElfFacts`."""

    __slots__ = ("_elf",)

    def __init__(self, elf: Elf) -> None:
        self._elf = elf

    def static_probes(self) -> tuple[StaticProbe, ...]:
        """The probes that the notes of ``<sys/sdt.h>`` tell about."""
        from fetchc.debuginfo.elf.usdt_notes import static_probes

        return static_probes(self._elf)

    def symbol_addresses(self, name: str) -> tuple[Address, ...]:
        """The addresses of the symbols of exactly that name, each once."""
        found = self._elf.symbols_named(name)
        return tuple(dict.fromkeys(symbol.address for symbol in found))

    def symbols_with_prefix(self, prefix: str) -> tuple[str, ...]:
        """The names of symbols of any kind that begin with ``prefix``, each once."""
        wanted = b"\0" + prefix.encode()
        found = [
            strings.cstring(at + 1).decode("utf-8", "surrogateescape")
            for strings in self._elf.symbol_strings()
            for at in strings.find_all(wanted)
        ]
        return tuple(dict.fromkeys(found))

    def is_ifunc(self, function: Function) -> bool:
        """Whether the symbol is an IFUNC: its code chooses the function that is called."""
        named = self._elf.symbols_named(function.symbol)
        return any(s.kind == STT_GNU_IFUNC and s.address == function.address for s in named)

    def local_entry(self, function: Function) -> int:
        """Bytes of the function that callers of its own module pass over.

        Source: 64-Bit ELF V2 ABI for Power, 3.4.1 Symbol Values, st_other.
        """
        named = self._elf.symbols_named(function.symbol)
        others = {s.other >> 5 for s in named if s.address == function.address}
        return max([(1 << other) >> 2 << 2 for other in others if other < 7], default=0)

    def bundled_assemblies(self) -> tuple[str, ...]:
        """Names of the images of .NET inside, where the file is a single-file program."""
        from fetchc.debuginfo.dotnet.portable_executable import bundle_of

        bundle = None if in_kernel(self._elf) else bundle_of(self._elf.path)
        return () if bundle is None else tuple(bundle.names())

    def first_code(self) -> Address:
        """Where the first segment with code begins; 0 without one."""
        return self._elf.first_code()

    def begins_symbol(self, address: Address) -> bool:
        """Whether a symbol of a function, or one without a type, has exactly that address."""
        return bool(self._elf.symbols_at(address))

    def has_symbol(self, name: str) -> bool:
        """Whether the file defines that name, or uses it of another file."""
        return bool(self._elf.symbols_named(name)) or self._elf.imports(name)

    def imported(self, name: str) -> tuple[tuple[str, ...], str] | None:
        """The libraries that it loads and the one that has the function, where it imports it."""
        from fetchc.debuginfo.elf.shared_libraries import imported

        return imported(self._elf, name)


class DwarfEvidence:
    """What code and debug information answer as :class:`~fetchc.program.protocol.Evidence`."""

    __slots__ = ("_program",)

    def __init__(self, program: DwarfProgram) -> None:
        self._program = program

    def is_inlined(self, function: Function) -> bool:
        """Whether the function's body was also put into some of its callers."""
        from fetchc.debuginfo.dwarf.subprograms import is_inlined

        program = self._program
        return function.die is not None and is_inlined(program._info, program._die(function))

    def is_only_inlined(self, name: str) -> bool:
        """Whether functions of that name have no code of their own, only in their callers."""
        from fetchc.debuginfo.dwarf.inlined_subroutines import is_only_inlined

        program = self._program
        return program._info.present and is_only_inlined(program._info, name)

    def lacks_code(self, name: str) -> bool:
        """Whether the compiler left it out, or merged it; see :mod:`.merged_functions`."""
        from fetchc.debuginfo.dwarf.merged_functions import is_without_code

        program = self._program
        return (
            program.has_debug_info
            and not program.in_kernel
            and is_without_code(program._info, name)
        )

    def folded_with(self, function: Function) -> tuple[str, ...]:
        """Symbols of other functions at its address; see :mod:`.merged_functions`."""
        program = self._program
        if program.in_kernel or function.die is None:
            return ()
        die = program._die(function)
        if not program._elf.may_fold() and not die.unit.compiler.is_gcc:
            return ()
        if len(program._elf.symbols_at(function.address)) < 2:
            return ()
        from fetchc.debuginfo.dwarf.merged_functions import folded_with

        found = folded_with(program._elf, program._info, die, function.address)
        return tuple([symbol for symbol in found if symbol != function.symbol])

    def may_be_merged_with(self, function: Function) -> tuple[str, ...]:
        """Functions without code that gcc may have merged into it; :mod:`.merged_functions`."""
        program = self._program
        merges = function.compiler.merges_identical_functions
        if program.in_kernel or function.die is None or not merges:
            return ()
        from fetchc.debuginfo.dwarf.merged_functions import merged_perhaps

        return merged_perhaps(program._info, program._die(function))

    def callers(self, function: Function, address: Address) -> Callers:
        """Who calls ``function``, for a probe in it; see :mod:`.call_sites`."""
        program = self._program
        found = program._callers.get((function.address, address))
        if found is None:
            from fetchc.debuginfo.dwarf.call_sites import callers

            found = callers(program._elf, program._info, function, address, self._used_by_code())
            _keep(program._callers, (function.address, address), found)
        return found

    def uses(self, function: Function) -> Uses:
        """How the file uses ``function``; see :mod:`.call_sites`."""
        from fetchc.debuginfo.dwarf.call_sites import uses

        program = self._program
        return uses(program._elf, program._info, function, self._used_by_code())

    def _used_by_code(self) -> CodeUses | None:
        """What its code calls; None where the call instructions of the machine are not known."""
        program = self._program
        if program._code_uses is None:
            from fetchc.debuginfo.dwarf.call_sites import CodeUses
            from fetchc.target.machines import call_rules

            rules = call_rules(program.architecture)
            program._code_uses = None if rules is None else CodeUses(program._elf, rules)
        return program._code_uses

    def may_be_copied(self, variable: Variable, address: Address) -> bool:
        """Whether an executable may hold the live copy of this shared library's variable."""
        from fetchc.debuginfo.elf.shared_libraries import may_be_copied
        from fetchc.debuginfo.kernel_variables import linked_symbol

        program = self._program
        symbol = linked_symbol(program._info, program._info.die(variable.die), variable.name)
        return may_be_copied(program._elf, symbol, address)

    def is_in_address_table(self, address: Address) -> bool:
        """Whether the table of addresses (.debug_aranges) says which unit has the address."""
        return self._program._info.is_in_address_table(address)

    def is_optimized(self, function: Function) -> bool:
        """Whether its calls are described, or (before DWARF 4) may be left out for its age."""
        from fetchc.debuginfo.dwarf.call_sites import describes_tail_calls

        program = self._program
        die = program._die(function)
        return die.unit.version < 4 or describes_tail_calls(program._info, die)

    def frame_base_is_cfa(self, function: Function) -> bool:
        """Whether frame-relative places count from the CFA (GCC, Go), not from a register."""
        from fetchc.debuginfo.dwarf.variables import frame_base_at
        from fetchc.program.entities import FrameRelative

        program = self._program
        base = frame_base_at(program._info, program._die(function), function.address)
        return isinstance(base, FrameRelative)

    def frame_address(self, function: Function, address: Address) -> Place:
        """The canonical frame address, by the call-frame information."""
        from fetchc.debuginfo.dwarf.call_frames import cfa_at
        from fetchc.debuginfo.dwarf.symbolic_values import resolve_frame
        from fetchc.program.entities import FrameRelative

        rule = cfa_at(self._program._elf, address, function.address)
        return resolve_frame(FrameRelative(ByteOffset(0)), rule)

    def frame_is_valid(self, function: Function, address: Address) -> bool:
        """Whether frame-relative places of the function are valid at ``address``."""
        from fetchc.debuginfo.dwarf.enclosing_frames import is_own_frame_base
        from fetchc.debuginfo.dwarf.variables import frame_base_at

        program = self._program
        base = frame_base_at(program._info, program._die(function), address)
        return is_own_frame_base(
            program._elf, base, lambda: program.body_address(function), function, address
        )


class DwarfCpp:
    """What DWARF answers as :class:`~fetchc.program.protocol.CppFacts`."""

    __slots__ = ("_program",)

    def __init__(self, program: DwarfProgram) -> None:
        self._program = program

    def passed_by_reference(self, type_id: TypeId) -> bool | None:
        """Whether a C++ class is passed by reference, by what it declares; None where unknown."""
        from fetchc.debuginfo.dwarf.trivial_classes import by_reference

        program = self._program
        return None if type_id < 0 else by_reference(program._types, program._types.die(type_id))

    def has_static_member(self, type_id: TypeId, name: str) -> bool:
        """Whether a class declares a member of that name that is a variable outside of objects."""
        from fetchc.debuginfo.dwarf.type_entries import has_static_member

        program = self._program
        return type_id >= 0 and has_static_member(program._types, program._types.die(type_id), name)


class DwarfGo:
    """What DWARF and Go's tables answer as :class:`~fetchc.program.protocol.GoFacts`."""

    __slots__ = ("_program",)

    def __init__(self, program: DwarfProgram) -> None:
        self._program = program

    def packages_called(self, name: str) -> tuple[str, ...]:
        """Import paths of the Go packages that call themselves so, as the linker writes them."""
        from fetchc.debuginfo.dwarf.go_name_lookup import packages_called

        program = self._program
        return tuple(packages_called(program._info, name)) if program._info.present else ()

    def interface_tables(self) -> tuple[tuple[str, str], ...]:
        """Names of interfaces of Go, each with that of a type that the program converts to it."""
        program = self._program
        if program._interface_tables is None:
            from fetchc.debuginfo.go.rtype_names import interface_tables

            program._interface_tables = interface_tables(program._elf, program.architecture)
        return program._interface_tables

    def named_constants(self, type_id: TypeId) -> tuple[tuple[str, int], ...]:
        """The constants of a named integer type that its own Go package declares."""
        program = self._program
        found = program._constants.get(type_id)
        if found is None:
            from fetchc.debuginfo.dwarf.go_name_lookup import constants_of_type
            from fetchc.program.types import IntType

            found = ()
            resolved = program.type(type_id)
            if isinstance(resolved, IntType) and program._info.present:
                found = constants_of_type(program._info, type_id, resolved)
            program._constants[type_id] = found
        return found

    def argument_bytes(self, function: Function) -> int | None:
        """Bytes of a Go function's parameters and results, by Go's own table; None elsewhere."""
        if function.language != "go":
            return None
        from fetchc.debuginfo.go.funcdata import argument_bytes

        return argument_bytes(self._program._info.elf, function.address)

    def argument_stream(self, function: Function) -> bytes | None:
        """What Go's own table says of each of its parameters, for tracebacks; None elsewhere."""
        if function.language != "go":
            return None
        from fetchc.debuginfo.go.funcdata import argument_stream

        return argument_stream(self._program._info.elf, function.address)

    def runtime_types(self) -> RuntimeTypes | None:
        """What Go's run time knows of the types; None elsewhere, and where symbols are missing."""
        program = self._program
        if program._runtime_types is None:
            from fetchc.debuginfo.go.runtime_types import descriptor_table

            program._runtime_types = descriptor_table(
                program._elf, program.architecture, program._info, program._types
            )
        return program._runtime_types

    def build_info(self) -> BuildInfo | None:
        """What the linker wrote of the program's modules; None where no Go linker wrote it."""
        from fetchc.debuginfo.go.build_info import build_info
        from fetchc.debuginfo.go.moduledata import Memory

        return build_info(Memory(self._program._elf, self._program.architecture))


def _keep(cache: dict[Key, Answer], key: Key, answer: Answer) -> None:
    # Bounded by starting anew: a process that asks so much has no favourites.
    if len(cache) >= CACHED_ANSWERS:
        cache.clear()
    cache[key] = answer


if TYPE_CHECKING:
    from typing import TypeVar

    from fetchc.debuginfo.dwarf.type_entries import Reader

    Key = TypeVar("Key")
    Answer = TypeVar("Answer")

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
