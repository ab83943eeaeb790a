"""The canonical text of a fetch."""

from __future__ import annotations

import pytest

from fetchc.diag.diagnostic import CompileError
from fetchc.ir.fetch import (
    Absolute,
    Array,
    Bits,
    Char,
    Comm,
    Cursor,
    Deref,
    Fetch,
    Image,
    Immediate,
    Register,
    ReturnValue,
    Scalar,
    StackEntry,
    StackPointer,
    Symbol,
    Text,
    Word,
    body,
)

DI, SP = Register("di"), Register("sp")


@pytest.mark.parametrize(
    ("fetch", "text"),
    [
        # the write-up's own: r->Question[0].Name
        (
            Fetch(Deref(Deref(Deref(Deref(SP, 32), 40), 0), 0), Text()),
            "+0(+0(+40(+32(%sp)))):string",
        ),
        (Fetch(DI, Scalar("s", 32)), "%di:s32"),
        (Fetch(DI, Word()), "%di"),
        (Fetch(Deref(Register("bp"), -8), Word()), "-8(%bp)"),
        (Fetch(Deref(Image(0x4040), 0), Scalar("s", 32)), "@+0x4040:s32"),
        (Fetch(Deref(Image(0x4040), -0x40), Word()), "@+0x4000"),
        (Fetch(Deref(Image(0), -8), Word()), "@+-0x8"),
        (Fetch(Deref(Deref(Absolute(0x601000), 8), 16), Word()), "+16(@0x601008)"),
        (Fetch(StackPointer(), Word()), "$stack"),
        (Fetch(StackEntry(12), Scalar("u", 8)), "$stack12:u8"),
        (Fetch(ReturnValue(), Scalar("x", 16)), "$retval:x16"),
        (Fetch(Comm(), Text()), "$comm"),
        (Fetch(Immediate(-5), Word()), r"\-5"),
        (Fetch(Immediate(0x123456789ABCDEF0), Word()), r"\0x123456789abcdef0"),
        (Fetch(Deref(DI, 99999), Word()), "+99999(%di)"),
        (Fetch(Deref(DI, 4096, user=True), Text(user=True)), "+u4096(%di):ustring"),
        (Fetch(Deref(DI, -4096, user=True), Char()), "-u4096(%di):char"),
        (Fetch(Deref(DI, 0), Bits(3, 5, 8)), "+0(%di):b3@5/8"),
        (Fetch(Deref(DI, 0), Array(Bits(3, 5, 8), 2)), "+0(%di):b3@5/8[2]"),
        (Fetch(Deref(DI, 0), Array(Text(), 2)), "+0(%di):string[2]"),
        (Fetch(Deref(DI, 0), Symbol()), "+0(%di):symbol"),
    ],
)
def test_text(fetch: Fetch, text: str) -> None:
    assert body(fetch) == text


@pytest.mark.parametrize("value", [Absolute(8), Image(8)])
def test_an_address_has_no_text(value: Absolute | Image) -> None:
    with pytest.raises(CompileError) as refused:
        body(Fetch(value, Word()))
    assert refused.value.diagnostics[0].code == "FC0405"


def test_what_a_walk_finds_has_no_text() -> None:
    # The notes of a refusal have texts of parts: `list(orders)` with an optional in an element.
    with pytest.raises(CompileError, match="FC0314"):
        body(Fetch(Deref(Cursor(0), 8), Scalar("u", 8)))
