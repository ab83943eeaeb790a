"""The walk of a container that is in an entry of another one: ``m["a"][k]``, ``m["a"][:]``.

Both are one walk. Its rounds look for the entry of the outer container first; the round that finds
it gives the inner cursors their first words, and from then on the rounds are those of the inner
container.
"""

from __future__ import annotations

from fetchc.ir.fetch import Calculated, Chosen, Cursor, Deref, ElementAddress, Part
from fetchc.ir.step_support import has_cursor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.ir.fetch import Term, Walk

__all__ = ["NotOfEntry", "within_entry"]

_WORD = 8


class NotOfEntry(Exception):
    """A first word of the inner walk is computed from more than the outer entry."""


def within_entry(outer: Walk, inner: Walk) -> Walk:
    """``inner``, whose first words are in the entry that ``outer`` looks for; raises NotOfEntry.

    The cursors of ``inner`` keep their numbers; until it begins, they are those of ``outer``, but
    for words that the program has before the walk. Nobody counts the entries of a container that is
    not known before, so the rounds do. Two walks that find the same show that nothing has changed.
    """
    first = len(inner.places)
    known = [not (isinstance(one, int) or has_cursor(one)) for one in inner.start]
    free = [first + number for number, is_known in enumerate(known) if not is_known]
    more = max(0, len(outer.start) - len(free))
    of_outer = [*free, *range(first + len(known), first + len(known) + more)]
    is_inside = Cursor(first + len(known) + more)
    outside = Calculated("eq", is_inside, 0)
    places: list[Term] = []

    def moved(cursor: Cursor) -> Term:
        number = cursor.number - len(outer.places)
        return places[cursor.number] if number < 0 else Cursor(of_outer[number])

    while_outside = _Guarded(outside, moved)
    places += [while_outside.term(one) for one in outer.places]
    found = Calculated("and", outside, while_outside.term(outer.found))
    while_inside = _Guarded(is_inside, lambda cursor: cursor)
    entering = _Guarded(found, moved)

    start: dict[int, Term] = dict.fromkeys(range(first, is_inside.number + 1), 0)
    start |= {first + number: one for number, one in enumerate(inner.start) if known[number]}
    following: dict[int, Term] = {number: Cursor(number) for number in start}
    for number, begins, term in zip(of_outer, outer.start, outer.next, strict=False):
        start[number], following[number] = begins, while_outside.term(term)
    for number, (begins, term) in enumerate(zip(inner.start, inner.next, strict=True), first):
        before = following[number]
        if number in free:
            before = Chosen(found, entering.term(begins), before)
        after = while_inside.term(term)
        following[number] = before if after == before else Chosen(is_inside, after, before)
    following[is_inside.number] = Calculated("or", is_inside, found)
    return inner.replaced(
        start=tuple(start.values()),
        end=Chosen(is_inside, while_inside.term(inner.end), while_outside.term(outer.end)),
        found=Calculated("and", is_inside, while_inside.term(inner.found)),
        places=tuple([while_inside.term(one) for one in inner.places]),
        next=tuple(following.values()),
        count=None,
        version=None,
        writing=None,
        twice=True,
    )


class _Guarded:
    """Terms that load nothing where ``when``, 0 or 1, is 0; ``moved`` gives the new cursors."""

    def __init__(self, when: Term, moved: Callable[[Cursor], Term]) -> None:
        self._when = when
        self._moved = moved
        self._known: dict[int, tuple[Term, Term]] = {}  # by identity: what is shared stays so

    def term(self, term: Term) -> Term:
        """The term; raises NotOfEntry of one that is computed from more than cursors."""
        found = self._known.get(id(term))
        if found is None:
            found = self._known[id(term)] = term, self._changed(term)
        return found[1]

    def _changed(self, term: Term) -> Term:
        match term:
            case int():
                return term
            case Cursor():
                return self._moved(term)
            case Deref(base=base, offset=offset, user=user):
                return Part(self.term(base), offset, _WORD, self._when, user)
            case Part(base=base, offset=offset, size=size, when=when, user=user):
                both = self._when if when is None else Chosen(self._when, self.term(when), 0)
                return Part(self.term(base), offset, size, both, user)
            case Calculated(operation=operation, left=left, right=right):
                return Calculated(operation, self.term(left), self.term(right))
            case Chosen(condition=condition, nonzero=nonzero, zero=zero):
                return Chosen(self.term(condition), self.term(nonzero), self.term(zero))
            case ElementAddress(address=address):
                return self.term(address)
            case _:
                raise NotOfEntry
