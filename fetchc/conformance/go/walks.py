"""Expressions that walk Go's types. Go and fetchc write them alike; Go tells their values."""

from __future__ import annotations

from random import Random

from fetchc.conformance.go.types import DYNAMIC, EMPTY, FLOATS, NUMBERS, GoExpression, GoTypes

__all__ = ["leaves", "result_leaves", "walk"]

_LEAVES = 12  # of one parameter


def walk(random: Random, types: GoTypes, text: str, made: str, held: bool) -> GoExpression:
    """One expression from what ``text`` names, of the type ``made``."""
    return _Walk(random, types).run(text, made, held)


def leaves(random: Random, types: GoTypes, text: str, made: str) -> list[GoExpression]:
    """The values in the object ``text``; some of them, drawn, where there are many."""
    found = _Walk(random, types).leaves(text, made)
    return found if len(found) <= _LEAVES else random.sample(found, _LEAVES)


def result_leaves(
    random: Random, types: GoTypes, name: str, made: str, asked: str
) -> list[GoExpression]:
    """The values in a result that the program tells as ``name``, asked where it returns."""
    return [
        GoExpression(it.text.replace(name, asked, 1), it.told, it.kind, it.held, "leave")
        for it in leaves(random, types, name, made)
    ]


class _Walk:
    def __init__(self, random: Random, types: GoTypes) -> None:
        self._random = random
        self._types = types

    def _chance(self, of: float) -> bool:
        return self._random.random() < of

    def run(self, text: str, made: str, held: bool) -> GoExpression:
        structs, start = self._types.structs, (text, made, held)
        for step in range(12):
            made = self._types.under(made)
            if made.lstrip("*") in structs:
                if made[0] == "*" and step and self._chance(0.06):
                    return GoExpression(text, (_word(text),), "number", held)
                member, inner = self._random.choice(self._types.members(made.lstrip("*")))
                held = held and made[0] != "*"
                explicit = made[0] == "*" and self._chance(0.2)
                text, made = f"{f'(*{text})' if explicit else text}.{member}", inner
            elif made[0] == "*":
                text, made, held = f"(*{text})", made[1:], False
            elif made[0] == "[" and self._chance(0.65):
                count = 3 if made[1] == "]" else int(made[1])
                held = held and made[1] != "]"
                text = f"{text}[{self._random.randrange(count)}]"
                made = made.partition("]")[2]
            elif made in DYNAMIC and self._chance(0.8):
                made = DYNAMIC[made]
                held = held and made[0] == "*"
                text = f"{text}.({made})"
            else:
                return self._end(text, made, held)
        return self.run(*start)

    def leaves(self, text: str, made: str) -> list[GoExpression]:
        made = self._types.under(made)
        if made in EMPTY:
            return []
        if made in self._types.structs:
            fields = [it for it in self._types.structs[made] if it.name != "_"]
            return [leaf for it in fields for leaf in self.leaves(f"{text}.{it.name}", it.type)]
        if made in DYNAMIC:
            return [self._end(text, made, True), self.run(text, made, True)]
        if made[0] == "[" and made[1] != "]":
            count, _, element = made[1:].partition("]")
            indices = range(int(count))
            return [leaf for n in indices for leaf in self.leaves(f"{text}[{n}]", element)]
        if made[0] == "*":
            return [GoExpression(text, (_word(text),), "number", True)]
        if made.startswith("[]"):
            told = f"words(unsafe.Pointer(&{text}), 3)"
            return [GoExpression(text, (told,), "words", True)]
        return [self._end(text, made, True)]

    def _end(self, text: str, made: str, held: bool) -> GoExpression:
        length = GoExpression(f"len({text})", (_number(f"len({text})"),), "number", held)
        if made[0] == "[":
            return self._listed(text, made, held) or length
        if made == "string":
            if self._chance(0.3):
                return length
            if self._chance(0.3):
                asked = f"{text}[{self._random.randrange(5)}]"
                return GoExpression(asked, (_number(asked),), "number", False)
            return GoExpression(text, (f'fmt.Printf(" t%x", {text})',), "text", held)
        if made in ("interface{}", "error", *DYNAMIC):
            return GoExpression(text, (f"words(unsafe.Pointer(&{text}), 2)",), "words", held)
        if made.startswith(("map", "chan")):
            if made.startswith("chan") and self._chance(0.5):
                asked = f"cap({text})"
                return GoExpression(asked, (_number(asked),), "number", held)
            return length if self._chance(0.5) else GoExpression(text, length.told, "number", held)
        if made.startswith("complex"):
            return GoExpression(text, (), "refused", held)
        if made in FLOATS:
            bits = 8 * FLOATS[made]
            told = f'fmt.Printf(" %d", math.Float{bits}bits(float{bits}({text})))'
            return GoExpression(text, (told,), "float", held)
        if made == "bool":
            return GoExpression(text, (_number(f"truth(bool({text}))"),), "number", held)
        if made in NUMBERS:
            return GoExpression(text, (_number(text),), "number", held)
        return GoExpression(text, (_word(text),), "number", held)

    def _listed(self, text: str, made: str, held: bool) -> GoExpression | None:
        slice_of, element = made[1] == "]", made.partition("]")[2]
        count = 3 if slice_of else int(made[1])
        if slice_of and self._chance(0.3):
            asked = f"cap({text})"
            return GoExpression(asked, (_number(asked),), "number", held)
        if element in NUMBERS and self._chance(0.6):
            low = self._random.randrange(count)
            high = self._random.randrange(low, count) + 1
            numbers = tuple(_number(f"{text}[{n}]") for n in range(low, high))
            return GoExpression(f"{text}[{low}:{high}]", numbers, "number", held)
        if slice_of and self._chance(0.5):
            return GoExpression(text, (f"words(unsafe.Pointer(&{text}), 3)",), "words", held)
        return None


def _number(text: str) -> str:
    return f'fmt.Printf(" %d", {text})'


def _word(text: str) -> str:
    return _number(f"uintptr(unsafe.Pointer({text}))")
