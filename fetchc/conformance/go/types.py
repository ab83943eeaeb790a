"""Go types as data: names and literals as Go writes them, with what is declared for them.

A type is its text; :class:`GoTypes` knows what stands behind a declared name.
"""

from __future__ import annotations

from collections.abc import Iterable

from fetchc.record import Record

__all__ = [
    "DYNAMIC",
    "EMPTY",
    "FLOATS",
    "GENERIC",
    "NAMED",
    "NUMBERS",
    "Field",
    "GoExpression",
    "GoProbe",
    "GoTypes",
]

NUMBERS = {
    **{f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{"int": 8, "uint": 8, "uintptr": 8, "byte": 1, "rune": 4, "Level": 1, "Weight": 4},
}
FLOATS = {"float32": 4, "float64": 8, "Ratio": 8}
# Named types that are no numbers, and what they are.
NAMED = {
    **{"Flag": "bool", "Title": "string", "Names": "[]string", "Grid": "[2][3]int16"},
    **{"Rows": "[][]int32", "Table": "map[string]int", "Next": "*int32"},
}
# Interface types, and the type of every value that is in a variable of them.
DYNAMIC = {
    **{"AnyPointer": "*int32", "AnyText": "string", "AnyNumber": "uint16", "AnyEdge": "Edge"},
    **{"Measured": "Edge", "MeasuredPointer": "*Edge"},
}
# Structures that every program declares.
_GIVEN = {"Edge": [("e0", "int32"), ("e1", "string"), ("e2", "uint16")]}
EMPTY = ("struct{}", "[0]int32", "[2]struct{}")  # no bytes
# Instances of generic types, which Go has from 1.18 on: declaration, and the fields of each.
GENERIC = {
    "Pair[T any] struct { gv T; gn *Pair[T]; gs []T; gb byte }": {
        f"Pair[{made}]": [
            ("gv", made),
            ("gn", f"*Pair[{made}]"),
            ("gs", f"[]{made}"),
            ("gb", "byte"),
        ]
        for made in ("int16", "string", "[]byte")
    },
    "Both[K comparable, V any] struct { gk K; gm map[K]V; ga [2]V }": {
        "Both[string,int]": [("gk", "string"), ("gm", "map[string]int"), ("ga", "[2]int")],
    },
}


class Field(Record):
    """A field; an embedded one has its type's name."""

    name: str
    type: str
    embedded: bool = False


class GoExpression(Record):
    """One question, what prints its value, and what it is: number, float, text, words, refused.

    ``held`` is for what may be in registers, ``stage`` where it is asked: entry or leave.
    """

    text: str
    told: tuple[str, ...]
    kind: str
    held: bool
    stage: str = "entry"


class GoProbe:
    """One function with its expressions; ``form`` is function, method, value method or closure.

    A generic one has the type of its first parameter as type argument, and returns it first.
    Results have names, or are ``q0`` and so on for the telling only. A closure has captured
    variables, every second of them by its address.

    Mutable, for a failure is made smaller by taking parts out.
    """

    def __init__(self, tag: str, form: str, parameters: list[tuple[str, str]]) -> None:
        self.tag = tag
        self.form = form
        self.parameters = parameters
        self.results: list[tuple[str, str]] = []
        self.captured: list[tuple[str, str]] = []
        self.named = False  # results are
        self.generic = False
        self.expressions: list[GoExpression] = []

    @property
    def function(self) -> str:
        """The name that fetchc knows it by; a generic one has one instance."""
        known = {
            "function": f"main.probe{self.tag}",
            "method": f"main.(*R{self.tag}).probe",
            "value method": f"main.R{self.tag}.probe",
            "closure": f"main.probe{self.tag}.func1",
        }
        return known[self.form]

    @property
    def variables(self) -> list[tuple[str, str]]:
        """All names with their types."""
        return self.captured + self.parameters + self.results


class GoTypes:
    """The declared structures by name, those that are ``given`` among them."""

    def __init__(self, generics: bool) -> None:
        self.structs: dict[str, list[Field]] = {}
        self.generics = generics
        given = dict(_GIVEN)
        if generics:
            for instances in GENERIC.values():
                given |= instances
        self.given = list(given)
        for name, fields in given.items():
            self.structs[name] = [Field(*field) for field in fields]

    def under(self, made: str) -> str:
        """The type behind a name that is no number's and no structure's."""
        return NAMED.get(made, made)

    def members(self, name: str) -> list[tuple[str, str]]:
        """Fields of the structure that hold something, with their types; promoted ones too."""
        found = []
        for field in self.structs[name]:
            if field.name == "_" or field.type in EMPTY:
                continue
            found.append((field.name, field.type))
            if field.embedded:
                found += self.members(field.type.lstrip("*"))
        return found

    def reached(self, made: Iterable[str]) -> list[str]:
        """The declared structures that values of these types hold or lead to, in their order."""
        found: set[str] = set()
        waiting = list(made)
        while waiting:
            each = self.under(waiting.pop())
            if each in self.structs:
                if each not in found:
                    found.add(each)
                    waiting += [field.type for field in self.structs[each]]
            elif each in DYNAMIC:
                waiting.append(DYNAMIC[each])
            elif each[:1] in "*[":
                waiting.append(each[1:] if each[0] == "*" else each.partition("]")[2])
        return [name for name in self.structs if name in found]
