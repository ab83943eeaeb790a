"""Drawing C and C++ types: every kind of member, in every company that the languages allow.

The drawing takes a ``random.Random``: a seeded one for programs of many types, or one of
``hypothesis.strategies.randoms()`` for a few types that shrink.
"""

from __future__ import annotations

from random import Random

from fetchc.conformance.c.draw_types import (
    CHARACTERS,
    FLOATS,
    INTEGERS,
    WIDE,
    TypeDrawing,
    arithmetic,
)
from fetchc.conformance.c.family import Family, Signature, Variable
from fetchc.conformance.c.types import (
    Array,
    CType,
    Member,
    Number,
    Pointer,
    Reference,
    Struct,
    Void,
    careful,
    resolved,
)

__all__ = ["draw", "draw_signatures"]


def draw(random: Random, number: int, roots: int | None = None, plus: bool = False) -> Family:
    """A family of up to six structures; ``plus``: of C++."""
    return _Drawing(random, number, plus).family(roots or random.randint(2, 6))


def draw_signatures(random: Random, number: int, functions: int, plus: bool = False) -> Family:
    """A family with ``functions`` signatures of structures of 1 to 40 bytes and of numbers."""
    return _Drawing(random, number, plus).signatures(functions)


class _Drawing(TypeDrawing):
    def family(self, roots: int) -> Family:
        family = self._family
        kinds = ["struct", "struct", "class"] if self._plus else ["struct"]
        for index in range(roots):
            kind = "union" if self._chance(0.12) else self._random.choice(kinds)
            family.roots.append(Struct(kind, f"{self._prefix}T{family.number}_{index}"))
        for root in family.roots:
            small = root.kind != "union" and self._chance(0.3)
            if self._plus and root.kind != "union":
                self._inherit(root)
            (self._small if small else self._fill)(root, 0)
            if root.kind != "union" and self._chance(0.15):
                element = self._plain() if self._chance(0.7) else self._type(1, False)
                root.members.append(Member(self._name(), Array(element, None)))
            family.declared.append(root)
        for _ in family.roots:
            taken = [self._parameter() for _ in range(self._random.randint(0, 7))]
            given = self._parameter(result=True) if self._chance(0.4) else None
            family.signatures.append(Signature(tuple(taken), given))
        for index in range(self._random.randint(1, 3)):
            name = f"{self._prefix}g{family.number}_{index}"
            storage = self._random.choice(
                ["", "static"] if self._plus else ["", "static", "static volatile"]
            )
            family.globals.append(Variable(name, self._object(), storage))
        return family

    def signatures(self, functions: int) -> Family:
        family = self._family
        for _ in range(functions):
            most = self._random.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 14])
            floating = 0.8 if self._chance(0.2) else 0.15  # more than there are registers for
            taken = [self._argument(floating) for _ in range(most)]
            given = self._argument(0.15) if self._chance(0.8) else None
            family.signatures.append(Signature(tuple(taken), given))
        return family

    def _parameter(self, result: bool = False) -> CType:
        if self._chance(0.5):
            return self._object()
        if self._plus and not result and self._chance(0.3):
            return Reference(self._random.choice([*self._complete(), self._plain()]))
        return self._random.choice([self._plain(), self._pointer(), self._float()])

    def _object(self) -> CType:
        whole = [it for it in self._complete() if not it.flexible]
        return self._random.choice(whole) if whole else self._plain()

    def _inherit(self, made: Struct) -> None:
        # From what has no base in common: a member there twice would have two meanings.
        met: set[str] = set()
        for base in self._complete():
            above = {it.tag for it in _ancestors(base)}
            usable = base.kind != "union" and not base.flexible and not met & above
            if usable and len(made.bases) < 3 and self._chance(0.4):
                made.bases.append(base)
                met |= above

    def _argument(self, floating: float) -> CType:
        if self._chance(floating):
            return self._float()
        which = self._random.random()
        if which < 0.55:
            return self._sized(self._random.randint(1, 40))
        if which < 0.64:
            name = self._random.choice(list(WIDE))
            return Number(name, WIDE[name], 16)
        if which < 0.69:
            return Number("_Bool", "bool", 1)
        if which < 0.8:
            target = self._random.choice([arithmetic("char"), Void(), self._plain()])
            return Pointer(target)
        return self._plain()

    def _sized(self, room: int) -> Struct:
        # Members until about ``room`` bytes are full; padding comes on top of it.
        made = Struct("struct", f"{self._prefix}V{self._family.number}_{len(self._complete())}")
        if self._chance(0.2):
            choices = ["packed", "aligned(16)", "aligned(32)"]
            made.attribute = f" __attribute__(({self._random.choice(choices)}))"
        alike = self._random.choice(["float", "double", "int"]) if self._chance(0.3) else ""
        inner = [it for it in self._complete() if _about(it) <= room]
        while room > 0 or not made.members:
            member = self._of_at_most(max(room, 1), alike, inner)
            room -= _about(member.type) if member.width is None else 1
            made.members.append(member)
        self._family.declared.append(made)
        return made

    def _of_at_most(self, room: int, alike: str, inner: list[Struct]) -> Member:
        which = self._random.random()
        sizes = FLOATS | INTEGERS | dict.fromkeys(CHARACTERS, 1)
        if alike and sizes[alike] <= room:
            sizes = {alike: sizes[alike]}
        elif which < 0.12:
            base = self._random.choice(["int", "unsigned", "long", "unsigned char"])
            number = arithmetic(base)
            return Member(self._name(), number, self._random.randint(1, 8 * number.size))
        elif which < 0.22 and (fits := [it for it in inner if _about(it) <= room]):
            return Member(self._name(), self._random.choice(fits))
        name = self._random.choice([it for it, size in sizes.items() if size <= room])
        size = sizes[name]
        made: CType = arithmetic(name)
        if room >= 2 * size and self._chance(0.25):
            made = Array(made, self._random.randint(1, min(5, room // size)))
        return Member(self._name(), made)

    def _small(self, made: Struct, depth: int) -> None:
        # As small as what is passed in registers, with several members in each of them.
        for _ in range(self._random.randint(2, 4)):
            which = self._random.random()
            if which < (0.65 if depth else 0.2):
                name = self._random.choice(["int", "unsigned", "short", "unsigned char"])
                width = self._random.randint(1, 8)
                made.members.append(Member(self._name(), arithmetic(name), width))
            elif which < 0.55 and depth < 1:
                inner = Struct("struct", "")
                self._small(inner, depth + 1)
                made.members.append(Member(self._name(), inner))
            elif which < 0.7:
                made.members.append(Member(self._name(), self._pointer()))
            else:
                names = ["char", "signed char", "short", "unsigned short", "int", "unsigned"]
                name = self._random.choice(names)
                base = arithmetic(name)
                number: CType = Array(base, 2) if self._chance(0.2) else base
                made.members.append(Member(self._name(), number))

    def _fill(self, made: Struct, depth: int) -> None:
        attributes = ["packed", "aligned(16)", "packed, aligned(4)", "aligned(32)"]
        if self._chance(0.3):
            made.attribute = f" __attribute__(({self._random.choice(attributes)}))"
        guarded = False  # a union has one member at most that may not hold any bytes
        for _ in range(self._random.choice([1, 2, 3, 3, 4, 5, 6, 7])):
            free = made.kind == "union" and guarded
            member = self._member(depth, free, made.kind)
            guarded = guarded or next(careful(member.type), None) is not None
            made.members.append(member)
        if "packed" in made.attribute:
            _narrow(made)
        if not any(member.name for member in made.members):
            made.members.append(Member(self._name(), self._plain()))

    def _member(self, depth: int, free: bool, kind: str) -> Member:
        which = self._random.random()
        if which < 0.25:
            return self._bit_field(kind)
        if which < 0.35 and depth < 3:
            inner = Struct(self._random.choice(["struct", "struct", "union"]), "")
            self._fill(inner, depth + 1)
            if free and next(careful(inner), None):
                return Member(self._name(), self._plain())
            return Member("" if self._chance(0.6) else self._name(), inner)
        made = self._plain() if free else self._type(depth, True)
        attribute = ""
        if self._chance(0.1):
            attribute = f" __attribute__(({self._random.choice(['packed', 'aligned(8)'])}))"
        return Member(self._name(), made, None, attribute)


def _narrow(made: Struct) -> None:
    # clang 14 leaves out where a packed bit field begins that is as wide as its type. That shows
    # where it overlaps another one, and does not where only an unnamed one is before it.
    if all(it.name or it.width is None for it in made.members):
        return
    for index, member in enumerate(made.members):
        inner = resolved(member.type)
        if isinstance(inner, Number) and member.width == 8 * inner.size and inner.size > 1:
            made.members[index] = Member(member.name, member.type, member.width - 1)


def _ancestors(made: Struct) -> list[Struct]:
    return [made, *(above for base in made.bases for above in _ancestors(base))]


def _about(made: CType) -> int:
    # Bytes without padding.
    match resolved(made):
        case Number(size=size):
            return size
        case Array(element=element, count=count):
            return _about(element) * (count or 0)
        case Struct(members=members):
            return sum(_about(it.type) if it.width is None else 1 for it in members)
        case _:
            return 8
