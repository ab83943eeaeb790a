"""The questions that a Program answers.

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
        Callers,
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

__all__ = ["CodeMap", "Program", "RuntimeTypes"]


class CodeMap(Protocol):
    """Where source lines, and the bodies of functions that were inlined, are in the code."""

    def lines(self, file: str) -> dict[str, dict[int, tuple[Address, ...]]]:
        """Of each source file whose path ends in ``file``: where its lines begin in the code.

        Consecutive statements of one line are one address, the first one's.
        """

    def lines_of(self, function: Function) -> tuple[str, dict[int, tuple[Address, ...]]] | None:
        """The file that ``function`` is in, and where its lines begin in its own code.

        None where the debug information has neither.
        """

    def statement_behind(self, function: Function, address: Address) -> Address | None:
        """The first statement of ``function`` behind ``address``; None where there is none."""

    def instances(self, name: str) -> tuple[Instance, ...]:
        """Every inlined copy of the functions of that name, by address."""

    def variables(self, instance: Instance) -> tuple[Variable, ...]:
        """What the inlined call's code sees: its parameters, its locals, what is around it."""


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


class ObjectTypes(Protocol):
    """What objects of .NET are of, by what their headers say: an assembly, a row of its types."""

    header: ObjectHeader

    def comparable(self, wanted: TypeId) -> bool:
        """Whether a header tells that an object is of a type, and of no other one."""

    def rank(self, wanted: TypeId) -> int | None:
        """Of an array 0, or its dimensions where it has several; None of all else."""

    def fits(self, assembly: str, row: int, wanted: TypeId) -> bool:
        """Whether an object of a type is one of ``wanted``; of arrays the elements are meant."""

    def name(self, assembly: str, row: int) -> str:
        """The name of a type; of one whose assembly is not at hand what is known of it."""


class Program(Protocol):
    """One file and its debug information. See the module's text."""

    path: str
    architecture: str  # key of targets/arch: "x86_64"
    word_bytes: int
    little_endian: bool
    machine_flags: int  # e_flags: variants of the machine and its conventions
    build_id: str | None  # lower-case hex
    in_kernel: bool  # its code runs in the kernel: probes name functions, not offsets of a file

    @property
    def has_debug_info(self) -> bool:
        """Whether names and types can be asked for at all."""

    def debug_info_advice(self) -> tuple[tuple[str, ...], str]:
        """Notes and help for who asks in vain for what debug information says."""

    def functions_named(self, name: str) -> tuple[Function, ...]:
        """Every function of that exact name: symbol, qualified or plain DWARF name."""

    def static_probes(self) -> tuple[StaticProbe, ...]:
        """The probes that the program's author put into it (USDT)."""

    def tracepoints(self) -> Iterator[str]:
        """The names of a kernel's tracepoints."""

    def events(self) -> Iterator[str]:
        """``GROUP:NAME`` of a kernel's trace events, of one that runs."""

    def tracepoint(self, name: str) -> Function | None:
        """A kernel's tracepoint, with what its probes are handed over for parameters."""

    def event(self, group: str, name: str) -> Function | None:
        """A kernel's trace event, with its fields for parameters."""

    def symbol_addresses(self, name: str) -> tuple[Address, ...]:
        """The addresses of the symbols of exactly that name, each once."""

    def symbols_beginning(self, prefix: str) -> tuple[str, ...]:
        """The names of symbols of any kind that begin so, each once."""

    def function_at(self, address: Address) -> Function | None:
        """The function whose code holds ``address``."""

    def is_inlined(self, function: Function) -> bool:
        """Whether the function's body was also put into some of its callers."""

    def continued_in(self, function: Function) -> str:
        """The name of the function that has the body of this one; empty where it has its own."""

    def is_indirect(self, function: Function) -> bool:
        """Whether the symbol is an IFUNC: its code chooses the function that is called."""

    def local_entry(self, function: Function) -> int:
        """Bytes of the function that callers of its own module pass over (``local_entries``)."""

    def without_code(self) -> Iterator[tuple[str, str]]:
        """Names of functions that are described and have no code, each with the reason."""

    def assemblies(self) -> tuple[str, ...]:
        """Names of the images of .NET that the file has inside, which are programs of their own."""

    def is_only_inlined(self, name: str) -> bool:
        """Whether functions of that name have no code of their own, only in their callers."""

    def function_names(self) -> Iterator[str]:
        """Names of all functions with code, cheap to list; for globs and suggestions."""

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

    def parameters(self, function: Function) -> tuple[Variable, ...]:
        """Declared parameters in order, unused ones included; Go results follow (kind result)."""

    def argument_bytes(self, function: Function) -> int | None:
        """Bytes of parameters and results in the caller's frame, as the run-time's tables say.

        Go only, room for spilling register parameters included; None elsewhere.
        """

    def argument_stream(self, function: Function) -> bytes | None:
        """Shapes of all parameters, as Go's run-time prints them in tracebacks (FUNCDATA_ArgInfo).

        Go from 1.17 on; None elsewhere and where the function has none.
        """

    def result(self, function: Function) -> TypeId | None:
        """Type of the result, None for void (Go: always None, see parameters)."""

    def variables(self, function: Function, address: Address) -> tuple[Variable, ...]:
        """Locals and parameters visible at ``address``, innermost scope first."""

    def scope_at(self, function: Function, address: Address) -> Function:
        """What the instruction is of, for names: ``function``, or the innermost one inlined there.

        Its ``die`` is that of the inlined call then.
        """

    def global_variables(
        self, name: str, function: Function | None, loosely: bool = False
    ) -> tuple[Variable, ...]:
        """Variables of that name outside functions; the function's own unit is preferred.

        ``loosely``: namespaces may be left out between the words of ``name``.
        """

    def enumerators(self, name: str, function: Function | None) -> tuple[tuple[int, TypeId], ...]:
        """The values that enumerators of that name have, each with its enumeration."""

    def may_be_copied(self, variable: Variable, address: Address) -> bool:
        """Whether an executable may hold the live copy of this shared library's variable."""

    def has_symbol(self, name: str) -> bool:
        """Whether the file defines that name, or uses it of another file."""

    def imported(self, name: str) -> tuple[tuple[str, ...], str] | None:
        """The libraries that are loaded for a function that is only called here, and which has it.

        The path of that one is empty where it is not known; None of other names.
        """

    def extents(self, variable: Variable, function: Function | None) -> tuple[Extent, ...]:
        """What the debug information says of the variable's place, by address range."""

    def place(self, variable: Variable, function: Function | None, address: Address) -> Place:
        """The debug information's place at ``address``, the frame base taken apart."""

    def body_address(self, function: Function) -> Address:
        """The first instruction behind the prologue, by the line table.

        There unoptimised code has stored its parameters. The line table marks it
        (prologue_end), else its second statement row is it; the function's first
        instruction where neither says so.
        """

    def code_map(self) -> CodeMap | None:
        """Lines and inlined calls; None where the debug information has neither (BTF)."""

    def array_length(
        self, array: TypeId, function: Function, address: Address
    ) -> tuple[Place, int] | None:
        """Where the number of a variable-length array's elements is, and what to add to it."""

    def callers(self, function: Function, address: Address) -> Callers:
        """Who calls ``function`` and what is passed, in terms of a probe at ``address`` in it."""

    def uses(self, function: Function) -> Uses:
        """How the file uses ``function``, whose debug information is there."""

    def folded_with(self, function: Function) -> tuple[str, ...]:
        """Symbols of other functions whose calls run this code: the linker made one of them."""

    def is_without_code(self, name: str) -> bool:
        """Whether a function of that name is defined, and the compiler kept no code of it."""

    def merged_perhaps(self, function: Function) -> tuple[str, ...]:
        """Names of functions without code whose calls the compiler may have led here."""

    def frame_base_is_cfa(self, function: Function) -> bool:
        """Whether frame-relative places count from the CFA (GCC, Go), not from a register."""

    def frame_address(self, function: Function, address: Address) -> Place:
        """What the canonical frame address is at an instruction: ``InMemory``, else Absent."""

    def is_optimised(self, function: Function) -> bool:
        """Whether the debug information shows that its compiler optimised the function."""

    def frame_stands(self, function: Function, address: Address) -> bool:
        """Whether places counted from the function's frame are what they say at ``address``.

        Not so in front of the body and where the frame is taken down, if they count from a
        register that is the caller's there.
        """

    def type(self, type_id: TypeId) -> Type:
        """The type itself; typedefs and qualifiers are types of their own."""

    def passed_by_reference(self, type_id: TypeId) -> bool | None:
        """Whether a C++ class is passed by reference, by what it declares; None where unknown."""

    def has_static_member(self, type_id: TypeId, name: str) -> bool:
        """Whether a class declares a member of that name outside of its objects.

        A variable, or a number that an enumeration names.
        """

    def completed(self, type_id: TypeId) -> TypeId:
        """The definition of a declaration, looked for in the other units; itself if none."""

    def types_named(self, name: str, function: Function | None) -> tuple[TypeId, ...]:
        """Definitions of that name: ``struct s``, ``s``, ``int``, ``pkg.T``."""

    def type_names(self) -> Iterator[str]:
        """Names of the types that are defined outside functions; walks all units."""

    def runtime_types(self) -> RuntimeTypes | None:
        """What Go's run time knows of the types; None elsewhere, and where symbols are missing."""

    def property_of(self, type_id: TypeId, name: str) -> Property | None:
        """The property of that name, which is no field; None where there is none, and but for
        .NET.
        """

    def object_types(self) -> ObjectTypes | None:
        """What objects say of their types; None where that is not known, and but for .NET."""

    def main_language(self) -> str:
        """Language key of the program's own code: Go where any unit is Go, else the first's."""

    def intern(self, made: Type) -> TypeId:
        """An id for a type that no debug information has (a cast's pointer)."""

    def file_offset(self, address: Address) -> FileOffset:
        """Where the byte at ``address`` is in the file, by the PT_LOAD that holds it."""

    def image_offset(self, address: Address, probe: Address) -> int:
        """The OFF of ``@+OFF`` that reads ``address`` from a probe at ``probe``."""

    def code(self, address: Address, size: int) -> bytes:
        """Machine code at ``address``, shorter where the segment ends, none outside of all."""

    def source_line(self, function: Function) -> str | None:
        """``file.c:17`` of the declaration, None where unknown."""
