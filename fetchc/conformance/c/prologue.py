"""What every drawn C and C++ program begins with: filling, printing, and the spy.

The spy is assembly: it copies registers and stack as they are, and changes nothing but flags.
"""

from __future__ import annotations

__all__ = ["BELOW", "PROLOGUE", "REGISTERS", "SAVED", "VECTORS", "spy"]

REGISTERS = [
    *("ax", "bx", "cx", "dx", "si", "di", "bp", "sp"),
    *(f"r{number}" for number in range(8, 16)),
]
VECTORS = 8
BELOW, STACK = 256, 1 << 14  # bytes of the stack that are copied, from below its pointer on
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


PROLOGUE = f"""#include <stdio.h>
#include <string.h>
#ifdef __cplusplus
#define PLAIN extern "C"
#define _Bool bool
#define _Complex __complex__
template <class T, bool = __is_enum(T)> struct whole {{ typedef T type; }};
template <class T> struct whole<T, true> {{ typedef __underlying_type(T) type; }};
#else
#define PLAIN extern
#endif
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
#ifdef __cplusplus
template <class T> static void tell(T e) {{
    typename whole<T>::type n = (typename whole<T>::type)e;
    number(n < 0, (unsigned long long)n);
}}
#define NUMBER(e) tell(e)
#else
#define NUMBER(e) number((e) < 0, (unsigned long long)(e))
#endif
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
