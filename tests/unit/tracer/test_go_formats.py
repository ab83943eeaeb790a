"""Values in the forms that Go prints them in, from their parts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.tracer.display_values import (
    SPELLINGS,
    CutList,
    CutString,
    Nanoseconds,
    SymbolName,
    duration,
    printed,
    spelled,
)

if TYPE_CHECKING:
    from fetchc.tracer.events import Value

MONOTONIC = 1 << 63
YEAR_1 = datetime(1, 1, 1, tzinfo=UTC)
YEAR_1885 = datetime(1885, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("wall", "ext", "text"),
    [
        (0, 0, "0001-01-01T00:00:00Z"),
        (1, 0, "0001-01-01T00:00:00.000000001Z"),
        (500_000_000, 59, "0001-01-01T00:00:59.5Z"),
        (0, 315537897599, "9999-12-31T23:59:59Z"),
        (0, 315537897600, None),  # year 10000
        (0, -1, None),
        (10**9, 0, None),  # no number of nanoseconds
        (MONOTONIC, 12345, "1885-01-01T00:00:00Z"),  # ext is another clock's
        (MONOTONIC | 5 << 30 | 7, -1, "1885-01-01T00:00:05.000000007Z"),
    ],
)
def test_points_in_time(wall: int, ext: int, text: str | None) -> None:
    assert SPELLINGS["time"]({"wall": wall, "ext": ext}) == text


@given(st.integers(0, 1 << 33), st.integers(0, 999_999))
def test_a_point_in_time_is_what_python_says(seconds: int, microseconds: int) -> None:
    for since, wall, ext in (
        (YEAR_1, 1000 * microseconds, seconds),
        (YEAR_1885, MONOTONIC | seconds % (1 << 33) << 30 | 1000 * microseconds, 1),
    ):
        text = SPELLINGS["time"]({"wall": wall, "ext": ext})
        assert text is not None
        counted = seconds if since is YEAR_1 else seconds % (1 << 33)
        moment = since + timedelta(seconds=counted, microseconds=microseconds)
        assert datetime.fromisoformat(_of_micros(text)) == moment


def _of_micros(text: str) -> str:
    whole, _, fraction = text[:-1].partition(".")
    return f"{whole}.{fraction[:6].ljust(6, '0')}+00:00"


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1100, "1.1µs"),
        (2_200_000, "2.2ms"),
        (3_300_000_000, "3.3s"),
        (245_000_000_000, "4m5s"),
        (245_001_000_000, "4m5.001s"),
        (18_367_001_000_000, "5h6m7.001s"),
        (3_600_000_000_000, "1h0m0s"),
        (-1, "-1ns"),
        ((1 << 63) - 1, "2562047h47m16.854775807s"),
        (-(1 << 63), "-2562047h47m16.854775808s"),
    ],
)
def test_lengths_of_time(nanoseconds: int, text: str) -> None:
    # Source: Go, src/time/time_test.go (durationTests).
    assert duration(nanoseconds) == printed(Nanoseconds(nanoseconds)) == text


@given(st.binary(min_size=16, max_size=16), st.integers(0, 255), st.integers(0, 255))
def test_addresses_are_what_python_says(octets: bytes, holes: int, more: int) -> None:
    thinned = bytes(
        [0 if holes >> (at // 2) & 1 or more >> at % 8 & 1 else octets[at] for at in range(16)]
    )
    for held in (octets, thinned):
        address = IPv6Address(held)
        if address.ipv4_mapped is None:
            assert SPELLINGS["ip"]({"bytes": list(held)}) == address.compressed
        assert SPELLINGS["ip"]({"bytes": list(held[:4])}) == str(IPv4Address(held[:4]))


@pytest.mark.parametrize("held", [[], [1, 2, 3], [0] * 17, CutList([0] * 16, 20), None])
def test_what_is_no_address_is_none(held: Value) -> None:
    assert SPELLINGS["ip"]({"bytes": held}) is None


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"six": None, "zone": None}, "invalid IP"),
        ({"six": False, "zone": ""}, "1.2.3.4"),
        ({"six": True, "zone": ""}, "::ffff:1.2.3.4"),
        ({"six": True, "zone": "eth0"}, "::ffff:1.2.3.4%eth0"),
        ({"six": True, "zone": CutString("eth", 40)}, None),
        ({"z": 0, "z4": 8, "z6noz": 16}, "invalid IP"),
        ({"z": 8, "z4": 8, "z6noz": 16}, "1.2.3.4"),
        ({"z": 16, "z4": 8, "z6noz": 16}, "::ffff:1.2.3.4"),
        ({"z": 24, "z4": 8, "z6noz": 16}, None),
        ({"z": 8, "z4": 8, "z6noz": 8}, "1.2.3.4"),
    ],
)
def test_addresses_tell_their_kind(parts: dict[str, Value], text: str | None) -> None:
    words: dict[str, Value] = {"hi": 0, "lo": 0xFFFF01020304}
    assert SPELLINGS["addr"](words | parts) == text


def test_identifiers() -> None:
    text = "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert SPELLINGS["uuid"]({"bytes": list(range(16))}) == text
    assert SPELLINGS["uuid"]({"bytes": list(range(15))}) is None


def test_a_part_that_cannot_be_read_is_a_fault_of_the_whole() -> None:
    def missing(_: bytes, faults: list[str]) -> Value:
        faults.append("t.ext")
        return None

    faults: list[str] = []
    make = spelled([("wall", lambda *_: 0), ("ext", missing)], [], "time", "t")
    assert make(b"", faults) is None
    assert faults == ["t"]


def test_what_is_no_value_of_the_form_is_shown_by_its_parts() -> None:
    make = spelled([("wall", lambda *_: 0), ("ext", lambda *_: -1)], [], "time", "t")
    assert make(b"", []) == {"wall": 0, "ext": -1}
    single = spelled([("bytes", lambda *_: [1, 2])], [], "ip", "ip")
    assert single(b"", []) == [1, 2]
    shown = spelled([("bytes", lambda *_: [1, 2, 3, 4])], [], "ip", "ip")(b"", [])
    assert isinstance(shown, SymbolName)
    assert shown == "1.2.3.4"
