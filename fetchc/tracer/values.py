"""Records become values: the decoders of a plan, prepared once for the format of its event."""

from __future__ import annotations

import struct

from fetchc.record import assert_never
from fetchc.tracer.guards import HIGHEST, LOWEST, Remembered
from fetchc.tracer.kinds import CutList, CutText, Hexadecimal, SymbolName
from fetchc.tracer.scalars import CODES, meaning
from fetchc.tracer.shape import (
    Asserted,
    Bytes,
    Items,
    Leaf,
    Members,
    Row,
    Sequence,
    TypeName,
)
from fetchc.tracer.texts import Texts, decoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.tracer.model import Format, Plan, Value
    from fetchc.tracer.shape import Guard, Shape

    Faults = list[str]
    # The record, and the list that takes the path of what could not be read.
    Make = Callable[[bytes, Faults], Value]
    Mapped = Callable[[int, int], bool | None]
    Symbol = Callable[[int, int], str | None]
    Address = Callable[[bytes], int]
    Trusted = frozenset[tuple[str, int]]  # pointers that were looked at before

__all__ = ["reader"]

_WORD = struct.Struct("=Q").unpack_from
_THREAD = struct.Struct("=i").unpack_from
_PID = 4  # offset of common_pid in every record: include/linux/trace_events.h, struct trace_entry
_MASK = (1 << 64) - 1


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

    def read(data: bytes) -> tuple[dict[str, Value], tuple[str, ...]]:
        faults: Faults = []
        values = {label: make(data, faults) for label, make in makers}
        return values, tuple(faults)

    return read


class _Preparing:
    """Makers of values for the records of one format."""

    def __init__(self, format: Format, mapped: Mapped | None, symbol: Symbol | None) -> None:
        self._fields = {field.name: field for field in format.fields}
        self._texts = Texts(format)
        self._mapped = None if mapped is None else Remembered(mapped)
        self._symbol = symbol

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
                make = self._bounded(shape)
                zero = self._at(shape, shape.size)
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

    def _bounded(self, text: Bytes) -> Make:
        # To the first NUL, or to the end of its object.
        start, end = self._at(text, text.size)
        whole = text.limit == text.size

        def make(data: bytes, faults: Faults) -> Value:
            stop = data.find(b"\0", start, end)
            if stop >= 0 or whole:
                return decoded(data[start : end if stop < 0 else stop], text.kind)
            return CutText(decoded(data[start:end], text.kind, cut=True), None)

        return make

    def _counted(self, text: Bytes, path: str, trusted: Trusted) -> Make:
        assert text.length is not None
        start, end = self._at(text, text.size)
        width = 2 if text.kind == "utf-16" else 1
        length = self.maker(text.length, path, trusted)

        def make(data: bytes, faults: Faults) -> Value:
            bytes_ = width * length_of(data)
            if bytes_ <= text.size:
                return decoded(data[start : start + bytes_], text.kind)
            return CutText(decoded(data[start:end], text.kind, cut=True), bytes_ // width)

        length_of = self._bare(text.length)
        known = trusted | _pointers(text.length.guards)
        behind = self._guarded(make, text.guards, path, known, None)
        at = self._address(text.guards)
        mapped = self._mapped

        def counted(data: bytes, faults: Faults) -> Value:
            count = length(data, faults)
            if count is None:
                return None
            assert isinstance(count, int)
            if count == 0:
                return ""
            if not 0 < count < HIGHEST:
                faults.append(path)  # no length that a program could have made
                return None
            if mapped is not None and at is not None:
                stop = min(end, start + width * count)
                if not any(data[start:stop]) and mapped(_THREAD(data, _PID)[0], at(data)) is False:
                    faults.append(path)
                    return None
            return behind(data, faults)

        return counted

    def _bare(self, leaf: Leaf) -> Callable[[bytes], int]:
        field = self._fields[leaf.field]
        size, start = leaf.size or field.size, field.offset + leaf.offset
        unpack = struct.Struct("=" + CODES[size]).unpack_from
        return lambda data: unpack(data, start)[0]

    def _items(self, items: Items, path: str, trusted: Trusted) -> Make:
        known = trusted | _pointers(items.guards)
        makers = [
            self.maker(one, f"{path}[{index}]", known) for index, one in enumerate(items.items)
        ]
        total = items.total
        cut = total > len(makers)
        if items.text:
            return _joined(makers)

        def make(data: bytes, faults: Faults) -> Value:
            values = [one(data, faults) for one in makers]
            return CutList(values, total) if cut else values

        return self._guarded(make, items.guards, path, trusted, None)

    def _sequence(self, sequence: Sequence, path: str, trusted: Trusted) -> Make:
        length = self.maker(sequence.length, path, trusted)
        known = trusted | _pointers(sequence.length.guards)
        elements = sequence.elements
        if isinstance(elements, Row):
            some = self.maker(elements, path, known)
            most = elements.count
        else:
            most = len(elements.items)
        makers = []
        if isinstance(elements, Items):
            within = known | _pointers(elements.guards)
            makers = [
                self.maker(one, f"{path}[{index}]", within)
                for index, one in enumerate(elements.items)
            ]

            def firsts(data: bytes, faults: Faults) -> Value:
                count = length_of(data)
                return [one(data, faults) for one in makers[:count]]

            length_of = self._bare(sequence.length)
            some = self._guarded(firsts, elements.guards, path, known, None)

        def make(data: bytes, faults: Faults) -> Value:
            count = length(data, faults)
            if count is None:
                return None
            assert isinstance(count, int)
            if count == 0:
                return []
            if not 0 < count < HIGHEST:
                faults.append(path)
                return None
            values = some(data, faults)
            if values is None:
                return None
            assert isinstance(values, list)
            if count > most:
                return CutList(values, count)
            return values[:count]

        return make

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

    def _address(self, guards: tuple[Guard, ...]) -> Address | None:
        if not guards:
            return None
        last = guards[-1]
        start, moved = self._offset(last.field, last.offset), last.moved
        return lambda data: _WORD(data, start)[0] + moved & _MASK

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
            (self._offset(guard.field, guard.offset), guard.moved, guard.empty)
            for guard in guards
            if (guard.field, guard.offset) not in trusted
        ]
        at = self._address(guards)
        mapped = self._mapped if zero is not None and at is not None else None
        if not checks and mapped is None:
            return make
        low, high = zero or (0, 0)
        nothing = bytes(high - low)

        def guarded(data: bytes, faults: Faults) -> Value:
            for start, moved, empty in checks:
                pointer = _WORD(data, start)[0]
                if not LOWEST <= pointer + moved & _MASK < HIGHEST or pointer < LOWEST:
                    if empty and pointer == 0:
                        return 0
                    faults.append(path)
                    return None
            if mapped is not None and data[low:high] == nothing:
                assert at is not None
                if mapped(_THREAD(data, _PID)[0], at(data)) is False:
                    faults.append(path)
                    return None
            return make(data, faults)

        return guarded


def _joined(makers: list[Make]) -> Make:
    # Characters in registers, each a value of its own: there is nothing that can fault.
    def make(data: bytes, faults: Faults) -> Value:
        text = "".join([str(one(data, faults)) for one in makers])
        return decoded(text.partition("\0")[0].encode("utf-8", "surrogateescape"))

    return make


def _pointers(guards: tuple[Guard, ...]) -> Trusted:
    return frozenset([(guard.field, guard.offset) for guard in guards])


def _named(unpack: Callable[..., tuple[int, ...]], start: int, symbol: Symbol) -> Make:
    def make(data: bytes, faults: Faults) -> Value:
        (address,) = unpack(data, start)
        if not address:
            return Hexadecimal(0)
        name = symbol(_THREAD(data, _PID)[0], address)
        return Hexadecimal(address) if name is None else SymbolName(name)

    return make
