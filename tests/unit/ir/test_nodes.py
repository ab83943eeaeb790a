"""Bytes of a store in the event."""

from __future__ import annotations

from fetchc.ir.fetch import Array, Bits, Char, Scalar, Store, Symbol, Text, Word, fixed_bytes


def test_sizes_in_the_event() -> None:
    sizes: dict[Store, int] = {
        Word(): 8,
        Symbol(): 8,
        Scalar("u", 8): 1,
        Scalar("s", 32): 4,
        Char(): 1,
        Bits(1, 0, 16): 2,
        Text(): 4,
        Array(Text(), 3): 12,
        Array(Scalar("x", 64), 64): 512,
    }
    assert {store: fixed_bytes(store) for store in sizes} == sizes
