"""The listing of a fetch."""

from __future__ import annotations

import pytest

from fetchc.ir.evaluate import listing
from fetchc.ir.fetch import (
    Absolute,
    Array,
    Bits,
    Comm,
    Deref,
    Fetch,
    Image,
    Register,
    Scalar,
    Text,
    Word,
)

DI = Register("di")


@pytest.mark.parametrize(
    ("fetch", "lines"),
    [
        (
            Fetch(Deref(Deref(DI, 8), 0), Text()),
            ["%di", "load 8 bytes at +8", "load string at +0"],
        ),
        (Fetch(DI, Scalar("s", 32)), ["%di", "store s32"]),
        (Fetch(Comm(), Text()), ["$comm", "store string"]),
        (Fetch(Deref(Image(0x4040), 0), Word()), ["image +0x4040", "load 8 bytes at +0"]),
        (
            Fetch(Deref(Absolute(64), -4, user=True), Array(Bits(3, 1, 8), 2)),
            ["address 0x40", "load 2 times 3 bits from bit 1 of 8 at user memory -4"],
        ),
    ],
)
def test_listing(fetch: Fetch, lines: list[str]) -> None:
    assert listing(fetch).splitlines() == lines
