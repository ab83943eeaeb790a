"""Walking the entries of a unit without decoding them.

Entries stand one behind the other; a zero byte ends a list of children. Only two things
are asked of an entry: where it ends and, if DW_AT_sibling says so, where its subtree does.
Positions count from the start of the unit.
"""

from __future__ import annotations

from bisect import bisect_right

from fetchc.debuginfo.dwarf.entries.forms import DAMAGED, read_uleb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.entries.abbrev import Declaration, Getter
    from fetchc.debuginfo.dwarf.entries.units import Unit

__all__ = ["ancestors", "covering", "entries", "sibling", "skip_subtree", "value"]

# Steps between two positions that a unit remembers as starts of entries.
_STRIDE = 1024


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
    at = start = unit.checkpoints[0]
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

    This is what proves that bytes found by searching are an entry: it walks from the last
    remembered start before them, over subtrees that end before them. The unit remembers
    some of the starts it passes.
    """
    marks = unit.checkpoints
    if position < marks[0]:
        return None
    data = unit.data
    known = unit.table.known
    at = marks[bisect_right(marks, position) - 1]
    if at < unit.recent <= position:
        at = unit.recent
    steps = 0
    start = at
    try:
        while at <= position:
            start = at
            code = data[at]
            at += 1
            if code == 0:
                continue
            steps += 1
            if steps % _STRIDE == 0 and start > marks[-1]:
                marks.append(start)
            if code > 127:
                code, at = read_uleb(data, at - 1)
            declaration = known.get(code) or declared(unit, code, start)
            if declaration.sibling is not None:
                target = sibling(unit, declaration, start, at)
                if target is not None and target <= position:
                    at = target
                    continue
            fixed = declaration.fixed
            at = at + fixed if fixed >= 0 else declaration.skip(data, at)
    except DAMAGED as damage:
        raise unit.error(f"the entry cannot be read: {damage}", start) from None
    unit.recent = start
    return start if data[start] else None


def ancestors(unit: Unit, position: int) -> list[int]:
    """Starts of the entries around the one at ``position``, the unit's top entry first."""
    data = unit.data
    known = unit.table.known
    open_entries: list[int] = []
    at = unit.checkpoints[0]
    start = at
    try:
        while at < position:
            start = at
            code = data[at]
            at += 1
            if code == 0:
                if open_entries:
                    open_entries.pop()
                continue
            if code > 127:
                code, at = read_uleb(data, at - 1)
            declaration = known.get(code) or declared(unit, code, start)
            if declaration.has_children:
                if declaration.sibling is not None:
                    target = sibling(unit, declaration, start, at)
                    if target is not None and target <= position:
                        at = target
                        continue
                open_entries.append(start)
            fixed = declaration.fixed
            at = at + fixed if fixed >= 0 else declaration.skip(data, at)
    except DAMAGED as damage:
        raise unit.error(f"the entry cannot be read: {damage}", start) from None
    if at != position:
        raise unit.error("no entry starts here", position)
    return open_entries
