"""Bytes in, values out."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.ir.fetch import Decode
from fetchc.tracer.decode import reader
from fetchc.tracer.display_values import (
    CodeAddress,
    CutList,
    CutString,
    Hexadecimal,
    SymbolName,
    printed,
)
from fetchc.tracer.events import EventValue, Plan
from fetchc.tracer.number_values import float_value
from fetchc.tracer.value_shapes import (
    ElementCountShape,
    Guard,
    Leaf,
    ListShape,
    MultiArrayShape,
    NumbersShape,
    OptionalShape,
    SequenceShape,
    Shape,
    StringShape,
    StructShape,
)
from tests.support.records import COMM, NEAR, THREAD, format_of, read, record

INT = Decode("integer", 32, True)
WORD = Decode("integer", 64, True)
COLOUR = Decode("enum", 32, False, None, (("RED", 0), ("GREEN", 5), ("ALSO_RED", 0)))

SETS = (("None", 0), ("Read", 1), ("Write", 2), ("Both", 3), ("Run", 4))
RIGHTS = Decode("enum", 8, False, None, SETS, None, True)

BITS = Decode(
    "enum", 32, False, None, (("READ", 1), ("WRITE", 2), ("BOTH", 3), ("RUN", 4), ("LINK", 8))
)


@pytest.mark.parametrize(
    ("decode", "code", "raw", "value"),
    [
        (INT, "i", -5, -5),
        (Decode("integer", 64), "Q", 2**64 - 1, 2**64 - 1),
        (Decode("integer", 8, True), "B", 0xFF, -1),
        (Decode("integer", 5, True), "I", 0b10000, -16),  # bits, which the kernel gives unsigned
        (Decode("integer", 5), "I", 0b10000, 16),
        (Decode("integer", 33, True), "Q", 2**33 - 1, -1),
        (Decode("integer", 16, True), "Q", 0xFFFF_8000, -32768),  # the rest of a register
        (Decode("bool", 8), "B", 1, True),
        (Decode("bool", 1), "B", 0, False),
        (Decode("char", 8, True), "B", 0x41, "A"),
        (Decode("char", 8, True), "B", 0xC3, "\udcc3"),
        (Decode("char", 8), "B", 0, "\0"),
        (COLOUR, "I", 5, {"name": "GREEN", "value": 5}),
        (COLOUR, "I", 0, {"name": "RED", "value": 0}),
        (COLOUR, "I", 7, {"name": None, "value": 7}),
        (Decode("enum", 3, True, None, (("LEFT", -2),)), "B", 6, {"name": "LEFT", "value": -2}),
        (Decode("char", 16), "H", 0x20AC, "€"),
        (Decode("char", 32), "I", 0x1F600, "😀"),
        (Decode("char", 32), "I", 0x110000, 0x110000),
        (RIGHTS, "B", 0, {"name": "None", "value": 0}),
        (RIGHTS, "B", 5, {"name": "Read, Run", "value": 5}),
        (RIGHTS, "B", 7, {"name": "Both, Run", "value": 7}),  # the greatest that fit
        (RIGHTS, "B", 9, {"name": None, "value": 9}),
        (BITS, "I", 4, {"name": "RUN", "value": 4}),
        (BITS, "I", 5, {"name": "READ|RUN", "value": 5}),
        (BITS, "I", 11, {"name": "BOTH|LINK", "value": 11}),
        (BITS, "I", 16, {"name": None, "value": 16}),
        (BITS, "I", 0, {"name": None, "value": 0}),
        (
            Decode("enum", 32, False, None, (("A", 1), ("B", 2), ("C", 4), ("D", 9))),
            "I",
            3,
            {"name": None, "value": 3},
        ),  # no bits: 9 is none, and no mask of others
        (
            Decode("enum", 32, False, None, (("ONE", 1), ("TWO", 2))),
            "I",
            3,
            {"name": None, "value": 3},
        ),
        (Decode("pointer", 64), "Q", NEAR, NEAR),
        (Decode("pointer", 64), "Q", 0, 0),
        (Decode("reference", 64), "Q", NEAR, NEAR),
        (Decode("reference", 64), "Q", 0, None),  # null of .NET
        (Decode("float", 64), "Q", struct.unpack("=Q", struct.pack("=d", -0.1))[0], -0.1),
        (Decode("float", 32), "I", struct.unpack("=I", struct.pack("=f", 0.5))[0], 0.5),
        (Decode("float", 32), "Q", 0x1234_0000_3F00_0000, 0.5),  # half a register
        (Decode("float", 64), "Q", 0x7FF0 << 48, "Infinity"),
        (Decode("float", 64), "Q", 0xFFF0 << 48, "-Infinity"),
        (Decode("float", 32), "I", 0x7FC00000, "NaN"),
    ],
)
def test_numbers(decode: Decode, code: str, raw: int, value: object) -> None:
    got, faults = read(Leaf("v", decode), [("v", code)], [raw])
    assert got == value
    assert type(got) is type(value) or not isinstance(value, bool)
    assert faults == ()
    json.dumps(got, allow_nan=False)


def test_bits_out_of_the_middle_of_bytes() -> None:
    leaf = Leaf("v", Decode("integer", 5, True), offset=2, size=2, shift=3)
    data = bytes([0xFF, 0xFF, *(0b1_0000 << 3).to_bytes(2, "little")])
    assert read(leaf, [("v", "4s")], [data]) == (-16, ())


GUARDED = Leaf("v", INT, guards=(Guard("p", 0, 8), Guard("q", 0, 16)))
GUARD_FIELDS = [("v", "i"), ("p", "Q"), ("q", "Q")]


@pytest.mark.parametrize(
    ("p", "q", "there"),
    [
        (NEAR, NEAR, True),
        (0, NEAR, False),  # then q is stale, however good it looks
        (NEAR, 0, False),
        (NEAR, 0xFF0, False),
        (NEAR, 0x4141_4141_4141_4141, False),
        (NEAR, 0xFFFF_8880_0000_0000, False),
        (NEAR, 2**64 - 8, False),
        (0xFFF, NEAR, False),
        (0x1000, 0x1000, True),
    ],
)
def test_a_pointer_that_leads_nowhere_is_a_fault(p: int, q: int, there: bool) -> None:
    got, faults = read(GUARDED, GUARD_FIELDS, [99, p, q])
    assert (got, faults) == ((99, ()) if there else (None, ("v",)))


@pytest.mark.parametrize(
    ("raw", "mapped", "value"),
    [(0, True, 0), (0, False, None), (0, None, 0), (7, False, 7)],
)
def test_a_zero_is_looked_up(raw: int, mapped: bool | None, value: int | None) -> None:
    asked: list[tuple[int, int]] = []

    def look(thread: int, address: int) -> bool | None:
        asked.append((thread, address))
        return mapped

    got, faults = read(GUARDED, GUARD_FIELDS, [raw, NEAR, NEAR + 0x100], look)
    assert (got, faults) == (value, () if value is not None else ("v",))
    assert asked == ([(THREAD, NEAR + 0x110)] if raw == 0 else [])


def test_null_has_no_entries() -> None:
    leaf = Leaf("v", WORD, guards=(Guard("p", empty=True),))
    assert read(leaf, [("v", "q"), ("p", "Q")], [5, 0]) == (0, ())
    assert read(leaf, [("v", "q"), ("p", "Q")], [5, 16]) == (None, ("v",))


def test_a_null_that_was_asked_for_is_a_value() -> None:
    got, faults = read(Leaf("v", Decode("pointer", 64)), [("v", "Q")], [0])
    assert (got, faults) == (0, ())
    assert isinstance(got, Hexadecimal)


def test_rows_of_functions_by_name() -> None:
    row = NumbersShape("v", Decode("symbol", 64), 3, 8, total=3)
    names = {(THREAD, NEAR): "swap"}
    data = struct.pack("=3Q", NEAR, 0, NEAR + 1)
    got, _ = read(row, [("v", "24s")], [data], symbol=lambda *at: names.get(at))
    assert isinstance(got, list)
    assert printed(got) == f"[swap, 0x0, {NEAR + 1:#x}]"
    assert isinstance(got[2], CodeAddress)  # may have a name later


def test_functions_by_name() -> None:
    leaf = Leaf("v", Decode("symbol", 64))

    def name(thread: int, address: int) -> str | None:
        assert thread == THREAD
        return "visit+0x4" if address == NEAR else None

    assert read(leaf, [("v", "Q")], [NEAR], None, name) == ("visit+0x4", ())
    assert isinstance(read(leaf, [("v", "Q")], [NEAR], None, name)[0], SymbolName)
    assert read(leaf, [("v", "Q")], [NEAR + 1], None, name) == (NEAR + 1, ())
    assert read(leaf, [("v", "Q")], [0], None, name) == (0, ())


# Counted strings: bytes, a pointer to them, their length.
TEXT_FIELDS = [("v", "16s"), ("p", "Q"), ("n", "q")]
COUNTED = StringShape("v", 16, length=Leaf("n", WORD), guards=(Guard("p"),))


@pytest.mark.parametrize(
    ("data", "p", "n", "value"),
    [
        (b"hello, world", NEAR, 5, "hello"),
        (b"a\0b\nc", NEAR, 5, "a\0b\nc"),
        (b"", 0, 0, ""),
        (b"stale", NEAR, 0, ""),
        (b"\xff\xc3", NEAR, 2, "\udcff\udcc3"),
        (b"x" * 16, NEAR, 16, "x" * 16),
        (b"stale", 0, 5, None),
        (b"stale", 0x4141_4141_4141_4141, 5, None),
        (b"stale", NEAR, -1, None),
        (b"stale", NEAR, 2**60, None),
    ],
)
def test_counted_texts(data: bytes, p: int, n: int, value: str | None) -> None:
    got, faults = read(COUNTED, TEXT_FIELDS, [data, p, n])
    assert (got, faults) == (value, () if value is not None else ("v",))
    assert not isinstance(got, CutString)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"x" * 16, "x" * 16),
        (b"x" * 14 + "ü".encode(), "x" * 14 + "ü"),
        (b"x" * 15 + "ü".encode()[:1], "x" * 15),  # half a character says nothing
        (b"x" * 13 + "😀".encode()[:3], "x" * 13),
        (b"x" * 13 + "€".encode(), "x" * 13 + "€"),
        (b"x" * 15 + b"\xbf", "x" * 15 + "\udcbf"),
    ],
)
def test_a_long_text_is_cut_between_characters(data: bytes, value: str) -> None:
    got, faults = read(COUNTED, TEXT_FIELDS, [data, NEAR, 1000])
    assert (got, faults) == (value, ())
    assert isinstance(got, CutString)
    assert got.length == 1000
    assert printed(got).endswith('"…')


def test_a_text_of_zeros_is_looked_up() -> None:
    assert read(COUNTED, TEXT_FIELDS, [b"", NEAR, 3], lambda *_: True) == ("\0\0\0", ())
    assert read(COUNTED, TEXT_FIELDS, [b"", NEAR, 3], lambda *_: False) == (None, ("v",))


def test_utf_16_is_counted_in_units() -> None:
    shape = StringShape("v", 16, "utf-16", length=Leaf("n", WORD), guards=(Guard("p"),))
    data = "aü😀".encode("utf-16-le") + b"rest"
    assert read(shape, TEXT_FIELDS, [data, NEAR, 4]) == ("aü😀", ())
    lone = b"\x3d\xd8x\0"
    assert read(shape, TEXT_FIELDS, [lone, NEAR, 2]) == ("\ud83dx", ())
    long, _ = read(shape, TEXT_FIELDS, [b"x\0" * 8, NEAR, 9])
    assert isinstance(long, CutString)
    assert (long, long.length) == ("x" * 8, 9)
    half = ("x" * 7 + "😀").encode("utf-16-le")[:16]
    long, _ = read(shape, TEXT_FIELDS, [half, NEAR, 9])
    assert (long, printed(long)) == ("x" * 7, '"xxxxxxx"…')  # type: ignore[arg-type]
    assert read(shape, TEXT_FIELDS, [half, NEAR, 8]) == ("x" * 7 + "\ud83d", ())


@pytest.mark.parametrize(
    ("limit", "data", "value", "cut"),
    [
        (16, b"short\0junk", "short", False),
        (16, b"x" * 16, "x" * 16, False),  # a full array has no NUL
        (4096, b"short\0junk", "short", False),
        (4096, b"x" * 16, "x" * 16, True),
    ],
)
def test_bounded_texts(limit: int, data: bytes, value: str, cut: bool) -> None:
    got, faults = read(StringShape("v", 16, limit=limit), [("v", "16s")], [data])
    assert (got, faults, isinstance(got, CutString)) == (value, (), cut)


KERNEL_TEXT = Leaf("v", Decode("text"))


def test_texts_of_the_kernel() -> None:
    fields = [("v", "text"), (COMM, "text")]
    assert read(KERNEL_TEXT, fields, [b"some\n\xff", b"sh"]) == ("some\n\udcff", ())
    assert read(KERNEL_TEXT, fields, [b"", b"sh"]) == ("", ())
    assert read(KERNEL_TEXT, fields, [None, b"sh"]) == (None, ("v",))
    limited = Leaf("v", Decode("text", limit=3))
    assert read(limited, fields, [b"abcdef", b"sh"]) == ("abc", ())


def test_a_text_that_took_the_room_of_the_last_one_is_cut() -> None:
    # What Linux 6.18 stores of a string of 4096 bytes or more, and of what is after it.
    fields = [("v", "text"), ("w", "text"), (COMM, "text")]
    data = record(fields, [b"x" * 9 + b"\xc3", b"", b""])
    at = len(data) - 2  # of both NULs, which are not there
    first = 11 << 16 | 28
    data = data[:16] + struct.pack("=3I", first, at, at) + data[28:at]
    long = KERNEL_TEXT, Leaf("v", Decode("text", limit=4096))
    for shape, name in ((long[0], "v"), (long[1], "v"), (Leaf("w", Decode("text")), "w")):
        plan = Plan("g", "ev", "/x", "f", "entry", 0, ("",), (EventValue("a", shape),))
        args, faults = reader(plan, format_of(fields))(data + b"\0")
        assert (args["a"], faults) == (("x" * 9, ()) if name == "v" else (None, ("a",)))
        assert isinstance(args["a"], CutString) == (name == "v")
    short = Leaf("v", Decode("text", limit=4))
    plan = Plan("g", "ev", "/x", "f", "entry", 0, ("",), (EventValue("a", short),))
    args, _ = reader(plan, format_of(fields))(data + b"\0")
    assert (args["a"], isinstance(args["a"], CutString)) == ("xxxx", False)


def test_a_list_of_texts_of_which_one_took_all_room() -> None:
    fields = [("v", "text3"), (COMM, "text")]
    start = 32
    places = [2 << 16 | start, 4 << 16 | start + 2, start + 6, start + 6]
    data = record(fields, [[None] * 3, None])[:16] + struct.pack("=4I", *places) + b"a\0bcd\0"
    plan = Plan(
        "g",
        "ev",
        "/x",
        "f",
        "entry",
        0,
        ("",),
        (EventValue("v", Leaf("v", Decode("text", count=3))),),
    )
    args, faults = reader(plan, format_of(fields))(data)
    assert (args["v"], faults) == (["a", "bcd", None], ("v[2]",))
    assert [isinstance(one, CutString) for one in args["v"]] == [False, True, False]  # type: ignore[union-attr]


def test_a_text_that_is_the_next_one_was_not_read() -> None:
    fields = [("v", "text"), ("w", "text"), (COMM, "text")]
    plan = Plan("g", "ev", "/x", "f", "entry", 0, ("",), (EventValue("v", KERNEL_TEXT),))
    make = reader(plan, format_of(fields))
    fixed = struct.pack("=HBBiQ", 1, 0, 0, THREAD, 0)
    # Both begin where the area does; the first has the room that was left for both.
    words = struct.pack("=3I", 7 << 16 | 28, 4 << 16 | 28, 3 << 16 | 32)
    assert make(fixed + words + b"one\0sh\0") == ({"v": None}, ("v",))


def test_lists_of_texts() -> None:
    fields = [("v", "text3"), (COMM, "text")]
    leaf = Leaf("v", Decode("text", count=3), total=3)
    assert read(leaf, fields, [[b"a", None, b"c"], b"sh"]) == (["a", None, "c"], ("v[1]",))
    more = Leaf("v", Decode("text", count=3), total=9)
    got, _ = read(more, fields, [[b"a", b"b", b"c"], b"sh"])
    assert isinstance(got, CutList)
    assert (got, got.length) == (["a", "b", "c"], 9)


def test_no_text_behind_a_null_pointer() -> None:
    fields = [("v", "text"), ("p", "Q"), (COMM, "text")]
    leaf = Leaf("v", Decode("text"), guards=(Guard("p", empty=True),))
    assert read(leaf, fields, [b"", 0, b"sh"]) == (None, ())
    assert read(leaf, fields, [b"", 8, b"sh"]) == (None, ("v",))
    assert read(leaf, fields, [b"", NEAR, b"sh"]) == ("", ())
    behind = Leaf("v", Decode("text"), guards=(Guard("p", moved=8),))
    assert read(behind, fields, [b"", 0, b"sh"]) == (None, ("v",))
    assert printed(None, ()) == "null"
    # A pointer that could not be loaded is 0, too.
    fields = [("v", "text"), ("q", "Q"), ("p", "Q"), (COMM, "text")]
    leaf = Leaf("v", Decode("text"), guards=(Guard("q"), Guard("p", empty=True)))
    assert read(leaf, fields, [b"", NEAR, 0, b"sh"], lambda *_: True) == (None, ())
    assert read(leaf, fields, [b"", NEAR, 0, b"sh"], lambda *_: False) == (None, ("v",))
    assert read(leaf, fields, [b"", 8, 0, b"sh"], lambda *_: True) == (None, ("v",))


def test_lists_of_texts_some_of_which_have_no_pointer() -> None:
    fields = [("v", "text3"), ("p", "24s"), (COMM, "text")]
    leaf = Leaf("v", Decode("text", count=3), total=3, pointers="p")
    pointers = struct.pack("=3Q", NEAR, 0, 8)
    got = read(leaf, fields, [[b"a", None, None], pointers, b"sh"])
    assert got == (["a", None, None], ("v[2]",))


ROW = NumbersShape("v", INT, 3, 4, total=3)


def test_rows() -> None:
    data = struct.pack("=3i", 1, -2, 3)
    assert read(ROW, [("v", "12s")], [data]) == ([1, -2, 3], ())
    got, _ = read(NumbersShape("v", INT, 3, 4, total=1000), [("v", "12s")], [data])
    assert isinstance(got, CutList)
    assert got.length == 1000
    colours = NumbersShape("v", COLOUR, 3, 4)
    names = [one["name"] for one in read(colours, [("v", "12s")], [struct.pack("=3I", 0, 5, 6)])[0]]  # type: ignore[attr-defined]
    assert names == ["RED", "GREEN", None]


@pytest.mark.parametrize(
    ("p", "n", "value", "cut"),
    [
        (NEAR, 2, [1, -2], False),
        (NEAR, 3, [1, -2, 3], False),
        (NEAR, 4, [1, -2, 3], True),
        (0, 0, [], False),
        (0, 1, None, False),
        (NEAR, -1, None, False),
    ],
)
def test_slices(p: int, n: int, value: object, cut: bool) -> None:
    inner = NumbersShape("v", INT, 3, 4, guards=(Guard("p"),))
    fields = [("v", "12s"), ("p", "Q"), ("n", "q")]
    got, faults = read(
        SequenceShape(Leaf("n", WORD), inner), fields, [struct.pack("=3i", 1, -2, 3), p, n]
    )
    assert (got, isinstance(got, CutList)) == (value, cut)
    assert faults == (() if value is not None else ("v",))


@pytest.mark.parametrize(
    ("start", "end", "value", "cut"),
    [
        (NEAR, NEAR + 12, [1, -2, 3], False),
        (NEAR, NEAR + 8, [1, -2], False),
        (NEAR, NEAR + 40, [1, -2, 3], True),
        (NEAR, NEAR, [], False),
        (0, 0, [], False),
        (NEAR + 8, NEAR, None, False),
        (NEAR, NEAR + 7, None, False),
    ],
)
def test_vectors_end_where_their_second_pointer_is(
    start: int, end: int, value: object, cut: bool
) -> None:
    inner = NumbersShape("v", INT, 3, 4, guards=(Guard("s"),))
    address = Decode("pointer", 64)
    shape = SequenceShape(ElementCountShape(Leaf("s", address), Leaf("e", address), 4), inner)
    fields = [("v", "12s"), ("s", "Q"), ("e", "Q")]
    got, faults = read(shape, fields, [struct.pack("=3i", 1, -2, 3), start, end])
    assert (got, isinstance(got, CutList)) == (value, cut)
    assert faults == (() if value is not None else ("v",))


def test_slices_of_texts() -> None:
    texts = tuple(
        [
            StringShape(
                f"t{i}", 8, length=Leaf("h", WORD, 16 * i + 8, 8), guards=(Guard("h", 16 * i),)
            )
            for i in range(2)
        ]
    )
    shape = SequenceShape(Leaf("n", WORD), ListShape(texts, guards=(Guard("p"),)))
    fields = [("h", "32s"), ("t0", "8s"), ("t1", "8s"), ("p", "Q"), ("n", "q")]
    header = struct.pack("=4Q", NEAR, 2, NEAR, 9)
    got, faults = read(shape, fields, [header, b"ab", b"abcdefgh", NEAR, 2])
    assert (got, faults) == (["ab", "abcdefgh"], ())
    header = struct.pack("=4Q", NEAR, 2, 0, 9)
    assert read(shape, fields, [header, b"ab", b"", NEAR, 2]) == (["ab", None], ("v[1]",))
    # What is after the last element is nobody's business.
    assert read(shape, fields, [header, b"ab", b"", NEAR, 1]) == (["ab"], ())


def test_structures() -> None:
    shape = StructShape(
        (
            ("x", Leaf("v", INT, 0, 4, guards=(Guard("p"),))),
            ("in", StructShape((("c", Leaf("v", Decode("char", 8), 4, 1)),))),
            ("s", StringShape("t", 4, length=Leaf("n", WORD), guards=(Guard("q"),))),
        ),
        (Guard("p"),),
    )
    fields = [("v", "8s"), ("p", "Q"), ("t", "4s"), ("n", "q"), ("q", "Q")]
    data = struct.pack("=ic3x", 7, b"c")
    value = {"x": 7, "in": {"c": "c"}, "s": "te"}
    assert read(shape, fields, [data, NEAR, b"text", 2, NEAR]) == (value, ())
    value = {"x": 7, "in": {"c": "c"}, "s": None}
    assert read(shape, fields, [data, NEAR, b"text", 2, 0]) == (value, ("v.s",))
    assert read(shape, fields, [data, 0, b"text", 2, 0]) == (None, ("v",))


def test_a_structure_of_faults_is_one() -> None:
    a, b = (Leaf("v", INT, at, 4, guards=(Guard("p"),)) for at in (0, 4))
    shape = StructShape((("a", a), ("b", b)), (Guard("p"),))
    got = read(shape, [("v", "8s"), ("p", "Q")], [b"", NEAR], lambda *_: False)
    assert got == (None, ("v",))


def test_a_null_beside_a_fault_was_read() -> None:
    texts = [
        (name, Leaf(name, Decode("text"), guards=(Guard(f"p{name}", empty=True),))) for name in "ab"
    ]
    fields = [("a", "text"), ("b", "text"), ("pa", "Q"), ("pb", "Q"), (COMM, "text")]
    values = [b"", b"", 0, 8, b"sh"]
    assert read(StructShape(tuple(texts)), fields, values) == ({"a": None, "b": None}, ("v.b",))
    pair = ListShape(tuple([leaf for _, leaf in texts]), is_tuple=True)
    assert read(pair, fields, values) == ([None, None], ("v[1]",))
    values[2] = 8
    assert read(StructShape(tuple(texts)), fields, values) == (None, ("v",))
    assert read(pair, fields, values) == (None, ("v",))


def test_characters_in_registers_are_one_text() -> None:
    one = [Leaf(name, Decode("char", 8)) for name in "abc"]
    fields = [(name, "Q") for name in "abc"]
    shape = ListShape(tuple(one), text=True)
    assert read(shape, fields, [0x61, 0xC3, 0xBC]) == ("aü", ())
    assert read(shape, fields, [0x61, 0, 0x62]) == ("a", ())


EVERYTHING: list[Shape] = [
    Leaf("a", Decode("char", 8), 3, 1),
    Leaf("a", COLOUR, 4, 4, guards=(Guard("p", 0, 4),)),
    Leaf("a", Decode("float", 32), 8, 4),
    Leaf("a", Decode("float", 64), 8, 8),
    Leaf("a", Decode("integer", 7, True), 0, 4, 11),
    StringShape("a", 32, length=Leaf("n", WORD), guards=(Guard("p"),)),
    StringShape("a", 32, "utf-16", length=Leaf("n", WORD), guards=(Guard("p"),)),
    StringShape("a", 32, limit=64),
    NumbersShape("a", Decode("bool", 8), 8, 1),
    SequenceShape(Leaf("n", WORD), NumbersShape("a", INT, 8, 4, guards=(Guard("p"),))),
    Leaf("t", Decode("text")),
    Leaf("u", Decode("text", count=2)),
]
EVERY_FIELD = [("a", "32s"), ("p", "Q"), ("n", "q"), ("t", "text"), ("u", "text2"), (COMM, "text")]
FIXED = struct.calcsize("=16x32sQq4I")


@given(st.binary(min_size=FIXED, max_size=FIXED + 40), st.sampled_from([True, False, None]))
def test_any_bytes_are_some_value(data: bytes, mapped: bool | None) -> None:
    values = tuple([EventValue(f"v{i}", shape) for i, shape in enumerate(EVERYTHING)])
    plan = Plan("g", "ev", "/x", "f", "entry", 0, ("",), values)
    args, faults = reader(plan, format_of(EVERY_FIELD), lambda *_: mapped)(data)
    assert {label.partition("[")[0] for label in faults} >= {
        label for label, value in args.items() if value is None
    }
    json.dumps(args, allow_nan=False)
    for value in args.values():
        assert printed(value).isprintable()


def test_null_is_no_fault_where_a_reference_may_be_null() -> None:
    word = Leaf("at", Decode("pointer", 64))
    length = Leaf("n", INT, guards=(Guard("at", 0, 8),))
    text = StringShape("text", 8, "utf-16", 0, length, None, (Guard("at", 0, 12),))
    fields = [("at", "Q"), ("n", "i"), ("text", "8s")]
    shape = OptionalShape(word, text)
    assert read(shape, fields, [NEAR, 2, "hé".encode("utf-16-le")]) == ("hé", ())
    assert read(shape, fields, [0, 7, b"stale"]) == (None, ())
    assert read(text, fields, [0, 7, b"stale"]) == (None, ("v",))
    assert read(shape, fields, [8, 7, b"stale"]) == (None, ("v",))


@given(st.integers(0, (1 << 32) - 1))
def test_a_float_of_32_bits_is_the_shortest_text_that_tells_it(raw: int) -> None:
    number = struct.unpack("=f", struct.pack("=I", raw))[0]
    value = float_value(number, short=True)
    if not isinstance(value, float):
        assert number != number or abs(number) == float("inf")
        return
    assert struct.pack("=f", value) == struct.pack("=f", number)
    digits = len(repr(value).partition("e")[0].replace(".", "").strip("-0"))
    shorter = float(f"{number:.{digits - 2}e}") if digits > 1 else None
    assert (
        shorter is None
        or abs(shorter) > 3.4e38
        or struct.pack("=f", shorter) != struct.pack("=f", number)
    )


@pytest.mark.parametrize(
    ("bits", "text"),
    [(0x40066666, "2.1"), (0x3DCCCCCD, "0.1"), (0x7F7FFFFF, "3.4028235e+38"), (1, "1e-45"),
     (0x4B800000, "16777216.0"), (0x80000000, "-0.0")],
)  # fmt: skip
def test_floats_of_32_bits_as_json_has_them(bits: int, text: str) -> None:
    value = float_value(struct.unpack("=f", struct.pack("=I", bits))[0], short=True)
    assert json.dumps(value) == printed(value) == text


@pytest.mark.parametrize(
    ("count", "values", "shown", "first", "third"),
    [
        (0, [], "[]", None, None),
        (3, [12, 11, 10], "[12, 11, 10]", 12, 10),
        (4, [13, 12, 11, 10], "[13, 12, 11, 10]", 13, 11),
        (6, [13, 12, 11, 10], "[…, 13, 12, 11, 10]", None, 13),
    ],
)
def test_a_stack_begins_with_what_was_pushed_last(
    count: int, values: list[int], shown: str, first: int | None, third: int | None
) -> None:
    # As C# enumerates it. Of one that has more elements than were fetched the end is there.
    number = Leaf("n", INT)
    row = SequenceShape(number, NumbersShape("v", INT, 4, 4), number, None, backwards=True)
    fields, record = [("n", "i"), ("v", "16s")], [count, struct.pack("=4i", 10, 11, 12, 13)]
    got, faults = read(row, fields, record)
    assert (got, faults) == (values, ())
    assert isinstance(got, list)
    assert printed(got, faults, "v") == shown
    for index, wanted in ((0, first), (2, third)):
        got, faults = read(MultiArrayShape((number,), row, (index,)), fields, record)
        assert (got, faults) == (wanted, () if wanted is not None else ("v",))
