"""The questions that a Program answers.

:class:`Program` has what every file answers: functions, variables, places, types, code. What
only some files answer is in parts of it: :class:`ElfFacts`, :class:`Evidence`, and those of one
language or of kernels, which are None elsewhere.

A Program is lazy: opening one reads a few headers, each question reads what it needs.
It owns the caches; no other module caches. Readers raise
:class:`~fetchc.diag.diagnostic.DebugInfoError` with file, section and offset.

Nothing imports this module at run time: it is of use to type checkers alone.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from fetchc.program.entities import (
        BuildInfo,
        Callers,
        EntryCollection,
        Extent,
        Function,
        Instance,
        ObjectHeader,
        Place,
        Property,
        RuntimeType,
        StaticProbe,
        Uses,
        Variable,
    )
    from fetchc.program.types import Type
    from fetchc.quantities import Address, FileOffset, TypeId
else:
    Protocol = object

__all__ = [
    "CodeMap",
    "CppFacts",
    "DotnetFacts",
    "ElfFacts",
    "Evidence",
    "GoFacts",
    "KernelFacts",
    "ObjectTypes",
    "Program",
    "RuntimeTypes",
]


class CodeMap(Protocol):
    """Where source lines, and the bodies of functions that were inlined, are in the code."""

    def lines(self, file: str) -> dict[str, dict[int, tuple[Address, ...]]]:
        """By source file whose path ends in ``file``: the addresses at which each line begins.

        Consecutive statements of one line are one address, the first one's.
        """

    def lines_of(self, function: Function) -> tuple[str, dict[int, tuple[Address, ...]]] | None:
        """The file that ``function`` is in, and where its lines begin in its own code.

        None where the debug information has neither.
        """

    def statement_behind(self, function: Function, address: Address) -> Address | None:
        """The first statement's address in ``function`` after ``address``; None without one."""

    def instances(self, name: str) -> tuple[Instance, ...]:
        """Every inlined copy of the functions of that name, by address."""

    def variables(self, instance: Instance) -> tuple[Variable, ...]:
        """The variables visible in the inlined call: its own, then those around it."""


class RuntimeTypes(Protocol):
    """The types that Go's run time has descriptors of."""

    def of(self, type_id: TypeId) -> RuntimeType | None:
        """The descriptor of a type; None where the program has none of it."""

    def at(self, offset: int) -> RuntimeType | None:
        """The descriptor ``offset`` bytes from the beginning of all of them, None if none."""

    def label(self, offset: int) -> str | None:
        """The name of the type there for people, as ``%T`` prints it; None if there is none.

        With whole import paths where packages of one name have types of one name.
        """

    def methods(self, offset: int) -> frozenset[str]:
        """Names of the methods of the type there, and of pointers to it.

        Also of those whose code the linker left out.
        """


class ObjectTypes(Protocol):
    """The types of .NET objects as their headers give them: an assembly, a row of its TypeDef."""

    header: ObjectHeader

    def comparable(self, wanted: TypeId) -> bool:
        """Whether an object's header identifies the type, and no other one."""

    def rank(self, wanted: TypeId) -> int | None:
        """The rank of an array type: 0 for a vector, else its dimensions; None for other types."""

    def fits(self, assembly: str, row: int, wanted: TypeId) -> bool:
        """Whether an object of a type is one of ``wanted``; of arrays the elements are meant."""

    def name(self, assembly: str, row: int) -> str:
        """The name of a type; of one whose assembly is not found, assembly and row."""


class ElfFacts(Protocol):
    """Symbols, notes and imports of an ELF file."""

    def symbol_addresses(self, name: str) -> tuple[Address, ...]:
        """The addresses of the symbols of exactly that name, each once."""

    def symbols_with_prefix(self, prefix: str) -> tuple[str, ...]:
        """The names of symbols of any kind that begin with ``prefix``, each once."""

    def first_code(self) -> Address:
        """Where the first segment with code begins; 0 without one."""

    def begins_symbol(self, address: Address) -> bool:
        """Whether a symbol of a function, or one without a type, has exactly that address."""

    def has_symbol(self, name: str) -> bool:
        """Whether the file defines that name, or uses it of another file."""

    def imported(self, name: str) -> tuple[tuple[str, ...], str] | None:
        """The libraries that are loaded for a function that is only called here, and which has it.

        The path of that one is empty where it was not found; None for other names.
        """

    def is_ifunc(self, function: Function) -> bool:
        """Whether the symbol is an IFUNC: its code chooses the function that is called."""

    def local_entry(self, function: Function) -> int:
        """Bytes of the function that callers of its own module pass over (``local_entries``)."""

    def static_probes(self) -> tuple[StaticProbe, ...]:
        """The probes that the program's author put into it (USDT)."""

    def bundled_assemblies(self) -> tuple[str, ...]:
        """Names of the images of .NET that the file has inside, which are programs of their own."""


class Evidence(Protocol):
    """How the compiler, the linker and the callers treat a function, and whether its debug
    information can be right.
    """

    def is_inlined(self, function: Function) -> bool:
        """Whether the function's body was also put into some of its callers."""

    def is_only_inlined(self, name: str) -> bool:
        """Whether functions of that name have no code of their own, only in their callers."""

    def lacks_code(self, name: str) -> bool:
        """Whether a function of that name is defined, and the compiler left out its code."""

    def folded_with(self, function: Function) -> tuple[str, ...]:
        """Symbols of other functions whose calls run this code: the linker merged them."""

    def may_be_merged_with(self, function: Function) -> tuple[str, ...]:
        """Names of functions without code whose calls the compiler may have redirected here."""

    def callers(self, function: Function, address: Address) -> Callers:
        """The calls of ``function`` and what they pass, for a probe at ``address`` in it."""

    def uses(self, function: Function) -> Uses:
        """How the file uses ``function``, whose debug information is there."""

    def may_be_copied(self, variable: Variable, address: Address) -> bool:
        """Whether an executable may hold the live copy of this shared library's variable."""

    def awaits_within(self, variable: Variable) -> tuple[tuple[Address, Address], ...]:
        """The code that awaits a future of Rust in the block that declares ``variable``.

        Ranges, from the first address up to the one after the last.
        """

    def is_in_address_table(self, address: Address) -> bool:
        """Whether the table of addresses (.debug_aranges) says which unit has the address."""

    def is_optimized(self, function: Function) -> bool:
        """Whether the debug information shows that its compiler optimized the function."""

    def frame_base_is_cfa(self, function: Function) -> bool:
        """Whether frame-relative places count from the CFA (GCC, Go), not from a register."""

    def frame_address(self, function: Function, address: Address) -> Place:
        """What the canonical frame address is at an instruction: ``InMemory``, else Absent."""

    def frame_is_valid(self, function: Function, address: Address) -> bool:
        """Whether frame-relative places of the function are valid at ``address``.

        They are not in the prologue and the epilogue if they are relative to a register that
        still has, or has again, the caller's value.
        """


class CppFacts(Protocol):
    """What the declaration of a class of C++ says."""

    def passed_by_reference(self, type_id: TypeId) -> bool | None:
        """Whether a C++ class is passed by reference, by what it declares; None where unknown."""

    def has_static_member(self, type_id: TypeId, name: str) -> bool:
        """Whether a class declares a member of that name outside of its objects.

        A variable, or a number that an enumeration names.
        """


class GoFacts(Protocol):
    """What the tables of Go's runtime and linker say; empty where the program has no Go in it."""

    def packages_called(self, name: str) -> tuple[str, ...]:
        """Import paths of the Go packages that call themselves so, as the linker writes them.

        ``math/rand/v2`` is called ``rand``, ``gopkg.in/yaml%2ev3`` ``yaml``.
        """

    def interface_tables(self) -> tuple[tuple[str, str], ...]:
        """Names of interfaces of Go, each with that of a type that the program converts to it.

        As the linker writes them. What is only converted from another interface is not there.
        """

    def named_constants(self, type_id: TypeId) -> tuple[tuple[str, int], ...]:
        """The constants of a named integer type that its own Go package declares, in their order.

        Names are without the package.
        """

    def argument_bytes(self, function: Function) -> int | None:
        """Bytes of parameters and results in the caller's frame, as the run-time's tables say.

        Room for spilling register parameters included; None of functions that are not Go's.
        """

    def argument_stream(self, function: Function) -> bytes | None:
        """Shapes of all parameters, as Go's run-time prints them in tracebacks (FUNCDATA_ArgInfo).

        From Go 1.17 on; None where the function has none.
        """

    def runtime_types(self) -> RuntimeTypes | None:
        """The descriptors of types; None where there are none, or symbols are missing."""

    def build_info(self) -> BuildInfo | None:
        """What the linker wrote of the program's modules; None where no Go linker wrote it."""


class DotnetFacts(Protocol):
    """What the metadata of an assembly says beyond methods and types."""

    def property_of(self, type_id: TypeId, name: str) -> Property | None:
        """The property of that name that is not a field; None without one."""

    def object_types(self) -> ObjectTypes | None:
        """What the headers of objects say of their types; None where no table describes them."""

    def collection(self, type_id: TypeId) -> EntryCollection | None:
        """The members of a class that is a collection of entries; None of others."""

    def state_machine_method(self, function: Function) -> str:
        """The ``MoveNext`` that has the body of an iterator or async method; else empty."""

    def in_source(self, function: Function) -> str:
        """What a method is that a compiler made of the source, as ``body of Server.Get``; of
        ordinary methods empty.
        """

    def methods_without_code(self) -> Iterator[tuple[str, str]]:
        """Names of the methods that have no native code, each with the reason."""


class KernelFacts(Protocol):
    """The tracepoints and events of a kernel."""

    def tracepoints(self) -> Iterator[str]:
        """The names of a kernel's tracepoints."""

    def tracepoint(self, name: str) -> Function | None:
        """A kernel's tracepoint, with the arguments of its probes as parameters."""

    def events(self) -> Iterator[str]:
        """``GROUP:NAME`` of the running kernel's trace events; empty for another kernel."""

    def event(self, group: str, name: str) -> Function | None:
        """A kernel's trace event, with its fields as parameters."""


class Program(Protocol):
    """One file and its debug information. See the module's docstring."""

    path: str
    architecture: str  # key of targets/arch: "x86_64"
    word_bytes: int
    little_endian: bool
    machine_flags: int  # e_flags: variants of the machine and its conventions
    build_id: str | None  # lower-case hex
    in_kernel: bool  # its code runs in the kernel: probes name functions, not offsets of a file
    in_memory: bool  # a runtime compiled its code: addresses are of one process, none is in a file

    @property
    def identity(self) -> str:
        """What tells the file that was read from all others; empty for a kernel.

        See :func:`~fetchc.debuginfo.safe_open.file_identity`.
        """

    @property
    def elf(self) -> ElfFacts:
        """Symbols, notes and imports of an ELF file; empty for other files."""

    @property
    def evidence(self) -> Evidence:
        """What supports or contradicts the debug information; empty without DWARF."""

    @property
    def cpp(self) -> CppFacts | None:
        """What classes of C++ declare; None without DWARF."""

    @property
    def go(self) -> GoFacts | None:
        """What Go's runtime and linker say; None without DWARF, unless Go's tables are read."""

    @property
    def dotnet(self) -> DotnetFacts | None:
        """What .NET metadata says; None for other programs."""

    @property
    def kernel(self) -> KernelFacts | None:
        """Tracepoints and events; None except for a kernel with BTF."""

    @property
    def has_debug_info(self) -> bool:
        """Whether names and types can be asked for at all."""

    def debug_info_advice(self) -> tuple[tuple[str, ...], str]:
        """Notes and help for a refusal because the debug information is missing."""

    def main_language(self) -> str:
        """Language key of the program's own code: Go where any unit is Go, else the first's."""

    def functions_named(self, name: str) -> tuple[Function, ...]:
        """Every function of that exact name: symbol, qualified or plain DWARF name."""

    def function_at(self, address: Address) -> Function | None:
        """The function whose code contains ``address``; None without one."""

    def function_names(self) -> Iterator[str]:
        """Names of all functions with code, cheap to list; for globs and suggestions."""

    def names_identity(self) -> str | None:
        """What tells the files that :meth:`function_names` reads from all others.

        A file that is replaced or changed has another one. None: its names are not to be cached.
        """

    def source_line(self, function: Function) -> str | None:
        """``file.c:17`` of the declaration, None where unknown."""

    def parameters(self, function: Function) -> tuple[Variable, ...]:
        """Declared parameters in order, unused ones included; Go results follow (kind result)."""

    def result(self, function: Function) -> TypeId | None:
        """Type of the result, None for void (Go: always None, see parameters)."""

    def variables(self, function: Function, address: Address) -> tuple[Variable, ...]:
        """Locals and parameters visible at ``address``, innermost scope first."""

    def scope_at(self, function: Function, address: Address) -> Function:
        """The scope for names at the instruction: ``function``, or the innermost one inlined there.

        Then its ``die`` is the inlined call's.
        """

    def global_variables(
        self, name: str, function: Function | None, loosely: bool = False
    ) -> tuple[Variable, ...]:
        """Variables of that name outside functions; the function's own unit is preferred.

        ``loosely``: namespaces may be left out between the words of ``name``.
        """

    def enumerators(self, name: str, function: Function | None) -> tuple[tuple[int, TypeId], ...]:
        """The values that enumerators of that name have, each with its enumeration."""

    def place(self, variable: Variable, function: Function | None, address: Address) -> Place:
        """The debug information's place at ``address``, the frame base taken apart."""

    def extents(self, variable: Variable, function: Function | None) -> tuple[Extent, ...]:
        """The variable's places, each with its address range."""

    def body_address(self, function: Function) -> Address:
        """The first instruction after the prologue, by the line table.

        There unoptimized code has stored its parameters. The line table marks it
        (prologue_end), else its second statement row is it; the function's first
        instruction where neither says so.
        """

    def array_length(
        self, array: TypeId, function: Function, address: Address
    ) -> tuple[Place, int] | None:
        """Where the number of a variable-length array's elements is, and what to add to it."""

    def code_map(self) -> CodeMap | None:
        """Lines and inlined calls; None where the debug information has neither (BTF)."""

    def type(self, type_id: TypeId) -> Type:
        """The type itself; typedefs and qualifiers are types of their own."""

    def completed(self, type_id: TypeId) -> TypeId:
        """The definition of a declaration, looked for in the other units; itself if none."""

    def types_named(self, name: str, function: Function | None) -> tuple[TypeId, ...]:
        """Definitions of that name: ``struct s``, ``s``, ``int``, ``pkg.T``."""

    def type_names(self) -> Iterator[str]:
        """Names of the types that are defined outside functions; walks all units."""

    def intern(self, resolved: Type) -> TypeId:
        """An id for a type that no debug information has (a cast's pointer)."""

    def file_offset(self, address: Address) -> FileOffset:
        """The file offset of the byte at ``address``, by the PT_LOAD segment that contains it."""

    def image_offset(self, address: Address, probe: Address) -> int:
        """The OFF of ``@+OFF`` that reads ``address`` from a probe at ``probe``."""

    def code(self, address: Address, size: int) -> bytes:
        """``size`` bytes of code at ``address``; fewer at the segment's end, none outside."""
