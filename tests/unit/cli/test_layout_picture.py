"""`types --format svg`: every member is in the picture, where its bits are."""

from __future__ import annotations

import re
import xml.etree.ElementTree as Xml
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.cli import main
from fetchc.cli.layout_picture import picture
from fetchc.driver.type_layouts import Layout, Row
from fetchc.program.types import BitField
from fetchc.quantities import BitOffset, BitSize
from tests.support.programs import fixture

C = str(fixture("c/layouts/gcc-O2-dwarf5"))
CPP = str(fixture("cpp/addressbook/g++-O2"))
SVG = "{http://www.w3.org/2000/svg}"


def drawn(text: str) -> list[tuple[str, float, float, float]]:
    """What each box says it is, its place and its width."""
    boxes = []
    for group in Xml.fromstring(text).iter(f"{SVG}g"):
        title, box = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        assert title is not None
        assert box is not None
        x, y, width = (float(box.attrib[name]) for name in ("x", "y", "width"))
        boxes.append((title.text or "", x, y, width))
    return boxes


def rows(sizes: list[int]) -> tuple[Row, ...]:
    found, at = [], 0
    for number, size in enumerate(sizes):
        found.append(Row(f"m{number}", "t<&>", at, size, None, False))
        at += size
    return tuple(found)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=12))
def test_every_byte_is_drawn_once(sizes: list[int]) -> None:
    layout = Layout("s", sum(sizes), "struct", rows(sizes))
    boxes = drawn(picture(layout, 64, str))
    assert {text.split()[2] for text, *_ in boxes} == {f"m{number}" for number in range(len(sizes))}
    by_place = sorted((y, x, x + width) for _, x, y, width in boxes)
    for (y, _, end), (other, start, _) in pairwise(by_place):
        assert y < other or end <= start
    # What is not shortened has its width: 72 pixels a byte.
    for number, size in enumerate(sizes):
        widths = [width for text, _, _, width in boxes if text.split()[2] == f"m{number}"]
        assert sum(widths) <= 72 * size
        assert size >= 16 or sum(widths) == 72 * size


def test_bit_fields_and_a_union_s_members() -> None:
    fields = tuple(
        Row(name, "int", 0, 4, BitField(BitOffset(at), BitSize(width)), False)
        for name, at, width in (("a", 0, 3), ("b", 3, 13))
    )
    boxes = drawn(picture(Layout("s", 4, "struct", fields), 64, str))
    assert [(text, width) for text, _, _, width in boxes] == [
        ("bit 0: a int, 3 bits", 27.0), ("bit 3: b int, 13 bits", 117.0),
    ]  # fmt: skip
    both = (Row("x", "int", 0, 4, None, False), Row("y", "long", 0, 8, None, False))
    places = {
        text.split()[2]: y
        for text, _, y, _ in drawn(picture(Layout("u", 8, "union", both), 64, str))
    }
    assert places["x"] != places["y"]


@pytest.mark.parametrize(("binary", "name"), [(C, "record"), (CPP, "AddressBook"), (C, "node")])
def test_a_type_of_a_program(binary: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["types", name, "-x", binary, "--json"]) == 0
    members = re.findall(r'"name": "(\w+)",\n        "type"', capsys.readouterr().out)
    assert main(["types", name, "-x", binary, "--format", "svg"]) == 0
    text = capsys.readouterr().out
    shown = {one[0].split()[2].rpartition(".")[2] for one in drawn(text)}
    root = Xml.fromstring(text)
    described = root.findtext(f"{SVG}desc") or ""
    assert members
    assert all(f" {each} " in described for each in members)
    assert set(members) - shown <= {"tail"}  # an array without a size
    assert (root.attrib["role"], root.attrib["aria-labelledby"]) == ("img", "title desc")
    assert "prefers-color-scheme:dark" in text
    assert not re.search(r"href|url\(http|<script", text)  # it needs nothing beside it


def test_cache_lines(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = [8] * 17 + [640]
    text = picture(Layout("s", sum(sizes), "struct", rows(sizes)), 64, str)
    assert re.findall(r"cache line \d+<", text) == [
        "cache line 1<", "cache line 2<", "cache line 3<", "cache line 12<",
    ]  # fmt: skip
    assert main(["types", "record", "-x", C]) == 0
    assert "\n  -- cache line 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["types", "--format", "svg"], "a picture is of one type: name it"),
        (["types", "*n*", "--format", "svg"], "a picture is of one type, and "),
        (["types", "int", "--format", "svg"], "`int` has no members to draw"),
    ],
)
def test_what_is_no_picture(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "-x", C]) == 1
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""
