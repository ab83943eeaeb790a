"""Readers of composite values: structures, enums, interfaces, casts, computed numbers."""

from __future__ import annotations

import struct
import sys
from errno import errorcode

from fetchc.tracer.display_values import (
    CodeAddress,
    CutList,
    CutStructure,
    EntryCount,
    Enumerator,
    ReturnAddress,
    SymbolName,
    Tuple,
    Variant,
)
from fetchc.tracer.guards import (
    PID,
    THREAD,
    Unread,
)
from fetchc.tracer.number_values import meaning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from fetchc.program.protocol import ObjectTypes, RuntimeTypes
    from fetchc.quantities import TypeId
    from fetchc.tracer.events import Value
    from fetchc.tracer.value_shapes import (
        InterfaceShape,
        Shape,
        SumShape,
    )

    Faults = list[str]
    Make = Callable[[bytes, Faults], Value]
    Case = tuple[str, Make | None, bool]
    Symbol = Callable[[int, int], str | None]
    Mapped = Callable[[int, int], bool | None]
    Trusted = frozenset[tuple[str, int]]  # pointers that are checked already

__all__ = [
    "NIL",
    "bounds_checked",
    "by_caller",
    "cast",
    "choice",
    "computed",
    "counted_between",
    "described",
    "difference",
    "either",
    "entry_count",
    "first_of",
    "growth_checked",
    "interface",
    "interface_value",
    "listed",
    "members",
    "none_read",
    "not_fetched",
    "not_negative",
    "notation",
    "optional",
    "partly_read",
    "row_of",
    "summed",
    "tuple_of",
    "type_asserted",
    "type_name",
    "type_switch",
    "up_to_length",
    "variant",
    "variant_checked",
]


def counted_between(ends: Sequence[Make], count: Callable[[bytes], int]) -> Make:
    """``count`` of the record, where both ends could be read."""

    def make(data: bytes, faults: Faults) -> Value:
        if any(one(data, faults) is None for one in ends):
            return None
        return count(data)

    return make


def entry_count(reference: Make, count: Make, room: Make | None) -> Make:
    """The number of entries of a map or channel; a nil one, whose ``reference`` is 0, has none."""

    def make(data: bytes, faults: Faults) -> Value:
        number = count(data, faults)
        size = 0 if room is None or number is None else room(data, faults)
        if not isinstance(number, int) or not isinstance(size, int):
            return None
        return EntryCount(number, None if room is None else size, not reference(data, faults))

    return make


def not_negative(number: Make, path: str) -> Make:
    """A number of elements; less than 0 is a fault."""

    def make(data: bytes, faults: Faults) -> Value:
        found = number(data, faults)
        if isinstance(found, int) and found < 0:
            faults.append(path)
            return None
        return found

    return make


def choice(tag: Make, cases: Mapping[int, Make]) -> Make:
    """One of several values by a number; None where ``cases`` lacks it."""

    def make(data: bytes, faults: Faults) -> Value:
        number = tag(data, faults)
        one = cases.get(number) if isinstance(number, int) else None
        return None if one is None else one(data, faults)

    return make


def members(makers: Sequence[tuple[str, Make]], path: str, left: tuple[str, ...] = ()) -> Make:
    """An object by the names of its members; one fault where none could be read.

    ``left`` are the members that are not fetched.
    """

    def make(data: bytes, faults: Faults) -> Value:
        before = len(faults)
        values = {name: one(data, faults) for name, one in makers}
        if none_read(values.values(), len(faults) - before):
            faults[before:] = [path]
            return None
        return CutStructure(values, left) if left else values

    return make


def none_read(values: Collection[Value], faults: int) -> bool:
    """Whether all values are None, each for a fault; None without a fault is a null."""
    return 0 < len(values) <= faults and all(one is None for one in values)


def difference(
    first: Make, less: Make | int, bits: int | None, pointer: Callable[[int], Value], path: str
) -> Make:
    """A number minus another one, of the same kind as the first.

    An address is cut to ``bits``, and ``pointer`` makes its value.
    """
    mask = -1 if bits is None else (1 << bits) - 1

    def make(data: bytes, faults: Faults) -> Value:
        before = len(faults)
        both = first(data, faults), less if isinstance(less, int) else less(data, faults)
        if isinstance(both[0], int) and isinstance(both[1], int):
            number = both[0] - both[1] & mask
            return type(both[0])(number) if bits is None else pointer(number)
        faults[before:] = [path]
        return None

    return make


def computed(
    terms: Sequence[tuple[Make, Make | None, int, int]], constant: int, is_none: bool, path: str
) -> Make:
    """A number of elements as the sum of its terms (see :class:`fetchc.tracer.value_shapes.Term`).

    A fault: a sum below 0, a difference that is no multiple of ``each``, a term with ``times`` 0
    that is neither 0 nor ``each``.
    """

    def make(data: bytes, faults: Faults) -> Value:
        before, total = len(faults), constant
        for number, less, each, times in terms:
            one = number(data, faults)
            other = 0 if less is None else less(data, faults)
            if not (isinstance(one, int) and isinstance(other, int)):
                difference = None
            else:
                difference = one - other
            if difference is None or not _fits(difference, each, times):
                faults[before:] = [path]
                return None
            total += difference // each * times
        if total < 0:
            faults[before:] = [path]
            return None
        return total == 0 if is_none else total

    return make


def _fits(difference: int, each: int, times: int) -> bool:
    return difference % each == 0 if times else difference in (0, each)


def either(number: Make, at_none: Make, other: Make) -> Make:
    """The first of two values where a number is 0, else the second."""

    def make(data: bytes, faults: Faults) -> Value:
        found = number(data, faults)
        if found is None:
            return None
        return other(data, faults) if found else at_none(data, faults)

    return make


def notation(parts: Make, written: Callable[[dict[str, int]], str | None]) -> Make:
    """An object as one string; the object itself where its numbers are not valid for that."""

    def make(data: bytes, faults: Faults) -> Value:
        found = parts(data, faults)
        if not isinstance(found, dict):
            return None
        numbers = {name: one for name, one in found.items() if isinstance(one, int)}
        text = written(numbers) if len(numbers) == len(found) else None
        return found if text is None else SymbolName(text)

    return make


def optional(reference: Make, inner: Make) -> Make:
    """What a reference points to; None where it is null."""

    def make(data: bytes, faults: Faults) -> Value:
        return inner(data, faults) if reference(data, faults) else None

    return make


# ------------------------------------------------------------------------------
# Values of enums with fields and of tuples (Rust).
#
# A variant is what serde makes of it: the name alone, or an object of one member, which is called
# after it and has its field, a list of its fields or an object of them.


def variant(tag: Make | None, cases: Mapping[int | None, Case]) -> Make:
    """The one of ``cases`` that the number ``tag`` names, else the one of None.

    None, with a fault of the tag, where that could not be read; the number where no case has it.
    """

    def make(data: bytes, faults: Faults) -> Value:
        number: Value = None
        if tag is not None and not isinstance(number := tag(data, faults), int):
            return None
        found = cases.get(number if isinstance(number, int) else None) or cases.get(None)
        if found is None:
            return number
        name, fields, single = found
        if fields is None:
            return SymbolName(name)
        return Variant(name, fields(data, faults), single)

    return make


def not_fetched(count: int) -> Make:
    """The fields of a variant that were not fetched: none of so many."""
    return lambda data, faults: CutList([], count)


def variant_checked(tag: Make, names: Mapping[int | None, str], wanted: str, inner: Make) -> Make:
    """``inner`` where ``tag`` selects the variant ``wanted``, else the selected one's name.

    The other one is not read: its bytes mean something else. One without a name is null.
    """

    def make(data: bytes, faults: Faults) -> Value:
        number = tag(data, faults)
        if not isinstance(number, int):
            return None
        name = names.get(number, names.get(None))
        if name == wanted:
            return inner(data, faults)
        if name == "":
            return None
        return {"variant": number if name is None else SymbolName(name)}

    return make


def tuple_of(makers: Sequence[Make], path: str) -> Make:
    """A tuple; one fault where no part could be read."""

    def make(data: bytes, faults: Faults) -> Value:
        before = len(faults)
        values = [one(data, faults) for one in makers]
        if none_read(values, len(faults) - before):
            faults[before:] = [path]
            return None
        return Tuple(values)

    return make


# ------------------------------------------------------------------------------
# Values that depend on the dynamic type: Go's interfaces, .NET's objects.


NIL = SymbolName("nil")
"""The dynamic type of an interface that holds nothing."""

ERRORS = {number: SymbolName(name) for number, name in errorcode.items()}
"""The system's error numbers by name."""

_MASK = (1 << 64) - 1


def type_name(
    word: Make, start: Make, types: RuntimeTypes, pointer: Callable[[int], Value]
) -> Make:
    """The name of a dynamic type; its address where the program has no type there.

    ``word`` reads the address of its descriptor, ``start`` that of the first descriptor;
    ``pointer`` makes the value of an address.
    """

    def make(data: bytes, faults: Faults) -> Value:
        address, first = word(data, faults), start(data, faults)
        if not isinstance(address, int) or not isinstance(first, int):
            return None
        if address == 0:
            return NIL
        name = types.label(address - first & _MASK)
        return pointer(address) if name is None else SymbolName(name)

    return make


def type_asserted(word: Make, start: Make, name: Make, wanted: int, inner: Make) -> Make:
    """``inner`` where the dynamic type is ``wanted`` bytes from ``start``, else its name."""
    return type_switch(word, start, name, {wanted: inner})


def type_switch(word: Make, start: Make, name: Make, cases: Mapping[int, Make]) -> Make:
    """The case of the dynamic type, by how far it is from ``start``; else that type's name.

    The other values are not read: their bytes mean something else.
    """

    def make(data: bytes, faults: Faults) -> Value:
        address, first = word(data, faults), start(data, faults)
        if not isinstance(address, int) or not isinstance(first, int):
            return None
        inner = cases.get(address - first & _MASK) if address else None
        if inner is not None:
            return inner(data, faults)
        return {"type": name(data, faults)}

    return make


def interface(shape: InterfaceShape, maker: Callable[[Shape, str], Make], path: str) -> Make:
    """The reader of ``shape``; ``maker`` makes the readers of the shapes in it, by their paths."""
    inside = path if shape.inner else f"{path}.value"
    by_distance = {
        one.wanted: described(
            [part if isinstance(part, str) else maker(part, inside) for part in one.parts],
            one.numbered,
        )
        for one in shape.descriptions
    }
    word, start = maker(shape.dynamic.word, path), maker(shape.dynamic.start, path)
    return interface_value(word, start, by_distance, maker(shape.plain, path), shape.inner)


def described(parts: Sequence[str | Make], numbered: bool) -> Make:
    """The strings and values of ``parts``, joined; one value alone as it is; None if one is None.

    ``numbered``: numbers among them are shown as names of errno.
    """

    def make(data: bytes, faults: Faults) -> Value:
        found = [part if isinstance(part, str) else part(data, faults) for part in parts]
        if numbered:
            found = [_error_name(one) for one in found]
        if any(one is None for one in found):
            return None
        return found[0] if len(found) == 1 else "".join([str(one) for one in found])

    return make


def _error_name(one: Value) -> Value:
    # The program's own constants of syscall.Errno have the same names.
    number = one["value"] if isinstance(one, Enumerator) else one
    return ERRORS.get(number, number) if isinstance(number, int) else one


def interface_value(
    word: Make, start: Make, by_distance: Mapping[int, Make], plain: Make, inner: bool
) -> Make:
    """``plain`` of an interface, with the description for its dynamic type by its distance.

    With ``inner`` the one or the other, as a part of a string. Other types' values are not read.
    """

    def make(data: bytes, faults: Faults) -> Value:
        address, first = word(data, faults), start(data, faults)
        describe = None
        if isinstance(address, int) and isinstance(first, int) and address:
            describe = by_distance.get(address - first & _MASK)
        shown = None if describe is None else describe(data, faults)
        if inner:
            return plain(data, faults) if shown is None else shown
        whole = plain(data, faults)
        return (
            whole if describe is None or not isinstance(whole, dict) else whole | {"value": shown}
        )

    return make


def cast(
    types: ObjectTypes,
    wanted: TypeId,
    reference: Make,
    own: Sequence[Make],
    element: Sequence[Make],
    inner: Make,
    otherwise: Make | None = None,
) -> Make:
    """``inner`` where the object of ``reference`` is of type ``wanted``, else ``otherwise``, or
    its type's name.

    ``own`` make the number with the row of its type, the assembly's name and the rank;
    ``element`` the first two of an array's elements, where an array is wanted.
    """
    header = types.header
    rank = types.rank(wanted)
    expected = header.vector
    if rank:
        expected = header.ranks + rank * header.each_rank
    answers: dict[tuple[Value, ...], bool] = {}

    def fits(seen: tuple[Value, ...]) -> bool:
        row, assembly = seen
        return (
            isinstance(row, int)
            and isinstance(assembly, str)
            and types.fits(assembly, row >> header.row[2] & _ROWS, wanted)
        )

    def make(data: bytes, faults: Faults) -> Value:
        if not reference(data, faults):
            return inner(data, faults)
        before = len(faults)
        number, assembly, size = [one(data, faults) for one in own]
        if not isinstance(number, int) or not isinstance(assembly, str):
            return None
        row = number >> header.row[2] & _ROWS
        seen: tuple[Value, ...] = ()
        if row and rank is None:
            seen = (number, assembly)
        elif row == 0 and rank is not None and size == expected:
            seen = tuple([one(data, faults) for one in element])
        if seen and seen not in answers:
            answers[seen] = fits(seen)
        if seen and answers[seen]:
            return inner(data, faults)
        del faults[before:]
        if otherwise is not None:
            return otherwise(data, faults)
        return {"type": SymbolName(types.name(assembly, row) if row else "an array")}

    return make


_ROWS = (1 << 24) - 1


# ------------------------------------------------------------------------------
# Values that depend on the caller, by the return address.

_PROBED = 8
"""Offset of the probed address in a record: kernel/trace/trace_probe.h, uprobe_trace_entry_head."""
_WORD = struct.Struct("=Q")


def by_caller(returned: Make, cases: Mapping[int, Make], symbol: Symbol | None) -> Make:
    """The case of the distance from the probed instruction to the return address.

    For other call sites ``{"caller": ...}``: the calling function, or the address.
    """
    by_distance = {distance & _MASK: one for distance, one in cases.items()}

    def make(data: bytes, faults: Faults) -> Value:
        address = returned(data, faults)
        if not isinstance(address, int):
            return None
        one = by_distance.get(address - _WORD.unpack_from(data, _PROBED)[0] & _MASK)
        if one is not None:
            return one(data, faults)
        (thread,) = THREAD(data, PID)
        # The byte before is in the call; after a call that never returns is another function.
        name = None if symbol is None else symbol(thread, address - 1)
        return {"caller": ReturnAddress(address) if name is None else SymbolName(name)}

    return make


def growth_checked(word: Make, distance: int, inner: Make, path: str) -> Make:
    """``inner``; a fault where the word is the address at ``distance`` from the probe."""
    lost = distance & _MASK

    def make(data: bytes, faults: Faults) -> Value:
        address = word(data, faults)
        if isinstance(address, int):
            if address - _WORD.unpack_from(data, _PROBED)[0] & _MASK != lost:
                return inner(data, faults)
            faults.append(path)
        return None

    return make


def summed(shape: SumShape, word: Make | None, symbol: Symbol | None) -> Make:
    """The low bytes of the sum of a word and a constant, as a number."""
    code, then = meaning(shape.decode, shape.size)
    unpack = struct.Struct("=" + code).unpack
    named = shape.decode.kind == "symbol"
    low = (1 << 8 * shape.size) - 1

    def make(data: bytes, faults: Faults) -> Value:
        first = 0 if word is None else word(data, faults)
        if not isinstance(first, int):
            return None
        total = first + shape.addend & low
        if named and total:
            name = None if symbol is None else symbol(THREAD(data, PID)[0], total)
            return CodeAddress(total) if name is None else SymbolName(name)
        number: int = unpack(total.to_bytes(shape.size, sys.byteorder))[0]
        return number if then is None else then(number)

    return make


# ------------------------------------------------------------------------------
# Lists whose elements are adjacent in the record.


def row_of(values: Callable[[bytes], list[Value]], count: int, total: int) -> Make:
    """All ``count`` values; a cut list where the array has more, ``total``."""
    if total > count:
        return lambda data, faults: CutList(values(data), total)
    return lambda data, faults: values(data)


def listed(makers: Sequence[Make], total: int) -> Make:
    """The values of all ``makers``, as :func:`row`."""

    def make(data: bytes, faults: Faults) -> Value:
        values = [one(data, faults) for one in makers]
        return CutList(values, total) if total > len(makers) else values

    return make


def partly_read(unread: Unread, low: int, high: int, whole: Make, each: Make, path: str) -> Make:
    """A list: ``whole`` where all of its bytes were read, else ``each`` of its elements.

    One fault where none of them could be read.
    """

    def make(data: bytes, faults: Faults) -> Value:
        if not unread.any(data, low, high):
            return whole(data, faults)
        before = len(faults)
        values = each(data, faults)
        assert isinstance(values, list)
        if none_read(values, len(faults) - before):
            faults[before:] = [path]
            return None
        return values

    return make


def bounds_checked(number: Make, least: int, inner: Make, path: str) -> Make:
    """``inner`` where there are at least ``least`` elements, else a fault."""

    def make(data: bytes, faults: Faults) -> Value:
        count = number(data, faults)
        if not isinstance(count, int):
            return None
        if count < least:
            faults.append(path)
            return None
        return inner(data, faults)

    return make


def first_of(makers: Sequence[Make], length_of: Callable[[bytes], int]) -> Make:
    """As many of the values as the length says, or all."""
    return lambda data, faults: [one(data, faults) for one in makers[: length_of(data)]]


def up_to_length(some: Make, length_of: Callable[[bytes], int], most: int) -> Make:
    """The list ``some`` up to its length; ``most`` elements are in the record."""

    def make(data: bytes, faults: Faults) -> Value:
        values = some(data, faults)
        if values is None:
            return None
        assert isinstance(values, list)
        count = length_of(data)
        return CutList(values, count) if count > most else values[:count]

    return make
