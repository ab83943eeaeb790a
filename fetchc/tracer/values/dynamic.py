"""Values whose type is only known when they are read: what Go's interfaces hold, .NET's objects."""

from __future__ import annotations

from errno import errorcode

from fetchc.tracer.values.kinds import Enumerator, SymbolName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fetchc.program.protocol import ObjectTypes, RuntimeTypes
    from fetchc.quantities import TypeId
    from fetchc.tracer.model import Value
    from fetchc.tracer.shape import Shape, Worded

    Faults = list[str]
    Make = Callable[[bytes, Faults], Value]

__all__ = [
    "NIL",
    "asserted",
    "dispatched",
    "of_interface",
    "of_type",
    "told",
    "type_name",
    "worded",
]

NIL = SymbolName("nil")
"""The dynamic type of an interface that holds nothing."""

ERRORS = {number: SymbolName(name) for number, name in errorcode.items()}
"""The system's error numbers by name."""

_MASK = (1 << 64) - 1


def type_name(
    word: Make, start: Make, types: RuntimeTypes, pointer: Callable[[int], Value]
) -> Make:
    """The name of a dynamic type; its address where the program's own types have none there.

    ``word`` makes the address of its descriptor, ``start`` that of the beginning of them all;
    ``pointer`` shows an address.
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


def asserted(word: Make, start: Make, name: Make, wanted: int, inner: Make) -> Make:
    """``inner`` where the dynamic type is ``wanted`` bytes from ``start``, else its name."""
    return dispatched(word, start, name, {wanted: inner})


def dispatched(word: Make, start: Make, name: Make, cases: Mapping[int, Make]) -> Make:
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


def of_interface(shape: Worded, maker: Callable[[Shape], Make]) -> Make:
    """The reader of ``shape``; ``maker`` makes those of the shapes in it."""
    known = {
        one.wanted: told(
            [part if isinstance(part, str) else maker(part) for part in one.parts], one.numbered
        )
        for one in shape.known
    }
    word, start = maker(shape.dynamic.word), maker(shape.dynamic.start)
    return worded(word, start, known, maker(shape.plain), shape.inner)


def told(parts: Sequence[str | Make], numbered: bool) -> Make:
    """The words and values of ``parts`` in a row, one value alone as it is; None where one is none.

    ``numbered``: numbers among them are error numbers of the system, which are told by name.
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


def worded(word: Make, start: Make, known: Mapping[int, Make], plain: Make, inner: bool) -> Make:
    """``plain`` of an interface and, where its dynamic type is one of ``known``, what that makes.

    With ``inner`` the one or the other, to be part of a text. The other types' values are not read.
    """

    def make(data: bytes, faults: Faults) -> Value:
        address, first = word(data, faults), start(data, faults)
        shown = None
        if isinstance(address, int) and isinstance(first, int) and address:
            one = known.get(address - first & _MASK)
            shown = None if one is None else one(data, faults)
        if inner:
            return plain(data, faults) if shown is None else shown
        whole = plain(data, faults)
        return {**whole, "value": shown} if shown is not None and isinstance(whole, dict) else whole

    return make


def of_type(
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
    known: dict[tuple[Value, ...], bool] = {}

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
        if seen and seen not in known:
            known[seen] = fits(seen)
        if seen and known[seen]:
            return inner(data, faults)
        del faults[before:]
        if otherwise is not None:
            return otherwise(data, faults)
        return {"type": SymbolName(types.name(assembly, row) if row else "an array")}

    return make


_ROWS = (1 << 24) - 1
