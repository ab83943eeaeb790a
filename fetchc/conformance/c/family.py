"""What one drawing declares: structures that point at each other, globals, signatures."""

from __future__ import annotations

from fetchc.conformance.c.types import Alias, CType, Enum, Struct, body, declare, short
from fetchc.record import Record

__all__ = ["Family", "Signature", "Variable"]


class Variable(Record):
    """A parameter, or a global with what its declaration begins with (``static``)."""

    name: str
    type: CType
    storage: str = ""


class Signature(Record):
    """What a function takes and, in ``result``, gives; None: nothing."""

    parameters: tuple[CType, ...]
    result: CType | None


class Family:
    """Structures that point at each other, and what is declared for them, in order.

    ``plus``: of C++; ``space`` is the namespace then, or empty.
    """

    def __init__(self, number: int, plus: bool = False, space: str = "") -> None:
        self.number = number
        self.plus = plus
        self.space = space
        self.declared: list[Enum | Alias | Struct] = []
        self.roots: list[Struct] = []
        self.globals: list[Variable] = []
        self.signatures: list[Signature] = []

    def source(self) -> str:
        """The declarations."""
        lines = [f"namespace {self.space} {{"] if self.space else []
        lines += [f"{root.kind} {short(root.tag)};" for root in self.roots]
        for made in self.declared:
            match made:
                case Enum():
                    lines.append(_enumeration(made))
                case Alias(name=name, target=target, attribute=attribute):
                    lines.append(f"typedef {declare(target, short(name))}{attribute};")
                case Struct():
                    lines.append(f"{body(made)};")
        begun = " = {}" if self.plus else ""
        for each in self.globals:
            lines.append(f"{each.storage} {declare(each.type, short(each.name))}{begun};".strip())
        return "\n".join([*lines, "}"] if self.space else lines)


def _enumeration(made: Enum) -> str:
    tag = short(made.tag)
    listed = ", ".join(f"{tag}_{n} = {value}" for n, value in enumerate(made.values))
    if made.fixed:
        return f"enum class {tag} : {made.fixed} {{ {listed} }};"
    return f"enum {tag} {{ {listed} }}{' __attribute__((packed))' if made.packed else ''};"
