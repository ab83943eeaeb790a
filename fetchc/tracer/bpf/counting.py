"""Which hits the kernel can count by itself, and what the entries of its map say.

The key of an entry is a record of what the table's keys need, so that the decoder of records reads
it, with the number of each measure's bucket. Its numbers are exact, so the rows that
:func:`row_of` makes of the entries are those that the reader's own counting would give.
"""

from __future__ import annotations

import struct

from fetchc.emit.bpf_counting import Entry, key_bytes
from fetchc.ir.steps import Aggregate, Loop
from fetchc.record import Record
from fetchc.tracer.guards import LOWEST
from fetchc.tracer.tables import Cell, Row
from fetchc.tracer.value_shapes import Leaf, texts_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fetchc.ir.fetch import Fetch
    from fetchc.ir.steps import Measured, Program
    from fetchc.tracer.events import Plan

    Lower = Callable[
        [tuple[tuple[str, Fetch], ...], tuple[tuple[Fetch, bool], ...], tuple[str, ...]], Program
    ]

__all__ = ["Counting", "counting", "row_of", "used_texts"]

_KINDS = ("integer", "duration", "enum", "pointer")
_MOST_STEPS = 64
_KEY_BYTES = 320  # of the 512 of a program's stack
_MASK = (1 << 64) - 1


class Counting(Record):
    """How hits of a plan are counted: a program for each of its definitions.

    ``plan`` has the values that keys and filters need. ``measures`` are the labels of the numbers
    to count, some maybe twice; each of them has one place in the entries.
    """

    plan: Plan
    measures: tuple[str, ...]
    programs: tuple[Program, ...]


def counting(
    plan: Plan,
    measures: tuple[str, ...],
    labels: Iterable[str],
    task: tuple[str, ...],
    always: Iterable[str],
    lower: Lower,
) -> Counting | None:
    """How the kernel counts ``measures`` by the values ``labels`` and ``task``; None: it cannot.

    ``always`` are fields of every key. ``lower`` makes the steps of fields, measures (whether they
    are signed) and what is said of the task.
    """
    wanted = set(labels)
    keyed = plan.replaced(values=tuple([one for one in plan.values if one.label in wanted]))
    # A field that no value names continues an object that begins in the field before it.
    kept = used_texts(keyed)
    apart = used_texts(plan) - set(always) | {one.field for one in plan.fault_probes}
    apart -= kept
    shapes = {one.label: one.shape for one in plan.values}
    leaves = [shapes.get(label) for label in dict.fromkeys(measures)]
    programs = []
    for fields in plan.fields:
        fetches = dict(fields)
        numbers = []
        for leaf in leaves:
            if not isinstance(leaf, Leaf) or not _is_plain(leaf, fetches[leaf.field]):
                return None
            numbers.append((fetches[leaf.field], leaf.decode.signed))
        keys = tuple([(name, fetch) for name, fetch in fields if name not in apart])
        program = lower(keys, tuple(numbers), task)
        if any(isinstance(step, Loop) for step in program.steps):
            return None
        if len(program.steps) > _MOST_STEPS or key_bytes(program) > _KEY_BYTES:
            return None
        programs.append(program)
    return Counting(keyed, measures, tuple(programs)) if programs else None


def used_texts(plan: Plan) -> set[str]:
    """All texts in the shapes of a plan's values, the names of the fields that they need."""
    return {text for one in plan.values for text in texts_in(one.shape)}


def _is_plain(leaf: Leaf, fetch: Fetch) -> bool:
    # A whole number of the record is the value: no part of it, nothing computed.
    from fetchc.ir.fetch import Array, Bits, Comm, Text, fixed_bytes

    decode = leaf.decode
    if isinstance(fetch.store, Array | Bits | Text) or isinstance(fetch.value, Comm):
        return False
    bits = 8 * fixed_bytes(fetch.store)
    whole = (leaf.offset, leaf.shift, leaf.total, decode.count) == (0, 0, 0, None)
    whole = whole and leaf.size in (0, bits // 8) and decode.bits in (None, bits)
    # What a guard takes for no address has no memory, so its load fails.
    near = all(0 <= guard.moved < LOWEST and not guard.kernel for guard in leaf.guards)
    return whole and near and decode.kind in _KINDS


def row_of(counting: Counting, program: Program, key: bytes, value: bytes) -> Row:
    """The row of one entry: a cell for each of ``counting.measures``."""
    aggregate = program.steps[-1]
    assert isinstance(aggregate, Aggregate)
    (hits,) = struct.unpack_from("=Q", value, Entry.HITS)
    cells = {
        label: _cell(one, hits, key, value, Entry.at(number))
        for number, (label, one) in enumerate(
            zip(dict.fromkeys(counting.measures), aggregate.measures, strict=True)
        )
    }
    row = Row([0 for _ in counting.measures])
    row.hits = hits
    row.cells = [cells[label] for label in counting.measures]
    return row


def _cell(one: Measured, hits: int, key: bytes, value: bytes, at: int) -> Cell:
    cell = Cell()
    low, high, largest, least = struct.unpack_from("=QqQQ" if one.signed else "=4Q", value, at)
    turned = 1 << 63 if one.signed else 0
    cell.count, cell.total = hits, (high << 32) + low
    cell.largest = (largest ^ turned) - (2 * (largest ^ turned) & 2 * turned)
    smallest = least ^ _MASK ^ turned
    cell.smallest = smallest - (2 * smallest & 2 * turned)
    cell.buckets = {struct.unpack_from("=i", key, one.at)[0]: hits}
    return cell
