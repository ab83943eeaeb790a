"""Numbers that a reader makes of others, and objects that it picks by such a number."""

from __future__ import annotations

from fetchc.check import typed_tree
from fetchc.diag.diagnostic import CompileError
from fetchc.ir.fetch import Deref
from fetchc.lower.fetches import Memory, load_word, where
from fetchc.tracer.plan.dynamic import Dynamic
from fetchc.tracer.shape import Either, Reckoned, Term

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.ir.fetch import Value
    from fetchc.tracer.plan.extents import Limits

__all__ = ["Sums"]


_MOST_TOGETHER = 256  # bytes


class Sums(Dynamic):
    """Shapes of what is in no place."""

    def _made(
        self, node: typed_tree.Computed | typed_tree.Either, limits: Limits
    ) -> Reckoned | Either:
        if isinstance(node, typed_tree.Either):
            if node.side_by_side:
                self._fetch_together(node)
            both = [
                self.within(self.shape(one, None, limits), limits, reversed(given))
                for one, given in zip((node.at_none, node.other), node.given, strict=True)
            ]
            return Either(self._reckoned(node.number), both[0], both[1])
        return self._reckoned(node)

    def _fetch_together(self, node: typed_tree.Either) -> None:
        # What lies side by side comes in as few pieces as can be.
        spans: dict[Value, tuple[Memory, int, int]] = {}
        for one in _objects(node):
            try:
                found = where(self._checker.site, one)
            except CompileError:
                return
            if isinstance(found, Memory):
                low, high = found.offset, found.offset + (self._checker.size(one.type) or 0)
                _, least, most = spans.get(found.base, (found, low, high))
                spans[found.base] = found, min(low, least), max(high, most)
        for found, low, high in spans.values():
            if 8 < high - low <= _MOST_TOGETHER:
                place = Memory(found.base, low, found.user)
                start = load_word(self._checker.site, place, node.span)
                assert isinstance(start, Deref)
                self._fields.block(start, high - low)

    def _reckoned(self, node: typed_tree.Computed) -> Reckoned:
        terms = []
        for one in node.terms:
            less = None if one.less is None else self._leaf(self._word(one.less))
            terms.append(Term(self._leaf(self._word(one.number)), less, one.each, one.times))
        return Reckoned(tuple(terms), node.constant, node.is_none)


def _objects(node: typed_tree.Typed) -> Iterator[typed_tree.Typed]:
    if isinstance(node, typed_tree.Either):
        yield from _objects(node.at_none)
        yield from _objects(node.other)
    else:
        yield node
