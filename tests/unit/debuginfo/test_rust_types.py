"""Rust's types out of debug information: tags, and descriptions that make no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.debuginfo.dwarf import constants as dw
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program import types as t
from tests.support.dwarfwriter import Attr, Entry, Ref, Unit, base_die, compile_unit
from tests.support.dwarfwriter import program as written


def ref(label: str, attribute: int = dw.DW_AT_type) -> Attr:
    return Attr(attribute, dw.DW_FORM_ref4, Ref(label))


def name(text: str) -> Attr:
    return Attr(dw.DW_AT_name, dw.DW_FORM_string, text)


def number(attribute: int, value: int) -> Attr:
    return Attr(attribute, dw.DW_FORM_udata, value)


def die(label: str, tag: int, attributes: list[Attr], children: list[Entry]) -> Entry:
    return Entry(tag, tuple(attributes), tuple(children), label)


def member(of: str, called: str, offset: int = 0, label: str = "") -> Entry:
    place = number(dw.DW_AT_data_member_location, offset)
    return die(label or f"{called}@{of}", dw.DW_TAG_member, [name(called), ref(of), place], [])


def structure(label: str, called: str, size: int, children: list[Entry]) -> Entry:
    attributes = [name(called), number(dw.DW_AT_byte_size, size)]
    return die(label, dw.DW_TAG_structure_type, attributes, children)


def read(directory: Path, *entries: Entry) -> t.Type:
    """The type that is called ``s``, of a unit of Rust."""
    unit = compile_unit(
        base_die("u8", 1, dw.DW_ATE_unsigned),
        base_die("u128", 16, dw.DW_ATE_unsigned),
        structure("wide", "wide", 1 << 40, []),
        *entries,
        language=dw.DW_LANG_Rust,
    )
    made = DwarfProgram(written(directory / "unit", [Unit(unit)]))
    return made.type(made.types_named("s", None)[0])


def enum_of(tag: str, values: list[Attr | None]) -> list[Entry]:
    variants = [
        die(f"v{n}", dw.DW_TAG_variant, [] if one is None else [one], [member("u8", f"V{n}", 8)])
        for n, one in enumerate(values)
    ]
    part = die(
        "part", dw.DW_TAG_variant_part, [ref("tag", dw.DW_AT_discr)],
        [member(tag, "", 0, "tag"), *variants],
    )  # fmt: skip
    return [structure("s", "s", 16, [part])]


def test_a_tag_tells_each_variant(tmp_path: Path) -> None:
    values = [number(dw.DW_AT_discr_value, 0), number(dw.DW_AT_discr_value, 255), None]
    made = read(tmp_path, *enum_of("u8", [*values]))
    assert isinstance(made, t.StructType)
    variants = [(one.member.name, one.value, one.member.offset) for one in made.variants]
    assert variants == [("V0", 0, 8), ("V1", 255, 8), ("V2", None, 8)]
    assert [one.name for one in made.members] == ["discriminant"]


@pytest.mark.parametrize("tag", ["i64", "signed"])
def test_a_negative_tag_in_the_shortest_form(tag: str, tmp_path: Path) -> None:
    values = [(dw.DW_FORM_data1, b"\xfb"), (dw.DW_FORM_data2, b"\0\x80"), (dw.DW_FORM_data1, b"\7")]
    attributes = [
        Attr(dw.DW_AT_discr_value, form, int.from_bytes(raw, "little")) for form, raw in values
    ]
    signed = die(
        "signed", dw.DW_TAG_enumeration_type, [number(dw.DW_AT_byte_size, 8), ref("i64")], []
    )
    made = read(
        tmp_path, base_die("i64", 8, dw.DW_ATE_signed), signed, *enum_of(tag, [*attributes])
    )
    assert isinstance(made, t.StructType)
    assert [one.value for one in made.variants] == [-5, -(2**15), 7]
    assert [one.name for one in made.members] == ["discriminant"]
    made = read(tmp_path, base_die("u64", 8, dw.DW_ATE_unsigned), *enum_of("u64", [*attributes]))
    assert isinstance(made, t.StructType)
    assert [one.value for one in made.variants] == [0xFB, 0x8000, 7]


def test_a_tag_of_two_words_is_read_from_the_first(tmp_path: Path) -> None:
    def block(value: int) -> Attr:
        return Attr(dw.DW_AT_discr_value, dw.DW_FORM_block1, value.to_bytes(16, "little"))

    made = read(tmp_path, *enum_of("u128", [block(1), block(7)]))
    assert isinstance(made, t.StructType)
    assert [one.value for one in made.variants] == [1, 7]
    # Another number than these could be any of both words.
    made = read(tmp_path, *enum_of("u128", [block(1), None]))
    assert isinstance(made, t.StructType)
    assert (made.members, made.variants) == ((), ())


def test_a_tag_that_no_machine_has(tmp_path: Path) -> None:
    with pytest.raises(DebugInfoError) as caught:
        read(tmp_path, *enum_of("wide", [number(dw.DW_AT_discr_value, 0)]))
    assert "a discriminant of" in caught.value.what


def test_a_member_without_a_place(tmp_path: Path) -> None:
    lost = die("lost", dw.DW_TAG_member, [name("V"), ref("u8")], [])
    variant = die("v", dw.DW_TAG_variant, [], [lost])
    part = die("part", dw.DW_TAG_variant_part, [], [variant])
    with pytest.raises(DebugInfoError) as caught:
        read(tmp_path, structure("s", "s", 8, [part]))
    assert "without a fixed place" in caught.value.what
