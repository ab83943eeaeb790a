"""An eBPF program records what its steps say, and the steps give what the fetches do."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fetchc
from fetchc.emit.bpf_counting import Counted, Entry, fits, key_bytes, keyed_record
from fetchc.emit.bpf_layout import TooLarge, text_rooms
from fetchc.emit.bpf_program import (
    children_code,
    ended_code,
    executed_code,
    ring_record,
    sampled_bytes,
    sampled_record,
)
from fetchc.emit.bpf_steps import (
    FOLLOWED,
    WAITING,
    Maps,
    Point,
)
from fetchc.ir.evaluate import Fault, State, evaluate
from fetchc.ir.evaluate_steps import Recorded, record
from fetchc.ir.fetch import (
    Array,
    Bits,
    Calculated,
    Chosen,
    Comm,
    Contents,
    Cursor,
    Deref,
    Fetch,
    KernelValue,
    Part,
    Register,
    Scalar,
    StackEntry,
    Symbol,
    Term,
    Text,
    Value,
    Walk,
    Word,
    relocated,
)
from fetchc.ir.fetch_rules import verify
from fetchc.ir.step_lowering import Totals, counting_steps, steps_of
from fetchc.ir.step_support import unsupported
from fetchc.ir.steps import (
    ADDRESS,
    CHANGED,
    COMM_BYTES,
    CPU,
    ENDED,
    ENTRIES,
    FLAGS,
    HEADER,
    NUMBER,
    OPERATIONS,
    PROCESS,
    THREAD,
    TIME,
    Aggregate,
    EmitContents,
    EmitMemory,
    Loop,
    Program,
    Slot,
)
from fetchc.target.bpf_rules import bpf_machine, bpf_rules
from fetchc.target.kernel_versions import kernel
from fetchc.tracer.bpf.counting import Counting, counting, row_of
from fetchc.tracer.events import COMM, Plan
from fetchc.tracer.tables import Table
from tests.support import fetches
from tests.support.bpf_machine import CONTEXT, BpfMachine
from tests.support.programs import fixture

KERNEL = kernel("6.18")
X86 = bpf_machine("x86_64")
assert X86 is not None
VERSIONS = {(5, 8): False, (5, 15): False, (6, 0): True, (6, 18): True}  # whether it may sleep
POINT = Point(77, 0x1234, False)
ADDRESS_OF_POINT = fetches.BIAS + POINT.offset
_ALWAYS = 0x05, 0x85, 0x95  # a jump without a condition, a call, the end of a function


def sound(listed: Sequence[Fetch]) -> list[tuple[str, Fetch]]:
    """Those that a kernel takes, each with a name; and the task's name."""
    plain = [one for one in listed if not isinstance(one.value, Comm)]
    refused = [(one, verify(one, KERNEL, "uretprobe")) for one in plain]
    good = [one for one, why in refused if not why or why[0].reason == "not in definitions"]
    return [(f"f{number}", one) for number, one in enumerate([*good, Fetch(Comm(), Text())])]


def run(
    program: Program,
    seed: int,
    version: tuple[int, int],
    shared: bool,
    unlike: bool = False,
    resident: bool = True,
) -> tuple[bytes, BpfMachine]:
    """The record that the instructions make."""
    memory, registers = fetches.memory(seed)
    context = bytearray(168)
    assert X86 is not None
    for name, value in {**registers, "ip": ADDRESS_OF_POINT}.items():
        struct.pack_into("<Q", context, X86.registers[name], value)
    machine = BpfMachine(
        bytes(context), memory.read, b"task", address=ADDRESS_OF_POINT, cookie=POINT.cookie,
        empty=int(version >= (6, 18)), resident=resident,
    )  # fmt: skip
    point = None if shared and version >= (5, 15) else POINT
    rules = bpf_rules(version)
    code = ring_record(program, X86, rules, Maps(5, 6), point, False, VERSIONS[version])
    instructions = list(code.instructions)
    if unlike:  # reads from four bytes further
        instructions = [
            one.replaced(immediate=one.immediate + 4)
            if (one.operation, one.destination) == (0x07, 7)
            else one
            for one in instructions
        ]
    machine.run(instructions)
    assert len(machine.submitted) == 1
    return machine.submitted[0], machine


def expected(program: Program, seed: int, version: tuple[int, int] = (6, 18)) -> Recorded:
    """What the steps give."""
    memory, registers = fetches.memory(seed)
    rooms = text_rooms(program, bpf_rules(version)) or (0,)
    return record(program, State(registers, memory.read, fetches.BIAS, b"task"), rooms[-1])


def unlike(program: Program, data: bytes, wanted: Recorded) -> str:
    """How the record differs from what the steps say; empty where it does not."""
    loops = [step for step in program.steps if isinstance(step, Loop)]
    walks = sorted(loops, key=lambda loop: loop.at)
    for loop, entries in zip(walks, wanted.walks, strict=True):
        place, stride, many, flags, count = struct.unpack_from("<4HQ", data, loop.at)
        if (many, flags, count) != (len(entries.entries), entries.flags, entries.count):
            return f"a walk: {many}, {flags}, {count} for {entries}"
        for number, one in enumerate(entries.entries):
            low = place + stride * number
            if why := unlike(loop.entry, data[:HEADER] + data[low : low + stride], one):
                return f"entry {number}: {why}"
    words = [(slot.at + 4 * index) for slot in program.slots if slot.text
             for index in range(slot.count or 1)]  # fmt: skip
    faults = int.from_bytes(data[program.faults_at : program.size], "little")
    found = {bit for bit in range(program.faults) if faults >> bit & 1}
    if found != wanted.faults:
        return f"faults {found ^ wanted.faults}"
    for block in program.blocks:
        read = slice(block.word, block.word + 4)
        if data[read] != wanted.fixed[read]:
            return f"block {block} {data[read].hex()} for {wanted.fixed[read].hex()}"
    covered = set(range(HEADER, program.faults_at)) - {
        at for word in words for at in range(word, word + 4)
    }
    gaps = covered - {at for low, high in _written(program) for at in range(low, high)}
    for at in sorted(covered - gaps):
        if data[at] != wanted.fixed[at]:
            return f"byte {at}"
    texts: list[bytes | None] = []
    contents = {step.word: step.at for step in program.steps if isinstance(step, EmitContents)}
    for word in words:
        place = struct.unpack_from("<I", data, word)[0]
        low, size = place & 0xFFFF, place >> 16
        if contents.get(word) is not None:  # in the fixed part
            for at, end in ((word, word + 4), (low, low + size)):
                if data[at:end] != wanted.fixed[at:end]:
                    return f"the contents {data[at:end]!r} for {wanted.fixed[at:end]!r}"
        elif word in contents:
            texts.append(data[low : low + size])
        else:
            texts.append(data[low : low + size - 1] if size else None)
    if (
        program.slots and program.slots[-1].text and len(texts) > program.texts
    ):  # the task's name is the last one
        texts.pop()
        low = struct.unpack_from("<I", data, words[-1])[0] & 0xFFFF
        if data[low : low + COMM_BYTES] != wanted.fixed[low : low + COMM_BYTES]:
            return "the task's name"
    return "" if tuple(texts) == wanted.texts else f"texts {texts} for {wanted.texts}"


def _written(program: Program) -> list[tuple[int, int]]:
    walks = {step.at for step in program.steps if isinstance(step, Loop)}
    return [
        (slot.at, slot.at + slot.size * (slot.count or 1))
        for slot in program.slots
        if slot.at not in walks
    ]


def _at_cursor(value: Value) -> Value:
    # The same chain, from the first cursor on.
    if isinstance(value, Deref):
        return Deref(_at_cursor(value.base), value.offset)
    return Cursor(value.index % 2 if isinstance(value, StackEntry) else 1)


def _of_entry(
    listed: Sequence[Fetch], copied: Sequence[tuple[Value, int, int]]
) -> tuple[tuple[str, Fetch], ...]:
    fetched = [Fetch(Deref(_at_cursor(one.value), 8), one.store) for one in listed
               if not isinstance(one.value, Comm)]  # fmt: skip
    good = [one for one in fetched if not isinstance(one.store, Symbol)]
    good += [
        Fetch(Contents(Deref(_at_cursor(one), 8), Part(Cursor(1), 8, size), most), Text())
        for one, size, most in copied
    ]
    return tuple([(f"e{number}", one) for number, one in enumerate(good)])


def terms(cursors: int) -> st.SearchStrategy[Term]:
    """What a walk computes with; its addresses mostly lead to memory."""
    leaves: st.SearchStrategy[Term] = st.one_of(
        st.integers(0, 2), st.builds(Cursor, st.integers(1, cursors))
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(Calculated, st.sampled_from(OPERATIONS), inner, inner),
            st.builds(Chosen, inner, inner, inner),
            st.builds(
                Part,
                st.sampled_from((Cursor(1), Cursor(3))),
                st.sampled_from((0, 8, 24)),
                st.sampled_from((1, 2, 4, 8)),
                st.one_of(st.none(), inner),
            ),
        ),
        max_leaves=6,
    )


@st.composite
def walks(draw: st.DrawFn, bias: int = fetches.BIAS) -> Walk:
    """Walks from one word of the memory to the next, with tests of all kinds."""
    drawn = fetches.chains(bias=bias, longest=2)
    chains = st.one_of(st.just(Register("di")), st.just(Register("si")), drawn)
    start: tuple[Term, ...] = (
        draw(chains),
        draw(st.one_of(st.integers(0, 9), st.builds(Part, chains, st.just(8), st.just(8), chains))),
        draw(chains),
    )
    link = Part(Cursor(1), draw(st.sampled_from((0, 8, 16))), 8)
    stops: tuple[Term, ...] = (0, Cursor(2))
    steps: tuple[Term, ...] = (link, Calculated("add", Cursor(1), 8))
    end: Term = Calculated("eq", Cursor(1), draw(st.sampled_from(stops)))
    return Walk(
        start,
        draw(st.one_of(st.just(end), terms_of_two)),
        draw(st.one_of(st.just(1), terms_of_two)),
        (draw(terms_of_two),),
        (
            draw(st.sampled_from(steps)),
            draw(terms_of_two),
            Cursor(3),
        ),
        draw(st.one_of(st.none(), st.just(Part(Cursor(3), 0, 8)))),
        draw(st.one_of(st.none(), st.just(Part(Cursor(3), 4, 4)))),
        draw(st.one_of(st.none(), st.just(Calculated("and", Part(Cursor(3), 2, 1), 1)))),
        _of_entry(
            draw(st.lists(fetches.fetches(returning=True), max_size=4)),
            draw(
                st.lists(
                    st.tuples(drawn, st.sampled_from((1, 2, 8)), st.sampled_from((9, 200, 5000))),
                    max_size=2,
                )
            ),
        ),
        draw(st.integers(1, 6)),
        draw(st.integers(1, 12)),
        draw(st.booleans()),
    )


terms_of_two = st.one_of(st.just(1), terms(2))
several = st.lists(
    st.one_of(fetches.fetches(returning=True), fetches.fetches(returning=True), fetches.elements()),
    min_size=1,
    max_size=12,
)


@given(walks(), several, st.integers(0, 50), st.sampled_from(sorted(VERSIONS)))
def test_a_walk_is_recorded_as_the_steps_say(
    walk: Walk, listed: list[Fetch], seed: int, version: tuple[int, int]
) -> None:
    program = steps_of([("walk", Fetch(walk, Word())), *sound(listed[:3])], "sp", "ax")
    try:
        data, _ = run(program, seed, version, False)
    except TooLarge:
        return
    assert unlike(program, data, expected(program, seed, version)) == ""


def test_a_round_with_strings_has_few_jumps() -> None:
    # Linux 5.10 follows up to 96 rounds, in which it bears 8,192 jumps.
    texts = [Contents(Deref(Cursor(1), 16 * n), Part(Cursor(1), 16 * n + 8, 8), 256)
             for n in range(6)]  # fmt: skip
    fields = tuple([(f"e{n}", Fetch(one, Text())) for n, one in enumerate(texts)])
    link = Part(Cursor(1), 8, 8)
    walk = Walk((Register("di"),), Calculated("eq", Cursor(1), 0), 1, (), (link,),
                None, None, None, fields, 6, 96, True)  # fmt: skip
    program = steps_of([("walk", Fetch(walk, Word()))], "sp", "ax")
    assert X86 is not None
    code = ring_record(program, X86, bpf_rules((5, 10)), Maps(5, 6), POINT, False, False)
    first, *_ = [*code.functions[1:], len(code.instructions)]
    a_round = code.instructions[code.functions[0] : first]
    jumps = [one for one in a_round if one.operation & 7 == 5 and one.operation not in _ALWAYS]
    assert 6 * 2 < len(jumps) < 8192 // 96


@pytest.mark.parametrize(
    ("count", "store", "why"),
    [
        (200, Scalar("u", 64), None),
        (500, Scalar("u", 64), "and a jump leads over 32767 at most"),
        (65, Array(Scalar("u", 64), 64), "and an instruction reaches 32760"),
    ],
)
def test_what_instructions_cannot_have_is_refused(
    count: int, store: Scalar | Array, why: str | None
) -> None:
    # Each value behind a pointer of its own, twice where the text is long.
    fields = [("text", Fetch(Deref(Register("si"), 0), Text()))]
    for number in range(count):
        value = Deref(Deref(Register("di"), 8 * number), 0)
        fields.append((f"f{number}", Fetch(value, store)))
    program = steps_of(fields, "sp", "ax")
    assert X86 is not None
    with nullcontext() if why is None else pytest.raises(TooLarge, match=why):
        code = ring_record(program, X86, bpf_rules((6, 18)), Maps(5, 6), POINT, False, True)
        assert len(code.bytes()) == 8 * len(code.instructions)


HEAD, NODES = 0x5000, 6  # of a list of six nodes: next, number, length


def list_of(
    count: int, most: int, loses: bool = False, changes: int | None = None
) -> tuple[Program, State]:
    """A list whose head has its length, and the first node at 8; ``loses``: less each time.

    After so many reads the number of node 2 ``changes``.
    """
    start: tuple[Term, ...] = (Part(Register("di"), 8, 8), Register("di"))
    fields = (("number", Fetch(Deref(Cursor(0), 8), Scalar("s", 32))),)
    end = Calculated("eq", Cursor(0), 0)
    moved: tuple[Term, ...] = (Deref(Cursor(0), 0), Cursor(1))
    walk = Walk(start, end, 1, (), moved, Part(Cursor(1), 0, 8), None, None, fields, most, 40, True)
    read = reads = 0

    def memory(address: int, size: int) -> bytes | None:
        nonlocal read, reads
        reads += 1
        if address == HEAD:
            read += 1
            return struct.pack("<Q", count - read * loses)[:size]
        node, at = divmod(address - 0x6000, 0x100)
        first = struct.pack("<QQ", 0, 0x6000) if address < 0x6000 else b""
        following = 0x6000 + 0x100 * (node + 1) if node + 1 < NODES else 0
        changed = 1000 * (node == 2 and changes is not None and reads > changes)
        raw = first or struct.pack("<Qi", following, changed - node)
        at = address - HEAD if first else at
        return raw[at : at + size] if len(raw[at : at + size]) == size else None

    program = steps_of([("walk", Fetch(walk, Word()))], "sp", "ax")
    return program, State({"di": HEAD}, memory, fetches.BIAS, b"task")


def recorded(program: Program, state: State) -> bytes:
    assert X86 is not None
    context = bytearray(168)
    struct.pack_into("<Q", context, X86.registers["di"], state.registers["di"])
    machine = BpfMachine(bytes(context), state.read)
    code = ring_record(program, X86, bpf_rules((6, 18)), Maps(5, 6), POINT, False, True)
    machine.run(code.instructions)
    return machine.submitted[0]


@pytest.mark.parametrize(
    ("count", "most", "loses", "wanted"),
    [(6, 9, False, (6, ENDED, 6)), (6, 4, False, (4, 0, 6)), (7, 9, True, (6, ENDED | CHANGED, 6))],
)
def test_what_a_walk_says_of_the_whole(
    count: int, most: int, loses: bool, wanted: tuple[int, int, int]
) -> None:
    program, state = list_of(count, most, loses)
    data = recorded(program, state)
    (loop,) = [step for step in program.steps if isinstance(step, Loop)]
    assert struct.unpack_from("<2HQ", data, loop.at + ENTRIES) == wanted
    program, state = list_of(count, most, loses)
    (walked,) = record(program, state, 64).walks
    assert (len(walked.entries), walked.flags, walked.count) == wanted
    assert [int.from_bytes(one.fixed[loop.entry.slots[0].at :][:4], "little", signed=True)
            for one in walked.entries] == [-node for node in range(wanted[0])]  # fmt: skip


# Reads: 2 to begin, 2 a node, the head again; and all of that again.
@pytest.mark.parametrize(("changes", "seen"), [(0, False), (9, True), (20, True), (99, False)])
def test_an_element_that_changes_between_both_walks_is_seen(changes: int, seen: bool) -> None:
    program, state = list_of(6, 9, changes=changes)
    data = recorded(program, state)
    (loop,) = [step for step in program.steps if isinstance(step, Loop)]
    flags = ENDED | CHANGED * seen
    assert struct.unpack_from("<2HQ", data, loop.at + ENTRIES) == (6, flags, 6)
    program, state = list_of(6, 9, changes=changes)
    (walked,) = record(program, state, 64).walks
    assert (len(walked.entries), walked.flags) == (6, flags)


def test_another_element_is_seen() -> None:
    program, state = list_of(6, 9)
    data, wanted = recorded(program, state), record(program, state, 64)
    assert unlike(program, data, wanted) == ""
    (loop,) = [step for step in program.steps if isinstance(step, Loop)]
    place, stride = struct.unpack_from("<2H", data, loop.at)
    at = place + 2 * stride + loop.entry.slots[0].at - HEADER
    for changed in (at, loop.at + ENTRIES, loop.at + FLAGS):
        other = bytearray(data)
        other[changed] ^= 1
        assert unlike(program, bytes(other), wanted)


@given(several, st.integers(0, 50), st.sampled_from(sorted(VERSIONS)), st.booleans(), st.booleans())
def test_the_instructions_do_what_the_steps_say(
    listed: list[Fetch], seed: int, version: tuple[int, int], shared: bool, resident: bool
) -> None:
    program = steps_of(sound(listed), "sp", "ax")
    resident = resident or not VERSIONS[version]  # what sleeps brings pages in
    data, _ = run(program, seed, version, shared, resident=resident)
    assert unlike(program, data, expected(program, seed, version)) == ""
    assert struct.unpack_from("<H", data, NUMBER) == (77,)
    assert struct.unpack_from("<I", data, THREAD) == (12,)
    assert struct.unpack_from("<I", data, PROCESS) == (11,)
    assert struct.unpack_from("<I", data, CPU) == (3,)
    assert struct.unpack_from("<QQ", data, ADDRESS) == (ADDRESS_OF_POINT, 1_000_000_007)
    assert TIME == ADDRESS + 8


@given(several, st.integers(0, 50), st.integers(0, 1))
def test_a_program_of_a_sample_records_the_same(
    listed: list[Fetch], seed: int, address: int
) -> None:
    # Of fetches for where the file's image is: a breakpoint is in no file.
    named = [
        (name, Fetch(relocated(one.value, fetches.BIAS), one.store)) for name, one in sound(listed)
    ]
    program, rules = steps_of(named, "sp", "ax"), bpf_rules((6, 18))
    whole = steps_of(sound(listed), "sp", "ax")
    memory, registers = fetches.memory(seed)
    context = bytearray(168)
    assert X86 is not None
    for name, value in {**registers, "ip": ADDRESS_OF_POINT + address}.items():
        struct.pack_into("<Q", context, X86.registers[name], value)
    size = sampled_bytes(program, rules)
    machine = BpfMachine(bytes(context), memory.read, b"task", buffer=8, buffer_size=size)
    machine.run(sampled_record(program, X86, rules, 77, 8, 9).instructions)
    (data,) = machine.submitted
    assert unlike(program, data, expected(program, seed)) == ""
    found, wanted = expected(program, seed), expected(whole, seed)
    assert found.texts == wanted.texts
    for slot, other in zip(program.slots, whole.slots, strict=True):
        size = 0 if slot.text else slot.size * (slot.count or 1)
        raw = wanted.fixed[other.at : other.at + size]
        assert found.fixed[slot.at : slot.at + size] == raw, slot.name
    assert struct.unpack_from("<H", data, NUMBER) == (77,)
    assert struct.unpack_from("<Q", data, ADDRESS) == (ADDRESS_OF_POINT + address,)


@pytest.mark.parametrize(("version", "behind"), [((6, 1), 1), ((6, 18), 0)])
def test_the_address_of_a_kprobe_is_that_of_its_instruction(
    version: tuple[int, int], behind: int
) -> None:
    # Before 6.6 it comes from the registers, which are those after the breakpoint.
    assert X86 is not None
    context = bytearray(168)
    struct.pack_into("<Q", context, X86.registers["ip"], ADDRESS_OF_POINT + behind)
    machine = BpfMachine(bytes(context), lambda address, size: None, address=ADDRESS_OF_POINT)
    program = steps_of([("b", Fetch(Register("di"), Bits(3, 2, 8)))], "sp", "ax")
    rules, maps = bpf_rules(version), Maps(5, 6)
    code = ring_record(program, X86, rules, maps, POINT, False, False, probed="function")
    machine.run(code.instructions)
    (data,) = machine.submitted
    assert struct.unpack_from("<Q", data, ADDRESS) == (ADDRESS_OF_POINT,)
    assert struct.unpack_from("<I", data, PROCESS) == (11,)


@given(several, st.integers(0, 50))
def test_the_steps_give_what_the_fetches_do(listed: list[Fetch], seed: int) -> None:
    named = sound(listed)
    program = steps_of(named, "sp", "ax")
    wanted = expected(program, seed)
    memory, registers = fetches.memory(seed)
    state = State(registers, memory.read, fetches.BIAS, b"task")
    texts = iter(wanted.texts)
    for (_, fetch), slot in zip(named, program.slots, strict=True):
        if isinstance(fetch.value, Comm):
            continue
        count = slot.count or 1
        own = [next(texts) for _ in range(count)] if slot.text else []
        outcome = evaluate(fetch, state)
        if _has_lost_stack_word(fetch.value, state):
            continue  # a fetch-arg has 0 there, and goes on with it; the step has a fault
        values, faulted = _of_slot(program, wanted, slot.name, fetch, own)
        if isinstance(outcome, Fault):
            # Texts behind pointers of an array stop at the first pointer that cannot be read.
            assert any(faulted) if isinstance(fetch.store, Array) else all(faulted)
            continue
        assert any(faulted) == outcome.faulted, fetch
        given_values = outcome.value if isinstance(outcome.value, tuple) else (outcome.value,)
        for mine, theirs, fault in zip(values, given_values, faulted, strict=True):
            assert fault or mine == theirs, fetch


def _of_slot(
    program: Program, wanted: Recorded, name: str, fetch: Fetch, texts: list[bytes | None]
) -> tuple[list[object], list[bool]]:
    slot = next(one for one in program.slots if one.name == name)
    values: list[object] = []
    faulted: list[bool] = []
    for index in range(slot.count or 1):
        low = slot.at + slot.size * index
        bits = [one.bit for one in program.bits if one.low < low + slot.size and low < one.high]
        faulted.append(any(bit in wanted.faults for bit in bits))
        for block in program.blocks:
            if block.low <= low < block.high:
                read = struct.unpack_from("<HH", wanted.fixed, block.word)
                faulted[-1] |= not read[0] <= low or not low + slot.size <= read[1]
        if slot.text:
            values.append(texts[index])
        else:
            raw = wanted.fixed[low : low + slot.size]
            values.append(int.from_bytes(raw, "little", signed=slot.signed))
    return values, faulted


def _has_lost_stack_word(value: Value, state: State) -> bool:
    while isinstance(value, Deref):
        value = value.base
    if not isinstance(value, StackEntry):
        return False
    raw = state.read(state.registers["sp"] + 8 * value.index, 8)
    return raw is None or len(raw) < 8


def test_a_program_that_reads_elsewhere_is_noticed() -> None:
    chain = Deref(Deref(Register("di"), 8), 16)
    program = steps_of(
        sound([Fetch(chain, Scalar("u", 64)), Fetch(chain, Scalar("u", 8))]), "sp", "ax"
    )
    right = [
        unlike(program, run(program, seed, (6, 18), False)[0], expected(program, seed))
        for seed in range(20)
    ]
    wrong = [
        unlike(program, run(program, seed, (6, 18), False, True)[0], expected(program, seed))
        for seed in range(20)
    ]
    assert not any(right)
    assert any(wrong)


def test_a_pointer_of_several_chains_is_read_once() -> None:
    inner = Deref(Register("di"), 8)
    one, two, three = (Fetch(Deref(inner, offset), Scalar("s", 32)) for offset in (0, 4, 4096))
    program = steps_of([("a", one), ("b", two), ("c", three)], "sp", "ax")
    blocks = [step for step in program.steps if isinstance(step, EmitMemory)]
    assert [step.size for step in blocks] == [8, 4]
    apart = [(str(at), Fetch(Deref(inner, at), Scalar("s", 32))) for at in (0, 132, 268)]
    blocks = [one for one in steps_of(apart, "sp", "ax").steps if isinstance(one, EmitMemory)]
    assert [step.size for step in blocks] == [136, 4]  # 128 bytes between neighbours, and 132
    assert len(program.steps) == 4  # the register, the pointer, two blocks
    assert program.fields[1] == ("a", "b", "c")


def test_many_chains_fit_the_stack_of_a_program() -> None:
    # 512 bytes: values are needed for a short time, whatever the number of arguments.
    def chain(depth: int, offset: int) -> Value:
        value: Value = Register("di")
        for hop in range(depth):
            value = Deref(value, offset + 8 * hop)
        return value

    listed = [Fetch(chain(4, 8000 * index), Scalar("u", 64)) for index in range(100)]
    listed += [Fetch(chain(12, 9000 * index), Array(Scalar("x", 8), 9)) for index in range(28)]
    program = steps_of(sound(listed), "sp", "ax")
    assert X86 is not None
    code = ring_record(program, X86, bpf_rules((6, 18)), Maps(5, 6), POINT, False, True)
    assert len(code.instructions) < 20_000
    data, _ = run(program, 3, (6, 18), False)
    assert unlike(program, data, expected(program, 3)) == ""


@pytest.mark.parametrize(("start", "read"), [(0, (0, 64)), (-8, (8, 64)), (4096 - 60, (0, 60))])
def test_a_block_is_read_page_by_page(start: int, read: tuple[int, int]) -> None:
    # Text bytes and numbers that lie across the page's end are whole, or a fault.
    class Page:
        def read(self, address: int, size: int) -> bytes:
            return bytes(range(256))[:size] if 0x5000 <= address <= 0x6000 - size else b""

    fields = [
        ("words", Fetch(Deref(Register("di"), 0), Array(Scalar("x", 64), 8))),
        ("inner", Fetch(Deref(Register("di"), 58), Scalar("u", 32))),
    ]
    program = steps_of(fields, "sp", "ax")
    (block,) = program.blocks
    assert X86 is not None
    context = bytearray(168)
    struct.pack_into("<Q", context, X86.registers["di"], 0x5000 + start)
    machine = BpfMachine(bytes(context), Page().read)
    code = ring_record(program, X86, bpf_rules((6, 18)), Maps(5, 6), POINT, False, True)
    machine.run(code.instructions)
    low, high = struct.unpack_from("<HH", machine.submitted[0], block.word)
    assert (low - block.low, high - block.low) == read
    assert machine.submitted[0][low:high] == bytes(range(high - low))


def test_a_long_text_has_a_larger_record() -> None:
    class Long:
        def read(self, address: int, size: int) -> bytes:
            text = b"x" * 100 + b"\0" + b"y" * 5000
            return text[address - 0x5000 :][:size] if address >= 0x5000 else b""

    fetch = Fetch(Deref(Register("di"), 0), Text())
    program = steps_of([("t", fetch), ("u", Fetch(Deref(Register("di"), 101), Text()))], "sp", "ax")
    assert X86 is not None
    context = bytearray(168)
    struct.pack_into("<Q", context, X86.registers["di"], 0x5000)
    machine = BpfMachine(bytes(context), Long().read)
    rules = bpf_rules((6, 18))
    machine.run(ring_record(program, X86, rules, Maps(5, 6), POINT, False, True).instructions)
    assert machine.discarded == 2
    (data,) = machine.submitted
    first, second = (struct.unpack_from("<I", data, slot.at)[0] for slot in program.slots)
    assert data[first & 0xFFFF :][: first >> 16] == b"x" * 100 + b"\0"
    assert second >> 16 == text_rooms(program, rules)[-1] == 4096


def test_a_full_buffer_is_counted() -> None:
    program = steps_of([("c", Fetch(Comm(), Text()))], "sp", "ax")
    machine = BpfMachine(bytes(168), lambda address, size: None, full=True)
    assert X86 is not None
    machine.run(
        ring_record(program, X86, bpf_rules((6, 18)), Maps(5, 6), POINT, False, True).instructions
    )
    assert machine.lost[:8] == b"\1" + bytes(7)
    assert machine.submitted == []


@pytest.mark.parametrize(("thread", "records"), [(12, 1), (13, 0)])
def test_only_the_wanted_threads_are_recorded(thread: int, records: int) -> None:
    program = steps_of([("b", Fetch(Register("di"), Bits(3, 2, 8)))], "sp", "ax")
    machine = BpfMachine(bytes(168), lambda address, size: None, following=7)
    machine.wanted[thread] = 1
    assert X86 is not None
    code = ring_record(program, X86, bpf_rules((6, 18)), Maps(5, 6, 7), POINT, False, True)
    machine.run(code.instructions)
    assert len(machine.submitted) == records


@pytest.mark.parametrize("of_task", [False, True])
def test_children_are_followed_until_they_end(of_task: bool) -> None:
    rules, maps = bpf_rules((6, 18)), Maps(5, 6, 7)
    number, task = struct.pack("<I", 14), 0xFFFF800000001000

    def read(address: int, size: int) -> bytes | None:
        return number if (address, size) == (task + 8, 4) else None

    child = bytes(8) + (struct.pack("<Q", task) if of_task else number).ljust(160, b"\0")
    machine = BpfMachine(child, read, following=7)
    machine.run(children_code(rules, maps, 8, of_task).instructions)
    assert not any(machine.wanted)  # of a thread that is not followed itself
    machine.wanted[machine.thread] = 1
    machine.run(children_code(rules, maps, 8, of_task).instructions)
    assert [at for at, one in enumerate(machine.wanted) if one] == [machine.thread, 14]
    machine.thread = 14
    machine.run(ended_code(rules, maps).instructions)
    assert [at for at, one in enumerate(machine.wanted) if one] == [12]


@pytest.mark.parametrize("before", [0, FOLLOWED, WAITING])
def test_a_thread_that_waits_is_followed_from_its_program_on(before: int) -> None:
    rules, maps = bpf_rules((6, 18)), Maps(5, 6, 7)
    former = struct.pack("<QQ", 0, 12)  # the second argument of the raw tracepoint
    machine = BpfMachine(former.ljust(168, b"\0"), lambda address, size: None, following=7)
    machine.wanted[machine.thread] = before
    program = steps_of([("b", Fetch(Register("di"), Bits(3, 2, 8)))], "sp", "ax")
    assert X86 is not None
    code = ring_record(program, X86, rules, maps, POINT, False, True)
    machine.run(code.instructions)
    assert len(machine.submitted) == (before == FOLLOWED)
    machine.run(executed_code(rules, maps).instructions)
    machine.run(code.instructions)
    assert len(machine.submitted) == {0: 0, FOLLOWED: 2, WAITING: 1}[before]


def test_a_thread_that_executes_a_program_is_followed_by_its_new_number() -> None:
    rules, maps = bpf_rules((6, 18)), Maps(5, 6, 7)
    former = struct.pack("<QQ", 0, 14).ljust(168, b"\0")
    machine = BpfMachine(former, lambda address, size: None, following=7)
    machine.wanted[14] = FOLLOWED
    machine.run(executed_code(rules, maps).instructions)
    assert [at for at, one in enumerate(machine.wanted) if one] == [machine.thread]


# ------------------------------------------------------------------------------
# Counting in the kernel.

COUNTING = 9  # the map
OF_TASK = {"thread": (THREAD, 12), "process": (PROCESS, 11), "cpu": (CPU, 3)}
numbers = st.one_of(
    st.integers(0, 2**64 - 1),
    st.integers(0, 200),
    st.integers(0, 63).map(lambda bit: 1 << bit),
    st.integers(0, 63).map(lambda bit: (1 << bit) - 1),
    st.integers(1, 200).map(lambda number: 2**64 - number),
)


def counting_machine(program: Program, values: Sequence[int], most: int = 1 << 30) -> BpfMachine:
    """The machine of a hit with ``values`` in di and si."""
    aggregate = program.steps[-1]
    assert isinstance(aggregate, Aggregate)
    assert X86 is not None
    context = bytearray(168)
    for name, value in zip(("di", "si"), values, strict=False):
        struct.pack_into("<Q", context, X86.registers[name], value)
    return BpfMachine(
        bytes(context),
        lambda address, size: b"text\0"[address - 0x5000 :][:size] if address >= 0x5000 else None,
        cookie=POINT.cookie,
        counting=COUNTING,
        key_size=key_bytes(program),
        value_size=Entry.at(len(aggregate.measures)),
        most=most,
    )


def counted(program: Program, machine: BpfMachine, shared: bool = False) -> None:
    """One hit."""
    whole = steps_of(sound([Fetch(Register("di"), Scalar("u", 64))]), "sp", "ax")
    assert X86 is not None
    point, rules = None if shared else POINT, bpf_rules((6, 18))
    maps, map = Maps(5, 6), Counted(program, COUNTING)
    machine.run(ring_record(whole, X86, rules, maps, point, False, True, map).instructions)


def plan_of(measures: tuple[str, ...], program: Program) -> Counting:
    """How a plan of such measures is counted."""
    plan = Plan("", "ev", "", None, "entry", 0, (), ())
    return Counting(plan, tuple([(one, 0) for one in measures]), (program,))


@given(
    st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6),
    st.sampled_from([8, 16, 32, 64]),
    st.booleans(),
    st.booleans(),
    st.sets(st.sampled_from(sorted(OF_TASK))),
)
def test_the_kernel_counts_what_the_reader_would(
    hits: list[tuple[int, int]], bits: int, signed: bool, shared: bool, task: set[str]
) -> None:
    measures = (Register("di"), bits // 8, signed), (Register("si"), 8, False)
    program = counting_steps([], Totals((), measures, tuple(task)), "sp", "ax")
    wanted, machine = Table([0, 0]), counting_machine(program, hits[0])
    for values in hits:
        machine.context = counting_machine(program, values).context
        counted(program, machine, shared)
        state = State({"di": values[0], "si": values[1]}, machine.read)
        said = record(program, state, 64)
        assert said.numbers is not None
        wanted.add((), said.numbers)
    assert machine.submitted == []
    together, counting = Table([0, 0]), plan_of(("a", "b"), program)
    for key, place in machine.entries.items():
        of_key = keyed_record(program, key)
        assert struct.unpack_from("<H", of_key, NUMBER) == (77,)
        for name, (at, number) in OF_TASK.items():
            assert struct.unpack_from("<I", of_key, at) == (number * (name in task),)
        other = Table([0, 0])
        value = bytes(machine.values[place : place + machine.value_size])
        other.rows[()] = row_of(counting, program, of_key, value)
        together.merge(other)
    mine, theirs = together.rows[()], wanted.rows[()]
    assert mine.hits == theirs.hits
    for cell, its in zip(mine.cells, theirs.cells, strict=True):
        assert (cell.count, cell.total, cell.buckets) == (its.count, its.total, its.buckets)
        assert (cell.smallest, cell.largest) == (its.smallest, its.largest)


@given(several, st.integers(0, 50), st.booleans())
def test_a_key_has_what_the_steps_say(listed: list[Fetch], seed: int, shared: bool) -> None:
    # Of any fields that a program's stack has room for; a fetch that fails is not counted.
    keys = sound(listed)
    program = counting_steps(keys, Totals((), ((Register("di"), 1, False),), ()), "sp", "ax")
    memory, registers = fetches.memory(seed)
    said = record(program, State(registers, memory.read, fetches.BIAS, b"task"), 64)
    machine = counting_machine(program, ())
    context = bytearray(168)
    assert X86 is not None
    for name, value in {**registers, "ip": ADDRESS_OF_POINT}.items():
        struct.pack_into("<Q", context, X86.registers[name], value)
    machine.context, machine.read = bytes(context), memory.read
    machine.address = ADDRESS_OF_POINT
    try:
        counted(program, machine, shared)
    except TooLarge:
        assert key_bytes(program) > 200 or len(program.steps) > 40
        return
    assert len(machine.entries) == (said.numbers is not None)
    assert len(machine.submitted) == (said.numbers is None)
    for key in machine.entries:
        assert unlike(program, keyed_record(program, key), said) == ""


def test_a_key_has_nothing_that_nobody_asks_for() -> None:
    # The kernel hashes and compares it at each hit: the plan's number, and a bucket with its room.
    plan = fetchc.open(str(fixture("c/layouts/gcc-O2-dwarf5"))).probe("act").plan(["by"], "fetchc")

    def lowered(number: int, fields: Any, totals: Totals) -> Program:
        return counting_steps(fields, totals, "sp", "ax")

    def room(program: Program) -> bool:
        assert X86 is not None
        return fits(program, X86, bpf_rules((6, 18)))

    for of_task, always, size in (((), (), 12), (("cpu",), (), 16), ((), (COMM,), 36)):
        found = counting(plan, (("by", 0),), (), of_task, always, lowered, room)
        assert found is not None
        assert key_bytes(found.programs[0]) == size


@pytest.mark.parametrize("measures", [1, 9, 10, 14])
def test_a_table_that_a_program_has_no_room_for_is_known_before(measures: int) -> None:
    each = tuple([(Part(Register("di"), 8 * at, 8), 8, False) for at in range(measures)])
    program = counting_steps([], Totals((), each, ()), "sp", "ax")
    assert X86 is not None
    assert fits(program, X86, bpf_rules((6, 18))) == (measures < 10)
    if measures < 10:
        counted(program, counting_machine(program, (0x5000,)))
    else:
        with pytest.raises(TooLarge):
            counted(program, counting_machine(program, (0x5000,)))


@pytest.mark.parametrize(("start", "hits"), [(0x5000, 1), (0x5028, 1), (0x5029, 0), (0x4FFF, 0)])
def test_a_block_of_a_key_is_whole_or_recorded(start: int, hits: int) -> None:
    words = Fetch(Deref(Register("di"), 0), Array(Scalar("x", 64), 3))
    measures = ((Register("di"), 8, False),)
    program = counting_steps([("w", words)], Totals((), measures, ()), "sp", "ax")
    assert len([step for step in program.steps if isinstance(step, EmitMemory)]) == 1
    machine, memory = counting_machine(program, (start,)), bytes(range(64))

    def read(address: int, size: int) -> bytes | None:
        at = address - 0x5000
        return memory[at : at + size] if 0 <= at <= len(memory) - size else None

    machine.read = read
    counted(program, machine)
    said = record(program, State({"di": start}, read), 64)
    assert (len(machine.entries), len(machine.submitted)) == (hits, 1 - hits)
    assert (said.numbers is not None) == bool(hits)
    for key in machine.entries:
        at = program.slots[0].at
        assert keyed_record(program, key)[at : at + 24] == memory[start - 0x5000 :][:24]
        assert unlike(program, keyed_record(program, key), said) == ""


def test_what_cannot_be_counted_is_recorded() -> None:
    text = Fetch(Deref(Register("di"), 0), Text())
    measures = ((Register("si"), 8, False),)
    program = counting_steps([("t", text)], Totals((), measures, ()), "sp", "ax")
    for start, hits, most in ((0x5000, 1, 9), (0x4000, 0, 9), (0x5000, 0, 0)):
        machine = counting_machine(program, (start, 3), most)
        counted(program, machine)
        state = State({"di": start, "si": 3}, machine.read, comm=b"task")
        assert (record(program, state, 64).numbers is not None) == (start == 0x5000)
        assert (len(machine.entries), len(machine.submitted)) == (hits, 1 - hits)
    long = counting_machine(program, (0x5000, 3))
    long.read = lambda address, size: (b"x" * 63 + b"\0")[address - 0x5000 :][:size]
    counted(program, long)
    assert (len(long.entries), len(long.submitted)) == (0, 1)


def test_ends_are_right_where_others_count_at_the_same_time() -> None:
    program = counting_steps([], Totals((), ((Register("di"), 8, False),), ()), "sp", "ax")
    machine = counting_machine(program, (10,))
    raised: list[int] = []

    def once(memory: bytearray, place: int) -> None:
        if not raised:  # somebody has a larger one in between
            raised.append(11)
            memory[place : place + 8] = struct.pack("<Q", 11)

    machine.others = once
    counted(program, machine)
    ((_, place),) = machine.entries.items()
    at = place + Entry.at(0)
    assert raised
    assert struct.unpack_from("<Q", machine.values, at + Entry.LARGEST) == (11,)
    machine = counting_machine(program, (1 << 62,))

    def always(memory: bytearray, place: int) -> None:
        (there,) = struct.unpack_from("<Q", memory, place)
        memory[place : place + 8] = struct.pack("<Q", there + 1)

    machine.others = always
    counted(program, machine)
    assert len(machine.submitted) == 1
    ((_, place),) = machine.entries.items()
    assert struct.unpack_from("<Q", machine.values, place + Entry.HITS) == (0,)


# ------------------------------------------------------------------------------
# Tracepoints: the context is a record, or arguments, and some memory is the kernel's.

KERNEL_MEMORY = 0xFFFF_8880_0000_1000
NAMED = ("$small", "$wide", "$name", "$said", "$pointer")
LAYOUT = tuple(
    Slot(name, *place)
    for name, place in zip(
        NAMED,
        [(8, 2, True, None, False), (16, 8, False, None, False), (24, 1, True, 8, False),
         (32, 4, False, None, True), (40, 8, False, None, False)],
        strict=True,
    )
)  # fmt: skip


def of_context(pointer: int) -> tuple[bytes, State]:
    """A record of an event, and the thread that made it."""
    context = struct.pack("<Qh6xQ8sIIQ", 0, -2, 1 << 63, b"a name", 6 << 16 | 48, 0, pointer)
    context += b"later\0" + bytes(16)
    regions = {CONTEXT: context, 0x5000: b"of user\0", KERNEL_MEMORY: b"of kernel\0"}

    def read(address: int, size: int) -> bytes | None:
        for start, data in regions.items():
            if start <= address < start + len(data):
                found = data[address - start :][:size]
                return found if len(found) == size else None
        return None

    return context, State({}, read, 0, b"task", context=CONTEXT)


def of_event(name: str) -> KernelValue:
    return KernelValue("event_field", name)


@pytest.mark.parametrize("pointer", [0x5000, KERNEL_MEMORY, 0x9000])
@pytest.mark.parametrize("user", [False, True])
def test_what_a_tracepoint_passes_is_recorded(pointer: int, user: bool) -> None:
    listed = [
        Fetch(of_event("$small"), Scalar("s", 16)),
        Fetch(of_event("$wide"), Scalar("u", 64)),
        Fetch(of_event("$name"), Text()),
        Fetch(of_event("$said"), Text()),
        Fetch(Deref(of_event("$pointer"), 0), Text(user)),
        Fetch(Deref(of_event("$pointer"), 1, user), Scalar("u", 32)),
        Fetch(Deref(of_event("$pointer"), 3, user), Bits(3, 1, 8)),
        Fetch(KernelValue("event_array", "$name"), Word()),
        Fetch(Deref(KernelValue("event_array", "$name"), 2), Scalar("u", 32)),
        Fetch(KernelValue("comm", "$COMM"), Text()),
    ]
    assert [unsupported(one, LAYOUT) for one in listed] == [None] * len(listed)
    fields = [(f"f{number}", one) for number, one in enumerate(listed)]
    program = steps_of(fields, "sp", "ax", context=LAYOUT)
    context, state = of_context(pointer)
    machine = BpfMachine(context, state.read)
    assert X86 is not None
    code = ring_record(
        program, X86, bpf_rules((6, 18)), Maps(5, 6), POINT, False, False, probed="tracepoint"
    )
    machine.run(code.instructions)
    allowed = pointer == 0x5000 or (pointer == KERNEL_MEMORY and not user)
    wanted = record(program, state if allowed else of_context(0x9000)[1], 4096)
    (data,) = machine.submitted
    assert unlike(program, data, wanted) == ""
    assert unlike(program, data, record(program, of_context(0x5001)[1], 4096))


def test_what_is_not_in_the_context_is_refused() -> None:
    assert unsupported(Fetch(of_event("$other"), Word()), LAYOUT)
    assert unsupported(Fetch(of_event("$small"), Scalar("s", 32)), LAYOUT)
    assert unsupported(Fetch(of_event("$wide"), Text()), LAYOUT)
    assert unsupported(Fetch(of_event("$said"), Scalar("u", 32)), LAYOUT)
    assert unsupported(Fetch(of_event("$wide"), Word())), "no context, no field"
