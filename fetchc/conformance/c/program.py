"""The C program of some families: it fills objects, tells every value, and calls the probes.

What it prints: ``region ADDRESS HEX`` of memory, and for each function a line ``probe`` with its
address, ``stop`` with registers and stack, and ``value N ITEM...`` as the compiler evaluates it.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from fetchc.conformance.c.types import (
    Code,
    CType,
    Family,
    Number,
    Pointer,
    Record,
    Void,
    careful,
    declare,
    resolved,
)
from fetchc.conformance.c.walks import Expression

__all__ = ["REGISTERS", "Probe", "Stop", "Told", "c_source", "run"]

REGISTERS = [
    *("ax", "bx", "cx", "dx", "si", "di", "bp", "sp"),
    *(f"r{number}" for number in range(8, 16)),
]
_BELOW, _STACK = 256, 1 << 14
_SAVED = 128


def _spy(into: str) -> str:
    # Copies registers and stack as they are here; nothing is changed but the flags.
    names = [name if name[0] == "r" else f"r{name}" for name in REGISTERS]
    lines = [f"mov %{name}, {into}+{8 * at}(%rip)" for at, name in enumerate(names)]
    lines += [f"lea -{_BELOW}(%rsp), %rsi", f"lea {into}+{_SAVED}(%rip), %rdi"]
    lines += [f"mov ${(_BELOW + _STACK) // 8}, %ecx", "cld", "rep movsq"]
    for name in ("rsi", "rdi", "rcx"):
        lines.append(f"mov {into}+{8 * names.index(name)}(%rip), %{name}")
    return "".join(f" {line}\\n" for line in lines)


PROLOGUE = f"""#include <stdio.h>
#include <string.h>
typedef unsigned char stopped[{_SAVED + _BELOW + _STACK}] __attribute__((aligned(64)));
stopped spy_entry, spy_inner;
#ifndef SEED
#define SEED 12345
#endif
static unsigned seed = SEED;
static void fill(void *object, long size, int truth) {{
    unsigned char *bytes = object;
    for (long i = 0; i < size; i++) {{
        seed = seed * 1664525 + 1013904223;
        bytes[i] = truth ? seed >> 31 : seed >> 24;
    }}
}}
static void set(volatile const void *at, unsigned long value, int size) {{
    memcpy((void *)at, &value, size);
}}
static void hex(const void *object, unsigned long size) {{
    const unsigned char *bytes = object;
    putchar(' ');
    for (unsigned long k = 0; k < size; k++) printf("%02x", bytes[k]);
}}
static void text(const void *object, unsigned long most) {{
    printf(" t");
    const char *bytes = object;
    hex(bytes, strnlen(bytes, most));
}}
static void number(int negative, unsigned long long value) {{
    printf(" i%s%llx", negative ? "-" : "", negative ? -value : value);
}}
#define NUMBER(e) number((e) < 0, (unsigned long long)(e))
#define BYTES(e) (printf(" b"), hex((const void *)&(e), sizeof(e)))
#define TEXT(e, most) text((const void *)(e), most)
#define ADDRESS(e) number(0, (unsigned long)(e))
static void stop(const char *where, const void *spied) {{
    printf("stop %s", where); hex(spied, sizeof(stopped)); puts("");
}}
static void __attribute__((noinline)) deep(void (*next)(void)) {{
    volatile char room[{_STACK}]; memset((void *)room, 0x5a, sizeof room);
    __asm__ volatile("" :: "r"(room) : "memory"); next();
    __asm__ volatile("" :: "r"(room) : "memory");
}}
char texts[64] = "lorem ipsum";
int called(int n, void *at) {{ return n; }}
"""


@dataclass
class Probe:
    """One function ``probe_TAG`` with its expressions at the entry and in its body."""

    root: Record
    parameters: list[tuple[str, CType]]
    entry: list[Expression] = field(default_factory=list)
    inner: list[Expression] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The probed function."""
        return f"probe_{self.root.tag}"

    @property
    def signature(self) -> str:
        """Its parameters, as C has them."""
        return ", ".join(declare(made, name) for name, made in self.parameters)


class _Homes:
    """Blocks of three objects for everything that something points at."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._known: dict[str, str] = {}
        self.blocks: list[str] = []
        self.filled: list[str] = []
        self.pointers: list[str] = []

    def of(self, made: CType) -> str:
        """A pointer to the second of three objects of the type, as C has it."""
        made = made if isinstance(made, Record) else resolved(made)
        name = declare(made, "")
        if name in self._known:
            return self._known[name]
        block = f"home_{self._family.number}_{len(self._known)}"
        pointer = declare(Pointer(made), "")
        at = f"(({pointer})all.{block} + 1)"
        self._known[name] = at
        flexible = made.flexible if isinstance(made, Record) else None
        room = f"3 * sizeof({name})"
        if flexible:
            room += f" + 4 * sizeof((({pointer})0)->{flexible.name}[0])"
        self.blocks.append(f"char {block}[{room}] __attribute__((aligned(64)));")
        truth = int(isinstance(made, Number) and made.kind == "bool")
        self.filled.append(f" fill(all.{block}, sizeof all.{block}, {truth});")
        for index in (1,) if flexible else (0, 1, 2):
            self.mend(made, f"(({pointer})all.{block})[{index}]")
        return at

    def mend(self, made: CType, path: str) -> None:
        """Give legal values to what may not hold any bytes."""
        for rest, leaf in careful(made):
            if isinstance(leaf, Pointer):
                value, into = f"(unsigned long){self.target(leaf.target)}", self.pointers
            else:
                value, into = "seed >> 31", self.filled
            into.append(f" set(&{path}{rest}, {value}, sizeof {path}{rest});")

    def target(self, made: CType) -> str:
        """Where a pointer to the type leads."""
        match resolved(made):
            case Void():
                return self.of(self._family.roots[0])
            case Code():
                return "&called"
            case Number(name="char"):
                return "(texts + 2)"
            case other:
                return self.of(other)


def c_source(families: list[tuple[Family, list[Probe]]]) -> str:
    """The program."""
    lines, blocks, body, calls = [PROLOGUE], [], [], []
    for family, probes in families:
        homes = _Homes(family)
        lines.append(family.source())
        for probe in probes:
            passed = [homes.of(probe.root)]
            for name, made in probe.parameters[1:]:
                calls.append(f"#define VALUE_{probe.root.tag}_{name} (*{_home(homes, made)})")
                passed.append(f"VALUE_{probe.root.tag}_{name}")
            calls.append(f"static void call_{probe.root.tag}(void) {{")
            calls.append(f" show_{probe.root.tag}({', '.join(passed)}); }}")
            lines.append(_function(probe))
            body.append(f" deep(call_{probe.root.tag});")
        blocks += homes.blocks
        body[:0] = homes.filled + homes.pointers
    lines += ["struct { char before[4096];", *blocks, "char after[4096]; } all;", *calls]
    lines += ["int main(void) {", *body]
    for name in ("all", "texts"):
        lines.append(
            f' printf("region %lx", (long)&{name}); hex(&{name}, sizeof {name}); puts("");'
        )
    return "\n".join([*lines, " return 0;", "}", ""])


def _home(homes: _Homes, made: CType) -> str:
    inner = resolved(made)
    if isinstance(inner, Number) and inner.name == "char":
        return "(texts + 1)"
    return homes.of(made)


def _function(probe: Probe) -> str:
    tag, names = probe.root.tag, ", ".join(name for name, _ in probe.parameters)
    local = "".join(f" {declare(made, f'l_{name}')} = {name};" for name, made in probe.parameters)
    kept = [f'"m"({prefix}{name})' for name, _ in probe.parameters for prefix in ("", "l_")]
    spied = _spy("spy_inner").replace("%", "%%")
    lines = [
        f"__attribute__((noinline, noipa)) void {probe.name}({probe.signature}) {{{local}",
        f' __asm__ volatile(".globl mark_{tag}\\nmark_{tag}:\\n{spied}"',
        '  ::: "memory", "cc");',
        "".join(f' __asm__ volatile("" :: {each} : "memory");' for each in kept) + " }",
        f'__asm__(".text\\nenter_{tag}:\\n{_spy("spy_entry")} jmp {probe.name}\\n");',
        f"extern char mark_{tag}[]; extern void enter_{tag}({probe.signature});",
        f"__attribute__((noinline)) void show_{tag}({probe.signature}) {{{local}",
        f' printf("probe {tag} %lx %lx\\n", (long)&{probe.name}, (long)mark_{tag});',
    ]
    for name, _ in probe.parameters:
        lines.append(f' printf("size {tag} {name} %ld\\n", (long)sizeof {name});')
    for index, expression in enumerate((*probe.entry, *probe.inner)):
        items = " ".join(f"{item};" for item in expression.items)
        lines.append(f' printf("value {tag} {index}"); {items} puts("");')
    lines.append(f" enter_{tag}({names});")
    lines.append(f' stop("{tag} entry", spy_entry); stop("{tag} inner", spy_inner); }}')
    return "\n".join(lines)


@dataclass
class Stop:
    """Registers by the kernel's names, and the stack with the address it starts at."""

    registers: dict[str, int]
    stack: tuple[int, bytes]


@dataclass
class Told:
    """What one run printed."""

    regions: dict[int, bytes] = field(default_factory=dict)
    addresses: dict[str, tuple[int, int]] = field(default_factory=dict)  # entry and mark
    sizes: dict[tuple[str, str], int] = field(default_factory=dict)
    stops: dict[tuple[str, str], Stop] = field(default_factory=dict)
    values: dict[tuple[str, int], list[int | bytes]] = field(default_factory=dict)


def run(source: str, compiler: str, options: tuple[str, ...], folder: Path) -> tuple[Path, Told]:
    """Build and run a program; raises CalledProcessError where the compiler does not take it."""
    file, binary = folder / "layouts.c", folder / "layouts"
    file.write_text(source)
    command = [compiler, "-g", "-w", "-Wno-psabi", "-fno-strict-aliasing", *options]
    subprocess.run(
        [*command, "-o", str(binary), str(file)], check=True, capture_output=True, text=True
    )
    done = subprocess.run([str(binary)], check=True, capture_output=True, text=True, timeout=60)
    told = Told()
    for line in done.stdout.splitlines():
        word, *rest = line.split(" ")
        if word == "region":
            told.regions[int(rest[0], 16)] = bytes.fromhex(rest[1])
        elif word == "probe":
            told.addresses[rest[0]] = int(rest[1], 16), int(rest[2], 16)
        elif word == "size":
            told.sizes[rest[0], rest[1]] = int(rest[2])
        elif word == "stop":
            told.stops[rest[0], rest[1]] = _stop(bytes.fromhex(rest[2]))
        else:
            told.values[rest[0], int(rest[1])] = _items(rest[2:])
    return binary, told


def _stop(raw: bytes) -> Stop:
    words = [int.from_bytes(raw[at : at + 8], "little") for at in range(0, _SAVED, 8)]
    registers = dict(zip(REGISTERS, words, strict=True))
    return Stop(registers, (registers["sp"] - _BELOW, raw[_SAVED:]))


def _items(words: list[str]) -> list[int | bytes]:
    found: list[int | bytes] = []
    for word in words:
        if word[:1] == "i":
            found.append(int(word[1:], 16))
        elif word not in ("b", "t"):  # marks, an empty word is an empty text
            found.append(bytes.fromhex(word))
    return found
