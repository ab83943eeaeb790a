"""Records become values: the decoders of a plan, prepared once for the format of its event."""

from __future__ import annotations

import struct

from fetchc.record import assert_never
from fetchc.tracer.shape import (
    Asserted,
    Between,
    Bytes,
    Called,
    Choice,
    Difference,
    Either,
    Grid,
    Items,
    Leaf,
    Members,
    Noted,
    OfType,
    OfVariant,
    Ranged,
    Reckoned,
    Referred,
    Row,
    Sequence,
    Sum,
    TypeName,
    Variants,
    Worded,
)
from fetchc.tracer.values.combined import (
    chosen,
    counted_between,
    difference,
    either,
    members,
    not_below_none,
    noted,
    reckoned,
    referred,
)
from fetchc.tracer.values.guards import (
    OF_KERNEL,
    OF_PROGRAM,
    Doubt,
    Remembered,
    by_length,
    guarded,
)
from fetchc.tracer.values.lists import first_of, listed, up_to_length
from fetchc.tracer.values.lists import row as in_row
from fetchc.tracer.values.numbers import numbers
from fetchc.tracer.values.scalars import CODES, meaning
from fetchc.tracer.values.symbolic import names
from fetchc.tracer.values.texts import Texts, bounded, counted, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.tracer.model import Format, Plan, Value
    from fetchc.tracer.shape import Guard, Shape
    from fetchc.tracer.values.numbers import Numbers
    from fetchc.tracer.values.ranges import Read
    from fetchc.tracer.values.residence import Told

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
                make = self._text(shape, path)
                return self._guarded(make, shape.guards, path, trusted, None, none=None)
            case Leaf():
                return self._number(shape, path, trusted)
            case Row():
                make = self._row(shape)
                size = shape.count * shape.size
                return self._guarded(make, shape.guards, path, trusted, self._at(shape, size))
            case Bytes(length=None, limit=None, kind="utf-16" | "utf-32"):
                return self._wide(shape, path, trusted)
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
            case Ranged():
                return self._ranged(shape, path, trusted)
            case Members():
                return self._members(shape, path, trusted)
            case Noted():
                return self._noted(shape, path, trusted)
            case Difference():
                return self._difference(shape, path, trusted)
            case Between():
                return self._number_between(shape, path, trusted)
            case Reckoned():
                return self._reckoned(shape, path, trusted)
            case Either():
                number = self._reckoned(shape.number, path, trusted)
                both = [self.maker(one, path, trusted) for one in (shape.at_none, shape.other)]
                return either(number, both[0], both[1])
            case Choice():
                return self._choice(shape, path, trusted)
            case OfVariant():
                return self._of_variant(shape, path, trusted)
            case Variants():
                return self._variants(shape, path, trusted)
            case Called(returned=returned, cases=cases):
                from fetchc.tracer.values.called import called

                known = {distance: self.maker(one, path, trusted) for distance, one in cases}
                return called(self.maker(returned, path, trusted), known, self._symbol)
            case Sum(word=word):
                from fetchc.tracer.values.called import summed

                inner = None if word is None else self.maker(word, path, trusted)
                return summed(shape, inner, self._symbol)
            case Grid():
                from fetchc.tracer.values.grids import gridded

                lengths = [self.maker(one, path, trusted) for one in shape.lengths]
                return gridded(self.maker(shape.flat, path, trusted), lengths, shape.indices, path)
            case TypeName(word=word, start=start, types=types):
                from fetchc.tracer.values.dynamic import type_name

                makers = [self.maker(one, path, trusted) for one in (word, start)]
                return type_name(makers[0], makers[1], types)
            case Asserted():
                return self._asserted(shape, path, trusted)
            case OfType():
                return self._of_type(shape, path, trusted)
            case Referred():
                return self._referred(shape, path, trusted)
            case Worded():
                from fetchc.tracer.values.dynamic import of_interface

                return of_interface(shape, lambda one: self.maker(one, path, trusted))
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
            named = names(unpack, start, self._symbol)
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
        code, then = meaning(row.decode, row.size)
        unpack = struct.Struct(f"={row.count}{code}").unpack_from
        values: Callable[[bytes], list[Value]]
        if row.decode.kind == "symbol" and self._symbol is not None:
            values = names(unpack, start, self._symbol)
        elif then is None:
            values = lambda data: list(unpack(data, start))  # noqa: E731
        else:
            values = lambda data: [then(one) for one in unpack(data, start)]  # noqa: E731
        return in_row(values, row.count, row.total)

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
        if items.parts:
            from fetchc.tracer.values.variants import parts

            return self._guarded(parts(makers, path), items.guards, path, trusted, None)
        return self._guarded(listed(makers, items.total), items.guards, path, trusted, None)

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
        if sequence.start is not None:
            part = self._window(sequence, sequence.start, length_of, path, known)
            return by_length(length, part, list, path)
        if isinstance(elements, Row):
            some, most = self.maker(elements, path, known), elements.count
        else:
            makers, most = self._each(elements, path, known), len(elements.items)
            firsts = first_of(makers, length_of)
            some = self._guarded(firsts, elements.guards, path, known, None)
        return by_length(length, up_to_length(some, length_of, most), list, path)

    def _wide(self, text: Bytes, path: str, trusted: Trusted) -> Make:
        from fetchc.tracer.values.ranges import up_to_nul

        begin = self._offset(text.field, text.offset)
        make = up_to_nul(begin, text.size, text.kind, self._read(text), path)
        return self._guarded(make, text.guards, path, trusted, None, none=None)

    def _read(self, elements: Row | Bytes) -> Read | None:
        if not elements.guards or elements.guards[-1].kernel:
            return None
        from fetchc.tracer.values.ranges import Read

        last, begin = elements.guards[-1], self._offset(elements.field, elements.offset)
        place = self._offset(last.field, last.offset)
        return Read(begin, place, last.moved, self._mapped, self._told(last))

    def _ranged(self, shape: Ranged, path: str, trusted: Trusted) -> Make:
        from fetchc.tracer.values.ranges import cut_items, cut_row, cut_text, ranged

        elements = shape.elements
        bounds: list[Make | int | None] = []
        for one in (shape.low, shape.high, shape.bound):
            if one is None or isinstance(one, int):
                bounds.append(one)
            else:
                bounds.append(self.maker(one, path, trusted))
        there = self._guarded(lambda data, faults: True, elements.guards, path, trusted, None)
        if isinstance(elements, Items):
            makers = self._each(elements, path, trusted | _pointers(elements.guards))
            return ranged(bounds, shape.start, there, cut_items(makers, path), list, path)
        begin, read = self._offset(elements.field, elements.offset), self._read(elements)
        if isinstance(elements, Bytes):
            text = cut_text(begin, elements.size, elements.kind, read, path)
            return ranged(bounds, shape.start, there, text, str, path)
        row = cut_row(self._row(elements), elements.count, elements.size, read, path)
        return ranged(bounds, shape.start, there, row, list, path)

    def _window(
        self,
        sequence: Sequence,
        start: Leaf,
        length_of: Callable[[bytes], int],
        path: str,
        known: Trusted,
    ) -> Make:
        from fetchc.tracer.values.windows import of_items, of_row, windowed

        elements, around = sequence.elements, sequence.around
        if isinstance(elements, Row):
            pick, most = of_row(self.maker(elements, path, known)), elements.count
        else:
            pick, most = of_items(self._each(elements, path, known), path), len(elements.items)
        whole = None if around is None else self.maker(around, path, known)
        return windowed(pick, most, length_of, self.maker(start, path, known), whole, path)

    def _between(self, length: Between, path: str, trusted: Trusted) -> Make:
        ends = [self.maker(one, path, trusted) for one in (length.start, length.end)]
        return counted_between(ends, self._count(length))

    def _count(self, length: Between) -> Callable[[bytes], int]:
        # Less than none where what the object holds are no two ends of one array.
        start, end, each = self._bare(length.start), self._bare(length.end), length.each

        def count(data: bytes) -> int:
            number, rest = divmod(end(data) - start(data), each)
            return -1 if rest else number

        return count

    def _number_between(self, length: Between, path: str, trusted: Trusted) -> Make:
        return not_below_none(self._between(length, path, trusted), path)

    def _reckoned(self, shape: Reckoned, path: str, trusted: Trusted) -> Make:
        terms = []
        for one in shape.terms:
            less = None if one.less is None else self.maker(one.less, path, trusted)
            terms.append((self.maker(one.number, path, trusted), less, one.each, one.times))
        return reckoned(terms, shape.constant, shape.is_none, path)

    def _choice(self, shape: Choice, path: str, trusted: Trusted) -> Make:
        known = trusted | _pointers(shape.tag.guards)
        cases = {value: self.maker(one, path, known) for value, one in shape.cases}
        return chosen(self.maker(shape.tag, path, trusted), cases)

    def _variants(self, shape: Variants, path: str, trusted: Trusted) -> Make:
        from fetchc.tracer.values.variants import left_out, variant

        tag = None if shape.tag is None else self.maker(shape.tag, path, trusted)
        known = trusted if shape.tag is None else trusted | _pointers(shape.tag.guards)
        cases: dict[int | None, tuple[str, Make | None, bool]] = {}
        for one in shape.cases:
            inner = one.fields
            make = None if inner is None else self.maker(inner, f"{path}.{one.name}", known)
            if one.left:
                make = left_out(one.left)
            cases[one.value] = one.name, make, one.single
        return variant(tag, cases)

    def _of_variant(self, shape: OfVariant, path: str, trusted: Trusted) -> Make:
        from fetchc.tracer.values.variants import of_variant

        inner = self.maker(shape.inner, path, trusted | _pointers(shape.tag.guards))
        tag = self.maker(shape.tag, path, trusted)
        return of_variant(tag, dict(shape.names), shape.wanted, inner)

    def _members(self, shape: Members, path: str, trusted: Trusted) -> Make:
        known = trusted | _pointers(shape.guards)
        makers = [(name, self.maker(one, f"{path}.{name}", known)) for name, one in shape.members]
        return self._guarded(members(makers, path), shape.guards, path, trusted, None)

    def _difference(self, shape: Difference, path: str, trusted: Trusted) -> Make:
        less = shape.subtrahend
        second = less if isinstance(less, int) else self.maker(less, path, trusted)
        return difference(self.maker(shape.minuend, path, trusted), second, path)

    def _noted(self, shape: Noted, path: str, trusted: Trusted) -> Make:
        from fetchc.tracer.values.notations import NOTATIONS

        parts = self._members(Members(shape.members, shape.guards), path, trusted)
        return noted(parts, NOTATIONS[shape.notation])

    def _referred(self, shape: Referred, path: str, trusted: Trusted) -> Make:
        inner = self.maker(shape.inner, path, trusted | _pointers(shape.reference.guards))
        return referred(self.maker(shape.reference, path, trusted), inner)

    def _asserted(self, shape: Asserted, path: str, trusted: Trusted) -> Make:
        from fetchc.tracer.values.dynamic import asserted

        word, start = shape.dynamic.word, shape.dynamic.start
        return asserted(
            self.maker(word, path, trusted),
            self.maker(start, path, trusted),
            self.maker(shape.dynamic, path, trusted),
            shape.wanted,
            self.maker(shape.inner, path, trusted),
        )

    def _of_type(self, shape: OfType, path: str, trusted: Trusted) -> Make:
        from fetchc.tracer.values.dynamic import of_type

        own = (shape.own.row, shape.own.assembly, shape.rank)
        element = () if shape.element is None else (shape.element.row, shape.element.assembly)
        return of_type(
            shape.types,
            shape.wanted,
            self.maker(shape.reference, path, trusted),
            [self.maker(one, path, trusted) for one in own],
            [self.maker(one, path, trusted) for one in element],
            self.maker(shape.inner, path, trusted),
        )

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
        elif zero is not None and guards and self._mapped is not None and not guards[-1].kernel:
            last = guards[-1]
            place = self._offset(last.field, last.offset), last.moved
            doubt = Doubt(*zero, *place, self._mapped)
        return guarded(make, checks, doubt, path, none)

    def _told(self, guard: Guard) -> Told | None:
        if not guard.told:
            return None
        from fetchc.tracer.values.residence import Told

        fields = [(self._fields[name], behind) for name, behind in guard.told]
        texts = [(self._texts.one(field, None, field.name), behind) for field, behind in fields]
        return Told(self._offset(guard.field, guard.offset), texts)


_POINTER = 8  # bytes


def _pointers(guards: tuple[Guard, ...]) -> Trusted:
    return frozenset([(guard.field, guard.offset) for guard in guards])
