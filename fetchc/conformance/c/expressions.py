"""Questions about a value: as fetchc reads them, and as the C compiler does."""

from __future__ import annotations

from random import Random

from fetchc.conformance.c.types import (
    Code,
    CType,
    Enum,
    Member,
    Number,
    Pointer,
    Struct,
    careful,
    members_of,
    resolved,
)
from fetchc.record import Record

__all__ = [
    "Expression",
    "Node",
    "Questions",
    "Root",
    "any_bytes",
    "is_text",
    "is_wide",
    "kind_of",
    "numbers_of",
]

_FREE = frozenset[str]()
_UNSIGNED = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long"}


class Root(Record):
    """A name visible at the probe, and in C; ``held`` where it may be in registers."""

    name: str
    c: str
    type: CType
    held: bool = False


class Expression(Record):
    """One question: ``text`` for fetchc, ``items`` for C, each with what prints it.

    ``kind`` is the decode's; ``refusals`` are the codes that would be right, too, ``held``
    those that are so where the root is in registers.
    """

    root: Root
    text: str
    kind: str
    items: tuple[str, ...]
    refusals: frozenset[str] = _FREE
    held: frozenset[str] = _FREE
    counted: bool = False
    members: tuple[str, ...] = ()


class Node(Record):
    """A place on a walk: ``steps`` from the root, with its texts for fetchc and for C."""

    text: str
    c: str
    type: CType
    bits: bool = False
    cast: bool = False  # its bytes are another type's: no pointer or truth value among them
    steps: int = 0
    inside: bool = True  # still within the object of the root, which may be in registers

    def to(self, text: str, c: str, made: CType, **other: bool | int) -> Node:
        """The place of another type that ``text`` and ``c`` name, one step on."""
        values = {"cast": self.cast, "inside": self.inside, "bits": False} | other
        return Node(text, c, made, steps=self.steps + 1, **values)  # type: ignore[arg-type]

    def same(self, pattern: str, made: CType, **other: bool | int) -> Node:
        """One step on, by a pattern that both languages read alike."""
        return self.to(pattern.format(self.text), pattern.format(self.c), made, **other)


class Questions:
    """What can be asked of a node that has been reached from ``root``."""

    def __init__(self, random: Random, root: Root, roots: list[Struct]) -> None:
        self.random = random
        self.root = root
        self.roots = roots
        self.refusals: set[str] = set()
        self.held: set[str] = set()

    def chance(self, of: float) -> bool:
        """True that often."""
        return self.random.random() < of

    def expression(self, node: Node, kind: str, *items: str, **other: object) -> Expression:
        """The question, with the refusals that would be right for it."""
        if self.root.held and node.inside:
            # Source: System V ABI, x86-64, 3.2.3: a number that has an address of its own lies
            # within one register, and numbers but floating-point ones in a general register.
            if kind in ("float", "refused", "members"):
                self.held.add("FC0402")
            if kind in ("text", "members", "refused") or other.get("counted") or node.bits:
                self.held |= {"FC0402", "FC0404"}
            if kind == "members":
                self.held.add("FC0312")
        if node.bits:
            self.refusals.add("FC0513")
        text = other.pop("text", node.text)
        codes = frozenset(self.refusals), frozenset(self.held)
        return Expression(self.root, text, kind, items, *codes, **other)  # type: ignore[arg-type]

    def addressed(self, node: Node) -> None:
        """Note that the address of the node is taken."""
        # What is in a register has none, wherever the walk goes on from it.
        if self.root.held and node.inside:
            self.held.add("FC0405")

    def start(self) -> Node:
        """The root itself."""
        return Node(self.root.name, self.root.c, self.root.type)

    def number(self, node: Node) -> Expression:
        """What holds no members: as it is, with another format, or cast."""
        made = resolved(node.type)
        if isinstance(made, Number) and made.wide:
            self.refusals.add("FC0312")
            return self.expression(node, "refused")
        if isinstance(made, Enum) and len(node.text) % 7 == 0:
            # One of its enumerators, whatever the value is: a scoped one within its enumeration.
            space, _, tag = made.tag.rpartition("::")
            scope = made.tag if made.fixed else space
            last = f"{tag}_{len(made.values) - 1}"
            text = f"{scope}::{last}" if scope else last
            return Expression(self.root, text, "enum", (f"NUMBER({text})",))
        kind = made.kind if isinstance(made, Number) else "enum"
        if kind == "float":
            return self.expression(node, kind, f"BYTES({node.c})")
        size = made.size if isinstance(made, Number) else 0
        if self.chance(0.1) and size and kind != "bool" and not node.bits:
            return self.recast(node, size)
        if self.chance(0.1) and kind == "integer":
            # To the same number of bytes or fewer: the kind is the target's.
            to = self.random.choice([it for it in (1, 2, 4, 8) if it <= size])
            sign = self.random.choice(["", "unsigned "])
            name = f"{sign}{ {1: 'char', 2: 'short', 4: 'int', 8: 'long'}[to] }"
            name = "signed char" if name == "char" else name
            if not node.bits:
                c = f"(({name}){node.c})"
                return self.expression(node, "integer", f"NUMBER({c})", text=f"({name}){node.text}")
        return self.expression(node, kind, f"NUMBER({node.c})")

    def recast(self, node: Node, size: int) -> Expression:
        """The low bytes of the number, with a format or through its address."""
        fewer = self.random.choice([it for it in (1, 2, 4, 8) if it <= size])
        name = _UNSIGNED[fewer]
        which = self.random.choice("uxs*")
        if which == "*":
            self.addressed(node)
            text, c = f"*({name} *)&{node.text}", f"*({name} *)&({node.c})"
            return self.expression(node, "integer", f"NUMBER({c})", text=text)
        signed = which == "s"
        name = name.replace("unsigned", "signed") if signed else name
        text = f"{node.text}:{which}{8 * fewer}"
        return self.expression(node, "integer", f"NUMBER(({name}){node.c})", text=text)

    def listed(self, node: Node, text: str, inner: CType, low: int, high: int) -> Expression:
        """The elements from ``low`` up to, not including, ``high``."""
        items = [f"{node.c}[{index}]" for index in range(low, high)]
        kind = kind_of(inner)
        if kind == "char" and text != node.text:
            kind = "integer"  # whoever counts characters wants their numbers
        how = {"float": "BYTES({})", "text": "TEXT({}, 4096)"}.get(kind, "NUMBER({})")
        if kind in ("pointer", "symbol"):
            how = "ADDRESS({})"
        return self.expression(
            node, kind, *[how.format(it) for it in items], counted=True, text=text
        )


def any_bytes(member: Member) -> bool:
    """Whether every byte pattern is a value of the member."""
    return member.width is not None or next(careful(member.type), None) is None


def is_text(made: CType) -> bool:
    """Whether an array of it or a pointer to it is read as text."""
    return isinstance(made, Number) and made.name == "char"


def is_wide(made: CType) -> bool:
    """Whether it is a number wider than any fetch."""
    return isinstance(made, Number) and made.wide


def kind_of(made: CType) -> str:
    """What ``decode`` calls a value of the type."""
    match made:
        case Number(kind=kind):
            return kind
        case Pointer(target=target):
            inner = resolved(target)
            return "symbol" if isinstance(inner, Code) else "text" if is_text(inner) else "pointer"
        case _:
            return "enum"


def numbers_of(made: Struct) -> list[Member]:
    """The members that a fetch of the whole structure shows as whole numbers."""
    found = []
    inherited = {it.name for base in made.bases for it in members_of(base)}
    for member in members_of(made):
        if member.name in inherited:
            continue  # a base is a part of its own
        inner = resolved(member.type)
        fits = isinstance(inner, Number) and inner.kind != "float" and not inner.wide
        if fits or isinstance(inner, Enum):
            found.append(member)
    return found
