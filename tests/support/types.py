"""A Program that is a list of types, for tests of what only asks for types."""

from __future__ import annotations

from typing import cast

from fetchc.program.compiler import compiler_of
from fetchc.program.entities import Function, Variable
from fetchc.program.protocol import Program
from fetchc.program.types import Type
from fetchc.quantities import Address, ByteSize, TypeId

__all__ = ["TypeTable", "function"]


class TypeTable:
    """Types by the order in which they were added; enough of a Program for the engines."""

    path = "made-up"
    architecture = "x86_64"
    word_bytes = 8
    little_endian = True
    machine_flags = 0
    in_kernel = False
    cpp = None
    go = None

    def __init__(self) -> None:
        self._types: list[Type] = []
        self.variables: tuple[Variable, ...] = ()
        self.returned: TypeId | None = None

    def add(self, made: Type) -> TypeId:
        self._types.append(made)
        return TypeId(len(self._types) - 1)

    def replace(self, type_id: TypeId, made: Type) -> None:
        self._types[type_id] = made

    intern = add

    def type(self, type_id: TypeId) -> Type:
        return self._types[type_id]

    def completed(self, type_id: TypeId) -> TypeId:
        return type_id

    def parameters(self, _: Function) -> tuple[Variable, ...]:
        return self.variables

    def result(self, _: Function) -> TypeId | None:
        return self.returned

    @property
    def program(self) -> Program:
        """Itself, as the engines take it."""
        return cast("Program", self)


def function(
    name: str, language: str = "c", producer: str = "GNU C17 12.2.0", symbol: str = ""
) -> Function:
    """A function of that name with nothing else of interest."""
    address = Address(0x1000)
    return Function(
        name, symbol or name, address, ByteSize(16), None, language, compiler_of(producer), True
    )
