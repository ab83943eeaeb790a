"""Which hits the kernel can count by itself, and what the entries of its map say.

The key of an entry is of a record of what the table's keys need, so that the decoder of records
reads it, with the number of each measure's bucket. Its numbers are exact, so the rows that
:func:`row_of` makes of the entries are those that the reader's own counting would give.
"""

from __future__ import annotations

import struct

from fetchc.emit.bpf_counting import Entry
from fetchc.ir.fetch import Calculated
from fetchc.ir.steps import Aggregate, Loop
from fetchc.record import Record
from fetchc.tracer.events import COMM, LATENCY
from fetchc.tracer.guards import LOWEST
from fetchc.tracer.tables import Cell, Row
from fetchc.tracer.value_shapes import Leaf, texts_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fetchc.ir.fetch import Fetch, Term, Value
    from fetchc.ir.steps import Measured, Program
    from fetchc.tracer.events import Plan
    from fetchc.tracer.tables import Number
    from fetchc.tracer.value_shapes import Guard

    Identify = Callable[[Term, Term | None], Program]

    Measures = tuple[tuple[Fetch | None, bool], ...]
    Lower = Callable[[tuple[tuple[str, Fetch], ...], Measures, tuple[str, ...]], Program]

__all__ = [
    "Counting",
    "Entering",
    "counting",
    "guards_fail",
    "identified",
    "is_plain",
    "row_of",
]

_KINDS = ("integer", "duration", "enum", "pointer")
_MOST_STEPS = 64
_MASK = (1 << 64) - 1


class Counting(Record):
    """How hits of a plan are counted: a program for each of its definitions.

    ``plan`` has the values that keys and filters need. ``measures`` are the labels of the numbers
    to count, some maybe twice; each of them has one place in the entries. ``calls``, at returns of
    calls that are timed, identify those. ``passed``: a program has applied the whole filter before.
    """

    plan: Plan
    measures: tuple[str, ...]
    programs: tuple[Program, ...]
    calls: tuple[Program, ...] = ()
    passed: bool = False


class Entering(Record):
    """The entries of calls that are timed: for each definition of a plan what identifies them."""

    calls: tuple[Program, ...]


def identified(
    plan: Plan, place: str, pushed: int, stack: str, end: str, identify: Identify
) -> tuple[Program, ...]:
    """The steps that identify the calls of a plan, for each definition; empty: there are none.

    ``place`` is the label of the stack pointer, which is ``pushed`` more than at the entry;
    ``stack`` and ``end``, in Go, those of the goroutine and of the high end of its stack.
    """
    shapes = {one.label: one.shape for one in plan.values}
    programs = []
    for fields in plan.fields:
        fetches = dict(fields)
        found: dict[str, Value] = {}
        for label in (place, *((stack, end) if stack else ())):
            leaf = shapes.get(label)
            if not isinstance(leaf, Leaf) or not is_plain(leaf, fetches[leaf.field]):
                return ()
            found[label] = fetches[leaf.field].value
        frame: Term = Calculated("sub", found[place], pushed)
        if stack:
            frame = Calculated("sub", found[end], frame)
        programs.append(identify(frame, found[stack] if stack else None))
    return tuple(programs)


def counting(
    plan: Plan,
    measures: tuple[str, ...],
    labels: Iterable[str],
    task: tuple[str, ...],
    always: Iterable[str],
    lower: Lower,
    fits: Callable[[Program], bool],
    calls: tuple[Program, ...] = (),
) -> Counting | None:
    """How the kernel counts ``measures`` by the values ``labels`` and ``task``; None: it cannot.

    ``always`` are fields of every key. ``lower`` makes the steps of fields, measures (whether they
    are signed) and what is said of the task, and ``fits`` says whether a program has room for them.
    ``calls`` have the time that is the measure LATENCY.
    """
    wanted = set(labels)
    keyed = plan.replaced(values=tuple([one for one in plan.values if one.label in wanted]))
    # A field that no value names continues an object that begins in the field before it.
    kept = _used_texts(keyed)
    apart = {COMM, *_used_texts(plan)} - set(always) | {one.field for one in plan.fault_probes}
    apart -= kept
    shapes = {one.label: one.shape for one in plan.values}
    programs = []
    for fields in plan.fields:
        fetches = dict(fields)
        numbers: list[tuple[Fetch | None, bool]] = []
        for label in dict.fromkeys(measures):
            if label == LATENCY and calls:
                numbers.append((None, False))
                continue
            leaf = shapes.get(label)
            if not isinstance(leaf, Leaf) or not is_plain(leaf, fetches[leaf.field]):
                return None
            numbers.append((fetches[leaf.field], leaf.decode.signed))
        keys = tuple([(name, fetch) for name, fetch in fields if name not in apart])
        program = lower(keys, tuple(numbers), task)
        if any(isinstance(step, Loop) for step in program.steps):
            return None
        if len(program.steps) > _MOST_STEPS or not fits(program):
            return None
        programs.append(program)
    return Counting(keyed, measures, tuple(programs), calls) if programs else None


def _used_texts(plan: Plan) -> set[str]:
    """All texts in the shapes of a plan's values, the names of the fields that they need."""
    return {text for one in plan.values for text in texts_in(one.shape)}


def is_plain(leaf: Leaf, fetch: Fetch) -> bool:
    """Whether a whole number of the record is the value: no part of it, nothing computed."""
    from fetchc.ir.fetch import Array, Bits, Comm, Text, fixed_bytes

    decode = leaf.decode
    if isinstance(fetch.store, Array | Bits | Text) or isinstance(fetch.value, Comm):
        return False
    bits = 8 * fixed_bytes(fetch.store)
    whole = (leaf.offset, leaf.shift, leaf.total, decode.count) == (0, 0, 0, None)
    whole = whole and leaf.size in (0, bits // 8) and decode.bits in (None, bits)
    return whole and guards_fail(leaf.guards) and decode.kind in _KINDS


def guards_fail(guards: Iterable[Guard]) -> bool:
    """Whether a load fails wherever a guard says so: what it takes for no address has no memory."""
    return all(0 <= guard.moved < LOWEST and not guard.kernel for guard in guards)


def row_of(
    counting: Counting, program: Program, record: bytes, value: bytes, before: bytes | None = None
) -> Row:
    """The row of one entry: a cell for each of ``counting.measures``.

    ``record`` is what :func:`~fetchc.emit.bpf_counting.keyed_record` gives of the entry's key.
    ``before`` is an earlier value of the entry: the row is of the hits since then, but for the
    ends, which are of all hits in the entry's buckets.
    """
    aggregate = program.steps[-1]
    assert isinstance(aggregate, Aggregate)
    before = before or bytes(len(value))
    row = Row([0 for _ in counting.measures])
    row.hits = _hits(value) - _hits(before)
    cells = {}
    for number, label in enumerate(dict.fromkeys(counting.measures)):
        one, at = aggregate.measures[number], Entry.at(number)
        cell = cells[label] = _cell(one, value, at)
        cell.total = _in_ones(cell.total - _cell(one, before, at).total, one.unit)
        cell.smallest = _in_ones(cell.smallest or 0, one.unit)
        cell.largest = _in_ones(cell.largest or 0, one.unit)
        cell.count = row.hits
        cell.buckets = {struct.unpack_from("=i", record, one.at)[0]: row.hits}
    row.cells = [cells[label] for label in counting.measures]
    return row


def _hits(value: bytes) -> int:
    return int(struct.unpack_from("=Q", value, Entry.HITS)[0])


def _cell(one: Measured, value: bytes, at: int) -> Cell:
    # The sum and the ends.
    cell = Cell()
    low, high, largest, least = struct.unpack_from("=QqQQ" if one.signed else "=4Q", value, at)
    turned = 1 << 63 if one.signed else 0
    cell.total = (high << 32) + low
    cell.largest = (largest ^ turned) - (2 * (largest ^ turned) & 2 * turned)
    smallest = least ^ _MASK ^ turned
    cell.smallest = smallest - (2 * smallest & 2 * turned)
    return cell


def _in_ones(number: Number, unit: int) -> Number:
    return number if unit == 1 else round(number / unit, 3)
