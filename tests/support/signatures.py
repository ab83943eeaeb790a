"""Random C signatures, an assembly spy that writes down what a call passes, and the comparison.

A program has a typed global for each argument (``a_3_1``: second argument of the fourth
function), fills it, prints its bytes and passes it to a spy, which copies registers and
stack into a buffer that the program prints. The same for results, the other way round.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fetchc.program.entities import InMemory, InRegister, Pieces, Place
from fetchc.program.protocol import Program
from fetchc.program.types import (
    ArrayType,
    ComplexType,
    FloatType,
    NamedType,
    QualifiedType,
    StructType,
)
from fetchc.quantities import TypeId

__all__ = ["Dump", "Signatures", "differences", "leaves", "run"]

SCALARS = [
    *("char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned"),
    *("long", "unsigned long", "long long", "_Bool", "void *", "float", "double", "float"),
    *("double", "long double", "__int128", "float _Complex", "double _Complex", "enum E"),
    "long double _Complex",
]
ILLEGAL = {"_Bool", "long double", "long double _Complex"}  # not every bit pattern is a value

# Offsets in the buffer: six integer registers, eight vector registers, the stack.
SPY_INTEGERS = [5, 4, 1, 2, 8, 9]  # by DWARF number: rdi rsi rdx rcx r8 r9
SPY_FLOATS = list(range(17, 25))
SPY = """
.bss
.globl spy_buffer
.balign 64
spy_buffer: .zero 4096
.text
spy_common:
 lea spy_buffer(%rip), %r11
 mov %rdi, 0(%r11)
 mov %rsi, 8(%r11)
 mov %rdx, 16(%r11)
 mov %rcx, 24(%r11)
 mov %r8, 32(%r11)
 mov %r9, 40(%r11)
 movups %xmm0, 64(%r11)
 movups %xmm1, 80(%r11)
 movups %xmm2, 96(%r11)
 movups %xmm3, 112(%r11)
 movups %xmm4, 128(%r11)
 movups %xmm5, 144(%r11)
 movups %xmm6, 160(%r11)
 movups %xmm7, 176(%r11)
 mov %rdi, %rax
 mov %rsp, %rsi
 lea 192(%r11), %rdi
 mov $128, %ecx
 cld
 rep movsq
 ret
# result_spy(function, buffer): call it with a buffer for its result, note what it returns.
.globl result_spy
result_spy:
 sub $8, %rsp
 mov %rdi, %rax
 mov %rsi, %rdi
 call *%rax
 lea spy_buffer(%rip), %r11
 mov %rax, 0(%r11)
 mov %rdx, 8(%r11)
 movups %xmm0, 16(%r11)
 movups %xmm1, 32(%r11)
 fstpt 48(%r11)
 fstpt 64(%r11)
 fninit
 add $8, %rsp
 ret
.section .note.GNU-stack,"",@progbits
.text
"""
RESULT_OFFSETS = {0: 0, 1: 8, 17: 16, 18: 32, 33: 48, 34: 64}

PROLOGUE = """#include <stdio.h>
#include <string.h>
enum E { E0, E1 = 70000 };
extern unsigned char spy_buffer[4096];
extern void result_spy(void *, void *);
static unsigned char returned[4096] __attribute__((aligned(64)));
static void fill(void *object, int size, unsigned seed) {
    unsigned char *bytes = object;
    for (int i = 0; i < size; i++) { seed = seed * 1664525 + 1013904223; bytes[i] = seed >> 24; }
}
static void show(const char *tag, int i, int j, const void *object, int size) {
    const unsigned char *bytes = object;
    printf("%s %d %d ", tag, i, j);
    for (int k = 0; k < size; k++) printf("%02x", bytes[k]);
    puts("");
}
"""


@dataclass
class CType:
    """A type as C names it, and the parts that must be given a legal value."""

    name: str
    careful: list[tuple[str, str]] = field(default_factory=list)  # (path, scalar)


class Signatures:
    """One random program of ``count`` functions.

    ``attributes`` adds packed and aligned types; ``wide_complex`` results of 32 bytes, which
    clang does not name. ``crowded`` puts a __int128 before the others that finds one register,
    or two.
    """

    def __init__(
        self, seed: int, count: int, attributes: bool, wide_complex: bool, crowded: bool = False
    ) -> None:
        self._random = random.Random(seed)
        self._attributes = attributes
        self._declared: list[str] = []
        self._number = 0
        self.parameters = [
            [self._type() for _ in range(self._random.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 12]))]
            for _ in range(count)
        ]
        if crowded:
            front = [CType("long")] * 5 + [CType("__int128")]
            self.parameters = [front[i % 2 :] + types for i, types in enumerate(self.parameters)]
        self.results = [
            None if self._random.random() < 0.15 else self._type() for _ in range(count)
        ]
        if not wide_complex:
            self.results = [
                None if r and r.name == "long double _Complex" else r for r in self.results
            ]

    @classmethod
    def of(cls, declared: dict[str, str]) -> Signatures:
        """A function for each of the types, which takes one; they are declared by their names."""
        made = cls(1, 0, attributes=False, wide_complex=False)
        made._declared = list(declared.values())
        made.parameters = [[CType(name)] for name in declared]
        made.results = [None] * len(declared)
        return made

    def c_source(self) -> str:
        """The program."""
        lines = [PROLOGUE, *self._declared]
        body = ["int main(void) {"]
        for i, (types, result) in enumerate(zip(self.parameters, self.results, strict=True)):
            returned = result.name if result else "void"
            arguments = ", ".join(t.name for t in types)
            lines.append(f"extern {returned} spy_{i}({arguments});")
            for j, made in enumerate(types):
                lines.append(f"{made.name} a_{i}_{j};")
                body += self._filled(f"a_{i}_{j}", made)
            body.append(" memset(spy_buffer, 0xee, 4096);")
            passed = ", ".join(f"a_{i}_{j}" for j in range(len(types)))
            body.append(f" spy_{i}({passed});")
            body.append(f' show("spy", {i}, 0, spy_buffer, 2048);')
            for j in range(len(types)):
                body.append(f' show("argument", {i}, {j}, &a_{i}_{j}, sizeof a_{i}_{j});')
            if result:
                lines.append(f"{result.name} r_{i};")
                lines.append(f"__attribute__((noinline)) {result.name} give_{i}(void)")
                lines.append(f"{{ return r_{i}; }}")
                body += self._filled(f"r_{i}", result)
                body.append(" memset(returned, 0xee, 4096); memset(spy_buffer, 0xee, 4096);")
                body.append(f" result_spy(give_{i}, returned);")
                body.append(" { void *at = returned; memcpy(spy_buffer + 80, &at, 8); }")
                body.append(" memcpy(spy_buffer + 96, returned, 1024);")
                body.append(f' show("returned", {i}, 0, spy_buffer, 2048);')
                body.append(f' show("result", {i}, 0, &r_{i}, sizeof r_{i});')
        return "\n".join([*lines, *body, " return 0;", "}", ""])

    def assembly(self) -> str:
        """The spies."""
        entries = "".join(
            f".globl spy_{i}\nspy_{i}: jmp spy_common\n" for i in range(len(self.parameters))
        )
        return SPY + entries

    def _filled(self, name: str, made: CType) -> list[str]:
        lines = [f" fill(&{name}, sizeof {name}, {self._random.randrange(1 << 30)}u);"]
        for path, scalar in made.careful:
            value = "1" if scalar == "_Bool" else f"{self._random.randrange(1, 999)}.25"
            lines.append(f" {name}{path} = {value};")
        return lines

    def _type(self) -> CType:
        if self._random.random() < 0.42:
            return self._aggregate(0)
        return self._scalar()

    def _scalar(self) -> CType:
        name = self._random.choice(SCALARS)
        return CType(name, [("", name)] if name in ILLEGAL else [])

    def _aggregate(self, depth: int) -> CType:
        choose = self._random
        self._number += 1
        name = f"S{self._number}"
        kind = "union" if choose.random() < 0.12 else "struct"
        alike = choose.choice(["float", "double", "int", "long"]) if choose.random() < 0.3 else None
        members, careful = [], []
        for i in range(choose.choice([1, 1, 2, 2, 2, 3, 3, 4, 5])):
            text, inner = self._member(f"m{i}", kind, alike, depth)
            members.append(text)
            careful += inner
        attribute = ""
        if self._attributes and choose.random() < 0.2:
            attribute = choose.choice(["packed", "packed", "aligned(16)", "aligned(32)"])
            attribute = f" __attribute__(({attribute}))"
        body = " ".join(members)
        self._declared.append(f"typedef {kind} {name} {{ {body} }}{attribute} {name};")
        return CType(name, careful)

    def _member(
        self, name: str, kind: str, alike: str | None, depth: int
    ) -> tuple[str, list[tuple[str, str]]]:
        choose = self._random
        which = choose.random()
        if alike:
            many = f"[{choose.choice([1, 2, 3])}]" if which < 0.25 else ""
            return f"{alike} {name}{many};", []
        if which < 0.14 and depth < 2:
            inner = self._aggregate(depth + 1)
            return f"{inner.name} {name};", [(f".{name}{path}", s) for path, s in inner.careful]
        if which < 0.26:
            element = choose.choice(["char", "short", "int", "float", "double", "long"])
            return f"{element} {name}[{choose.choice([1, 2, 3, 5])}];", []
        if which < 0.36 and kind == "struct":
            base = choose.choice(["int", "unsigned", "long", "unsigned char"])
            return f"{base} {name}:{choose.choice([1, 3, 7, 8])};", []
        scalar = self._scalar()
        return f"{scalar.name} {name};", [(f".{name}", s) for _, s in scalar.careful]


@dataclass
class Dump:
    """What one run of a program printed: bytes by (tag, function, argument)."""

    bytes: dict[tuple[str, int, int], bytes]


def run(signatures: Signatures, compiler: str, folder: Path, *options: str) -> tuple[Path, Dump]:
    """Build and run the program; the executable has debug information."""
    (folder / "p.c").write_text(signatures.c_source())
    (folder / "spy.S").write_text(signatures.assembly())
    binary = folder / "p"
    command = [compiler, "-g", "-w", "-Wno-psabi", *options, "-o", str(binary)]
    subprocess.run([*command, str(folder / "p.c"), str(folder / "spy.S")], check=True)
    printed = subprocess.run([str(binary)], check=True, capture_output=True, text=True).stdout
    found = {}
    for line in printed.splitlines():
        tag, i, j, *text = line.split(" ")
        found[tag, int(i), int(j)] = bytes.fromhex("".join(text))
    return binary, Dump(found)


def leaves(program: Program, type_id: TypeId, offset: int = 0) -> Iterator[tuple[int, int]]:
    """(first bit, bits) of every scalar that holds a value; padding is not one."""
    found = program.type(type_id)
    match found:
        case NamedType(target=target) | QualifiedType(target=target):
            yield from leaves(program, target, offset)
        case StructType(members=members):
            for member in members:
                if member.bits is not None:
                    yield 8 * offset + member.bits.offset, member.bits.width
                else:
                    yield from leaves(program, member.type, offset + member.offset)
        case ArrayType(element=element, count=count) if count:
            each = program.type(element)
            size = getattr(each, "size", None)
            while size is None:
                assert isinstance(each, NamedType | QualifiedType)
                each = program.type(each.target)
                size = getattr(each, "size", None)
            for index in range(count):
                yield from leaves(program, element, offset + index * size)
        case FloatType(name="long double"):
            yield 8 * offset, 80
        case ComplexType(size=32):
            yield 8 * offset, 80
            yield 8 * offset + 128, 80
        case other:
            yield 8 * offset, 8 * getattr(other, "size", 0)


def differences(
    program: Program, type_id: TypeId, place: Place, expected: bytes, spied: bytes, result: bool
) -> list[tuple[int, int]]:
    """Leaves whose bits at ``place`` are not the expected ones."""
    got = bytearray(len(expected))
    known = bytearray(len(expected))
    _collect(place, 0, len(expected), spied, result, got, known)
    wrong = []
    for first, bits in leaves(program, type_id):
        mask = ((1 << bits) - 1) << first
        covered = int.from_bytes(known, "little") & mask == mask
        same = not (int.from_bytes(got, "little") ^ int.from_bytes(expected, "little")) & mask
        if not (covered and same):
            wrong.append((first, bits))
    return wrong


def _collect(
    place: Place,
    offset: int,
    size: int,
    spied: bytes,
    result: bool,
    got: bytearray,
    known: bytearray,
) -> None:
    match place:
        case Pieces(pieces=pieces):
            for piece in pieces:
                _collect(piece.place, offset + piece.offset, piece.size, spied, result, got, known)
            return
        case InRegister(register=register) if result:
            start = RESULT_OFFSETS[register]
        case InMemory(register=0, offset=0) if result and spied[:8] == spied[80:88]:
            start = 96  # the address in rax is that of the buffer the caller gave
        case InRegister(register=register) if register in SPY_INTEGERS:
            start = 8 * SPY_INTEGERS.index(register)
        case InRegister(register=register) if register in SPY_FLOATS:
            start = 64 + 16 * SPY_FLOATS.index(register)
        case InMemory(register=7, offset=at):
            start = 192 + at
        case _:
            return
    got[offset : offset + size] = spied[start : start + size]
    known[offset : offset + size] = b"\xff" * size
