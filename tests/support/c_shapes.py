"""Random C and C++ programs of the shapes in which compilers pass less than the source says.

Parameters of which half or nothing is used, or that are overwritten first; without a name; in
functions that are alike, local to the file, inlined, or called with results that nobody takes;
arrays of variable length; packs of C++. Before each call the program prints one line,
``EVENT FUNCTION {"EXPRESSION": VALUE, ...}``, with all that the call passes; ``$retval`` is what it
returns. ``EVENT FUNCTION@ {...}`` has what holds at its line ``mark();``, where inner blocks
may hide parameters, and what is global, by others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from fetchc.conformance.c_drawing import INTEGERS

__all__ = ["Function", "drawn"]

_PROLOGUE = """
#include <stdio.h>
volatile long sink, base;
volatile double floated;
static char memory[64];
#define KEPT __attribute__((noinline))
KEPT void mark(void) { sink++; }
"""


@dataclass
class Function:
    """One function. ``asked`` are its expressions; those of ``needed`` its code uses, those of
    ``returned`` for its result alone: a copy of which no call takes the result may lack them.

    ``marked`` are those of its line ``mark();``, which is ``line``, 0 where it has none.
    """

    name: str
    declaration: str
    body: str
    calls: list[str]
    asked: list[str] = field(default_factory=list)
    needed: set[str] = field(default_factory=set)
    returned: set[str] = field(default_factory=set)
    marked: list[str] = field(default_factory=list)
    line: int = 0


@dataclass
class _Leaf:
    text: str  # as the function writes it
    kind: str  # a C type

    @property
    def asked(self) -> str:
        """The number that it is, for fetchc: what a ``char *`` leads to is not asked."""
        return f"(long){self.text}" if self.kind == "const char *" else self.text


def drawn(seed: str, functions: int, plus: bool = False) -> tuple[str, list[Function]]:
    """A program and what can be asked of it; ``plus``: of C++."""
    drawing = _Drawing(Random(seed), plus)
    for number in range(functions):
        drawing.function(number)
    return drawing.source(), drawing.functions


@dataclass
class _Marked:
    """A body up to its ``mark();``: what it assigned, and names that mean another thing there."""

    assigned: list[str] = field(default_factory=list)
    hidden: dict[str, str] = field(default_factory=dict)
    there: bool = False


class _Drawing:
    def __init__(self, random: Random, plus: bool) -> None:
        self.random = random
        self.plus = plus
        self.types: list[str] = []
        self.functions: list[Function] = []

    def source(self) -> str:
        calls = [call for one in self.functions for call in one.calls]
        self.random.shuffle(calls)
        lines = [_PROLOGUE, *self.types]
        for one in self.functions:
            body = one.body.split("\n")
            above = "\n".join([*lines, one.declaration]).count("\n") + 2
            one.line = above + body.index(" mark();") if one.marked else 0
            lines += [f"{one.declaration} {{", *body, "}"]
        lines += [
            "int main(void) {",
            " setvbuf(stdout, 0, _IOLBF, 1 << 14);",
            *calls,
            " return 0;",
            "}",
            "",
        ]
        return "\n".join(lines)

    def function(self, number: int) -> None:
        random = self.random
        if self.functions and random.random() < 0.15:
            self.twin(number, random.choice(self.functions))
            return
        if self.plus and random.random() < 0.25:
            self.pack(number)
            return
        parameters, leaves, arguments, unnamed = [], [], [], 0
        for position in range(random.randint(1, 5)):
            made = self.parameter(f"v{position}", number)
            kind, found = made
            nameless = random.random() < 0.1
            parameters.append(kind if nameless and self.plus else f"{kind} v{position}")
            unnamed += nameless and self.plus
            arguments.append((f"v{position}", kind, found))
            if not (nameless and self.plus):
                leaves += found
        others: list[tuple[str, str]] = []
        if not self.plus and random.random() < 0.2:
            self.variable(parameters, leaves, arguments, others)
        if self.plus and random.random() < 0.4:
            self.types += [
                f"namespace n{number} {{ volatile long only{number} = {number} + 100; }}",
                f"namespace n{number} {{ volatile long both{number} = {number} + 200; }}",
                f"volatile long both{number} = {number} + 300;",
            ]
            others = [(f"both{number}", f"::both{number}")]
        result = random.choice(["void", "int", "long", "long"])
        local = random.random() < 0.4
        name = f"f{number}"
        how = ("static " if random.random() < 0.2 else "static KEPT ") if local else "KEPT "
        declaration = f"{how}{result} {name}({', '.join(parameters)})"
        marked = _Marked()
        spaces = f"n{number}" if self.plus and others else ""
        body, needed, returned, value = self.body(leaves, result, marked, spaces)
        if spaces and f" using namespace {spaces};" in body.split("\n")[:1]:
            # There `bothN` is ambiguous.
            others = [(f"::both{number}",) * 2, (f"only{number}", f"{spaces}::only{number}")]
        asked = [leaf.asked for leaf in leaves]
        asked += [text for text, _ in others]
        one = Function(name, declaration, body, [], asked, needed, returned)
        if marked.there:
            one.marked = list(one.asked)
            one.marked += [text for text in marked.hidden if text not in one.marked]
        taken = random.random() < 0.6
        for _ in range(2):
            one.calls.append(
                self.call(one, arguments, leaves, result, value, taken, others, marked)
            )
        if result != "void":
            one.asked.append("$retval")
            if taken:
                one.needed.add("$retval")
        self.functions.append(one)

    def twin(self, number: int, other: Function) -> None:
        # The same code by another name.
        name = f"f{number}"
        if other.declaration.startswith("template"):
            return
        spelled = [call.replace(f"{other.name}(", f"{name}(") for call in other.calls]
        for end in " @":
            was, now = f"EVENT {other.name}{end}", f"EVENT {name}{end}"
            spelled = [call.replace(was, now) for call in spelled]
        declaration = other.declaration.replace(f" {other.name}(", f" {name}(")
        asked, needed, marked = list(other.asked), set(other.needed), list(other.marked)
        returned = set(other.returned)
        self.functions.append(
            Function(name, declaration, other.body, spelled, asked, needed, returned, marked)
        )

    def pack(self, number: int) -> None:
        kinds = [self.random.choice([*INTEGERS, "const char *"]) for _ in range(3)]
        name = f"f{number}"
        body = " ((sink += (long)args), ...);\n mark();\n sink += first;"
        declaration = f"template <class... T> KEPT void {name}(int first, T... args)"
        leaves = [_Leaf("first", "int")]
        leaves += [_Leaf(f"args#{n}", kind) for n, kind in enumerate(kinds)]
        arguments = [(leaf.text.replace("#", "_"), leaf.kind, [leaf]) for leaf in leaves]
        texts = [leaf.asked for leaf in leaves]
        one = Function(name, declaration, body, [], texts, set(texts), set(), list(texts))
        there = _Marked(there=True)
        one.calls.append(self.call(one, arguments, leaves, "void", "", False, [], there))
        self.functions.append(one)

    def variable(
        self,
        parameters: list[str],
        leaves: list[_Leaf],
        arguments: list[tuple[str, str, list[_Leaf]]],
        others: list[tuple[str, str]],
    ) -> None:
        """Parameters that are arrays of a length that another one is."""
        sizes = [_Leaf(name, "int") for name in ("rows", "columns")]
        leaves += sizes[self.random.random() < 0.5 :]  # the others are not assigned
        given = [_Leaf("char_a", "array"), _Leaf("int_a", "array")]
        parameters += ["int rows", "int columns", "char char_a[rows]", "int int_a[rows][columns]"]
        arguments += [(leaf.text, "int" if leaf in sizes else "array", [leaf]) for leaf in sizes]
        arguments += [(leaf.text, "array", [leaf]) for leaf in given]
        others += [(f"(long){leaf.text}", f"(long){leaf.text}") for leaf in given]
        others += [(text, text) for text in ("(int)char_a[1]", "int_a[1][0]", "int_a[1][2]")]

    def parameter(self, name: str, number: int) -> tuple[str, list[_Leaf]]:
        which = self.random.random()
        if which < 0.35:
            kind = self.random.choice(list(INTEGERS))
            return kind, [_Leaf(name, kind)]
        if which < 0.5:
            return "const char *", [_Leaf(name, "const char *")]
        if which < 0.6:
            return "__int128", [
                _Leaf(f"{name}.low", "unsigned long"), _Leaf(f"{name}.high", "long")
            ]  # fmt: skip
        if which < 0.66:
            return "double", []
        kinds = [
            self.random.choice([*INTEGERS, "const char *", "double", "long"])
            for _ in range(self.random.choice([1, 2, 2, 2, 3]))
        ]
        tag = f"S{number}_{len(self.types)}"
        members = " ".join(f"{kind} m{n};" for n, kind in enumerate(kinds))
        self.types.append(f"struct {tag} {{ {members} }};")
        leaves = [_Leaf(f"{name}.m{n}", kind) for n, kind in enumerate(kinds) if kind != "double"]
        return f"struct {tag}", leaves

    def body(
        self, leaves: list[_Leaf], result: str, marked: _Marked, spaces: str
    ) -> tuple[str, set[str], set[str], str]:
        lines, needed, returned, summed = [" sink++;"], set(), set(), ["0L"]
        assignments: dict[str, str] = {}
        for leaf in leaves:
            which = self.random.random()
            wide = leaf.text.endswith((".low", ".high"))
            written = _number(leaf.text)
            if which < 0.5:
                needed.add(leaf.asked)
                if self.random.random() < 0.4:
                    summed.append(written)
                    returned.add(leaf.asked)
                else:
                    lines.append(f" sink += {written};")
            elif which < 0.65 and not wide:
                assigned = "base" if leaf.kind != "const char *" else "memory + base"
                lines.append(f" {leaf.text} = {assigned}; sink += {written};")
                assignments[lines[-1]] = f"{leaf.text} = {assigned};"
        if self.random.random() < 0.3:
            lines.append(' char room[24]; snprintf(room, 24, "%ld", sink); sink += room[0];')
        self.random.shuffle(lines)
        if self.random.random() < 0.5 or spaces:
            at = self.random.randint(0, len(lines))
            marked.there = True
            marked.assigned = [assignments[line] for line in lines[:at] if line in assignments]
            lines[at:at] = self.marked(leaves, marked, spaces)
            if spaces and self.random.random() < 0.4:
                lines.insert(0, f" using namespace {spaces};")
                marked.hidden[f"only{spaces[1:]}"] = f"{spaces}::only{spaces[1:]}"
        value = " + ".join(summed)
        if result == "void":
            lines.append(f" sink += {value};")
            returned.clear()
        else:
            lines.append(f" return ({result})({value});")
        return "\n".join(lines), needed, returned, value

    def marked(self, leaves: list[_Leaf], marked: _Marked, spaces: str) -> list[str]:
        """The line ``mark();``, in a block that may hide names."""
        random, number = self.random, spaces[1:]
        opened, closed = [], []
        if spaces and random.random() < 0.5:
            opened.append(f" using {spaces}::both{number}; sink += both{number};")
            marked.hidden[f"both{number}"] = f"{spaces}::both{number}"
        scalars = [leaf for leaf in leaves if leaf.kind in INTEGERS and leaf.text.isalnum()]
        if scalars and random.random() < 0.4:
            hidden = random.choice(scalars).text
            given = random.randint(1, 1 << 40)
            opened.append(f" long {hidden} = base + {given}L; sink += {hidden};")
            closed.append(f" sink += {hidden};")
            marked.hidden[hidden] = f"{given}L"
        return [" {", *opened, " mark();", *closed, " }"] if opened else [" mark();"]

    def call(
        self,
        one: Function,
        arguments: list[tuple[str, str, list[_Leaf]]],
        leaves: list[_Leaf],
        result: str,
        value: str,
        taken: bool,
        others: list[tuple[str, str]],
        marked: _Marked,
    ) -> str:
        lines = [" {"]
        for name, kind, found in arguments:
            lines.append(f"  {self.value(name, kind, found)}")
        passed = {leaf.asked: _number(leaf.text.replace("#", "_")) for leaf in leaves}
        passed |= {text: f"(long){evaluated}" for text, evaluated in others}
        at_line = passed | {text: f"(long){value}" for text, value in marked.hidden.items()}
        if result != "void":
            passed["$retval"] = f"(long)({result})({value})"
        lines.append(_printed(one.name, passed))
        called = f"{one.name}({', '.join(name for name, _, _ in arguments)});"
        lines.append(f"  {'sink += ' if taken and result != 'void' else ''}{called}")
        if marked.there:
            lines += [f"  {each}" for each in marked.assigned]
            lines.append(_printed(f"{one.name}@", at_line))
        return "\n".join([*lines, " }"])

    def value(self, name: str, kind: str, found: list[_Leaf]) -> str:
        if kind == "__int128":
            high, low = self.number(), self.number()
            return f"__int128 {name} = ((__int128)({high}) << 64) + (unsigned long)({low});"
        if kind == "array":
            numbers = [self.random.randint(-120, 120) for _ in range(12)]
            listed = ", ".join(map(str, numbers))
            if name == "char_a":
                return f"char char_a[] = {{{listed}}};"
            return f"int int_a[3][4] = {{{listed}}};"
        if name in ("rows", "columns"):
            return f"int {name} = base + {3 + (name == 'columns')};"
        if not kind.startswith("struct"):
            return f"{kind} {name} = {self.scalar(kind)};"
        given = " ".join(f"{leaf.text} = {self.scalar(leaf.kind)};" for leaf in found)
        return f"{kind} {name}; __builtin_memset(&{name}, 0, sizeof {name}); {given}"

    def scalar(self, kind: str) -> str:
        if kind == "const char *":
            return f"memory + base + {self.random.randint(1, 60)}"
        if kind == "double":
            return f"base + {self.random.randint(1, 99)}"
        return f"({kind})({self.number()})"

    def number(self) -> str:
        return f"base + {self.random.randint(-(1 << 62), 1 << 62)}L"


def _printed(name: str, values: dict[str, str]) -> str:
    form = ", ".join(f'\\"{text}\\": %ld' for text in values)
    given = "".join(f", {value}" for value in values.values())
    return f'  printf("EVENT {name} {{{form}}}\\n"{given});'


def _number(text: str) -> str:
    # What fetchc calls v.low is no expression of C.
    name, _, half = text.rpartition(".")
    if half == "low":
        return f"(long)(unsigned long){name}"
    return f"(long)({name} >> 64)" if half == "high" else f"(long){text}"
