"""How much of an object a reader fetches, and which of its bytes."""

from __future__ import annotations

from fetchc.diag.diagnostic import CompileError
from fetchc.lower.aggregate_plan import named_members
from fetchc.lower.fetches import is_string_pointer, plain, smallest_container
from fetchc.program.types import ArrayType, InterfaceType, Member, SliceType, StringType, StructType
from fetchc.record import Record
from fetchc.source import Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.quantities import TypeId

__all__ = ["FULL", "Limits", "extents", "merged_ranges"]

_GAP = 16  # bytes that are cheaper to fetch along than an argument of their own


class Limits(Record):
    """How much of a value is fetched.

    ``text`` bytes of a counted text, ``row`` bytes of an array or slice of numbers, ``items``
    other elements, ``depth`` structures inside each other. ``follow``: how many pointers, one
    after the other, are shown as what they lead to; those in lists are addresses. ``copied``: what
    is longer is copied by itself, as an eBPF program can; not in elements and alternatives.
    """

    text: int
    row: int
    items: int
    depth: int
    follow: int = 0
    copied: bool = False

    def of_array(self) -> Limits:
        """Those of an array that was asked for by itself: all of it, if it can be."""
        return self.replaced(row=4 * self.row, items=16 * self.items, follow=0)

    def inner(self) -> Limits:
        """Those of an element of a list."""
        return self.alternative().replaced(follow=0)

    def alternative(self) -> Limits:
        """Those of one of several values of which the object has one."""
        return Limits(max(self.text // 4, 16), max(self.row // 8, 16), 2, self.depth, self.follow)

    def deeper(self) -> Limits:
        """Those of a structure in a structure."""
        return self.replaced(depth=self.depth - 1)

    def behind(self) -> Limits:
        """Those of what a pointer leads to."""
        return self.replaced(follow=self.follow - 1)


FULL = Limits(text=256, row=512, items=4, depth=3)


def extents(checker: Checker, type_id: TypeId, limits: Limits) -> list[tuple[int, int]]:
    """First byte, and the one after the last, of each range to fetch of a value of the type.

    What is not fetched as bytes (the string of a ``char *``) is left out; so is what is
    deeper than ``limits`` go.
    """
    resolved = checker.resolved(type_id)
    match resolved:
        case StringType(members=members) | SliceType(members=members):
            word = checker.program.word_bytes
            return [(one.offset, one.offset + word) for one in members[:2]]
        case InterfaceType():
            return [(0, 2 * checker.program.word_bytes)]
        case ArrayType(element=element, count=count) if count:
            return _array(checker, element, count, limits)
        case StructType(value=Member() as value):
            return [
                (value.offset + low, value.offset + high)
                for low, high in extents(checker, value.type, limits)
            ]
        case StructType() if limits.depth > 0:
            found = []
            for variant in resolved.variants:
                found += _member(checker, resolved, (), variant.member, limits)
            for path, member in named_members(checker, resolved, ()):
                found += _member(checker, resolved, path, member, limits.deeper())
            return found
        case _:
            simple = plain(checker, type_id)
            return [] if simple is None else [(0, simple.size)]


def _array(checker: Checker, element: TypeId, count: int, limits: Limits) -> list[tuple[int, int]]:
    resolved = checker.resolved(element)
    each = checker.size(element)
    if not each:
        return []
    if is_string_pointer(checker, resolved):
        return []
    rows, numbers = isinstance(resolved, ArrayType), plain(checker, element) is not None
    shown = min(count, max(1, limits.row // each) if rows or numbers else limits.items)
    if limits.copied and shown < count:
        return []
    if numbers:
        return [(0, each * shown)]
    inner = extents(checker, element, limits if rows else limits.inner())
    return [(low + each * i, high + each * i) for i in range(shown) for low, high in inner]


def _member(
    checker: Checker,
    holder: StructType,
    path: tuple[Member, ...],
    member: Member,
    limits: Limits,
) -> list[tuple[int, int]]:
    start: int = sum([step.offset for step in path])
    if member.bits is not None:
        size = holder.size if not path else None
        try:
            byte, bits = smallest_container(member.bits.offset, member.bits.width, size, Span(0, 0))
        except CompileError:
            return []  # in nine bytes: refused where it is fetched
        return [(start + byte, start + byte + bits // 8)]
    start += member.offset
    return [(start + low, start + high) for low, high in extents(checker, member.type, limits)]


def merged_ranges(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges in order; those that are close to each other are merged."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + _GAP:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found
