"""Conditions of filters: which values can be compared, and which pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from fetchc.ir.fetch import Decode
from fetchc.tracer.display_values import Character, CutString, Hexadecimal, SymbolName
from fetchc.tracer.filter_conditions import Condition, accepts, mismatch, parse_filter, with_null
from fetchc.tracer.number_values import meaning
from fetchc.tracer.structure_values import NIL
from fetchc.tracer.value_shapes import (
    CastShape,
    Guard,
    Leaf,
    ListShape,
    OptionalShape,
    Shape,
    StringShape,
    StructShape,
    TypeAssertionShape,
    TypeIdentity,
    TypeNameShape,
)

if TYPE_CHECKING:
    from fetchc.program.protocol import ObjectTypes, RuntimeTypes
    from fetchc.quantities import TypeId
    from fetchc.tracer.events import Value


def one(text: str) -> Condition:
    condition = parse_filter(text)
    assert isinstance(condition, Condition)
    return condition


@pytest.mark.parametrize(
    ("text", "passing", "stopped"),
    [
        ("n > 3", [4, 3.5], [3, -1, None, "9", [5]]),
        ("n == -5", [-5], [251, None]),
        ("n != 1", [0, 2], [1, None, True]),
        ("n & 6", [2, 12, -1], [1, 8, 0, None]),
        ("b == true", [True], [False, None]),
        ('s == "a"', ["a"], ["", "ab", None]),
        ('s != "a"', ["", "ab"], ["a", None]),
        ('s ~ "a*[1]?"', ["a[1]x", "abc\n[1]y"], ["a1x", "xa[1]y", None]),
        ("e == RED", [{"name": "RED", "value": 1}], [{"name": None, "value": 7}, None]),
        ("e != RED", [{"name": None, "value": 7}], [{"name": "RED", "value": 1}, None]),
        ("e & 6", [{"name": "RED", "value": 2}], [{"name": None, "value": 8}, None]),
        ("e == 7", [{"name": None, "value": 7}], [{"name": "RED", "value": 1}, None]),
        ("c > 64", [Character("A", 65)], [Character("\udcc3", -61), "A", None]),
        ("c & 1", [Character("A", 65)], [Character("B", 66), None]),
        ("c == 65", [Character("A", 65)], [Character("B", 66), "A"]),
        ("c == 'A'", ["A", 65], ["B", 66, None]),
        ("c != 'A'", ["B", 66], ["A", 65, None]),
    ],
)
def test_what_passes(text: str, passing: list[Value], stopped: list[Value]) -> None:
    test = accepts(one(text))
    assert [test(value) for value in passing] == [True] * len(passing)
    assert [test(value) for value in stopped] == [False] * len(stopped)


REFERENCE = Leaf("r", Decode("reference", bits=64))
NULLABLE = OptionalShape(Leaf("has", Decode("bool", bits=8)), Leaf("n", Decode("integer", bits=32)))
REFERRED = OptionalShape(REFERENCE, Leaf("t", Decode("text")))


POINTED = Leaf("f", Decode("text"), guards=(Guard("g", 0, 0, empty=True),))


@pytest.mark.parametrize(
    ("text", "shape", "passing", "stopped"),
    [
        ("o == null", REFERENCE, [None], [Hexadecimal(8)]),
        ("o == 0", REFERENCE, [None], [Hexadecimal(8)]),
        ("o != null", REFERENCE, [Hexadecimal(8)], [None]),
        ("n == null", NULLABLE, [None], [0, 5]),
        ("n != null", NULLABLE, [0, 5], [None]),
        ("n == 0", NULLABLE, [0], [None, 5]),
        ("s == null", REFERRED, [None], ["", "a"]),
        ("s != null", REFERRED, ["", "a"], [None]),
        ("s == NULL", POINTED, [None], ["", "a", CutString("a", 9)]),
        ("s != 0", POINTED, ["", CutString("a", 9)], [None]),
    ],
)
def test_null_is_no_value(
    text: str, shape: Shape, passing: list[Value], stopped: list[Value]
) -> None:
    condition = with_null(one(text), shape)
    assert mismatch(condition, shape) is None
    test = accepts(condition)
    assert [test(value) for value in passing] == [True] * len(passing)
    assert [test(value) for value in stopped] == [False] * len(stopped)


def test_a_character_that_was_read_has_its_number() -> None:
    _, byte = meaning(Decode("char", bits=8, signed=True), 1)
    _, unit = meaning(Decode("char", bits=16), 2)
    assert byte is not None
    assert unit is not None
    assert byte(-61) == "\udcc3"
    assert accepts(one("c < 0"))(byte(-61))
    assert accepts(one("c > 114"))(byte(ord("z")))
    assert accepts(one("c == 0x20ac"))(unit(0x20AC))


def test_a_number_of_the_networks_order() -> None:
    for bits, raw, number in ((16, 0xBB01, 443), (32, 0x0100007F, 0x7F000001), (64, 1 << 56, 1)):
        _, turned = meaning(Decode("turned", bits=bits), bits // 8)
        assert turned is not None
        assert turned(raw) == number
    assert mismatch(one("port:u16be == 443"), Leaf("f", Decode("turned", bits=16))) is None


def test_functions_and_what_is_no_number() -> None:
    function, infinite, none = SymbolName("act"), SymbolName("Infinity"), SymbolName("NaN")
    assert accepts(one("f != nil"))(function)
    assert not accepts(one("f == nil"))(function)
    assert accepts(one('f == "act"'))(function)
    assert accepts(one("d > 1.5"))(infinite)
    assert not accepts(one("d > 1.5"))(none)
    assert accepts(one("d != 1.5"))(none)


def test_the_beginning_of_a_text_is_not_the_text() -> None:
    cut = CutString("abc", 300)
    assert not accepts(one('s == "abc"'))(cut)
    assert accepts(one('s != "abc"'))(cut)
    assert accepts(one('s ~ "ab*"'))(cut)
    # What is after the beginning decides, and nobody knows it.
    assert not accepts(one('s ~ "*bc"'))(cut)
    assert not accepts(one('s ~ "abc"'))(cut)
    may_be = "abc" + 297 * "d"
    assert not accepts(one(f's != "{may_be}"'))(cut)
    assert accepts(one(f's != "{may_be[:-1]}"'))(cut)  # of another length
    assert not accepts(one('s != "abcd"'))(CutString("abc", None))
    assert accepts(one('s != "abd"'))(CutString("abc", None))


INTEGER = Leaf("f", Decode("integer", bits=32, signed=True))
TEXT = Leaf("f", Decode("text"))
COLOUR = Leaf("f", Decode("enum", bits=32, enumerators=(("RED", 1), ("BLUE", 4))))


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ('n == "a"', INTEGER),
        ("n == RED", INTEGER),
        ("s == 1", TEXT),
        ("s == a", TEXT),
        ("s == NULL", TEXT),  # in an array
        ("s == 1", StringShape("f", 32)),
        ("e == GREEN", COLOUR),
        ("c == 1", StructShape((("m", INTEGER),))),
        ("c == 1", ListShape((INTEGER,))),
        ("c == 1", Leaf("f", Decode("integer", count=4))),
        ('c == "a"', Leaf("f", Decode("text", count=4))),
        ("c & 1", Leaf("f", Decode("float", bits=64))),
        ("f > 0", Leaf("f", Decode("symbol", bits=64))),
        ("f == 0x401000", Leaf("f", Decode("symbol", bits=64))),
        ("u == -1", Leaf("f", Decode("integer", bits=32))),
        ("u > -1", Leaf("f", Decode("integer", bits=32))),  # in C, -1 is the greatest there
        ("b < -1", Leaf("f", Decode("integer", bits=8))),
        ("p != -1", Leaf("f", Decode("pointer", bits=64))),
    ],
)
def test_constants_that_can_never_be(
    text: str, shape: Leaf | StringShape | StructShape | ListShape
) -> None:
    diagnostic = mismatch(one(text), shape)
    assert diagnostic is not None
    assert diagnostic.code == "FC0752"


def test_a_name_is_no_constant_of_a_number() -> None:
    diagnostic = mismatch(one("fd == n"), INTEGER)
    assert diagnostic is not None
    assert diagnostic.message == (
        "`fd` cannot be compared with `n`: the value is a number, and nothing here is called `n`"
    )
    assert diagnostic.help == "compare it with a number: `fd == 1`"


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("n == 1", INTEGER),
        ('s ~ "1"', TEXT),
        ('s == "1"', StringShape("f", 32)),
        ("e == BLUE", COLOUR),
        ("e > 3", COLOUR),
        ("c == 'x'", Leaf("f", Decode("char", bits=8))),
        ("x < 1.5", Leaf("f", Decode("float", bits=64))),
    ],
)
def test_constants_that_can_be(text: str, shape: Leaf | StringShape) -> None:
    assert mismatch(one(text), shape) is None


@pytest.mark.parametrize(
    ("text", "inner", "fits"),
    [
        ('v == "a"', StringShape("f", 32), True),
        ("v == 1", StringShape("f", 32), False),
        ("v > 1", INTEGER, True),
        ("v == 1", ListShape((INTEGER,)), False),
    ],
)
def test_a_value_whose_type_is_compared_is_what_it_is_read_as(
    text: str, inner: Shape, fits: bool
) -> None:
    dynamic = TypeNameShape(INTEGER, INTEGER, cast("RuntimeTypes", None))
    own, types = TypeIdentity(INTEGER, TEXT), cast("ObjectTypes", None)
    for shape in (
        TypeAssertionShape(dynamic, 0, inner),
        CastShape(INTEGER, own, None, INTEGER, types, cast("TypeId", 0), inner),
    ):
        assert (mismatch(one(text), shape) is None) == fits


@pytest.mark.parametrize("text", ['v == "a"', 'v != "a"', "v != 1", "v == 0", 'v ~ "*"', "v & 1"])
def test_a_value_of_another_type_passes_no_filter(text: str) -> None:
    assert not accepts(one(text))({"type": SymbolName("main.T")})


@pytest.mark.parametrize(
    ("dynamic", "is_nil"), [(NIL, True), (SymbolName("*main.failure"), False), (None, None)]
)
def test_an_interface_is_nil_by_its_type(dynamic: SymbolName | None, is_nil: bool | None) -> None:
    # A pointer that is nil, in an interface, is a value: as in Go, that one is not nil.
    value: Value = {"type": dynamic, "data": 0}
    assert accepts(one("err == nil"))(value) == (is_nil is True)
    assert accepts(one("err != nil"))(value) == (is_nil is False)
