"""What the reader makes of the elements that a walk recorded."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from fetchc.ir.steps import CHANGED, ENDED, HEADER, UNREAD
from fetchc.tracer.display_values import Unavailable, printed
from fetchc.tracer.list_values import looked_up, walked

if TYPE_CHECKING:
    from fetchc.tracer.events import Value

AT, STRIDE, BAD = HEADER, 16, 99


def element(data: bytes, faults: list[str]) -> Value:
    """A number; one of them is a fault. The record's header is before it."""
    assert data[:HEADER] == b"h" * HEADER
    (number,) = struct.unpack_from("<i", data, HEADER + 4)
    if number == BAD:
        faults.append(".x")
        return None
    return int(number)


def record(numbers: list[int], flags: int, whole: int) -> bytes:
    place = HEADER + 24
    words = struct.pack("<4HQQ", place, STRIDE, len(numbers), flags, whole, 0)
    elements = [struct.pack("<iiq", -1, number, 0) for number in numbers]
    return b"h" * HEADER + words + b"".join(elements)


@pytest.mark.parametrize(
    ("numbers", "flags", "whole", "counted", "text", "faults"),
    [
        ([], ENDED, 0, True, "[]", []),
        ([1, 2], ENDED, 2, True, "[1, 2]", []),
        ([1, 2], 0, 17, True, "[1, 2, …(of 17)]", []),
        ([1, 2], 0, 2, True, "[1, 2]", []),
        ([1], UNREAD, 2, True, "[1, (fault)]", ["v[1]"]),
        ([1, 2], ENDED, 5, False, "[1, 2, …(of 5)]", []),
        ([1, 2], 0, 4096, False, "[1, 2, …(of 4096 or more)]", []),
        ([1, 2], ENDED | CHANGED, 2, True, "[1, 2, (changed meanwhile)]", []),
        ([1, 2], ENDED, 3, True, "[1, 2, …(of 3)(changed meanwhile)]", []),
        ([1], UNREAD, 1, False, "[1, (fault), …(of 1 or more)]", ["v[1]"]),
        ([1], UNREAD, 7, True, "[1, (fault), …(of 7)]", ["v[1]"]),
        ([1], UNREAD, 7, False, "[1, …(of 7 or more)]", ["v[7]"]),
        ([], UNREAD, 0, False, "(fault)", ["v"]),
        ([], ENDED, (1 << 64) - 3, True, "(fault)", ["v"]),
        ([1, BAD, 3], ENDED, 3, True, "[1, null, 3]", ["v[1].x"]),
    ],
)
def test_a_list(
    numbers: list[int], flags: int, whole: int, counted: bool, text: str, faults: list[str]
) -> None:
    found: list[str] = []
    value = walked(AT, element, counted, "v")(record(numbers, flags, whole), found)
    assert (printed(value, found, "v"), found) == (text, faults)


@pytest.mark.parametrize(
    ("numbers", "flags", "value", "faults"),
    [
        ([7], ENDED, 7, []),
        ([], ENDED, None, []),
        ([7], ENDED | CHANGED, None, ["v"]),
        ([], UNREAD, None, ["v"]),
        ([], 0, Unavailable("the walk ended before the key was found"), []),
        ([BAD], ENDED, None, ["v.x"]),
    ],
)
def test_what_was_looked_up(
    numbers: list[int], flags: int, value: Value, faults: list[str]
) -> None:
    found: list[str] = []
    assert looked_up(AT, element, "v")(record(numbers, flags, 3), found) == value
    assert found == faults
