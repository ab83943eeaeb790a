"""The C or C++ program of some families: it fills objects, prints every value, calls the probes."""

from __future__ import annotations

from pathlib import Path

from fetchc.conformance.c_drawing import (
    Code,
    CType,
    Family,
    Number,
    Pointer,
    Reference,
    Struct,
    Variable,
    Void,
    careful,
    declare,
    resolved,
)
from fetchc.conformance.c_expressions import Expression
from fetchc.conformance.child_processes import call, refused, unbuilt
from fetchc.record import Record

__all__ = [
    "BELOW",
    "NUMBER",
    "PROLOGUE",
    "REGISTERS",
    "SAVED",
    "STAGES",
    "VECTORS",
    "WORDS",
    "Build",
    "Probe",
    "ProgramOutput",
    "Stop",
    "build_c",
    "c_source",
    "ran",
    "run",
    "spy",
]

# ------------------------------------------------------------------------------
# What every drawn C and C++ program begins with: filling, printing, and the spy.
#
# The spy is assembly: it copies registers and stack as they are, and changes nothing but flags.

REGISTERS = [
    *("ax", "bx", "cx", "dx", "si", "di", "bp", "sp"),
    *(f"r{number}" for number in range(8, 16)),
]
VECTORS = 8
BELOW, STACK = 256, 1 << 15  # bytes of the stack that are copied, from below its pointer on
SAVED = 8 * len(REGISTERS) + 16 * VECTORS


def spy(into: str) -> str:
    """Instructions that copy into the object ``into``, as one C string's content."""
    names = [name if name[0] == "r" else f"r{name}" for name in REGISTERS]
    lines = [f"mov %{name}, {into}+{8 * at}(%rip)" for at, name in enumerate(names)]
    behind = 8 * len(REGISTERS)
    lines += [f"movups %xmm{n}, {into}+{behind + 16 * n}(%rip)" for n in range(VECTORS)]
    lines += [f"lea -{BELOW}(%rsp), %rsi", f"lea {into}+{SAVED}(%rip), %rdi"]
    lines += [f"mov ${(BELOW + STACK) // 8}, %ecx", "cld", "rep movsq"]
    for name in ("rsi", "rdi", "rcx"):
        lines.append(f"mov {into}+{8 * names.index(name)}(%rip), %{name}")
    return "".join(f" {line}\\n" for line in lines)


WORDS = """
#ifdef __cplusplus
#define PLAIN extern "C"
#define _Bool bool
#define _Complex __complex__
template <class T, bool = __is_enum(T)> struct whole { typedef T type; };
template <class T> struct whole<T, true> { typedef __underlying_type(T) type; };
#else
#define PLAIN extern
#endif
"""
"""What C and C++ call otherwise."""

NUMBER = """
#ifdef __cplusplus
template <class T> static void tell(T e) {
    typename whole<T>::type n = (typename whole<T>::type)e;
    number(n < 0, (unsigned long long)n);
}
#define NUMBER(e) tell(e)
#else
#define NUMBER(e) number((e) < 0, (unsigned long long)(e))
#endif
"""
"""``NUMBER(e)`` gives any number to the function ``number``."""

PROLOGUE = f"""#include <stdio.h>
#include <string.h>
{WORDS}
typedef unsigned char stopped[{SAVED + BELOW + STACK}] __attribute__((aligned(64)));
PLAIN stopped spy_entry, spy_inner, spy_leave;
stopped spy_entry, spy_inner, spy_leave;
#ifndef SEED
#define SEED 12345
#endif
static unsigned seed = SEED;
static void fill(volatile const void *object, long size, int truth) {{
    unsigned char *bytes = (unsigned char *)object;
    for (long i = 0; i < size; i++) {{
        seed = seed * 1664525 + 1013904223;
        bytes[i] = truth ? seed >> 31 : seed >> 24;
    }}
}}
static void set(volatile const void *at, unsigned long value, int size) {{
    memcpy((void *)at, &value, size);
}}
static void hex(volatile const void *object, unsigned long size) {{
    const unsigned char *bytes = (const unsigned char *)object;
    putchar(' ');
    for (unsigned long k = 0; k < size; k++) printf("%02x", bytes[k]);
}}
static void text(const void *object, unsigned long most) {{
    printf(" t");
    hex(object, strnlen((const char *)object, most));
}}
static void number(int negative, unsigned long long value) {{
    printf(" i%s%llx", negative ? "-" : "", negative ? -value : value);
}}
{NUMBER}
#define BYTES(e) (printf(" b"), hex((const void *)&(e), sizeof(e)))
#define TEXT(e, most) text((const void *)(e), most)
#define ADDRESS(e) number(0, (unsigned long)(e))
/* All data from the first object that an expression can reach to the end of the last page. */
PLAIN char _end[];
static unsigned long first = ~0ul;
static void reach(volatile const void *object) {{
    if ((unsigned long)object < first) first = (unsigned long)object;
}}
static void region(void) {{
    printf("region %lx", first);
    hex((void *)first, (((unsigned long)_end + 4095) & ~4095ul) - first); puts("");
}}
static void stop(const char *where, const void *spied) {{
    printf("stop %s", where); hex(spied, sizeof(stopped)); puts("");
}}
static void __attribute__((noinline)) deep(void (*next)(void)) {{
    volatile char room[{STACK}]; memset((void *)room, 0x5a, sizeof room);
    __asm__ volatile("" :: "r"(room) : "memory"); next();
    __asm__ volatile("" :: "r"(room) : "memory");
}}
char texts[64] = "lorem ipsum";
int called(int n, void *at) {{ return n; }}
"""


STAGES = ("entry", "inner", "leave")  # where a probe is seen


class Probe:
    """One function with its expressions at the entry, in its body, and where it returns.

    ``probe_TAG`` takes the parameters and gives the result, ``give_TAG`` gives it again. Mutable:
    a failure gets smaller as parts are taken out.
    """

    def __init__(self, tag: str, parameters: list[Variable], result: CType | None) -> None:
        self.tag = tag
        self.parameters = parameters
        self.result = result
        self.asked: dict[str, list[Expression]] = {stage: [] for stage in STAGES}

    @property
    def expressions(self) -> list[Expression]:
        """All of them, in the order in which the program prints their values."""
        return [each for stage in STAGES for each in self.asked[stage]]

    @property
    def signature(self) -> str:
        """Its parameters, as C has them."""
        return ", ".join(declare(it.type, it.name) for it in self.parameters) or "void"


class _Homes:
    """Blocks of three objects for everything that something points at."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._by_name: dict[str, str] = {}
        self.blocks: list[str] = []
        self.filled: list[str] = []
        self.pointers: list[str] = []

    def of(self, c_type: CType) -> str:
        """A pointer to the second of three objects of the type, as C has it."""
        c_type = c_type if isinstance(c_type, Struct) else resolved(c_type)
        name = declare(c_type, "")
        if name in self._by_name:
            return self._by_name[name]
        block = f"home_{self._family.number}_{len(self._by_name)}"
        pointer = declare(Pointer(c_type), "")
        at = f"(({pointer})all.{block} + 1)"
        self._by_name[name] = at
        flexible = c_type.flexible if isinstance(c_type, Struct) else None
        room = f"3 * sizeof({name})"
        if flexible:
            room += f" + 4 * sizeof((({pointer})0)->{flexible.name}[0])"
        self.blocks.append(f"char {block}[{room}] __attribute__((aligned(64)));")
        truth = int(isinstance(c_type, Number) and c_type.kind == "bool")
        self.filled.append(f" fill(all.{block}, sizeof all.{block}, {truth});")
        for index in (1,) if flexible else (0, 1, 2):
            self.mend(c_type, f"(({pointer})all.{block})[{index}]")
        return at

    def mend(self, c_type: CType, path: str) -> None:
        """Give legal values to what may not hold any bytes."""
        for rest, leaf in careful(c_type):
            if isinstance(leaf, Pointer):
                value, into = f"(unsigned long){self.target(leaf.target)}", self.pointers
            else:
                value, into = "seed >> 31", self.filled
            into.append(f" set(&{path}{rest}, {value}, sizeof {path}{rest});")

    def target(self, c_type: CType) -> str:
        """Where a pointer to the type leads."""
        match resolved(c_type):
            case Void() if not self._family.roots:
                return "texts"
            case Void():
                return self.of(self._family.roots[0])
            case Code():
                return "&called"
            case Number(name="char"):
                return "(texts + 2)"
            case other:
                return self.of(other)

    def value(self, c_type: CType) -> str:
        """An object of the type."""
        inner = resolved(c_type)
        if isinstance(inner, Reference):
            return self.value(inner.target)
        if isinstance(inner, Number) and inner.name == "char":
            return "(*(texts + 1))"
        return f"(*{self.of(c_type)})"


def c_source(families: list[tuple[Family, list[Probe]]]) -> str:
    """The program."""
    lines, blocks, begun, done, calls = [PROLOGUE], [], [], [], []
    reached = ["all", "texts"]
    for family, probes in families:
        homes = _Homes(family)
        lines.append(family.source())
        for each in family.globals:
            homes.filled.append(f" fill(&{each.name}, sizeof {each.name}, 0);")
            homes.mend(each.type, each.name)
            reached.append(each.name)
        for probe in probes:
            tag = probe.tag
            passed = []
            for each in probe.parameters:
                inner = resolved(each.type)
                at = homes.value(each.type)
                if each.name == "p" and isinstance(inner, Pointer):
                    at = homes.of(inner.target)  # the structure that the probe is about
                calls.append(f"#define VALUE_{tag}_{each.name} {at}")
                passed.append(f"VALUE_{tag}_{each.name}")
            if probe.result is not None:
                homes.filled.append(f" from_{tag} = &{homes.value(probe.result)};")
            calls.append(f"static void call_{tag}(void) {{ show_{tag}({', '.join(passed)}); }}")
            lines += _functions(probe)
            done.append(f" deep(call_{tag});")
        blocks += homes.blocks
        begun += homes.filled + homes.pointers
    lines += ["struct { char before[4096];", *blocks, "char after[4096]; } all;", *calls]
    lines += ["int main(void) {", *begun, *done]
    lines += [f" reach(&{name});" for name in reached]
    lines += [" region();"]
    return "\n".join([*lines, " return 0;", "}", ""])


def _functions(probe: Probe) -> list[str]:
    tag, names, result = probe.tag, [it.name for it in probe.parameters], probe.result
    locals_ = [f" {declare(it.type, f'l_{it.name}')} = {it.name};" for it in probe.parameters]
    operands = [f'"m"({prefix}{name})' for name in names for prefix in ("", "l_")]
    spied = spy("spy_inner").replace("%", "%%")
    lines = [] if result is None else [f"{declare(Pointer(result), f'from_{tag}')};"]
    # An instruction that names each of them: what the code does not touch need not be passed.
    used = "lea %0, %%rax"
    lines += [
        f"PLAIN __attribute__((noinline, noipa)) {_function(probe, 'probe')} {{",
        *locals_,
        f' __asm__ volatile(".globl mark_{tag}\\nmark_{tag}:\\n{spied}" ::: "memory", "cc");',
        *[f' __asm__ volatile("{used}" :: {each} : "rax", "memory");' for each in operands],
        "}" if result is None else f" return *from_{tag}; }}",
        f'__asm__(".text\\nenter_{tag}:\\n{spy("spy_entry")} jmp probe_{tag}\\n");',
        f"PLAIN char mark_{tag}[]; PLAIN {_function(probe, 'enter')};",
    ]
    if result is not None:
        lines += _giving(tag, result)
    lines += [
        f"__attribute__((noinline)) void show_{tag}({probe.signature}) {{",
        *locals_,
        f' printf("probe {tag} %lx %lx\\n", (long)&probe_{tag}, (long)mark_{tag});',
    ]
    for name in names:
        lines.append(f' printf("size {tag} {name} %ld\\n", (long)sizeof {name});')
    for index, expression in enumerate(probe.expressions):
        items = " ".join(f"{item};" for item in expression.items)
        lines.append(f' printf("value {tag} {index}"); {items} puts("");')
    called = f"enter_{tag}({', '.join(names)});"
    if result is not None:
        called = f"{declare(result, 'made')} = {called} {_used('made')}"
    lines.append(f" {called}")
    lines += [f' stop("{tag} {stage}", spy_{stage});' for stage in ("entry", "inner")]
    if result is not None:
        lines += [f" {declare(result, 'taken')} = leave_{tag}(); {_used('taken')}"]
        lines += [f' printf("size {tag} $retval %ld\\n", (long)sizeof taken);']
        lines += [f' stop("{tag} leave", spy_leave);']
    return [*lines, "}"]


def _function(probe: Probe, role: str) -> str:
    declared = f"{role}_{probe.tag}({probe.signature})"
    return f"void {declared}" if probe.result is None else declare(probe.result, declared)


def _used(name: str) -> str:
    return f'__asm__ volatile("" :: "r"(&{name}) : "memory");'


def _giving(tag: str, result: CType) -> list[str]:
    # The address of an object that the function returns stays in the same register.
    return [
        f"PLAIN __attribute__((noinline, noipa)) {declare(result, f'give_{tag}(void)')}",
        f"{{ return *from_{tag}; }}",
        f'__asm__(".text\\nleave_{tag}:\\n sub $8, %rsp\\n call give_{tag}\\n'
        f'{spy("spy_leave")} add $8, %rsp\\n ret\\n");',
        f"PLAIN {declare(result, f'leave_{tag}(void)')};",
    ]


# ------------------------------------------------------------------------------
# Building and running a drawn C or C++ program, and what it prints.
#
# It prints ``region ADDRESS HEX`` of memory, and for each function a line ``probe`` with its
# address, ``size`` of what it takes and gives, ``stop`` with registers and stack, and ``value N
# ITEM...`` as the compiler evaluates it.

_BUILD_SECONDS, _RUN_SECONDS = 240, 60


class Build(Record):
    """A compiler and options of it; ``plus``: for C++."""

    compiler: str
    options: tuple[str, ...]
    plus: bool = False

    def __str__(self) -> str:
        return " ".join([self.compiler, *self.options])

    def command(self, file: Path | str, binary: Path | str) -> tuple[str, ...]:
        """What builds ``binary`` from the source ``file``."""
        common = ["-g", "-w", "-Wno-psabi", "-fno-strict-aliasing"]
        if self.plus:
            common += ["-std=gnu++17"]
        return (self.compiler, *common, *self.options, "-o", str(binary), str(file))


class Stop(Record):
    """Registers by the kernel's names, vector registers, the stack with its first address."""

    registers: dict[str, int]
    vectors: tuple[bytes, ...]
    stack: tuple[int, bytes]


class ProgramOutput:
    """What one run printed."""

    def __init__(self) -> None:
        self.regions: dict[int, bytes] = {}
        self.addresses: dict[str, tuple[int, int]] = {}  # entry and mark
        self.sizes: dict[tuple[str, str], int] = {}
        self.stops: dict[tuple[str, str], Stop] = {}
        self.values: dict[tuple[str, int], list[int | bytes]] = {}


def build_c(source: str, build: Build, folder: Path) -> Path:
    """Build a program in ``folder``; raises ConformanceError (FC0802) where there comes none."""
    file, binary = folder / ("drawn.cc" if build.plus else "drawn.c"), folder / "drawn"
    file.write_text(source)
    binary.unlink(missing_ok=True)
    built = call(build.command(file, binary), folder, _BUILD_SECONDS)
    if built.status or not binary.exists():
        help = "compile a C program by hand with these options, or name another compiler"
        raise unbuilt(build, built, help)
    return binary


def run(source: str, build: Build, folder: Path) -> tuple[Path, ProgramOutput]:
    """Build and run a program in ``folder``.

    Raises ConformanceError as :func:`build_c`, or where it does not run to its end (FC0805).
    """
    binary = build_c(source, build, folder)
    return binary, ran(binary, build, folder)


def ran(binary: Path, build: Build, folder: Path) -> ProgramOutput:
    """What a run of the program prints; raises ConformanceError (FC0805) as :func:`run`."""
    done = call([str(binary)], folder, _RUN_SECONDS, built=str(build))
    if done.status:
        raise refused(
            "FC0805",
            f"a program built by `{build}` {done.ending}",
            "run a program of this compiler by hand: it may be built for another machine",
            *([f"it said: {done.complaint}"] if done.complaint else []),
        )
    return _read(done.output)


def _read(printed: str) -> ProgramOutput:
    output = ProgramOutput()
    for line in printed.splitlines():
        word, *rest = line.split(" ")
        if word == "region":
            output.regions[int(rest[0], 16)] = bytes.fromhex(rest[1])
        elif word == "probe":
            output.addresses[rest[0]] = int(rest[1], 16), int(rest[2], 16)
        elif word == "size":
            output.sizes[rest[0], rest[1]] = int(rest[2])
        elif word == "stop":
            output.stops[rest[0], rest[1]] = _stop(bytes.fromhex(rest[2]))
        else:
            output.values[rest[0], int(rest[1])] = _items(rest[2:])
    return output


def _stop(raw: bytes) -> Stop:
    behind = 8 * len(REGISTERS)
    words = [int.from_bytes(raw[at : at + 8], "little") for at in range(0, behind, 8)]
    registers = dict(zip(REGISTERS, words, strict=True))
    vectors = tuple(raw[at : at + 16] for at in range(behind, SAVED, 16))
    return Stop(registers, vectors, (registers["sp"] - BELOW, raw[SAVED:]))


def _items(words: list[str]) -> list[int | bytes]:
    found: list[int | bytes] = []
    for word in words:
        if word[:1] == "i":
            found.append(int(word[1:], 16))
        elif word not in ("b", "t"):  # marks, an empty word is an empty text
            found.append(bytes.fromhex(word))
    return found
