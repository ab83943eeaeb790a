"""The parts of a :class:`~fetchc.program.protocol.Program` that an ELF file with DWARF has.

What its symbols say, what supports or contradicts its debug information, what classes of C++
declare, and what Go's tables say. Each asks the module of its concept.
"""

from __future__ import annotations

from fetchc.debuginfo.elf.symbols import STT_GNU_IFUNC
from fetchc.quantities import ByteOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from fetchc.debuginfo.dwarf.call_sites import CodeUses
    from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
    from fetchc.debuginfo.elf.elf_file import Elf
    from fetchc.program.entities import (
        BuildInfo,
        Callers,
        Function,
        Place,
        StaticProbe,
        Uses,
        Variable,
    )
    from fetchc.program.protocol import RuntimeTypes
    from fetchc.quantities import Address, TypeId

    Key = TypeVar("Key")
    Answer = TypeVar("Answer")

__all__ = ["DwarfCpp", "DwarfEvidence", "DwarfGo", "ElfSymbols", "in_kernel", "store"]

CACHED_ANSWERS = 4096  # of each kind, in one process that compiles many expressions
# What the kernel exports to modules: no program has it. Source: include/asm-generic/vmlinux.lds.h.
KERNEL_SECTION = "__ksymtab"


def store(cache: dict[Key, Answer], key: Key, answer: Answer) -> None:
    """Put an answer into a cache, which starts anew when it is full."""
    if len(cache) >= CACHED_ANSWERS:
        cache.clear()
    cache[key] = answer


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
            store(program._callers, (function.address, address), found)
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

    def awaits_within(self, variable: Variable) -> tuple[tuple[Address, Address], ...]:
        """The code that awaits a future of Rust in the block that declares ``variable``."""
        from fetchc.debuginfo.dwarf.variables import awaits_within

        info = self._program._info
        return awaits_within(info, info.die(variable.die))

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
