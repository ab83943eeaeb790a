"""Expressions that walk a family's types: as fetchc reads them, and as the C compiler does."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from fetchc.conformance.c.expressions import (
    Expression,
    Node,
    Questions,
    Root,
    any_bytes,
    is_text,
    is_wide,
    kind_of,
    numbers_of,
)
from fetchc.conformance.c.types import (
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
    members_of,
    resolved,
)

__all__ = ["leaves", "walk"]


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
        case Struct() as made:
            for member in members_of(made):
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
            case Struct() as made:
                return self.record(node, made)
            case Array(element=element, count=count):
                return self.array(node, element, count)
            case Pointer(target=target):
                return self.pointer(node, target)
            case Reference(target=target):
                return node.same("{}", target, inside=False)
            case _:
                return self.number(node)

    def leaf(self, node: Node) -> Expression:
        made = resolved(node.type)
        if not isinstance(made, Pointer):
            return self.number(node)
        how = "TEXT({}, 4096)" if kind_of(made) == "text" else "ADDRESS({})"
        return self.expression(node, kind_of(made), how.format(node.c))

    def record(self, node: Node, made: Struct) -> Node | Expression:
        usable = [it for it in members_of(made) if not node.cast or any_bytes(it)]
        if not usable or self.chance(0.04):
            return self.sizeof(node)
        if self.chance(0.06) and node.steps and not node.cast and numbers_of(made):
            names = numbers_of(made)
            items = [f"NUMBER({node.c}.{it.name})" for it in names]
            found = tuple(it.name for it in names)
            return self.expression(node, "members", *items, members=found)
        member = self.random.choice(usable)
        if made.tag and member.width is None and self.chance(0.1):
            return self.container(node, made, member)
        return node.same(f"{{}}.{member.name}", member.type, bits=member.width is not None)

    def sizeof(self, node: Node) -> Expression:
        # Nothing is fetched, so nothing can be in the wrong place.
        inside = node.to(node.text, node.c, node.type, inside=False)
        item = f"NUMBER(sizeof({node.c}))"
        return self.expression(inside, "integer", item, text=f"sizeof({node.text})")

    def container(self, node: Node, made: Struct, member: Member) -> Node | Expression:
        whole = f"{made.kind} {made.tag}"
        if self.chance(0.5) or made.flexible is member:
            item = f"NUMBER(__builtin_offsetof({whole}, {member.name}))"
            text = f"offsetof({whole}, {member.name})"
            return self.expression(node.to("", "", made, inside=False), "integer", item, text=text)
        self.addressed(node)
        text = f"container_of(&{node.text}.{member.name}, {whole}, {member.name})"
        moved = f"(char *)&{node.c}.{member.name} - __builtin_offsetof({whole}, {member.name})"
        return node.to(f"(*{text})", f"(*({whole} *)({moved}))", made)

    def array(self, node: Node, element: CType, count: int | None) -> Node | Expression:
        inner = resolved(element)
        known = 3 if count is None else count
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
            low = self.random.randint(0, known - 1)
            high = self.random.randint(low + 1, known)
            return self.listed(node, f"{node.text}[{low}:{high}]", inner, low, high)
        if isinstance(inner, Array) and count is not None and self.chance(0.25):
            rows = self.rows(node, inner, count)
            if rows is not None:
                return rows
        index = self.random.randint(0, known - 1)
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
        away: dict[str, bool | int] = {"inside": False}
        if isinstance(inner, Code):
            return self.expression(node, "symbol", f"ADDRESS({node.c})")
        if isinstance(inner, Void):
            if self.chance(0.3):
                return self.expression(node, "pointer", f"ADDRESS({node.c})")
            spare = self.roots[0]  # what every void pointer leads to
            whole = f"{spare.kind} {spare.tag}"
            return node.same(f"(*({whole} *){{}})", spare, **away)
        if is_text(inner) and self.chance(0.5):
            return self.expression(node, "text", f"TEXT({node.c}, 4096)")
        if not is_text(inner) and (node.steps > 8 or self.chance(0.1)):
            return self.expression(node, "pointer", f"ADDRESS({node.c})")
        if node.steps and not node.cast and not is_text(inner) and self.chance(0.08):
            other = self.random.choice(self.roots)
            if list(filter(any_bytes, members_of(other))):
                whole = f"{other.kind} {other.tag}"
                return node.same(f"(*({whole} *){{}})", other, cast=True, **away)
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
        return node.same(self.random.choice(patterns), target, **away)
