"""Code ranges, and finding entries by address and by name, on trees written by hand."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fetchc.api.library import Program
from fetchc.debuginfo.dwarf import address_ranges, go_name_lookup
from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf.address_ranges import function_at
from fetchc.debuginfo.dwarf.debug_info import DebugInfo
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.debuginfo.dwarf.languages import is_go
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.quantities import Address, DieOffset, TypeId
from tests.support.assembler import uleb
from tests.support.dwarfwriter import (
    Attr,
    Entry,
    Unit,
    compile_unit,
    subprogram_die,
)
from tests.support.entries import AT, SHAPES, WIDTHS, entry, one, opened
from tests.support.programs import fixture
from tests.support.toolchains import require

RANGES_V5 = (
    b"\x05" + (0x1000).to_bytes(8, "little")  # base address
    + b"\x04\x10\x20"  # offset pair
    + b"\x06" + (0x5000).to_bytes(8, "little") + (0x5008).to_bytes(8, "little")
    + b"\x07" + (0x6000).to_bytes(8, "little") + b"\x10"
    + b"\x04\x30\x30"  # empty
    + b"\x00"
)  # fmt: skip


def test_range_lists(tmp_path: Path) -> None:
    die = one(
        tmp_path,
        Attr(c.DW_AT_ranges, c.DW_FORM_sec_offset, 0),
        extra={".debug_rnglists": RANGES_V5},
    )
    expected = ((0x1010, 0x1020), (0x5000, 0x5008), (0x6000, 0x6010))
    assert die.unit.info.ranges(die) == expected


def test_a_range_in_front_of_its_base_wraps(tmp_path: Path) -> None:
    # As the linker of Go 1.27 has it in Go's own compiler: type:.eq functions of a unit.
    content = b"\x05" + (0x1000).to_bytes(8, "little") + b"\x04"
    content += uleb((1 << 64) - 0x100) + uleb((1 << 64) - 0x80) + b"\x00"
    die = one(
        tmp_path,
        Attr(c.DW_AT_ranges, c.DW_FORM_sec_offset, 0),
        extra={".debug_rnglists": content},
    )
    assert die.unit.info.ranges(die) == ((0xF00, 0xF80),)


def test_range_lists_with_address_indexes(tmp_path: Path) -> None:
    content = b"\x01\x00\x04\x01\x02" + b"\x02\x00\x01" + b"\x03\x01\x05" + b"\x00"
    die = one(
        tmp_path,
        Attr(AT, c.DW_FORM_addrx, 0x100),
        Attr(AT + 1, c.DW_FORM_addrx, 0x200),
        Attr(c.DW_AT_ranges, c.DW_FORM_rnglistx, 0),
        extra={".debug_rnglists": bytes(12) + (4).to_bytes(4, "little") + content},
    )
    assert die.unit.info.ranges(die) == ((0x101, 0x102), (0x100, 0x200), (0x200, 0x205))


@pytest.mark.parametrize(("size", "little"), WIDTHS)
def test_range_lists_of_older_versions(tmp_path: Path, size: int, little: bool) -> None:
    order = "little" if little else "big"
    numbers = [1, 2, (1 << 8 * size) - 1, 0x5000, 3, 3, 4, 6, 0, 0]
    content = b"".join(number.to_bytes(size, order) for number in numbers)  # type: ignore[arg-type]
    function = Entry(c.DW_TAG_subprogram, (Attr(c.DW_AT_ranges, c.DW_FORM_data4, 0),))
    root = compile_unit(function, low=0x400, high=0x6000)
    info = opened(
        tmp_path,
        Unit(root, 3),
        little=little,
        address_size=size,
        extra={".debug_ranges": content},
    )
    die = entry(info)
    assert info.ranges(die) == ((0x401, 0x402), (0x5004, 0x5006))
    assert info.function_at(Address(0x5004)) == die
    assert info.function_at(Address(0x401)) == die
    assert info.function_at(Address(0x402)) is None


def test_a_unit_may_have_bounds_as_length(tmp_path: Path) -> None:
    low = Attr(c.DW_AT_low_pc, c.DW_FORM_addr, 0x100)
    length = one(tmp_path, low, Attr(c.DW_AT_high_pc, c.DW_FORM_data1, 16))
    assert length.unit.info.ranges(length) == ((0x100, 0x110),)
    empty = one(tmp_path, low, Attr(c.DW_AT_high_pc, c.DW_FORM_addr, 0x100))
    assert empty.unit.info.ranges(empty) == ()
    alone = one(tmp_path, low)
    assert alone.unit.info.ranges(alone) == ()


def test_a_function_is_not_a_block_at_its_address(tmp_path: Path) -> None:
    # The block comes first, and the bytes before its address look like a subprogram's code.
    address = 0x4141
    block = Entry(
        c.DW_TAG_lexical_block,
        (
            Attr(AT, c.DW_FORM_data1, 3),
            Attr(c.DW_AT_low_pc, c.DW_FORM_addr, address),
            Attr(c.DW_AT_high_pc, c.DW_FORM_data1, 3),
        ),
    )
    plain = (
        Attr(c.DW_AT_low_pc, c.DW_FORM_addr, address),
        Attr(c.DW_AT_high_pc, c.DW_FORM_data1, 3),
    )
    root = compile_unit(block, Entry(c.DW_TAG_subprogram, plain, (), "f"), low=0x4000, high=0x5000)
    info = opened(tmp_path, Unit(root))
    looks_like, function = info.children(next(info.units()).top)
    assert function.declaration.tag == c.DW_TAG_subprogram
    # The abbreviation of the function is 3, the byte before the block's address.
    assert looks_like.unit.data[function.position] == 3
    assert info.function_at(Address(address)) == function


def test_bytes_that_look_like_a_function_are_none(tmp_path: Path) -> None:
    # Blocks hold the code of the function's abbreviation, its address and a sibling, after
    # them what no abbreviation describes: thousands of candidates, one function.
    address = 0x4141414141414141
    looks = b"\x03" + address.to_bytes(8, "little") + b"\x03" + b"\xf0\x01\0\0" + b"\x7f"
    blocks = [Entry(c.DW_TAG_variable, (Attr(AT, c.DW_FORM_block1, looks),)) for _ in range(3000)]
    function = Entry(
        c.DW_TAG_subprogram,
        (
            Attr(c.DW_AT_low_pc, c.DW_FORM_addr, address),
            Attr(c.DW_AT_high_pc, c.DW_FORM_data1, 3),
        ),
        (Entry(c.DW_TAG_formal_parameter),),
        "f",
        True,
    )
    root = compile_unit(*blocks, function, low=address, high=address + 9)
    info = opened(tmp_path, Unit(root, 4))
    found = info.function_at(Address(address))
    assert found == list(info.children(next(info.units()).top))[-1]
    assert found.unit.data[found.position] == 3


def test_functions_inside_functions_and_namespaces(tmp_path: Path) -> None:
    inner = subprogram_die("inner", 0x110, 0x118)
    outer = subprogram_die("outer", 0x100, 0x140, inner, sibling=True)
    space = Entry(c.DW_TAG_namespace, (), (subprogram_die("spaced", 0x150, 0x160),), "", True)
    root = compile_unit(outer, space, low=0x100, high=0x200)
    info = opened(tmp_path, Unit(root, 4))
    for address, name in ((0x100, "outer"), (0x110, "inner"), (0x150, "spaced")):
        found = info.function_at(Address(address))
        assert found is not None
        assert found.string(c.DW_AT_name) == name
    assert info.function_at(Address(0x104)) is None
    assert info.function_at(Address(0x900)) is None


@pytest.mark.parametrize(("version", "width", "size", "little"), SHAPES)
@pytest.mark.parametrize("form", [c.DW_FORM_string, c.DW_FORM_strp])
def test_names_are_found_exactly(
    tmp_path: Path, version: int, width: int, size: int, little: bool, form: int
) -> None:
    def typedef(name: str, *more: Attr) -> Entry:
        return Entry(c.DW_TAG_typedef, (*more, Attr(c.DW_AT_name, form, name)))

    before = Attr(AT, c.DW_FORM_udata, 5)  # no constant distance to the name
    declaration = Attr(c.DW_AT_declaration, c.DW_FORM_flag_present)
    root = compile_unit(
        typedef("main.Msg"),
        typedef("Msg"),
        typedef("Msg", before),
        typedef("Msgs"),
        typedef("Msg", declaration),
        Entry(c.DW_TAG_variable, (Attr(c.DW_AT_name, form, "Msg"),)),
    )
    info = opened(tmp_path, Unit(root, version, width), little=little, address_size=size)
    entries = list(info.children(next(info.units()).top))
    tags = frozenset((c.DW_TAG_typedef,))
    expected = {entries[1], entries[2], entries[4]}
    assert set(info.find_named("Msg", tags)) == expected
    assert set(info.find_named("Msg", tags, definitions=True)) == expected - {entries[4]}
    assert list(info.find_named("sg", tags)) == []
    assert list(info.find_named("", tags)) == []
    assert list(info.find_named("a\0b", tags)) == []
    assert list(info.find_named("\ud800", tags)) == []


def test_a_common_tail_of_many_strings_is_found_by_walking(tmp_path: Path) -> None:
    names = [f"long{at}x" for at in range(40)] + ["x"]
    root = compile_unit(
        *[Entry(c.DW_TAG_variable, (Attr(c.DW_AT_name, c.DW_FORM_strp, name),)) for name in names]
    )
    info = opened(tmp_path, Unit(root, 4))
    last = list(info.children(next(info.units()).top))[-1]
    assert list(info.find_named("x", frozenset((c.DW_TAG_variable,)))) == [last]


def test_unit_of_an_address(tmp_path: Path) -> None:
    units = [
        Unit(compile_unit(name=f"{low:x}.c", low=low, high=low + 0x10), 4)
        for low in (0x100, 0x300, 0x200)
    ]
    info = opened(tmp_path, *units)
    for address, name in ((0x30F, "300.c"), (0x100, "100.c"), (0x200, "200.c")):
        found = info.unit_of_address(Address(address))
        assert found is not None
        assert found.name == name
    assert info.unit_of_address(Address(0x110)) is None


def test_unit_of_an_address_by_its_functions(tmp_path: Path) -> None:
    # DWARF 2 without extensions cannot say that a unit has several stretches of code.
    low = (Attr(c.DW_AT_low_pc, c.DW_FORM_addr, 0),)
    inner = Entry(c.DW_TAG_namespace, (), (subprogram_die("g", 0x300, 0x304),), "n")
    children = (subprogram_die("f", 0x100, 0x104), inner)
    root = Entry(c.DW_TAG_compile_unit, low, children, "unit")
    info = opened(tmp_path, Unit(root, version=2), Unit(Entry(c.DW_TAG_compile_unit, (), (), "e")))
    first = next(info.units())
    assert info.unit_of_address(Address(0x102)) is first
    assert info.unit_of_address(Address(0x303)) is first
    assert info.unit_of_address(Address(0x304)) is None


@pytest.mark.parametrize("little", [True, False])
def test_unit_of_an_address_by_aranges(tmp_path: Path, little: bool) -> None:
    order = "little" if little else "big"

    def number(value: int, size: int) -> bytes:
        return value.to_bytes(size, order)  # type: ignore[arg-type]

    first = Unit(compile_unit(name="first.c"), 4)
    second = Unit(compile_unit(name="second.c"), 4)
    whole = opened(tmp_path, first, second, little=little)
    offset = list(whole.units())[1].offset
    content = b""
    for unit, ranges in ((0, [(0x100, 0x10)]), (offset, [(0x200, 8), (0x80, 8)])):
        body = number(2, 2) + number(unit, 4) + b"\x08\x00" + bytes(4)
        for low, size in [*ranges, (0, 0)]:
            body += number(low, 8) + number(size, 8)
        content += number(len(body), 4) + body
    info = opened(tmp_path, first, second, little=little, extra={".debug_aranges": content})
    for address, name in ((0x10F, "first.c"), (0x87, "second.c"), (0x200, "second.c")):
        found = info.unit_of_address(Address(address))
        assert found is not None
        assert found.name == name
    assert info.unit_of_address(Address(0x88)) is None


@pytest.mark.parametrize("name", ["go/dnsforward/go1.27", "c/layouts/gcc-O2-dwarf5"])
def test_many_functions_of_a_unit_are_found_by_a_table(name: str) -> None:
    # What is found is what a walk for each finds, whichever of them it was.
    program_ = Program(str(fixture(name)))
    known = DwarfProgram(str(fixture(name)))
    addresses = [
        known.functions_named(each)[0].address for each in list(program_.functions())[:300:7]
    ]
    info = DebugInfo(Elf(str(fixture(name))))
    tabled = 0
    for unit in info.units():
        for address in [*addresses, 0x10]:
            unit.searches = 0
            walked = function_at(unit, Address(address))
            unit.searches = 100
            found = function_at(unit, Address(address))
            assert (found and found.offset) == (walked and walked.offset)
            tabled += found is not None and unit.functions is not None
    assert tabled > 1 or "go" not in name


# GCC describes the last one first: only what is not the last child says where its sibling is.
NESTED = """
int outer(int n);
int main(int argc, char **argv) { return outer(argc); }
int outer(int n) {
    __attribute__((noinline)) int inner(int m) { return m * n; }
    return inner(n) + inner(3);
}
"""


def test_the_table_has_functions_inside_of_functions(tmp_path: Path) -> None:
    require("gcc")
    (tmp_path / "nested.c").write_text(NESTED)
    subprocess.run(["gcc", "-g", "-o", "nested", "nested.c"], cwd=tmp_path, check=True)
    program = DwarfProgram(str(tmp_path / "nested"))
    (inner,) = [name for name in program.function_names() if name.startswith("inner.")]
    (address,) = program.elf.symbol_addresses(inner)
    unit = program._info.unit_of_address(address)
    assert unit is not None
    unit.searches = 100
    found = function_at(unit, address)
    assert found is not None
    assert found.string(c.DW_AT_name) == "inner"
    assert function_at(unit, Address(address + 1)) is None


PARTED = """
__attribute__((cold, noinline)) int report(const char *what, int n) { return what[0] + n; }
__attribute__((noinline)) int parted(int n, const char *what) {
    for (int i = 0; i < n; i++)
        if (__builtin_expect(what[i] == 'x', 0)) { n += report(what, i); n += report(what, n); }
    return n;
}
__attribute__((noinline)) int plain(int n) { return n * 3; }
int main(int argc, char **argv) { return parted(argc, argv[0]) + plain(argc); }
"""


@pytest.mark.parametrize("version", [4, 5])
def test_a_function_in_parts_is_found_by_the_bytes_of_its_list(
    tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("gcc")
    (tmp_path / "parted.c").write_text(PARTED)
    command = ["gcc", "-O2", f"-gdwarf-{version}", "-o", "parted", "parted.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    program = DwarfProgram(str(tmp_path / "parted"))
    (function,) = [f for f in program.functions_named("parted") if f.symbol == "parted"]
    (unit,) = [
        unit for unit in program._info.units() if unit.top.string(c.DW_AT_name) == "parted.c"
    ]
    by_walk = address_ranges._function_by_walk(unit, function.address, None)
    assert by_walk is not None
    assert len(program._info.ranges(by_walk)) == 2  # the hot part, and the cold one
    monkeypatch.setattr(address_ranges, "_function_by_walk", pytest.fail)
    found = address_ranges.function_at(unit, function.address)
    assert found is not None
    assert found.offset == by_walk.offset


@pytest.mark.parametrize("name", ["go/features/go1.15", "go/features/go1.27"])
def test_constants_of_go_are_found_by_the_bytes_of_their_type(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = DwarfProgram(str(fixture(name)))._info
    walked: dict[tuple[DieOffset, TypeId], list[int]] = {}
    units = {unit.offset: unit for unit in info.units() if is_go(unit)}
    for unit in units.values():
        for constant in go_name_lookup._constants(unit):
            target = info.follow(constant, c.DW_AT_type)
            assert target is not None
            walked.setdefault((unit.offset, TypeId(target.offset)), []).append(constant.offset)
    assert len(walked) > 40

    def typed(at: DieOffset, type_id: TypeId) -> list[int]:
        found = go_name_lookup._typed_constants(info, units[at], type_id)
        return [one.offset for one in found]

    monkeypatch.setattr(go_name_lookup, "_constants", pytest.fail)  # nothing walks
    assert all(typed(at, type_id) == wanted for (at, type_id), wanted in walked.items())
    assert not any(typed(at, TypeId(type_id + 1)) for at, type_id in walked)
    monkeypatch.undo()
    monkeypatch.setattr(go_name_lookup, "_NAME_AND_TYPE", ())  # by a walk
    for (at, type_id), wanted in [*walked.items()][:9]:
        assert typed(at, type_id) == wanted
