"""The words of C that name a type: ``long unsigned`` and ``unsigned long int`` are one."""

from __future__ import annotations

from fetchc.record import Record

__all__ = ["Base", "base_spelling", "unqualified"]

QUALIFIERS = frozenset({"const", "volatile"})
BASE_WORDS = frozenset({"char", "short", "int", "long", "float", "double", "signed", "unsigned"})


class Base(Record):
    """A fundamental type of C: what compilers call it, and its size in bytes on Linux.

    ``size`` 0 means the machine's word; ``signed`` is None for floating point. Both
    are None where they depend on the machine or its flags (``char``, ``long double``).
    """

    names: tuple[str, ...]
    size: int | None
    signed: bool | None


# gcc and clang differ in the order of the words. Sizes: the ILP32 and LP64 models of every Linux
# psABI agree on all but `long`, which is as wide as a pointer.
BASES = {
    ("char", "", 0): Base(("char",), None, None),
    ("char", "signed", 0): Base(("signed char",), 1, True),
    ("char", "unsigned", 0): Base(("unsigned char",), 1, False),
    ("short", "", 0): Base(("short int", "short"), 2, True),
    ("short", "unsigned", 0): Base(("short unsigned int", "unsigned short"), 2, False),
    ("int", "", 0): Base(("int",), 4, True),
    ("int", "unsigned", 0): Base(("unsigned int",), 4, False),
    ("int", "", 1): Base(("long int", "long"), 0, True),
    ("int", "unsigned", 1): Base(("long unsigned int", "unsigned long"), 0, False),
    ("int", "", 2): Base(("long long int", "long long"), 8, True),
    ("int", "unsigned", 2): Base(("long long unsigned int", "unsigned long long"), 8, False),
    ("float", "", 0): Base(("float",), 4, None),
    ("double", "", 0): Base(("double",), 8, None),
    ("double", "", 1): Base(("long double",), None, None),
}


def unqualified(name: str) -> list[str]:
    """The words of a type's name without its qualifiers; those of a template's arguments stay."""
    words = name.split()
    while words and words[0] in QUALIFIERS:
        del words[0]
    while words and words[-1] in QUALIFIERS:
        del words[-1]
    return words


def base_spelling(name: str) -> Base | None:
    """The C type that these words mean in any order (``long unsigned``); None for other names."""
    words = [word for word in name.split() if word not in QUALIFIERS]
    if not words or not BASE_WORDS.issuperset(words):
        return None
    signs = [word for word in words if word in ("signed", "unsigned")]
    longs = words.count("long")
    kinds = [word for word in words if word not in ("signed", "unsigned", "long")]
    if "short" in kinds and "int" in kinds:
        kinds.remove("int")
    if len(signs) > 1 or len(kinds) > 1:
        return None
    kind = kinds[0] if kinds else "int"
    sign = signs[0] if signs else ""
    if sign == "signed" and kind != "char":
        sign = ""
    return BASES.get((kind, sign, longs))
