"""Drawing one C or C++ type, or one bit field: numbers, enumerations, pointers, arrays, aliases."""

from __future__ import annotations

from random import Random

from fetchc.conformance.c.family import Family
from fetchc.conformance.c.types import (
    Alias,
    Array,
    Code,
    CType,
    Enum,
    Member,
    Number,
    Pointer,
    Qualified,
    Struct,
    Void,
    resolved,
)

__all__ = ["CHARACTERS", "FLOATS", "INTEGERS", "WIDE", "TypeDrawing", "arithmetic"]

INTEGERS = {
    **{"short": 2, "unsigned short": 2, "int": 4, "unsigned": 4, "long": 8, "unsigned long": 8},
    **{"long long": 8, "unsigned long long": 8},
}
CHARACTERS = ("char", "signed char", "unsigned char")
FLOATS = {"float": 4, "double": 8}
WIDE = {"long double": "float", "__int128": "integer", "double _Complex": "complex"}
_ENUMS = [(0, 1, 7), (-3, 4), (0, 0x90000000), (-1, 70000), (0, 300), (1, 1 << 40), (-(1 << 35), 2)]
_FIXED = ["unsigned char", "short", "unsigned", "long"]


def arithmetic(name: str) -> Number:
    """The number of that name. Only ``char`` alone is a character; the other two are numbers."""
    if name in FLOATS:
        return Number(name, "float", FLOATS[name])
    return Number(name, "char" if name == "char" else "integer", INTEGERS.get(name, 1))


class TypeDrawing:
    """Types of one family; what has to be declared for them goes into it. ``plus``: of C++."""

    def __init__(self, random: Random, number: int, plus: bool) -> None:
        self._random = random
        self._plus = plus
        space = f"N{number}" if plus and self._chance(0.5) else ""
        self._family = Family(number, plus, space)
        self._prefix = f"{space}::" if space else ""
        self._names = 0

    def _chance(self, of: float) -> bool:
        return self._random.random() < of

    def _name(self) -> str:
        self._names += 1
        return f"m{self._names}"

    def _complete(self) -> list[Struct]:
        return [it for it in self._family.declared if isinstance(it, Struct)]

    def _bit_field(self, kind: str) -> Member:
        which = self._random.random()
        if which < 0.12:
            return Member(self._name(), Number("_Bool", "bool", 1), 1)
        if which < 0.2:
            base: CType = self._enum()
            bits = 3 if isinstance(base, Enum) and (base.packed or base.fixed) else 17
            return Member(self._name(), base, self._random.randint(1, bits))
        name = self._random.choice([*INTEGERS, *CHARACTERS])
        size = INTEGERS.get(name, 1)
        if which < 0.32 and kind != "union":
            return Member("", Number(name, "integer", size), self._random.choice([0, 1, 3, 5]))
        made: CType = arithmetic(name)
        if self._chance(0.2):
            made = self._named(made)
        if self._chance(0.1) and not self._plus:
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
            return Array(arithmetic("char"), self._random.choice([1, 4, 9, 16]))
        if which < 0.88 and (complete := [it for it in self._complete() if not it.flexible]):
            return self._dressed(self._random.choice(complete))
        if which < 0.9 and wide:
            name = self._random.choice(list(WIDE))
            return Number(name, WIDE[name], 16)
        return self._dressed(self._plain())

    def _plain(self) -> CType:
        which = self._random.random()
        if which < 0.5:
            name = self._random.choice(list(INTEGERS))
            return arithmetic(name)
        if which < 0.65:
            return arithmetic(self._random.choice(CHARACTERS))
        if which < 0.8:
            return self._float()
        return self._enum()

    def _float(self) -> Number:
        return arithmetic(self._random.choice(list(FLOATS)))

    def _enum(self) -> Enum:
        values = self._random.choice(_ENUMS)
        self._names += 1
        tag = f"{self._prefix}E{self._family.number}_{self._names}"
        fixed = self._random.choice(_FIXED) if self._plus and self._chance(0.5) else ""
        if fixed:
            values = (0, 1, 100)
        made = Enum(tag, values, not fixed and self._chance(0.4), fixed)
        self._family.declared.append(made)
        return made

    def _pointer(self) -> CType:
        which = self._random.random()
        target: CType
        if which < 0.4:
            target = self._random.choice(self._family.roots)
        elif which < 0.55:
            target = arithmetic(self._random.choice(CHARACTERS))
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
            qualifiers = ["const", "volatile", "const volatile"]
            if isinstance(target, Number) and not self._plus:
                qualifiers.append("_Atomic")
            target = _qualified(self._random.choice(qualifiers), target)
        return self._dressed(Pointer(target))

    def _dressed(self, made: CType) -> CType:
        # Behind typedefs and qualifiers, in chains.
        while self._chance(0.25):
            if isinstance(made, Alias | Number | Enum | Pointer) and self._chance(0.4):
                # In C++ nothing that holds a volatile object can be copied.
                qualifiers = ["const"] if self._plus else ["const", "volatile"]
                made = _qualified(self._random.choice(qualifiers), made)
            else:
                made = self._named(made)
        return made

    def _named(self, made: CType) -> Alias:
        self._names += 1
        name = f"{self._prefix}A{self._family.number}_{self._names}"
        under = isinstance(made, Number) and made.size > 2 and self._chance(0.4)
        # Less than its own: reads move.
        alias = Alias(name, made, " __attribute__((aligned(2)))" if under else "")
        self._family.declared.append(alias)
        return alias


def _qualified(qualifier: str, made: CType) -> CType:
    # One layer for all words, each of them once.
    if not isinstance(made, Qualified):
        return Qualified(qualifier, made)
    words = dict.fromkeys([*qualifier.split(), *made.qualifier.split()])
    return Qualified(" ".join(words), made.target)
