"""Random C and C++ programs of the shapes in which compilers pass less than the source says.

Parameters of which half or nothing is used, or that are overwritten first; without a name; in
functions that are alike, local to the file, or called with results that nobody takes; packs of
C++. Before each call the program prints one line, ``EVENT FUNCTION {"EXPRESSION": VALUE, ...}``,
with all that the call passes; ``$retval`` is what it returns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from fetchc.conformance.c.draw_types import INTEGERS

__all__ = ["Function", "drawn"]

_PROLOGUE = """
#include <stdio.h>
volatile long sink, base;
volatile double floated;
static char memory[64];
#define KEPT __attribute__((noinline))
"""


@dataclass
class Function:
    """One function. ``asked`` are its expressions; those of ``needed`` its code uses."""

    name: str
    declaration: str
    body: str
    calls: list[str]
    asked: list[str] = field(default_factory=list)
    needed: set[str] = field(default_factory=set)


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
            lines += [f"{one.declaration} {{", one.body, "}"]
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
        result = random.choice(["void", "int", "long", "long"])
        local = random.random() < 0.4
        name = f"f{number}"
        declaration = f"{'static ' if local else ''}KEPT {result} {name}({', '.join(parameters)})"
        body, needed, value = self.body(leaves, result)
        one = Function(name, declaration, body, [], [leaf.asked for leaf in leaves], needed)
        taken = random.random() < 0.6
        for _ in range(2):
            one.calls.append(self.call(one, arguments, leaves, result, value, taken))
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
        spelled = [call.replace(f"EVENT {other.name} ", f"EVENT {name} ") for call in spelled]
        declaration = other.declaration.replace(f" {other.name}(", f" {name}(")
        asked, needed = list(other.asked), set(other.needed)
        self.functions.append(Function(name, declaration, other.body, spelled, asked, needed))

    def pack(self, number: int) -> None:
        kinds = [self.random.choice([*INTEGERS, "const char *"]) for _ in range(3)]
        name = f"f{number}"
        body = " ((sink += (long)args), ...); sink += first;"
        declaration = f"template <class... T> KEPT void {name}(int first, T... args)"
        leaves = [_Leaf("first", "int")]
        leaves += [_Leaf(f"args#{n}", kind) for n, kind in enumerate(kinds)]
        arguments = [(leaf.text.replace("#", "_"), leaf.kind, [leaf]) for leaf in leaves]
        texts = [leaf.asked for leaf in leaves]
        one = Function(name, declaration, body, [], texts, set(texts))
        one.calls.append(self.call(one, arguments, leaves, "void", "", False))
        self.functions.append(one)

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

    def body(self, leaves: list[_Leaf], result: str) -> tuple[str, set[str], str]:
        lines, needed, summed = [" sink++;"], set(), ["0L"]
        for leaf in leaves:
            which = self.random.random()
            wide = leaf.text.endswith((".low", ".high"))
            written = _number(leaf.text)
            if which < 0.5:
                needed.add(leaf.asked)
                if self.random.random() < 0.4:
                    summed.append(written)
                else:
                    lines.append(f" sink += {written};")
            elif which < 0.65 and not wide:
                assigned = "base" if leaf.kind != "const char *" else "memory + base"
                lines.append(f" {leaf.text} = {assigned}; sink += {written};")
        if self.random.random() < 0.3:
            lines.append(' char room[24]; snprintf(room, 24, "%ld", sink); sink += room[0];')
        self.random.shuffle(lines)
        value = " + ".join(summed)
        if result == "void":
            lines.append(f" sink += {value};")
        else:
            lines.append(f" return ({result})({value});")
        return "\n".join(lines), needed, value

    def call(
        self,
        one: Function,
        arguments: list[tuple[str, str, list[_Leaf]]],
        leaves: list[_Leaf],
        result: str,
        value: str,
        taken: bool,
    ) -> str:
        lines = [" {"]
        for name, kind, found in arguments:
            lines.append(f"  {self.value(name, kind, found)}")
        shown = [f'\\"{leaf.asked}\\": %ld' for leaf in leaves]
        values = [_number(leaf.text.replace("#", "_")) for leaf in leaves]
        if result != "void":
            shown.append('\\"$retval\\": %ld')
            values.append(f"(long)({result})({value})")
        form = ", ".join(shown)
        told = "".join(f", {each}" for each in values)
        lines.append(f'  printf("EVENT {one.name} {{{form}}}\\n"{told});')
        called = f"{one.name}({', '.join(name for name, _, _ in arguments)});"
        lines.append(f"  {'sink += ' if taken and result != 'void' else ''}{called}")
        return "\n".join([*lines, " }"])

    def value(self, name: str, kind: str, found: list[_Leaf]) -> str:
        if kind == "__int128":
            high, low = self.number(), self.number()
            return f"__int128 {name} = ((__int128)({high}) << 64) + (unsigned long)({low});"
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


def _number(text: str) -> str:
    # What fetchc calls v.low is no expression of C.
    name, _, half = text.rpartition(".")
    if half == "low":
        return f"(long)(unsigned long){name}"
    return f"(long)({name} >> 64)" if half == "high" else f"(long){text}"
