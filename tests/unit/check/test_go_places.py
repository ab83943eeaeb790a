"""Parameters of Go up to 1.21, whose debug information leaves out those without a name.

The programs are written here: entries as Go writes them, without a parameter or two, and the
run-time's function table, which tells what a call really takes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

import fetchc
from fetchc.debuginfo.dwarf import constants as dw
from tests.support.dwarfwriter import (
    Attr,
    Entry,
    Ref,
    Unit,
    base_die,
    compile_unit,
    program,
    subprogram_die,
)
from tests.support.elfwriter import Load, Sym

TEXT, DATA = 0x401000, 0x480000
CALL_FRAME = Attr(dw.DW_AT_frame_base, dw.DW_FORM_block1, bytes([0x9C]))  # DW_OP_call_frame_cfa
STACK, REGISTERS = "go1.15.15", "go1.21.13"
PARTIAL = "go1.17.13; regabi"  # results in registers are not listed
ENDED = b"\xff"
TWO_WORDS = bytes([0, 8, 8, 8]) + ENDED


def array(label: str, element: str, count: int, size: int) -> Entry:
    bounds = Attr(dw.DW_AT_count, dw.DW_FORM_data1, count)
    return Entry(
        dw.DW_TAG_array_type,
        (
            Attr(dw.DW_AT_name, dw.DW_FORM_string, label),
            Attr(dw.DW_AT_type, dw.DW_FORM_ref4, Ref(element)),
            Attr(dw.DW_AT_byte_size, dw.DW_FORM_data1, size),
        ),
        (Entry(dw.DW_TAG_subrange_type, (bounds,)),),
        label,
    )


def parameter(name: str, type_name: str, place: bytes = b"", result: bool = False) -> Entry:
    return Entry(
        dw.DW_TAG_formal_parameter,
        (
            Attr(dw.DW_AT_name, dw.DW_FORM_string, name),
            Attr(dw.DW_AT_variable_parameter, dw.DW_FORM_flag, int(result)),
            Attr(dw.DW_AT_type, dw.DW_FORM_ref4, Ref(type_name)),
            Attr(dw.DW_AT_location, dw.DW_FORM_block1, place),
        ),
    )


def frame(offset: int) -> bytes:
    return bytes([0x77, 8 + offset])  # DW_OP_breg7: rsp, above the return address


def register(number: int) -> bytes:
    return bytes([0x50 + number])  # DW_OP_regN


def table_of_115(size: int) -> bytes:
    row = struct.pack("<QiiIIII", TEXT, 0, size, 0, 0, 0, 0) + struct.pack("<IBBBB", 0, 0, 0, 0, 0)
    head = struct.pack("<IBBBBQ", 0xFFFFFFFB, 0, 0, 1, 8, 1)
    return head + struct.pack("<QQQ", TEXT, 40, TEXT + 16) + row


def table_of_121(size: int) -> bytes:
    part = 8 + 8 * 8
    head = struct.pack("<IBBBB", 0xFFFFFFF1, 0, 0, 1, 8)
    head += struct.pack("<8Q", 1, 0, TEXT, 0, 0, 0, 0, part)
    row = struct.pack("<IiiIIIIIIi", 0, 0, size, 0, 0, 0, 0, 1, 0, 0) + bytes([0, 0, 0, 6])
    row += struct.pack("<I", 0) + struct.pack("<6I", *[0xFFFFFFFF] * 5, 0)
    return head + struct.pack("<III", 0, 12, 16) + row


def probe(
    path: Path,
    version: str,
    parameters: Sequence[Entry],
    size: int,
    stream: bytes = b"",
    section: str = ".gopclntab",
    returns: bool = False,
) -> fetchc.Probe:
    function = subprogram_die("main.f", TEXT, TEXT + 16, *parameters)
    function = Entry(function.tag, (*function.attributes, CALL_FRAME), function.children)
    producer = f"Go cmd/compile {version}" + ("; regabi" if version == REGISTERS else "")
    unit = compile_unit(
        base_die("int", 8, dw.DW_ATE_signed),
        base_die("int8", 1, dw.DW_ATE_signed),
        base_die("float32", 4, dw.DW_ATE_float),
        array("[2]int", "int", 2, 16),
        array("[2]int8", "int8", 2, 2),
        function,
        name="main",
        language=dw.DW_LANG_Go,
        low=TEXT,
        high=TEXT + 16,
        extra=(Attr(dw.DW_AT_producer, dw.DW_FORM_string, producer),),
    )
    table = table_of_115(size) if version == STACK else table_of_121(size)
    written = program(
        path / "program",
        [Unit(unit, version=4)],
        symbols=[
            Sym("runtime.text", TEXT),
            Sym("main.f", TEXT, 16),
            Sym("go:func.*", DATA, kind=1),
        ],
        loads=[Load(TEXT, b"\x90" * 15 + b"\xc3"), Load(DATA, stream.ljust(256, b"\0"), flags=4)],
        extra={section: table},
    )
    return fetchc.open(written).probe("main.f", returns=returns, kernel="6.1")


def fetched(at: fetchc.Probe, *expressions: str) -> list[str]:
    found = []
    for expression in expressions:
        try:
            found.append(at.compile(expression).fetcharg)
        except fetchc.CompileError as refusal:
            found.append(refusal.diagnostics[0].code)
    return found


@pytest.mark.parametrize("section", [".gopclntab", ".data.rel.ro.gopclntab"])
def test_the_size_of_the_arguments_proves_what_begins_a_word(tmp_path: Path, section: str) -> None:
    listed = [parameter("a", "[2]int"), parameter("b", "int")]
    whole = probe(tmp_path, STACK, listed, 24, section=section)
    assert fetched(whole, "a[1]", "b") == ["+16(%sp):s64", "+24(%sp):s64"]
    more = probe(tmp_path, STACK, listed, 40, section=section)  # func(_ [2]int, a [2]int, b int)
    assert fetched(more, "a[1]", "b") == ["FC0407", "FC0407"]


def test_the_size_proves_nothing_where_something_small_could_hide(tmp_path: Path) -> None:
    # func(a int8, _ int8, b int8, c [2]int8): 8 bytes with and without the second.
    listed = [parameter("a", "int8"), parameter("b", "int8", frame(2)), parameter("c", "[2]int8")]
    at = probe(tmp_path, STACK, listed, 8)
    # A number is where the debug information says: it cannot be used in part.
    assert fetched(at, "a", "b", "c[0]") == ["FC0407", "+10(%sp):s8", "FC0407"]


def test_an_array_is_where_the_debug_information_says(tmp_path: Path) -> None:
    # func(_ int8, a [2]int8): the compiler keeps arrays of two and more together.
    listed = [parameter("a", "[2]int8", frame(1))]
    assert fetched(probe(tmp_path, STACK, listed, 8), "a[0]") == ["+9(%sp):s8"]


def test_the_size_proves_small_values_where_nothing_could_hide(tmp_path: Path) -> None:
    listed = [parameter(name, "[2]int8") for name in "abcd"]
    at = probe(tmp_path, STACK, listed, 8)
    assert fetched(at, "a[0]", "d[1]") == ["+8(%sp):s8", "+15(%sp):s8"]


def test_the_argument_stream_proves_a_whole_list(tmp_path: Path) -> None:
    listed = [parameter("a", "[2]int"), parameter("b", "int8")]
    stream = bytes([0xFE, 0, 8, 8, 8, 0xFD, 16, 1]) + ENDED
    at = probe(tmp_path, REGISTERS, listed, 24, stream)
    assert fetched(at, "a[1]", "b") == ["+16(%sp):s64", "%ax:s8"]


def test_a_register_does_not_prove_what_is_on_the_stack(tmp_path: Path) -> None:
    # func(_ [2]int, a [2]int, b int): b is in its register all the same.
    listed = [parameter("a", "[2]int"), parameter("b", "int", register(0))]
    stream = bytes([0xFE, 0, 8, 8, 8, 0xFD, 0xFE, 16, 8, 24, 8, 0xFD, 32, 8]) + ENDED
    at = probe(tmp_path, REGISTERS, listed, 40, stream)
    assert fetched(at, "a[1]") == ["FC0407"]


@pytest.mark.parametrize(("said", "expected"), [(0, "%ax:s64"), (3, "%bx:s64"), (2, "FC0407")])
def test_a_register_settles_what_the_stream_leaves_open(
    said: int, expected: str, tmp_path: Path
) -> None:
    # func(a int, _ int), or func(_ int, a int); no such function has it in the third register.
    at = probe(tmp_path, REGISTERS, [parameter("a", "int", register(said))], 16, TWO_WORDS)
    assert fetched(at, "a") == [expected]


def test_without_a_word_of_the_register_it_stays_open(tmp_path: Path) -> None:
    at = probe(tmp_path, REGISTERS, [parameter("a", "int")], 16, TWO_WORDS)
    assert fetched(at, "a") == ["FC0407"]


def test_a_float_proves_nothing_of_whole_numbers(tmp_path: Path) -> None:
    # func(_ uint8, a int8, c float32): c is in the first vector register all the same.
    listed = [parameter("a", "int8"), parameter("c", "float32", register(17))]
    stream = bytes([0, 1, 1, 1, 4, 4]) + ENDED
    assert fetched(probe(tmp_path, REGISTERS, listed, 8, stream), "a") == ["FC0407"]
    listed[0] = parameter("a", "int8", register(3))
    assert fetched(probe(tmp_path, REGISTERS, listed, 8, stream), "a") == ["%bx:s8"]


def test_what_has_one_place_in_every_signature_is_proved(tmp_path: Path) -> None:
    # func(_ uint8, a int8, b int): which of the bytes has a name, does not matter to b.
    listed = [parameter("a", "int8"), parameter("b", "int")]
    stream = bytes([0, 1, 1, 1, 8, 8]) + ENDED
    at = probe(tmp_path, REGISTERS, listed, 16, stream)
    assert fetched(at, "a", "b") == ["FC0407", "%cx:s64"]


def test_where_one_is_kept_tells_the_stack_from_registers(tmp_path: Path) -> None:
    # func(_ [2]int, a [2]int, b int), and func(_ string, b int): both aggregates are two words.
    listed = [parameter("b", "int", register(0))]
    stack = bytes([0xFE, 0, 8, 8, 8, 0xFD, 16, 8]) + ENDED
    assert fetched(probe(tmp_path, REGISTERS, listed, 24, stack), "b") == ["%ax:s64"]
    listed = [parameter("b", "int", register(2))]
    assert fetched(probe(tmp_path, REGISTERS, listed, 24, stack), "b") == ["%cx:s64"]
    behind = bytes([0xFE, 8, 8, 16, 8, 0xFD, 0, 8]) + ENDED
    assert fetched(probe(tmp_path, REGISTERS, listed, 24, behind), "b") == ["FC0407"]


def test_what_is_in_front_of_a_parameter_without_a_name_is_proved(tmp_path: Path) -> None:
    # func(a [2]int, _ int)
    stream = bytes([0xFE, 0, 8, 8, 8, 0xFD, 16, 8]) + ENDED
    at = probe(tmp_path, REGISTERS, [parameter("a", "[2]int")], 24, stream)
    assert fetched(at, "a[0]") == ["+8(%sp):s64"]


def _words(room: int) -> bytes:
    # Nine in registers, with their room for spilling after the stack, then the first on the stack.
    entries = [bytes([room + 8 * index, 8]) for index in range(9)]
    return b"".join([*entries, bytes([0, 8])]) + b"\xfc" + ENDED


def test_beyond_the_stream_the_size_proves_a_list_of_words(tmp_path: Path) -> None:
    listed = [parameter(f"p{index}", "int") for index in range(12)]
    whole = probe(tmp_path, REGISTERS, listed, 96, _words(24))
    assert fetched(whole, "p0", "p8", "p9") == ["%ax:s64", "%r11:s64", "+8(%sp):s64"]
    more = probe(tmp_path, REGISTERS, listed, 104, _words(32))
    assert fetched(more, "p0", "p8", "p9") == ["FC0407"] * 3


def test_a_long_list_is_reported_one_by_one_where_nothing_so_small_hides(tmp_path: Path) -> None:
    # 4 bytes after the last one belong to no parameter: no described number is so small.
    listed = [parameter(f"p{index}", "int") for index in range(11)] + [parameter("q", "int8")]
    at = probe(tmp_path, REGISTERS, listed, 96, _words(24))
    assert fetched(at, "p0", "p8", "p9") == ["%ax:s64", "%r11:s64", "+8(%sp):s64"]
    # One more of its size could be hidden after the described ones, and shift it.
    assert fetched(at, "q") == ["FC0407"]


def test_what_both_sources_have_on_the_stack_is_there(tmp_path: Path) -> None:
    # Go 1.19 -N -l: func(a int8, s string, ..., x any, u uint16) was refused for u, and an unnamed
    # parameter could hide in the word of a. One more of them may be anywhere here.
    small = [parameter(f"p{index}", "int8") for index in range(9)]
    listed = [
        *small,
        parameter("q0", "int8", frame(0)),
        parameter("q1", "int", frame(8)),
        parameter("q2", "int8", frame(16)),
        parameter("q3", "int", frame(24)),
    ]
    at = probe(tmp_path, REGISTERS, listed, 64)
    assert fetched(at, "q0", "q1", "q2") == ["+8(%sp):s8", "+16(%sp):s64", "+24(%sp):s8"]
    # 19 bytes are passed before q3, so 24 may be where the function spills it.
    with pytest.raises(fetchc.CompileError, match="FC0407") as refused:
        at.compile("q3")
    [diagnostic] = refused.value.diagnostics
    assert diagnostic.primary is not None
    assert diagnostic.primary.text == "two sources agree, and both may be wrong"
    assert str(diagnostic.help).endswith("slot: `$stack4`")
    # Where they differ, no place is certain.
    listed[9] = parameter("q0", "int8", frame(1))
    assert fetched(probe(tmp_path, REGISTERS, listed, 64), "q0") == ["FC0407"]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (PARTIAL, ["FC0401", "FC0401", "FC0401", "+8(%sp):s64"]),
        (PARTIAL + " -N", ["%ax:s64", "+8(%sp):s64", "%ax:s64", "+8(%sp):s64"]),
        ("go1.18.10; regabi", ["%ax:s64", "+8(%sp):s64", "%ax:s64", "+8(%sp):s64"]),
    ],
)
def test_results_that_are_left_out_have_no_numbers(
    tmp_path: Path, version: str, expected: list[str]
) -> None:
    # func() (_ int, q0 int, q1 [2]int) of Go 1.17: what it lists need not be the first.
    listed = [
        parameter("q0", "int", result=True),
        parameter("q1", "[2]int", b"\x9c", result=True),
    ]
    at = probe(tmp_path, version, listed, 16, ENDED, returns=True)
    assert fetched(at, "$ret0", "$ret1[0]", "q0", "q1[0]") == expected
