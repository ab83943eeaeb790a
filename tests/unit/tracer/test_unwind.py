"""Copies of stacks, walked by rules that the tests make: every frame, or why not."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.debuginfo.dwarf.call_frames import Row
from fetchc.debuginfo.unwind_tables import entry_row, frame_pointer_row
from fetchc.program.entities import Absent, FrameRelative, Indirect, InMemory, InRegister, Place
from fetchc.quantities import ByteOffset, DwarfRegister
from fetchc.target.machines import architecture
from fetchc.tracer.unwind import MOST_FRAMES, Rule, StackCopy, unwound

MACHINE = architecture("x86_64")
BP, SP, IP = DwarfRegister(6), DwarfRegister(7), DwarfRegister(16)
TOP = 0x7FFF_0000_0000  # where the stack pointer is
UNDEFINED = Absent("no location", "undefined")


def row(size: int, *saved: tuple[int, int], base: DwarfRegister = SP, signal: bool = False) -> Row:
    """CFA = base + size; the return address below it, other registers at their offsets."""
    places: list[tuple[DwarfRegister, Place]] = [(IP, FrameRelative(ByteOffset(-8)))]
    places += [(DwarfRegister(one), FrameRelative(ByteOffset(at))) for one, at in saved]
    return Row(InMemory(base, ByteOffset(size)), tuple(places), IP, signal)


def copy(words: list[int], wanted: int | None = None, **registers: int) -> StackCopy:
    memory = struct.pack(f"<{len(words)}Q", *words)
    named = {"bp": BP, "bx": 3}
    values = {IP: 0, SP: TOP} | {named[name]: value for name, value in registers.items()}
    room = len(memory) if wanted is None else wanted
    return StackCopy(1, 0, 2, 8, values, TOP, memory, room)


def walk(
    stack: StackCopy, rules: dict[int, Row | str], at: int = 1
) -> tuple[list[int], str | None]:
    """The addresses; a return address N is a call of the code at N - 1."""

    def rule_at(address: int, is_call: bool) -> Rule | str:
        found = rules.get(address - is_call, "no unwind information")
        return found if isinstance(found, str) else Rule(found)

    frames, why = unwound(stack, rule_at, SP, at, False)
    return [address for address, _ in frames], why


OUTERMOST = Row(InMemory(SP, ByteOffset(8)), ((IP, UNDEFINED),), IP, signal_frame=False)


def test_to_the_outermost_function() -> None:
    stack = copy([7, 11, 7, 7, 21, 0])
    rules: dict[int, Row | str] = {1: row(16), 10: row(24), 20: OUTERMOST}
    assert walk(stack, rules) == ([1, 11, 21], None)


def test_an_address_of_zero_ends_a_stack() -> None:
    assert walk(copy([0]), {1: row(8)}) == ([1], None)


@pytest.mark.parametrize(
    ("stack", "rules", "why"),
    [
        (copy([7, 11]), {1: row(16), 10: row(64)}, "stack copy ended after 16 bytes"),
        (
            copy([7, 11], 4096),
            {1: row(16), 10: row(64)},
            "the kernel could copy only 16 bytes of the stack",
        ),
        (copy([7, 11]), {1: row(16)}, "no unwind information"),
        (copy([7, 11]), {1: row(16), 10: row(-24)}, "a frame below the stack pointer"),
        (copy([7, 11, 12]), {1: row(16), 10: row(0)}, "the stack does not go on upwards"),
        (
            copy([7, 11]),
            {1: row(16), 10: row(8, base=DwarfRegister(12))},
            "the caller's value of register 12 is not known",
        ),
        (
            copy([7, 11]),
            {1: row(16), 10: Row(Absent("computed", "it is computed"), (), IP, signal_frame=False)},
            "the frame's address is not known: it is computed",
        ),
        (
            copy([7, 11]),
            {1: row(16), 10: Row(InMemory(SP, ByteOffset(8)), (), IP, signal_frame=False)},
            "the return address is not stored",
        ),
    ],
)
def test_what_cannot_be_unwound_says_why(
    stack: StackCopy, rules: dict[int, Row | str], why: str
) -> None:
    assert walk(stack, rules) == ([1, 11], why)


def test_registers_of_callers_are_found_again() -> None:
    # The first function has saved bp, by which the second has its frame.
    stack = copy([TOP + 32, 11, 7, 7, TOP + 64, 21, 7, 7], bp=5)
    rules: dict[int, Row | str] = {
        1: row(16, (BP, -16)),
        10: row(16, (BP, -16), base=BP),
        20: OUTERMOST,
    }
    assert walk(stack, rules) == ([1, 11, 21], None)


def test_a_frame_whose_address_is_in_memory() -> None:
    # What a function that aligns its stack says: the CFA is the word 8 bytes below bp.
    cfa = Indirect(InMemory(BP, ByteOffset(-8)), ByteOffset(0))
    aligned = Row(cfa, ((IP, FrameRelative(ByteOffset(-8))),), IP, signal_frame=False)
    stack = copy([TOP + 24, 7, 11, 0], bp=TOP + 8)
    assert walk(stack, {1: aligned, 10: OUTERMOST}) == ([1, 11], None)


def test_a_signal_interrupts_at_any_instruction() -> None:
    # Of the frame after it the address is exact: the first instruction is no call.
    registers = (
        (IP, InMemory(SP, ByteOffset(8))),
        (SP, InMemory(SP, ByteOffset(16))),
    )
    cfa = Indirect(InMemory(SP, ByteOffset(16)), ByteOffset(0))
    frame = Row(cfa, registers, IP, signal_frame=True)
    stack = copy([11, 7, 30, TOP + 32, 41])
    rules: dict[int, Row | str] = {1: row(8), 10: frame, 30: row(8), 40: OUTERMOST}
    assert walk(stack, rules) == ([1, 11, 30, 41], None)


def test_where_the_return_address_is_in_a_register() -> None:
    link = Row(InMemory(SP, ByteOffset(8)), ((IP, InRegister(DwarfRegister(3))),), IP, False)
    assert walk(copy([7], bx=11), {1: link, 10: OUTERMOST}) == ([1, 11], None)
    assert walk(copy([7]), {1: link})[1] == "the return address is not stored"


def test_recursion_without_end_is_cut() -> None:
    stack = copy([2] * (MOST_FRAMES + 5))
    addresses, why = walk(stack, {1: row(8)})
    assert (len(addresses), why) == (MOST_FRAMES, f"more than {MOST_FRAMES} frames")


def test_a_frame_pointer_has_to_lead_to_code() -> None:
    stack = copy([7, TOP + 24, 99, 0, 0, 0], bp=TOP + 8)

    def rule_at(address: int, is_call: bool) -> Rule | str:
        return Rule(frame_pointer_row(MACHINE), guessed=True) if address == 1 else "no code"

    frames, why = unwound(stack, rule_at, SP, 1, False)
    assert (frames, why) == ([(1, False)], "no unwind information")


def test_the_first_instruction_of_any_function() -> None:
    assert walk(copy([11]), {1: entry_row(MACHINE), 10: OUTERMOST}) == ([1, 11], None)


@pytest.mark.parametrize(
    "odd",
    [
        None,
        "text",
        Row(InMemory(SP, "x"), (), IP, False),  # type: ignore[arg-type]
        Row(UNDEFINED, (("x", UNDEFINED),), IP, False),  # type: ignore[arg-type]
        Row(UNDEFINED, ((IP, 7),), IP, False),  # type: ignore[arg-type]
        Row(UNDEFINED, 7, IP, False),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_row_is_refused(odd: object) -> None:
    with pytest.raises(ValueError, match=r"no row|a place|no number"):
        Rule(odd)


Frames = list[tuple[int, int | None]]


@st.composite
def stacks(draw: st.DrawFn) -> tuple[Frames, list[int]]:
    """Frames, innermost first: their words, and where they save bp, if they do; bp of each."""
    frames: Frames = []
    for _ in range(draw(st.integers(1, 12))):
        size = draw(st.integers(1, 9))
        frames.append((size, draw(st.none() | st.integers(0, size - 2)) if size > 1 else None))
    return frames, draw(st.lists(st.integers(1, 1 << 40), min_size=13, max_size=13))


@given(stacks(), st.integers(0, 120))
def test_a_stack_is_found_again_and_a_shorter_copy_is_its_beginning(
    drawn: tuple[Frames, list[int]], cut: int
) -> None:
    frames, _ = drawn
    words: list[int] = []
    rules: dict[int, Row | str] = {}
    for number, (size, slot) in enumerate(frames):
        part = [5] * size
        part[-1] = 10 * (number + 1) + 1  # the return address
        saved = ()
        if slot is not None:
            part[slot] = 1000 + number
            saved = ((int(BP), 8 * slot - 8 * size),)  # type: ignore[assignment]
        rules[1 if number == 0 else 10 * number] = row(8 * size, *saved)
        words += part
    rules[10 * len(frames)] = OUTERMOST
    wanted = [1] + [10 * (number + 1) + 1 for number in range(len(frames))]
    assert walk(copy(words, bp=4), rules) == (wanted, None)
    shorter = copy(words[:cut], bp=4)
    found, why = walk(shorter, rules)
    whole = cut >= len(words)
    assert found == wanted[: len(found)]
    assert (why is None) == whole
    if not whole:
        assert why == f"stack copy ended after {8 * cut} bytes"
        assert sum(size for size, _ in frames[: len(found) - 1]) <= cut


def test_a_wrong_frame_size_would_be_noticed() -> None:
    stack = copy([7, 11, 7, 7, 21, 0])
    rules: dict[int, Row | str] = {1: row(16), 10: row(16), 20: OUTERMOST}
    assert walk(stack, rules) != ([1, 11, 21], None)


# What a hostile file can say: any places, of any numbers.
NUMBERS = st.integers(-(1 << 66), 1 << 66) | st.integers(-64, 256)
PLACES = st.recursive(
    st.builds(InMemory, st.integers(-2, 20).map(DwarfRegister), NUMBERS.map(ByteOffset))
    | st.builds(FrameRelative, NUMBERS.map(ByteOffset))
    | st.builds(InRegister, st.integers(-2, 20).map(DwarfRegister))
    | st.just(UNDEFINED),
    lambda inner: st.builds(Indirect, inner, NUMBERS.map(ByteOffset)),
    max_leaves=2,
)
ROWS = st.builds(
    Row,
    PLACES,
    st.lists(st.tuples(st.integers(-2, 20).map(DwarfRegister), PLACES), max_size=3).map(tuple),
    st.integers(14, 17).map(DwarfRegister),
    st.booleans(),
)


@given(st.lists(ROWS, min_size=1, max_size=2), st.binary(max_size=64), st.booleans())
def test_no_rule_does_harm(rows: list[Row], memory: bytes, guessed: bool) -> None:
    top = TOP
    # Words that point back into the stack, too.
    content = b"".join([(top + 8 * at).to_bytes(8, "little") for at in range(8)]) + memory
    registers = dict.fromkeys(range(17), top)
    stack = StackCopy(1, 0, 2, 8, registers, top, content, len(content))

    def rule_at(address: int, is_call: bool) -> Rule | str:
        try:
            return Rule(rows[address % len(rows)], guessed)
        except ValueError as refused:
            return str(refused)

    frames, why = unwound(stack, rule_at, SP, 1, False)
    assert 1 <= len(frames) <= MOST_FRAMES
    assert all(0 <= address < 1 << 64 for address, _ in frames)
    assert why is None or why
