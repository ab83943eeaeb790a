"""What the kernel's filter may hold: never what drops an event that the reader would show."""

from __future__ import annotations

import pytest

from fetchc.ir.fetch import Decode
from fetchc.tracer.events import EventValue, Plan
from fetchc.tracer.filter_conditions import kernel_filter, parse_filter
from fetchc.tracer.value_shapes import BoundsCheckShape, Leaf, SizedStringShape, StringShape

LINE = (
    "p:g/e /bin/x:0x10 c=$comm:string i8=%di:s8 u8=%di:u8 i32=+0(%di):s32 p=%si:x64 b=%dx:b5@3/8"
    " s=+0(+8(%di)):string a=+0(%di):s32[4] old=%cx ok=%cx:u8 d=+0(%di):x64"
)
COLOURS = (("RED", 1), ("BLUE", 300))


def plan(field: str, decode: Decode, offset: int = 0, size: int = 0) -> Plan:
    shape = Leaf(field, decode, offset, size)
    return Plan("g", "e", "/bin/x", "f", "entry", 0x10, (LINE,), (EventValue("v", shape),))


def sent(text: str, field: str, decode: Decode) -> str:
    return kernel_filter(plan(field, decode), parse_filter(text))


SIGNED8, UNSIGNED8 = Decode("integer", 8, True), Decode("integer", 8)


@pytest.mark.parametrize(
    ("text", "field", "decode", "expected"),
    [
        ("v < -5", "i8", SIGNED8, "i8 < -5"),
        ("v == 0x7f", "i8", SIGNED8, "i8 == 127"),
        ("v & 6", "u8", UNSIGNED8, "u8 & 6"),
        ("v > 100000", "i32", Decode("integer", 32, True), "i32 > 100000"),
        ("v == 0xffffffffffffffff", "p", Decode("pointer", 64), "p == 18446744073709551615"),
        ("v == RED", "u8", Decode("enum", 8, enumerators=COLOURS), "u8 == 1"),
        ("v == 'A'", "i8", Decode("char", 8, True), "i8 == 65"),
        ("v == true", "ok", Decode("bool", 8), "ok != 0"),
        ("v != true", "ok", Decode("bool", 8), "ok == 0"),
        ("v == false", "ok", Decode("bool", 8), "ok == 0"),
        ('v == "a b"', "s", Decode("text"), 's == "a b"'),
        ('v ~ "*a*"', "s", Decode("text"), 's ~ "*a*"'),
        ("v > 1 && v < 9", "u8", UNSIGNED8, "u8 > 1 && u8 < 9"),
        ("v > 1 && v < 900", "u8", UNSIGNED8, "u8 > 1"),
        ("v < 2 || v > 9", "u8", UNSIGNED8, "((u8 < 2) || (u8 > 9))"),
        ("v < 2 || v > 4 && v < 9", "u8", UNSIGNED8, "((u8 < 2) || (u8 > 4 && u8 < 9))"),
        ("v < 2 || v > 4 && v < 900", "u8", UNSIGNED8, "((u8 < 2) || (u8 > 4))"),
        ("(v < 2 || v > 9) && v != 7", "u8", UNSIGNED8, "((u8 < 2) || (u8 > 9)) && u8 != 7"),
    ],
)
def test_what_the_kernel_takes(text: str, field: str, decode: Decode, expected: str) -> None:
    assert sent(text, field, decode) == expected


def test_no_more_than_the_kernel_reads() -> None:
    text = sent("&&".join(["v>1"] * 500), "i8", SIGNED8)
    assert 4096 - len(" && i8 > 1") <= len(text) < 4096
    assert set(text.split(" && ")) == {"i8 > 1"}


@pytest.mark.parametrize(
    ("text", "field", "decode"),
    [
        ("v == 251", "i8", SIGNED8),  # matches -5 by its bits
        ("v == 1 || v < 256", "u8", UNSIGNED8),  # one of two is no filter
        ("v < 256", "u8", UNSIGNED8),  # cast to 0
        ("v > -1", "u8", UNSIGNED8),  # cast to 255
        ("v == 1", "b", Decode("integer", 5)),  # a bit field
        ("v == -1", "i8", Decode("integer", 5, True)),
        ("v == -1", "u8", Decode("integer", 8, True)),  # fetched without its sign
        ("v < 1.5", "d", Decode("float", 64)),
        ("v < 1.5", "u8", UNSIGNED8),
        ("v == 1", "old", Decode("integer", 64)),
        ("v == 1", "a", Decode("integer", 32, True, count=4)),
        ("v == 300", "u8", Decode("enum", 8, enumerators=COLOURS)),
        ("v == BLUE", "u8", Decode("enum", 8, enumerators=COLOURS)),
        ("v > 0", "ok", Decode("bool", 8)),
        ("v == 2", "ok", Decode("bool", 8)),
        ('v == "ab"', "s", Decode("text", limit=4)),  # the kernel reads on
        ('v == "a\\"b"', "s", Decode("text")),
        ('v == "\\\\"', "s", Decode("text")),
        ('v == "ä"', "s", Decode("text")),
        ('v ~ "a[1]"', "s", Decode("text")),  # a set of characters to the kernel
        ('v ~ "a?b"', "s", Decode("text")),
        ('v ~ "a*b"', "s", Decode("text")),
        ('v == "' + "a" * 256 + '"', "s", Decode("text")),
    ],
)
def test_what_only_the_reader_can_tell(text: str, field: str, decode: Decode) -> None:
    assert sent(text, field, decode) == ""


def test_an_element_that_may_not_be_there() -> None:
    number, element = Leaf("i32", Decode("integer", 32, True)), Leaf("u8", UNSIGNED8)
    wanted = EventValue("v", BoundsCheckShape(number, 2, element))
    listed = Plan("g", "e", "/bin/x", "f", "entry", 0x10, (LINE,), (wanted,))
    assert kernel_filter(listed, parse_filter("v > 5")) == "u8 > 5"


@pytest.mark.parametrize(
    ("text", "expected"), [('v == "a"', 's == "a"'), ('v ~ "a*"', 's ~ "a*"'), ('v != "a"', "")]
)
def test_a_text_with_a_nul_in_it_is_another_one_than_the_kernel_sees(
    text: str, expected: str
) -> None:
    shape = SizedStringShape(Leaf("s", Decode("text")), Leaf("i32", Decode("integer", 32)))
    listed = Plan("g", "e", "/bin/x", "f", "entry", 0x10, (LINE,), (EventValue("v", shape),))
    assert kernel_filter(listed, parse_filter(text)) == expected


def test_a_part_of_a_field_is_not_for_the_kernel() -> None:
    condition = parse_filter("v == 1")
    assert kernel_filter(plan("u8", UNSIGNED8, 0, 1), condition) == ""
    assert kernel_filter(plan("u8", UNSIGNED8, 8), condition) == ""
    shape = StringShape("s", 32)
    cut = Plan("g", "e", "/bin/x", "f", "entry", 0x10, (LINE,), (EventValue("v", shape),))
    assert kernel_filter(cut, parse_filter('v == "a"')) == ""
