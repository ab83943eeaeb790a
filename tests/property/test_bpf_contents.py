"""Contents are copied with their exact length, up to the first page that is not there."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fetchc.conformance.machine import Memory
from fetchc.emit.bpf_counting import Counted, Entry, key_bytes, keyed_record
from fetchc.emit.bpf_layout import text_rooms
from fetchc.emit.bpf_program import ring_record
from fetchc.emit.bpf_steps import (
    Maps,
    Point,
)
from fetchc.ir.evaluate import State
from fetchc.ir.evaluate_steps import record
from fetchc.ir.fetch import (
    Calculated,
    Comm,
    Contents,
    Cursor,
    Decode,
    Deref,
    Fetch,
    Part,
    Register,
    Scalar,
    Term,
    Text,
    Word,
)
from fetchc.ir.step_lowering import Totals, counting_steps, steps_of
from fetchc.ir.steps import HEADER, Loop, Program
from fetchc.lower.walks import side_by_side
from fetchc.target.bpf_rules import bpf_machine, bpf_rules
from fetchc.tracer.bpf.plan_programs import format_of
from fetchc.tracer.decode import ShapeMakers, reader
from fetchc.tracer.display_values import CutList, CutString
from fetchc.tracer.events import COMM, EventValue, Plan
from fetchc.tracer.guards import HIGHEST, LOWEST
from fetchc.tracer.list_values import Copied, copied_row
from fetchc.tracer.record_reader import value_reader
from fetchc.tracer.string_values import decoded
from fetchc.tracer.value_shapes import (
    ELEMENT,
    ElementsShape,
    Guard,
    Leaf,
    NumbersShape,
    RangeShape,
    SequenceShape,
    Shape,
    StringShape,
    StructShape,
    WalkShape,
)
from tests.property.test_bpf_programs import unlike
from tests.support.bpf_machine import BpfMachine

X86 = bpf_machine("x86_64")
assert X86 is not None
RULES = bpf_rules((6, 18))
_COMM = "comm", Fetch(Comm(), Text())
PAGE, PAGES = 4096, 6
START, HOLE = 0x30000, 0x30000 + 4 * PAGE  # a page that is not there, and then there is one more
BYTES = bytes([at * 7 % 251 * (at % 5 > 0) for at in range(PAGES * PAGE)])  # some of them are NUL
MEMORY = Memory({START: BYTES[: 4 * PAGE], HOLE + PAGE: BYTES[5 * PAGE :]})
SLEEPABLE = {(5, 10): False, (6, 0): True, (6, 18): True}

near_page_ends = st.builds(
    lambda page, moved: START + PAGE * page + moved, st.integers(0, PAGES), st.integers(-70, 70)
)
starts = st.one_of(near_page_ends, st.integers(START - 9, HOLE + 2 * PAGE), st.just(0))
limits = st.sampled_from((1, 40, 64, 65, 512, 1000, 4096, 4097, 9000, 20000))


@st.composite
def pieces(draw: st.DrawFn) -> tuple[int, int, int]:
    """Where contents begin, how many bytes they are, how many of them are wanted at most."""
    most = draw(limits)
    lengths = st.one_of(
        st.integers(0, most + 1), st.sampled_from((0, 64, 65, most, most + 1, 1 << 63, -1))
    )
    return draw(starts), draw(lengths), most


def there(start: int, size: int) -> bytes:
    """What a program has there, up to the first byte that it has not."""
    if not START <= start < HOLE + 2 * PAGE or HOLE <= start < HOLE + PAGE:
        return b""
    end = HOLE if start < HOLE else HOLE + 2 * PAGE
    return BYTES[start - START : min(start + size, end) - START]


def program_of(listed: list[tuple[int, int, int]]) -> Program:
    """Contents whose address is in memory after one register, their length after another."""
    fields = [("comm", Fetch(Comm(), Text()))]
    for number, (_, _, most) in enumerate(listed):
        size: Term = Part(Register("si"), 8 * number, 8)
        if number % 2:
            size = Calculated("sub", Calculated("add", size, 3), 3)
        start = Deref(Deref(Register("di"), 8 * number), 0)
        fields.append((f"f{number}", Fetch(Contents(start, size, most), Text())))
    return steps_of(fields, "sp", "ax")


POINTERS, LENGTHS = 0x50000, 0x60000


def state_of(listed: list[tuple[int, int, int]]) -> State:
    """The thread at the probe."""
    pointers = b"".join([struct.pack("<Q", start) for start, _, _ in listed])
    lengths = b"".join([struct.pack("<Q", size & (1 << 64) - 1) for _, size, _ in listed])
    pages = {**MEMORY.regions, POINTERS: pointers, LENGTHS: lengths}
    return State({"di": POINTERS, "si": LENGTHS}, Memory(pages).read, 0, b"task")


def run(
    program: Program, state: State, version: tuple[int, int], resident: bool = True
) -> tuple[bytes, BpfMachine]:
    """The record that the instructions make."""
    assert X86 is not None
    context = bytearray(168)
    for name, value in state.registers.items():
        struct.pack_into("<Q", context, X86.registers[name], value)
    machine = BpfMachine(bytes(context), state.read, resident=resident)
    point = Point(1, 0, False)
    code = ring_record(
        program, X86, bpf_rules(version), Maps(5, 6), point, False, SLEEPABLE[version]
    )
    machine.run(code.instructions)
    return machine.submitted[0], machine


def found_in(program: Program, data: bytes) -> list[tuple[bytes, bool]]:
    """The contents of a record, and whether the record has a fault of each."""
    found = []
    faults = int.from_bytes(data[program.faults_at : program.size], "little")
    for slot in program.slots[1:]:
        (word,) = struct.unpack_from("<I", data, slot.at)
        bits = [one.bit for one in program.bits if one.low <= slot.at < one.high]
        low, size = word & 0xFFFF, word >> 16
        found.append((data[low : low + size], any(faults >> bit & 1 for bit in bits)))
    return found


@example([(HOLE - 100, 9000, 9000)], (5, 10), True)
@given(
    st.lists(pieces(), min_size=1, max_size=4), st.sampled_from(sorted(SLEEPABLE)), st.booleans()
)
def test_contents_are_exact(
    listed: list[tuple[int, int, int]], version: tuple[int, int], resident: bool
) -> None:
    program, state = program_of(listed), state_of(listed)
    data, machine = run(program, state, version, resident or not SLEEPABLE[version])
    rooms = text_rooms(program, bpf_rules(version))
    assert rooms[-1] >= min(16000, *[most for _, _, most in listed])  # of four in a record
    longest = 0
    steps = record(program, state, rooms[-1])
    for number, (raw, faulted) in enumerate(found_in(program, data)):
        start, size, most = listed[number]
        wanted = min(size & (1 << 64) - 1, most, rooms[-1])
        longest = max(longest, wanted)
        assert raw == there(start, wanted)
        assert faulted == (len(raw) < wanted)
        assert steps.texts[number] == raw
    # The record is no larger than what is in it.
    smallest = next(room for room in rooms if room >= longest)
    assert len(data) == program.size + program.texts * smallest
    assert machine.discarded == rooms.index(smallest)


@given(
    st.lists(st.tuples(starts, st.integers(1, 13000)), min_size=1, max_size=4),
    st.sampled_from(sorted(SLEEPABLE)),
)
@example([(HOLE - 5000, 9000), (START, 13000), (START + 1, 13000)], (5, 10))
def test_those_of_a_constant_size_have_a_place_of_their_own(
    listed: list[tuple[int, int]], version: tuple[int, int]
) -> None:
    fields = [("comm", Fetch(Comm(), Text()))]
    for number, (_, size) in enumerate(listed):
        start = Deref(Deref(Register("di"), 8 * number), 0)
        fields.append((f"f{number}", Fetch(Contents(start, size, size), Text())))
    program = steps_of(fields, "sp", "ax")
    state = state_of([(start, size, size) for start, size in listed])
    data, machine = run(program, state, version)
    # As many as there is room for before what follows; the others are among the strings.
    fixed = [bool(slot.room) for slot in program.slots[1:]]
    assert fixed[0]
    assert program.texts == fixed.count(False)
    assert program.size < 17000
    assert all(fixed) or sum(size for _, size in listed) > 16000
    assert machine.discarded == 0 or not all(fixed)
    room = text_rooms(program, bpf_rules(version))[-1:] or (0,)
    steps, texts = record(program, state, room[0]), 0
    for number, (raw, faulted) in enumerate(found_in(program, data)):
        place, size = listed[number]
        assert (raw, faulted) == (there(place, size), len(there(place, size)) < size)
        if fixed[number]:
            slot = program.slots[1 + number]
            low = int.from_bytes(data[slot.at : slot.at + 2], "little")
            assert steps.fixed[slot.at : slot.at + 4] == data[slot.at : slot.at + 4]
            assert steps.fixed[low : low + len(raw)] == raw
            assert low + slot.room <= program.size
        else:
            assert steps.texts[texts] == raw
            texts += 1


# How a reader shows them: a string with a length, a list with one, a range of each; lists of
# objects of three bytes, and an array of those.
LENGTH = Leaf("length", Decode("integer", 64, True), guards=(Guard("lengths"),))
BEHIND = (Guard("pointers"), Guard("start"))


def shapes(most: int) -> dict[str, tuple[int, Shape]]:
    """By label the bytes of an element, and a shape of as many as there are."""
    text = StringShape("text", most, length=LENGTH, guards=BEHIND)
    whole = StringShape("text", most, guards=BEHIND)
    row = NumbersShape("row", Decode("integer", 16), most // 2, 2, guards=BEHIND)
    inner = NumbersShape(ELEMENT, Decode("integer", 8), 3, 1)
    objects = ElementsShape("row", inner, most // 3, 3, BEHIND, most // 3 + 5)
    return {
        "text": (1, text),
        "row": (2, SequenceShape(LENGTH, row)),
        "part": (1, RangeShape(whole, 0, 3, LENGTH, None)),
        "some": (2, RangeShape(row, 0, 3, LENGTH, None)),
        "objects": (3, SequenceShape(LENGTH, objects)),
        "part of objects": (3, RangeShape(objects, 0, 3, LENGTH, None)),
        "array": (3, objects),
    }


def shown(start: int, count: int, most: int, each: int, passed: int) -> tuple[Any, bool]:
    """What is shown of so many elements from ``start`` on, without the first few; a fault."""
    if not passed <= count < HIGHEST:
        return None, True
    if passed == count:
        return ([] if each > 1 else ""), False
    size = min(each * count, most // each * each)
    copied = there(start, size)
    found = copied[each * passed :]
    if start < LOWEST or (size and not copied) or (not found and size > each * passed):
        return None, True
    fault, cut = len(found) < size - each * passed, size < each * count
    if each == 1:
        whole = not fault and not cut
        text = decoded(found, cut=not whole)
        return (text if whole else CutString(text, count - passed)), fault
    whole_ones = found[: len(found) // each * each]
    values: list[Any] = [one for (one,) in struct.iter_unpack("<H", whole_ones)] if each == 2 else [
        list(whole_ones[at : at + 3]) for at in range(0, len(whole_ones), 3)
    ]  # fmt: skip
    if fault and not values:
        return None, True
    values += [None] * (size // each - passed - len(values))
    return (CutList(values, count - passed) if cut else values), fault


@given(pieces(), st.sampled_from(tuple(shapes(512))))
@example((START + 5, 600, 512), "text")
@example((START + 5, 600, 512), "some")
@example((START + 5, -1, 512), "text")
@example((HOLE - 7, 20, 512), "row")
@example((HOLE - 7, 20, 512), "part")
@example((HOLE - 7, 20, 512), "objects")
@example((HOLE - 20, 20, 512), "part of objects")
@example((HOLE - 20, 20, 512), "array")
def test_they_are_shown(piece: tuple[int, int, int], label: str) -> None:
    start, count, most = piece
    each, shape = shapes(most)[label]
    pointer, number = Deref(Register("di"), 0), Deref(Register("si"), 0)
    size: Term = Calculated("mul", Part(Register("si"), 0, 8), each)
    beside: list[tuple[str, Fetch]] = []
    if label == "array":  # its length is that of its type, and its room is not that of strings
        size, count = most // each * each, most // each + 5
        other = Contents(Deref(pointer, 0), Part(Register("si"), 0, 8), 9)
        beside = [("other", Fetch(other, Text()))]
    contents = Contents(Deref(pointer, 0), size, most // each * each)
    fields = (
        ("pointers", Fetch(Register("di"), Word())),
        ("lengths", Fetch(Register("si"), Word())),
        ("start", Fetch(pointer, Scalar("u", 64))),
        ("text" if each == 1 else "row", Fetch(contents, Text())),
        ("length", Fetch(number, Scalar("s", 64))),
        *beside,
        (COMM, Fetch(Comm(), Text())),
    )
    program, state = steps_of(fields, "sp", "ax"), state_of([piece])
    data, _ = run(program, state, (6, 18))
    plan = Plan("g", "e", "/x", "f", "entry", 0, ("",), (EventValue(label, shape),), (), (fields,))
    format = format_of(plan, program, 1, bpf_rules((6, 18)))
    args, faults = reader(plan, format)(data)
    passed = 3 * isinstance(shape, RangeShape)
    wanted, faulted = shown(start, count, most, each, passed)
    assert (args[label], bool(faults)) == (wanted, faulted)
    assert getattr(args[label], "__dict__", {}) == getattr(wanted, "__dict__", {})
    # The generated function agrees, or leaves the record to the others.
    generated = value_reader(plan, format, ShapeMakers(format, (), None, None, False))
    found = generated(data, 0, len(data))
    assert found is None or (repr(found), faults) == (repr(args), ())
    assert found is not None or faults or label != "text"


@pytest.mark.parametrize(("room", "read"), [(118, 118), (118, 56), (112, 112), (28, 28), (20, 20)])
def test_a_room_that_ends_in_an_element_cuts_the_list(room: int, read: int) -> None:
    data = struct.pack("<I", 4 | read << 16) + bytes(read)
    faults: list[str] = []
    numbers = copied_row(
        Copied(0, room), lambda data, raw, faults: list(range(len(raw) // 28)), 28, "v"
    )
    shown = numbers(data, faults, 0, 40)
    whole, missing = read // 28, room // 28 - read // 28
    assert shown == [*range(whole), *[None] * missing]
    assert isinstance(shown, CutList)
    assert faults == [f"v[{index}]" for index in range(whole, whole + missing)]


def one_by_one(start: int, index: int) -> tuple[dict[str, Any] | None, list[str]]:
    """What is shown of an element: two numbers, and a string that begins with them; its faults.

    The second one is the length of the text, of which there are 100 bytes at most.
    """
    place, path = start + 2 * index, f"v[{index}]"
    first, second = there(place, 1), there(place + 1, 1)
    faults = [] if first else [f"{path}.each"]
    each, text = (first[0] if first else None), None
    if second:
        size = second[0]
        raw = there(place, min(size, 100))
        text = decoded(raw, cut=len(raw) < size)
        if len(raw) < min(size, 100):
            faults.append(f"{path}.text[{len(raw)}:]" if raw else f"{path}.text")
            text = text if raw else None
    else:
        faults.append(f"{path}.text")
    if each is None and text is None:
        return None, [path]
    return {"each": each, "text": text}, faults


@given(pieces(), st.sampled_from((0, 3)))
@example((HOLE - 10, 20, 5120), 3)
@example((HOLE - 9, 20, 5120), 0)
@example((START + 9, 25, 5120), 0)
def test_elements_that_are_read_one_by_one_are_shown(
    piece: tuple[int, int, int], passed: int
) -> None:
    start, count, most = piece[0], piece[1], piece[2] // 256 + 1
    pointer, number = Deref(Register("di"), 0), Deref(Register("si"), 0)
    text = Contents(Deref(Cursor(0), 0), Part(Cursor(0), 1, 1), 100)
    walk = side_by_side(pointer, Part(Register("si"), 0, 8), 2, most).replaced(
        fields=(
            ("each", Fetch(Deref(Cursor(0), 0), Scalar("u", 8))),
            ("size", Fetch(Deref(Cursor(0), 1), Scalar("u", 8))),
            ("text", Fetch(text, Text())),
        )
    )
    size = Leaf("size", Decode("integer", 8))
    inner = StructShape(
        (
            ("each", Leaf("each", Decode("integer", 8))),
            ("text", StringShape("text", 100, length=size)),
        )
    )
    elements = WalkShape("walk", inner, True, guards=BEHIND)
    shape: Shape = SequenceShape(LENGTH, elements)
    if passed:
        shape = RangeShape(elements, 0, passed, LENGTH, None)
    # Beside the walk there is a string that has another room.
    other = Contents(Deref(pointer, 0), Part(Register("si"), 0, 8), 9000)
    fields = (
        ("pointers", Fetch(Register("di"), Word())),
        ("lengths", Fetch(Register("si"), Word())),
        ("start", Fetch(pointer, Scalar("u", 64))),
        ("walk", Fetch(walk, Word())),
        ("length", Fetch(number, Scalar("s", 64))),
        ("other", Fetch(other, Text())),
        (COMM, Fetch(Comm(), Text())),
    )
    program, state = steps_of(fields, "sp", "ax"), state_of([piece])
    data, _ = run(program, state, (6, 18))
    assert not unlike(program, data, record(program, state, text_rooms(program, RULES)[-1]))
    plan = Plan("g", "e", "/x", "f", "entry", 0, ("",), (EventValue("v", shape),), (), (fields,))
    args, faults = reader(plan, format_of(plan, program, 1, RULES))(data)
    if not passed <= count < HIGHEST or (start < LOWEST and count > passed):
        assert (args["v"], faults) == (None, ("v",))
        return
    found = [one_by_one(start + 2 * passed, index) for index in range(min(count, most) - passed)]
    wanted = [one for one, _ in found]
    if wanted and not any(wanted):
        assert (args["v"], faults) == (None, ("v",))
        return
    assert (args["v"], faults) == (wanted, tuple([one for _, each in found for one in each]))
    assert isinstance(args["v"], CutList) == (len(wanted) < count - passed)


@pytest.mark.parametrize(("long", "discarded"), [(0, 1), (400, 1), (5000, 3)])
def test_strings_of_elements_have_no_more_room_than_they_can_fill(
    long: int, discarded: int
) -> None:
    of_each = [("a", Contents(Deref(Cursor(0), 0), None, 100)),
               ("b", Contents(Deref(Cursor(0), 200), None, 100))]  # fmt: skip
    walk = side_by_side(Register("di"), Register("si"), 1, 3).replaced(
        fields=tuple([(name, Fetch(one, Text())) for name, one in of_each])
    )
    other = Contents(Deref(Register("di"), 0), Register("ax"), 9000)
    fields = (("walk", Fetch(walk, Word())), ("other", Fetch(other, Text())), _COMM)
    program, memory = steps_of(fields, "sp", "ax"), Memory({START: b"xy" * 5000})
    state = State({"di": START, "si": 3, "ax": long}, memory.read, 0, b"task")
    data, machine = run(program, state, (6, 18))
    rooms = text_rooms(program, RULES)
    assert (rooms, machine.discarded) == ((64, 512, 4096, 9000), discarded)
    (loop,) = [step for step in program.steps if isinstance(step, Loop)]
    entry = loop.entry.size - HEADER + 2 * 104
    assert len(data) == program.size + rooms[discarded] + 3 * entry
    steps = record(program, state, rooms[-1])
    assert not unlike(program, data, steps)
    assert [len(text or b"") for one in steps.walks[0].entries for text in one.texts] == [103] * 6


@pytest.mark.parametrize("version", sorted(SLEEPABLE))
@pytest.mark.parametrize(("length", "whole"), [(0, True), (8990, True), (8999, False)])
def test_a_text_can_be_longer_than_a_fetch_arg_has_it(
    version: tuple[int, int], length: int, whole: bool
) -> None:
    text = Fetch(Contents(Deref(Register("di"), 0), None, 9000), Text())
    program = steps_of([("comm", Fetch(Comm(), Text())), ("f", text)], "sp", "ax")
    memory = Memory({START: b"x" * length + b"\0"})
    state = State({"di": START}, memory.read, 0, b"task")
    resident = not SLEEPABLE[version]  # else it is brought in, page by page
    data, _ = run(program, state, version, resident)
    ((raw, faulted),) = found_in(program, data)
    assert (raw.rstrip(b"\0"), faulted) == (b"x" * length, False)
    longest = text_rooms(program, bpf_rules(version))[-1]
    assert (len(raw) < longest) == whole
    assert record(program, state, longest).texts == (b"x" * length,)


@pytest.mark.parametrize("version", sorted(SLEEPABLE))
@pytest.mark.parametrize("limit", [1, 63, 64, 511, 1000, 4096])
@pytest.mark.parametrize("full", [True, False])
def test_a_full_array_behind_which_no_memory_is_is_a_text(
    version: tuple[int, int], limit: int, full: bool
) -> None:
    characters = b"x" * (limit if full else limit // 2)
    end = Memory({HOLE - limit: characters.ljust(limit, b"\0")})
    state = State({"di": HOLE - limit}, end.read, 0, b"task")
    for within, faulted in ((limit, False), (None, full)):
        text = Contents(Deref(Register("di"), 0), None, 5000, within)
        program = steps_of([_COMM, ("f", Fetch(text, Text()))], "sp", "ax")
        data, _ = run(program, state, version, not SLEEPABLE[version])
        steps = record(program, state, text_rooms(program, bpf_rules(version))[-1])
        wanted = b"" if faulted else characters
        ((raw, failed),) = found_in(program, data)
        assert (raw.rstrip(b"\0"), failed) == (wanted, faulted)
        assert (steps.texts[0] or b"", bool(steps.faults)) == (wanted, faulted)


def test_a_copy_that_ends_elsewhere_is_noticed() -> None:
    listed = [(HOLE - 100, 200, 4096)]
    program, state = program_of(listed), state_of(listed)
    data, _ = run(program, state, (6, 18))
    ((raw, faulted),) = found_in(program, data)
    assert (raw, faulted) == (there(HOLE - 100, 200), True)
    other = state_of([(HOLE - 99, 200, 4096)])
    assert record(program, other, 4096).texts[0] != raw


def test_most_that_a_record_has_room_for_is_shared() -> None:
    alone, ten = [program_of([(START, 9, 65000)] * many) for many in (1, 10)]
    assert text_rooms(alone, bpf_rules((6, 18)))[-1] == 65000
    assert 6400 < text_rooms(ten, bpf_rules((6, 18)))[-1] < 6554
    assert text_rooms(program_of([(START, 9, 100)]), bpf_rules((6, 18))) == (64, 104)


@pytest.mark.parametrize(("size", "counts"), [(0, True), (9, True), (64, True), (65, False)])
def test_short_contents_are_keys(size: int, counts: bool) -> None:
    assert X86 is not None
    listed = [(START, size, 4096)]
    fields = [
        (
            "f",
            Fetch(
                Contents(Deref(Deref(Register("di"), 0), 0), Part(Register("si"), 0, 8), 4096),
                Text(),
            ),
        )
    ]
    keyed, whole = (
        counting_steps(fields, Totals((), (), ()), "sp", "ax"),
        steps_of(fields, "sp", "ax"),
    )
    state, context = state_of(listed), bytearray(168)
    for name, value in state.registers.items():
        struct.pack_into("<Q", context, X86.registers[name], value)
    machine = BpfMachine(
        bytes(context), state.read, counting=7, key_size=key_bytes(keyed), value_size=Entry.at(0)
    )
    code = ring_record(
        whole, X86, bpf_rules((6, 18)), Maps(5, 6), Point(1, 0, False), False, True,
        Counted(keyed, 7),
    )  # fmt: skip
    machine.run(code.instructions)
    assert (len(machine.entries), len(machine.submitted)) == (counts, not counts)
    assert (record(keyed, state, 64).numbers is not None) == counts
    for key in machine.entries:
        counted = keyed_record(keyed, key)
        (word,) = struct.unpack_from("<I", counted, keyed.slots[0].at)
        assert counted[word & 0xFFFF :][: word >> 16] == BYTES[:size]
