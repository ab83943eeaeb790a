"""Drawing calculations in C, C++ and Go over the edges of all types of numbers.

The program prints a line for each call of its probed function: of every expression a letter and the
value (``i`` of an integer, ``b`` of a truth value, ``f`` and ``d`` of floating-point numbers), or
``-`` where there is none: a division by zero ends the program, or panics.
"""

from __future__ import annotations

import re
from random import Random

from fetchc.record import Record

__all__ = ["Operators", "c_operators", "go_operators"]


class Operators(Record):
    """A program: its source, the probed function, the expressions in the order of a line.

    ``left_open`` are those whose type the debug information does not say: they may be refused.
    """

    source: str
    function: str
    texts: tuple[str, ...]
    left_open: frozenset[str] = frozenset()


# ------------------------------------------------------------------------------
# C and C++

_C_TYPES = {
    "a": "signed char", "b": "unsigned char", "c": "short", "d": "unsigned short", "i": "int",
    "u": "unsigned", "l": "long", "v": "unsigned long", "f": "float", "g": "double", "ok": "bool",
    "x : 3": "unsigned", "y : 5": "int", "ch": "char", "m : 32": "unsigned long", "q": "long long",
    "r : 32": "int",
}  # fmt: skip
_OF_NUMBERS = ("+", "-", "*", "/", "==", "!=", "<", "<=", ">", ">=", "&&", "||")
_C_INTEGERS = ["a", "b", "c", "d", "i", "u", "l", "v", "ok", "x", "y", "ch", "m", "r", "q"]
_SIGNED = ("int", "signed char", "long")
_C_CONSTANTS = (
    "1", "2", "7", "255", "40000", "3000000000", "2147483648", "-2147483648", "-1", "3u", "5L",
    "1ull", "0x80000000", "037777777777", "0x7fffffffffffffff", "18446744073709551615ul", "0b11LL",
    "'A'",
)  # fmt: skip
# Enumerations that C++ promotes to int, unsigned, int, int, long; bit fields of more than 32 bits.
_OPEN = {"kind": "KIND", "fixed": "FIXED", "small": "SMALL", "below": "BELOW", "large": "LARGE",
         "wide": "7", "deep": "-7"}  # fmt: skip
_OPEN_FORMS = [
    "{0} - {1}", "{0} + {1}", "{1} * {0}", "-{0} < {1}", "~{0} / {1}", "{0} < {1}", "{0} == {1}",
    "({0} << 30) >> 3", "{1} >> ({0} & 3)", "({0} & {1}) - 5", "({0} + 1) << 20 > {1}",
    "e->ok ? {0} : ({1} + 0)",
]  # fmt: skip
_POINTERS = (
    "!e->p", "e->p && *e->p", "e->p0 && *e->p0", "e->p0 == 0", "e->p0 == e->p", "e->p - e->p0 < 0",
    "(e->p + 1) - e->p", "(e->p + e->a) - e->p", "e->p < e->p + e->c", "*(e->p - 1)",
    "(int)(long)e->p == (long)e->p", "e->p ? 1 : 2u", "e->p == &e->codes[1]",
    "e->codes + 1 == &e->codes[1]", "&e->codes[3] - e->codes",
)  # fmt: skip

_C_SOURCE = r"""
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#ifdef __cplusplus
enum fixed : unsigned { FIXED = 3 };
enum small : unsigned char { SMALL = 3 };
#else
enum fixed { FIXED = 3, FULL = 0x80000000 };
enum small { SMALL = 3 };
#endif
enum kind { KIND = 3 };
enum below { LEAST = -1, BELOW = 3 };
enum large { LARGE = 3, HUGE = 0x100000000 };
struct values {
    @MEMBERS@ int codes[4]; int *p, *p0; unsigned long wide : 40; long deep : 36;
    enum kind kind; enum fixed fixed; enum small small; enum below below; enum large large;
};
static int some[4];
static sigjmp_buf back;
static void fault(int number) { siglongjmp(back, number); }
static void i(long n) { printf("i%ld ", n); }
static void u(unsigned long n) { printf("i%lu ", n); }
static void f(float n) { printf("f%.9g ", n); }
static void g(double n) { printf("d%.17g ", n); }
#ifdef __cplusplus
static void show(int n) { i(n); }
static void show(unsigned n) { u(n); }
static void show(long n) { i(n); }
static void show(unsigned long n) { u(n); }
static void show(long long n) { i(n); }
static void show(unsigned long long n) { u(n); }
static void show(float n) { f(n); }
static void show(double n) { g(n); }
static void show(bool n) { printf("b%d ", n); }
static void show(signed char n) { i(n); }
static void show(unsigned char n) { u(n); }
static void show(short n) { i(n); }
static void show(unsigned short n) { u(n); }
static void show(char n) { i(n); }
#else
static void b(bool n) { printf("b%d ", n); }
#define show(n) _Generic((n), bool: b, float: f, double: g, unsigned: u, unsigned long: u, \
                         unsigned long long: u, default: i)(n)
#endif
#define K(n) ({ volatile __typeof__(n) kept = n; kept; })
#define EACH(n) do { if (sigsetjmp(back, 1)) printf("- "); else show(n); } while (0)
#ifdef __cplusplus
extern "C"
#endif
__attribute__((noipa)) void take(volatile struct values *e) { __asm__ volatile("" : : "g"(e)); }
static void evaluate(volatile struct values *e) { @EVALUATED@ puts(""); }
int main(void)
{
    static volatile struct values given[] = { @GIVEN@ };
    signal(SIGFPE, fault);
    for (unsigned n = 0; n < sizeof given / sizeof *given; n++) {
        take(&given[n]);
        evaluate(&given[n]);
    }
}
"""


def _c_value(chosen: Random, name: str, type: str) -> str:
    if type in ("float", "double"):
        return chosen.choice(("0.0", "-0.0", "1.5", "0.1", "-7.25e10", "3e-20", "1e30"))
    if type == "bool":
        return chosen.choice("01")
    bits = {"signed char": 8, "unsigned char": 8, "short": 16, "unsigned short": 16, "int": 32,
            "unsigned": 32, "char": 8}.get(type, 64)  # fmt: skip
    bits = int(name.partition(":")[2] or bits)
    low = 0 if type.startswith("unsigned") else -(1 << bits - 1)
    high = low + (1 << bits) - 1
    value = chosen.choice((low, high, 0, 1, high // 3, max(low, -1), chosen.randint(low, high)))
    if value == -(1 << 63):
        return "-9223372036854775807 - 1"
    return f"{value}{'u' if low == 0 else ''}{'l' if bits > 32 else ''}"


def _c_expression(chosen: Random, depth: int, real: bool) -> tuple[str, str]:
    """An expression, and what C is to evaluate: constants and quotients are in variables there.

    Of constants a compiler computes what the machine would refuse: `(3 < c) % 0` is 0.
    """
    if depth == 0:
        if real and chosen.random() < 0.4:
            return (text := chosen.choice(("e->f", "e->g", "0.1f", "0.1", "16777217.0f"))), text
        constant = chosen.choice(_C_CONSTANTS)
        if chosen.random() < 0.25:
            return constant, f"K({constant})"
        text = chosen.choice([f"e->{one}" for one in _C_INTEGERS] + ["e->codes[e->x & 3]"])
        return text, text
    inner = [_c_expression(chosen, depth - 1, real) for _ in range(3)]
    whole = [_c_expression(chosen, depth - 1, False) for _ in range(2)]
    forms = [(inner, f"({{0}}) {operator} ({{1}})") for operator in _OF_NUMBERS]
    forms += [(whole, f"({{0}}) {operator} ({{1}})") for operator in ("%", "&", "|", "^", "/", "-")]
    forms += [(whole, "({0}) << (({1}) & 7)"), (whole, "({0}) >> (({1}) & 15)")]
    forms += [(inner, f"({kind})({{0}})") for kind in ("float", "double") if real]
    forms.append((inner, "(bool)({0})"))
    small = "({0}) > -128.0 && ({0}) < 128.0"  # a larger number is no value of the type
    forms += [(inner, f"({small}) ? ({kind})({{0}}) : 0") for kind in _SIGNED if real]
    forms += [(inner, "-({0})"), (inner, "!({0})"), (whole, "~({0})")]
    # g++ has a bit field there with its declared type (C++20 [conv.prom] promotes it).
    forms.append((inner, "({0}) ? (({1}) + 0) : (({2}) + 0)"))
    kinds = ("int", "unsigned", "unsigned char", "signed char", "long", "short", "unsigned short")
    forms += [(whole, f"({kind})({{0}})") for kind in kinds]
    forms.append((whole, f"({chosen.choice(kinds)})(({chosen.choice(kinds)})({{0}}))"))
    forms.append((whole, "(int)((bool)({0}))"))
    parts, form = chosen.choice(forms)
    if re.search("[/%]", form) and "e->" not in parts[1][0]:
        parts = [parts[0], ("e->i", "e->i")]  # a constant divisor of 0 is refused
    text, evaluated = (form.format(*[one[which] for one in parts]) for which in (0, 1))
    if re.search("[/%]", form):  # gcc does not divide 1 by a number, a number by itself or by 1
        evaluated = f"K({form.format(*[f'K(({one[1]}) - 0)' for one in parts])})"
    return text, evaluated


def c_operators(
    chosen: Random, expressions: int, calls: int, real: float = 0.4, open: bool = True
) -> Operators:
    """A program of ``expressions``, evaluated at each of ``calls``.

    ``real`` is the part of them that may have floating-point numbers. ``open``: with some whose
    types the debug information leaves open.
    """
    drawn = dict(
        _c_expression(chosen, chosen.choice((1, 2, 2, 3)), chosen.random() < real)
        for _ in range(expressions)
    )
    # Numbers that get wider, with the sign that the operand has, and then another one.
    wider = [f"~(({kind})(e->{name}))" for kind in ("long", "short") for name in "abd"]
    wider += [f"(unsigned)(({kind})(e->a))" for kind in ("int", "short", "long", "bool")]
    wider += ["(int)(e->m)", "(long)((int)(e->m))", "(int)((signed char)(e->m))"]
    # Constants with a type.
    typed = ["(e->i) < ((unsigned)(3) + 1)", "(e->i) + (sizeof(int) * 2)", "e->f == 0.1f"]
    constants = (*_C_CONSTANTS, "3UL", "-3u", "-(unsigned)3", "~0u")
    compared = [f"(e->{name}) {one} ({it})" for name in "iu" for one in "<+" for it in constants]
    others = [*compared, *_POINTERS]
    typed += chosen.sample(others, min(len(others), expressions // 2))
    drawn |= {text: text for text in (*wider, *typed)}
    left_open = [
        form.format(f"e->{name}", other)
        for name, constant in _OPEN.items()
        for other in (constant, "e->i", "e->u", "e->l", "e->v", f"e->{name}", "1")
        for form in chosen.sample(_OPEN_FORMS, 3)
    ]
    drawn |= {text: text for text in left_open if open}
    texts = [text for text in drawn if "e->" in text]
    rows = [", ".join(_c_value(chosen, *one) for one in _C_TYPES.items()) for _ in range(calls)]
    rest = "{ 5, -6, 70, 800 }, &some[2], 0, (1ul << 40) - 1, -5, KIND, FIXED, SMALL, BELOW, LARGE"
    given = ", ".join(f"{{ {row}, {rest} }}" for row in rows)
    source = (
        _C_SOURCE.replace("@MEMBERS@", " ".join(f"{t} {n};" for n, t in _C_TYPES.items()))
        .replace("@EVALUATED@", " ".join(f"EACH({drawn[text]});" for text in texts))
        .replace("@GIVEN@", given)
    )
    return Operators(source, "take", tuple(texts), frozenset(left_open))


# ------------------------------------------------------------------------------
# Go

_GO_TYPES = {"a": "int8", "b": "uint8", "c": "int16", "d": "uint16", "i": "int32", "u": "uint32",
             "l": "int64", "v": "uint64", "n": "int", "f": "float32", "g": "float64"}  # fmt: skip

_GO_SOURCE = """
package main

import (
	"fmt"
	"math"
	"runtime"
)

func init() { runtime.LockOSThread() } // main runs on the first thread, which is traced

type values struct { @MEMBERS@; ok bool }

const limit = 5
const small uint8 = 5

//go:noinline
func show(e *values) { evaluated(e) }

func evaluated(e *values) {
	for _, one := range []func() interface{}{
@EVALUATED@
	} {
		fmt.Print(try(one), " ")
	}
	fmt.Println()
}

func try(one func() interface{}) (text string) {
	defer func() {
		if recover() != nil {
			text = "-"
		}
	}()
	switch v := one().(type) {
	case bool:
		if v {
			return "b1"
		}
		return "b0"
	case float32:
		return fmt.Sprintf("f%v", v)
	case float64:
		return fmt.Sprintf("d%v", v)
	default:
		return fmt.Sprintf("i%d", v)
	}
}

var _ = math.Inf

func main() {
	for _, e := range []values{@GIVEN@} {
		show(&e)
	}
}
"""


def _go_expression(chosen: Random, depth: int, name: str) -> str:
    type = _GO_TYPES[name]
    if depth == 0:
        constants = ["1", "2", "7", "100", "'a'", "0x7f", "limit", f"{type}(3)"]
        return chosen.choice([f"e.{name}"] * 3 + [chosen.choice(constants)])
    one, two = (_go_expression(chosen, depth - 1, name) for _ in range(2))
    if "e." not in one:
        one = f"e.{name}"
    other = chosen.choice([each for each in _GO_TYPES if "float" not in _GO_TYPES[each]])
    forms = [f"({one}) {operator} ({two})" for operator in "+-*/"] + [f"-({one})"]
    if "float" not in type:
        forms += [f"({one}) {operator} ({two})" for operator in ("%", "&", "|", "^", "&^")]
        forms += [f"({one}) << (e.b & 31)", f"({one}) >> (e.{chosen.choice('ab')})"]
        forms += [f"{type}(({_go_expression(chosen, depth - 1, other)}) + e.{other})", f"^({one})"]
        forms += [f"{type}({_GO_TYPES[other]}(e.{chosen.choice('abcdiulvn')}))"]
        # What is shifted takes the type of the other operand, or of the conversion.
        shifted = [f"1 << (e.{each} & 15)" for each in "bdv"] + ["7 >> (e.b & 3)"]
        shifted += [f"({chosen.choice(shifted)}) - 1", f"^({chosen.choice(shifted)})"]
        shifted += [f"{type}(1) << (e.b & 31)", f"({chosen.choice(shifted)}) / 3"]
        operator = chosen.choice("+-*&|^")
        forms += [f"({one}) {operator} ({chosen.choice(shifted)})" for _ in range(3)]
        forms += [f"{type}({chosen.choice(shifted)})", f"({chosen.choice(shifted)}) % ({one})"]
    else:
        forms += [f"{type}(e.{other})"]
    return chosen.choice(forms)


def go_operators(chosen: Random, expressions: int, calls: int, functions: bool = True) -> Operators:
    """As :func:`c_operators`; ``functions``: Go has ``min`` and ``max``, as from 1.21 on."""
    texts = ["1 << (e.b & 63)", "(1 << (e.b & 63)) - 1", "1 << (e.b & 15) == e.d", "e.b == small",
             "small << (e.b & 7)", "(1 << e.a) > 7", "e.f < 0.1"]  # fmt: skip
    texts += ["max(e.a, 3)"] * functions
    while len(texts) < expressions:
        name = chosen.choice(list(_GO_TYPES))
        text = _go_expression(chosen, chosen.choice((1, 2, 3)), name)
        if chosen.random() < 0.3:
            second = _go_expression(chosen, 1, name)
            text = f"({text}) {chosen.choice(('==', '!=', '<', '<=', '>', '>='))} ({second})"
            text = chosen.choice((text, f"!({text})", f"e.ok && {text}", f"e.ok || {text}"))
        elif functions and chosen.random() < 0.2:
            text = f"{chosen.choice(('min', 'max'))}({text}, e.{name})"
        if text not in texts:
            texts.append(text)
    given = []
    for _ in range(calls):
        row = []
        for type in _GO_TYPES.values():
            if type.startswith("float"):
                row.append(chosen.choice(("0", "math.Inf(1)", "1.5", "0.1", "-7.25e10")))
                row[-1] = f"float32({row[-1]})" if type == "float32" else row[-1]
                continue
            bits = int(type.lstrip("uint") or 64)
            low = 0 if type.startswith("u") else -(1 << bits - 1)
            high = low + (1 << bits) - 1
            row.append(str(chosen.choice((low, high, 0, 1, 3, max(low, -1), high // 3))))
        given.append(f"{{{', '.join(row)}, {chosen.choice(('true', 'false'))}}}")
    source = (
        _GO_SOURCE.replace("@MEMBERS@", "; ".join(f"{n} {t}" for n, t in _GO_TYPES.items()))
        .replace(
            "@EVALUATED@",
            "\n".join(f"\t\tfunc() interface{{}} {{ return {text} }}," for text in texts),
        )
        .replace("@GIVEN@", ", ".join(given))
    )
    return Operators(source.lstrip(), "main.show", tuple(texts))
