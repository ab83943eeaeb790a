"""Makers of what has elements: texts, lists, and parts of them whose length varies."""

from __future__ import annotations

from fetchc.tracer.shape import Between, Bytes, Items, Row
from fetchc.tracer.values.combined import counted_between
from fetchc.tracer.values.guards import by_length
from fetchc.tracer.values.leaves import Leaves, pointers
from fetchc.tracer.values.lists import first_of, listed, up_to_length
from fetchc.tracer.values.texts import counted, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.tracer.shape import Leaf, Ranged, Sequence
    from fetchc.tracer.values.leaves import Make, Trusted
    from fetchc.tracer.values.ranges import Read

__all__ = ["Elements"]


class Elements(Leaves):
    """Makers of texts, lists, sequences and ranges."""

    def _counted(self, text: Bytes, path: str, trusted: Trusted) -> Make:
        assert text.length is not None
        start, end = self._at(text, text.size)
        length = self.maker(text.length, path, trusted)
        known = trusted | pointers(text.length.guards)
        inner = counted(start, text.size, text.kind, self._bare(text.length))
        # Zeros behind the text's own end say nothing, so that its end is in doubt only
        # where all of the bytes are 0.
        behind = self._guarded(inner, text.guards, path, known, (start, end))
        return by_length(length, behind, str, path)

    def _items(self, items: Items, path: str, trusted: Trusted) -> Make:
        makers = self._each(items, path, trusted)
        if items.text:
            return joined(makers)
        if items.parts:
            from fetchc.tracer.values.variants import parts

            return self._guarded(parts(makers, path), items.guards, path, trusted, None)
        return self._guarded(listed(makers, items.total), items.guards, path, trusted, None)

    def _each(self, items: Items, path: str, trusted: Trusted) -> list[Make]:
        known = trusted | pointers(items.guards)
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
        known = trusted | pointers(guards)
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
        return Read(begin, place, last.moved, self._there, self._told(last))

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
            makers = self._each(elements, path, trusted | pointers(elements.guards))
            return ranged(bounds, shape.start, there, cut_items(makers, path), list, path)
        begin, read = self._offset(elements.field, elements.offset), self._read(elements)
        if isinstance(elements, Bytes):
            text = cut_text(begin, elements.size, elements.kind, read, path, shape.to_nul)
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
        return windowed(
            pick, most, length_of, self.maker(start, path, known), whole, path, sequence.backwards
        )

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
