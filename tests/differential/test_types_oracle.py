"""Layouts of all structures of real files, against a second reading of them by pyelftools.

The oracle knows the standard's words for members, sizes and names and shares no code with
the reader; only which types it writes how is agreed on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.program import types
from fetchc.program.types import StructType
from fetchc.quantities import TypeId
from tests.support.programs import fixture
from tests.support.typed_programs import build

Row = tuple[str, int, int | None, int | None, str]
"""Name, offset (bits for a bit field), width of a bit field, size, type."""

AGGREGATE = {
    "DW_TAG_structure_type": "struct",
    "DW_TAG_union_type": "union",
    "DW_TAG_class_type": "class",
}
TRANSPARENT = {
    "DW_TAG_typedef",
    "DW_TAG_const_type",
    "DW_TAG_volatile_type",
    "DW_TAG_restrict_type",
    "DW_TAG_atomic_type",
}
POINTERS = {"DW_TAG_pointer_type", "DW_TAG_reference_type", "DW_TAG_rvalue_reference_type"}
GO = 0x16

C_BUILDS = [
    ("gcc", "-gdwarf-2", "-O0"),
    ("gcc", "-gdwarf-3", "-gstrict-dwarf", "-O0"),
    ("gcc", "-gdwarf-4", "-O2"),
    ("gcc", "-gdwarf-5", "-O0"),
    ("gcc", "-gdwarf-5", "-O2", "-flto"),
    ("clang", "-gdwarf-2", "-O0"),
    ("clang", "-gdwarf-4", "-O2"),
    ("clang", "-gdwarf-5", "-O0"),
    ("g++", "-gdwarf-5", "-O0"),
    ("g++", "-gdwarf-4", "-O2", "-fdebug-types-section"),
    ("clang++", "-gdwarf-5", "-O1"),
]
FIXTURES = ["go/dnsforward/go1.15", "go/dnsforward/go1.27", "c/layouts/gcc-O2-dwarf5-zlib"]


def text(die: Any, attribute: str = "DW_AT_name") -> str:
    found = die.attributes.get(attribute)
    return "" if found is None else found.value.decode("utf-8", "surrogateescape")


def number(die: Any, attribute: str) -> int | None:
    found = die.attributes.get(attribute)
    return found.value if found is not None and isinstance(found.value, int) else None


def target(die: Any) -> Any:
    if "DW_AT_type" not in die.attributes:
        return None
    found = die.get_DIE_from_attribute("DW_AT_type")
    if "DW_AT_signature" in found.attributes:  # a stand-in for a type unit's type
        return found.get_DIE_from_attribute("DW_AT_signature")
    return found


def expected_size(die: Any) -> int | None:
    if die is None:
        return None
    size = number(die, "DW_AT_byte_size")
    if die.tag == "DW_TAG_ptr_to_member_type":
        to_function = target(die).tag == "DW_TAG_subroutine_type"
        return int(die.cu["address_size"]) * (2 if to_function else 1)
    if die.tag == "DW_TAG_array_type" and (
        size is None or "DW_AT_GNU_vector" not in die.attributes
    ):
        size = expected_size(target(die))
        for child in die.iter_children():
            if child.tag == "DW_TAG_subrange_type":
                count = expected_count(child)
                size = None if size is None or count is None else size * count
        return size
    if size is None and die.tag in POINTERS:
        return int(die.cu["address_size"])
    return expected_size(target(die)) if size is None else size


def expected_count(die: Any) -> int | None:
    count = number(die, "DW_AT_count")
    upper = number(die, "DW_AT_upper_bound")
    if count is None and upper is not None:
        count = (upper + 1) % (1 << 64)
    return count


def expected_type(die: Any) -> str:
    if die is None:
        return "void"
    name = text(die)
    go = die.cu.get_top_DIE().attributes["DW_AT_language"].value == GO
    if go:
        return name  # every type that a member of Go can have has one
    if die.tag == "DW_TAG_array_type":
        counts = [
            expected_count(child)
            for child in die.iter_children()
            if child.tag == "DW_TAG_subrange_type"
        ]
        return expected_type(target(die)) + "".join(f"[{count}]" for count in counts)
    if die.tag == "DW_TAG_pointer_type":
        return expected_type(target(die)) + "*"
    if die.tag in POINTERS:
        return expected_type(target(die)) + "&"
    if die.tag in TRANSPARENT - {"DW_TAG_typedef"}:
        return f"{die.tag[7:-5]} {expected_type(target(die))}"
    if die.tag == "DW_TAG_ptr_to_member_type":
        return "member pointer"
    return "function" if die.tag == "DW_TAG_subroutine_type" else name


def expected_rows(die: Any, little: bool) -> Iterator[Row]:
    for child in die.iter_children():
        attributes = child.attributes
        if child.tag == "DW_TAG_inheritance":
            if "DW_AT_virtuality" not in attributes:
                offset = number(child, "DW_AT_data_member_location") or 0
                of = target(child)
                yield text(of), offset, None, expected_size(of), text(of)
        elif child.tag == "DW_TAG_member":
            if "DW_AT_external" in attributes or "DW_AT_declaration" in attributes:
                continue
            of = target(child)
            offset, width = expected_place(child, of, little)
            yield text(child), offset, width, expected_size(of), expected_type(of)


def expected_place(die: Any, of: Any, little: bool) -> tuple[int, int | None]:
    location = die.attributes.get("DW_AT_data_member_location")
    offset = 0
    if location is not None and isinstance(location.value, int):
        offset = location.value
    elif location is not None:
        assert location.value[0] == 0x23  # DW_OP_plus_uconst
        offset = sum((b & 0x7F) << 7 * i for i, b in enumerate(location.value[1:]))
    width = number(die, "DW_AT_bit_size")
    if width is None:
        return offset, None
    if "DW_AT_data_bit_offset" in die.attributes:
        return number(die, "DW_AT_data_bit_offset") or 0, width
    assert little
    storage = number(die, "DW_AT_byte_size") or expected_size(of) or 0
    from_top = number(die, "DW_AT_bit_offset") or 0
    if from_top >= 1 << 63:  # clang writes a negative one without sign
        from_top -= 1 << 64
    return 8 * (offset + storage) - from_top - width, width


def plain(name: str) -> str:
    """Without the scopes, which the oracle does not put together."""
    depth = 0
    for position in range(len(name) - 1, 0, -1):
        depth += (name[position] == ">") - (name[position] == "<")
        if depth == 0 and name[position - 1 : position + 1] == "::":
            return name[position + 1 :]
    return name


def shown(program: DwarfProgram, type_id: TypeId, go: bool) -> str:
    found = program.type(type_id)
    match found:
        case types.ArrayType(name=name) if go:
            return name
        case types.PointerType(name=name) if go:
            return name
        case types.ArrayType(element=element, count=count):
            # The counts of the outer dimension come first: int[2][3] has elements int[3].
            inner = shown(program, element, go)
            cut = inner.find("[")
            if cut < 0 or not isinstance(program.type(element), types.ArrayType):
                return f"{inner}[{count}]"
            return f"{inner[:cut]}[{count}]{inner[cut:]}"
        case types.PointerType(target=to, reference=reference):
            return shown(program, to, go) + ("&" if reference else "*")
        case types.QualifiedType(qualifier=qualifier, target=to):
            return f"{qualifier} {shown(program, to, go)}"
        case types.VoidType():
            return "void"
        case types.FunctionType():
            return "function"
        case types.EnumType(name=name) | types.StructType(name=name) if "::*" in name:
            return "member pointer"
        case _:
            return plain(found.name)


def size_of(program: DwarfProgram, type_id: TypeId) -> int | None:
    found = program.type(type_id)
    match found:
        case types.NamedType(target=to) | types.QualifiedType(target=to):
            return size_of(program, to)
        case types.VoidType() | types.FunctionType() | types.DeclaredType():
            return None
        case _:
            return found.size


def rows(program: DwarfProgram, found: StructType, go: bool) -> Iterator[Row]:
    for member in found.members:
        if isinstance(program.type(member.type), types.UnknownType) and member.embedded:
            continue  # a virtual base
        name = plain(member.name) if member.embedded and not go else member.name
        offset = member.offset if member.bits is None else member.bits.offset
        width = None if member.bits is None else member.bits.width
        of = shown(program, member.type, go)
        yield name, offset, width, size_of(program, member.type), of


def disagreements(path: Path, spoil: str | None = None) -> tuple[int, list[str]]:
    """Structures compared, and what differs. Members called ``spoil`` are moved by a byte."""
    program = DwarfProgram(str(path))
    compared, wrong = 0, []
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        info: Any = elf.get_dwarf_info(relocate_dwarf_sections=False)
        # Entries of .debug_types are numbered on from the end of .debug_info.
        behind = info.debug_info_sec.size
        units = [(unit, 0) for unit in info.iter_CUs()]
        if info.debug_types_sec is not None:
            units += [(unit, behind) for unit in info.iter_TUs()]
        for unit, bias in units:
            go = unit.get_top_DIE().attributes["DW_AT_language"].value == GO
            for die in unit.iter_DIEs():
                if die.tag not in AGGREGATE or "DW_AT_byte_size" not in die.attributes:
                    continue
                kind = die.attributes.get(0x2900)
                if kind is not None and kind.value in (23, 24):
                    continue  # strings and slices have types of their own
                found = program.type(TypeId(bias + die.offset))
                assert isinstance(found, StructType), found
                expected = list(expected_rows(die, elf.little_endian))
                if spoil is not None:
                    expected = [(r[0], r[1] + (r[0] == spoil), *r[2:]) for r in expected]
                actual = list(rows(program, found, go))
                compared += 1
                name, size = text(die), number(die, "DW_AT_byte_size")
                if (plain(found.name), found.kind, found.size) != (
                    name,
                    AGGREGATE[die.tag],
                    size,
                ):
                    wrong.append(f"{die.offset:#x} {name} {size}: {found}")
                if actual != expected:
                    wrong.append(f"{die.offset:#x} {name}:\n  {actual}\n  {expected}")
    return compared, wrong


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("types")


@pytest.mark.parametrize("flags", C_BUILDS, ids=" ".join)
def test_layouts_of_built_programs(directory: Path, flags: tuple[str, ...]) -> None:
    compared, wrong = disagreements(build(directory, *flags))
    assert wrong == []
    assert compared > 9


@pytest.mark.parametrize("name", FIXTURES)
def test_layouts_of_fixtures(name: str) -> None:
    compared, wrong = disagreements(fixture(name))
    assert wrong == []
    assert compared > 9


def test_a_member_moved_by_a_byte_is_noticed(directory: Path) -> None:
    _, wrong = disagreements(build(directory, "gcc", "-gdwarf-5", "-O0"), spoil="anon_f")
    assert len(wrong) == 1
    assert "anon_f" in wrong[0]
