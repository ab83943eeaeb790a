"""Drawing Go structures, functions that take them, and what these are asked."""

from __future__ import annotations

from random import Random

from fetchc.conformance.go.types import (
    DYNAMIC,
    EMPTY,
    FLOATS,
    NAMED,
    NUMBERS,
    Field,
    GoProbe,
    GoTypes,
)
from fetchc.conformance.go.walks import leaves, result_leaves, walk

__all__ = ["draw", "draw_signatures"]

# What a closure may hold: Go captures by value what has 128 bytes at most.
_CAPTURED = [*NUMBERS, "bool", "string", "[]int32", "*Edge", "Edge", "map[string]int", *DYNAMIC]
_HEAVY = 30  # statements to fill one: structures beyond that are reached by pointers only


def draw(
    random: Random, count: int, expressions: int, generics: bool
) -> tuple[GoTypes, list[GoProbe]]:
    """``count`` structures, each with a probed function whose parameters are walked."""
    drawing = _Drawing(random, generics)
    drawing.declare(count)
    probes = []
    for name in drawing.names:
        parameters = [("p", f"*{name}")]
        parameters += [(f"v{n}", drawing.type(1)) for n in range(random.randrange(5))]
        probe = GoProbe(name, "function", parameters)
        for _ in range(expressions):
            if random.random() < 0.1:
                index = random.randrange(3)
                root, held = (f"all.{name}[{index}]", name), False
            else:
                root = parameters[0] if random.random() < 0.6 else random.choice(parameters)
                held = root[0] != "p"
            probe.expressions.append(walk(random, drawing.types, *root, held))
        probes.append(probe)
    return drawing.types, probes


def draw_signatures(random: Random, count: int, generics: bool) -> tuple[GoTypes, list[GoProbe]]:
    """``count`` functions and methods with parameters and results whose every part is asked."""
    drawing = _Drawing(random, generics)
    drawing.declare(count // 3)
    probes = []
    for number in range(count):
        form = random.choice(["function", "function", "method", "value method", "closure"])
        taken = [(f"v{n}", drawing.type(0)) for n in range(random.randrange(1, 10))]
        probe = GoProbe(f"F{number}", form, taken)
        if form == "closure":
            probe.captured = [
                (f"k{n}", random.choice(_CAPTURED)) for n in range(random.randrange(1, 6))
            ]
        probe.generic = (
            form != "closure" and generics and taken[0][1] not in EMPTY and random.random() < 0.35
        )
        made = [drawing.type(0) for _ in range(random.randrange(5))]
        probe.results = [(f"q{n}", it) for n, it in enumerate(made)]
        if probe.generic:
            probe.results[:1] = [("q0", taken[0][1])]
        probe.named = random.random() < 0.5
        for name, made_of in probe.captured + taken:
            probe.expressions += leaves(random, drawing.types, name, made_of)
        for place, (name, made_of) in enumerate(probe.results):
            asked = name if probe.named and random.random() < 0.5 else f"$ret{place}"
            probe.expressions += result_leaves(random, drawing.types, name, made_of, asked)
        probes.append(probe)
    return drawing.types, probes


class _Drawing:
    def __init__(self, random: Random, generics: bool) -> None:
        self.types = GoTypes(generics)
        self.names: list[str] = []
        self._random = random
        self._number = 0
        self._cost: dict[str, int] = {}

    def declare(self, count: int) -> None:
        self.names = [f"S{number}" for number in range(count)]
        for name in self.names:
            fields = self._fields()
            self.types.structs[name] = fields
            self._cost[name] = sum(self._weight(field.type) for field in fields)

    def _fields(self) -> list[Field]:
        fields = []
        before = [name for name in self.types.structs if name not in self.types.given]
        if before and self._chance(0.5):
            embedded = self._random.choice(before)
            star = "*" if self._chance(0.4) or self._cost[embedded] > _HEAVY else ""
            fields.append(Field(embedded, star + embedded, True))
        self._number += 1
        fields.append(Field(f"F{self._number}", self.type(1)))
        for _ in range(self._random.randrange(7)):
            self._number += 1
            blank = self._chance(0.06)
            fields.append(Field("_" if blank else f"F{self._number}", self.type(0)))
        self._random.shuffle(fields)
        return fields

    def _chance(self, of: float) -> bool:
        return self._random.random() < of

    def _weight(self, made: str) -> int:
        made = self.types.under(made)
        if made[0] == "[":
            return 4 * self._weight(made.partition("]")[2])
        return self._cost.get(made, 4)

    def type(self, depth: int) -> str:
        which = self._random.random()
        if which < 0.3 or depth > 2:
            return self._random.choice([*NUMBERS, *FLOATS, "bool", "Flag"])
        if which < 0.4:
            return self._random.choice(["string", "string", "Title"])
        if which < 0.53:
            return f"[]{self.type(depth + 1)}"
        if which < 0.63:
            return f"[{self._random.choice([1, 2, 3])}]{self.type(depth + 1)}"
        if which < 0.7 and depth < 2:
            return self._random.choice([*NAMED, *self.types.given])
        if which < 0.83:
            pointers = [*self.names, "int32", "string", "[]byte", "float64", *self.types.given]
            return f"*{self._random.choice(pointers)}"
        if which < 0.89 and (small := [it for it in self._cost if self._cost[it] < _HEAVY]):
            return self._random.choice(small)
        if which < 0.92:
            return self._random.choice(list(DYNAMIC))
        if which < 0.93 and not depth:
            return self._random.choice(EMPTY)
        return self._random.choice(
            ["interface{}", "error", "map[string]int", "chan int16", "complex64", "complex128"]
        )
