"""Ranges by bounds that are in the record: as many elements as they say, and never others."""

from __future__ import annotations

import pytest

from fetchc.ir.fetch import Decode
from fetchc.tracer.display_values import CutList, CutString
from fetchc.tracer.value_shapes import (
    DifferenceShape,
    ElementCountShape,
    Guard,
    Leaf,
    ListShape,
    NumbersShape,
    RangeShape,
    StringShape,
)
from tests.support.records import NEAR, THREAD, read

INT = Decode("integer", 32, True)
WORD = Decode("integer", 64)
GUARD = (Guard("p"),)
FIELDS = [("l", "i"), ("h", "i"), ("b", "Q"), ("p", "Q"), ("v", "24s")]
LOW, HIGH, BOUND = Leaf("l", INT), Leaf("h", INT), Leaf("b", WORD)


def bytes_of(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4, "little") for number in numbers)


SIX = bytes_of(10, 11, 12, 13, 14, 15)
LETTERS = b"a text of 24 characters!"


def row(low: Leaf | int = 0, start: int = 0, bound: Leaf | int | None = None) -> RangeShape:
    return RangeShape(NumbersShape("v", INT, 6, 4, 0, GUARD), start, low, HIGH, bound)


def text(kind: str = "text", low: Leaf | int = 0) -> RangeShape:
    return RangeShape(StringShape("v", 24, kind, 0, None, None, GUARD), 0, low, HIGH, None)


def got(
    shape: RangeShape, low: int, high: int, bound: int = 0, pointer: int = NEAR, raw: bytes = SIX
) -> object:
    """The value; ``fault`` where it could not be read."""
    value, faults = read(shape, FIELDS, [low, high, bound, pointer, raw])
    assert faults == (("v",) if value is None else ())
    return "fault" if value is None else value


@pytest.mark.parametrize(
    ("high", "value"),
    [(0, []), (1, [10]), (6, [10, 11, 12, 13, 14, 15]), (-1, "fault"), (-(2**31), "fault")],
)
def test_as_many_as_the_end_says(high: int, value: object) -> None:
    found = got(row(), 0, high)
    assert found == value
    assert not isinstance(found, CutList)


def test_what_was_not_fetched_is_marked() -> None:
    found = got(row(), 0, 7)
    assert isinstance(found, CutList)
    assert (found, found.length) == ([10, 11, 12, 13, 14, 15], 7)
    behind = got(row(LOW), 6, 9)
    assert isinstance(behind, CutList)
    assert (behind, behind.length) == ([], 3)


@pytest.mark.parametrize(
    ("low", "high", "value"),
    [(2, 4, [12, 13]), (4, 4, []), (5, 6, [15]), (4, 3, "fault"), (-1, 3, "fault")],
)
def test_from_an_index_on(low: int, high: int, value: object) -> None:
    assert got(row(LOW), low, high) == value


def test_the_first_element_may_be_another_one() -> None:
    assert got(row(3, 3), 0, 5) == [10, 11]
    assert got(row(3, 3), 0, 2) == "fault"  # the end is before it
    assert got(row(-2, -2), 0, 1) == [10, 11, 12]


@pytest.mark.parametrize(("bound", "value"), [(3, [10, 11, 12]), (2, "fault"), (0, "fault")])
def test_no_element_behind_the_last(bound: int, value: object) -> None:
    assert got(row(0, 0, BOUND), 0, 3, bound) == value
    if bound:
        assert got(row(0, 0, bound), 0, 3) == value


def test_lengths_that_no_program_has() -> None:
    huge = RangeShape(text().elements, 0, 0, BOUND, None)
    assert got(huge, 0, 0, 2**64 - 1, NEAR, LETTERS) == "fault"
    assert got(huge, 0, 0, 2**56, NEAR, LETTERS) == "fault"
    cut = got(huge, 0, 0, 2**56 - 1, NEAR, LETTERS)
    assert isinstance(cut, CutString)
    assert cut.length == 2**56 - 1


def test_a_pointer_that_leads_nowhere() -> None:
    assert got(row(), 0, 3, 0, 0) == "fault"
    assert got(row(), 0, 3, 0, 8) == "fault"
    assert got(row(), 0, 0, 0, 0) == []  # and nothing was to be read
    assert got(text(), 0, 0, 0, 0, LETTERS) == ""


def test_a_bound_that_could_not_be_read_is_one_fault() -> None:
    low, high = [Leaf(name, INT, guards=(Guard("p"),)) for name in ("l", "h")]
    shape = RangeShape(row().elements, 0, low, high, None)
    assert read(shape, FIELDS, [0, 3, 0, 8, SIX]) == (None, ("v",))


def test_texts_hold_any_byte_and_end_at_their_length() -> None:
    assert got(text(), 0, 6, 0, NEAR, LETTERS) == "a text"
    assert got(text(low=LOW), 2, 6, 0, NEAR, LETTERS) == "text"
    raw = b"\0\xff\xc3\xa9".ljust(24, b"x")
    assert got(text(), 0, 4, 0, NEAR, raw) == "\0\udcff\u00e9"
    cut = got(text(), 0, 25, 0, NEAR, LETTERS[:-1] + b"\xc3")
    assert isinstance(cut, CutString)
    assert (cut, cut.length) == (LETTERS[:-1].decode(), 25)  # without half a character
    behind = got(text(low=LOW), 30, 40, 0, NEAR, LETTERS)
    assert isinstance(behind, CutString)
    assert (behind, behind.length) == ("", 10)


@pytest.mark.parametrize(("kind", "codec"), [("utf-16", "utf-16-le"), ("utf-32", "utf-32-le")])
def test_wide_characters(kind: str, codec: str) -> None:
    raw = "äbc€".encode(codec).ljust(24, b"\0")
    assert got(text(kind), 0, 4, 0, NEAR, raw) == "äbc€"
    assert got(text(kind, LOW), 1, 3, 0, NEAR, raw) == "bc"
    width = {"utf-16": 2, "utf-32": 4}[kind]
    assert isinstance(got(text(kind), 0, 24 // width + 1, 0, NEAR, raw), CutString)
    assert not isinstance(got(text(kind), 0, 24 // width, 0, NEAR, raw), CutString)


def test_a_unit_that_is_no_character() -> None:
    raw = (0x110000).to_bytes(4, "little").ljust(24, b"\0")
    assert got(text("utf-32"), 0, 1, 0, NEAR, raw) == "\ufffd"


def test_elements_with_faults_go_by_the_index_in_the_range() -> None:
    each = [Leaf("v", INT, 4 * i, 4, guards=(Guard("b"),) if i == 2 else ()) for i in range(4)]
    shape = RangeShape(ListShape(tuple(each), GUARD), 0, LOW, HIGH, None)
    assert read(shape, FIELDS, [1, 4, 8, NEAR, SIX]) == ([11, None, 13], ("v[1]",))
    assert read(shape, FIELDS, [0, 2, 8, NEAR, SIX]) == ([10, 11], ())
    cut, _ = read(shape, FIELDS, [3, 9, NEAR, NEAR, SIX])
    assert isinstance(cut, CutList)
    assert (cut, cut.length) == ([13], 6)


def test_bounds_that_are_computed() -> None:
    # The size of a vector, and one less.
    between = ElementCountShape(Leaf("p", WORD), Leaf("b", WORD), 4)
    shape = RangeShape(row().elements, 0, DifferenceShape(LOW, 1), between, None)
    assert read(shape, FIELDS, [2, 0, NEAR + 16, NEAR, SIX]) == ([11, 12, 13], ())
    assert read(shape, FIELDS, [2, 0, NEAR + 17, NEAR, SIX]) == (None, ("v",))


class Pages:
    """What of a program is there, by the page; ``asked`` are the addresses in question."""

    def __init__(self, *there: bool | None) -> None:
        self.there = there
        self.asked: list[int] = []

    def __call__(self, thread: int, address: int) -> bool | None:
        assert thread == THREAD
        self.asked.append(address)
        return self.there[(address - NEAR) // 4096]


# Twelve bytes are before the second page.
EDGE = NEAR + 4096 - 12


@pytest.mark.parametrize(
    ("there", "value", "cut"),
    [
        (True, "before it   \0\0\0\0", False),
        (False, None, False),
        (None, "before it   ", True),
    ],
)
def test_zeros_behind_the_end_of_a_page(there: bool | None, value: str | None, cut: bool) -> None:
    pages = Pages(True, there)
    raw = b"before it   ".ljust(24, b"\0")
    found, faults = read(text(), FIELDS, [0, 16, 0, EDGE, raw], pages)
    assert (found, faults) == (value, () if value is not None else ("v",))
    assert isinstance(found, CutString) == cut
    assert pages.asked == [NEAR + 4096]


def test_zeros_that_are_not_shown_are_not_asked_for() -> None:
    pages = Pages(True, False)
    raw = b"before it   ".ljust(24, b"\0")
    assert read(text(), FIELDS, [0, 12, 0, EDGE, raw], pages) == ("before it   ", ())
    assert pages.asked == []


def test_numbers_behind_the_end_of_a_page() -> None:
    raw = bytes_of(10, 11, 12, 0, 0, 0)
    assert read(row(), FIELDS, [0, 5, 0, EDGE, raw], Pages(True, False)) == (None, ("v",))
    assert read(row(), FIELDS, [0, 3, 0, EDGE, raw], Pages(True, False)) == ([10, 11, 12], ())
    found, faults = read(row(), FIELDS, [0, 5, 0, EDGE, raw], Pages(True, None))
    assert isinstance(found, CutList)
    assert (found, found.length, faults) == ([10, 11, 12], 5, ())
    # A number that lies in both pages is left out with the second one.
    found, _ = read(row(), FIELDS, [0, 5, 0, EDGE + 2, raw[:10] + bytes(14)], Pages(True, None))
    assert found == [10, 11]


def test_zeros_alone() -> None:
    raw = bytes(24)
    assert read(row(), FIELDS, [0, 2, 0, NEAR, raw], Pages(True)) == ([0, 0], ())
    assert read(row(), FIELDS, [0, 2, 0, NEAR, raw], Pages(False)) == (None, ("v",))
    assert read(row(), FIELDS, [0, 2, 0, NEAR, raw], Pages(None)) == ([0, 0], ())


@pytest.mark.parametrize("kind", ["utf-16", "utf-32"])
def test_wide_texts_end_at_a_unit_that_is_none(kind: str) -> None:
    width = {"utf-16": 2, "utf-32": 4}[kind]
    shape = StringShape("v", 24, kind, 0, None, None, (Guard("p", empty=True),))

    def shown(text: str, pointer: int = NEAR, pages: Pages | None = None) -> object:
        raw = text.encode(f"{kind}-le")[:24].ljust(24, b"\0")
        value, faults = read(shape, FIELDS, [0, 0, 0, pointer, raw], pages)
        assert value is None or faults == ()
        return faults if value is None else value

    assert shown("aĀ€") == "aĀ€"  # bytes that are 0 are no end
    assert shown("") == ""
    assert shown("x", 0) == ()  # NULL is no text, and no fault
    assert shown("x", 8) == ("v",)
    full = shown("x" * (24 // width))
    assert isinstance(full, CutString)
    assert (full, full.length) == ("x" * (24 // width), None)
    # Zeros that may be memory that was not there end no text.
    inside = "x" * (12 // width)
    assert shown(inside, EDGE, Pages(True, True)) == inside
    assert shown(inside, EDGE, Pages(True, False)) == ("v",)
    cut = shown(inside, EDGE, Pages(True, None))
    assert isinstance(cut, CutString)
    assert cut == inside
