"""Random Go programs whose functions use less than they take: half a string, one field, nothing.

Blank parameters are between the others, and of so many some are on the stack. The program prints
a line ``{"f": FUNCTION, "at": "entry", "args": {EXPRESSION: VALUE}}`` for each call, and one more
with what holds at the line ``mark()``, after the assignments before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

__all__ = ["GoFunction", "GoShapes"]

_HEADER = """package main

import (
	"encoding/json"
	"os"
)

type point struct {
	X, Y int32
}
type fail struct {
	Code int64
	Text string
}

func (f *fail) Error() string { return f.Text }

var sink int
var sunk struct {
	text  string
	bytes []byte
	list  []int32
	any   interface{}
	err   error
	point *point
	known map[string]int
}

//go:noinline
func mark() { sink++ }

//go:noinline
func grow(n int) int {
	if n > 0 {
		return grow(n-1) + 1
	}
	return sink
}

var out = json.NewEncoder(os.Stdout)

func show(name, at string, args map[string]interface{}) {
	if out.Encode(map[string]interface{}{"f": name, "at": at, "args": args}) != nil {
		panic(name)
	}
}

func octets(b []byte) []int {
	found := []int{}
	for _, one := range b {
		found = append(found, int(one))
	}
	return found
}

func text(s string) string { return string([]byte(s)) }
"""
_NUMBERS = {
    f"{sign}int{bits}": (0 if sign else -(1 << bits - 1), (1 << bits - (not sign)) - 1)
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}
# A type, how the program evaluates what can be asked (by default as it is asked), uses, a value.
_TEXT = "qwertyuiopasdfghjklzxcvbnm"


@dataclass
class _Leaf:
    asked: str
    evaluated: str  # by Go
    scalar: bool = True  # a number or pointer that is a part of the parameter itself


@dataclass
class GoFunction:
    """One function. ``asked`` are its expressions; ``scalars`` of them are parts of parameters."""

    name: str
    line: int = 0  # of mark()
    asked: list[str] = field(default_factory=list)
    scalars: set[str] = field(default_factory=set)
    blanks: bool = False
    words: int = 0  # numbers and pointers of all that is passed


class GoShapes:
    """The source of one program and its functions.

    ``assigned``: parameters may be assigned before the line. Of an assignment that the optimiser
    moves after the line or folds, Go's debug information says nothing.
    """

    def __init__(self, seed: str, count: int, assigned: bool) -> None:
        self._random = Random(seed)
        self._assigned = assigned
        self._types: list[str] = []
        self._members: dict[str, list[tuple[str, str]]] = {}
        self.functions: list[GoFunction] = []
        self._lines: list[str] = _HEADER.splitlines()
        self._calls: list[str] = []
        for number in range(count):
            self._function(number)
        self._lines += ["", "func main() {", *self._calls, "}", ""]

    def source(self) -> str:
        """The program."""
        return "\n".join(self._lines)

    def _function(self, number: int) -> None:
        random = self._random
        before = len(self._types)
        kinds = [self._kind(number) for _ in range(random.choice([1, 2, 3, 4, 5, 8, 12]))]
        for declared in self._types[before:]:
            self._lines += ["", declared]
        blanks = random.random() < 0.4
        names = ["_" if blanks and random.random() < 0.3 else f"v{at}" for at in range(len(kinds))]
        one = GoFunction(f"main.f{number}", blanks="_" in names)
        receiver, head = "", f"f{number}"
        if kinds[0] in self._members and names[0] != "_" and random.random() < 0.5:
            receiver, one.name = f"(v0 {kinds[0]}) ", f"main.{kinds[0]}.f{number}"
        taken = ", ".join(
            f"{name} {kind}"
            for name, kind in list(zip(names, kinds, strict=True))[bool(receiver) :]
        )
        result = random.choice(["", " int", " (n int)", " (int, string)"])
        self._lines += ["", "//go:noinline", f"func {receiver}{head}({taken}){result} {{"]
        leaves = []
        first: list[str] = []
        then: list[str] = []
        assigned = []
        one.words = sum(map(self._words, kinds))
        for name, kind in zip(names, kinds, strict=True):
            if name == "_":
                continue
            leaves += self._leaves(name, kind)
            uses, assignments = self._uses(name, kind)
            for use in uses:
                (first if random.random() < 0.5 else then).append(use)
            for assignment in assignments:
                if self._assigned and random.random() < 0.5:
                    first.append(assignment)
                    assigned.append(assignment)
                else:
                    then.append(assignment)
        if random.random() < 0.3:
            first.append("sink += grow(3)")
        random.shuffle(first)
        random.shuffle(then)
        self._lines += [f"\t{line}" for line in [*first, "mark()", *then]]
        one.line = len(self._lines) - len(then)
        returned = {" int": "sink", " (n int)": "sink", " (int, string)": 'sink, "r"'}
        self._lines += [*([f"\treturn {returned[result]}"] if result else []), "}"]
        one.asked = [leaf.asked for leaf in leaves]
        one.scalars = {leaf.asked for leaf in leaves if leaf.scalar}
        self.functions.append(one)
        order = [line for line in first if line in assigned]
        for _ in range(2):
            self._calls += self._call(one, names, kinds, leaves, order, head, bool(receiver))

    def _call(
        self,
        one: GoFunction,
        names: list[str],
        kinds: list[str],
        leaves: list[_Leaf],
        assigned: list[str],
        head: str,
        receiver: bool,
    ) -> list[str]:
        shown = ", ".join(f'"{leaf.asked}": {leaf.evaluated}' for leaf in leaves)
        shown = f"map[string]interface{{}}{{{shown}}}"
        lines = ["\t{"]
        for at, (name, kind) in enumerate(zip(names, kinds, strict=True)):
            lines.append(f"\t\tvar a{at} {kind} = {self._value(kind)}")
            if name != "_":
                lines.append(f"\t\t{name} := a{at}")
        lines.append(f'\t\tshow("{one.name}", "entry", {shown})')
        lines += [f"\t\t{line}" for line in assigned]
        lines.append(f'\t\tshow("{one.name}", "line", {shown})')
        passed = [f"a{at}" for at in range(len(kinds))]
        called = f"a0.{head}" if receiver else head
        lines.append(f"\t\t{called}({', '.join(passed[receiver:])})")
        return [*lines, "\t}"]

    def _kind(self, number: int, depth: int = 0) -> str:
        random = self._random
        which = random.random()
        if which < 0.25:
            return random.choice([*_NUMBERS, "int", "bool", "float64"])
        if which < 0.42:
            return "string"
        if which < 0.55:
            return random.choice(["[]byte", "[]int32"])
        if which < 0.65:
            return random.choice(["interface{}", "error"])
        if which < 0.72:
            return random.choice(["*point", "map[string]int"])
        if depth > 1:
            return "int"
        if which < 0.82:
            return f"[{random.choice([1, 1, 2, 3])}]{self._kind(number, depth + 1)}"
        name = f"S{number}x{len(self._types)}"
        self._types.append("")
        at = len(self._types) - 1
        members = [
            (f"F{n}", self._kind(number, depth + 1)) for n in range(random.choice([1, 2, 2, 3, 4]))
        ]
        if random.random() < 0.15:
            members.insert(0, ("_", "int32"))
        self._types[at] = f"type {name} struct {{ {'; '.join(' '.join(one) for one in members)} }}"
        self._members[name] = [one for one in members if one[0] != "_"]
        return name

    def _words(self, kind: str) -> int:
        if kind.startswith("[]"):
            return 3
        if kind.startswith("["):
            count, _, element = kind[1:].partition("]")
            return int(count) * self._words(element)
        if kind in self._members:
            return 1 + sum(self._words(member) for _, member in self._members[kind])
        return 2 if kind in ("string", "interface{}", "error") else 1

    def _leaves(self, text: str, kind: str) -> list[_Leaf]:
        if kind in _NUMBERS or kind in ("int", "bool", "float64"):
            return [_Leaf(text, text, kind != "float64")]
        if kind == "string":
            return [
                _Leaf(f"len({text})", f"len({text})"),
                _Leaf(text, text, False),
                _Leaf(f"{text}[0]", f"int({text}[0])", False),
            ]
        if kind.startswith("[]"):
            whole = f"octets({text})" if kind == "[]byte" else text
            return [
                _Leaf(f"len({text})", f"len({text})"),
                _Leaf(f"cap({text})", f"cap({text})"),
                _Leaf(text, whole, False),
                _Leaf(f"{text}[1]", f"int({text}[1])", False),
            ]
        if kind == "interface{}":
            return [_Leaf(f"{text}.(*point).Y", f"{text}.(*point).Y", False)]
        if kind == "error":
            return [
                _Leaf(f"{text}.(*fail).Code", f"{text}.(*fail).Code", False),
                _Leaf(f"{text}.(*fail).Text", f"{text}.(*fail).Text", False),
            ]
        if kind == "*point":
            return [_Leaf(f"{text}.Y", f"{text}.Y")]
        if kind == "map[string]int":
            return [_Leaf(f"len({text})", f"len({text})", False)]
        found = []
        if kind.startswith("["):
            count, _, element = kind[1:].partition("]")
            for at in range(int(count)):
                found += self._leaves(f"{text}[{at}]", element)
            return found
        for name, member in self._members[kind]:
            found += self._leaves(f"{text}.{name}", member)
        return found

    def _uses(self, text: str, kind: str) -> tuple[list[str], list[str]]:
        """What the body does with a parameter, and what it assigns to it."""
        random = self._random
        if random.random() < 0.2:
            return [], []
        if kind in _NUMBERS or kind in ("int", "float64"):
            uses = [f"sink += int({text})"]
            assignments = [f"{text} = {kind}({random.randrange(100)})", f"{text}++"]
        elif kind == "bool":
            uses, assignments = [f"if {text} {{ sink++ }}"], [f"{text} = !{text}"]
        elif kind == "string":
            uses = [f"sink += len({text})", f"sunk.text = {text}[:0]", f"sink += int({text}[0])"]
            assignments = [f"{text} = {text}[1:]", f"{text} = {self._value(kind)}"]
        elif kind.startswith("[]"):
            where = "bytes" if kind == "[]byte" else "list"
            uses = [
                f"sink += len({text})", f"sink += cap({text})", f"sink += int({text}[0])",
                f"sunk.{where} = {text}[:0]",
            ]  # fmt: skip
            assignments = [f"{text} = {text}[:2]", f"{text} = {self._value(kind)}"]
        elif kind == "interface{}":
            uses = [f"if {text} != nil {{ sink++ }}", f"sink += int({text}.(*point).X)"]
            uses.append(f"sunk.any = {text}")
            assignments = [f"{text} = {self._value(kind)}"]
        elif kind == "error":
            uses = [f"if {text} != nil {{ sink++ }}", f"sink += len({text}.Error())"]
            uses.append(f"sunk.err = {text}")
            assignments = [f"{text} = {self._value(kind)}"]
        elif kind == "*point":
            uses = [f"sink += int({text}.X)", f"sunk.point = {text}"]
            assignments = [f"{text} = {self._value(kind)}"]
        elif kind == "map[string]int":
            uses = [f"sink += len({text})", f"sunk.known = {text}"]
            assignments = [f"{text} = {self._value(kind)}"]
        elif kind.startswith("["):
            count, _, element = kind[1:].partition("]")
            return self._uses(f"{text}[{random.randrange(int(count))}]", element)
        else:
            members = self._members[kind]
            if not members:
                return [], []
            name, member = random.choice(members)
            return self._uses(f"{text}.{name}", member)
        chosen = random.sample(uses, random.choice([1, 1, 1, 2]) if len(uses) > 1 else 1)
        return chosen, random.sample(assignments, 1) if random.random() < 0.2 else []

    def _value(self, kind: str) -> str:
        random = self._random
        if kind in _NUMBERS:
            return str(random.randint(*_NUMBERS[kind]))
        if kind == "int":
            return str(random.randint(*_NUMBERS["int64"]))
        if kind == "bool":
            return random.choice(["true", "false"])
        if kind == "float64":
            return f"{random.randrange(-99, 99)}.25"
        if kind == "string":
            made = "".join(random.choice(_TEXT) for _ in range(random.randrange(3, 12)))
            return f'text("{made}")'
        if kind.startswith("[]"):
            room = random.randrange(3, 9)
            numbers = ", ".join(str(random.randrange(100)) for _ in range(room))
            return f"{kind}{{{numbers}}}[:{random.randrange(3, room + 1)}]"
        if kind in ("interface{}", "*point"):
            return f"&point{{{random.randrange(999)}, {random.randrange(-999, 0)}}}"
        if kind == "error":
            return f'&fail{{{random.randrange(-999, 999)}, text("failed {random.randrange(9)}")}}'
        if kind == "map[string]int":
            return random.choice(['map[string]int{"a": 1}', 'map[string]int{"b": 2, "c": 3}'])
        if kind.startswith("["):
            count, _, element = kind[1:].partition("]")
            return f"{kind}{{{', '.join(self._value(element) for _ in range(int(count)))}}}"
        return f"{kind}{{{', '.join(f'{n}: {self._value(m)}' for n, m in self._members[kind])}}}"
