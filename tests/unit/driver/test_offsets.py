"""Where members are in their types, and what has no such place."""

from __future__ import annotations

import pytest

import fetchc
from fetchc.driver.type_layouts import Offset
from fetchc.program.types import BitField
from fetchc.quantities import BitOffset, BitSize
from tests.support.cases import CORPUS

C = fetchc.open(str(CORPUS / "c/layouts/bin/gcc-O2-dwarf5"))
GO = fetchc.open(str(CORPUS / "go/dnsforward/bin/go1.27"))


def code(program: fetchc.Program, text: str) -> tuple[str, str]:
    with pytest.raises(fetchc.CompileError) as refused:
        program.offsets(text)
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.primary is not None
    span = diagnostic.primary.span
    return diagnostic.code, text[span.start : span.end]


def test_no_more_members_than_a_tree_may_be_deep() -> None:
    text = "record" + ".a" * 201
    assert code(C, text) == ("FC0102", text)
    assert code(C, text[:-2])[0] == "FC0302"


@pytest.mark.parametrize("name", ["struct record", "record"])
def test_a_field_of_c(name: str) -> None:
    (found,) = C.offsets(f"{name}.head")
    assert found == Offset(f"{name}.head", "struct node *", 288, 8, None)


def test_a_field_of_a_field() -> None:
    whole, (inner,), (outer,) = C.offsets("inner"), C.offsets("record.in"), C.offsets("record.in.i")
    (member,) = [row for row in whole if row.field == "inner.i"]
    assert outer.offset == inner.offset + member.offset
    assert (outer.size, outer.type) == (member.size, member.type)


@pytest.mark.parametrize(
    ("text", "offset", "size"),
    [
        ("record.list[2].i", 192 + 2 * 8 + 4, 4),
        ("record.cube[1][0][1]", 176 + 8 + 2, 2),
        ("record.cube[1]", 176 + 8, 8),
        ("record.pointers[1]", 216 + 8, 8),
        ("record.tail[9].i", 304 + 9 * 8 + 4, 4),
    ],
)
def test_an_element_of_an_array(text: str, offset: int, size: int) -> None:
    (found,) = C.offsets(text)
    assert (found.field, found.offset, found.size) == (text, offset, size)


def test_a_bit_field_counts_from_the_start_of_the_whole() -> None:
    (found,) = C.offsets("bits.negative")
    bits = BitField(BitOffset(159), BitSize(33))
    assert found == Offset("bits.negative", "long long int", 19, 8, bits)


def test_members_of_what_has_no_name_are_members() -> None:
    fields = [row.field for row in C.offsets("struct record")]
    assert fields[0] == "struct record"
    assert "struct record.first" in fields
    assert len(set(fields)) == len(fields)


def test_a_type_of_go_with_dots() -> None:
    (found,) = GO.offsets("main.Msg.Question")
    assert found == Offset("main.Msg.Question", "[]main.Question", 40, 24, None)
    assert [row.field for row in GO.offsets("main.Question")] == [
        "main.Question", "main.Question.Name", "main.Question.Qtype", "main.Question.Qclass",
    ]  # fmt: skip
    assert GO.offsets("main.Question.Name.len")[0].offset == 8


@pytest.mark.parametrize(
    ("text", "wanted", "where"),
    [
        ("struct nothing.x", "FC0204", "struct nothing.x"),
        ("", "FC0204", ""),
        ("..", "FC0204", ".."),
        ("record.nothing", "FC0302", "nothing"),
        ("record.", "FC0302", ""),
        ("record.head.value", "FC0301", "value"),
        ("record.i.x", "FC0301", "x"),
        ("record.list[3].i", "FC0303", "3"),
        ("record.list[1][0]", "FC0304", "list"),
        ("record.to[1]", "FC0301", "to"),
        ("record.pointers[1][0]", "FC0301", "pointers"),
        ("record.list[x].i", "FC0302", "list[x]"),
        ("record.list[-1]", "FC0302", "list[-1]"),
        (f"record.list[{'9' * 5000}]", "FC0302", f"list[{'9' * 5000}]"),
        ("record.[1]", "FC0302", "[1]"),
    ],
)
def test_what_has_no_offset(text: str, wanted: str, where: str) -> None:
    assert code(C, text) == (wanted, where)
