"""Places that lead in circles, to nothing, or have no end: refused with the place of the fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf.debug_info import DebugInfo
from fetchc.debuginfo.dwarf.variable_extents import extents
from fetchc.debuginfo.dwarf.variables import place_at
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import Absent, Place
from fetchc.quantities import Address
from tests.support.dwarfwriter import Attr, Entry, Unit, base_die, compile_unit, program

LOW, HIGH = 0x1000, 0x1040


def place(folder: Path, expression: bytes, frame_base: bytes | None = None) -> Place:
    """Where the variable with the expression is, in a function with the frame base."""
    name = Attr(c.DW_AT_name, c.DW_FORM_string, "v")
    variable = Entry(
        c.DW_TAG_variable, (name, Attr(c.DW_AT_location, c.DW_FORM_exprloc, expression))
    )
    attributes = [
        Attr(c.DW_AT_name, c.DW_FORM_string, "f"),
        Attr(c.DW_AT_low_pc, c.DW_FORM_addr, LOW),
        Attr(c.DW_AT_high_pc, c.DW_FORM_data4, HIGH - LOW),
    ]
    if frame_base is not None:
        attributes.append(Attr(c.DW_AT_frame_base, c.DW_FORM_exprloc, frame_base))
    function = Entry(c.DW_TAG_subprogram, tuple(attributes), (variable,))
    unit = Unit(compile_unit(base_die("int", 4, 5), function))
    info = DebugInfo(Elf(program(folder / "hostile", [unit])))
    *_, die = info.children(next(info.units()).top)
    (entry,) = info.children(die)
    extents(info, entry, die)
    return place_at(info, entry, die, Address(LOW + 8))


def offset_of_variable(folder: Path) -> int:
    """Where the variable's entry stands: the same for expressions of the same length."""
    place(folder, b"\x96" * 6)  # DW_OP_nop
    info = DebugInfo(Elf(str(folder / "hostile")))
    *_, die = info.children(next(info.units()).top)
    (entry,) = info.children(die)
    return entry.offset


def test_implicit_pointers_in_a_circle(tmp_path: Path) -> None:
    at = offset_of_variable(tmp_path)
    found = place(tmp_path, b"\xa0" + at.to_bytes(4, "little") + b"\0")
    assert isinstance(found, Absent)
    assert "pointers that are not in memory" in found.reason


@pytest.mark.parametrize("to", [0, 5, 0x7FFFFFFF, 0xFFFFFFFF])
def test_implicit_pointers_to_no_entry(tmp_path: Path, to: int) -> None:
    with pytest.raises(DebugInfoError) as caught:
        place(tmp_path, b"\xa0" + to.to_bytes(4, "little") + b"\0")
    assert caught.value.section == ".debug_info"


@pytest.mark.parametrize(
    "expression",
    [
        b"\x10" + b"\x80" * 4000 + b"\x01\x9f",  # constu
        b"\x91" + b"\xff" * 4000 + b"\x7f",  # fbreg
        b"\x9e\xff\xff\xff\xff\x7f",  # implicit_value of what is not there
        b"\xa3\xff\xff\xff\xff\x0f",  # entry_value
        b"\x12" * 4000,  # dup of an empty stack
    ],
    ids=["leb", "sleb", "block", "entry", "stack"],
)
def test_expressions_that_run_on(tmp_path: Path, expression: bytes) -> None:
    refused: DebugInfoError | None = None
    found: Place | None = None
    try:
        found = place(tmp_path, expression, b"\x9c")
    except DebugInfoError as error:
        refused = error
    assert isinstance(found, Absent) or (refused is not None and refused.path != "")


def test_a_frame_base_that_counts_from_itself(tmp_path: Path) -> None:
    found = place(tmp_path, b"\x91\x08", b"\x91\x00")
    assert isinstance(found, Absent)


def test_a_stack_that_grows_to_no_end(tmp_path: Path) -> None:
    found = place(tmp_path, b"\x31" + b"\x12\x1e" * 20000 + b"\x9f")
    assert not isinstance(found, Absent)
    huge = place(tmp_path, b"\x0e" + b"\xff" * 8 + b"\x12\x1e" * 20000 + b"\x9f")
    assert not isinstance(huge, Absent)
