"""eBPF programs time the calls that the reader of events would, whatever order hits come in."""

from __future__ import annotations

import struct
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.emit import bpf_calls, bpf_layout
from fetchc.emit.bpf_calls import FORGOTTEN, Call, entry_code
from fetchc.emit.bpf_counting import Counted, Entry, key_bytes, keyed_record
from fetchc.emit.bpf_program import ring_record
from fetchc.emit.bpf_steps import (
    STOPPED,
    Maps,
    Point,
    Target,
)
from fetchc.ir.evaluate import State
from fetchc.ir.evaluate_steps import record
from fetchc.ir.fetch import (
    Array,
    Calculated,
    Decode,
    Deref,
    Fetch,
    OfEntry,
    OfHit,
    Part,
    Register,
    Scalar,
    StackPointer,
    Term,
    Text,
)
from fetchc.ir.step_lowering import Totals, call_steps, counting_steps, steps_of
from fetchc.ir.steps import HEADER, TIMED_BITS, Program
from fetchc.target.bpf_rules import bpf_machine, bpf_rules
from fetchc.tracer.bpf.counting import Counting, row_of
from fetchc.tracer.bpf.noted_values import entering, words_of
from fetchc.tracer.bpf.plan_programs import RECORDED, format_of
from fetchc.tracer.decode import Decoder
from fetchc.tracer.events import ELAPSED, LATENCY, UNSEEN, Event, EventValue, OpenCalls, Plan
from fetchc.tracer.string_values import decoded
from fetchc.tracer.tables import Cell, Row
from fetchc.tracer.value_shapes import Leaf, Shape, StringShape
from tests.property.test_bpf_programs import COUNTING, counting_machine

X86, RULES, MAPS = bpf_machine("x86_64"), bpf_rules((6, 18)), Maps(5, 6)
POINT = Point(77, 0x1234, False)
OPEN, EMPTY = 10, 11  # the map of open calls, the array of an empty value
PLAN = Plan("", "ev", "", None, "entry", 0, (), ())
PUSHED = 8
STACK_END = 0x9000
COUNTS = counting_steps([], Totals((), ((OfHit("elapsed"), 8, False),), ()), "sp", "ax")
RECORDS = steps_of([], "sp", "ax", [(ELAPSED, (OfHit("elapsed"),))])


class Thread:
    """A thread that enters functions and returns, and what its programs have counted."""

    def __init__(
        self, in_go: bool = False, most: int = 1 << 30, counts: Program | None = None
    ) -> None:
        self.in_go = in_go
        self.noted: tuple[Term, ...] = ()
        self.counts = counts or COUNTS
        self.machine = counting_machine(self.counts, ())
        self.machine.calling, self.machine.most_open = OPEN, most
        self.machine.empty_call = EMPTY
        self.machine.read = lambda address, size: STACK_END.to_bytes(size, "little")

    def hit(self, enters: bool, goroutine: int, sp: int, now: int) -> None:
        """Run the program of an entry or of a return; ``sp`` is that of the entry."""
        assert X86 is not None
        machine, pushed = self.machine, 0 if enters else PUSHED
        context = bytearray(machine.context)
        for name, value in (("di", goroutine), ("sp", sp + pushed), ("bx", 0x5000)):
            struct.pack_into("<Q", context, X86.registers[name], value)
        machine.context, machine.clock = bytes(context), now
        noted = self.noted if enters else ()
        call = Call(self.steps(pushed, noted), OPEN, EMPTY, len(self.noted))
        if enters and not noted:
            code = entry_code(call, Target(X86, RULES, MAPS, POINT, False, True, None))
        else:
            counted = None if enters else Counted(self.counts, COUNTING)
            code = ring_record(
                RECORDS, X86, RULES, MAPS, POINT, not enters, True, counted, call=call,
                entering=enters,
            )  # fmt: skip
        machine.run(code.instructions)

    def steps(self, pushed: int, noted: tuple[Term, ...]) -> Program:
        """What identifies the call."""
        place = Calculated("sub", StackPointer(), pushed)
        if self.in_go:
            place = Calculated("sub", Deref(Register("bx"), 0), place)
        return call_steps(place, Register("di") if self.in_go else None, "sp", "ax", noted)

    def counted(self) -> Cell:
        """All times of the map."""
        together, counting = Row([0]), Counting(PLAN, ((LATENCY, 0),), (COUNTS,))
        machine = self.machine
        for key, place in machine.entries.items():
            value = bytes(machine.values[place : place + machine.value_size])
            together.merge(row_of(counting, COUNTS, keyed_record(COUNTS, key), value))
        return together.cells[0]

    def recorded(self) -> list[int]:
        """The times in the records of returns that were not counted."""
        slot = RECORDS.slots[-1]
        assert (slot.name, slot.at) == (ELAPSED, HEADER)
        return [struct.unpack_from("<Q", one, slot.at)[0] for one in self.machine.submitted]


def read(hits: list[tuple[bool, int, int, int]], in_go: bool) -> tuple[Cell, int]:
    """What the reader counts of the same hits, and how many returns have no entry for it."""
    calls, cell, unseen = OpenCalls(most=1 << 16 if in_go else bpf_calls._NESTED), Cell(), 0
    for enters, goroutine, sp, now in hits:
        key = (goroutine or "thread") if in_go else sp
        depth = STACK_END - sp if in_go else None
        if enters:
            calls.enter(key, Event(PLAN, 0, 0, "", 0, 0.0, now, {}, ()), depth)
        elif (entry := calls.leave(key, depth)) is None:
            unseen += 1
        else:
            cell.add(round((now - entry.address) / 1e3, 3))
    return cell, unseen


@st.composite
def sequences(draw: st.DrawFn, in_go: bool) -> list[tuple[bool, int, int, int]]:
    """Entries and returns that a thread can have, in goroutines or not.

    Frames that were entered before the trace, that longjmp or a panic leaves, and those of tail
    calls, which begin where the caller's frame was and return with it.
    """
    hits, now = [], 0
    stacks: dict[int, list[int]] = {number: [0x8000] for number in ([0, 7, 8] if in_go else [0])}
    for number in draw(st.lists(st.sampled_from(sorted(stacks)), max_size=40)):
        now += draw(st.integers(0, 1 << 41)) >> draw(st.integers(0, 41))
        frames = stacks[number]
        what = draw(st.sampled_from(["enter", "enter", "return", "return", "leave", "tail"]))
        if what == "leave":
            del frames[draw(st.integers(0, 3)) :]
        elif what == "return" and frames:
            hits.append((False, number, frames.pop(), now))
        elif what != "return" and (frames or what == "enter") and not (in_go and what == "tail"):
            frames.append((frames[-1] if frames else 0x8010) - (16 if what == "enter" else 0))
            hits.append((True, number, frames[-1], now))
    return hits


@pytest.mark.parametrize("in_go", [False, True])
@given(st.data())
def test_the_same_calls_have_the_same_times(in_go: bool, data: st.DataObject) -> None:
    hits = data.draw(sequences(in_go))
    thread = Thread(in_go)
    for one in hits:
        thread.hit(*one)
    mine, (theirs, unseen) = thread.counted(), read(hits, in_go)
    assert (mine.count, mine.buckets) == (theirs.count, theirs.buckets)
    assert (mine.smallest, mine.largest) == (theirs.smallest, theirs.largest)
    assert mine.total == pytest.approx(theirs.total, abs=1e-6)
    assert thread.recorded() == [UNSEEN] * unseen


def test_other_pairs_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    hits = [(True, 0, 0x8000, 100), (True, 0, 0x7FF0, 200), (False, 0, 0x8000, 1200)]
    monkeypatch.setattr(bpf_calls, "_PLACE", -8)  # not in the key
    thread = Thread()
    for one in hits:
        thread.hit(*one)
    assert thread.counted().total != read(hits, False)[0].total


def test_a_full_map_is_counted() -> None:
    thread = Thread(most=1)
    for one in ((True, 0, 0x8000, 0), (True, 0, 0x7FF0, 0), (False, 0, 0x7FF0, 5000)):
        thread.hit(*one)
    assert struct.unpack_from("<Q", thread.machine.lost, FORGOTTEN) == (1,)
    assert (thread.counted().count, thread.recorded()) == (0, [UNSEEN])
    thread.hit(False, 0, 0x8000, 9000)
    assert (thread.counted().largest, thread.machine.open) == (9.0, {})


def test_a_session_that_has_stopped_counts_and_records_nothing() -> None:
    # Its links end one after the other: the return would find a call that longjmp has left.
    thread = Thread()
    thread.hit(True, 0, 0x8000, 100)
    before = dict(thread.machine.open)
    thread.machine.lost[STOPPED] = 1
    thread.hit(True, 0, 0x7FF0, 200)
    thread.hit(False, 0, 0x8000, 300)
    thread.hit(False, 0, 0x7FE0, 300)
    assert thread.machine.open == before
    assert (thread.counted().count, thread.recorded()) == (0, [])


@pytest.mark.parametrize("nanoseconds", [(1 << TIMED_BITS) - 1, 1 << TIMED_BITS])
def test_what_takes_hours_is_recorded(nanoseconds: int) -> None:
    thread = Thread()
    thread.hit(True, 0, 0x8000, 0)
    thread.hit(False, 0, 0x8000, nanoseconds)
    said = record(COUNTS, State({}, thread.machine.read, elapsed=nanoseconds), 64)
    counted = nanoseconds < 1 << TIMED_BITS
    assert thread.recorded() == ([] if counted else [nanoseconds])
    assert thread.counted().count == counted == (said.numbers is not None)


def test_an_entry_that_cannot_be_identified_is_no_call() -> None:
    thread = Thread(in_go=True)
    thread.machine.read = lambda address, size: None
    thread.hit(True, 7, 0x8000, 0)
    thread.hit(False, 7, 0x8000, 5)
    assert (thread.machine.open, thread.recorded()) == ({}, [UNSEEN])


# ------------------------------------------------------------------------------
# The time from one function to another, of a process.


class Since(Thread):
    """A thread of several processes: one function begins a time, another one ends it."""

    def steps(self, pushed: int, noted: tuple[Term, ...]) -> Program:
        """What identifies the process."""
        return call_steps(None, None, "sp", "ax")

    def reach(self, begins: bool, process: int, now: int) -> None:
        """Run the program of one of the functions."""
        self.machine.process = process
        self.hit(begins, 0, 0x8000, now)


@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from([7, 8]), st.integers(1, 1 << 40)), max_size=40
    )
)
def test_a_time_is_from_the_last_begin_and_for_one_end(drawn: list[tuple[bool, int, int]]) -> None:
    thread, starts, wanted, unseen, now = Since(), OpenCalls(most=1), Cell(), 0, 0
    for begins, process, later in drawn:
        now += later
        thread.reach(begins, process, now)
        if begins:
            starts.enter(process, Event(PLAN, 0, 0, "", 0, 0.0, now, {}, ()))
        elif (start := starts.leave(process)) is None:
            unseen += 1
        else:
            wanted.add(round((now - start.address) / 1e3, 3))
    mine = thread.counted()
    assert (mine.count, mine.buckets) == (wanted.count, wanted.buckets)
    assert (mine.smallest, mine.largest) == (wanted.smallest, wanted.largest)
    assert thread.recorded() == [UNSEEN] * unseen


def test_a_time_that_another_thread_takes_meanwhile_is_gone() -> None:
    thread = Since()
    thread.reach(True, 7, 100)
    thread.machine.others = lambda memory, place: memory.__setitem__(
        slice(place, place + 8), bytes(8)
    )
    thread.reach(False, 7, 300)
    assert (thread.counted().count, thread.recorded()) == (0, [UNSEEN])


# ------------------------------------------------------------------------------
# Numbers of the entry, which its return has.

NUMBERED = counting_steps([], Totals((("n", (OfEntry(0),), Scalar("u", 64)),), (), ()), "sp", "ax")
NUMBERS = 0x7000  # where they are, as far as they can be read


class Noting(Thread):
    """A thread whose entries note a number, every fifth of which cannot be read."""

    def __init__(self, in_go: bool) -> None:
        super().__init__(in_go, counts=NUMBERED)
        self.noted, self.machine.noted = (Part(NUMBERS, 0, 8),), 1
        self.entered = 0
        self.machine.read = self.read

    def read(self, address: int, size: int) -> bytes | None:
        """The end of the stack, or the number of the entry."""
        number = STACK_END if address < NUMBERS else self.entered
        return None if number % 5 == 0 and number != STACK_END else number.to_bytes(size, "little")

    def hit(self, enters: bool, goroutine: int, sp: int, now: int) -> None:
        """As above; the number of an entry is how many there were."""
        self.entered += enters
        super().hit(enters, goroutine, sp, now + 1)  # at 0 it would be one that is recorded


@pytest.mark.parametrize("in_go", [False, True])
@given(st.data())
def test_a_return_has_the_number_of_its_own_entry(in_go: bool, data: st.DataObject) -> None:
    # An entry whose number cannot be read is recorded, and so is its return: the reader has both.
    thread, calls = Noting(in_go), OpenCalls(most=1 << 16 if in_go else bpf_calls._NESTED)
    wanted: Counter[int] = Counter()
    records = entered = 0
    for enters, goroutine, sp, now in data.draw(sequences(in_go)):
        thread.hit(enters, goroutine, sp, now)
        key = (goroutine or "thread") if in_go else sp
        depth = STACK_END - sp if in_go else None
        if enters:
            entered += 1
            records += entered % 5 == 0
            event = Event(PLAN, now, 0, "", 0, 0.0, entered, {}, ())
            calls.enter(key, event, depth)
            continue
        entry = calls.leave(key, depth)
        if entry is None or entry.address % 5 == 0 or now - entry.pid >> TIMED_BITS:
            records += 1
        else:
            wanted[entry.address] += 1
    counted: Counter[int] = Counter()
    for key_of_map, place in thread.machine.entries.items():
        (number,) = struct.unpack_from(
            "<Q", keyed_record(NUMBERED, key_of_map), NUMBERED.slots[0].at
        )
        counted[number] += struct.unpack_from("<Q", thread.machine.values, place + Entry.HITS)[0]
    assert counted == wanted
    assert len(thread.machine.submitted) == records


@pytest.mark.parametrize("noted", [Register("di"), Part(NUMBERS, 0, 8)])
def test_an_entry_records_nothing_where_nothing_can_fail(noted: Term) -> None:
    thread = Noting(False)
    thread.noted = (noted,)
    thread.hit(True, 3, 0x8000, 100)
    thread.hit(False, 3, 0x8000, 200)
    (key,) = thread.machine.entries
    at = NUMBERED.slots[0].at
    assert struct.unpack_from("<Q", keyed_record(NUMBERED, key), at) == (
        3 if isinstance(noted, Register) else 1,
    )


def test_a_number_of_another_call_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def numbers() -> set[int]:
        thread = Noting(in_go=False)
        for enters, sp in ((True, 0x8000), (True, 0x8000), (False, 0x8000)):
            thread.hit(enters, 0, sp, 1)
        keys = [keyed_record(NUMBERED, key) for key in thread.machine.entries]
        return {struct.unpack_from("<Q", key, NUMBERED.slots[0].at)[0] for key in keys}

    assert numbers() == {2}
    monkeypatch.setattr(bpf_calls, "noted_place", lambda number: bpf_layout.ELAPSED - 16)
    assert numbers() != {2}


@pytest.mark.parametrize("version", [(6, 1), (6, 18)])
def test_a_key_of_returns_is_read_on_each_kernel(version: tuple[int, int]) -> None:
    # Before Linux 6.6 a return does not know its function, and its records have no address.
    plan = PLAN.replaced(kind="return")
    format = format_of(plan, NUMBERED, 7, bpf_rules(version))
    data = keyed_record(NUMBERED, bytes(key_bytes(NUMBERED)))
    event = Decoder(format, [plan], RECORDED).event((0, 0, data, 0, len(data), ()))
    assert (event.comm, event.pid) == ("", 0)


# ------------------------------------------------------------------------------
# Strings of the entry: what it notes, and what the return reads of that.

LENGTH = Leaf("length", Decode("integer", 64, True))
STRINGS: dict[str, tuple[Shape, Fetch]] = {
    "c": (Leaf("c", Decode("text")), Fetch(Deref(Register("si"), 0), Text())),
    "go": (StringShape("go", 256, length=LENGTH),
           Fetch(Deref(Register("si"), 0), Array(Scalar("x", 64), 32))),
    "array": (StringShape("array", 12, limit=12),
              Fetch(Deref(Register("si"), 0), Array(Scalar("x", 64), 2))),
}  # fmt: skip


def at_return(kind: str, text: bytes, behind: bytes) -> object:
    """What the return of a call has of the string, None where its entry is recorded.

    The memory ends with what is ``after`` the string.
    """
    shape, fetch = STRINGS[kind]
    fields = ((kind, fetch), ("length", Fetch(Register("r8"), Scalar("s", 64))))
    plan = PLAN.replaced(values=(EventValue(kind, shape),), fields=(fields,))
    noted: list[Term] = []

    def identify(terms: tuple[tuple[Term, ...], ...]) -> tuple[Program, ...]:
        noted.extend(terms[0])
        return (COUNTS,)

    found = entering(plan, (kind,), identify)
    assert found is not None
    (one,) = found.noted
    assert words_of(found.noted) == len(noted)
    machine = counting_machine(COUNTS, ())
    data = text + behind
    machine.read = lambda address, size: (
        part if len(part := data[address - 0x5000 :][:size]) == size else None
    )
    context = bytearray(machine.context)
    assert X86 is not None
    for name, value in (("si", 0x5000), ("r8", len(text))):
        struct.pack_into("<Q", context, X86.registers[name], value)
    # The words as fields of one record, in place of a map's value between two of them.
    steps = counting_steps([], Totals(((kind, tuple(noted), Scalar("u", 64)),), (), ()), "sp", "ax")
    machine.context, machine.key_size, machine.value_size = bytes(context), key_bytes(steps), 16
    code = ring_record(RECORDS, X86, RULES, MAPS, POINT, False, True, Counted(steps, COUNTING))
    machine.run(code.instructions)
    if machine.submitted:
        return None
    (key,) = machine.entries
    words = struct.unpack_from(f"<{len(noted)}Q", keyed_record(steps, key), steps.slots[0].at)
    state = State({}, lambda address, size: None, elapsed=1, noted=words)
    returned = steps_of([], "sp", "ax", [(name, terms) for name, terms, _ in one.fields])
    data = record(returned, state, 64).fixed
    plan = PLAN.replaced(values=(EventValue(kind, one.shape),))
    decoder = Decoder(format_of(plan, returned, 0, RULES), [plan], RECORDED)
    return decoder.event((0, 0, data, 0, len(data), ())).args[kind]


@given(st.sampled_from(sorted(STRINGS)), st.binary(max_size=70), st.binary(max_size=20))
def test_a_return_has_the_string_of_its_entry(kind: str, text: bytes, behind: bytes) -> None:
    if kind == "c":
        text, behind = text.replace(b"\0", b"1"), b"\0" + behind
    elif kind == "array":
        text = text[:12].ljust(12, b"\0")
    longest = {"c": 63, "go": 64, "array": 12}[kind]
    seen = text.partition(b"\0")[0] if kind == "array" else text
    found = at_return(kind, text, behind + bytes(8))
    assert found == (decoded(seen, "text") if len(text) <= longest else None)
