"""The reader of the kernel's text that live tests compare by; needs no kernel."""

from __future__ import annotations

import pytest

from fetchc.ir.fetch import Decode
from tests.live.reading import Unreadable, read, same
from tests.support.programs import Value

S16 = Decode("integer", 16, signed=True)
WORDS = Decode("text", 64, count=2)
SIDE = Decode("enum", 3, signed=True, enumerators=(("LEFT", -2), ("MIDDLE", -1)))


@pytest.mark.parametrize(
    ("printed", "decode", "length", "value"),
    [
        ("-5", S16, None, -5),
        ("65531", S16, None, -5),
        ("0xffffffff80000000", Decode("integer", 32, signed=True), None, -(1 << 31)),
        ("0xffffffff80000000", Decode("pointer", 64), None, 0xFFFFFFFF80000000),
        ("16", Decode("integer", 5, signed=True), None, -16),
        ("1", Decode("bool", 8), None, True),
        ("7", SIDE, None, {"name": "MIDDLE", "value": -1}),
        ("0", SIDE, None, {"name": None, "value": 0}),
        ("0xc020000000000000", Decode("float", 64), None, -8.0),
        ("'a'", Decode("char", 8), None, 97),
        ("{1,-2,3}", Decode("integer", 16, True, 3), None, [1, -2, 3]),
        ('"a b=c"', Decode("text"), None, "a b=c"),
        ('"abcdefg"', Decode("text", limit=4), None, "abcd"),
        ("{0x6665206463626163,0x67}", WORDS, 9, "cabcd efg"),
        ("{0x0,0x0}", WORDS, 0, ""),
    ],
)
def test_reading(printed: str, decode: Decode, length: int | None, value: Value) -> None:
    assert same(read(printed, decode, length), value, decode)


@pytest.mark.parametrize(
    ("printed", "decode", "length"),
    [
        ("(fault)", Decode("text"), None),
        ("2", Decode("bool", 8), None),
        ("{1,2}", Decode("integer", 16, True, 3), None),
        ("{0x0,0x0}", WORDS, 17),
        ("{0x0,0x0}", WORDS, None),
        ("{0x0,0x0", WORDS, 1),
        ("", S16, None),
    ],
)
def test_what_cannot_be_read_is_said(printed: str, decode: Decode, length: int | None) -> None:
    with pytest.raises(Unreadable):
        read(printed, decode, length)


def test_values_of_other_kinds_are_not_the_same() -> None:
    assert not same(1, True, S16)
    assert not same("1", 1, S16)
    assert not same(0.1, 1, Decode("float", 64))
    assert not same(0.1, 0.1, Decode("float", 32))  # a float of 32 bits cannot be 0.1 exactly
    assert same(0.10000000149011612, 0.1, Decode("float", 32))
