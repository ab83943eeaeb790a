"""Location expressions as bytes, and the places that they describe."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.debuginfo.byte_reader import Cursor
from fetchc.debuginfo.dwarf.expressions import (
    Machine,
    evaluate,
    moved,
    operation_name,
    resolve_frame,
)
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import (
    Absent,
    Arithmetic,
    AtAddress,
    Constant,
    FrameRelative,
    Indirect,
    InMemory,
    InRegister,
    OnEntry,
    Piece,
    Pieces,
    Place,
    PointerTo,
)
from fetchc.quantities import Address, ByteOffset, ByteSize, DwarfRegister

if TYPE_CHECKING:
    from fetchc.program.entities import Absence

CFA = FrameRelative(ByteOffset(0))


def register(number: int) -> InRegister:
    return InRegister(DwarfRegister(number))


def memory(number: int, offset: int) -> InMemory:
    return InMemory(DwarfRegister(number), ByteOffset(offset))


def frame(offset: int) -> FrameRelative:
    return FrameRelative(ByteOffset(offset))


def at(address: int) -> AtAddress:
    return AtAddress(Address(address))


def indirect(pointer: Place, offset: int = 0) -> Indirect:
    return Indirect(pointer, ByteOffset(offset))


def pointer_to(target: Place, offset: int = 0) -> PointerTo:
    return PointerTo(target, ByteOffset(offset))


def pieces(*parts: tuple[int, int, Place]) -> Pieces:
    return Pieces(tuple(Piece(ByteOffset(start), ByteSize(size), p) for start, size, p in parts))


def describe(
    expression: str,
    *,
    frame_base: Place | None = None,
    little: bool = True,
    address_size: int = 8,
    initial: Place | None = None,
) -> Place:
    """The place of an expression in hex; addrx 0 is 0x4000 and so on in steps of 8."""
    cursor = Cursor("a.out", ".debug_info", bytes.fromhex(expression), little=little)
    machine = Machine(address_size, 4, frame_base, lambda index: Address(0x4000 + 8 * index))
    return evaluate(cursor, machine, initial)


def absent(expression: str, **options: Place | None) -> Absent:
    described = describe(expression, **options)  # type: ignore[arg-type]
    assert isinstance(described, Absent)
    return described


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("55", register(5)),  # reg5
        ("90 21", register(33)),  # regx 33
        ("55 96", register(5)),  # nop after it
        ("55 f0", register(5)),  # GNU_uninit
        ("77 08", memory(7, 8)),  # breg7 8
        ("76 70", memory(6, -16)),  # breg6 -16
        ("92 21 7f", memory(33, -1)),  # bregx 33, -1
        ("03 1020000000000000", at(0x2010)),
        ("a1 02", at(0x4010)),  # addrx 2
        ("fb 02", at(0x4010)),  # GNU_addr_index 2
        ("9c", frame(0)),  # call_frame_cfa, as Go's parameters
        ("9c 23 10", frame(16)),  # plus_uconst
        ("9c 11 70 22", frame(-16)),  # consts -16, plus
        ("9c 48 1c", frame(-24)),  # lit24, minus
        ("11 70 9c 22", frame(-16)),  # the constant below
        ("03 1020000000000000 23 08", at(0x2018)),
        ("77 08 06", indirect(memory(7, 8))),
        ("77 08 06 23 20", indirect(memory(7, 8), 32)),
        ("77 08 06 23 20 06", indirect(indirect(memory(7, 8), 32))),
        ("77 08 94 08", indirect(memory(7, 8))),  # deref_size 8
        ("76 00 23 f8ffffffffffffffff01", memory(6, -8)),  # -8 spelled unsigned
        ("35 9f", Constant(5)),
        ("09 ff 9f", Constant(-1)),  # const1s
        ("08 ff 9f", Constant(255)),  # const1u
        ("0a 3412 9f", Constant(0x1234)),
        ("0b ffff 9f", Constant(-1)),
        ("0c 78563412 9f", Constant(0x12345678)),
        ("0d feffffff 9f", Constant(-2)),
        ("0e ffffffffffffffff 9f", Constant((1 << 64) - 1)),
        ("0f ffffffffffffffff 9f", Constant(-1)),
        ("10 8001 9f", Constant(128)),
        ("a2 01 9f", Constant(0x4008)),  # constx
        ("35 37 22 9f", Constant(12)),
        ("37 35 1c 9f", Constant(2)),
        ("37 35 1e 9f", Constant(35)),
        ("37 35 1a 9f", Constant(5)),
        ("37 38 21 9f", Constant(15)),
        ("37 35 27 9f", Constant(2)),
        ("37 1f 9f", Constant(-7)),
        ("37 20 9f", Constant(-8)),
        ("9e 04 78563412", Constant(0x12345678, ByteSize(4))),  # implicit_value
        ("75 08 9f", pointer_to(memory(5, 8))),
        ("9c 9f", pointer_to(frame(0))),
        ("03 1020000000000000 9f", pointer_to(at(0x2010))),
        ("75 00 9f", register(5)),  # the value is all of a register
        ("a3 01 55 9f", OnEntry(DwarfRegister(5))),  # entry_value
        ("f3 01 55 23 08 9f", pointer_to(indirect(OnEntry(DwarfRegister(5)), 8))),
        ("a3 01 54", indirect(OnEntry(DwarfRegister(4)))),  # an object passed by its address
        ("a3 01 54 06 23 10", indirect(indirect(OnEntry(DwarfRegister(4))), 16)),
        ("77 08 06 9f", memory(7, 8)),  # the value is a word of memory
        ("35 12 22 9f", Constant(10)),  # dup
        ("35 37 13 9f", Constant(5)),  # drop
        ("35 37 14 1c 1c 9f", Constant(3)),  # over: 5, 7, 5 -> 5 - (7 - 5)
        ("35 37 15 01 13 13 9f", Constant(5)),  # pick 1, drop, drop
        ("35 37 16 1c 9f", Constant(2)),  # swap: 7 - 5
        ("31 32 33 17 1c 1c 9f", Constant(4)),  # rot: 3, 1, 2 -> 3 - (1 - 2)
    ],
)
def test_a_simple_location(expression: str, expected: Place) -> None:
    assert describe(expression) == expected


@pytest.mark.parametrize(
    ("frame_base", "expected"),
    [
        (CFA, frame(-20)),
        (frame(16), frame(-4)),
        (register(6), memory(6, -20)),  # clang: the base is what rbp holds
        (memory(7, 8), memory(7, -12)),
        (at(0x1000), at(0x1000 - 20)),
        (indirect(memory(6, -8)), indirect(memory(6, -8), -20)),  # gcc with a realigned stack
    ],
)
def test_a_frame_base_moves_fbreg(frame_base: Place, expected: Place) -> None:
    assert describe("91 6c", frame_base=frame_base) == expected  # fbreg -20


def test_pieces_count_from_the_start_of_the_object() -> None:
    # A Go string in two registers, then a hole, then eight bytes of the frame.
    assert describe("50 93 08 53 93 08 93 04 91 10 93 08", frame_base=CFA) == pieces(
        (0, 8, register(0)),
        (8, 8, register(3)),
        (16, 4, Absent("no location", "the compiler gives it no location (it was optimized out)")),
        (20, 8, frame(16)),
    )


def test_values_can_be_pieces() -> None:
    assert describe("35 9f 93 04 9e 02 0100 93 02") == pieces(
        (0, 4, Constant(5)), (4, 2, Constant(1, ByteSize(2)))
    )


def test_bit_pieces_of_whole_bytes() -> None:
    assert describe("50 9d 20 00 77 08 9d 10 08") == pieces(
        (0, 4, register(0)), (4, 2, memory(7, 9))
    )


def test_a_bit_piece_inside_a_register_is_absent() -> None:
    described = describe("50 9d 08 08")
    assert described == pieces((0, 1, Absent("in pieces", "its bits are in the middle of a place")))


def test_bit_pieces_that_are_no_bytes() -> None:
    assert absent("50 9d 03 00 51 9d 05 00").code == "FC0404"


def test_an_implicit_pointer_leads_to_the_variable_it_names() -> None:
    places: dict[int, Place] = {
        0x10: memory(7, 8),
        0x20: register(3),
        0x30: Absent("no location", "gone"),
    }

    def pointed(expression: str) -> Place:
        cursor = Cursor("a.out", ".debug_info", bytes.fromhex(expression))
        return evaluate(cursor, Machine(8, 4, None, None, places.__getitem__))

    assert pointed("a0 10000000 04") == pointer_to(memory(7, 12))
    assert pointed("a0 10000000 78") == register(7)  # 8 bytes before it, where %sp points
    assert pointed("a0 20000000 04") == pointer_to(register(3), 4)
    assert pointed("f2 30000000 00") == places[0x30]


@pytest.mark.parametrize(
    ("expression", "kind", "reason"),
    [
        ("", "no location", "the compiler gives it no location (it was optimized out)"),
        ("9e 00", "no location", "the compiler gives it no location (it was optimized out)"),
        ("0e 1000000000000000 e0", "thread-local", "it is in thread-local storage"),
        ("0e 1000000000000000 9b", "thread-local", "it is in thread-local storage"),
        (
            "9b 0e 8000000000000000",
            "thread-local",
            "it is in thread-local storage",
        ),  # as GCC 12 does
        (
            "a3 02 75 08 9f",
            "computed",
            "it is the value of an expression at entry and not stored in memory",
        ),
        (
            "75 00 70 00 22",
            "no address",
            "its address is computed at run time (DW_OP_plus)",
        ),
        (
            "75 00 19 9f",
            "computed",
            "it is computed at run time (DW_OP_abs) and not stored in memory",
        ),
        (
            "03 0020000000000000 75 00 22 9f",  # where the file is loaded is not known
            "computed",
            "it is computed at run time (DW_OP_plus) and not stored in memory",
        ),
        (
            "75 00 " + 30 * "12 1e " + "9f",
            "computed",
            "it is computed at run time (DW_OP_mul) and not stored in memory",
        ),
        (
            "75 00 35 1a 06 9f",
            "computed",
            "it is computed at run time (DW_OP_and) and not stored in memory",
        ),
        (
            "75 00 94 00 9f",
            "computed",
            "it is computed from 0 bytes of memory and not stored in memory",
        ),
        (
            "a5 11 20 a8 00 9f",
            "computed",
            "it is computed at run time (DW_OP_convert) and not stored in memory",
        ),
        (
            "a0 10000000 00",
            "computed",
            "it points at a variable that the compiler does not store in memory",
        ),
        (
            "10 8020",
            "no address",
            "its address is the fixed number 0x1000, which is in no part of the file",
        ),
        ("35 06", "no address", "its address is read from the fixed address 0x5"),
        ("30 28 0100 31 9f", "computed", "it is chosen at run time (DW_OP_bra)"),
        (
            "98 1000",
            "computed",
            "it is computed by a procedure of the debug information (DW_OP_call2)",
        ),
        ("ed 00 01 9f", "computed", "it is computed by the unknown operation DW_OP_0xed"),
        (
            "91 10",
            "no address",
            "its address is relative to a frame base that the debug information does not give",
        ),
    ],
)
def test_what_cannot_be_fetched_says_why(expression: str, kind: Absence, reason: str) -> None:
    assert absent(expression) == Absent(kind, reason)


def test_what_is_computed_of_registers_and_memory_is_arithmetic() -> None:
    five = Constant(5)
    assert describe("75 00 35 1a 9f") == Arithmetic("and", (register(5), five))
    word = indirect(memory(5, 0)).pointer
    assert describe("75 00 94 04 9f") == Arithmetic("deref_size", (word, Constant(4)))
    assert describe("75 00 1f 9f") == Arithmetic("neg", (register(5),))
    slot = PointerTo(memory(7, 8), ByteOffset(0))
    assert describe("77 08 35 24 9f") == Arithmetic("shl", (slot, five))
    assert describe("77 08 06 35 1c 35 1e 9f") == Arithmetic(
        "mul", (PointerTo(indirect(memory(7, 8), -5), ByteOffset(0)), five)
    )
    assert describe("75 00 35 1a 23 07 9f") == Arithmetic(
        "plus", (Arithmetic("and", (register(5), five)), Constant(7))
    )


def test_what_is_computed_of_the_frame_is_relative_to_it() -> None:
    found = describe("9c 35 1e 9f")
    assert found == Arithmetic("mul", (PointerTo(CFA, ByteOffset(0)), Constant(5)))
    shown = Arithmetic("mul", (PointerTo(memory(7, 16), ByteOffset(0)), Constant(5)))
    assert resolve_frame(found, memory(7, 16)) == shown
    lost = Absent("no address", "lost")
    assert resolve_frame(found, lost) == lost


def test_a_frame_base_that_is_absent_takes_its_variables_along() -> None:
    base = Absent("no address", "its address is computed at run time (DW_OP_and)")
    described = absent("91 10", frame_base=base)
    assert described.code == "FC0405"
    assert described.reason.endswith(base.reason)


def test_a_word_of_a_big_endian_machine_is_not_taken_for_its_value() -> None:
    assert describe("77 08 06", little=False) == indirect(memory(7, 8))
    assert describe("77 08 06 9f", little=False) == pointer_to(indirect(memory(7, 8)))


def test_numbers_in_the_byte_order_of_the_file() -> None:
    assert describe("03 00002010", little=False, address_size=4) == at(0x2010)
    assert describe("9e 02 0102", little=False) == Constant(0x0102, ByteSize(2))


def test_a_32_bit_address_wraps_at_its_own_size() -> None:
    assert describe("75 00 23 fcffffff0f", address_size=4) == memory(5, -4)


def test_too_many_dereferences_are_refused() -> None:
    assert describe("77 00" + "06" * 32) != absent("77 00" + "06" * 33)
    described = absent("77 00" + "06" * 40)
    assert described == Absent("no address", "its address is reached through more than 32 pointers")


def test_an_operand_that_the_compiler_left_out() -> None:
    # clang 14 at -O2, of an __int128 in two registers: breg1 0, or, stack_value.
    reason = "it is computed from what is left out (DW_OP_or) and not stored in memory"
    assert describe("71 00 21 9f") == Absent("computed", reason)


def test_a_rule_of_call_frame_information_starts_with_the_cfa() -> None:
    assert describe("23 08", initial=CFA) == frame(8)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("03 1020", "a.out: .debug_info+0x1: truncated 8-byte number"),
        ("01", "a.out: .debug_info+0x0: unknown operation DW_OP_0x1"),
        ("06", "a.out: .debug_info+0x1: the expression takes a value from its empty stack"),
        ("35 15 04", "a.out: .debug_info+0x3: the expression has no stack entry 4"),
        ("55 23 08", "a.out: .debug_info+0x1: DW_OP_plus_uconst follows a finished location"),
        ("35 55", "a.out: .debug_info+0x1: DW_OP_reg5 with values left on the stack"),
        ("55 93 08 56", "a.out: .debug_info+0x4: the last piece of the expression has no size"),
        ("9e 05 00", "a.out: .debug_info+0x2: truncated block of 5 bytes"),
        ("91", "a.out: .debug_info+0x1: truncated signed LEB128 number"),
    ],
)
def test_malformed_expressions(expression: str, message: str) -> None:
    with pytest.raises(DebugInfoError) as caught:
        describe(expression)
    assert str(caught.value) == message
    assert caught.value.code == "FC0904"


@given(st.binary(max_size=40), st.sampled_from([4, 8]), st.booleans())
def test_any_bytes_are_a_place_or_a_located_error(raw: bytes, size: int, little: bool) -> None:
    located: str | None = ".debug_info"
    try:
        described = describe(raw.hex(), frame_base=CFA, address_size=size, little=little)
        resolve_frame(described, memory(7, 8))
    except DebugInfoError as error:
        located = error.section
    assert located == ".debug_info"


def test_a_long_chain_of_operations_is_bounded() -> None:
    raw = b"\x12" * 100_000  # dup
    assert isinstance(describe("35" + raw.hex() + "9f"), Constant)
    raw = b"\x12\x1e" * 50_000  # dup, mul: the number stays one word
    described = describe("37" + raw.hex() + "9f")
    assert isinstance(described, Constant)
    assert described.value < 1 << 64


def test_resolve_frame_reaches_every_part() -> None:
    cfa = memory(7, 8)
    assert resolve_frame(frame(-20), cfa) == memory(7, -12)
    assert resolve_frame(indirect(frame(8), 4), cfa) == indirect(memory(7, 16), 4)
    assert resolve_frame(pieces((0, 8, frame(0)), (8, 8, register(3))), cfa) == pieces(
        (0, 8, memory(7, 8)), (8, 8, register(3))
    )
    realigned = indirect(memory(6, -8))
    assert resolve_frame(frame(-20), realigned) == indirect(memory(6, -8), -20)
    for other in (register(3), memory(3, 4), at(5), Constant(5)):
        assert resolve_frame(other, cfa) == other


def test_resolve_frame_without_a_frame_address() -> None:
    nowhere = Absent("no location", "the file has no call-frame information for 0x10")
    assert resolve_frame(frame(8), nowhere) == nowhere
    assert resolve_frame(indirect(frame(8)), nowhere) == nowhere


def test_moved_stays_in_memory() -> None:
    assert moved(at(8), 8) == at(16)
    assert moved(indirect(at(8)), 8) == indirect(at(8), 8)
    described = moved(register(5), 8)
    assert isinstance(described, Absent)


@given(st.integers(0, 255))
def test_every_operation_has_a_name(code: int) -> None:
    assert operation_name(code).startswith("DW_OP_")


def test_numbers_are_read_as_struct_packs_them() -> None:
    packed = struct.pack("<Bq", 0x0F, -(1 << 63))
    assert describe(packed.hex() + "9f") == Constant(-(1 << 63))
