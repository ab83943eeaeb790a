"""Which hits the kernel can count by itself, and what the entries of its map say.

The key of an entry is of a record of what the table's keys need, so that the decoder of records
reads it, with the number of each measure's bucket. Its numbers are exact, so the rows that
:func:`row_of` makes of the entries are those that the reader's own counting would give.
"""

from __future__ import annotations

import struct

from fetchc.emit.bpf_counting import Entry
from fetchc.ir.fetch import Calculated, OfHit, Scalar
from fetchc.ir.step_lowering import Totals
from fetchc.ir.steps import NANOSECONDS, Aggregate, Loop
from fetchc.ir.term_operators import Numeral
from fetchc.record import Record
from fetchc.tracer.bpf.computed_terms import (
    decoded,
    guards_fail,
    multiples,
    numeral,
    store_of,
    stored,
    stored_as,
)
from fetchc.tracer.events import COMM, LATENCY, EventValue
from fetchc.tracer.tables import Cell, Row
from fetchc.tracer.value_shapes import Leaf, texts_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from fetchc.ir.fetch import Fetch, Term, Value
    from fetchc.ir.steps import Measured, Program
    from fetchc.tracer.bpf.noted_values import Noted
    from fetchc.tracer.events import Plan
    from fetchc.tracer.tables import Number
    from fetchc.tracer.value_shapes import Shape

    Identify = Callable[[int, Term, Term | None, tuple[Term, ...]], Program]
    Programs = tuple[Program, ...]
    Fields = tuple[tuple[str, Fetch], ...]
    Lower = Callable[[int, Fields, Totals], Program]

__all__ = [
    "Counting",
    "counting",
    "identified",
    "is_plain",
    "row_of",
]

_KINDS = ("integer", "duration", "enum", "pointer")
_MOST_STEPS = 512
_MASK = (1 << 64) - 1


class Counting(Record):
    """How hits of a plan are counted: a program for each of its definitions.

    ``plan`` has the values that keys and filters need. ``measures`` are the labels of the numbers
    to count, each with the step of its linear buckets (0: there are none), some labels maybe twice;
    each of them has one place in the entries. ``calls``, at returns of calls that are timed,
    identify those, and ``noted`` are what the programs have of their entries. ``passed``: a program
    has applied the whole filter before.
    """

    plan: Plan
    measures: tuple[tuple[str, int], ...]
    programs: tuple[Program, ...]
    calls: tuple[Program, ...] = ()
    passed: bool = False
    noted: tuple[Noted, ...] = ()


def identified(
    plan: Plan,
    place: str,
    pushed: int,
    stack: str,
    end: str,
    identify: Identify,
    terms: tuple[tuple[Term, ...], ...] = (),
) -> tuple[Program, ...]:
    """The steps that identify the calls of a plan, for each definition; empty: there are none.

    ``place`` is the label of the stack pointer, which is ``pushed`` more than at the entry;
    ``stack`` and ``end``, in Go, those of the goroutine and of the high end of its stack. ``terms``
    are what each definition notes of an entry. ``identify`` makes the steps of the definition of
    that number.
    """
    shapes = {one.label: one.shape for one in plan.values}
    programs = []
    for at, fields in enumerate(plan.fields):
        fetches = dict(fields)
        found: dict[str, Value] = {}
        for label in (place, *((stack, end) if stack else ())):
            leaf = shapes.get(label)
            if not isinstance(leaf, Leaf) or not is_plain(leaf, fetches[leaf.field]):
                return ()
            found[label] = fetches[leaf.field].value
        frame: Term = Calculated("sub", found[place], pushed) if pushed else found[place]
        if stack:
            frame = Calculated("sub", found[end], frame)
        of_entry = terms[at] if terms else ()
        programs.append(identify(at, frame, found[stack] if stack else None, of_entry))
    return tuple(programs)


def counting(
    plan: Plan,
    measures: tuple[tuple[str, int], ...],
    labels: Iterable[str],
    task: tuple[str, ...],
    always: Iterable[str],
    lower: Lower,
    fits: Callable[[Program], bool],
    calls: tuple[Program, ...] = (),
    noted: tuple[Noted, ...] = (),
) -> Counting | None:
    """How the kernel counts ``measures`` by the values ``labels`` and ``task``; None: it cannot.

    ``always`` are fields of every key. ``lower`` makes the steps of the definition of that number,
    and ``fits`` says whether a program has room for them. ``calls`` have the time that is the
    measure LATENCY, and the numbers ``noted`` of their entries.
    """
    wanted, places = set(labels), dict[str, str]()
    own = {one.label for one in plan.values}
    of_entry = {one.label: one for one in noted if one.label not in own}
    values: list[EventValue] = []
    for one in plan.values:
        if one.label in wanted:
            place = _COMPUTED.format(len(values))
            shape = _in_one_field(one.shape, dict(plan.fields[0]), place)
            if shape is not one.shape:
                places[one.label] = place
            values.append(one.replaced(shape=shape))
    kept_apart = [one for label, one in of_entry.items() if label in wanted]
    values += [EventValue(one.label, one.shape) for one in kept_apart]
    keyed = plan.replaced(values=tuple(values))
    # A field that no value names continues an object that begins in the field before it.
    kept = _used_texts(keyed)
    apart = {COMM, *_used_texts(plan)} - set(always) | {one.field for one in plan.fault_probes}
    apart -= kept
    shapes = {one.label: one.shape for one in plan.values}
    programs = []
    for definition, fields in enumerate(plan.fields):
        fetches = dict(fields)
        computed: list[tuple[str, tuple[Term, ...], Scalar]] = []
        for label, place in places.items():
            found = numeral(shapes[label], fetches)
            if found is None:
                return None
            computed.append((place, (found.term,), store_of(found)))
        computed += [field for one in kept_apart for field in one.fields]
        numbers: list[tuple[Term, int, bool]] = []
        for label in dict.fromkeys([label for label, _ in measures]):
            measured = _measured(label, shapes, fetches, of_entry, timed=bool(calls))
            if measured is None:
                return None
            numbers.append(measured)
        for number, (label, step) in enumerate(measures):
            if step and label == LATENCY:
                computed.append((_STEP.format(number), (_of_time(step),), _STEPS))
            elif step:
                found = _number_of(label, shapes, fetches, of_entry)
                if found is None:
                    return None
                computed.append((_STEP.format(number), (multiples(found, step),), _STEPS))
        keys = tuple([(name, fetch) for name, fetch in fields if name not in apart])
        program = lower(definition, keys, Totals(tuple(computed), tuple(numbers), task))
        if any(isinstance(step, Loop) for step in program.steps):
            return None
        if len(program.steps) > _MOST_STEPS or not fits(program):
            return None
        programs.append(program)
    counted = Counting(keyed, measures, tuple(programs), calls, noted=tuple(noted))
    return counted if programs else None


# Fields of a key that are computed: a value, which multiple of its step a measure has reached.
_COMPUTED, _STEP = "computed{}", "step{}"
_STEPS = Scalar("s", 64)


def _in_one_field(shape: Shape, fetches: Mapping[str, Fetch], place: str) -> Shape:
    # A value that is computed is in the key as it is, and not by what it is computed of.
    found = None if isinstance(shape, Leaf) else numeral(shape, fetches)
    if found is None:
        return shape
    return Leaf(place, stored_as(found, decoded(shape)))


def _measured(
    label: str,
    shapes: Mapping[str, Shape],
    fetches: Mapping[str, Fetch],
    of_entry: Mapping[str, Noted],
    timed: bool,
) -> tuple[Term, int, bool] | None:
    # A term, the bytes of it that are the number, whether that is signed.
    if label == LATENCY and timed:
        return OfHit("elapsed"), 8, False
    shape = shapes.get(label)
    if label not in of_entry and isinstance(shape, Leaf) and is_plain(shape, fetches[shape.field]):
        found = stored(shape, fetches)
        return None if found is None else (*found, shape.decode.signed)
    number = _number_of(label, shapes, fetches, of_entry)
    return None if number is None else (number.term, 8, number.number.signed)


def _number_of(
    label: str,
    shapes: Mapping[str, Shape],
    fetches: Mapping[str, Fetch],
    of_entry: Mapping[str, Noted],
) -> Numeral | None:
    # An integer of the hit, or of its entry.
    if label in of_entry:
        value = of_entry[label].value
        return value if isinstance(value, Numeral) and not value.number.floating else None
    return numeral(shapes[label], fetches) if label in shapes else None


def _of_time(step: int) -> Term:
    return Calculated("div", OfHit("elapsed"), min(NANOSECONDS * step, _MASK))


def _used_texts(plan: Plan) -> set[str]:
    """All strings in the shapes of a plan's values, the names of the fields that they need."""
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
    row = Row([])
    row.hits = _hits(value) - _hits(before)
    cells = {}
    for number, label in enumerate(dict.fromkeys([label for label, _ in counting.measures])):
        one, at = aggregate.measures[number], Entry.at(number)
        cell = cells[label] = _cell(one, value, at)
        cell.total = _in_ones(cell.total - _cell(one, before, at).total, one.unit)
        cell.smallest = _in_ones(cell.smallest or 0, one.unit)
        cell.largest = _in_ones(cell.largest or 0, one.unit)
        cell.count = row.hits
        cell.buckets = {struct.unpack_from("=i", record, one.at)[0]: row.hits}
    places = {slot.name: slot.at for slot in program.slots}
    for number, (label, step) in enumerate(counting.measures):
        cell = cells[label]
        if step:
            (index,) = struct.unpack_from("=q", record, places[_STEP.format(number)])
            cell = cell.in_step(step, index)
        row.cells.append(cell)
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
