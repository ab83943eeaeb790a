"""From the walk of a container to the fetch of its elements."""

from __future__ import annotations

from fetchc.check.typed_tree import Computed, Operation
from fetchc.check.walks import (
    SLOTS,
    Blocks,
    BTree,
    BucketMap,
    HashTable,
    Linked,
    Strided,
    SwissMap,
    Tree,
    Windowed,
    offset,
)
from fetchc.diag.diagnostic import reject
from fetchc.ir.fetch import Calculated, Chosen, Cursor, Deref, Part, Walk
from fetchc.lower.element_addresses import numeral
from fetchc.lower.fetches import (
    Memory,
    number,
    pointer,
    where,
)
from fetchc.lower.map_keys import compared
from fetchc.lower.walks_within import NotOfEntry, within_entry
from fetchc.program.types import PointerType
from fetchc.record import assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.check.walks import Store, Walked
    from fetchc.ir.fetch import Term, Value

__all__ = ["side_by_side", "walk"]

_MOST_ROUNDS = 4096
_WORD = 8


def walk(checker: Checker, walked: Walked) -> Walk:
    """The fetch of the elements, without what is fetched of each.

    Raises CompileError where the container itself cannot be fetched.
    """
    found = _of_container(checker, walked)
    if walked.within is None:
        return found
    outer = walk(checker, walked.within)
    try:
        return within_entry(outer, found)
    except NotOfEntry:
        what = "where the container is depends on more than the element that it is in"
        raise reject("FC0314", what, walked.span, "cannot be walked") from None


def _of_container(checker: Checker, walked: Walked) -> Walk:
    match walked.way:
        case Linked() as way:
            return _Rounds(checker, walked).linked(way)
        case Tree() as way:
            return _Rounds(checker, walked).tree(way)
        case Strided() as way:
            return _Rounds(checker, walked).strided(way)
        case Windowed() as way:
            return _Rounds(checker, walked, places=1).windowed(way)
        case Blocks() as way:
            return _Rounds(checker, walked, places=1).blocks(way)
        case HashTable() as way:
            return _Rounds(checker, walked, places=1).hash_table(way)
        case BTree() as way:
            return _Rounds(checker, walked, places=2).b_tree(way)
        case SwissMap() as way:
            return _Rounds(checker, walked, places=2).swiss(way)
        case BucketMap() as way:
            return _Rounds(checker, walked, places=2).buckets(way)
        case way:
            assert_never(way)


def side_by_side(first: Term, count: Term, each: int, most: int) -> Walk:
    """The fetch of the first of ``count`` elements of ``each`` bytes, but for what each has."""
    here, end, all = [Cursor(number) for number in range(3)]
    start = (first, _add(first, Calculated("mul", count, each)), count)
    over, following = _not(Calculated("lt", here, end)), (_add(here, each), end, all)
    return Walk(start, over, 1, (), following, all, None, None, (), most, most, twice=False)


class _Rounds:
    def __init__(self, checker: Checker, walked: Walked, places: int = 0) -> None:
        self._checker = checker
        self._walked = walked
        self._site = checker.site
        self._places = places
        self._start: list[Term] = []

    def _cursor(self, start: Term) -> Cursor:
        self._start.append(start)
        return Cursor(self._places + len(self._start) - 1)

    def _address(self, node: Typed) -> Term:
        # That in the pointer `node`.
        value, moved = pointer(self._site, node)
        return _add(value, moved)

    def _number(self, node: Typed, again: bool = True) -> Term:
        # The number `node`; `again`: so that it can be read a second time.
        if isinstance(node, Computed):
            return self._sum(node, again)
        if isinstance(node, Operation):
            term = numeral(self._checker, node, number).term
            return self._cursor(term) if again else term
        found = where(self._site, node)
        if not isinstance(found, Memory):
            value = self._in_register(node)
            return self._cursor(value) if again else value
        size, base, moved = self._checker.size(node.type) or _WORD, found.base, found.offset
        if again:
            return Part(self._cursor(_add(base, moved)), 0, size)
        return Part(base, moved, size)

    def _in_register(self, node: Typed) -> Term:
        # The number `node`, which is not in memory: other ones can be beside it in a register.
        if isinstance(self._checker.resolved(node.type), PointerType):
            return self._address(node)
        return numeral(self._checker, node, number).term

    def _sum(self, node: Computed, again: bool) -> Term:
        total: Term = node.constant
        for one in node.terms:
            less = 0 if one.subtrahend is None else self._number(one.subtrahend, again)
            term = Calculated("sub", self._number(one.number, again), less)
            total = _add(Calculated("mul", _divided(term, one.each), one.times), total)
        return total

    def _walk(
        self,
        end: Term,
        found: Term,
        moved: dict[Cursor, Term],
        count: Term | None,
        places: tuple[Term, ...] = (),
        version: Term | None = None,
        writing: Term | None = None,
    ) -> Walk:
        wanted = self._walked.wanted
        if wanted is not None:
            assert self._walked.key is not None
            done = self._cursor(0)
            comparison = compared(
                self._checker, self._walked.key, wanted, found, places, self._cursor
            )
            found, stays = comparison.equal, comparison.unfinished
            end = Calculated("or", end, done)
            if stays is not None:
                moved = {one: Chosen(stays, one, term) for one, term in moved.items()}
            moved |= {done: Calculated("or", done, found), **dict(comparison.next)}
        cursors = [Cursor(number + self._places) for number in range(len(self._start))]
        following = tuple([moved.get(one, one) for one in cursors])
        start, most, twice = tuple(self._start), self._walked.most, wanted is None
        check = (count, version, writing)
        return Walk(start, end, found, places, following, *check, (), most, _MOST_ROUNDS, twice)

    def linked(self, way: Linked) -> Walk:
        first = self._address(way.first)
        stop = first if way.stop is None else self._address(way.stop)
        here = self._cursor(first if way.stop is None else _unless(first, stop))
        last = self._cursor(stop)
        count = None if way.count is None else self._number(way.count)
        version = None if way.version is None else self._number(way.version)
        following, offset = pointer(self._site, way.next)
        moved = {here: _unless(_add(_unless_null(following), offset), last)}
        return self._walk(_equal(here, 0), 1, moved, count, version=version)

    def strided(self, way: Strided) -> Walk:
        first = self._address(way.first)
        here = self._cursor(first)
        count = self._number(way.count)
        version = None if way.version is None else self._number(way.version)
        last = self._cursor(
            _add(first, Calculated("mul", self._number(way.used, again=False), way.each))
        )
        over = _not(Calculated("lt", here, last))
        found: Term = 1
        if way.free is not None:
            number, added = way.free
            sign = 1 << 8 * (self._checker.size(number.type) or _WORD) - 1
            mark = Calculated("and", _add(self._number(number, again=False), added), sign)
            found = _not(mark)
        return self._walk(over, found, {here: _add(here, way.each)}, count, version=version)

    def windowed(self, way: Windowed) -> Walk:
        first, count = self._cursor(self._address(way.first)), self._number(way.count)
        start = self._number(way.start, again=False)
        here = self._cursor(Calculated("sub", start, 1) if way.backwards else start)
        left = self._cursor(self._number(way.count, again=False))
        place = _add(first, Calculated("mul", here, way.each))
        following = Calculated("sub", here, 1) if way.backwards else _add(here, 1)
        if way.around is not None:
            room = self._cursor(self._number(way.around, again=False))
            place = Chosen(Calculated("lt", here, room), place, 0)
            following = Chosen(_equal(following, room), 0, following)
        moved: dict[Cursor, Term] = {here: following, left: Calculated("sub", left, 1)}
        return self._walk(_equal(left, 0), 1, moved, count, (place,))

    def blocks(self, way: Blocks) -> Walk:
        blocks, count = self._cursor(self._address(way.blocks)), self._number(way.count)
        start = self._number(way.start, again=False)
        here = self._cursor(start)
        last = self._cursor(_add(start, self._number(way.count, again=False)))
        inside = Calculated("lt", here, last)
        number = Calculated("div", here, way.length)
        block: Term = Part(_add(blocks, Calculated("mul", number, _WORD)), 0, _WORD, inside)
        if way.measured is not None:
            same = _equal(self._number(way.measured, again=False), way.length)
            block = Chosen(self._cursor(same), block, 0)
        within = Calculated("sub", here, Calculated("mul", number, way.length))
        place = _add(block, Calculated("mul", within, way.each))
        return self._walk(_not(inside), inside, {here: _add(here, 1)}, count, (place,))

    # The nodes of a tree in order, a link a round: to the right child and from there to the left as
    # far as it goes, else up until the node was a left child.

    def tree(self, way: Tree) -> Walk:
        node = self._cursor(self._address(way.first))
        how = self._cursor(_AT)
        head = self._cursor(self._address(way.head))
        count = self._number(way.count)
        at, up, down = (_equal(how, one) for one in (_AT, _UP, _DOWN))
        left, right, parent = (
            self._link(one, when)
            for one, when in ((way.left, down), (way.right, at), (way.parent, up))
        )
        top = _equal(parent, head)
        of_parent = self._link(way.right, _both(up, _not(top)), parent)
        moved: dict[Cursor, Term] = {
            node: Chosen(at, _or(right, node), Chosen(down, _or(left, node), parent)),
            how: Chosen(
                at,
                Chosen(right, _DOWN, _UP),
                Chosen(
                    down,
                    Chosen(left, _DOWN, _AT),
                    Chosen(top, _AT, Chosen(_equal(of_parent, node), _UP, _AT)),
                ),
            ),
        }
        return self._walk(_both(at, _equal(node, head)), at, moved, count)

    def _link(self, node: Typed, when: Term, base: Term | None = None) -> Part:
        found = where(self._site, node)
        assert isinstance(found, Memory)
        return Part(found.base if base is None else base, found.offset, _WORD, when)

    def hash_table(self, way: HashTable) -> Walk:
        control = self._cursor(self._address(way.control))
        slot = self._cursor(0)
        mask = self._cursor(self._number(way.mask, again=False))
        full = _equal(Calculated("and", Part(_add(control, slot), 0, 1), 0x80), 0)
        behind = Calculated("mul", _add(slot, 1), way.each)
        place = Calculated("sub", control, behind)
        count = self._number(way.count)
        over = Calculated("lt", mask, slot)
        return self._walk(over, full, {slot: _add(slot, 1)}, count, (place,))

    # From the root down to the first leaf. After an entry comes the first leaf of the child at its
    # right, or in a leaf the next entry; after the last one of a node that of the parent.

    def b_tree(self, way: BTree) -> Walk:
        span = self._walked.span
        names = ("parent", "parent_idx", "len")
        parent, index, length = (offset(self._checker, way.leaf, (one,), span) for one in names)
        edges = offset(self._checker, way.internal, ("edges",), span)
        node = self._cursor(self._address(way.root))
        height = self._cursor(self._number(way.height, again=False))
        slot, down = self._cursor(0), self._cursor(1)
        count = self._number(way.count)
        here = _not(down)
        many = Part(node, length, 2, here)
        full = _both(here, Calculated("lt", slot, many))
        over = _both(here, _not(full))
        above = Part(node, parent, _WORD, over)
        inner = _not(_equal(height, 0))
        edge = Chosen(down, slot, _add(slot, 1))
        deeper = _both(inner, _not(over))
        child = Part(_add(node, Calculated("mul", edge, _WORD)), edges, _WORD, deeper)
        moved: dict[Cursor, Term] = {
            node: Chosen(over, above, Chosen(deeper, child, node)),
            height: Chosen(over, _add(height, 1), Calculated("sub", height, deeper)),
            slot: Chosen(
                over,
                Part(node, index, 2, over),
                Chosen(_both(full, _not(inner)), _add(slot, 1), 0),
            ),
            down: deeper,
        }
        end = _either(_equal(node, 0), _both(over, _equal(above, 0)))
        places = tuple(
            [
                _add(_add(node, start), Calculated("mul", slot, each))
                for start, each in (way.keys, way.values)
            ]
        )
        return self._walk(end, full, moved, count, places)

    # Maps of Go. Source: internal/runtime/maps/map.go, table.go, group.go (Go 1.24 to 1.27): a
    # small map is one group; a large one has tables in a directory, in which a table can be several
    # times, one after the other, the first time at its `index`. The highest bit of a slot's control
    # byte is set where it is empty or deleted.

    def swiss(self, way: SwissMap) -> Walk:
        span = self._walked.span
        header, table, groups = (
            {name: offset(self._checker, holder, (name,), span) for name in names}
            for holder, names in (
                (way.header, ("used", "dirPtr", "dirLen", "writing")),
                (way.table, ("groups", "index")),
                (way.groups, ("data", "lengthMask")),
            )
        )
        start = self._address(way.map)
        directory = Part(start, header["dirPtr"], _WORD, start)
        length = Part(start, header["dirLen"], _WORD, start)
        small = _equal(length, 0)
        group = self._cursor(Chosen(small, directory, 0))
        slots = self._cursor(Chosen(_both(small, _not(_equal(directory, 0))), SLOTS, 0))
        slot = self._cursor(0)
        here = self._cursor(Chosen(small, 0, directory))
        last = self._cursor(Chosen(small, 0, _add(directory, Calculated("mul", length, _WORD))))
        first = self._cursor(Chosen(small, 0, directory))
        map = self._cursor(start)
        inside = Calculated("lt", slot, slots)
        over = _not(inside)
        following = Part(here, 0, _WORD, over)
        data = Part(following, table["groups"] + groups["data"], _WORD, over)
        mask = Part(following, table["groups"] + groups["lengthMask"], _WORD, over)
        index = Part(following, table["index"], _WORD, over)
        is_first = _equal(Calculated("mul", index, _WORD), Calculated("sub", here, first))
        in_group = Calculated("and", slot, SLOTS - 1)
        number = Calculated("rsh", slot, 3)
        place = _add(group, Calculated("mul", number, way.group_bytes))
        control = Part(_add(place, in_group), 0, 1, inside)
        full = _both(inside, _equal(Calculated("and", control, 0x80), 0))
        many = Calculated("lsh", _add(mask, 1), 3)
        moved: dict[Cursor, Term] = {
            group: Chosen(over, data, group),
            slots: Chosen(over, Chosen(is_first, many, 0), slots),
            slot: Chosen(over, 0, _add(slot, 1)),
            here: Chosen(over, _add(here, _WORD), here),
        }
        count = Part(map, header["used"], _WORD, map)
        end = _both(over, _equal(here, last))
        writing = Part(map, header["writing"], 1, map)
        places = _in(place, in_group, way.stores, full)
        return self._walk(end, full, moved, count, places, writing=writing)

    # Source: runtime/map.go (Go 1.15 to 1.23): 2^B buckets, each with a list of more; while the map
    # grows, also those of the old ones that were not evacuated: their slots have a `tophash` of at
    # least minTopHash, as all that are in use.

    def buckets(self, way: BucketMap) -> Walk:
        span = self._walked.span
        names = ("count", "flags", "B", "buckets", "oldbuckets")
        header = {name: offset(self._checker, way.header, (name,), span) for name in names}
        start = self._address(way.map)
        new, old = (Part(start, header[name], _WORD, start) for name in ("buckets", "oldbuckets"))
        bits = Part(start, header["B"], 1, start)
        same = Calculated("and", Part(start, header["flags"], 1, start), _SAME_SIZE_GROW)
        size = way.bucket_bytes
        many = Calculated("mul", Calculated("lsh", 1, bits), size)
        fewer = Chosen(same, many, Calculated("rsh", many, 1))
        bucket, slot = self._cursor(0), self._cursor(SLOTS)
        here, last = self._cursor(new), self._cursor(Chosen(new, _add(new, many), 0))
        before, end_before = self._cursor(old), self._cursor(Chosen(old, _add(old, fewer), 0))
        map = self._cursor(start)
        over = _equal(slot, SLOTS)
        more = Part(bucket, way.overflow, _WORD, _both(over, _not(_equal(bucket, 0))))
        in_new = _not(_equal(here, last))
        end = _both(_both(over, _equal(more, 0)), _both(_not(in_new), _equal(before, end_before)))
        take = _both(over, _equal(more, 0))
        following = _or(more, Chosen(in_new, here, before))
        inside = _not(over)
        top = Part(_add(bucket, slot), 0, 1, inside)
        full = _both(inside, _not(Calculated("lt", top, _MIN_TOP_HASH)))
        moved: dict[Cursor, Term] = {
            bucket: Chosen(over, following, bucket),
            slot: Chosen(over, 0, _add(slot, 1)),
            here: Chosen(_both(take, in_new), _add(here, size), here),
            before: Chosen(_both(take, _not(in_new)), _add(before, size), before),
        }
        count = Part(map, header["count"], _WORD, map)
        flags = Part(map, header["flags"], 1, map)
        writing = Calculated("and", flags, _HASH_WRITING)
        places = _in(bucket, slot, way.stores, full)
        return self._walk(end, full, moved, count, places, writing=writing)


_AT, _UP, _DOWN = range(3)  # how a walk of a tree goes on from a node
_HASH_WRITING, _SAME_SIZE_GROW, _MIN_TOP_HASH = 4, 8, 5  # of runtime/map.go


def _in(base: Term, slot: Term, stores: Iterable[Store], when: Term) -> tuple[Term, ...]:
    # Where the key and the value of a slot are.
    places: list[Term] = []
    for store in stores:
        place = _add(_add(base, store.offset), Calculated("mul", slot, store.each))
        places.append(Part(place, 0, _WORD, when) if store.apart else place)
    return tuple(places)


def _add(one: Term, other: Term) -> Term:
    return one if other == 0 else Calculated("add", one, other)


def _divided(one: Term, by: int) -> Term:
    return one if by == 1 else Calculated("div", one, by)


def _equal(one: Term, other: Term) -> Term:
    return Calculated("eq", one, other)


def _not(truth: Term) -> Term:
    return _equal(truth, 0)


def _both(one: Term, other: Term) -> Term:
    # Of truth values.
    return Calculated("and", one, other)


def _either(one: Term, other: Term) -> Term:
    # Of truth values.
    return Calculated("or", one, other)


def _unless_null(value: Value) -> Term:
    # The word that a chain of loads leads to; 0 where a pointer on the way is NULL.
    if isinstance(value, Deref) and isinstance(value.base, Deref) and not value.user:
        before = _unless_null(value.base)
        return Part(before, value.offset, _WORD, before)
    return value


def _or(one: Term, other: Term) -> Term:
    return Chosen(one, one, other)


def _unless(address: Term, stop: Term) -> Term:
    # The address, or 0 where it is the other one.
    return Chosen(_equal(address, stop), 0, address)
