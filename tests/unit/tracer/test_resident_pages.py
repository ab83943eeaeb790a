"""Memory of programs that a probe of the kernel reads: what was in RAM, and what was not."""

from __future__ import annotations

import pytest

import fetchc
from fetchc.ir.fetch import Decode
from fetchc.tracer.decode import reader
from fetchc.tracer.display_values import CutString
from fetchc.tracer.events import EventValue, Plan
from fetchc.tracer.value_shapes import Guard, Leaf, NumbersShape, RangeShape, Shape, StringShape
from tests.support.kernel_lab import chosen
from tests.support.records import NEAR, format_of, read, record

INT = Decode("integer", 32, True)
# Texts of the first eight bytes, of those that end with the first one, of the last eight.
GUARD = (Guard("p", read_checks=(("a", 0), ("b", -7), ("c", 16))),)
FIELDS = [
    ("v", "24s"),
    ("a", "text"),
    ("b", "text"),
    ("c", "text"),
    ("p", "Q"),
    ("h", "i"),
    ("z", "text"),
]
RAW = b"a text of 24 characters!"
WHOLE = NumbersShape("v", INT, 6, 4, 0, GUARD)
TEXT = RangeShape(StringShape("v", 24, "text", 0, None, None, GUARD), 0, 0, Leaf("h", INT), None)
EDGE = NEAR + 4096 - 10


def got(shape: Shape, resident: str, pointer: int = NEAR, high: int = 24) -> object:
    """The value where the strings of ``resident`` are there; ``fault`` where it is none."""
    texts = [b"0x1" if name in resident else None for name in "abc"]
    value, faults = read(shape, FIELDS, [RAW, *texts, pointer, high, b"comm"])
    assert faults == (("v",) if value is None else ())
    return "fault" if value is None else value


@pytest.mark.parametrize("resident", ["abc", "a", "c", "ac"])
def test_in_one_page_one_text_is_enough(resident: str) -> None:
    assert got(TEXT, resident) == RAW.decode()
    assert got(WHOLE, resident) != "fault"


def test_what_was_not_there_is_a_fault() -> None:
    assert got(TEXT, "") == "fault"
    assert got(WHOLE, "") == "fault"


def test_of_two_pages_each_was_there() -> None:
    assert got(TEXT, "abc", EDGE) == RAW.decode()
    assert got(TEXT, "bc", EDGE) == RAW.decode()
    assert got(TEXT, "c", EDGE) == "fault"
    assert got(WHOLE, "c", EDGE) == "fault"
    assert got(WHOLE, "a", EDGE) == "fault"


def test_what_lies_behind_the_page_is_left_out() -> None:
    cut = got(TEXT, "a", EDGE)
    assert isinstance(cut, CutString)
    assert (cut, cut.length) == (RAW[:10].decode(), 24)
    assert got(TEXT, "a", EDGE, 10) == RAW[:10].decode()
    assert not isinstance(got(TEXT, "a", EDGE, 10), CutString)


def test_at_the_very_end_of_a_page() -> None:
    # The first eight bytes are in both pages: those that end with the first one tell.
    last = NEAR + 4096 - 3
    assert got(TEXT, "b", last, 3) == RAW[:3].decode()
    assert got(TEXT, "", last, 3) == "fault"


def test_a_number_of_the_object_goes_by_its_texts() -> None:
    leaf = Leaf("v", INT, 8, 4, guards=(Guard("p", moved=8, read_checks=GUARD[0].read_checks),))
    assert got(leaf, "a") == int.from_bytes(RAW[8:12], "little")
    assert got(leaf, "") == "fault"
    # Of several numbers that are read at once, too.
    labels = [EventValue(name, leaf) for name in "vw"]
    plan = Plan("g", "ev", "/bin/x", "f", "entry", 0, ("",), tuple(labels))
    data = record(FIELDS, [RAW, None, None, None, NEAR, 0, b"comm"])
    values, faults = reader(plan, format_of(FIELDS))(data)
    assert (values, faults) == ({"v": None, "w": None}, ("v", "w"))


def test_the_name_of_a_symbol_has_no_nul() -> None:
    # Its length stays the room that was left; it ends where the next text begins.
    fields = [("s", "text"), ("z", "text")]
    data = bytearray(record(fields, [b"0x10", b"comm"]))
    start = int.from_bytes(data[16:18], "little")
    del data[start + 4]
    data[18:20] = (60).to_bytes(2, "little")
    data[20:22] = (start + 4).to_bytes(2, "little")
    leaf = Leaf("s", Decode("text"))
    plan = Plan("g", "ev", "/bin/x", "f", "entry", 0, ("",), (EventValue("s", leaf),))
    assert reader(plan, format_of(fields))(bytes(data)) == ({"s": "0x10"}, ())
    data[20:22] = start.to_bytes(2, "little")  # nothing was written
    assert reader(plan, format_of(fields))(bytes(data)) == ({"s": None}, ("s",))


def _fetched(release: str, function: str, *wanted: str) -> list[str]:
    kernel = next((one for one in chosen() if one.why_not() is None), None)
    if kernel is None:
        pytest.skip("no kernel of the lab is here")
    plan = fetchc.open(str(kernel.image)).probe(function, kernel=release).plan(wanted, "g")
    return plan.definitions[0].split(" ")[2:]


def test_what_is_fetched_beside_the_bytes() -> None:
    assert _fetched("6.18", "ksys_write", "buf[0:count]") == [
        "buf_0_count=+0(%si):x64[32]",
        "fetchc_1=+0(%si):symstr",
        "fetchc_2=-7(%si):symstr",
        "fetchc_3=+248(%si):symstr",
        "fetchc_4=%si",
        "fetchc_5=%dx:u64",
        "fetchc_comm=$comm",
    ]


def test_a_number_by_itself_is_reported_alike() -> None:
    assert _fetched("6.18", "ksys_write", "buf[2]", "count") == [
        "buf_2=+u2(%si):u8",
        "fetchc_1=%si",
        "fetchc_2=+2(%si):symstr",
        "fetchc_3=-5(%si):symstr",
        "count=%dx:u64",
        "fetchc_comm=$comm",
    ]
    # Of the kernel's own memory a pointer tells, and a string tells by itself.
    assert not any("symstr" in one for one in _fetched("6.18", "vfs_write", "file->f_flags", "buf"))
    assert _fetched("6.1", "ksys_write", "buf[2]")[:2] == ["buf_2=+u2(%si):u8", "fetchc_1=%si"]


def test_a_kernel_that_cannot_tell_is_refused() -> None:
    with pytest.raises(fetchc.CompileError) as refused:
        _fetched("6.1", "ksys_write", "buf[0:count]")
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "FC0506"
    assert diagnostic.notes == ("Linux 6.2 was the first (`symstr`)",)
