"""C and C++ types as data, drawn at random: what a program declares, fills and walks.

Nothing here knows where a compiler puts a member; only the compiler does.
"""

from __future__ import annotations

from collections.abc import Iterator

from fetchc.record import Record

__all__ = [
    "Alias",
    "Array",
    "CType",
    "Code",
    "Enum",
    "Member",
    "Number",
    "Pointer",
    "Qualified",
    "Reference",
    "Struct",
    "Void",
    "body",
    "careful",
    "declare",
    "members_of",
    "resolved",
    "short",
]


class Number(Record):
    """An arithmetic type; ``kind`` is what ``decode`` calls it."""

    name: str
    kind: str
    size: int

    @property
    def wide(self) -> bool:
        """Wider than any fetch."""
        return self.size > 8 or self.kind == "complex"


class Enum(Record):
    """``enum tag``; ``fixed`` is the underlying type of a scoped one of C++."""

    tag: str
    values: tuple[int, ...]
    packed: bool
    fixed: str = ""


class Void(Record):
    """What a ``void *`` leads to."""


class Code(Record):
    """What a function pointer leads to."""


class Pointer(Record):
    """A pointer; a structure that it leads to may point back."""

    target: CType


class Reference(Record):
    """A C++ reference; only parameters are of that type."""

    target: CType


class Array(Record):
    """``count`` None is a flexible array."""

    element: CType
    count: int | None


class Qualified(Record):
    """``const``, ``volatile`` or both, ``_Atomic``."""

    qualifier: str
    target: CType


class Alias(Record):
    """A typedef."""

    name: str
    target: CType
    attribute: str = ""


class Member(Record):
    """An empty name is an anonymous member, or with a width a bit field that only takes room."""

    name: str
    type: CType
    width: int | None = None
    attribute: str = ""


class Struct:
    """A structure, class or union; an empty tag stands for a type written where it is used.

    Mutable, for it may be used before it is complete, and lose members when a failure is made
    smaller.
    """

    __match_args__ = ("kind", "tag", "members", "attribute", "bases")

    def __init__(self, kind: str, tag: str) -> None:
        self.kind = kind
        self.tag = tag
        self.members: list[Member] = []
        self.attribute = ""
        self.bases: list[Struct] = []

    @property
    def flexible(self) -> Member | None:
        """The array at the end that has no bound."""
        last = self.members[-1] if self.members else None
        return last if last and isinstance(last.type, Array) and last.type.count is None else None


CType = Number | Enum | Void | Code | Pointer | Reference | Array | Qualified | Alias | Struct


def resolved(made: CType) -> CType:
    """The type without typedefs and qualifiers."""
    while isinstance(made, Alias | Qualified):
        made = made.target
    return made


def short(tag: str) -> str:
    """A tag without its namespace."""
    return tag.rpartition("::")[2]


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
        case Struct(tag=""):
            return f"{body(made)} {name}".strip()
        case Struct():
            return f"{made.kind} {made.tag} {name}".strip()
        case Array(element=element, count=count):
            return declare(element, f"{name}[{'' if count is None else count}]")
        case Pointer(target=target) | Reference(target=target):
            starred = f"{'*' if isinstance(made, Pointer) else '&'}{name}"
            return declare(target, f"({starred})" if isinstance(target, Array | Code) else starred)
        case Qualified(qualifier=qualifier, target=Pointer() as target):
            return declare(target, f"{qualifier} {name}".strip())
        case Qualified(qualifier=qualifier, target=target):
            return f"{qualifier} {declare(target, name)}"


def body(made: Struct) -> str:
    """The definition of a structure, class or union."""
    lines = ["public:"] if made.kind == "class" else []
    for member in made.members:
        width = "" if member.width is None else f" : {member.width}"
        lines.append(f"{declare(member.type, member.name)}{width}{member.attribute};")
    bases = ", ".join(f"public {base.tag}" for base in made.bases)
    # Behind the keyword: the one place that C and C++ both know.
    head = f"{made.kind}{made.attribute} {short(made.tag)}{f' : {bases}' if bases else ''}"
    return f"{head} {{ {' '.join(lines)} }}"


def members_of(made: Struct) -> Iterator[Member]:
    """The members that have names, those of bases and anonymous members among them."""
    for base in made.bases:
        yield from members_of(base)
    for member in made.members:
        inner = resolved(member.type)
        if member.name:
            yield member
        elif isinstance(inner, Struct):
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
        case Struct():
            for member in members_of(found):
                if member.width is None:
                    yield from careful(member.type, f"{path}.{member.name}")
        case _:
            pass
