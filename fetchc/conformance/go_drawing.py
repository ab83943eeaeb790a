"""Drawing Go structures, functions that take them, and what these are asked."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

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
    "draw",
    "draw_signatures",
    "function_lines",
    "leaves",
    "result_leaves",
    "walk",
]

# ------------------------------------------------------------------------------
# Go types as data: names and literals as Go writes them, with what is declared for them.
#
# A type is its text; :class:`GoTypes` knows the type of a declared name.

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
        f"Pair[{argument}]": [
            ("gv", argument),
            ("gn", f"*Pair[{argument}]"),
            ("gs", f"[]{argument}"),
            ("gb", "byte"),
        ]
        for argument in ("int16", "string", "[]byte")
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

    ``in_registers`` is for what may be in registers, ``stage`` where it is asked: entry or leave.
    """

    text: str
    prints: tuple[str, ...]
    kind: str
    in_registers: bool
    stage: str = "entry"


class GoProbe:
    """One function with its expressions; ``form`` is function, method, value method or closure.

    A generic one has the type of its first parameter as type argument, and returns it first.
    Results have names, or are ``q0`` and so on only where they are printed. A closure has captured
    variables, every second of them by its address.

    Mutable: a failure gets smaller as parts are taken out.
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
        """Its name for fetchc; a generic one has one instance."""
        names = {
            "function": f"main.probe{self.tag}",
            "method": f"main.(*R{self.tag}).probe",
            "value method": f"main.R{self.tag}.probe",
            "closure": f"main.probe{self.tag}.func1",
        }
        return names[self.form]

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

    def under(self, go_type: str) -> str:
        """The type of a name that is not a number's and no structure's."""
        return NAMED.get(go_type, go_type)

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

    def reached(self, go_types: Iterable[str]) -> list[str]:
        """The declared structures that values of these types hold or lead to, in their order."""
        found: set[str] = set()
        waiting = list(go_types)
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


# ------------------------------------------------------------------------------
# One probed function of a drawn program in Go, and the function that prints values and calls it.


def function_lines(probe: GoProbe) -> list[str]:
    """Declarations of both; the teller takes captured variables, parameters and results."""
    lines, called = _closure(probe) if probe.form == "closure" else _named(probe)
    lines.append(f"func tell{probe.tag}({_listed(probe.variables)}) {{")
    for number, expression in enumerate(probe.expressions):
        lines.append(f'    fmt.Printf("value {probe.tag} {number}")')
        lines += [f"    {it}" for it in expression.prints] + ["    fmt.Println()"]
    if probe.form == "closure":
        lines += _closure_creation(probe)
    names = ", ".join(name for name, _ in probe.parameters)
    return [*lines, f"    {called}({names})", "}"]


def _named(probe: GoProbe) -> tuple[list[str], str]:
    """A function or method, and how it is called."""
    star = "*" if probe.form == "method" else ""
    any_type, of = ("[T any]", "[T]") if probe.generic else ("", "")
    lines = []
    head, called = f"func probe{probe.tag}{any_type}", f"probe{probe.tag}"
    if probe.form != "function":
        instance = f"[{probe.parameters[0][1]}]" if probe.generic else ""
        lines.append(f"type R{probe.tag}{any_type} struct {{ a int32; b string }}")
        lines.append(f"var v{probe.tag} = R{probe.tag}{instance}{{7, `receiver`}}")
        head, called = f"func (r {star}R{probe.tag}{of}) probe", f"v{probe.tag}.probe"
    signature, body = _signature(probe)
    return [*lines, "//go:noinline", f"{head}{signature} {{", *body, "}"], called


def _closure(probe: GoProbe) -> tuple[list[str], str]:
    """A function that makes the probed one. What it takes is captured, every second by address."""
    signature, body = _signature(probe)
    maker = f"func probe{probe.tag}({_listed(probe.captured)}) func{signature} {{"
    moved = [
        f"    region(unsafe.Pointer(&{name}), unsafe.Sizeof({name}))"
        for name, _ in probe.captured[1::2]
    ]
    stores = [f"    all.kept{probe.tag}{name} = {name}" for name, _ in probe.captured]
    inner = [f"    return func{signature} {{", *stores, *body, "    }"]
    return ["//go:noinline", maker, *moved, *inner, "}"], "made"


def _closure_creation(probe: GoProbe) -> list[str]:
    """Making the closure, and its bytes: the code's address and what is captured, in order."""
    names = ", ".join(name for name, _ in probe.captured)
    fields = [
        f"{name} {'*' * (number % 2)}{go_type}"
        for number, (name, go_type) in enumerate(probe.captured)
    ]
    size = f"unsafe.Sizeof(struct{{ code uintptr; {'; '.join(fields)} }}{{}})"
    return [
        f"    made := probe{probe.tag}({names})",
        f"    region(*(*unsafe.Pointer)(unsafe.Pointer(&made)), {size})",
    ]


def _signature(probe: GoProbe) -> tuple[str, list[str]]:
    taken, results = list(probe.parameters), list(probe.results)
    returned = [f"all.ret{probe.tag}{name}" for name, _ in results]
    if probe.generic:
        taken[0] = taken[0][0], "T"
        results[0], returned[0] = (results[0][0], "T"), taken[0][0]
    if not probe.named:
        results = [("", go_type) for _, go_type in results]
    body = ["    sink++"] + ([f"    return {', '.join(returned)}"] if returned else [])
    return f"({_listed(taken)}) ({_listed(results)})", body


def _listed(names: list[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {go_type}".strip() for name, go_type in names)


# ------------------------------------------------------------------------------
# Expressions that walk Go's types. Go and fetchc write them alike; Go prints their values.

_LEAVES = 12  # of one parameter


def walk(
    random: Random, types: GoTypes, text: str, go_type: str, in_registers: bool
) -> GoExpression:
    """One expression from what ``text`` names, of the type ``go_type``."""
    return _Walk(random, types).run(text, go_type, in_registers)


def leaves(random: Random, types: GoTypes, text: str, go_type: str) -> list[GoExpression]:
    """The values in the object ``text``; some of them, drawn, where there are many."""
    found = _Walk(random, types).leaves(text, go_type)
    return found if len(found) <= _LEAVES else random.sample(found, _LEAVES)


def result_leaves(
    random: Random, types: GoTypes, name: str, go_type: str, asked: str
) -> list[GoExpression]:
    """The values in a result that the program prints as ``name``, asked where it returns."""
    return [
        GoExpression(it.text.replace(name, asked, 1), it.prints, it.kind, it.in_registers, "leave")
        for it in leaves(random, types, name, go_type)
    ]


class _Walk:
    def __init__(self, random: Random, types: GoTypes) -> None:
        self._random = random
        self._types = types

    def _chance(self, of: float) -> bool:
        return self._random.random() < of

    def run(self, text: str, go_type: str, in_registers: bool) -> GoExpression:
        structs, start = self._types.structs, (text, go_type, in_registers)
        for step in range(12):
            go_type = self._types.under(go_type)
            if go_type.lstrip("*") in structs:
                if go_type[0] == "*" and step and self._chance(0.06):
                    return GoExpression(text, (_word(text),), "number", in_registers)
                member, inner = self._random.choice(self._types.members(go_type.lstrip("*")))
                in_registers = in_registers and go_type[0] != "*"
                explicit = go_type[0] == "*" and self._chance(0.2)
                text, go_type = f"{f'(*{text})' if explicit else text}.{member}", inner
            elif go_type[0] == "*":
                text, go_type, in_registers = f"(*{text})", go_type[1:], False
            elif go_type[0] == "[" and self._chance(0.65):
                count = 3 if go_type[1] == "]" else int(go_type[1])
                in_registers = in_registers and go_type[1] != "]"
                text = f"{text}[{self._random.randrange(count)}]"
                go_type = go_type.partition("]")[2]
            elif go_type in DYNAMIC and self._chance(0.8):
                go_type = DYNAMIC[go_type]
                in_registers = in_registers and go_type[0] == "*"
                text = f"{text}.({go_type})"
            else:
                return self._end(text, go_type, in_registers)
        return self.run(*start)

    def leaves(self, text: str, go_type: str) -> list[GoExpression]:
        go_type = self._types.under(go_type)
        if go_type in EMPTY:
            return []
        if go_type in self._types.structs:
            fields = [it for it in self._types.structs[go_type] if it.name != "_"]
            return [leaf for it in fields for leaf in self.leaves(f"{text}.{it.name}", it.type)]
        if go_type in DYNAMIC:
            return [self._end(text, go_type, True), self.run(text, go_type, True)]
        if go_type[0] == "[" and go_type[1] != "]":
            count, _, element = go_type[1:].partition("]")
            indices = range(int(count))
            return [leaf for n in indices for leaf in self.leaves(f"{text}[{n}]", element)]
        if go_type[0] == "*":
            return [GoExpression(text, (_word(text),), "number", True)]
        if go_type.startswith("[]"):
            prints = f"words(unsafe.Pointer(&{text}), 3)"
            return [GoExpression(text, (prints,), "words", True)]
        return [self._end(text, go_type, True)]

    def _end(self, text: str, go_type: str, in_registers: bool) -> GoExpression:
        length = GoExpression(f"len({text})", (_number(f"len({text})"),), "number", in_registers)
        if go_type[0] == "[":
            return self._listed(text, go_type, in_registers) or length
        if go_type == "string":
            if self._chance(0.3):
                return length
            if self._chance(0.3):
                asked = f"{text}[{self._random.randrange(5)}]"
                return GoExpression(asked, (_number(asked),), "number", False)
            return GoExpression(text, (f'fmt.Printf(" t%x", {text})',), "text", in_registers)
        if go_type in ("interface{}", "error", *DYNAMIC):
            return GoExpression(
                text, (f"words(unsafe.Pointer(&{text}), 2)",), "words", in_registers
            )
        if go_type.startswith(("map", "chan")):
            if go_type.startswith("chan") and self._chance(0.5):
                asked = f"cap({text})"
                return GoExpression(asked, (_number(asked),), "number", in_registers)
            return (
                length
                if self._chance(0.5)
                else GoExpression(text, length.prints, "number", in_registers)
            )
        if go_type.startswith("complex"):
            return GoExpression(text, (), "refused", in_registers)
        if go_type in FLOATS:
            bits = 8 * FLOATS[go_type]
            prints = f'fmt.Printf(" %d", math.Float{bits}bits(float{bits}({text})))'
            return GoExpression(text, (prints,), "float", in_registers)
        if go_type == "bool":
            return GoExpression(text, (_number(f"truth(bool({text}))"),), "number", in_registers)
        if go_type in NUMBERS:
            return GoExpression(text, (_number(text),), "number", in_registers)
        return GoExpression(text, (_word(text),), "number", in_registers)

    def _listed(self, text: str, go_type: str, in_registers: bool) -> GoExpression | None:
        slice_of, element = go_type[1] == "]", go_type.partition("]")[2]
        count = 3 if slice_of else int(go_type[1])
        if slice_of and self._chance(0.3):
            asked = f"cap({text})"
            return GoExpression(asked, (_number(asked),), "number", in_registers)
        if element in NUMBERS and self._chance(0.6):
            low = self._random.randrange(count)
            high = self._random.randrange(low, count) + 1
            numbers = tuple(_number(f"{text}[{n}]") for n in range(low, high))
            return GoExpression(f"{text}[{low}:{high}]", numbers, "number", in_registers)
        if slice_of and self._chance(0.5):
            return GoExpression(
                text, (f"words(unsafe.Pointer(&{text}), 3)",), "words", in_registers
            )
        return None


def _number(text: str) -> str:
    return f'fmt.Printf(" %d", {text})'


def _word(text: str) -> str:
    return _number(f"uintptr(unsafe.Pointer({text}))")


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
                root, in_registers = (f"all.{name}[{index}]", name), False
            else:
                root = parameters[0] if random.random() < 0.6 else random.choice(parameters)
                in_registers = root[0] != "p"
            probe.expressions.append(walk(random, drawing.types, *root, in_registers))
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
        types = [drawing.type(0) for _ in range(random.randrange(5))]
        probe.results = [(f"q{n}", it) for n, it in enumerate(types)]
        if probe.generic:
            probe.results[:1] = [("q0", taken[0][1])]
        probe.named = random.random() < 0.5
        for name, go_type in probe.captured + taken:
            probe.expressions += leaves(random, drawing.types, name, go_type)
        for place, (name, go_type) in enumerate(probe.results):
            asked = name if probe.named and random.random() < 0.5 else f"$ret{place}"
            probe.expressions += result_leaves(random, drawing.types, name, go_type, asked)
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

    def _weight(self, go_type: str) -> int:
        go_type = self.types.under(go_type)
        if go_type[0] == "[":
            return 4 * self._weight(go_type.partition("]")[2])
        return self._cost.get(go_type, 4)

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
