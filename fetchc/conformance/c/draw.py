"""Drawing C types: every kind of member, in every company that C allows."""

from __future__ import annotations

from random import Random

from fetchc.conformance.c.types import (
    Alias,
    Array,
    Code,
    CType,
    Enum,
    Family,
    Member,
    Number,
    Pointer,
    Qualified,
    Record,
    Void,
    careful,
    resolved,
)

__all__ = ["CHARACTERS", "INTEGERS", "draw"]

INTEGERS = {
    **{"short": 2, "unsigned short": 2, "int": 4, "unsigned": 4, "long": 8, "unsigned long": 8},
    **{"long long": 8, "unsigned long long": 8},
}
CHARACTERS = ("char", "signed char", "unsigned char")
_WIDE = {"long double": "float", "__int128": "integer", "double _Complex": "complex"}
_ENUMS = [[0, 1, 7], [-3, 4], [0, 0x90000000], [-1, 70000], [0, 300], [1, 1 << 40], [-(1 << 35), 2]]


def draw(random: Random, number: int, roots: int | None = None) -> Family:
    """A family of up to six structures."""
    return _Drawing(random, number).family(roots or random.randint(2, 6))


class _Drawing:
    def __init__(self, random: Random, number: int) -> None:
        self._random = random
        self._family = Family(number)
        self._names = 0

    def family(self, roots: int) -> Family:
        family = self._family
        for index in range(roots):
            kind = "union" if self._random.random() < 0.12 else "struct"
            family.roots.append(Record(kind, f"T{family.number}_{index}"))
        for root in family.roots:
            small = root.kind == "struct" and self._chance(0.3)
            (self._small if small else self._fill)(root, 0)
            if root.kind == "struct" and self._random.random() < 0.15:
                element = self._plain() if self._chance(0.7) else self._type(1, False)
                root.members.append(Member(self._name(), Array(element, None)))
            family.declared.append(root)
        for _ in family.roots:
            family.signatures.append([self._parameter() for _ in range(self._random.randint(0, 7))])
        return family

    def _chance(self, of: float) -> bool:
        return self._random.random() < of

    def _name(self) -> str:
        self._names += 1
        return f"m{self._names}"

    def _parameter(self) -> CType:
        whole = [it for it in self._complete() if it.flexible is None]
        if whole and self._chance(0.5):
            return self._random.choice(whole)
        return self._random.choice([self._plain(), self._pointer(), Number("double", "float", 8)])

    def _complete(self) -> list[Record]:
        return [it for it in self._family.declared if isinstance(it, Record)]

    def _small(self, made: Record, depth: int) -> None:
        # As small as what is passed in registers, with several members in each of them.
        for _ in range(self._random.randint(2, 4)):
            which = self._random.random()
            if which < (0.65 if depth else 0.2):
                name = self._random.choice(["int", "unsigned", "short", "unsigned char"])
                base = Number(name, "char" if name[-4:] == "char" else "integer", 4)
                width = self._random.randint(1, 8)
                made.members.append(Member(self._name(), base, width))
            elif which < 0.55 and depth < 1:
                inner = Record("struct", "")
                self._small(inner, depth + 1)
                made.members.append(Member(self._name(), inner))
            elif which < 0.7:
                made.members.append(Member(self._name(), self._pointer()))
            else:
                names = ["char", "signed char", "short", "unsigned short", "int", "unsigned"]
                name = self._random.choice(names)
                size = INTEGERS.get(name, 1)
                base = Number(name, "char" if size == 1 else "integer", size)
                number: CType = Array(base, 2) if self._chance(0.2) else base
                made.members.append(Member(self._name(), number))

    def _fill(self, made: Record, depth: int) -> None:
        attributes = ["packed", "aligned(16)", "packed, aligned(4)", "aligned(32)"]
        if self._chance(0.3):
            made.attribute = f" __attribute__(({self._random.choice(attributes)}))"
        guarded = False  # a union has one member at most that may not hold any bytes
        for _ in range(self._random.choice([1, 2, 3, 3, 4, 5, 6, 7])):
            free = made.kind == "union" and guarded
            member = self._member(depth, free, made.kind)
            guarded = guarded or next(careful(member.type), None) is not None
            made.members.append(member)
        if not any(member.name for member in made.members):
            made.members.append(Member(self._name(), self._plain()))

    def _member(self, depth: int, free: bool, kind: str) -> Member:
        which = self._random.random()
        if which < 0.25:
            return self._bit_field(kind)
        if which < 0.35 and depth < 3:
            inner = Record(self._random.choice(["struct", "struct", "union"]), "")
            self._fill(inner, depth + 1)
            if free and next(careful(inner), None):
                return Member(self._name(), self._plain())
            return Member("" if self._chance(0.6) else self._name(), inner)
        made = self._plain() if free else self._type(depth, True)
        attribute = ""
        if self._chance(0.1):
            attribute = f" __attribute__(({self._random.choice(['packed', 'aligned(8)'])}))"
        return Member(self._name(), made, None, attribute)

    def _bit_field(self, kind: str) -> Member:
        which = self._random.random()
        if which < 0.12:
            return Member(self._name(), Number("_Bool", "bool", 1), 1)
        if which < 0.2:
            base: CType = self._enum()
            bits = 3 if isinstance(base, Enum) and base.packed else 17
            return Member(self._name(), base, self._random.randint(1, bits))
        name = self._random.choice([*INTEGERS, *CHARACTERS])
        size = INTEGERS.get(name, 1)
        if which < 0.32 and kind == "struct":
            return Member("", Number(name, "integer", size), self._random.choice([0, 1, 3, 5]))
        made: CType = Number(name, "char" if size == 1 else "integer", size)
        if self._chance(0.2):
            made = self._named(made)
        if self._chance(0.1):
            made = Qualified("volatile", made)
        return Member(self._name(), made, self._random.randint(1, 8 * size))

    def _type(self, depth: int, wide: bool) -> CType:
        which = self._random.random()
        if which < 0.3:
            return self._plain()
        if which < 0.52:
            return self._pointer()
        if which < 0.74:
            element = self._type(depth + 1, wide) if depth < 2 else self._plain()
            if isinstance(resolved(element), Array) and self._chance(0.3):
                element = self._named(element)
            return Array(element, self._random.choice([1, 2, 3, 4, 5]))
        if which < 0.78:
            return Array(Number("char", "char", 1), self._random.choice([1, 4, 9, 16]))
        if which < 0.88 and (complete := [it for it in self._complete() if not it.flexible]):
            return self._dressed(self._random.choice(complete))
        if which < 0.9 and wide:
            name = self._random.choice(list(_WIDE))
            return Number(name, _WIDE[name], 16)
        return self._dressed(self._plain())

    def _plain(self) -> CType:
        which = self._random.random()
        if which < 0.5:
            name = self._random.choice(list(INTEGERS))
            return Number(name, "integer", INTEGERS[name])
        if which < 0.65:
            return Number(self._random.choice(CHARACTERS), "char", 1)
        if which < 0.8:
            return Number(*self._random.choice([("float", "float", 4), ("double", "float", 8)]))
        return self._enum()

    def _enum(self) -> Enum:
        values = self._random.choice(_ENUMS)
        self._names += 1
        made = Enum(f"E{self._family.number}_{self._names}", values, self._chance(0.4))
        self._family.declared.append(made)
        return made

    def _pointer(self) -> CType:
        which = self._random.random()
        target: CType
        if which < 0.4:
            target = self._random.choice(self._family.roots)
        elif which < 0.55:
            target = Number(self._random.choice(CHARACTERS), "char", 1)
        elif which < 0.7:
            target = self._plain()
        elif which < 0.76:
            target = Array(self._plain(), self._random.choice([1, 3]))
        elif which < 0.84:
            target = self._pointer()
        elif which < 0.9:
            target = Number("_Bool", "bool", 1)
        else:
            target = Void() if which < 0.95 else Code()
        if not isinstance(target, Array | Code | Void) and self._chance(0.25):
            target = Qualified(self._random.choice(["const", "volatile", "const volatile"]), target)
        return self._dressed(Pointer(target))

    def _dressed(self, made: CType) -> CType:
        # Behind typedefs and qualifiers, in chains.
        while self._chance(0.25):
            if isinstance(made, Alias | Number | Enum | Pointer) and self._chance(0.4):
                made = Qualified(self._random.choice(["const", "volatile"]), made)
            else:
                made = self._named(made)
        return made

    def _named(self, made: CType) -> Alias:
        self._names += 1
        alias = Alias(f"A{self._family.number}_{self._names}", made)
        if isinstance(made, Number) and made.size > 2 and self._chance(0.4):
            alias.attribute = " __attribute__((aligned(2)))"  # less than its own: reads move
        self._family.declared.append(alias)
        return alias
