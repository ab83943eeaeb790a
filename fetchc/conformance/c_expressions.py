"""Questions about a value: as fetchc reads them, and as the C compiler does."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from fetchc.conformance.c_drawing import (
    Array,
    Code,
    CType,
    Enum,
    Member,
    Number,
    Pointer,
    Reference,
    Struct,
    Void,
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
    "leaves",
    "numbers_of",
    "walk",
]

_FREE = frozenset[str]()
_UNSIGNED = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long"}


class Root(Record):
    """A name visible at the probe, and in C; ``in_registers`` where it may be in registers."""

    name: str
    c: str
    type: CType
    in_registers: bool = False


class Expression(Record):
    """One question: ``text`` for fetchc, ``items`` for C, each with what prints it.

    ``kind`` is the decode's; ``refusals`` are the codes that would be right, too,
    ``register_refusals`` those that are right where the root is in registers.
    """

    root: Root
    text: str
    kind: str
    items: tuple[str, ...]
    refusals: frozenset[str] = _FREE
    register_refusals: frozenset[str] = _FREE
    counted: bool = False
    members: tuple[str, ...] = ()


class Node(Record):
    """A place on a walk: ``steps`` from the root, with its strings for fetchc and for C."""

    text: str
    c: str
    type: CType
    bits: bool = False
    cast: bool = False  # its bytes are another type's: no pointer or truth value among them
    steps: int = 0
    inside: bool = True  # still within the object of the root, which may be in registers

    def to(self, text: str, c: str, c_type: CType, **other: bool | int) -> Node:
        """The place of another type that ``text`` and ``c`` name, one step on."""
        values = {"cast": self.cast, "inside": self.inside, "bits": False} | other
        return Node(text, c, c_type, steps=self.steps + 1, **values)  # type: ignore[arg-type]

    def same(self, pattern: str, c_type: CType, **other: bool | int) -> Node:
        """One step on, by a pattern that both languages read alike."""
        return self.to(pattern.format(self.text), pattern.format(self.c), c_type, **other)


class Questions:
    """What can be asked of a node that has been reached from ``root``."""

    def __init__(self, random: Random, root: Root, roots: list[Struct]) -> None:
        self.random = random
        self.root = root
        self.roots = roots
        self.refusals: set[str] = set()
        self.register_refusals: set[str] = set()

    def chance(self, of: float) -> bool:
        """True that often."""
        return self.random.random() < of

    def expression(self, node: Node, kind: str, *items: str, **other: object) -> Expression:
        """The question, with the refusals that would be right for it."""
        if self.root.in_registers and node.inside:
            # Source: System V ABI, x86-64, 3.2.3: a number that has an address of its own lies
            # within one register, and numbers but floating-point ones in a general register.
            if kind in ("float", "refused", "members"):
                self.register_refusals.add("FC0402")
            if kind in ("text", "members", "refused") or other.get("counted") or node.bits:
                self.register_refusals |= {"FC0402", "FC0404"}
            if kind == "members":
                self.register_refusals.add("FC0312")
        if node.bits:
            self.refusals.add("FC0513")
        text = other.pop("text", node.text)
        codes = frozenset(self.refusals), frozenset(self.register_refusals)
        return Expression(self.root, text, kind, items, *codes, **other)  # type: ignore[arg-type]

    def addressed(self, node: Node) -> None:
        """Note that the address of the node is taken."""
        # What is in a register has none, wherever the walk goes on from it.
        if self.root.in_registers and node.inside:
            self.register_refusals.add("FC0405")

    def start(self) -> Node:
        """The root itself."""
        return Node(self.root.name, self.root.c, self.root.type)

    def number(self, node: Node) -> Expression:
        """What holds no members: as it is, with another format, or cast."""
        inner = resolved(node.type)
        if isinstance(inner, Number) and inner.wide:
            self.refusals.add("FC0312")
            return self.expression(node, "refused")
        if isinstance(inner, Enum) and len(node.text) % 7 == 0:
            # One of its enumerators, whatever the value is: a scoped one within its enumeration.
            space, _, tag = inner.tag.rpartition("::")
            scope = inner.tag if inner.fixed else space
            last = f"{tag}_{len(inner.values) - 1}"
            text = f"{scope}::{last}" if scope else last
            return Expression(self.root, text, "enum", (f"NUMBER({text})",))
        kind = inner.kind if isinstance(inner, Number) else "enum"
        if kind == "float":
            return self.expression(node, kind, f"BYTES({node.c})")
        size = inner.size if isinstance(inner, Number) else 0
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
            kind = "integer"  # a count of characters is of their numbers
        how = {"float": "BYTES({})", "text": "TEXT({}, 4096)"}.get(kind, "NUMBER({})")
        if kind in ("pointer", "symbol"):
            how = "ADDRESS({})"
        return self.expression(
            node, kind, *[how.format(it) for it in items], counted=True, text=text
        )


def any_bytes(member: Member) -> bool:
    """Whether every byte pattern is a value of the member."""
    return member.width is not None or next(careful(member.type), None) is None


def is_text(c_type: CType) -> bool:
    """Whether an array of it or a pointer to it is read as text."""
    return isinstance(c_type, Number) and c_type.name == "char"


def is_wide(c_type: CType) -> bool:
    """Whether it is a number wider than any fetch."""
    return isinstance(c_type, Number) and c_type.wide


def kind_of(c_type: CType) -> str:
    """What ``decode`` calls a value of the type."""
    match c_type:
        case Number(kind=kind):
            return kind
        case Pointer(target=target):
            inner = resolved(target)
            return "symbol" if isinstance(inner, Code) else "text" if is_text(inner) else "pointer"
        case _:
            return "enum"


def numbers_of(struct: Struct) -> list[Member]:
    """The members that a fetch of the whole structure shows as whole numbers."""
    found = []
    inherited = {it.name for base in struct.bases for it in members_of(base)}
    for member in members_of(struct):
        if member.name in inherited:
            continue  # a base is a part of its own
        inner = resolved(member.type)
        fits = isinstance(inner, Number) and inner.kind != "float" and not inner.wide
        if fits or isinstance(inner, Enum):
            found.append(member)
    return found


# ------------------------------------------------------------------------------
# Expressions that walk a family's types: as fetchc reads them, and as the C compiler does.


def walk(random: Random, root: Root, roots: list[Struct]) -> Expression:
    """One expression from ``root``."""
    return _Walk(random, root, roots).run()


def leaves(random: Random, root: Root, most: int) -> list[Expression]:
    """The numbers and pointers in the object ``root``: all, or ``most`` that are drawn."""
    start = Node(root.name, root.c, root.type)
    found = list(_leaves(start))
    if len(found) > most:
        found = random.sample(found, most)
    return [_Walk(random, root, []).leaf(node) for node in found]


def _leaves(node: Node) -> Iterator[Node]:
    match resolved(node.type):
        case Struct() as struct:
            for member in members_of(struct):
                bits = member.width is not None
                yield from _leaves(node.same(f"{{}}.{member.name}", member.type, bits=bits))
        case Array(element=element, count=count) if count:
            for index in range(count):
                yield from _leaves(node.same(f"{{}}[{index}]", element))
        case _:
            yield node


class _Walk(Questions):
    def run(self) -> Expression:
        node = self.start()
        while True:
            stepped = self.step(node)
            if isinstance(stepped, Expression):
                return stepped
            node = stepped

    def step(self, node: Node) -> Node | Expression:
        match resolved(node.type):
            case Struct() as struct:
                return self.record(node, struct)
            case Array(element=element, count=count):
                return self.array(node, element, count)
            case Pointer(target=target):
                return self.pointer(node, target)
            case Reference(target=target):
                return node.same("{}", target, inside=False)
            case _:
                return self.number(node)

    def leaf(self, node: Node) -> Expression:
        inner = resolved(node.type)
        if not isinstance(inner, Pointer):
            return self.number(node)
        how = "TEXT({}, 4096)" if kind_of(inner) == "text" else "ADDRESS({})"
        return self.expression(node, kind_of(inner), how.format(node.c))

    def record(self, node: Node, struct: Struct) -> Node | Expression:
        usable = [it for it in members_of(struct) if not node.cast or any_bytes(it)]
        if not usable or self.chance(0.04):
            return self.sizeof(node)
        if self.chance(0.06) and node.steps and not node.cast and numbers_of(struct):
            names = numbers_of(struct)
            items = [f"NUMBER({node.c}.{it.name})" for it in names]
            shown = tuple(it.name for it in names)
            if any(it.width is not None for it in names):
                self.refusals.add("FC0513")
            return self.expression(node, "members", *items, members=shown)
        member = self.random.choice(usable)
        if struct.tag and member.width is None and self.chance(0.1):
            return self.container(node, struct, member)
        return node.same(f"{{}}.{member.name}", member.type, bits=member.width is not None)

    def sizeof(self, node: Node) -> Expression:
        # Nothing is fetched, so nothing can be in the wrong place.
        inside = node.to(node.text, node.c, node.type, inside=False)
        item = f"NUMBER(sizeof({node.c}))"
        return self.expression(inside, "integer", item, text=f"sizeof({node.text})")

    def container(self, node: Node, struct: Struct, member: Member) -> Node | Expression:
        whole = f"{struct.kind} {struct.tag}"
        if self.chance(0.5) or struct.flexible is member:
            item = f"NUMBER(__builtin_offsetof({whole}, {member.name}))"
            text = f"offsetof({whole}, {member.name})"
            return self.expression(
                node.to("", "", struct, inside=False), "integer", item, text=text
            )
        self.addressed(node)
        text = f"container_of(&{node.text}.{member.name}, {whole}, {member.name})"
        moved = f"(char *)&{node.c}.{member.name} - __builtin_offsetof({whole}, {member.name})"
        return node.to(f"(*{text})", f"(*({whole} *)({moved}))", struct)

    def array(self, node: Node, element: CType, count: int | None) -> Node | Expression:
        inner = resolved(element)
        length = 3 if count is None else count
        single = isinstance(inner, Number | Enum | Pointer) and not is_wide(inner)
        if count is not None and self.chance(0.06):
            item = f"NUMBER(sizeof({node.c}) / sizeof({node.c}[0]))"
            inside = node.to("", "", node.type, inside=False)
            return self.expression(inside, "integer", item, text=f"len({node.text})")
        if single and count is not None and self.chance(0.3):
            if is_text(inner):
                return self.expression(node, "text", f"TEXT({node.c}, sizeof({node.c}))")
            return self.listed(node, node.text, inner, 0, count)
        if single and self.chance(0.2):
            low = self.random.randint(0, length - 1)
            high = self.random.randint(low + 1, length)
            return self.listed(node, f"{node.text}[{low}:{high}]", inner, low, high)
        if isinstance(inner, Array) and count is not None and self.chance(0.25):
            rows = self.rows(node, inner, count)
            if rows is not None:
                return rows
        index = self.random.randint(0, length - 1)
        if self.chance(0.2):
            self.addressed(node)
            return node.same(f"(*({{}} + {index}))", element)
        return node.same(f"{{}}[{index}]", element)

    def rows(self, node: Node, inner: Array, count: int) -> Expression | None:
        # An array of arrays is its elements in order.
        element = resolved(inner.element)
        if inner.count is None or not isinstance(element, Number | Enum) or is_wide(element):
            return None
        if count * inner.count > 64 or (node.cast and kind_of(element) == "bool"):
            return None
        places = [f"{node.c}[{row}][{at}]" for row in range(count) for at in range(inner.count)]
        how = "BYTES({})" if kind_of(element) == "float" else "NUMBER({})"
        items = [how.format(it) for it in places]
        return self.expression(node, kind_of(element), *items, counted=True)

    def pointer(self, node: Node, target: CType) -> Node | Expression:
        inner = resolved(target)
        outside: dict[str, bool | int] = {"inside": False}
        if isinstance(inner, Code):
            return self.expression(node, "symbol", f"ADDRESS({node.c})")
        if isinstance(inner, Void):
            if self.chance(0.3):
                return self.expression(node, "pointer", f"ADDRESS({node.c})")
            spare = self.roots[0]  # what every void pointer leads to
            whole = f"{spare.kind} {spare.tag}"
            return node.same(f"(*({whole} *){{}})", spare, **outside)
        if is_text(inner) and self.chance(0.5):
            return self.expression(node, "text", f"TEXT({node.c}, 4096)")
        if not is_text(inner) and (node.steps > 8 or self.chance(0.1)):
            return self.expression(node, "pointer", f"ADDRESS({node.c})")
        if node.steps and not node.cast and not is_text(inner) and self.chance(0.08):
            other = self.random.choice(self.roots)
            if list(filter(any_bytes, members_of(other))):
                whole = f"{other.kind} {other.tag}"
                return node.same(f"(*({whole} *){{}})", other, cast=True, **outside)
        alone = isinstance(inner, Struct) and inner.flexible is not None
        low, high = (0, 0) if alone or is_text(inner) else (-1, 1)
        if is_text(inner):
            high = 3
        if isinstance(inner, Number | Enum) and not is_wide(inner) and self.chance(0.15):
            start = self.random.randint(low, high)
            end = self.random.randint(start + 1, high + 1)
            return self.listed(node, f"{node.text}[{start}:{end}]", inner, start, end)
        index = self.random.randint(low, high)
        offset = f"{'-' if index < 0 else '+'} {abs(index)}"
        patterns = ["(*{})"] if index == 0 else [f"{{}}[{index}]", f"(*({{}} {offset}))"]
        return node.same(self.random.choice(patterns), target, **outside)
