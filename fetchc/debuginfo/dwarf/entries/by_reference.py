"""Finding entries by what they refer to without reading the others; see :mod:`.candidates`."""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.candidates import code_bytes, is_entry, starts_before
from fetchc.debuginfo.dwarf.entries.constants import DW_FORM_ref4

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

    from fetchc.debuginfo.dwarf.entries.units import Unit

__all__ = ["referring"]


def referring(
    unit: Unit, targets: Iterable[int], tags: frozenset[int], attributes: tuple[int, ...]
) -> list[int] | None:
    """Starts of the entries of those tags that refer to one of the targets, in the unit's order.

    All are positions in the unit. None where a reference has no constant place and size, so that
    it cannot be searched for, or may be to another unit.
    """
    shapes = []
    for code, declaration in unit.table.tagged(tags):
        for attribute in attributes:
            form = declaration.form(attribute)
            distance = declaration.offset_of(attribute)
            if form == DW_FORM_ref4 and distance is not None:
                shapes.append((code_bytes(code), distance, declaration))
            elif form is not None or declaration.has_indirect:
                return None
    data = unit.data
    order: Literal["little", "big"] = "little" if unit.little else "big"
    starts: set[int] = set()
    for target in targets:
        key = target.to_bytes(4, order)
        at = data.find(key)
        while at >= 0:
            starts.update(starts_before(data, at, shapes))
            at = data.find(key, at + 1)
    return [start for start in sorted(starts) if is_entry(unit, start)]
