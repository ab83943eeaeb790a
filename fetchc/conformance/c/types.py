"""C types as data, drawn at random: what a layout test declares, fills and walks.

The drawing takes a ``random.Random``: a seeded one for programs of many types, or one of
``hypothesis.strategies.randoms()`` for a few types that shrink. Nothing here knows where a
compiler puts a member; only the compiler does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = [
    "Alias",
    "Array",
    "CType",
    "Code",
    "Enum",
    "Family",
    "Member",
    "Number",
    "Pointer",
    "Qualified",
    "Record",
    "Void",
    "careful",
    "declare",
    "members_of",
    "resolved",
]


@dataclass(eq=False)
class Number:
    """An arithmetic type; ``kind`` is what ``decode`` calls it."""

    name: str
    kind: str
    size: int

    @property
    def wide(self) -> bool:
        """Wider than any fetch."""
        return self.size > 8 or self.kind == "complex"


@dataclass(eq=False)
class Enum:
    """``enum tag``; ``size`` 0 stands for the compiler's choice."""

    tag: str
    values: list[int]
    packed: bool


@dataclass(eq=False)
class Void:
    """What a ``void *`` leads to."""


@dataclass(eq=False)
class Code:
    """What a function pointer leads to."""


@dataclass(eq=False)
class Pointer:
    """A pointer; a structure that it leads to may point back."""

    target: CType


@dataclass(eq=False)
class Array:
    """``count`` None is a flexible array."""

    element: CType
    count: int | None


@dataclass(eq=False)
class Qualified:
    """``const``, ``volatile`` or both."""

    qualifier: str
    target: CType


@dataclass(eq=False)
class Alias:
    """A typedef."""

    name: str
    target: CType
    attribute: str = ""


@dataclass(eq=False)
class Member:
    """An empty name is an anonymous member, or with a width a bit field that only takes room."""

    name: str
    type: CType
    width: int | None = None
    attribute: str = ""


@dataclass(eq=False)
class Record:
    """A structure or union; an empty tag stands for a type written where it is used."""

    kind: str
    tag: str
    members: list[Member] = field(default_factory=list)
    attribute: str = ""

    @property
    def flexible(self) -> Member | None:
        """The array at the end that has no bound."""
        last = self.members[-1] if self.members else None
        return last if last and isinstance(last.type, Array) and last.type.count is None else None


CType = Number | Enum | Void | Code | Pointer | Array | Qualified | Alias | Record


def resolved(made: CType) -> CType:
    """The type without typedefs and qualifiers."""
    while isinstance(made, Alias | Qualified):
        made = made.target
    return made


def declare(made: CType, name: str) -> str:
    """A declaration of ``name``; a type's name where that is empty."""
    match made:
        case Number():
            return f"{made.name} {name}".strip()
        case Enum():
            return f"enum {made.tag} {name}".strip()
        case Alias():
            return f"{made.name} {name}".strip()
        case Void():
            return f"void {name}".strip()
        case Code():
            return f"int {name}(int, void *)"
        case Record(tag=""):
            return f"{body(made)} {name}".strip()
        case Record():
            return f"{made.kind} {made.tag} {name}".strip()
        case Array(element=element, count=count):
            return declare(element, f"{name}[{'' if count is None else count}]")
        case Pointer(target=target):
            starred = f"*{name}"
            return declare(target, f"({starred})" if isinstance(target, Array | Code) else starred)
        case Qualified(qualifier=qualifier, target=Pointer() as target):
            return declare(target, f"{qualifier} {name}".strip())
        case Qualified(qualifier=qualifier, target=target):
            return f"{qualifier} {declare(target, name)}"


def body(made: Record) -> str:
    """The definition of a structure or union."""
    lines = []
    for member in made.members:
        width = "" if member.width is None else f" : {member.width}"
        lines.append(f"{declare(member.type, member.name)}{width}{member.attribute};")
    return f"{made.kind} {made.tag} {{ {' '.join(lines)} }}{made.attribute}"


def members_of(made: Record) -> Iterator[Member]:
    """The members that have names, those of anonymous ones among them."""
    for member in made.members:
        inner = resolved(member.type)
        if member.name:
            yield member
        elif isinstance(inner, Record):
            yield from members_of(inner)


def careful(made: CType, path: str = "") -> Iterator[tuple[str, CType]]:
    """Paths of what may not hold any bytes: pointers and truth values."""
    found = resolved(made)
    match found:
        case Pointer() | Number(kind="bool"):
            yield path, found
        case Array(element=element, count=count):
            for index in range(3 if count is None else count):
                yield from careful(element, f"{path}[{index}]")
        case Record():
            for member in members_of(found):
                if member.width is None:
                    yield from careful(member.type, f"{path}.{member.name}")
        case _:
            pass


@dataclass(eq=False)
class Family:
    """Structures that point at each other, and what is declared for them, in order."""

    number: int
    declared: list[Enum | Alias | Record] = field(default_factory=list)
    roots: list[Record] = field(default_factory=list)
    signatures: list[list[CType]] = field(default_factory=list)  # behind the pointer, a root each

    def source(self) -> str:
        """The declarations."""
        lines = [f"{root.kind} {root.tag};" for root in self.roots]
        for made in self.declared:
            match made:
                case Enum(tag=tag, values=values):
                    listed = ", ".join(f"{tag}_{n} = {v}" for n, v in enumerate(values))
                    packed = " __attribute__((packed))" if made.packed else ""
                    lines.append(f"enum {tag} {{ {listed} }}{packed};")
                case Alias(name=name, target=target, attribute=attribute):
                    lines.append(f"typedef {declare(target, name)}{attribute};")
                case Record():
                    lines.append(f"{body(made)};")
        return "\n".join(lines)
