"""Random Go types, a program that fills and tells them, and expressions that walk them.

Everything that a walk can reach lies in one variable, ``all``, whose bytes the program prints;
headers of maps and channels are printed on their own. Go and fetchc write an expression alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

__all__ = ["GoExpression", "GoLayouts", "GoProbe"]

NUMBERS = {
    **{f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{"int": 8, "uint": 8, "uintptr": 8, "byte": 1, "rune": 4, "Level": 1, "Weight": 4},
}
FLOATS = {"float32": 4, "float64": 8, "Ratio": 8}
HEADER = """package main

import (
    "fmt"
    "math"
    "runtime"
    "unsafe"
)

func init() { runtime.LockOSThread() } // main runs on the first thread, which is traced

type Level int8
type Weight uint32
type Ratio float64
type Flag bool

var sink int
var seed uint32 = 777

func fill(p unsafe.Pointer, size uintptr) {
    for i := uintptr(0); i < size; i++ {
        seed = seed*1664525 + 1013904223
        *(*byte)(unsafe.Pointer(uintptr(p) + i)) = byte(seed >> 24)
    }
}
func text(start, size int) (s string) {
    words := (*[2]uintptr)(unsafe.Pointer(&s))
    words[0], words[1] = uintptr(unsafe.Pointer(&all.texts[start])), uintptr(size)
    return
}
func region(p unsafe.Pointer, size uintptr) {
    fmt.Printf("region %x ", uintptr(p))
    for i := uintptr(0); i < size; i++ {
        fmt.Printf("%02x", *(*byte)(unsafe.Pointer(uintptr(p) + i)))
    }
    fmt.Println()
}
func truth(b bool) int { if b { return 1 }; return 0 }
func words(p unsafe.Pointer, n int) {
    for _, word := range (*[3]uintptr)(p)[:n] { fmt.Printf(" %d", word) }
}
var _ = math.Pi
"""


@dataclass(frozen=True)
class GoExpression:
    """One question, what prints its value, and what it is: number, float, text, words, refused.

    ``held`` is for what may be in registers.
    """

    text: str
    told: tuple[str, ...]
    kind: str
    held: bool


@dataclass
class GoProbe:
    """One function with a pointer to the root and values of other types."""

    name: str
    parameters: list[tuple[str, str]]
    expressions: list[GoExpression] = field(default_factory=list)


class GoLayouts:
    """A program of ``count`` structures, each with a probed function."""

    def __init__(self, seed: str, count: int, expressions: int, generics: bool) -> None:
        self._random = random = Random(seed)
        self._fields: dict[str, list[tuple[str, str, bool]]] = {}  # name, type, embedded
        self._declared: list[str] = []
        self._room: list[str] = []
        self._setup: list[str] = []
        self._names = [f"S{number}" for number in range(count)]
        self._number = 0
        self._cost: dict[str, int] = {}  # statements that fill one
        if generics:
            self._declared.append("type Pair[T any] struct { gv T; gn *Pair[T]; gs []T; gb byte }")
            self._room.append("pairs [3]Pair[int16]")
        self._generics = generics
        for name in self._names:
            self._declare(name)
        for name in self._names:
            for index in range(3):
                self._fill_struct(name, f"all.{name}[{index}]")
        if generics:
            self._fields["Pair[int16]"] = [
                *(("gv", "int16", False), ("gn", "*Pair[int16]", False)),
                *(("gs", "[]int16", False), ("gb", "byte", False)),
            ]
            for index in range(3):
                self._fill_struct("Pair[int16]", f"all.pairs[{index}]")
        self.probes = []
        for name in self._names:
            others = [self._type(1) for _ in range(random.randrange(5))]
            probe = GoProbe(f"probe{name}", [("p", f"*{name}")])
            for number, made in enumerate(others):
                probe.parameters.append((f"v{number}", made))
                self._room.append(f"arg{name}v{number} {made}")
                self._fill(made, f"all.arg{name}v{number}")
            for _ in range(expressions):
                root = random.choice(probe.parameters)
                root = probe.parameters[0] if self._chance(0.6) else root
                probe.expressions.append(self._walk(*root, root[0] != "p"))
            self.probes.append(probe)

    def _chance(self, of: float) -> bool:
        return self._random.random() < of

    def _declare(self, name: str) -> None:
        fields: list[tuple[str, str, bool]] = []
        before = list(self._fields)
        if before and self._chance(0.5):
            embedded = self._random.choice(before)
            star = "*" if self._chance(0.4) else ""
            fields.append((embedded, star + embedded, True))
        for _ in range(self._random.randrange(1, 8)):
            self._number += 1
            fields.append((f"F{self._number}", self._type(0), False))
        self._random.shuffle(fields)
        self._fields[name] = fields
        self._cost[name] = sum(self._weight(made) for _, made, _ in fields)
        listed = "; ".join(made if embedded else f"{n} {made}" for n, made, embedded in fields)
        self._declared.append(f"type {name} struct {{ {listed} }}")
        self._room.append(f"{name} [3]{name}")

    def _weight(self, made: str) -> int:
        if made[0] == "[":
            return 4 * self._weight(made.partition("]")[2])
        return self._cost.get(made, 1)

    def _type(self, depth: int) -> str:
        which = self._random.random()
        if which < 0.3 or depth > 2:
            return self._random.choice([*NUMBERS, *FLOATS, "bool", "Flag"])
        if which < 0.4:
            return "string"
        if which < 0.55:
            return f"[]{self._type(depth + 1)}"
        if which < 0.65:
            return f"[{self._random.choice([1, 2, 3])}]{self._type(depth + 1)}"
        if which < 0.8:
            pointers = [*self._names, "int32", "string", "[]byte", "float64"]
            if self._generics:
                pointers.append("Pair[int16]")
            return f"*{self._random.choice(pointers)}"
        if which < 0.86 and (small := [it for it in self._cost if self._cost[it] < 30]):
            return self._random.choice(small)
        return self._random.choice(
            ["interface{}", "error", "map[string]int", "chan int16", "complex64", "complex128"]
        )

    def _fill_struct(self, name: str, path: str) -> None:
        for member, made, _ in self._fields[name]:
            self._fill(made, f"{path}.{member}")

    def _fill(self, made: str, path: str) -> None:
        number = self._random.randrange(1, 999)
        if made in NUMBERS or made in FLOATS or made.startswith("complex"):
            self._setup.append(f"fill(unsafe.Pointer(&{path}), unsafe.Sizeof({path}))")
        elif made in ("bool", "Flag"):
            self._setup.append(f"{path} = {'true' if number % 2 else 'false'}")
        elif made == "string":
            self._setup.append(f"{path} = text({number % 40}, {5 + number % 60})")
        elif made == "interface{}":
            self._setup.append(f"{path} = &all.ints[{number % 8}]")
        elif made == "error":
            self._setup.append(f"{path} = fmt.Errorf(`e`)")
        elif made.startswith("map"):
            self._setup.append(f"{path} = map[string]int{{`a`: 1, `b{number}`: 2}}")
            self._header(path)
        elif made.startswith("chan"):
            self._setup += [f"{path} = make(chan int16, {number})", f"{path} <- 1"]
            self._header(path)
        elif made.startswith("*"):
            self._setup.append(f"{path} = {self._target(made[1:])}")
        elif made.startswith("[]"):
            self._number += 1
            store, element = f"all.slice{self._number}", made[2:]
            self._room.append(f"slice{self._number} [4]{element}")
            self._setup.append(f"{path} = {store}[:3]")
            for index in range(4):
                self._fill(element, f"{store}[{index}]")
        elif made.startswith("["):
            count, _, element = made[1:].partition("]")
            for index in range(int(count)):
                self._fill(element, f"{path}[{index}]")
        else:
            self._fill_struct(made, path)

    def _header(self, path: str) -> None:
        self._setup.append(f"region(*(*unsafe.Pointer)(unsafe.Pointer(&{path})), 32)")

    def _target(self, made: str) -> str:
        index = self._random.randrange(3)
        blocks = {"int32": "ints", "string": "strings", "[]byte": "bytes", "float64": "floats"}
        blocks["Pair[int16]"] = "pairs"
        return f"&all.{blocks.get(made, made)}[{index}]"

    def source(self) -> str:
        """The program."""
        room = ["before [64]byte", "texts [512]byte", "ints [8]int32", "strings [3]string"]
        room += ["bytes [3][]byte", "floats [3]float64", *self._room, "after [512]byte"]
        setup = ["fill(unsafe.Pointer(&all.texts), 512)", "fill(unsafe.Pointer(&all.ints), 32)"]
        setup += ["fill(unsafe.Pointer(&all.floats), 24)"]
        setup += ["for i := range all.strings { all.strings[i] = text(i, 7 + i) }"]
        setup += ["for i := range all.bytes { all.bytes[i] = all.texts[i:9 + i:90] }"]
        functions, calls = [], []
        for probe in self.probes:
            name = probe.name.removeprefix("probe")
            listed = ", ".join(f"{each} {made}" for each, made in probe.parameters)
            functions.append(f"//go:noinline\nfunc {probe.name}({listed}) {{ sink++ }}")
            passed = [f"&all.{name}[1]"]
            passed += [f"all.arg{name}{each}" for each, _ in probe.parameters[1:]]
            functions.append(f"func tell{name}({listed}) {{")
            for number, expression in enumerate(probe.expressions):
                functions.append(f'    fmt.Printf("value {probe.name} {number}")')
                functions += [f"    {it}" for it in expression.told] + ["    fmt.Println()"]
            names = ", ".join(each for each, _ in probe.parameters)
            functions.append(f"    {probe.name}({names})\n}}")
            calls.append(f"tell{name}({', '.join(passed)})")
        parts = [HEADER, *self._declared, "var all struct {", *room, "}", *functions]
        parts += ["func main() {", *setup, *self._setup, *calls]
        return "\n".join([*parts, "region(unsafe.Pointer(&all), unsafe.Sizeof(all))", "}", ""])

    def _members(self, name: str) -> list[tuple[str, str]]:
        # Of the structure itself, and promoted ones; no name is there twice.
        found = []
        for member, made, embedded in self._fields[name]:
            found.append((member, made))
            if embedded:
                found += self._members(made.lstrip("*"))
        return found

    def _walk(self, text: str, made: str, held: bool) -> GoExpression:
        for step in range(12):
            if made.lstrip("*") in self._fields:
                if made[0] == "*" and step and self._chance(0.06):
                    return GoExpression(text, (_word(text),), "number", held)
                member, inner = self._random.choice(self._members(made.lstrip("*")))
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
            else:
                break
        return self._end(text, made, held)

    def _end(self, text: str, made: str, held: bool) -> GoExpression:
        length = GoExpression(f"len({text})", (_number(f"len({text})"),), "number", held)
        if made[0] == "[":
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
            return length
        if made == "string":
            if self._chance(0.3):
                return length
            if self._chance(0.3):
                asked = f"{text}[{self._random.randrange(5)}]"
                return GoExpression(asked, (_number(asked),), "number", False)
            return GoExpression(text, (f'fmt.Printf(" t%x", {text})',), "text", held)
        if made in ("interface{}", "error"):
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
        if made in ("bool", "Flag"):
            return GoExpression(text, (_number(f"truth(bool({text}))"),), "number", held)
        if made in NUMBERS:
            return GoExpression(text, (_number(text),), "number", held)
        return GoExpression(text, (_word(text),), "number", held)


def _number(text: str) -> str:
    return f'fmt.Printf(" %d", {text})'


def _word(text: str) -> str:
    return _number(f"uintptr(unsafe.Pointer({text}))")
