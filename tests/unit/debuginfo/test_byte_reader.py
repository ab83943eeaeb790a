"""The byte reader: values, ends, and that a failed read does not advance."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.debuginfo.byte_reader import Cursor, read_sleb, read_uleb
from fetchc.diag.diagnostic import DebugInfoError
from tests.support.assembler import sleb, uleb


def cursor(data: bytes, offset: int = 0, end: int | None = None, little: bool = True) -> Cursor:
    return Cursor("file", ".s", data, offset, end, little)


def test_numbers_of_both_orders() -> None:
    data = bytes(range(1, 17))
    little, big = cursor(data), cursor(data, little=False)
    assert [little.u8(), little.u16(), little.u32(), little.u64()] == [
        1,
        0x0302,
        0x07060504,
        0x0F0E0D0C0B0A0908,
    ]
    assert [big.u8(), big.u16(), big.u32(), big.u64()] == [
        1,
        0x0203,
        0x04050607,
        0x08090A0B0C0D0E0F,
    ]
    assert cursor(data).unsigned(3) == 0x030201
    assert cursor(data, little=False).unsigned(16) == int.from_bytes(data, "big")
    assert cursor(b"\xfe\xff").signed(2) == -2
    assert cursor(data).address(4) == 0x04030201


@given(st.integers(0, (1 << 64) - 1), st.integers(0, 12))
def test_unsigned_leb128(value: int, width: int) -> None:
    data = uleb(value, width)
    assert cursor(data).uleb() == value
    assert read_uleb(data, 0) == (value, len(data))


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_signed_leb128(value: int) -> None:
    data = sleb(value)
    assert cursor(data).sleb() == value
    assert read_sleb(data, 0) == (value, len(data))


READS: list[tuple[Callable[[Cursor], object], bytes, str]] = [
    (lambda c: c.u8(), b"", "truncated byte"),
    (lambda c: c.u32(), b"abc", "truncated 4-byte number"),
    (lambda c: c.uleb(), b"\x80\x80", "truncated unsigned LEB128 number"),
    (lambda c: c.sleb(), b"\xff" * 5, "truncated signed LEB128 number"),
    (lambda c: c.uleb(), b"\x80" * 1000 + b"\x01", "unsigned LEB128 number too long"),
    (lambda c: c.take(5), b"abcd", "truncated block of 5 bytes"),
    (lambda c: c.skip(5), b"abcd", "truncated block of 5 bytes"),
    (lambda c: c.skip(-1), b"abcd", "truncated block of -1 bytes"),
    (lambda c: c.cstring(), b"abcd" * 100, "string without an end"),
    (lambda c: c.initial_length(), b"\xf5\xff\xff\xff", "reserved unit length 0xfffffff5"),
    (lambda c: c.initial_length(), b"\x05\0\0\0abcd", "a length of 0x5 bytes runs past"),
]


@pytest.mark.parametrize(("read", "data", "message"), READS)
def test_a_failed_read_is_located_and_does_not_advance(
    read: Callable[[Cursor], object], data: bytes, message: str
) -> None:
    reader = cursor(b"?" + data, 1)
    with pytest.raises(DebugInfoError) as raised:
        read(reader)
    assert str(raised.value).startswith(f"file: .s+0x1: {message}")
    assert raised.value.code == "FC0904"
    assert reader.offset == 1


def test_the_end_is_a_wall() -> None:
    reader = cursor(b"abcdef", 2, 4)
    assert reader.remaining() == 2
    assert not reader.at_end()
    assert reader.take(2) == b"cd"
    assert reader.at_end()
    with pytest.raises(DebugInfoError):
        reader.u8()
    for offset, end in ((7, None), (-1, None), (3, 2), (0, 9)):
        with pytest.raises(DebugInfoError, match="outside the section"):
            cursor(b"abcdef", offset, end)


def test_strings() -> None:
    reader = cursor(b"one\0" + b"x" * 500 + b"\0\0")
    assert [reader.cstring(), reader.cstring(), reader.cstring()] == [b"one", b"x" * 500, b""]


def test_initial_lengths() -> None:
    short = cursor(b"\xff\xff\xff\xff\x00")
    with pytest.raises(DebugInfoError, match=r"\.s\+0x4: truncated 8-byte number"):
        short.initial_length()
    assert short.offset == 0
    reader = cursor(b"\x02\0\0\0ab")
    assert reader.initial_length() == (2, 4)
    assert reader.offset == 4
    assert cursor(b"\xff" * 4 + b"\x01" + bytes(7) + b"a").initial_length() == (1, 8)
