"""Values as text: one line, and nothing that a terminal would act on."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.tracer.display_values import (
    CutList,
    CutString,
    Enumerator,
    Hexadecimal,
    SymbolName,
    printed,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "(fault)"),
        (True, "true"),
        (-5, "-5"),
        (0.1, "0.1"),
        (Hexadecimal(0), "0x0"),
        (Hexadecimal(0x401000), "0x401000"),
        (SymbolName("visit+0x4"), "visit+0x4"),
        (Enumerator(name="RED", value=0), "RED"),
        (Enumerator(name=None, value=7), "7"),
        ("plain", '"plain"'),
        ("größe 😀", '"größe 😀"'),
        ('say "hi" \\', r'"say \"hi\" \\"'),
        ("a\nb\r\t\0", r'"a\nb\r\t\0"'),
        ("\x1b[31m\x07\x7f", r'"\x1b[31m\x07\x7f"'),
        ("\udcff\udc80", r'"\xff\x80"'),
        ("\ud83d", r'"\ud83d"'),
        ("\x9b31m", r'"\u009b31m"'),  # a C1 control begins a sequence, too
        ("\u202egnp.exe", r'"\u202egnp.exe"'),
        ("\u2066\u2028\u200f", r'"\u2066\u2028\u200f"'),
        ("\U000e0041", r'"\U000e0041"'),
        (CutString("begin", 300), '"begin"…'),
        ([1, None, "x"], '[1, (fault), "x"]'),
        (CutList([1, 2], 9), "[1, 2, …]"),
        (CutList([], 9), "[…]"),
        ({"x": 1, "in": {"s": "a"}}, '{x=1, in={s="a"}}'),
        ([[1], []], "[[1], []]"),
    ],
)
def test_each_kind(value: object, text: str) -> None:
    assert printed(value) == text  # type: ignore[arg-type]


@given(st.text(st.characters(codec=None)))
def test_a_text_is_one_line_without_controls(text: str) -> None:
    shown = printed(text)
    assert shown.isprintable()
    assert shown.encode("utf-8").decode() == shown  # no lone surrogate is left
    assert shown[0] == shown[-1] == '"'
    inner = shown[1:-1].replace("\\\\", "")
    assert inner.count('"') == inner.count('\\"')


_ESCAPE = re.compile(
    r"\\(?:x(?P<byte>..)|u(?P<short>....)|U(?P<long>.{8})|(?P<known>.))", re.DOTALL
)
_KNOWN = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\\": "\\", '"': '"'}


def _original(shown: str) -> bytes:
    # Back from the text to the bytes: nothing is lost, and nothing looks like something else.
    def one(escape: re.Match[str]) -> str:
        if escape["byte"]:
            byte = int(escape["byte"], 16)
            return chr(byte if byte < 0x80 else 0xDC00 + byte)
        if escape["known"]:
            return _KNOWN[escape["known"]]
        return chr(int(escape["short"] or escape["long"], 16))

    return _ESCAPE.sub(one, shown[1:-1]).encode("utf-8", "surrogateescape")


@given(st.binary())
def test_no_byte_is_lost(data: bytes) -> None:
    assert _original(printed(data.decode("utf-8", "surrogateescape"))) == data


def test_a_byte_that_is_another_is_noticed() -> None:
    assert _original('"\\xfe"') != b"\xff"


def test_what_is_missing_for_no_fault_is_null() -> None:
    value: Any = {"a": None, "b": [None, None]}
    assert printed(value) == "{a=(fault), b=[(fault), (fault)]}"
    assert printed(value, (), "v") == "{a=null, b=[null, null]}"
    assert printed(value, ("v.b[1]",), "v") == "{a=null, b=[null, (fault)]}"
