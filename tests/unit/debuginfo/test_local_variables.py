"""Variables whose parts stand in several entries, and in several units."""

from __future__ import annotations

from pathlib import Path

from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf.debug_info import DebugInfo
from fetchc.debuginfo.dwarf.variables import locals_at
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.quantities import Address
from tests.support.dwarfwriter import Attr, Entry, Ref, Unit, base_die, compile_unit, program


def _name(name: str) -> Attr:
    return Attr(c.DW_AT_name, c.DW_FORM_string, name)


def _parameter(name: str, line: int, label: str) -> Entry:
    attributes = (
        _name(name),
        Attr(c.DW_AT_decl_line, c.DW_FORM_data1, line),
        Attr(c.DW_AT_type, c.DW_FORM_ref_addr, Ref("int")),
    )
    return Entry(c.DW_TAG_formal_parameter, attributes, (), label)


def _abstract(unit: str) -> Entry:
    children = (
        _parameter("to", 7, f"{unit} to"),
        _parameter("from", 7, f"{unit} from"),
        _parameter("count", 8, f"{unit} count"),
    )
    return Entry(c.DW_TAG_subprogram, (_name("copy"),), children, unit)


def _origin(label: str) -> Attr:
    return Attr(c.DW_AT_abstract_origin, c.DW_FORM_ref_addr, Ref(label))


def _passed(origin: str, register: int) -> Entry:
    location = Attr(c.DW_AT_location, c.DW_FORM_exprloc, bytes([0x50 + register]))
    return Entry(c.DW_TAG_formal_parameter, (_origin(origin), location))


def _code(low: int, high: int) -> tuple[Attr, ...]:
    return (
        Attr(c.DW_AT_low_pc, c.DW_FORM_addr, low),
        Attr(c.DW_AT_high_pc, c.DW_FORM_data4, high - low),
    )


def test_variables_of_a_call_may_refer_to_another_unit_than_the_call(tmp_path: Path) -> None:
    # As GCC's link-time optimisation writes an inline function of a header: Debian's python3.11
    # has __src and __dest of strcpy so.
    call = Entry(
        c.DW_TAG_inlined_subroutine,
        (_origin("one"), *_code(0x1010, 0x1020)),
        (_passed("two from", 4), _passed("two to", 5)),
    )
    function = Entry(c.DW_TAG_subprogram, (_name("f"), *_code(0x1000, 0x1030)), (call,))
    units = [
        Unit(compile_unit(base_die("int", 4, 5, "int"), _abstract("one"))),
        Unit(compile_unit(_abstract("two"))),
        Unit(compile_unit(function)),
    ]
    info = DebugInfo(Elf(program(tmp_path / "program", units)))
    *_, last = info.units()
    (die,) = info.children(last.top)
    found = locals_at(info, die, Address(0x1018))
    assert [variable.name for variable in found] == ["to", "from", "count"]
    placed = [info.die(variable.die).has(c.DW_AT_location) for variable in found]
    assert placed == [True, True, False]
    assert info.die(found[0].die).location(c.DW_AT_location) == b"\x55"
