"""Walking the entries of a unit without decoding them.

Entries stand one behind the other; a zero byte ends a list of children. Only two things
are asked of an entry: where it ends and, if DW_AT_sibling says so, where its subtree does.
Positions count from the start of the unit.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.forms import DAMAGED, read_uleb
from fetchc.debuginfo.dwarf.entries.marks import STRIDE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.entries.abbrev import Declaration, Getter
    from fetchc.debuginfo.dwarf.entries.marks import Around
    from fetchc.debuginfo.dwarf.entries.units import Unit

__all__ = ["ancestors", "covering", "entries", "sibling", "skip_subtree", "value"]


def declared(unit: Unit, code: int, position: int) -> Declaration:
    """The declaration of a code met at ``position``."""
    found = unit.table.declaration(code)
    if found is None:
        raise unit.error(
            f"abbreviation {code} is not in the table at .debug_abbrev+{unit.abbrev_offset:#x}",
            position,
        )
    return found


def value(unit: Unit, getter: Getter, start: int, values_at: int) -> int | bytes:
    """What a getter of the declaration reads from the entry at ``start``."""
    try:
        return getter(unit.data, values_at)
    except DAMAGED as damage:
        raise unit.error(f"the entry cannot be read: {damage}", start) from None


def sibling(unit: Unit, declaration: Declaration, start: int, values_at: int) -> int | None:
    """Where DW_AT_sibling of the entry at ``start`` points; None where it has none."""
    getter = declaration.sibling
    if getter is None:
        return None
    target = value(unit, getter, start, values_at)
    # Forwards only: a sibling that points back would walk for ever.
    if not isinstance(target, int) or not values_at < target <= len(unit.data):
        raise unit.error(f"DW_AT_sibling points to {target!r}, not behind the entry", start)
    return target


def entries(
    unit: Unit, into: frozenset[int] | None = None
) -> Iterator[tuple[int, Declaration, int]]:
    """(start, declaration, first value) of the unit's entries in the order of the file.

    With ``into``, subtrees of other tags are left out where DW_AT_sibling says how.
    """
    data = unit.data
    known = unit.table.known
    end = len(data)
    at = start = unit.die_offset - unit.offset
    try:
        while at < end:
            start = at
            code = data[at]
            at += 1
            if code == 0:
                continue
            if code > 127:
                code, at = read_uleb(data, at - 1)
            declaration = known.get(code) or declared(unit, code, start)
            yield start, declaration, at
            if into is not None and declaration.sibling is not None and declaration.tag not in into:
                at = sibling(unit, declaration, start, at) or end
                continue
            fixed = declaration.fixed
            at = at + fixed if fixed >= 0 else declaration.skip(data, at)
    except DAMAGED as damage:
        raise unit.error(f"the entry cannot be read: {damage}", start) from None
    if at > end:
        raise unit.error("the entry runs past the end of its unit", start)


def skip_subtree(unit: Unit, at: int) -> int:
    """The position behind the list of children that starts at ``at``."""
    data = unit.data
    known = unit.table.known
    depth = 1
    start = at
    try:
        while depth:
            start = at
            code = data[at]
            at += 1
            if code == 0:
                depth -= 1
                continue
            if code > 127:
                code, at = read_uleb(data, at - 1)
            declaration = known.get(code) or declared(unit, code, start)
            values = at
            if declaration.has_children:
                if declaration.sibling is not None:
                    at = sibling(unit, declaration, start, values) or 0
                    continue
                depth += 1
            fixed = declaration.fixed
            at = at + fixed if fixed >= 0 else declaration.skip(data, at)
    except DAMAGED as damage:
        raise unit.error(f"the entry cannot be read: {damage}", start) from None
    return at


def covering(unit: Unit, position: int) -> int | None:
    """The start of the entry whose bytes hold ``position``; None for a list's end.

    This is what proves that bytes found by searching are an entry.
    """
    if position < unit.die_offset - unit.offset:
        return None
    start = _walked(unit, position)[0]
    return start if unit.data[start] else None


def ancestors(unit: Unit, position: int) -> list[int]:
    """Starts of the entries around the one at ``position``, the unit's top entry first."""
    start, around = _walked(unit, position)
    if start != position:
        raise unit.error("no entry starts here", position)
    found = []
    while around is not None:
        start, around = around
        found.append(start)
    found.reverse()
    return found


def _walked(unit: Unit, position: int) -> tuple[int, Around]:
    # The start of the entry whose bytes hold the position, and what is around it: from the last
    # mark in front of it, over subtrees that end before it.
    data = unit.data
    known = unit.table.known
    marks = unit.marks
    at, around = marks.before(position)
    passed: list[tuple[int, Around]] = []
    steps = 0
    start, outer = at, around
    try:
        while at <= position:
            start, outer = at, around
            code = data[at]
            at += 1
            if code == 0:
                if around is not None:
                    around = around[1]
                continue
            steps += 1
            if steps % STRIDE == 0:
                passed.append((start, around))
            if code > 127:
                code, at = read_uleb(data, at - 1)
            declaration = known.get(code) or declared(unit, code, start)
            if declaration.has_children:
                if declaration.sibling is not None:
                    target = sibling(unit, declaration, start, at)
                    if target is not None and target <= position:
                        at = target
                        continue
                around = start, around
            fixed = declaration.fixed
            at = at + fixed if fixed >= 0 else declaration.skip(data, at)
    except DAMAGED as damage:
        raise unit.error(f"the entry cannot be read: {damage}", start) from None
    marks.passed(passed, (start, outer), steps)
    return start, outer
