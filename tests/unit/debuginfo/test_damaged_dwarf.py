"""DWARF that is wrong in one place: the exact message, with section and offset."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf.abbrev import AbbrevTable, DeclarationCache
from fetchc.debuginfo.dwarf.debug_info import DebugInfo
from fetchc.debuginfo.dwarf.dies import Die
from fetchc.debuginfo.dwarf.forms import encoding
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address, DieOffset
from tests.support.assembler import uleb
from tests.support.dwarfwriter import Attr, Entry, Unit, compile_unit, write
from tests.support.elfwriter import elf_file

# One declaration with children and a name, one variable with each kind of value.
ABBREV = b"\x01\x11\x01\x03\x08\0\0" + b"\x02\x34\x00\x03\x0e\x02\x18\x49\x13\0\0" + b"\0"


def info_of(path: Path, sections: dict[str, bytes]) -> DebugInfo:
    file = path / "file"
    file.write_bytes(elf_file(sections))
    return DebugInfo(Elf(str(file)))


def unit(body: bytes, version: int = 4, address_size: int = 8, abbrev: int = 0) -> bytes:
    header = version.to_bytes(2, "little")
    if version == 5:
        header += bytes([c.DW_UT_compile, address_size]) + abbrev.to_bytes(4, "little")
    else:
        header += abbrev.to_bytes(4, "little") + bytes([address_size])
    content = header + body
    return len(content).to_bytes(4, "little") + content


def walk(info: DebugInfo) -> int:
    """Read every value of every entry."""
    count = 0
    for each in info.units():
        stack: list[Die] = [each.top]
        while stack:
            die = stack.pop()
            count += 1
            for attribute, _ in die.attributes():
                die.string(attribute)
            stack.extend(info.children(die))
    return count


def message(path: Path, sections: dict[str, bytes]) -> str:
    with pytest.raises(DebugInfoError) as raised:
        walk(info_of(path, sections))
    text = str(raised.value)
    assert text.startswith(f"{path}/file: ")
    return f"{raised.value.code} " + text[len(f"{path}/file: ") :]


GOOD = b"\x01u\0" + b"\x02\x01\0\0\0\x01\x9c\x0b\0\0\0" + b"\0"


def test_the_undamaged_one_is_read(tmp_path: Path) -> None:
    sections = {".debug_info": unit(GOOD), ".debug_abbrev": ABBREV, ".debug_str": b"\0v\0"}
    assert walk(info_of(tmp_path, sections)) == 2


CASES = {
    "header": (b"\x09\0\0\0\x04\0", "FC0904 .debug_info+0x0: a length of 0x9 bytes runs past"),
    "length": (b"\x09\0", "FC0904 .debug_info+0x0: truncated 4-byte number"),
    "version": (unit(GOOD, 6), "FC0905 .debug_info+0x0: DWARF version 6; versions 2 to 5 are read"),
    "address size": (unit(GOOD, 4, 3), "FC0905 .debug_info+0x0: addresses of 3 bytes"),
    "unit type": (
        b"\x08\0\0\0\x05\0\x77\x08\0\0\0\0",
        "FC0905 .debug_info+0x0: unknown unit type 0x77",
    ),
    "no entries": (unit(b""), "FC0904 .debug_info+0xb: no entry here: the unit ends"),
    "null top": (unit(b"\0"), "FC0904 .debug_info+0xb: no entry here: it is the end of a list"),
    "no such code": (
        unit(b"\x07"),
        "FC0904 .debug_info+0xb: abbreviation 7 is not in the table at .debug_abbrev+0x0",
    ),
    "string": (unit(b"\x01unit"), "FC0904 .debug_info+0xb: the entry cannot be read:"),
    "children": (unit(b"\x01u\0"), "FC0904 .debug_info+0xe: a list of children without an end"),
    "block": (
        unit(b"\x01u\0\x02\x01\0\0\0\x7f\x9c"),
        "FC0904 .debug_info+0xe: the entry cannot be read: block runs past the end of the unit",
    ),
    "long LEB128": (
        unit(b"\x01u\0\x02\x01\0\0\0" + b"\x80" * 30),
        "FC0904 .debug_info+0xe: the entry cannot be read: LEB128 number too long",
    ),
    "string offset": (
        unit(GOOD.replace(b"\x01\0\0\0", b"\x77\0\0\0")),
        "FC0904 .debug_str+0x77: string outside the section",
    ),
    "string end": (
        unit(GOOD.replace(b"\x01\0\0\0", b"\x03\0\0\0")),
        "FC0904 .debug_str+0x3: string without an end",
    ),
    "abbreviations": (
        unit(GOOD, abbrev=0x999),
        "FC0904 .debug_abbrev+0x999: abbreviation table outside the section",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_damaged_units(tmp_path: Path, case: str) -> None:
    content, expected = CASES[case]
    sections = {
        ".debug_info": content,
        ".debug_abbrev": ABBREV,
        ".debug_str": b"\0v\0no end",
    }
    assert message(tmp_path, sections).startswith(expected)


ABBREVIATIONS = {
    "truncated": (ABBREV[:12], "FC0904 .debug_abbrev+0x7: truncated abbreviation"),
    "unknown form": (
        ABBREV.replace(b"\x49\x13", b"\x49\x6f"),
        "FC0905 .debug_abbrev+0x7: abbreviation 2 cannot be read: unknown form 0x6f",
    ),
    "endless number": (
        b"\x01\x11\x01" + b"\xff" * 5000,
        "FC0904 .debug_abbrev+0x0: truncated abbreviation",
    ),
    "missing": (None, "FC0904 .debug_abbrev: missing, but entries refer to it"),
}


# Tag and children of two declarations with a constant 0 (DW_FORM_implicit_const) before two
# zeros, with no attribute at all, and with zeros that are written longer than they are.
ZEROS = {
    "constant": b"\x01\x11\x01\x3a\x21\0\0\0" + b"\x02\x34\0\x3a\x21\0\x03\x08\0\0" + b"\0",
    "empty": b"\x01\x11\0\0\0" + b"\x02\x34\0\0\0" + b"\0",
    "long": b"\x01\x11\0\x3a\x21\x80\0\0\0" + b"\x02\x34\0\x80\0\0" + b"\0",
    "unended": b"\x01\x11\x01\x03\x08\0\0" + b"\x02\x34\0\x3a\x21\0\0\0",
}


@pytest.mark.parametrize("case", ZEROS)
def test_zeros_in_abbreviations(tmp_path: Path, case: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(elf_file({".debug_abbrev": ZEROS[case]}))
    section = Elf(str(path)).open_section(".debug_abbrev")
    assert section is not None
    table = AbbrevTable(section, 0, encoding(4, 4, 8, True), DeclarationCache())
    found = [table.declaration(code) for code in (2, 1)]
    assert [declaration and declaration.tag for declaration in found] == [0x34, 0x11]
    attributes = {"constant": [2, 1], "empty": [0, 0], "long": [0, 1], "unended": [1, 1]}[case]
    assert [declaration and len(declaration.attributes) for declaration in found] == attributes
    if case != "unended":
        assert [code for code, _ in table.all()] == [1, 2]
        assert [code for code, _ in table.tagged(frozenset((0x34,)))] == [2]


def test_a_tag_without_an_end_is_met_by_those_who_look_for_tags(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(elf_file({".debug_abbrev": b"\x01\x11\x01\0\0\x02" + b"\xb4" * 20 + ABBREV}))
    section = Elf(str(path)).open_section(".debug_abbrev")
    assert section is not None
    table = AbbrevTable(section, 0, encoding(4, 4, 8, True), DeclarationCache())
    with pytest.raises(DebugInfoError) as raised:
        list(table.tagged(frozenset((0x34,))))
    assert raised.value.what == "malformed abbreviation: LEB128 number too long"
    assert (raised.value.section, raised.value.offset) == (".debug_abbrev", 5)


@pytest.mark.parametrize("case", ABBREVIATIONS)
def test_damaged_abbreviations(tmp_path: Path, case: str) -> None:
    content, expected = ABBREVIATIONS[case]
    sections = {".debug_info": unit(GOOD), ".debug_str": b"\0v\0"}
    if content is not None:
        sections[".debug_abbrev"] = content
    assert message(tmp_path, sections).startswith(expected)


def test_a_missing_string_section_is_named(tmp_path: Path) -> None:
    sections = {".debug_info": unit(GOOD), ".debug_abbrev": ABBREV}
    assert message(tmp_path, sections) == ("FC0904 .debug_str: missing, but entries refer to it")


@pytest.mark.parametrize("target", [0, 0x0B, 0x0C, 0xFFFF])
def test_a_sibling_that_leads_back_or_out_is_refused(tmp_path: Path, target: int) -> None:
    child = Entry(c.DW_TAG_variable)
    block = Entry(
        c.DW_TAG_lexical_block, (Attr(c.DW_AT_sibling, c.DW_FORM_ref4, target),), (child,)
    )
    file = tmp_path / "file"
    file.write_bytes(elf_file(write([Unit(compile_unit(block, child), 4)])))
    info = DebugInfo(Elf(str(file)))
    with pytest.raises(DebugInfoError, match="DW_AT_sibling points to"):
        list(info.children(next(info.units()).top))


def test_references_that_lead_nowhere(tmp_path: Path) -> None:
    entry = Entry(
        c.DW_TAG_variable,
        (
            Attr(1 << 13, c.DW_FORM_ref4, 0x7FFFFFFF),
            Attr((1 << 13) + 1, c.DW_FORM_GNU_ref_alt, 5),
            Attr((1 << 13) + 2, c.DW_FORM_GNU_strp_alt, 5),
        ),
    )
    file = tmp_path / "file"
    file.write_bytes(elf_file(write([Unit(compile_unit(entry), 4)])))
    info = DebugInfo(Elf(str(file)))
    die = next(info.children(next(info.units()).top))
    with pytest.raises(DebugInfoError, match="no entry here: the unit ends"):
        info.follow(die, 1 << 13)
    for ask in (
        lambda: info.follow(die, (1 << 13) + 1),
        lambda: die.string((1 << 13) + 2),
    ):
        with pytest.raises(DebugInfoError, match=r"\.gnu_debugaltlink: missing") as raised:
            ask()
        assert raised.value.code == "FC0904"
    for offset in (0, 5, 1 << 40, -3):
        with pytest.raises(DebugInfoError, match="no unit has an entry at this offset"):
            info.die(DieOffset(offset))


RANGES = {
    "kind": (b"\x0f", "FC0904 .debug_rnglists+0x0: unknown range list entry 0xf"),
    "end": (b"\x04\x01\x02", "FC0904 .debug_rnglists+0x3: truncated byte"),
    "index": (b"\x01\x05\0", "FC0904 .debug_addr: missing, but entries refer to it"),
}


@pytest.mark.parametrize("case", RANGES)
def test_damaged_range_lists(tmp_path: Path, case: str) -> None:
    content, expected = RANGES[case]
    root = compile_unit(extra=(Attr(c.DW_AT_ranges, c.DW_FORM_sec_offset, 0),))
    info = info_of(tmp_path, write([Unit(root)]) | {".debug_rnglists": content})
    for _ in range(2):  # the damage is met again, not taken for the end
        with pytest.raises(DebugInfoError) as raised:
            info.unit_of_address(Address(1))
        assert f"{raised.value.code} {raised.value}".replace(f"{tmp_path}/file: ", "") == expected


def test_damaged_aranges(tmp_path: Path) -> None:
    sections = write([Unit(compile_unit())])
    cases = {
        b"\x0c\0\0\0": "a length of 0xc bytes runs past the end",
        b"\x0c\0\0\0\x03\0" + bytes(4) + b"\x08\0" + bytes(4): "address ranges of version 3",
        b"\x08\0\0\0\x02\0" + bytes(4) + b"\x05\0": "address ranges of version 2, address size 5",
        b"\xf3\xff\xff\xff" + bytes(20): "address ranges of 4294967287 bytes",
    }
    for content, expected in cases.items():
        info = info_of(tmp_path, sections | {".debug_aranges": content})
        with pytest.raises(DebugInfoError, match=expected) as raised:
            info.unit_of_address(Address(1))
        assert raised.value.section == ".debug_aranges"


def test_a_long_row_of_codes_is_no_recursion(tmp_path: Path) -> None:
    # 50,000 levels of nesting: walking and naming ancestors take no stack.
    abbrev = b"\x01\x11\x01\0\0" + b"\x02\x0b\x01\0\0" + b"\0"
    depth = 50_000
    body = b"\x01" + b"\x02" * depth + b"\0" * (depth + 1)
    info = info_of(tmp_path, {".debug_info": unit(body), ".debug_abbrev": abbrev})
    deepest = info.die(DieOffset(11 + depth))
    assert len(info.ancestors(deepest)) == depth
    assert [die.offset for die in info.children(next(info.units()).top)] == [12]
    assert uleb(depth)
