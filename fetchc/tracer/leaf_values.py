"""Readers of values that contain no other values: numbers, strings, arrays of numbers.

Each checks the pointers on the way to it.
"""

from __future__ import annotations

import struct

from fetchc.tracer.guards import (
    OF_KERNEL,
    OF_PROGRAM,
    MappedCache,
    Presence,
    Unread,
    ZeroCheck,
    address_of_kernel,
    address_of_program,
    guarded,
    names,
)
from fetchc.tracer.number_values import CODES, meaning
from fetchc.tracer.string_values import Texts
from fetchc.tracer.structure_values import first_of, listed, partly_read, row_of
from fetchc.tracer.value_shapes import Leaf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.tracer.events import FaultProbe, Format, Value
    from fetchc.tracer.guards import Residence
    from fetchc.tracer.structure_values import Make, Mapped, Symbol, Trusted
    from fetchc.tracer.value_shapes import Guard, NumbersShape, Shape, StringShape

    There = Callable[[bytes, int], bool | None]

__all__ = ["LeafMakers", "pointers"]

_POINTER = 8  # bytes


class LeafMakers:
    """Readers of values that contain no other values, for the records of one format.

    ``texts`` finds strings; ``there`` says whether a program had memory at an address (None if
    nothing can say it); ``unread``, of records of eBPF programs, what could not be read;
    ``pointer`` makes the value of a pointer.
    """

    def __init__(
        self,
        format: Format,
        fault_probes: tuple[FaultProbe, ...],
        mapped: Mapped | None,
        symbol: Symbol | None,
        of_kernel: bool,
    ) -> None:
        self.format = format
        self._kernel = of_kernel
        self._fields = {field.name: field for field in format.fields}
        self.texts = Texts(format)
        probes = [
            (*self.texts.words(one.field), self.offset(one.pointer, one.offset), one.moved)
            for one in fault_probes
        ]
        asked = None if mapped is None else MappedCache(mapped)
        self.there: There | None = None
        if probes or asked is not None:
            self.there = Presence(probes, self.texts.last, asked)
        self.unread = None if format.bpf is None else Unread(format.bpf)
        self._symbol = symbol
        self.pointer = address_of_kernel if of_kernel else address_of_program

    def maker(self, shape: Shape, path: str, trusted: Trusted) -> Make:
        """The reader of ``shape``; ``trusted`` are the pointers that are checked already."""
        raise NotImplementedError

    def offset(self, field: str, offset: int) -> int:
        """Where ``offset`` bytes into ``field`` are in a record."""
        return self._fields[field].offset + offset

    def _at(self, shape: NumbersShape | StringShape, size: int) -> tuple[int, int]:
        start = self.offset(shape.field, shape.offset)
        return start, start + size

    def _number(self, leaf: Leaf, path: str, trusted: Trusted) -> Make:
        field = self._fields[leaf.field]
        size = leaf.size or field.size
        start = field.offset + leaf.offset
        code, then = meaning(leaf.decode, size, leaf.shift, self.pointer)
        unpack = struct.Struct("=" + code).unpack_from
        make: Make
        if leaf.decode.kind == "symbol" and self._symbol is not None:
            named = names(unpack, start, self._symbol, self.pointer)
            make = lambda data, faults: named(data)[0]  # noqa: E731
        elif then is None:
            make = lambda data, faults: unpack(data, start)[0]  # noqa: E731
        else:
            make = lambda data, faults: then(unpack(data, start)[0])  # noqa: E731
        return self._guarded(make, leaf.guards, path, trusted, (start, start + size))

    def _text(self, leaf: Leaf, path: str) -> Make:
        field = self._fields[leaf.field]
        if leaf.decode.count is None:
            return self.texts.one(field, leaf.decode.limit, path)
        pointers = self.offset(leaf.pointers, leaf.offset) if leaf.pointers else None
        return self.texts.several(field, leaf.decode.count, pointers, leaf.total, path)

    def _row(self, row: NumbersShape) -> Make:
        start = self.offset(row.field, row.offset)
        code, then = meaning(row.decode, row.size, 0, self.pointer)
        unpack = struct.Struct(f"={row.count}{code}").unpack_from
        values: Callable[[bytes], list[Value]]
        if row.decode.kind == "symbol" and self._symbol is not None:
            values = names(unpack, start, self._symbol, self.pointer)
        elif then is None:
            values = lambda data: list(unpack(data, start))  # noqa: E731
        else:
            values = lambda data: [then(one) for one in unpack(data, start)]  # noqa: E731
        return row_of(values, row.count, row.total)

    def _numbers(
        self,
        row: NumbersShape,
        path: str,
        trusted: Trusted,
        length_of: Callable[[bytes], int] | None = None,
    ) -> Make:
        # A row of numbers, up to a length where it has one.
        make, (start, end) = self._row(row), self._at(row, row.count * row.size)
        if self.unread is None:
            return self._guarded(make, row.guards, path, trusted, (start, end))
        each = self._each_number(row, path, trusted)
        some = listed(each, row.total) if length_of is None else first_of(each, length_of)
        make = partly_read(self.unread, start, end, make, some, path)
        return self._guarded(make, row.guards, path, trusted, None)

    def _each_number(self, row: NumbersShape, path: str, trusted: Trusted) -> list[Make]:
        # Each by itself: some of them may be in a page that could not be read.
        starts = [row.offset + row.size * index for index in range(row.count)]
        leaves = [Leaf(row.field, row.decode, start, row.size) for start in starts]
        return [self.maker(one, f"{path}[{index}]", trusted) for index, one in enumerate(leaves)]

    def _bare(self, leaf: Leaf) -> Callable[[bytes], int]:
        field = self._fields[leaf.field]
        size, start = leaf.size or field.size, field.offset + leaf.offset
        unpack = struct.Struct("=" + CODES[size]).unpack_from
        shift, mask = leaf.shift, (1 << (leaf.decode.bits or 8 * size)) - 1
        if not shift and mask >> 8 * size - 1:
            return lambda data: unpack(data, start)[0]
        return lambda data: unpack(data, start)[0] >> shift & mask

    def _guarded(
        self,
        make: Make,
        guards: tuple[Guard, ...],
        path: str,
        trusted: Trusted,
        zero: tuple[int, int] | None,
        none: Value = 0,
    ) -> Make:
        """``make`` with its guard checks; ``zero`` are the bytes that are 0 after faults."""
        if self.unread is not None:
            return self._all_read(self.unread, make, guards, path, trusted, zero, none)
        if len(guards) > 1 and guards[-1].empty:
            # NULL there may be a pointer that could not be loaded.
            *before, last = guards
            start = self.offset(last.field, last.offset)
            make = self._guarded(make, (last,), path, trusted, zero, none)
            return self._guarded(make, tuple(before), path, trusted, (start, start + _POINTER))
        checks = [
            (
                self.offset(guard.field, guard.offset),
                guard.moved,
                guard.empty,
                OF_KERNEL if guard.kernel else OF_PROGRAM,
            )
            for guard in guards
            if (guard.field, guard.offset) not in trusted
        ]
        doubt = None
        residence = self._residence(guards[-1]) if guards and zero is not None else None
        if residence is not None and zero is not None:
            from fetchc.tracer.guards import if_resident

            make = if_resident(make, residence, guards[-1].moved, zero[1] - zero[0], path)
        elif zero is not None and guards and self.there is not None and not guards[-1].kernel:
            last = guards[-1]
            place = self.offset(last.field, last.offset), last.moved
            doubt = ZeroCheck(*zero, *place, self.there)
        return guarded(make, checks, doubt, path, none)

    def _all_read(
        self,
        unread: Unread,
        make: Make,
        guards: tuple[Guard, ...],
        path: str,
        trusted: Trusted,
        bytes_of: tuple[int, int] | None,
        none: Value,
    ) -> Make:
        # The pointers first, from the outside in: one that is NULL may be so on purpose.
        if bytes_of is not None:
            make = unread.checked(make, *bytes_of, path)
        for guard in reversed(guards):
            if (guard.field, guard.offset) in trusted:
                continue
            start = self.offset(guard.field, guard.offset)
            bounds = OF_KERNEL if guard.kernel else OF_PROGRAM
            check = start, guard.moved, guard.empty, bounds
            make = guarded(make, [check], None, path, none)
            make = unread.checked(make, start, start + _POINTER, path)
        return make

    def _residence(self, guard: Guard) -> Residence | None:
        if not guard.read_checks or self.unread is not None:
            return None
        from fetchc.tracer.guards import Residence

        fields = [(self._fields[name], behind) for name, behind in guard.read_checks]
        texts = [(self.texts.one(field, None, field.name), behind) for field, behind in fields]
        return Residence(self.offset(guard.field, guard.offset), texts)


def pointers(guards: tuple[Guard, ...]) -> Trusted:
    """The pointers of guards, for values that are loaded through them to trust."""
    return frozenset([(guard.field, guard.offset) for guard in guards])
