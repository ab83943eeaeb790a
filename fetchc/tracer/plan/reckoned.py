"""Numbers that a reader makes of others, and objects that it picks by such a number."""

from __future__ import annotations

from fetchc.check import typed
from fetchc.tracer.plan.leaves import Leaves
from fetchc.tracer.shape import Either, Reckoned, Term

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.tracer.plan.extents import Limits

__all__ = ["Sums"]


class Sums(Leaves):
    """Shapes of what is in no place."""

    def _made(self, node: typed.Reckoned | typed.Either, limits: Limits) -> Reckoned | Either:
        if isinstance(node, typed.Either):
            both = [self.shape(one, None, limits) for one in (node.at_none, node.other)]
            return Either(self._reckoned(node.number), both[0], both[1])
        return self._reckoned(node)

    def _reckoned(self, node: typed.Reckoned) -> Reckoned:
        terms = []
        for one in node.terms:
            less = None if one.less is None else self._leaf(self._word(one.less))
            terms.append(Term(self._leaf(self._word(one.number)), less, one.each, one.times))
        return Reckoned(tuple(terms), node.constant, node.is_none)
