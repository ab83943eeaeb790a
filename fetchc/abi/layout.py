"""What the engines share: types behind their names, and what cannot be classified.

A type whose debug information does not say enough raises :class:`UnclassifiedError`,
which the engines turn into an Absent place; a type that contradicts itself raises
DebugInfoError.
"""

from __future__ import annotations

from fetchc.diag.errors import DebugInfoError
from fetchc.program.types import (
    DeclaredType,
    FunctionType,
    NamedType,
    QualifiedType,
    StructType,
    VoidType,
)
from fetchc.units import TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fetchc.program.places import Absent, Place
    from fetchc.program.protocol import Program
    from fetchc.program.types import Type

__all__ = [
    "MAX_NESTING",
    "UnclassifiedError",
    "bare",
    "goes_by_reference",
    "malformed",
    "one_by_one",
    "round_up",
    "size_of",
    "stated_size",
    "unaddressed",
    "unclassified",
    "undecided",
]

MAX_NESTING = 200  # aggregates in aggregates; std::tuple of a hundred members nests as deep
_MAX_NAMES = 200  # typedefs and qualifiers in a row


class UnclassifiedError(Exception):
    """The convention cannot place this type; the text completes "because ..."."""


def unclassified(error: UnclassifiedError) -> Absent:
    """The place of what cannot be classified."""
    from fetchc.program.places import Absent

    return Absent("FC0401", str(error))


def undecided(error: UnclassifiedError, before: str = "a parameter in front") -> Absent:
    """The place of a parameter that depends on what is ``before`` it and cannot be classified."""
    from fetchc.program.places import Absent

    return Absent("FC0401", f"where it is depends on {before}: {error}")


def one_by_one(
    parameters: Iterable[TypeId], place: Callable[[int, TypeId], Place], stopped: Absent | None
) -> tuple[Place, ...]:
    """What ``place`` says of each position and parameter, up to one that cannot be classified.

    The places of those behind it are not known. With ``stopped`` none is: all are that.
    """
    found: list[Place] = []
    for position, parameter in enumerate(parameters):
        if stopped is not None:
            found.append(stopped)
            continue
        try:
            found.append(place(position, parameter))
        except UnclassifiedError as error:
            found.append(unclassified(error))
            stopped = undecided(error)
    return tuple(found)


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


def size_of(program: Program, type_id: TypeId) -> int:
    """Bytes of the type; UnclassifiedError where it has no stated size."""
    type_id, found = bare(program, type_id)
    size = None if isinstance(found, VoidType | FunctionType) else stated_size(found)
    if size is None:
        raise UnclassifiedError("the type of a parameter has no size")
    if size < 0:
        raise malformed(program, type_id, "a type of negative size")
    return size


def stated_size(found: Type) -> int | None:
    """The size that a type states, if it is of a kind that states one."""
    size: int | None = getattr(found, "size", None)
    return size


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
