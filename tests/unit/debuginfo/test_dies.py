"""Entries written by hand: every form, every version, both byte orders and widths."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf.debug_info import DebugInfo
from fetchc.debuginfo.dwarf.dies import LocationListRef
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address, DieOffset
from tests.support.assembler import uleb
from tests.support.dwarfwriter import (
    Attr,
    Entry,
    Ref,
    Unit,
    Value,
    base_die,
    compile_unit,
    member_die,
    struct_die,
    subprogram_die,
    typedef_die,
)
from tests.support.elfwriter import elf_file
from tests.support.entries import AT, SHAPES, WIDTHS, entry, one, opened

CONSTANTS = [
    (c.DW_FORM_data1, 200, 200, -56),
    (c.DW_FORM_data2, 0xFFFE, 0xFFFE, -2),
    (c.DW_FORM_data4, 0xFFFFFFFD, 0xFFFFFFFD, -3),
    (c.DW_FORM_data8, 1 << 63, 1 << 63, -(1 << 63)),
    (c.DW_FORM_data16, (1 << 127) + 1, (1 << 127) + 1, -(1 << 127) + 1),
    (c.DW_FORM_udata, 1 << 40, 1 << 40, 1 << 40),
    (c.DW_FORM_sdata, -5, None, -5),
    (c.DW_FORM_sdata, 70, 70, 70),
    (c.DW_FORM_implicit_const, -7, None, -7),
    (c.DW_FORM_implicit_const, 9, 9, 9),
    (c.DW_FORM_sec_offset, 12, 12, 12),
]


@pytest.mark.parametrize("little", [True, False])
@pytest.mark.parametrize(("form", "value", "unsigned", "signed"), CONSTANTS)
def test_constants(
    tmp_path: Path, form: int, value: int, unsigned: int | None, signed: int, little: bool
) -> None:
    die = one(tmp_path, Attr(AT, form, value), Attr(AT + 1, c.DW_FORM_data1, 3), little=little)
    assert die.constant(AT) == value
    assert die.unsigned(AT) == unsigned
    assert die.signed(AT) == signed
    assert die.unsigned(AT + 1) == 3
    assert die.string(AT) is None
    assert die.block(AT) is None
    assert die.address(AT) is None
    assert not die.flag(AT)


STRINGS = [
    c.DW_FORM_string,
    c.DW_FORM_strp,
    c.DW_FORM_line_strp,
    c.DW_FORM_strx,
    c.DW_FORM_strx1,
    c.DW_FORM_strx2,
    c.DW_FORM_strx3,
    c.DW_FORM_strx4,
]


@pytest.mark.parametrize("little", [True, False])
@pytest.mark.parametrize("form", STRINGS)
def test_strings(tmp_path: Path, form: int, little: bool) -> None:
    first = Attr(AT, form, "ein Stück")
    die = one(tmp_path, first, Attr(AT + 1, form, b"not \xff UTF-8"), little=little)
    assert die.string(AT) == "ein Stück"
    assert die.string(AT + 1) == "not \udcff UTF-8"
    assert die.string_bytes(AT + 1) == b"not \xff UTF-8"
    assert die.string(AT + 2) is None
    assert die.constant(AT) is None


ADDRESSES = [
    c.DW_FORM_addr,
    c.DW_FORM_addrx,
    c.DW_FORM_addrx1,
    c.DW_FORM_addrx2,
    c.DW_FORM_addrx3,
    c.DW_FORM_addrx4,
]


@pytest.mark.parametrize(("size", "little"), WIDTHS)
@pytest.mark.parametrize("form", ADDRESSES)
def test_addresses(tmp_path: Path, form: int, size: int, little: bool) -> None:
    attributes = (Attr(AT, form, 0x1234), Attr(AT + 1, form, 0xFFFFFFF0))
    die = one(tmp_path, *attributes, little=little, address_size=size)
    assert die.address(AT) == 0x1234
    assert die.address(AT + 1) == 0xFFFFFFF0
    assert die.constant(AT) is None


BLOCKS = [
    c.DW_FORM_block,
    c.DW_FORM_block1,
    c.DW_FORM_block2,
    c.DW_FORM_block4,
    c.DW_FORM_exprloc,
]


@pytest.mark.parametrize("little", [True, False])
@pytest.mark.parametrize("content", [b"", b"\x9c", bytes(200)])
@pytest.mark.parametrize("form", BLOCKS)
def test_blocks(tmp_path: Path, form: int, content: bytes, little: bool) -> None:
    die = one(tmp_path, Attr(AT, form, content), Attr(AT + 1, form, b"!"), little=little)
    assert die.block(AT) == content
    assert die.location(AT) == content
    assert die.block(AT + 1) == b"!"
    assert die.string(AT) is None


@pytest.mark.parametrize(
    ("form", "value", "expected"),
    [
        (c.DW_FORM_flag, 1, True),
        (c.DW_FORM_flag, 0, False),
        (c.DW_FORM_flag_present, 1, True),
        (c.DW_FORM_data1, 1, False),
    ],
)
def test_flags(tmp_path: Path, form: int, value: int, expected: bool) -> None:
    die = one(tmp_path, Attr(AT, form, value))
    assert die.flag(AT) is expected
    assert not die.flag(AT + 1)
    assert die.has(AT)
    assert not die.has(AT + 1)
    assert die.form(AT) == form
    assert die.form(AT + 1) is None
    assert die.attributes() == ((AT, form),)


@pytest.mark.parametrize(("version", "width", "size", "little"), SHAPES)
def test_references(tmp_path: Path, version: int, width: int, size: int, little: bool) -> None:
    forms = [
        c.DW_FORM_ref1,
        c.DW_FORM_ref2,
        c.DW_FORM_ref4,
        c.DW_FORM_ref8,
        c.DW_FORM_ref_udata,
        c.DW_FORM_ref_addr,
    ]
    attributes = tuple([Attr(AT + at, form, Ref("int")) for at, form in enumerate(forms)])
    root = compile_unit(base_die("int", 4, c.DW_ATE_signed), Entry(c.DW_TAG_variable, attributes))
    other = compile_unit(
        Entry(c.DW_TAG_variable, (Attr(AT, c.DW_FORM_ref_addr, Ref("int")),)), name="other.c"
    )
    units = (Unit(root, version, width), Unit(other, version, width))
    info = opened(tmp_path, *units, little=little, address_size=size)
    first, second = info.units()
    assert (first.version, first.offset_size, first.address_size) == (version, width, size)
    assert first.name == "unit.c"
    assert second.name == "other.c"
    assert first.language == c.DW_LANG_C99
    target, variable = info.children(first.top)
    assert target.string(c.DW_AT_name) == "int"
    for at in range(len(forms)):
        assert info.follow(variable, AT + at) == target
    assert info.follow(next(info.children(second.top)), AT) == target
    assert info.follow(variable, AT + len(forms)) is None
    assert info.die(variable.offset) == variable
    assert info.ancestors(variable) == (first.top,)
    assert info.ancestors(first.top) == ()


@pytest.mark.parametrize("version", [4, 5])
def test_type_units(tmp_path: Path, version: int) -> None:
    named = struct_die("s", 8, [], "the type")
    types = Unit(
        Entry(c.DW_TAG_type_unit, (), (base_die("filler", 1, 7), named)),
        version,
        kind=c.DW_UT_type,
        signature=0x1122334455667788,
        type_label="the type",
    )
    user = Entry(c.DW_TAG_variable, (Attr(AT, c.DW_FORM_ref_sig8, 0x1122334455667788),))
    lost = Entry(c.DW_TAG_variable, (Attr(AT, c.DW_FORM_ref_sig8, 1),))
    info = opened(tmp_path, Unit(compile_unit(user, lost), version), types)
    first, second = info.children(next(info.units()).top)
    found = info.follow(first, AT)
    assert found is not None
    assert found.string(c.DW_AT_name) == "s"
    assert info.die(found.offset) == found
    assert [die.offset for die in info.find_named("s", frozenset((c.DW_TAG_structure_type,)))] == [
        found.offset
    ]
    with pytest.raises(DebugInfoError, match="no type unit has signature 0x0000000000000001"):
        info.follow(second, AT)


def test_origins_are_followed_and_loops_end(tmp_path: Path) -> None:
    def origin(label: str, to: str, attribute: int, *more: Attr) -> Entry:
        return Entry(
            c.DW_TAG_subprogram, (Attr(attribute, c.DW_FORM_ref4, Ref(to)), *more), (), label
        )

    name = Attr(c.DW_AT_name, c.DW_FORM_string, "f")
    root = compile_unit(
        origin("concrete", "abstract", c.DW_AT_abstract_origin),
        origin("abstract", "declaration", c.DW_AT_specification),
        Entry(c.DW_TAG_subprogram, (name,), (), "declaration"),
        origin("loop", "back", c.DW_AT_specification),
        origin("back", "loop", c.DW_AT_abstract_origin),
    )
    info = opened(tmp_path, Unit(root))
    concrete, _, declaration, loop, _ = info.children(next(info.units()).top)
    assert info.inherited(concrete, c.DW_AT_name) == declaration
    assert info.inherited(declaration, c.DW_AT_name) == declaration
    assert info.inherited(concrete, c.DW_AT_decl_line) is None
    assert info.inherited(loop, c.DW_AT_name) is None


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_locations(tmp_path: Path, version: int) -> None:
    lists = {
        2: (c.DW_FORM_data4, 0x40),
        3: (c.DW_FORM_data8, 0x40),
        4: (c.DW_FORM_sec_offset, 0x40),
        5: (c.DW_FORM_sec_offset, 0x40),
    }
    form, value = lists[version]
    die = one(
        tmp_path,
        Attr(AT, form, value),
        Attr(AT + 1, c.DW_FORM_block1, b"\x91\x00"),
        Attr(AT + 2, c.DW_FORM_data1, 4),
        version=version,
    )
    assert die.location(AT) == LocationListRef(0x40)
    assert die.location(AT + 1) == b"\x91\x00"
    assert die.location(AT + 2) is None
    assert die.location(AT + 3) is None
    if version >= 4:
        data4 = one(tmp_path, Attr(AT, c.DW_FORM_data4, 8), version=version)
        assert data4.location(AT) is None


def test_location_list_indexes_go_through_the_table(tmp_path: Path) -> None:
    listed = bytes(12) + (0x30).to_bytes(4, "little") + (0x44).to_bytes(4, "little")
    die = one(
        tmp_path,
        Attr(AT, c.DW_FORM_loclistx, 1),
        Attr(AT + 1, c.DW_FORM_loclistx, 2),
        extra={".debug_loclists": listed},
    )
    assert die.location(AT) == LocationListRef(12 + 0x44)
    with pytest.raises(DebugInfoError, match=r"\.debug_loclists\+0x14: bytes"):
        die.location(AT + 1)


def test_indirect_forms_name_themselves(tmp_path: Path) -> None:
    # The value's form stands before the value; the tree is written by hand.
    abbrev = b"\x01\x11\x01\x03\x08\0\0" + b"\x02\x34\x00\x03\x16\x0b\x16\0\0" + b"\0"
    body = b"\x01u\0" + b"\x02\x08v\0\x0b\x07" + b"\0"
    header = b"\x04\0" + bytes(4) + b"\x08"
    unit = (len(header + body)).to_bytes(4, "little") + header + body
    path = tmp_path / "indirect"
    path.write_bytes(elf_file({".debug_info": unit, ".debug_abbrev": abbrev}))
    info = DebugInfo(Elf(str(path)))
    die = entry(info)
    assert die.string(c.DW_AT_name) == "v"
    assert die.unsigned(c.DW_AT_byte_size) == 7
    assert die.form(c.DW_AT_name) == c.DW_FORM_string
    assert [found.offset for found in info.find_named("v", frozenset((c.DW_TAG_variable,)))] == [
        die.offset
    ]


def test_layout_factories_read_back(tmp_path: Path) -> None:
    root = compile_unit(
        base_die("int", 4, c.DW_ATE_signed),
        struct_die("S", 8, [member_die("a", "int", 0), member_die("b", "int", 4)]),
        typedef_die("T", "S"),
    )
    info = opened(tmp_path, Unit(root))
    _, struct, alias = info.children(next(info.units()).top)
    assert info.follow(alias, c.DW_AT_type) == struct
    assert [
        (member.string(c.DW_AT_name), member.unsigned(c.DW_AT_data_member_location))
        for member in info.children(struct)
    ] == [("a", 0), ("b", 4)]
    assert info.find_named("b", frozenset((c.DW_TAG_member,)))


def test_a_file_without_debug_information(tmp_path: Path) -> None:
    path = tmp_path / "bare"
    path.write_bytes(elf_file({}))
    info = DebugInfo(Elf(str(path)))
    assert not info.present
    for ask in (
        lambda: list(info.units()),
        lambda: info.function_at(Address(1)),
        lambda: list(info.find_named("x", frozenset((1,)))),
        lambda: info.die(DieOffset(1)),
    ):
        with pytest.raises(DebugInfoError) as raised:
            ask()
        assert raised.value.code == "FC0903"
        assert str(raised.value) == f"{path}: no debug information"


def test_codes_of_several_bytes(tmp_path: Path) -> None:
    entries = [
        Entry(c.DW_TAG_variable, (Attr(AT + at, c.DW_FORM_data1, at & 0xFF),)) for at in range(300)
    ]
    special = subprogram_die("late", 0x100, 0x110)
    info = opened(tmp_path, Unit(compile_unit(*entries, special, low=0x100, high=0x110), 4))
    children = list(info.children(next(info.units()).top))
    assert [die.unsigned(AT + at) for at, die in enumerate(children[:300])] == [
        at & 0xFF for at in range(300)
    ]
    assert info.function_at(Address(0x100)) == children[300]
    assert uleb(302) == bytes([0xAE, 0x02])


def test_values_are_what_their_form_says(tmp_path: Path) -> None:
    value: Value = b"\x01"
    die = one(
        tmp_path,
        Attr(c.DW_AT_high_pc, c.DW_FORM_block1, value),
        Attr(c.DW_AT_low_pc, c.DW_FORM_addr, 1),
    )
    with pytest.raises(DebugInfoError, match="DW_AT_high_pc is neither address nor length"):
        die.unit.info.ranges(die)
    with pytest.raises(DebugInfoError, match="attribute 0x12 is not a reference"):
        die.unit.info.follow(die, c.DW_AT_high_pc)


def test_a_split_unit_names_its_file(tmp_path: Path) -> None:
    name = Attr(c.DW_AT_GNU_dwo_name, c.DW_FORM_string, "f.dwo")
    stated = Attr(c.DW_AT_GNU_dwo_id, c.DW_FORM_data8, 7)
    indexed = Attr(AT, c.DW_FORM_addrx, 0x100)  # for a .debug_addr, without which none is split
    root = compile_unit(low=0x100, high=0x110, extra=(name, stated))
    info = opened(tmp_path, Unit(root, 4), Unit(compile_unit(extra=(indexed,)), 5))
    split, whole = info.files.own.units()
    assert (split.split_file, split.dwo_id, split.skeleton) == ("f.dwo", 7, split)
    assert whole.split_file is None
    with pytest.raises(DebugInfoError, match=r"the split debug file f\.dwo is not found") as raised:
        info.unit_of_address(Address(0x108))
    assert raised.value.code == "FC0909"
    assert list(info.units()) == [split, whole]
    with pytest.raises(DebugInfoError, match=r"f\.dwo is not found"):
        list(info.find_named("there", frozenset({c.DW_TAG_base_type})))


def test_units_give_their_bytes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fetchc.debuginfo.dwarf.debug_info._RESIDENT", 1)
    units = [Unit(compile_unit(base_die(f"t{at}", 4, 5), name=f"{at}.c"), 4) for at in range(5)]
    info = opened(tmp_path, *units)
    for _ in range(2):
        tops = [unit.top for unit in info.units()]
        names = [child.string(c.DW_AT_name) for top in tops for child in info.children(top)]
        assert names == [f"t{at}" for at in range(5)]
        assert sum(unit._data is not None for unit in info.units()) == 1
