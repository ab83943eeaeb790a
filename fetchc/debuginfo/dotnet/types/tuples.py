"""Tuples of C#: elements behind the seventh, names that the source has for them.

``(a, b, …, h, i)`` is a ValueTuple of seven and ``Rest``, which is another tuple. Source: ECMA-334,
8.3.11 (tuple types); dotnet/runtime, ValueTuple.cs.
"""

from __future__ import annotations

from fetchc.debuginfo.dotnet.metadata.signatures import Array, Generic, Pointer
from fetchc.debuginfo.dotnet.types.closed import Instance, Items, Link
from fetchc.program.types import Member, StructType
from fetchc.quantities import ByteOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fetchc.debuginfo.dotnet.metadata.signatures import Signature
    from fetchc.debuginfo.dotnet.types.closed import ClosedTypes
    from fetchc.debuginfo.dotnet.types.types import DotnetTypes

__all__ = ["further_items", "renamed", "with_names"]

TUPLE = "System.ValueTuple`"

OWN_ITEMS = 7  # elements of a tuple; further ones are in another tuple
ITEM, REST = "Item", "Rest"


def further_items(types: DotnetTypes, members: list[Member]) -> tuple[Member, ...]:
    """``Item8`` and so on of a tuple, which are members of its last one."""
    rest = next((one for one in members if one.name == REST), None)
    inner = None if rest is None else types.type(rest.type)
    if rest is None or not isinstance(inner, StructType):
        return ()
    return tuple(
        [
            Member(f"{ITEM}{OWN_ITEMS + number}", one.type, ByteOffset(rest.offset + one.offset))
            for one in (*inner.members, *inner.reckoned)
            if (number := _number(one.name))
        ]
    )


def with_names(closed: ClosedTypes, signature: Signature, number: int, names: Iterator[str]) -> int:
    """A closed type, the tuples in which have the names that the source gives them.

    ``names`` has those of all tuples of the signature, outer ones first, then by type arguments; of
    a long tuple those of all its elements, then of the tuple that holds the further ones. Source:
    dotnet/roslyn, src/Compilers/CSharp/Portable/Symbols/TupleTypeDecoder.cs.
    """
    match signature, closed.types[number]:
        case Generic(_, given), Instance(assembly, row, arguments):
            own: tuple[str, ...] = ()
            if is_tuple(closed, number):
                own = tuple([next(names, "") for _ in range(_length(closed, number))])
            both = zip(given, arguments, strict=True)
            inner = tuple([with_names(closed, one, at, names) for one, at in both])
            return closed.number(Instance(assembly, row, inner, own))
        case ((Pointer(_, inner) | Array(inner, _)), Items(element, rank)):
            return closed.number(Items(with_names(closed, inner, element, names), rank))
        case Pointer(_, inner), Link(kind, target):
            return closed.number(Link(kind, with_names(closed, inner, target, names)))
        case _:
            return number


def is_tuple(closed: ClosedTypes, number: int) -> bool:
    """Whether a type is a tuple of C#."""
    return closed.name(number).startswith(TUPLE)


def _length(closed: ClosedTypes, number: int) -> int:
    arguments = closed.instance(number).arguments
    if len(arguments) <= OWN_ITEMS or not is_tuple(closed, arguments[-1]):
        return len(arguments)
    return OWN_ITEMS + _length(closed, arguments[-1])


def renamed(members: Sequence[Member], names: tuple[str, ...]) -> list[Member]:
    """The elements of a tuple, with their names of the source besides their own."""
    return [_renamed(one, names) for one in members]


def _renamed(one: Member, names: tuple[str, ...]) -> Member:
    number = _number(one.name)
    also = names[number - 1] if 0 < number <= len(names) else ""
    return Member(one.name, one.type, one.offset, also=also)


def _number(name: str) -> int:
    digits = name.removeprefix(ITEM)
    return int(digits) if digits != name and digits.isdecimal() and len(digits) < 6 else 0
