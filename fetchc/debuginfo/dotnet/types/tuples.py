"""Tuples of C#: elements behind the seventh, names that the source has for them.

``(a, b, …, h, i)`` is a ValueTuple of seven and ``Rest``, which is another tuple. Source: ECMA-334,
8.3.11 (tuple types); dotnet/runtime, ValueTuple.cs.
"""

from __future__ import annotations

from fetchc.program.types import Member, StructType
from fetchc.units import ByteOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.types.types import DotnetTypes
    from fetchc.units import TypeId

__all__ = ["further_items", "with_names"]

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


def with_names(types: DotnetTypes, tuple_id: TypeId, names: tuple[str, ...]) -> TypeId:
    """A tuple whose elements have names of the source besides their own.

    ``names`` has those of inner tuples behind the tuple's own.
    """
    made = types.type(tuple_id)
    if not isinstance(made, StructType) or not any(names):
        return tuple_id
    members, reckoned = (
        tuple([_renamed(one, names) for one in some]) for some in (made.members, made.reckoned)
    )
    return types.intern(StructType(made.name, made.kind, made.size, members, reckoned=reckoned))


def _renamed(one: Member, names: tuple[str, ...]) -> Member:
    number = _number(one.name)
    also = names[number - 1] if 0 < number <= len(names) else ""
    return Member(one.name, one.type, one.offset, also=also)


def _number(name: str) -> int:
    digits = name.removeprefix(ITEM)
    return int(digits) if digits != name and digits.isdecimal() and len(digits) < 6 else 0
