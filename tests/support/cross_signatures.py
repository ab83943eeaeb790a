"""Random signatures in a C program without a library, for any machine.

A program has a typed global for each argument (``a_3_1``: second argument of the fourth function)
and for each result, fills them, writes into ``printed`` what the compiler makes of each number in
them, and calls the functions, which consume all their parameters.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

__all__ = ["CType", "Leaf", "Signatures"]

_SMALL = ["char", "signed char", "unsigned char", "short", "unsigned short", "_Bool", "enum E"]
_WORDS = ["int", "unsigned", "int", "long", "unsigned long", "long long", "unsigned long long"]
_OTHERS = ["void *", "char *", "float", "double", "float", "double"]
_BARE = ["float _Complex", "double _Complex"]  # passed, but no number of them is asked for
_BASES = ["int", "unsigned", "short", "unsigned char", "signed char", "long long", "enum E"]

PROLOGUE = r"""
enum E { E0, E1 = 70000, E2 = -5 };
static unsigned seed = 1;
static void fill(void *object, unsigned size) {
    volatile unsigned char *bytes = object;
    for (unsigned i = 0; i < size; i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = seed >> 24;
    }
}
__attribute__((used)) void *memcpy(void *to, const void *from, unsigned long size) {
    volatile unsigned char *into = to;
    for (unsigned long i = 0; i < size; i++) into[i] = ((const unsigned char *)from)[i];
    return to;
}
#ifdef __arm__
#define ALIAS(name) \
    __attribute__((used, alias("memcpy"))) void *name(void *, const void *, unsigned long);
ALIAS(__aeabi_memcpy) ALIAS(__aeabi_memcpy4) ALIAS(__aeabi_memcpy8)
#endif
#define WHOLE(e) ((unsigned long long)(long long)(e))
#define POINTER(e) ((unsigned long long)(unsigned long)(e))
#define BITS4(e) (((union { float from; unsigned to; }){(e)}).to)
#define BITS8(e) (((union { double from; unsigned long long to; }){(e)}).to)
#if defined __i386__ || defined __x86_64__
#define ENTRY __attribute__((force_align_arg_pointer))
#else
#define ENTRY
#endif
"""


@dataclass(frozen=True)
class Leaf:
    """A number in a value: its path, and what it is: whole, bool, pointer, float, double."""

    path: str
    kind: str
    bytes: int
    bits: int = 0  # of a bit field

    @property
    def floating(self) -> bool:
        return self.kind in ("float", "double")

    def printed(self, name: str) -> str:
        """C for its value, in eight bytes."""
        macro = {
            "whole": "WHOLE",
            "bool": "WHOLE",
            "pointer": "POINTER",
            "float": "BITS4",
            "double": "BITS8",
        }
        return f"{macro[self.kind]}({name}{self.path})"


@dataclass(frozen=True)
class CType:
    """A type by its name, with its numbers; ``members`` is how many a structure has."""

    name: str
    leaves: tuple[Leaf, ...] = ()
    members: int = 0

    @property
    def floating(self) -> bool:
        """Whether a floating-point number is in it."""
        return any(leaf.floating for leaf in self.leaves)


@dataclass
class Signatures:
    """One random program of ``count`` functions; ``wide`` for machines with words of 8 bytes.

    ``rare`` are further types that are passed now and then, ``directed`` the parameters of
    functions that are not left to chance: names of types, or of a structure's members in braces.
    """

    seed: str
    count: int
    wide: bool
    rare: tuple[str, ...] = ()
    directed: tuple[tuple[str, ...], ...] = ()
    parameters: list[list[CType]] = field(default_factory=list)
    results: list[CType | None] = field(default_factory=list)
    printed: list[tuple[str, int, int, Leaf]] = field(
        default_factory=list
    )  # kind, function, argument
    _declared: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        for _ in range(self.count):
            many = self._random.choice([1, 2, 3, 4, 5, 6, 7, 9, 12])
            if self._random.random() < 0.12:  # more floating-point numbers than there are registers
                self.parameters.append([self._floating() for _ in range(14)])
            else:
                self.parameters.append([self._type() for _ in range(many)])
            self.results.append(self._type() if self._random.random() < 0.8 else None)
        for names in self.directed:
            self.parameters.append([self._named(name) for name in names])
            self.results.append(None)
        for i, (made, result) in enumerate(zip(self.parameters, self.results, strict=True)):
            values = [("a", j, it) for j, it in enumerate(made)]
            values += [("r", 0, result)] if result else []
            self.printed += [(kind, i, j, leaf) for kind, j, it in values for leaf in it.leaves]

    def source(self) -> str:
        """The program."""
        lines = [PROLOGUE, *self._declared, f"unsigned long long printed[{len(self.printed) + 1}];"]
        for i, (made, result) in enumerate(zip(self.parameters, self.results, strict=True)):
            values = [(f"a_{i}_{j}", it) for j, it in enumerate(made)]
            values += [(f"r_{i}_0", result)] if result else []
            call = []
            for name, value in values:
                lines.append(f"{value.name} {name};")
                call += self._filled(name, value)
            for number, (kind, of, j, leaf) in enumerate(self.printed):
                if of == i:
                    call.append(f"  printed[{number}] = {leaf.printed(f'{kind}_{i}_{j}')};")
            call.append(f"  f_{i}({', '.join(f'a_{i}_{j}' for j in range(len(made)))});")
            lines.append(self._function(i, made, result))
            lines += [f"__attribute__((noinline)) static void call_{i}(void) {{", *call, "}"]
        calls = " ".join(f"call_{i}();" for i in range(len(self.parameters)))
        return "\n".join([*lines, f"ENTRY void _start(void) {{ {calls} for (;;); }}", ""])

    def _function(self, i: int, made: list[CType], result: CType | None) -> str:
        given = ", ".join(f"{it.name} p{j}" for j, it in enumerate(made))
        used = "".join(f' __asm__ volatile("" :: "m"(p{j}) : "memory");' for j in range(len(made)))
        returned = f" return r_{i}_0;" if result else ""
        name = result.name if result else "void"
        return f"__attribute__((noinline)) {name} f_{i}({given}) {{{used}{returned} }}"

    def _filled(self, name: str, made: CType) -> list[str]:
        # Not every pattern of bits is a truth value, and some numbers change when they are copied.
        lines = [f"  fill(&{name}, sizeof {name});"]
        for leaf in made.leaves:
            if leaf.floating:
                value = f"{self._random.randrange(-999, 999)}.25"
                lines.append(f"  {name}{leaf.path} = {value};")
            elif leaf.kind == "bool":
                lines.append(f"  {name}{leaf.path} = {self._random.randrange(2)};")
        if made.name in _BARE:
            lines.append(f"  {name} = {self._random.randrange(99)}.5;")
        return lines

    def _type(self) -> CType:
        if self._random.random() < 0.4:
            return self._structure(0)
        if self._random.random() < 0.15 and self.rare:
            return CType(self._random.choice(self.rare))
        return self._scalar("")

    def _named(self, name: str) -> CType:
        if name in self.rare:
            return CType(name)
        if name[0] != "{":
            return CType(name, (Leaf("", _kind(name), self._bytes(name)),))
        members = name[1:-1].split(", ")
        leaves = [
            Leaf(f".m{at}", _kind(made), self._bytes(made)) for at, made in enumerate(members)
        ]
        texts = " ".join(f"{made} m{at};" for at, made in enumerate(members))
        known = f"S{len(self._declared)}"
        self._declared.append(f"typedef struct {{ {texts} }} {known};")
        return CType(known, tuple(leaves), len(members))

    def _floating(self) -> CType:
        if self._random.random() < 0.2:
            return self._structure(0)
        name = self._random.choice(["float", "double"])
        return CType(name, (Leaf("", name, self._bytes(name)),))

    def _scalar(self, path: str) -> CType:
        name = self._random.choice(self._random.choice([_SMALL, _WORDS, _WORDS, _OTHERS]))
        return CType(name, (Leaf(path, _kind(name), self._bytes(name)),))

    def _bytes(self, name: str) -> int:
        plain = name.replace("unsigned ", "").replace("signed ", "")
        if plain == "long" or name.endswith("*"):
            return 8 if self.wide else 4
        sizes = {"char": 1, "_Bool": 1, "short": 2, "long long": 8, "double": 8}
        return sizes.get(plain, 4)

    def _structure(self, depth: int) -> CType:
        choose = self._random
        kind = "union" if choose.random() < 0.1 else "struct"
        alike = choose.choice(["float", "double", "int", "long"]) if choose.random() < 0.3 else ""
        many = choose.choice([1, 1, 2, 2, 2, 3, 3, 4, 5])
        texts, leaves = [], []
        for number in range(many):
            text, inner = self._member(f"m{number}", kind, alike, depth)
            texts.append(text)
            leaves += inner
        if kind == "union":  # its members change each other: one of them is asked for
            leaves = [it for it in leaves if it.path.startswith(f".m{many - 1}")]
        name = f"S{len(self._declared)}"
        self._declared.append(f"typedef {kind} {{ {' '.join(texts)} }} {name};")
        return CType(name, tuple(leaves), many)

    def _member(self, name: str, kind: str, alike: str, depth: int) -> tuple[str, list[Leaf]]:
        choose = self._random
        which = choose.random()
        if alike:
            return self._array(name, alike, choose.choice([1, 2, 3]) if which < 0.25 else 0)
        if which < 0.15 and depth < 2:
            inner = self._structure(depth + 1)
            moved = [Leaf(f".{name}{it.path}", it.kind, it.bytes, it.bits) for it in inner.leaves]
            return f"{inner.name} {name};", moved
        if which < 0.28:
            element = choose.choice(["char", "short", "int", "float", "double", "long"])
            return self._array(name, element, choose.choice([1, 2, 3, 5]))
        if which < 0.42 and kind == "struct":
            base = choose.choice(_BASES)
            bits = choose.randrange(1, 8 * self._bytes(base) + 1)
            return f"{base} {name} : {bits};", [Leaf(f".{name}", "whole", self._bytes(base), bits)]
        scalar = self._scalar(f".{name}")
        return f"{scalar.name} {name};", list(scalar.leaves)

    def _array(self, name: str, element: str, count: int) -> tuple[str, list[Leaf]]:
        paths = [f".{name}[{at}]" for at in range(count)] if count else [f".{name}"]
        leaves = [Leaf(path, _kind(element), self._bytes(element)) for path in paths]
        return f"{element} {name}{f'[{count}]' if count else ''};", leaves


def _kind(name: str) -> str:
    if name.endswith("*"):
        return "pointer"
    return {"float": "float", "double": "double", "_Bool": "bool"}.get(name, "whole")
