"""Values in forms of their own, from the numbers of their members."""

from __future__ import annotations

import struct
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.ir.fetch import Decode
from fetchc.tracer.display_values import NOTATIONS, SymbolName, printed
from fetchc.tracer.value_shapes import Leaf, NotationShape
from tests.support.records import read

LONG = Decode("integer", 64, True)
TICKS = 10**7
LAST = 3155378975999999999  # ticks of DateTime.MaxValue


@pytest.mark.parametrize(
    ("notation", "parts", "text"),
    [
        ("decimal", {"flags": 0x20000, "hi": 0, "lo": 1250, "mid": 0}, "12.50"),
        ("decimal", {"_flags": -(1 << 31) | 28 << 16, "_hi32": 0, "_lo64": 1},
         "-0.0000000000000000000000000001"),
        ("decimal", {"flags": 0, "hi": -1, "lo": -1, "mid": -1}, "79228162514264337593543950335"),
        ("decimal", {"flags": 1, "hi": 0, "lo": 0, "mid": 0}, None),
        ("decimal", {"flags": 29 << 16, "hi": 0, "lo": 0, "mid": 0}, None),
        ("decimal", {"flags": 0, "hi": 0}, None),
        ("date-time", {"_dateData": 0}, "0001-01-01T00:00:00"),
        ("date-time", {"_dateData": LAST}, "9999-12-31T23:59:59.9999999"),
        ("date-time", {"_dateData": LAST + 1}, None),
        ("date-time", {"_dateData": 1 << 62 | TICKS}, "0001-01-01T00:00:01Z"),
        ("date-time", {"_dateData": (1 << 63 | TICKS) - (1 << 64)}, "0001-01-01T00:00:01"),
        ("date-time-offset", {"_dateData": 3600 * TICKS, "_offsetMinutes": -30},
         "0001-01-01T00:30:00-00:30"),
        ("date-time-offset", {"_dateData": 0, "_offsetMinutes": -30}, None),
        ("date-time-offset", {"_dateData": 0, "_offsetMinutes": 841}, None),
        ("time-span", {"_ticks": -(1 << 63)}, "-10675199.02:48:05.4775808"),
        ("time-span", {"_ticks": 1}, "00:00:00.0000001"),
        ("date", {"_dayNumber": 3652058}, "9999-12-31"),
        ("date", {"_dayNumber": -1}, None),
        ("date", {"_dayNumber": 3652059}, None),
        ("time", {"_ticks": 864 * 10**9 - 1}, "23:59:59.9999999"),
        ("time", {"_ticks": 864 * 10**9}, None),
    ],
)  # fmt: skip
def test_forms(notation: str, parts: dict[str, int], text: str | None) -> None:
    assert NOTATIONS[notation](parts) == text


@given(st.integers(0, LAST))
def test_a_moment_is_what_python_says(ticks: int) -> None:
    made = datetime(1, 1, 1) + timedelta(microseconds=ticks // 10)
    shown = NOTATIONS["date-time"]({"_dateData": ticks})
    assert shown is not None
    assert datetime.fromisoformat(shown[:26]) == made


@given(st.integers(0, 2**96 - 1), st.integers(0, 28), st.booleans())
def test_a_decimal_is_what_python_says(number: int, scale: int, negative: bool) -> None:
    flags = scale << 16 | negative << 31
    parts = {"_flags": flags, "_hi32": number >> 64, "_lo64": number & 2**64 - 1}
    made = Decimal((int(negative), tuple(map(int, str(number))), -scale))
    shown = NOTATIONS["decimal"](parts)
    assert shown is not None
    assert Decimal(shown) == made
    assert Decimal(shown).as_tuple().exponent == -scale


@given(st.uuids())
def test_a_guid_is_what_python_says(number: UUID) -> None:
    first, second, third, *rest = struct.unpack("<ihh8B", number.bytes_le)
    parts = {"_a": first, "_b": second, "_c": third}
    parts.update({f"_{letter}": byte for letter, byte in zip("defghijk", rest, strict=True)})
    assert NOTATIONS["guid"](parts) == str(number)


def test_what_is_no_such_value_is_shown_by_its_members() -> None:
    shape = NotationShape("date-time", (("_dateData", Leaf("v", LONG)),))
    value, faults = read(shape, [("v", "q")], [5 * TICKS])
    assert (value, faults) == ("0001-01-01T00:00:05", ())
    assert isinstance(value, SymbolName)
    assert printed(value) == "0001-01-01T00:00:05"  # without quotes
    assert read(shape, [("v", "q")], [LAST + 7]) == ({"_dateData": LAST + 7}, ())
