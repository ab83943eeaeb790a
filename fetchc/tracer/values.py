"""Records become values: the decoders of a plan, prepared once for the format of its event."""

from __future__ import annotations

import struct

from fetchc.record import assert_never
from fetchc.tracer.guards import (
    OF_KERNEL,
    OF_PROGRAM,
    PID,
    THREAD,
    Doubt,
    Remembered,
    by_length,
    guarded,
)
from fetchc.tracer.kinds import CutList, Hexadecimal, SymbolName
from fetchc.tracer.numbers import numbers
from fetchc.tracer.scalars import CODES, meaning
from fetchc.tracer.shape import (
    Asserted,
    Between,
    Bytes,
    Items,
    Leaf,
    Members,
    Referred,
    Row,
    Sequence,
    TypeName,
)
from fetchc.tracer.texts import Texts, bounded, counted, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.tracer.model import Format, Plan, Value
    from fetchc.tracer.numbers import Numbers
    from fetchc.tracer.shape import Guard, Shape

    Faults = list[str]
    # The record, and the list that takes the path of what could not be read.
    Make = Callable[[bytes, Faults], Value]
    Mapped = Callable[[int, int], bool | None]
    Symbol = Callable[[int, int], str | None]
    Trusted = frozenset[tuple[str, int]]  # pointers that were looked at before

__all__ = ["reader"]


def reader(
    plan: Plan, format: Format, mapped: Mapped | None = None, symbol: Symbol | None = None
) -> Callable[[bytes], tuple[dict[str, Value], tuple[str, ...]]]:
    """What takes a record of ``plan``'s event and gives its values by label, and the faults.

    A fault is the label of a value that could not be read, and is None then; of one inside of a
    value, with the way to it (``r.name``, ``rows[2]``).

    ``mapped(thread, address)`` says whether a program has memory at an address: a number that
    the kernel could not load from behind a plausible pointer is 0 in the record, as is one that
    is 0 (see ``guards``); None where it cannot be known, and then 0 stands.
    ``symbol(thread, address)`` gives the name of what is at an address, None for a plain number.
    """
    preparing = _Preparing(format, mapped, symbol)
    makers = [
        (one.label, preparing.maker(one.shape, one.label, frozenset())) for one in plan.values
    ]

    def closely(data: bytes) -> tuple[dict[str, Value], tuple[str, ...]]:
        faults: Faults = []
        values = {label: make(data, faults) for label, make in makers}
        return values, tuple(faults)

    found = preparing.numbers(plan)
    if found is None:
        return closely
    plain, at_once = found
    others = [(label, make) for label, make in makers if label not in plain]

    def read(data: bytes) -> tuple[dict[str, Value], tuple[str, ...]]:
        values = at_once(data)
        if values is None:
            return closely(data)
        if not others:
            return values, ()
        faults: Faults = []
        for label, make in others:
            values[label] = make(data, faults)
        return values, tuple(faults)

    return read


class _Preparing:
    """Makers of values for the records of one format."""

    def __init__(self, format: Format, mapped: Mapped | None, symbol: Symbol | None) -> None:
        self._fields = {field.name: field for field in format.fields}
        self._texts = Texts(format)
        self._mapped = None if mapped is None else Remembered(mapped)
        self._symbol = symbol

    def numbers(self, plan: Plan) -> tuple[frozenset[str], Numbers] | None:
        """What gives all plain numbers of a plan at once, and which those are."""
        return numbers(plan.values, self._fields, self._mapped)

    def maker(self, shape: Shape, path: str, trusted: Trusted) -> Make:
        """What makes the value of ``shape``; ``trusted`` are the pointers looked at."""
        match shape:
            case Leaf(decode=decode) if decode.kind == "text":
                make = self._texts.maker(self._fields[shape.field], decode, shape.total, path)
                return self._guarded(make, shape.guards, path, trusted, None)
            case Leaf():
                return self._number(shape, path, trusted)
            case Row():
                make = self._row(shape)
                size = shape.count * shape.size
                return self._guarded(make, shape.guards, path, trusted, self._at(shape, size))
            case Bytes(length=None):
                zero = self._at(shape, shape.size)
                make = bounded(*zero, shape.kind, whole=shape.limit == shape.size)
                return self._guarded(make, shape.guards, path, trusted, zero)
            case Bytes():
                return self._counted(shape, path, trusted)
            case Items():
                return self._items(shape, path, trusted)
            case Sequence():
                return self._sequence(shape, path, trusted)
            case Members():
                return self._members(shape, path, trusted)
            case TypeName(word=word, start=start, types=types):
                from fetchc.tracer.dynamic import type_name

                makers = [self.maker(one, path, trusted) for one in (word, start)]
                return type_name(makers[0], makers[1], types)
            case Asserted():
                return self._asserted(shape, path, trusted)
            case Referred():
                return self._referred(shape, path, trusted)
            case _:
                assert_never(shape)

    def _offset(self, field: str, offset: int) -> int:
        return self._fields[field].offset + offset

    def _at(self, shape: Row | Bytes, size: int) -> tuple[int, int]:
        start = self._offset(shape.field, shape.offset)
        return start, start + size

    def _number(self, leaf: Leaf, path: str, trusted: Trusted) -> Make:
        field = self._fields[leaf.field]
        size = leaf.size or field.size
        start = field.offset + leaf.offset
        code, then = meaning(leaf.decode, size, leaf.shift)
        unpack = struct.Struct("=" + code).unpack_from
        make: Make
        if leaf.decode.kind == "symbol" and self._symbol is not None:
            make = _named(unpack, start, self._symbol)
        elif then is None:
            make = lambda data, faults: unpack(data, start)[0]  # noqa: E731
        else:
            make = lambda data, faults: then(unpack(data, start)[0])  # noqa: E731
        return self._guarded(make, leaf.guards, path, trusted, (start, start + size))

    def _row(self, row: Row) -> Make:
        start = self._offset(row.field, row.offset)
        code, then = meaning(row.decode, row.size)
        unpack = struct.Struct(f"={row.count}{code}").unpack_from
        cut = row.total > row.count

        def make(data: bytes, faults: Faults) -> Value:
            numbers = unpack(data, start)
            values = list(numbers) if then is None else [then(one) for one in numbers]
            return CutList(values, row.total) if cut else values

        return make

    def _counted(self, text: Bytes, path: str, trusted: Trusted) -> Make:
        assert text.length is not None
        start, end = self._at(text, text.size)
        length = self.maker(text.length, path, trusted)
        known = trusted | _pointers(text.length.guards)
        inner = counted(start, text.size, text.kind, self._bare(text.length))
        # Zeros behind the text's own end say nothing, so that its end is in doubt only
        # where all of the bytes are 0.
        behind = self._guarded(inner, text.guards, path, known, (start, end))
        return by_length(length, behind, str, path)

    def _bare(self, leaf: Leaf) -> Callable[[bytes], int]:
        field = self._fields[leaf.field]
        size, start = leaf.size or field.size, field.offset + leaf.offset
        unpack = struct.Struct("=" + CODES[size]).unpack_from
        return lambda data: unpack(data, start)[0]

    def _items(self, items: Items, path: str, trusted: Trusted) -> Make:
        makers = self._each(items, path, trusted)
        if items.text:
            return joined(makers)
        total = items.total
        cut = total > len(makers)

        def make(data: bytes, faults: Faults) -> Value:
            values = [one(data, faults) for one in makers]
            return CutList(values, total) if cut else values

        return self._guarded(make, items.guards, path, trusted, None)

    def _each(self, items: Items, path: str, trusted: Trusted) -> list[Make]:
        known = trusted | _pointers(items.guards)
        named = enumerate(items.items)
        return [self.maker(one, f"{path}[{index}]", known) for index, one in named]

    def _sequence(self, sequence: Sequence, path: str, trusted: Trusted) -> Make:
        length: Make
        if isinstance(sequence.length, Between):
            length = self._between(sequence.length, path, trusted)
            length_of = self._count(sequence.length)
            guards = (*sequence.length.start.guards, *sequence.length.end.guards)
        else:
            length = self.maker(sequence.length, path, trusted)
            length_of = self._bare(sequence.length)
            guards = sequence.length.guards
        known = trusted | _pointers(guards)
        elements = sequence.elements
        if isinstance(elements, Row):
            some, most = self.maker(elements, path, known), elements.count
        else:
            makers, most = self._each(elements, path, known), len(elements.items)

            def firsts(data: bytes, faults: Faults) -> Value:
                return [one(data, faults) for one in makers[: length_of(data)]]

            some = self._guarded(firsts, elements.guards, path, known, None)

        def make(data: bytes, faults: Faults) -> Value:
            values = some(data, faults)
            if values is None:
                return None
            assert isinstance(values, list)
            count = length_of(data)
            return CutList(values, count) if count > most else values[:count]

        return by_length(length, make, list, path)

    def _between(self, length: Between, path: str, trusted: Trusted) -> Make:
        ends = [self.maker(one, path, trusted) for one in (length.start, length.end)]
        count = self._count(length)

        def make(data: bytes, faults: Faults) -> Value:
            if any(one(data, faults) is None for one in ends):
                return None
            return count(data)

        return make

    def _count(self, length: Between) -> Callable[[bytes], int]:
        # Less than none where what the object holds are no two ends of one array.
        start, end, each = self._bare(length.start), self._bare(length.end), length.each

        def count(data: bytes) -> int:
            number, rest = divmod(end(data) - start(data), each)
            return -1 if rest else number

        return count

    def _members(self, shape: Members, path: str, trusted: Trusted) -> Make:
        known = trusted | _pointers(shape.guards)
        makers = [(name, self.maker(one, f"{path}.{name}", known)) for name, one in shape.members]

        def make(data: bytes, faults: Faults) -> Value:
            before = len(faults)
            values = {name: one(data, faults) for name, one in makers}
            if len(faults) > before and all(value is None for value in values.values()):
                faults[before:] = [path]
                return None
            return values

        return self._guarded(make, shape.guards, path, trusted, None)

    def _referred(self, shape: Referred, path: str, trusted: Trusted) -> Make:
        reference = self.maker(shape.reference, path, trusted)
        inner = self.maker(shape.inner, path, trusted | _pointers(shape.reference.guards))

        def make(data: bytes, faults: Faults) -> Value:
            return inner(data, faults) if reference(data, faults) else None

        return make

    def _asserted(self, shape: Asserted, path: str, trusted: Trusted) -> Make:
        from fetchc.tracer.dynamic import asserted

        word, start = shape.dynamic.word, shape.dynamic.start
        return asserted(
            self.maker(word, path, trusted),
            self.maker(start, path, trusted),
            self.maker(shape.dynamic, path, trusted),
            shape.wanted,
            self.maker(shape.inner, path, trusted),
        )

    def _guarded(
        self,
        make: Make,
        guards: tuple[Guard, ...],
        path: str,
        trusted: Trusted,
        zero: tuple[int, int] | None,
    ) -> Make:
        """``make`` behind its guards; ``zero`` are the bytes that are 0 after a fault."""
        checks = [
            (
                self._offset(guard.field, guard.offset),
                guard.moved,
                guard.empty,
                OF_KERNEL if guard.kernel else OF_PROGRAM,
            )
            for guard in guards
            if (guard.field, guard.offset) not in trusted
        ]
        doubt = None
        if zero is not None and guards and self._mapped is not None and not guards[-1].kernel:
            last = guards[-1]
            place = self._offset(last.field, last.offset), last.moved
            doubt = Doubt(*zero, *place, self._mapped)
        return guarded(make, checks, doubt, path)


def _pointers(guards: tuple[Guard, ...]) -> Trusted:
    return frozenset([(guard.field, guard.offset) for guard in guards])


def _named(unpack: Callable[..., tuple[int, ...]], start: int, symbol: Symbol) -> Make:
    def make(data: bytes, faults: Faults) -> Value:
        (address,) = unpack(data, start)
        if not address:
            return Hexadecimal(0)
        name = symbol(THREAD(data, PID)[0], address)
        return Hexadecimal(address) if name is None else SymbolName(name)

    return make
