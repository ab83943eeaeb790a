"""The plain numbers of a record, all at once: what most events consist of.

One by one, twenty numbers behind pointers cost 20 us, at once 4. Where anything is out of the
ordinary (a pointer that leads nowhere, a 0 whose memory is not there), nothing is given, and the
makers of single values look closer.
"""

from __future__ import annotations

import struct
from operator import itemgetter

from fetchc.tracer.shape import Leaf
from fetchc.tracer.values.guards import HIGHEST, LOWEST
from fetchc.tracer.values.scalars import meaning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fetchc.tracer.model import Field, Value, Wanted

    There = Callable[[bytes, int], bool | None]
    Numbers = Callable[[bytes], dict[str, Value] | None]

__all__ = ["numbers"]

_FEWEST = 2  # of them: one is as fast by itself
_PAGE = 12  # bits of an address inside of the smallest page


def numbers(
    wanted: Sequence[Wanted], fields: Mapping[str, Field], there: There | None
) -> tuple[frozenset[str], Numbers] | None:
    """The labels of plain numbers among ``wanted``, and what gives them all; None for too few.

    It gives None for a record that has to be looked at closer.
    """
    found: list[tuple[int, int, str, str, Leaf]] = []  # offset, size, letter, label
    for one in wanted:
        leaf = one.shape
        if not isinstance(leaf, Leaf) or leaf.decode.kind != "integer":
            continue
        field = fields[leaf.field]
        size = leaf.size or field.size
        code, then = meaning(leaf.decode, size, leaf.shift)
        if then is None and not any(guard.empty or guard.told for guard in leaf.guards):
            found.append((field.offset + leaf.offset, size, code, one.label, leaf))
    found.sort(key=lambda each: each[:2])
    listed = []
    layout, at = "=", 0
    for offset, size, code, label, leaf in found:
        if offset >= at:  # else it is inside another one
            layout += f"{offset - at}x{code}"
            at = offset + size
            listed.append((label, leaf))
    if len(listed) < _FEWEST:
        return None
    labels = [label for label, _ in listed]
    leaves = [leaf for _, leaf in listed]
    make = _all(labels, struct.Struct(layout), _bounds(leaves, fields), there, leaves, fields)
    return frozenset(labels), make


def _place(fields: Mapping[str, Field], field: str, offset: int) -> int:
    return fields[field].offset + offset


def _bounds(leaves: list[Leaf], fields: Mapping[str, Field]) -> list[tuple[int, int, int]]:
    """Each pointer's place in the record, and between what it has to be for all that is behind."""
    bounds: dict[int, tuple[int, int]] = {}
    for guard in [guard for leaf in leaves for guard in leaf.guards]:
        place = _place(fields, guard.field, guard.offset)
        low, high = bounds.get(place, (LOWEST, HIGHEST))
        bounds[place] = max(low, LOWEST - guard.moved), min(high, HIGHEST - guard.moved)
    return [(place, low, high) for place, (low, high) in bounds.items()]


def _all(
    labels: list[str],
    layout: struct.Struct,
    bounds: list[tuple[int, int, int]],
    there: There | None,
    leaves: list[Leaf],
    fields: Mapping[str, Field],
) -> Numbers:
    unpack = layout.unpack_from
    word = struct.Struct("=Q").unpack_from
    groups = [] if there is None else _groups(leaves, fields)

    def make(data: bytes) -> dict[str, Value] | None:
        for place, low, high in bounds:
            if not low <= word(data, place)[0] < high:
                return None
        values = unpack(data)
        if 0 in values:
            for place, pick, moves, first, last in groups:
                pointer = word(data, place)[0]
                behind = pick(values)
                if pointer + first >> _PAGE == pointer + last >> _PAGE and any(behind):
                    continue  # what is not 0 was loaded, and from this very page
                assert there is not None
                for value, moved in zip(behind, moves, strict=True):
                    if not value and there(data, pointer + moved) is False:
                        return None
        return dict(zip(labels, values, strict=True))

    return make


def _groups(
    leaves: list[Leaf], fields: Mapping[str, Field]
) -> list[tuple[int, Callable[[tuple[int, ...]], tuple[int, ...]], list[int], int, int]]:
    """The numbers by the pointer they were loaded by: its place in the record, what picks them,
    how far behind it they are, the first and the last byte of them all.
    """
    found: dict[int, list[tuple[int, int, int]]] = {}
    for index, leaf in enumerate(leaves):
        if leaf.guards:
            last = leaf.guards[-1]
            size = leaf.size or fields[leaf.field].size
            place = _place(fields, last.field, last.offset)
            found.setdefault(place, []).append((index, last.moved, size))
    return [
        (
            place,
            _picker([index for index, _, _ in listed]),
            [moved for _, moved, _ in listed],
            min(moved for _, moved, _ in listed),
            max(moved + size - 1 for _, moved, size in listed),
        )
        for place, listed in found.items()
    ]


def _picker(positions: list[int]) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    if len(positions) == 1:
        return lambda values: (values[positions[0]],)
    return itemgetter(*positions)
