"""One ELF file with DWARF as a :class:`~fetchc.program.model.Program`.

Opening reads the ELF headers and nothing else. Every question goes to the module of
its concept (functions, variables, types, names); this one only holds them together and
owns what they cache.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.program.model import Extent, Function, Program, Variable
    from fetchc.program.places import Place
    from fetchc.program.types import Type
    from fetchc.units import Address, FileOffset, TypeId

__all__ = ["DwarfProgram", "open_program"]


class DwarfProgram:
    """Implements every question of :class:`~fetchc.program.model.Program`, lazily."""

    path: str
    architecture: str
    word_bytes: int
    little_endian: bool
    build_id: str | None

    def __init__(self, path: str) -> None:
        raise NotImplementedError

    def functions_named(self, name: str) -> tuple[Function, ...]:
        """Every function of that exact name: symbol, qualified or plain DWARF name."""
        raise NotImplementedError

    def function_names(self) -> Iterator[str]:
        """Names of the symbol table that have code, each once."""
        raise NotImplementedError

    def inlined_copies(self, name: str) -> int:
        """How often functions of that DWARF name are inlined in the units that define them."""
        raise NotImplementedError

    def parameters(self, function: Function) -> tuple[Variable, ...]:
        """Declared parameters in order, unused ones included; Go results follow (kind result)."""
        raise NotImplementedError

    def result(self, function: Function) -> TypeId | None:
        """Type of the result, None for void and for Go, whose results are variables."""
        raise NotImplementedError

    def variables(self, function: Function, address: Address) -> tuple[Variable, ...]:
        """Locals and parameters visible at ``address``, innermost scope first."""
        raise NotImplementedError

    def global_variables(self, name: str, function: Function | None) -> tuple[Variable, ...]:
        """Variables of that name outside functions; the function's own unit is preferred."""
        raise NotImplementedError

    def extents(self, variable: Variable, function: Function | None) -> tuple[Extent, ...]:
        """What the debug information says of the variable's place, by address range."""
        raise NotImplementedError

    def place(self, variable: Variable, function: Function | None, address: Address) -> Place:
        """The debug information's place at ``address``, the frame base taken apart."""
        raise NotImplementedError

    def type(self, type_id: TypeId) -> Type:
        """The type itself; typedefs and qualifiers are types of their own."""
        raise NotImplementedError

    def completed(self, type_id: TypeId) -> TypeId:
        """The definition of a declaration, looked for in the other units; itself if none."""
        raise NotImplementedError

    def types_named(self, name: str, function: Function | None) -> tuple[TypeId, ...]:
        """Definitions of that name: ``struct s``, ``s``, ``int``, ``pkg.T``."""
        raise NotImplementedError

    def intern(self, made: Type) -> TypeId:
        """An id for a type that no debug information has (a cast's pointer)."""
        raise NotImplementedError

    def file_offset(self, address: Address) -> FileOffset:
        """Where the byte at ``address`` is in the file, by the PT_LOAD that holds it."""
        raise NotImplementedError

    def image_offset(self, address: Address, probe: Address) -> int:
        """The OFF of ``@+OFF`` that reads ``address`` from a probe at ``probe``."""
        raise NotImplementedError

    def code(self, address: Address, size: int) -> bytes:
        """Machine code at ``address``, shorter where the segment ends."""
        raise NotImplementedError

    def source_line(self, function: Function) -> str | None:
        """``file.c:17`` of the declaration, None where unknown."""
        raise NotImplementedError


def open_program(path: str) -> DwarfProgram:
    """Open the ELF file at ``path``; DebugInfoError FC0901, FC0902 or FC0904 where it is none."""
    return DwarfProgram(path)


if TYPE_CHECKING:

    def _is_program(opened: DwarfProgram) -> Program:
        return opened
