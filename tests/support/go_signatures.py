"""Random Go signatures in a program that prints what it passes; a debugger's view is compared.

``spy3`` takes the globals ``a_3_0`` ... and returns ``r_3_0`` ...; generic functions and
methods, which take a hidden dictionary, are made from 1.18 on.
"""

from __future__ import annotations

import random

__all__ = ["GoSignatures"]

NUMBERS = [
    *("int8", "int16", "int32", "int64", "int", "uint8", "uint16", "uint32", "uint64"),
    *("uintptr", "float32", "float64"),
]
OTHERS = {
    "bool": "true",
    "complex64": "complex(1.5, -2.25)",
    "complex128": "complex(3.5, -4.75)",
    "string": 'text("value %d")',
    "[]byte": "make([]byte, %d, 1200)",
    "[]int32": "make([]int32, %d, 1200)",
    "interface{}": "interface{}(text(`any %d`))",
    "error": "errors.New(`error %d`)",
    "map[string]int": "map[string]int{`k`: %d}",
    "chan int": "make(chan int, %d)",
    "*int": "number(%d)",
    "func()": "func() { sink = %d }",
    "unsafe.Pointer": "unsafe.Pointer(number(%d))",
    "struct{}": "struct{}{}",
}

HEADER = """package main

import (
    "errors"
    "os"
    "runtime"
    "unsafe"
)

func init() { runtime.LockOSThread() } // main runs on the first thread, which is traced

var sink int
var _ = errors.New
var _ unsafe.Pointer

func text(s string) string { return string([]byte(s)) }
func number(n int) *int { return &n }

func show(tag, where string, p unsafe.Pointer, size uintptr) {
    const digits = "0123456789abcdef"
    line := []byte(tag + " " + where + " ")
    for i := uintptr(0); i < size; i++ {
        b := *(*byte)(unsafe.Pointer(uintptr(p) + i))
        line = append(line, digits[b>>4], digits[b&15])
    }
    os.Stdout.Write(append(line, '\\n'))
}
"""


class GoSignatures:
    """One random program of ``count`` functions.

    ``unnamed``: how often a parameter has no name. Functions of such programs use some of those
    that have one, and assign some to others. ``converted``: how often one is assigned another one
    of another type, so that both are in one register or slot.
    """

    def __init__(
        self, seed: int, count: int, generics: bool, unnamed: float = 0, converted: float = 0
    ) -> None:
        self._unnamed, self._converted = unnamed, converted
        self._random = random.Random(seed)
        self._declared: list[str] = []
        self._number = 0
        self._values: dict[str, str] = {}  # literal of a declared type's value, by name
        self._generics = generics
        self.parameters = [self._types(9) for _ in range(count)]
        self.results = [self._types(4) for _ in range(count)]
        self.names: list[str] = []  # of the functions in the symbol table, shape unknown
        self._source = self._program()

    def source(self) -> str:
        """The program."""
        return self._source

    def _program(self) -> str:
        functions, body = [], []
        for i, (types, results) in enumerate(zip(self.parameters, self.results, strict=True)):
            for kind, made in (("a", types), ("r", results)):
                for j, name in enumerate(made):
                    functions.append(f"var {kind}_{i}_{j} {name} = {self._value(name)}")
                    tag = "argument" if kind == "a" else "result"
                    where = f"unsafe.Pointer(&{kind}_{i}_{j}), unsafe.Sizeof({kind}_{i}_{j})"
                    body.append(f'    show("{tag}", "{i} {j}", {where})')
            form = self._random.choice(["function", "method", "value method"])
            if self._generics and self._random.random() < 0.4 and types:
                form = "generic " + form
            functions.append(self._function(i, form, types, results))
            body.append(f"    {self._call(i, form, len(types), len(results))}")
        return "\n".join([HEADER, *self._declared, *functions, "func main() {", *body, "}", ""])

    def _function(self, i: int, form: str, types: list[str], results: list[str]) -> str:
        generic = form.startswith("generic")
        taken = ["T", *types[1:]] if generic else types
        named = [j for j in range(len(taken)) if self._random.random() >= self._unnamed]
        parameters = ", ".join(
            f"{f'p{j}' if j in named else '_'} {name}" for j, name in enumerate(taken)
        )
        returned = ", ".join(f"q{j} {name}" for j, name in enumerate(results))
        values = ", ".join(f"r_{i}_{j}" for j in range(len(results)))
        used = "; ".join(["sink++", *(self._uses(taken, named) if self._unnamed else [])])
        tail = f"({parameters}) ({returned}) {{ {used}; return {values} }}"
        if form.endswith("function"):
            self.names.append(f"main.spy{i}")
            return f"//go:noinline\nfunc spy{i}{'[T any]' if generic else ''}{tail}"
        star = "" if form.endswith("value method") else "*"
        of = "[T]" if generic else ""
        self.names.append(f"main.(*R{i}).spy" if star else f"main.R{i}.spy")
        declared = f"type R{i}{'[T any]' if generic else ''} struct {{ a int32; b string }}\n"
        used = f"R{i}{f'[{types[0]}]' if generic else ''}"
        receiver = f"var v{i} = {used}{{{i} + 7, text(`receiver {i}`)}}\n"
        return f"{declared}{receiver}//go:noinline\nfunc (p {star}R{i}{of}) spy{tail}"

    def _uses(self, taken: list[str], named: list[int]) -> list[str]:
        numbers = [j for j in named if taken[j] in NUMBERS]
        uses = []
        for j in numbers:
            same = [other for other in numbers if taken[other] == taken[j] and other != j]
            if same and self._random.random() < 0.2:
                uses.append(f"p{j} = p{self._random.choice(same)}")
            others = [other for other in numbers if other != j]
            if self._converted and others and self._random.random() < self._converted:
                uses.append(f"p{j} = {taken[j]}(p{self._random.choice(others)})")
            if self._random.random() < 0.5:
                uses.append(f"sink += int(p{j})")
        return uses

    def _call(self, i: int, form: str, count: int, results: int) -> str:
        arguments = ", ".join(f"a_{i}_{j}" for j in range(count))
        target = f"spy{i}" if form.endswith("function") else f"v{i}.spy"
        blank = ", ".join(["_"] * results)
        return f"{blank + ' = ' if results else ''}{target}({arguments})"

    def _types(self, most: int) -> list[str]:
        return [self._type(0) for _ in range(self._random.randrange(most + 1))]

    def _type(self, depth: int) -> str:
        which = self._random.random()
        if which < 0.35:
            return self._random.choice(NUMBERS)
        if which < 0.7 or depth > 2:
            return self._random.choice(list(OTHERS))
        if which < 0.8:
            return f"[{self._random.choice([0, 1, 1, 2, 3])}]{self._type(depth + 1)}"
        return self._struct(depth)

    def _struct(self, depth: int) -> str:
        self._number += 1
        name = f"S{self._number}"
        fields, values = [], []
        for i in range(self._random.randrange(5)):
            made = self._type(depth + 1)
            blank = self._random.random() < 0.12
            fields.append(f"{'_' if blank else f'F{i}'} {made}")
            if not blank:
                values.append(f"F{i}: {self._value(made)}")
        self._declared.append(f"type {name} struct {{ {'; '.join(fields)} }}")
        self._values[name] = f"{name}{{{', '.join(values)}}}"
        return name

    def _value(self, name: str) -> str:
        if name in NUMBERS:
            return f"{name}({self._random.randrange(1, 127)})"
        if name in OTHERS:
            value = OTHERS[name]
            return value % self._random.randrange(1, 999) if "%d" in value else value
        if name.startswith("["):
            count, _, element = name[1:].partition("]")
            return f"{name}{{{', '.join(self._value(element) for _ in range(int(count)))}}}"
        return self._values[name]
