"""Location lists as bytes of both generations, and a variable's place by address."""

from __future__ import annotations

from typing import Any

import pytest

from fetchc.debuginfo.byte_reader import Cursor
from fetchc.debuginfo.dwarf.constants import (
    DW_AT_const_value,
    DW_AT_frame_base,
    DW_AT_location,
    DW_FORM_addr,
    DW_FORM_block1,
    DW_FORM_data4,
    DW_FORM_string,
)
from fetchc.debuginfo.dwarf.dies import LocationListRef
from fetchc.debuginfo.dwarf.location_lists import entries
from fetchc.debuginfo.dwarf.variable_definitions import constant_of
from fetchc.debuginfo.dwarf.variable_extents import extents
from fetchc.debuginfo.dwarf.variables import frame_base_at, place_at
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import (
    Absent,
    Constant,
    Extent,
    FrameRelative,
    InMemory,
    InRegister,
    Place,
)
from fetchc.quantities import Address, ByteOffset, DwarfRegister

WHOLE_LIST = LocationListRef(0)
NOT_HERE = "the compiler gives it no location (it was optimized out)"


class FakeSection:
    def __init__(self, name: str, data: bytes, little: bool) -> None:
        self.name, self.data, self.little = name, data, little

    def cursor(self, offset: int) -> Cursor:
        return Cursor("a.out", self.name, self.data, offset, None, self.little)


class FakeInfo:
    """As much of DebugInfo as location lists ask for; each entry is its own origin."""

    def __init__(self, sections: dict[str, str], little: bool = True) -> None:
        self.sections = sections
        self.little = little

    def open_section(self, name: str, unit: FakeUnit) -> FakeSection | None:
        raw = self.sections.get(name)
        return None if raw is None else FakeSection(name, bytes.fromhex(raw), self.little)

    def inherited(self, die: FakeDie, attribute: int) -> FakeDie | None:
        return die if attribute in die.values else None

    def ranges(self, die: FakeDie) -> tuple[tuple[int, int], ...]:
        return die.code


class FakeUnit:
    path = "a.out"
    version = 5
    offset_size = 4
    is_split = False
    low_pc = Address(0x1000)

    def __init__(self, version: int = 5, address_size: int = 8, little: bool = True) -> None:
        self.version, self.address_size, self.little = version, address_size, little

    @property
    def info(self) -> FakeUnit:
        return self

    @property
    def elf(self) -> FakeUnit:
        return self

    @property
    def tables(self) -> FakeUnit:
        return self

    def is_discarded(self, address: Address) -> bool:
        return address == 0

    def address_at(self, index: int) -> Address:
        return Address(0x4000 + 0x100 * index)


class FakeDie:
    """An entry with expressions in hex, lists, or constants as its attributes."""

    offset = 0x2A

    def __init__(
        self,
        values: dict[int, str | int | LocationListRef],
        unit: FakeUnit | None = None,
        code: tuple[tuple[int, int], ...] = (),
        form: int = DW_FORM_data4,
    ) -> None:
        self.values, self.unit, self.code = values, unit or FakeUnit(), code
        self._form = form

    def location(self, attribute: int) -> bytes | LocationListRef | None:
        value = self.values[attribute]
        if isinstance(value, str):
            return bytes.fromhex(value)
        return value if isinstance(value, LocationListRef) else None

    def form(self, attribute: int) -> int | None:
        return self._form if attribute in self.values else None

    def constant(self, attribute: int) -> int | None:
        value = self.values[attribute]
        return value if isinstance(value, int) else None

    def block(self, attribute: int) -> bytes | None:
        value = self.values[attribute]
        is_block = isinstance(value, str) and self._form == DW_FORM_block1
        return bytes.fromhex(str(value)) if is_block else None

    def string(self, attribute: int) -> str | None:
        value = self.values[attribute]
        return value if isinstance(value, str) and self._form == DW_FORM_string else None


def read(raw: str, unit: FakeUnit | None = None) -> list[tuple[int, int, str]]:
    unit = unit or FakeUnit()
    name = ".debug_loc" if unit.version <= 4 else ".debug_loclists"
    info: Any = FakeInfo({name: raw}, unit.little)
    lists: Any = unit
    return [(e.start, e.end, e.expression.hex()) for e in entries(info, lists, WHOLE_LIST)]


def extent(start: int, end: int, place: Place) -> Extent:
    return Extent(Address(start), Address(end), place)


def register(number: int) -> InRegister:
    return InRegister(DwarfRegister(number))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("00", []),
        ("04 10 20 01 55 00", [(0x1010, 0x1020, "55")]),  # offset_pair
        ("01 02 04 10 20 01 55 00", [(0x4210, 0x4220, "55")]),  # base_addressx
        ("02 01 02 01 55 00", [(0x4100, 0x4200, "55")]),  # startx_endx
        ("03 01 10 01 55 00", [(0x4100, 0x4110, "55")]),  # startx_length
        ("06 0020000000000000 04 01 02 01 55 00", [(0x2001, 0x2002, "55")]),  # base_address
        ("07 0020000000000000 0120000000000000 01 55 00", [(0x2000, 0x2001, "55")]),
        ("08 0020000000000000 8001 01 55 00", [(0x2000, 0x2080, "55")]),  # start_length
        ("09 00 03 04 10 20 01 55 00", [(0x1010, 0x1020, "55")]),  # GNU view pair
        ("05 01 55 00", [(0, (1 << 64) - 1, "55")]),  # default_location
        ("04 10 10 01 55 04 20 10 01 56 00", []),  # ranges that hold nowhere
        ("04 10 20 00 04 20 30 01 55 00", [(0x1010, 0x1020, ""), (0x1020, 0x1030, "55")]),
    ],
)
def test_kinds_of_version_5(raw: str, expected: list[tuple[int, int, str]]) -> None:
    assert read(raw) == expected


def test_pairs_of_version_4() -> None:
    pairs = (
        "1000000000000000 2000000000000000 0100 55"
        "ffffffffffffffff 0050000000000000"  # a new base
        "0100000000000000 0200000000000000 0200 7708"
        "0000000000000000 0000000000000000"
    )
    assert read(pairs, FakeUnit(4)) == [(0x1010, 0x1020, "55"), (0x5001, 0x5002, "7708")]


def test_pairs_of_a_big_endian_32_bit_file() -> None:
    pairs = (
        "00000010 00000020 0001 55 ffffffff 00005000 00000001 00000002 0001 56 00000000 00000000"
    )
    unit = FakeUnit(3, 4, little=False)
    assert read(pairs, unit) == [(0x1010, 0x1020, "55"), (0x5001, 0x5002, "56")]


@pytest.mark.parametrize(
    ("raw", "version", "message"),
    [
        ("04 10", 5, "a.out: .debug_loclists+0x2: truncated unsigned LEB128 number"),
        ("04 10 20 05 55", 5, "a.out: .debug_loclists+0x4: truncated block of 5 bytes"),
        ("0a 00", 5, "a.out: .debug_loclists+0x0: unknown location list entry kind 0xa"),
        ("04 10 20 01 55", 5, "a.out: .debug_loclists+0x5: truncated byte"),
        ("10000000", 4, "a.out: .debug_loc+0x0: truncated 8-byte number"),
    ],
)
def test_malformed_lists(raw: str, version: int, message: str) -> None:
    with pytest.raises(DebugInfoError) as caught:
        read(raw, FakeUnit(version))
    assert str(caught.value) == message
    assert caught.value.code == "FC0904"


def test_a_list_that_is_nowhere() -> None:
    info: Any = FakeInfo({})
    unit: Any = FakeUnit()
    with pytest.raises(DebugInfoError, match=r"there is no \.debug_loclists"):
        tuple(entries(info, unit, WHOLE_LIST))
    info = FakeInfo({".debug_loclists": "00"})
    with pytest.raises(DebugInfoError) as caught:
        tuple(entries(info, unit, LocationListRef(5)))
    assert caught.value.code == "FC0904"


def test_a_list_of_endless_length_is_refused() -> None:
    info: Any = FakeInfo({".debug_loclists": "04 10 20 01 55" * 140_000})
    unit: Any = FakeUnit()
    with pytest.raises(DebugInfoError, match="more than 131,072 entries"):
        tuple(entries(info, unit, WHOLE_LIST))


def test_a_place_by_address() -> None:
    # rdi in the first half, then a slot of the frame.
    info: Any = FakeInfo({".debug_loclists": "04 00 10 01 55 04 10 20 02 9168 00"})
    function: Any = FakeDie({DW_AT_frame_base: "9c"}, code=((0x1000, 0x1040),))
    die: Any = FakeDie({DW_AT_location: WHOLE_LIST})
    slot = FrameRelative(ByteOffset(-24))
    assert place_at(info, die, function, Address(0x1000)) == register(5)
    assert place_at(info, die, function, Address(0x100F)) == register(5)
    assert place_at(info, die, function, Address(0x1010)) == slot
    assert place_at(info, die, function, Address(0x1020)) == Absent(
        "no location", "the debug information gives it no location at 0x1020"
    )
    assert extents(info, die, function) == (
        extent(0x1000, 0x1010, register(5)),
        extent(0x1010, 0x1020, slot),
    )


def test_neighbours_with_one_place_are_one_extent() -> None:
    info: Any = FakeInfo({".debug_loclists": "04 00 10 01 55 04 10 20 01 55 04 30 40 01 55 00"})
    die: Any = FakeDie({DW_AT_location: WHOLE_LIST})
    assert extents(info, die, None) == (
        extent(0x1000, 0x1020, register(5)),
        extent(0x1030, 0x1040, register(5)),
    )


def test_a_default_location_holds_where_no_other_does() -> None:
    info: Any = FakeInfo({".debug_loclists": "05 01 56 04 10 20 01 55 00"})
    function: Any = FakeDie({}, code=((0x1000, 0x1030), (0x2000, 0x2010)))
    die: Any = FakeDie({DW_AT_location: WHOLE_LIST})
    assert place_at(info, die, function, Address(0x1000)) == register(6)
    assert place_at(info, die, function, Address(0x1010)) == register(5)
    assert extents(info, die, function) == (
        extent(0x1010, 0x1020, register(5)),
        extent(0x1000, 0x1010, register(6)),
        extent(0x1020, 0x1030, register(6)),
        extent(0x2000, 0x2010, register(6)),
    )


def test_a_frame_base_with_a_list_of_its_own_splits_a_variable() -> None:
    # Old gcc -O2: rsp + 8 until the push, rsp + 16 after it, nothing at the end.
    info: Any = FakeInfo({".debug_loclists": "04 00 10 02 7708 04 10 20 02 7710 00"})
    function: Any = FakeDie({DW_AT_frame_base: WHOLE_LIST}, code=((0x1000, 0x1030),))
    die: Any = FakeDie({DW_AT_location: "91 04"})
    rsp = DwarfRegister(7)
    unknown = Absent(
        "no address",
        "its address is relative to a frame base that the debug information does not give",
    )
    assert extents(info, die, function) == (
        extent(0x1000, 0x1010, InMemory(rsp, ByteOffset(12))),
        extent(0x1010, 0x1020, InMemory(rsp, ByteOffset(20))),
        extent(0x1020, 0x1030, unknown),
    )
    for found in extents(info, die, function):
        assert place_at(info, die, function, found.start) == found.place


def test_a_default_location_of_a_frame_base_holds_where_no_other_does() -> None:
    info: Any = FakeInfo({".debug_loclists": "05 02 7708 04 10 20 02 7710 00"})
    function: Any = FakeDie({DW_AT_frame_base: WHOLE_LIST}, code=((0x1000, 0x1030),))
    die: Any = FakeDie({DW_AT_location: "91 04"})
    rsp = DwarfRegister(7)
    assert frame_base_at(info, function, Address(0x1000)) == InMemory(rsp, ByteOffset(8))
    assert frame_base_at(info, function, Address(0x1010)) == InMemory(rsp, ByteOffset(16))
    found = {at.start: at.place for at in extents(info, die, function)}
    assert found == {start: place_at(info, die, function, start) for start in found}
    assert found[Address(0x1020)] == InMemory(rsp, ByteOffset(12))


def test_a_whole_location_holds_in_the_function_or_everywhere() -> None:
    info: Any = FakeInfo({})
    die: Any = FakeDie({DW_AT_location: "55"})
    function: Any = FakeDie({}, code=((0x10, 0x20), (0x40, 0x50)))
    assert extents(info, die, function) == (
        extent(0x10, 0x20, register(5)),
        extent(0x40, 0x50, register(5)),
    )
    assert extents(info, die, None) == (extent(0, 1 << 64, register(5)),)


def test_a_variable_without_a_location() -> None:
    info: Any = FakeInfo({})
    die: Any = FakeDie({})
    assert place_at(info, die, None, Address(0)) == Absent("no location", NOT_HERE)
    die = FakeDie({DW_AT_const_value: 7})
    assert place_at(info, die, None, Address(0)) == Constant(7)
    assert extents(info, die, None) == (extent(0, 1 << 64, Constant(7)),)


def test_a_location_of_a_wrong_class() -> None:
    info: Any = FakeInfo({})
    die: Any = FakeDie({DW_AT_location: 7})
    for question in (
        lambda: extents(info, die, None),
        lambda: place_at(info, die, None, Address(0)),
    ):
        with pytest.raises(DebugInfoError) as caught:
            question()
        assert str(caught.value) == (
            "a.out: .debug_info+0x2a: attribute 0x2 is neither an expression, a list nor a constant"
        )


def test_a_malformed_expression_names_its_entry() -> None:
    info: Any = FakeInfo({".debug_loclists": "04 10 20 01 06 00"})
    die: Any = FakeDie({DW_AT_location: "06"})
    with pytest.raises(DebugInfoError) as caught:
        place_at(info, die, None, Address(0))
    assert str(caught.value) == (
        "a.out: .debug_info: expression of the entry at 0x2a+0x1:"
        " the expression takes a value from its empty stack"
    )
    die = FakeDie({DW_AT_location: WHOLE_LIST})
    with pytest.raises(DebugInfoError) as caught:
        extents(info, die, None)
    assert str(caught.value) == (
        "a.out: .debug_loclists+0x5: the expression takes a value from its empty stack"
    )


@pytest.mark.parametrize(
    ("value", "form", "little", "expected"),
    [
        (-3, DW_FORM_data4, True, Constant(-3)),
        ("0102", DW_FORM_block1, True, Constant(0x0201)),
        ("0102", DW_FORM_block1, False, Constant(0x0102)),
        ("ab", DW_FORM_string, True, Constant(0x006261)),
        ("", DW_FORM_block1, True, Absent("no location", NOT_HERE)),
    ],
)
def test_constant_values(value: str | int, form: int, little: bool, expected: Place) -> None:
    die: Any = FakeDie({DW_AT_const_value: value}, FakeUnit(little=little), form=form)
    assert constant_of(die) == expected


def test_a_constant_that_is_an_address() -> None:
    die: Any = FakeDie({DW_AT_const_value: 0x2010}, form=DW_FORM_addr)
    described = constant_of(die)
    assert isinstance(described, Absent)
    assert described.code == "FC0406"
    die = FakeDie({})
    assert constant_of(die) is None
