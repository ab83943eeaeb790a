"""What the engines share: types behind their names, and what cannot be classified.

A type whose debug information does not say enough raises :class:`UnclassifiedError`,
which the engines turn into an Absent place; a type that contradicts itself raises
DebugInfoError.
"""

from __future__ import annotations

from fetchc.diag.errors import DebugInfoError
from fetchc.program.types import DeclaredType, NamedType, QualifiedType, StructType
from fetchc.units import TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.places import Absent
    from fetchc.program.protocol import Program
    from fetchc.program.types import Type

__all__ = [
    "MAX_NESTING",
    "UnclassifiedError",
    "bare",
    "goes_by_reference",
    "malformed",
    "round_up",
    "unaddressed",
    "unclassified",
]

MAX_NESTING = 200  # aggregates in aggregates; std::tuple of a hundred members nests as deep
_MAX_NAMES = 200  # typedefs and qualifiers in a row


class UnclassifiedError(Exception):
    """The convention cannot place this type; the text completes "because ..."."""


def unclassified(error: UnclassifiedError) -> Absent:
    """The place of a parameter that cannot be classified, or follows such a one."""
    from fetchc.program.places import Absent

    return Absent("FC0401", str(error))


def unaddressed() -> Absent:
    """The place of a result in memory where no register leads to it any more."""
    from fetchc.program.places import Absent

    what = "it is in memory, and no register keeps its address until the function returns"
    return Absent("FC0401", what)


def malformed(program: Program, type_id: TypeId, what: str) -> DebugInfoError:
    """An error located at the type's entry."""
    if type_id < 0:  # a made-up type stands nowhere
        return DebugInfoError("FC0904", program.path, what)
    return DebugInfoError("FC0904", program.path, what, ".debug_info", type_id)


def bare(program: Program, type_id: TypeId) -> tuple[TypeId, Type]:
    """The type behind typedefs and qualifiers, a declaration replaced by its definition."""
    first = type_id
    for _ in range(_MAX_NAMES):
        found = program.type(type_id)
        match found:
            case NamedType(target=target):
                type_id = target
            case QualifiedType(qualifier=qualifier, target=target):
                inner = program.type(target)
                if qualifier == "atomic" and isinstance(inner, StructType):
                    # It can be larger and more aligned than the structure, unsaid.
                    raise UnclassifiedError(f"`_Atomic {inner.name}` has no stated size")
                type_id = target
            case DeclaredType(name=name):
                defined = program.completed(type_id)
                if defined == type_id:
                    raise UnclassifiedError(f"`{name}` is declared and nowhere defined")
                type_id = defined
            case _:
                return type_id, found
    raise malformed(program, first, "a type is its own name")


def goes_by_reference(
    program: Program, type_id: TypeId, found: StructType, triviality_stated: bool
) -> bool:
    """Whether a pointer to the structure is passed instead of it.

    Where the debug information has to state it and does not (``triviality_stated`` is what a
    convention says of its compilers), the declaration of the class tells.
    """
    answer = found.by_reference
    if answer is None and not triviality_stated:
        answer = program.passed_by_reference(type_id)
        if answer is None:
            raise UnclassifiedError(
                f"the compiler does not say whether `{found.name}` is passed by reference"
            )
    return bool(answer)


def round_up(value: int, alignment: int) -> int:
    """The next multiple of ``alignment``."""
    return -(-value // alignment) * alignment
