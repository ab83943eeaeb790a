"""BTF as a file: types as records that refer to each other by number, and their bytes.

Types count from 1 in their order, 0 is void. Sizes are bytes, offsets of members bits. What a name
may be is the kernel's rule (``btf_name_valid_identifier`` in kernel/bpf/btf.c), which other readers
share: a letter or `_` first, letters, digits and `_` after it. Readers that write C (bpftool)
print names of numbers as they are, so `fetchc btf` gives these C's names, and no others C's words.
Source: Documentation/bpf/btf.rst and include/uapi/linux/btf.h of Linux.
"""

from __future__ import annotations

import re
from struct import Struct

from fetchc.record import Record, assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "MOST_MEMBERS",
    "VOID",
    "WIDEST_OFFSET",
    "Aggregate",
    "Alias",
    "Array",
    "BtfType",
    "Declaration",
    "Enumeration",
    "Floating",
    "Function",
    "Integer",
    "Pointer",
    "Prototype",
    "Qualifier",
    "Slot",
    "encode",
    "identifiers",
    "merged",
]

VOID = 0
MOST_MEMBERS = 0xFFFF  # of one type, parameters and enumerators included
WIDEST_OFFSET = 1 << 24  # bits: of a member of a structure that has bit fields
_LONGEST = 127  # characters of a name: KSYM_NAME_LEN of Linux up to 6.0, less its NUL
_SIGNED, _BOOL = 1, 4  # encoding of INT
_GLOBAL = 1  # linkage of FUNC: BTF_FUNC_GLOBAL
_QUALIFIERS = {"volatile": 9, "const": 10, "restrict": 11}


class Integer(Record):
    """INT: a number, a character or a truth value."""

    name: str
    size: int
    signed: bool
    boolean: bool


class Floating(Record):
    """FLOAT, of 2, 4, 8, 12 or 16 bytes."""

    name: str
    size: int


class Pointer(Record):
    """PTR."""

    target: int


class Array(Record):
    """ARRAY: one dimension; ``index`` is the integer type of its indices."""

    element: int
    index: int
    count: int


class Slot(Record):
    """A member of an aggregate, or a parameter (``offset`` and ``width`` 0).

    ``width`` is that of a bit field, 0 of other members.
    """

    name: str
    type: int
    offset: int = 0
    width: int = 0


class Aggregate(Record):
    """STRUCT or UNION; the members of a structure in the order of their offsets."""

    name: str
    union: bool
    size: int
    members: tuple[Slot, ...]


class Enumeration(Record):
    """ENUM, or ENUM64 where a value needs it."""

    name: str
    size: int
    signed: bool
    enumerators: tuple[tuple[str, int], ...]


class Declaration(Record):
    """FWD: a structure or union without a definition."""

    name: str
    union: bool


class Alias(Record):
    """TYPEDEF."""

    name: str
    target: int


class Qualifier(Record):
    """CONST, VOLATILE or RESTRICT: ``qualifier`` as C writes it."""

    qualifier: str
    target: int


class Prototype(Record):
    """FUNC_PROTO: the type of a function."""

    result: int
    parameters: tuple[Slot, ...]


class Function(Record):
    """FUNC: a function that can be called from other files."""

    name: str
    prototype: int


BtfType = (
    Integer
    | Floating
    | Pointer
    | Array
    | Aggregate
    | Enumeration
    | Declaration
    | Alias
    | Qualifier
    | Prototype
    | Function
)


# ------------------------------------------------------------------------------
# Names

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_OTHER = re.compile(r"[^A-Za-z0-9]+")
_MARKS = (("[]", " slice "), ("*", " ptr "), ("&", " ref "))  # what tells types apart
_KEYWORDS = {
    "_Bool", "_Float128", "_Float16", "_Float32", "_Float32x", "_Float64", "_Float64x",
    "__float128", "__int128", "auto", "break", "case", "char", "const", "continue", "default", "do",
    "double", "else", "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long",
    "register", "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch",
    "typedef", "union", "unsigned", "void", "volatile", "while",
}  # fmt: skip


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """An identifier for each name: itself where it is one, else made from its letters and digits.

    A word of C gets a `_` after it.

    Different names get different identifiers, whatever their order.
    """
    wanted = sorted(set(names))
    found = {
        each: each
        for each in wanted
        if _IDENTIFIER.match(each) and len(each) <= _LONGEST and each not in _KEYWORDS
    }
    taken = set(found)
    for each in wanted:
        if each in found:
            continue
        words = each
        for mark, word in _MARKS:
            words = words.replace(mark, word)
        stem = _OTHER.sub("_", words).strip("_") or "unnamed"
        stem = f"_{stem}" if stem[0].isdigit() else stem
        word = each if each in _KEYWORDS else stem
        stem = f"{word}_" if word in _KEYWORDS else stem
        stem = stem[: _LONGEST - 8]  # room for a number
        name, number = stem, 1
        while name in taken:
            number += 1
            name = f"{stem}_{number}"
        found[each] = name
        taken.add(name)
    return found


# ------------------------------------------------------------------------------
# Equal types are one


def merged(types: Sequence[BtfType]) -> tuple[list[BtfType], list[int]]:
    """The types without repetitions, and by the old number (0 included) the new one.

    Two types are one if no path through them shows a difference: the coarsest partition that
    their shapes and references allow. So types that refer to themselves merge, too.
    """
    references = [_references(each) for each in types]
    shapes: dict[BtfType, int] = {}
    classes = [VOID]
    for each, refers in zip(types, references, strict=True):
        blank = _relinked(each, iter([VOID] * len(refers)))
        classes.append(shapes.setdefault(blank, len(shapes) + 1))
    count = len(shapes)
    while True:
        keys: dict[tuple[int, ...], int] = {}
        refined = [VOID]
        for number, refers in enumerate(references, 1):
            key = (classes[number], *[classes[each] for each in refers])
            refined.append(keys.setdefault(key, len(keys) + 1))
        classes = refined
        if len(keys) == count:
            break
        count = len(keys)
    result: list[BtfType] = []
    for number, each in enumerate(types, 1):
        if classes[number] > len(result):  # classes are numbered by their first type
            result.append(_relinked(each, iter([classes[one] for one in references[number - 1]])))
    return result, classes


def _references(each: BtfType) -> tuple[int, ...]:
    match each:
        case Integer() | Floating() | Enumeration() | Declaration():
            return ()
        case Pointer(target=target) | Alias(target=target) | Qualifier(target=target):
            return (target,)
        case Array(element=element, index=index):
            return element, index
        case Aggregate(members=members):
            return tuple([one.type for one in members])
        case Prototype(result=result, parameters=parameters):
            return result, *[one.type for one in parameters]
        case Function(prototype=prototype):
            return (prototype,)
        case _:
            assert_never(each)


def _relinked(each: BtfType, to: Iterable[int]) -> BtfType:
    # The same type with other references, in the order of `_references`.
    numbers = iter(to)
    match each:
        case Integer() | Floating() | Enumeration() | Declaration():
            return each
        case Pointer() | Alias() | Qualifier():
            return each.replaced(target=next(numbers))
        case Array(count=count):
            return Array(next(numbers), next(numbers), count)
        case Aggregate(members=members):
            linked = tuple([one.replaced(type=next(numbers)) for one in members])
            return each.replaced(members=linked)
        case Prototype(parameters=parameters):
            result = next(numbers)
            return Prototype(
                result, tuple([one.replaced(type=next(numbers)) for one in parameters])
            )
        case Function(name=name):
            return Function(name, next(numbers))
        case _:
            assert_never(each)


# ------------------------------------------------------------------------------
# Bytes


class _Strings:
    # The table of names; it begins with the empty one.
    def __init__(self) -> None:
        self.data = bytearray(1)
        self._offsets = {"": 0}

    def offset(self, name: str) -> int:
        found = self._offsets.get(name)
        if found is None:
            found = self._offsets[name] = len(self.data)
            self.data += name.encode("utf-8", "surrogateescape") + b"\0"
        return found


def encode(types: Sequence[BtfType], little_endian: bool) -> bytes:
    """A BTF file of the types, in the byte order of the machine that they are of."""
    order = "<" if little_endian else ">"
    strings, words = _Strings(), Struct(f"{order}I")
    table = b"".join(
        [words.pack(word & 0xFFFFFFFF) for each in types for word in _words(each, strings)]
    )
    header = Struct(f"{order}HBBIIIII")
    names = bytes(strings.data)
    return header.pack(0xEB9F, 1, 0, 24, 0, len(table), len(table), len(names)) + table + names


def _info(kind: int, count: int = 0, flag: bool = False) -> int:
    return flag << 31 | kind << 24 | count


def _words(each: BtfType, strings: _Strings) -> list[int]:
    name = strings.offset
    match each:
        case Integer(size=size, signed=signed, boolean=boolean):
            encoding = _SIGNED * signed | _BOOL * boolean
            return [name(each.name), _info(1), size, encoding << 24 | 8 * size]
        case Pointer(target=target):
            return [0, _info(2), target]
        case Array(element=element, index=index, count=count):
            return [0, _info(3), 0, element, index, count]
        case Aggregate(union=union, size=size, members=members):
            flag = any(one.width for one in members)
            words = [name(each.name), _info(5 if union else 4, len(members), flag), size]
            for one in members:
                words += [name(one.name), one.type, one.width << 24 | one.offset]
            return words
        case Enumeration(size=size, signed=signed, enumerators=enumerators):
            wide = size > 4
            words = [name(each.name), _info(19 if wide else 6, len(enumerators), signed), size]
            for text, value in enumerators:
                words += [name(text), value]
                words += [value >> 32] if wide else []
            return words
        case Declaration(union=union):
            return [name(each.name), _info(7, flag=union), 0]
        case Alias(target=target):
            return [name(each.name), _info(8), target]
        case Qualifier(qualifier=qualifier, target=target):
            return [0, _info(_QUALIFIERS[qualifier]), target]
        case Function(prototype=prototype):
            return [name(each.name), _info(12, _GLOBAL), prototype]
        case Prototype(result=result, parameters=parameters):
            words = [0, _info(13, len(parameters)), result]
            for one in parameters:
                words += [name(one.name), one.type]
            return words
        case Floating(size=size):
            return [name(each.name), _info(16), size]
        case _:
            assert_never(each)
