"""Random C layouts on other machines: the families of ``fetchc conformance`` without a library.

The program writes what the compiler makes of each expression into ``out``; its functions are
stopped at their first instruction and where they returned, and the expressions fetched there.
With ``-DPRINTED`` it prints what it has written, and ends: a guest of the kernel lab runs it so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import fetchc
from fetchc.conformance.c_drawing import Family, Pointer, declare, resolved
from fetchc.conformance.c_expressions import Expression
from fetchc.conformance.c_programs import NUMBER, WORDS, Probe, _Homes
from fetchc.conformance.results import LIMITS, Change, as_it_is, fetched
from fetchc.driver.compile import Part
from tests.support.cross import Target
from tests.support.cross_check import KERNEL, Asked, Tally, symbols
from tests.support.cross_signatures import PROLOGUE as BARE
from tests.support.qemu_user import Emulator

__all__ = ["STAGES", "c_source", "check_layouts", "printed", "wanted_of"]

STAGES = ("entry", "leave")
PROLOGUE = WORDS + (
    BARE.replace("static void fill(void *object, unsigned size) {", "static void fill(")
    .replace("    volatile unsigned char *bytes = object;\n", "", 1)
    .split("static void fill(")[0]
    + BARE[BARE.index("__attribute__((used)) void *memcpy") :].replace(
        "__attribute__((used", "PLAIN __attribute__((used"
    )
    + """
static void fill(volatile const void *object, unsigned long size, int truth) {
    unsigned char *bytes = (unsigned char *)object;
    for (unsigned long i = 0; i < size; i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = truth ? seed >> 31 : seed >> 24;
    }
}
static void set(volatile const void *at, unsigned long value, int size) {
    if (size == 1) *(volatile unsigned char *)at = value;
    else memcpy((void *)at, &value, size);
}
unsigned char out[1 << 20];
static unsigned long end;
static void put(char kind, int negative, const void *object, unsigned size) {
    out[end++] = kind; out[end++] = negative; out[end++] = size >> 8; out[end++] = size;
    memcpy(out + end, object, size);
    end += size;
}
static void number(int negative, unsigned long long value) { put('i', negative, &value, 8); }
static void text(const char *at, unsigned long most) {
    unsigned size = 0;
    while (size < most && at[size]) size++;
    put('t', 0, at, size);
}
@NUMBER@#define BYTES(e) put('b', 0, (const void *)&(e), sizeof(e))
#define TEXT(e, most) text((const char *)(e), most)
#define ADDRESS(e) number(0, (unsigned long)(e))
char texts[64] = "lorem ipsum";
int called(int n, void *at) { return n; }
#ifndef PRINTED
#define SHOWN
#define END for (;;);
#else
static void system_call(long number, long first, const void *second, long third) {
#ifdef __aarch64__
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = first, x2 __asm__("x2") = third;
    register const void *x1 __asm__("x1") = second;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
#else
    __asm__ volatile("syscall" : "+a"(number) : "D"(first), "S"(second), "d"(third)
                     : "rcx", "r11", "memory");
#endif
}
#ifdef __aarch64__
enum { WRITE = 64, EXIT = 93 };
#else
enum { WRITE = 1, EXIT = 60 };
#endif
#define SHOWN system_call(WRITE, 1, out, end);
#define END system_call(EXIT, 0, 0, 0);
#endif
""".replace("@NUMBER@", NUMBER)
)


def c_source(families: list[tuple[Family, list[Probe]]]) -> str:
    """The program."""
    lines, blocks, begun, calls = [PROLOGUE], [], [], []
    for family, probes in families:
        homes = _Homes(family)
        lines.append(family.source())
        for each in family.globals:
            homes.filled.append(f" fill(&{each.name}, sizeof {each.name}, 0);")
            homes.mend(each.type, each.name)
        for probe in probes:
            passed = []
            for each in probe.parameters:
                inner = resolved(each.type)
                at = homes.value(each.type)
                if each.name == "p" and isinstance(inner, Pointer):
                    at = homes.of(inner.target)
                passed.append(at)
            lines += _functions(probe)
            if probe.result is not None:
                homes.filled.append(f" from_{probe.tag} = &{homes.value(probe.result)};")
            calls.append(f" show_{probe.tag}({', '.join(passed)}); SHOWN")
        blocks += homes.blocks
        begun += homes.filled + homes.pointers
    # Objects are named before the functions that fill them.
    lines += ["struct { char before[64];", *blocks, "char after[4096]; } all;"]
    begin = ["static __attribute__((noinline)) void begin(void) {", *begun, "}"]
    start = ["PLAIN ENTRY void _start(void) { begin();", *calls, " END }", ""]
    return "\n".join([*lines, *begin, *start])


def _functions(probe: Probe) -> list[str]:
    tag, result = probe.tag, probe.result
    names = [it.name for it in probe.parameters]
    lines = [] if result is None else [f"{declare(Pointer(result), f'from_{tag}')};"]
    declared = f"probe_{tag}({probe.signature})"
    kind = f"void {declared}" if result is None else declare(result, declared)
    used = "".join(f' __asm__ volatile("" :: "m"({name}) : "memory");' for name in names)
    back = "" if result is None else f" return *from_{tag};"
    lines.append(f"__attribute__((noinline, noipa)) {kind} {{{used}{back} }}")
    printed = [item for stage in STAGES for it in probe.asked[stage] for item in it.items]
    called = f"probe_{tag}({', '.join(names)});"
    if result is not None:
        keep = '__asm__ volatile("" :: "r"(&made) : "memory");'
        called = f"{declare(result, 'made')} = {called} {keep}"
    body = [f" {item};" for item in printed]
    return [
        *lines,
        f"static __attribute__((noinline)) void show_{tag}({probe.signature}) {{",
        " end = 0;",
        *body,
        f" {called}",
        "}",
    ]


def check_layouts(
    target: Target,
    families: list[tuple[Family, list[Probe]]],
    binary: Path,
    change: Change = as_it_is,
) -> Tally:
    """Stop at every function and where it returned, and compare every expression."""
    program = fetchc.open(str(binary))
    known = symbols(binary)
    kernel = KERNEL if target.wide else f"{KERNEL}/32"
    tally = Tally()
    with Emulator(target.name, binary) as emulator:
        for _, probes in families:
            for probe in probes:
                tally.functions += 1
                name = f"probe_{probe.tag}"
                point = program.probe(name, kernel=kernel)
                stop = emulator.until(point.address)
                values, _ = printed(stop.read, known["out"], stop.machine.order, probe)
                left = iter(values)
                asked = Asked(target, point, stop, False, change)
                _compare(tally, target, point, asked, probe.asked["entry"], left, change)
                if probe.asked["leave"]:
                    point = program.probe(name, returns=True, kernel=kernel)
                    stop = emulator.until(stop.return_address())
                    asked = Asked(target, point, stop, True, change)
                    _compare(tally, target, point, asked, probe.asked["leave"], left, change)
    return tally


def printed(
    read: Callable[[int, int], bytes], at: int, order: Literal["little", "big"], probe: Probe
) -> tuple[list[int | bytes], int]:
    """The values of a probe, as the program has written them from ``at`` on; and their end."""
    found: list[int | bytes] = []
    for stage in STAGES:
        for _ in [item for it in probe.asked[stage] for item in it.items]:
            head = read(at, 4)
            size = head[2] << 8 | head[3]
            raw = read(at + 4, size)
            at += 4 + size
            if head[:1] == b"i":
                value = int.from_bytes(raw, order)
                found.append(value - (1 << 64) if head[1] else value)
            else:
                found.append(raw[::-1] if head[:1] == b"b" and order == "big" else raw)
    return found, at


def wanted_of(
    point: fetchc.Probe, expression: Expression, expected: list[int | bytes]
) -> list[tuple[Part, list[int | bytes]]]:
    """The fetches of an expression, each with its values. Raises CompileError."""
    argument = point.compile(expression.text)
    if not expression.members:
        whole = argument.whole.parts[0]
        assert whole.body == argument.fetcharg
        return [(whole.replaced(decode=argument.decode), expected)]
    parts = {part.suffix: part for part in argument.whole.parts}
    return [
        (parts[name], [value])
        for name, value in zip(expression.members, expected, strict=True)
        if name in parts
    ]


def _compare(
    tally: Tally,
    target: Target,
    point: fetchc.Probe,
    asked: Asked,
    expressions: list[Expression],
    values: Iterator[int | bytes],
    change: Change,
) -> None:
    for expression in expressions:
        tally.values += 1
        expected = [next(values) for _ in expression.items]
        where = f"{expression.text} in {point.function}"
        try:
            wanted = wanted_of(point, expression, expected)
        except fetchc.CompileError as refusal:
            first = refusal.diagnostics[0]
            tally.refused[first.code] += 1
            too_long = not target.wide and any(
                isinstance(one, int) and not -(1 << 31) <= one < 1 << 32 for one in expected
            )
            allowed = _allowed(target, expression) | ({"FC0312"} if too_long else set())
            if first.code not in allowed:
                tally.wrong.append(f"{where}: {first.code} {first.message} {first.notes}")
            continue
        tally.compared += 1
        for part, right in wanted:
            text, read = change(part.body, part.decode)
            tree = part.fetch if text == part.body else None
            got = fetched(text, read, asked.machine, tree)
            if got != right:
                tally.wrong.append(f"{where}: {text} {read} gives {got}, expected {right}")


def _allowed(target: Target, expression: Expression) -> frozenset[str]:
    # clang splits variables or leaves them out, and misdescribes some packed bit fields.
    allowed = expression.refusals | LIMITS | {"FC0904"}
    if expression.members:
        allowed |= {"FC0312"}  # its numbers are in structures within it
    if expression.root.name.startswith("g"):
        allowed |= {"FC0401", "FC0404", "FC0405"}
    if expression.root.in_registers:
        # A packed number can be in two registers, for that is where its bytes are.
        allowed |= expression.register_refusals | {"FC0401", "FC0404"}
        if target.name == "i386":
            allowed |= {"FC0407"}  # gcc describes the aligned copy that it makes of some
    return allowed
