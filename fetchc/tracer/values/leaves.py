"""Makers of single values and of rows of numbers, behind the pointers that led to them."""

from __future__ import annotations

import struct

from fetchc.tracer.values.addresses import address_of_kernel, address_of_program
from fetchc.tracer.values.guards import OF_KERNEL, OF_PROGRAM, Doubt, Presence, Remembered, guarded
from fetchc.tracer.values.lists import row as in_row
from fetchc.tracer.values.numbers import numbers
from fetchc.tracer.values.scalars import CODES, meaning
from fetchc.tracer.values.symbolic import names
from fetchc.tracer.values.texts import Texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.tracer.model import Format, Plan, Value, Witness
    from fetchc.tracer.shape import Bytes, Guard, Leaf, Row, Shape
    from fetchc.tracer.values.numbers import Numbers
    from fetchc.tracer.values.residence import Told

    Faults = list[str]
    # The record, and the list that takes the path of what could not be read.
    Make = Callable[[bytes, Faults], Value]
    Mapped = Callable[[int, int], bool | None]
    There = Callable[[bytes, int], bool | None]
    Symbol = Callable[[int, int], str | None]
    Trusted = frozenset[tuple[str, int]]  # pointers that were looked at before

__all__ = ["Leaves", "pointers"]

_POINTER = 8  # bytes


class Leaves:
    """Makers of what is made of nothing else, for the records of one format."""

    def __init__(
        self,
        format: Format,
        witnesses: tuple[Witness, ...],
        mapped: Mapped | None,
        symbol: Symbol | None,
        of_kernel: bool,
    ) -> None:
        self._fields = {field.name: field for field in format.fields}
        self._texts = Texts(format)
        told = [
            (*self._texts.words(one.field), self._offset(one.pointer, one.offset), one.moved)
            for one in witnesses
        ]
        asked = None if mapped is None else Remembered(mapped)
        self._there: There | None = None
        if told or asked is not None:
            self._there = Presence(told, self._texts.last, asked)
        self._symbol = symbol
        self._pointer = address_of_kernel if of_kernel else address_of_program

    def numbers(self, plan: Plan) -> tuple[frozenset[str], Numbers] | None:
        """What gives all plain numbers of a plan at once, and which those are."""
        return numbers(plan.values, self._fields, self._there)

    def maker(self, shape: Shape, path: str, trusted: Trusted) -> Make:
        """What makes the value of ``shape``; ``trusted`` are the pointers looked at."""
        raise NotImplementedError

    def _offset(self, field: str, offset: int) -> int:
        return self._fields[field].offset + offset

    def _at(self, shape: Row | Bytes, size: int) -> tuple[int, int]:
        start = self._offset(shape.field, shape.offset)
        return start, start + size

    def _number(self, leaf: Leaf, path: str, trusted: Trusted) -> Make:
        field = self._fields[leaf.field]
        size = leaf.size or field.size
        start = field.offset + leaf.offset
        code, then = meaning(leaf.decode, size, leaf.shift, self._pointer)
        unpack = struct.Struct("=" + code).unpack_from
        make: Make
        if leaf.decode.kind == "symbol" and self._symbol is not None:
            named = names(unpack, start, self._symbol, self._pointer)
            make = lambda data, faults: named(data)[0]  # noqa: E731
        elif then is None:
            make = lambda data, faults: unpack(data, start)[0]  # noqa: E731
        else:
            make = lambda data, faults: then(unpack(data, start)[0])  # noqa: E731
        return self._guarded(make, leaf.guards, path, trusted, (start, start + size))

    def _text(self, leaf: Leaf, path: str) -> Make:
        field = self._fields[leaf.field]
        if leaf.decode.count is None:
            return self._texts.one(field, leaf.decode.limit, path)
        pointers = self._offset(leaf.pointers, leaf.offset) if leaf.pointers else None
        return self._texts.several(field, leaf.decode.count, pointers, leaf.total, path)

    def _row(self, row: Row) -> Make:
        start = self._offset(row.field, row.offset)
        code, then = meaning(row.decode, row.size, 0, self._pointer)
        unpack = struct.Struct(f"={row.count}{code}").unpack_from
        values: Callable[[bytes], list[Value]]
        if row.decode.kind == "symbol" and self._symbol is not None:
            values = names(unpack, start, self._symbol, self._pointer)
        elif then is None:
            values = lambda data: list(unpack(data, start))  # noqa: E731
        else:
            values = lambda data: [then(one) for one in unpack(data, start)]  # noqa: E731
        return in_row(values, row.count, row.total)

    def _bare(self, leaf: Leaf) -> Callable[[bytes], int]:
        field = self._fields[leaf.field]
        size, start = leaf.size or field.size, field.offset + leaf.offset
        unpack = struct.Struct("=" + CODES[size]).unpack_from
        return lambda data: unpack(data, start)[0]

    def _guarded(
        self,
        make: Make,
        guards: tuple[Guard, ...],
        path: str,
        trusted: Trusted,
        zero: tuple[int, int] | None,
        none: Value = 0,
    ) -> Make:
        """``make`` behind its guards; ``zero`` are the bytes that are 0 after a fault."""
        if len(guards) > 1 and guards[-1].empty:
            # NULL there may be a pointer that could not be loaded.
            *before, last = guards
            start = self._offset(last.field, last.offset)
            make = self._guarded(make, (last,), path, trusted, zero, none)
            return self._guarded(make, tuple(before), path, trusted, (start, start + _POINTER))
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
        told = self._told(guards[-1]) if guards and zero is not None else None
        if told is not None and zero is not None:
            from fetchc.tracer.values.residence import if_there

            make = if_there(make, told, guards[-1].moved, zero[1] - zero[0], path)
        elif zero is not None and guards and self._there is not None and not guards[-1].kernel:
            last = guards[-1]
            place = self._offset(last.field, last.offset), last.moved
            doubt = Doubt(*zero, *place, self._there)
        return guarded(make, checks, doubt, path, none)

    def _told(self, guard: Guard) -> Told | None:
        if not guard.told:
            return None
        from fetchc.tracer.values.residence import Told

        fields = [(self._fields[name], behind) for name, behind in guard.told]
        texts = [(self._texts.one(field, None, field.name), behind) for field, behind in fields]
        return Told(self._offset(guard.field, guard.offset), texts)


def pointers(guards: tuple[Guard, ...]) -> Trusted:
    """The pointers of guards, for what is behind them to trust."""
    return frozenset([(guard.field, guard.offset) for guard in guards])
