"""Numbers of a record as values: integers, floats, enumerators, characters, pointers."""

from __future__ import annotations

import struct
import sys
from operator import itemgetter

from fetchc.tracer.display_values import Character, Enumerator, Hexadecimal, Nanoseconds, SymbolName
from fetchc.tracer.guards import HIGHEST, LOWEST
from fetchc.tracer.value_shapes import Leaf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from fetchc.ir.fetch import Decode
    from fetchc.tracer.events import EventValue, Field, Value

    Meaning = Callable[[int], Value]
    Symbol = Callable[[int, int], str | None]
    There = Callable[[bytes, int], bool | None]
    Numbers = Callable[[bytes], dict[str, Value] | None]

__all__ = ["CODES", "float_value", "meaning", "numbers"]

CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""The letters of :mod:`struct` for a number of so many bytes."""


def meaning(
    decode: Decode, size: int, shift: int = 0, pointer: Meaning = Hexadecimal
) -> tuple[str, Meaning | None]:
    """How to read a number of ``size`` bytes: the letter for :mod:`struct`, and what then.

    None: the number is the value. ``decode.bits`` bits count, from bit ``shift`` on. ``pointer``
    makes the value of a pointer.
    """
    bits = decode.bits or 8 * size
    whole = bits == 8 * size and shift == 0
    if decode.kind == "float":
        return CODES[size], _float(bits)
    code = CODES[size]
    first: Callable[[int], int] | None = None
    if whole:
        code = code.lower() if decode.signed else code
    else:
        first = _bits(bits, shift, decode.signed)
    then = _kind(decode, pointer)
    if first is None or then is None:
        return code, then or first
    return code, lambda raw: then(first(raw))


def _bits(bits: int, shift: int, signed: bool) -> Callable[[int], int]:
    mask, sign = (1 << bits) - 1, 1 << bits - 1
    if signed:
        return lambda raw: ((raw >> shift & mask) ^ sign) - sign
    return lambda raw: raw >> shift & mask


def _kind(decode: Decode, pointer: Meaning) -> Meaning | None:
    match decode.kind:
        case "integer":
            return None
        case "bool":
            return bool
        case "char":
            return _CHARACTERS.__getitem__ if (decode.bits or 8) <= 8 else _code_point
        case "enum":
            return _enum(decode)
        case "reference":
            return lambda raw: pointer(raw) if raw else None
        case "pointer" | "symbol":
            return pointer
        case "address":
            return Hexadecimal
        case "duration":
            return Nanoseconds
        case "turned":
            size = (decode.bits or 8) // 8
            return lambda raw: int.from_bytes(raw.to_bytes(size, sys.byteorder), "big")
        case other:
            raise AssertionError(f"no number is read as {other!r}")


# A byte that is no character of ASCII becomes a surrogate.
_CHARACTERS = {
    code: Character(bytes([code & 0xFF]).decode("ascii", "surrogateescape"), code)
    for code in range(-128, 256)
}


def _code_point(raw: int) -> Value:
    # 4 bytes can hold what is no character: it stays a number.
    return Character(chr(raw), raw) if raw <= sys.maxunicode else raw


def _enum(decode: Decode) -> Meaning:
    names: dict[int, str] = {}
    for name, value in decode.enumerators:
        names.setdefault(value, name)
    if decode.flags:
        return lambda raw: Enumerator(name=_set_of(names, raw, ", "), value=raw)
    if _are_bits(names):
        return lambda raw: Enumerator(name=_set_of(names, raw, "|"), value=raw)
    otherwise = decode.otherwise or None
    return lambda raw: Enumerator(name=names.get(raw, otherwise), value=raw)


def _are_bits(values: Collection[int]) -> bool:
    # Whether an enumeration of C is of single bits, and of masks of them: 1, 2 and 4 at the least,
    # as 1, 2 and 3 are numbers like others.
    bits = [value for value in values if value > 0 and value & value - 1 == 0]
    mask = sum(bits)
    return len(bits) >= _BITS and all(0 <= value == value & mask for value in values)


def _set_of(names: dict[int, str], raw: int, between: str) -> str | None:
    # As Enum.ToString writes it: the greatest first to be taken out, the least first in the text.
    if raw in names:
        return names[raw]
    found, left = [], raw
    for value in sorted(names, key=lambda one: one & _WIDEST, reverse=True):
        if value and left & value == value:
            found.append(names[value])
            left &= ~value
    return between.join(reversed(found)) if found and not left else None


_WIDEST = (1 << 64) - 1
_BITS = 3


def _float(bits: int) -> Meaning:
    size = bits // 8
    mask = (1 << bits) - 1
    pack = struct.Struct("=" + CODES[size]).pack
    unpack = struct.Struct("=" + {4: "f", 8: "d"}[size]).unpack
    short = size == 4
    return lambda raw: float_value(unpack(pack(raw & mask))[0], short)


def float_value(number: float, short: bool) -> Value:
    """A float as JSON can have it; ``short`` is for those of 32 bits.

    JSON has no number for infinities and for what is none: they are the texts ``Infinity``,
    ``-Infinity`` and ``NaN``, as in the JSON form of Protocol Buffers.
    """
    if number != number:
        return SymbolName("NaN")
    if number in (_INFINITY, -_INFINITY):
        return SymbolName("Infinity" if number > 0 else "-Infinity")
    return _shortest(number) if short else number


def _shortest(number: float) -> float:
    # The number of the fewest digits that tell it from its neighbours of 32 bits: 2.1, where all
    # digits would be 2.0999999046325684. Numbers below the normal ones have less than six.
    wanted = _FLOAT.pack(number)
    for digits in range(6 if abs(number) >= _SMALLEST_NORMAL else 1, 10):
        shorter = float(f"{number:.{digits}g}")
        if _FLOAT.pack(shorter) == wanted:
            return shorter
    raise AssertionError("nine digits tell every number of 32 bits")


_FLOAT = struct.Struct("=f")
_SMALLEST_NORMAL = 2.0**-126


_INFINITY = float("inf")


# ------------------------------------------------------------------------------
# The plain numbers of a record, all at once: what most events consist of.
#
# One by one, twenty numbers behind pointers cost 20 us, at once 4. Where anything is out of the
# ordinary (a pointer that leads nowhere, a 0 whose memory is not there), nothing is given, and
# the makers of single values look closer.

_FEWEST = 2  # of them: one is as fast by itself
_PAGE = 12  # bits of an address inside of the smallest page


def numbers(
    wanted: Sequence[EventValue], fields: Mapping[str, Field], there: There | None
) -> tuple[frozenset[str], Numbers] | None:
    """The labels of plain numbers among ``wanted``, and what gives them all; None for too few.

    It gives None for a record that has to be looked at closer.
    """
    found: list[tuple[int, int, str, str, Leaf]] = []  # offset, size, letter, label
    for one in wanted:
        leaf = one.shape
        if not isinstance(leaf, Leaf) or leaf.decode.kind != "integer":
            continue
        field = fields[leaf.field]
        size = leaf.size or field.size
        code, then = meaning(leaf.decode, size, leaf.shift)
        if then is None and not any(guard.empty or guard.read_checks for guard in leaf.guards):
            found.append((field.offset + leaf.offset, size, code, one.label, leaf))
    found.sort(key=lambda each: each[:2])
    listed = []
    layout, at = "=", 0
    for offset, size, code, label, leaf in found:
        if offset >= at:  # else it is inside another one
            layout += f"{offset - at}x{code}"
            at = offset + size
            listed.append((label, leaf))
    if len(listed) < _FEWEST:
        return None
    labels = [label for label, _ in listed]
    leaves = [leaf for _, leaf in listed]
    make = _all(labels, struct.Struct(layout), _bounds(leaves, fields), there, leaves, fields)
    return frozenset(labels), make


def _place(fields: Mapping[str, Field], field: str, offset: int) -> int:
    return fields[field].offset + offset


def _bounds(leaves: list[Leaf], fields: Mapping[str, Field]) -> list[tuple[int, int, int]]:
    """Each pointer's place in the record, and between what it has to be for all that is behind."""
    bounds: dict[int, tuple[int, int]] = {}
    for guard in [guard for leaf in leaves for guard in leaf.guards]:
        place = _place(fields, guard.field, guard.offset)
        low, high = bounds.get(place, (LOWEST, HIGHEST))
        bounds[place] = max(low, LOWEST - guard.moved), min(high, HIGHEST - guard.moved)
    return [(place, low, high) for place, (low, high) in bounds.items()]


def _all(
    labels: list[str],
    layout: struct.Struct,
    bounds: list[tuple[int, int, int]],
    there: There | None,
    leaves: list[Leaf],
    fields: Mapping[str, Field],
) -> Numbers:
    unpack = layout.unpack_from
    word = struct.Struct("=Q").unpack_from
    groups = [] if there is None else _groups(leaves, fields)

    def make(data: bytes) -> dict[str, Value] | None:
        for place, low, high in bounds:
            if not low <= word(data, place)[0] < high:
                return None
        values = unpack(data)
        if 0 in values:
            for place, pick, moves, first, last in groups:
                pointer = word(data, place)[0]
                behind = pick(values)
                if pointer + first >> _PAGE == pointer + last >> _PAGE and any(behind):
                    continue  # what is not 0 was loaded, and from this very page
                assert there is not None
                for value, moved in zip(behind, moves, strict=True):
                    if not value and there(data, pointer + moved) is False:
                        return None
        return dict(zip(labels, values, strict=True))

    return make


def _groups(
    leaves: list[Leaf], fields: Mapping[str, Field]
) -> list[tuple[int, Callable[[tuple[int, ...]], tuple[int, ...]], list[int], int, int]]:
    """The numbers by the pointer they were loaded by: its place in the record, what picks them,
    how far behind it they are, the first and the last byte of them all.
    """
    found: dict[int, list[tuple[int, int, int]]] = {}
    for index, leaf in enumerate(leaves):
        if leaf.guards:
            last = leaf.guards[-1]
            size = leaf.size or fields[leaf.field].size
            place = _place(fields, last.field, last.offset)
            found.setdefault(place, []).append((index, last.moved, size))
    return [
        (
            place,
            _picker([index for index, _, _ in listed]),
            [moved for _, moved, _ in listed],
            min(moved for _, moved, _ in listed),
            max(moved + size - 1 for _, moved, size in listed),
        )
        for place, listed in found.items()
    ]


def _picker(positions: list[int]) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    if len(positions) == 1:
        return lambda values: (values[positions[0]],)
    return itemgetter(*positions)
