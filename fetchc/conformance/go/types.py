"""Go types as data: names and literals as Go writes them, with what is declared for them.

A type is its text; :class:`GoTypes` knows what stands behind a declared name.
"""

from __future__ import annotations

from collections.abc import Iterable

from fetchc.record import Record

__all__ = ["FLOATS", "GENERIC", "NAMED", "NUMBERS", "Field", "GoExpression", "GoProbe", "GoTypes"]

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

    ``held`` is for what may be in registers.
    """

    text: str
    told: tuple[str, ...]
    kind: str
    held: bool


class GoProbe:
    """One function or method with its expressions; ``form`` is function, method or value method.

    Mutable, for a failure is made smaller by taking parts out.
    """

    def __init__(self, tag: str, form: str, parameters: list[tuple[str, str]]) -> None:
        self.tag = tag
        self.form = form
        self.parameters = parameters
        self.expressions: list[GoExpression] = []

    @property
    def function(self) -> str:
        """The name that fetchc knows it by."""
        known = {
            "function": f"main.probe{self.tag}",
            "method": f"main.(*R{self.tag}).probe",
            "value method": f"main.R{self.tag}.probe",
        }
        return known[self.form]


class GoTypes:
    """The declared structures by name, those that generics make among them."""

    def __init__(self, generics: bool) -> None:
        self.structs: dict[str, list[Field]] = {}
        self.generic: list[str] = []
        if generics:
            for instances in GENERIC.values():
                for name, fields in instances.items():
                    self.structs[name] = [Field(*field) for field in fields]
                    self.generic.append(name)

    def under(self, made: str) -> str:
        """The type behind a name that is no number's and no structure's."""
        return NAMED.get(made, made)

    def members(self, name: str) -> list[tuple[str, str]]:
        """Fields of the structure with their types, promoted ones among them."""
        found = []
        for field in self.structs[name]:
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
            elif each[:1] in "*[":
                waiting.append(each[1:] if each[0] == "*" else each.partition("]")[2])
        return [name for name in self.structs if name in found]
