"""Call-frame information as bytes: encodings, byte orders, instructions, malformed tables."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.debuginfo.dwarf.call_frames import Row, cfa_at, row
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import Absent, FrameRelative, Indirect, InMemory, InRegister, Place
from fetchc.quantities import Address, ByteOffset, DwarfRegister
from tests.support.toolchains import ROOT

FRAME_ADDRESS = 0x2000
HEADER_ADDRESS = 0x1F00


class FakeElf:
    """As much of Elf as call-frame information asks for."""

    path = "a.out"
    debug_path = "a.out.debug"

    def __init__(self, sections: dict[str, bytes], little: bool = True, word: int = 8) -> None:
        self.sections, self.little_endian, self.word_bytes = sections, little, word

    def is_discarded(self, address: Address) -> bool:
        return address == 0

    def section(self, name: str) -> bytes | None:
        return self.sections.get(name)

    def section_address(self, name: str) -> Address | None:
        known = {".eh_frame": FRAME_ADDRESS, ".eh_frame_hdr": HEADER_ADDRESS}
        return Address(known[name]) if name in known else None


class Builder:
    """Writes CIEs and FDEs of one section."""

    def __init__(self, exception: bool, little: bool = True, word: int = 8) -> None:
        self.exception, self.word = exception, word
        self.order = "<" if little else ">"
        self.data = b""

    def number(self, size: int, value: int) -> bytes:
        return struct.pack(self.order + {1: "B", 2: "H", 4: "I", 8: "Q"}[size], value)

    def entry(self, body: bytes, wide: bool = False) -> int:
        at = len(self.data)
        length = b"\xff" * 4 + self.number(8, len(body)) if wide else self.number(4, len(body))
        self.data += length + body
        return at

    def cie(
        self,
        instructions: str = "0c0708 9001",
        *,
        version: int = 1,
        augmentation: str = "",
        data: str = "",
        wide: bool = False,
    ) -> int:
        name = bytes.fromhex("00" if self.exception else "ff") * (8 if wide else 4)
        body = name + bytes([version]) + augmentation.encode() + b"\0"
        if version == 4:
            body += bytes([self.word, 0])
        body += bytes.fromhex("01 78 10")  # code alignment 1, data alignment -8, return address 16
        if augmentation.startswith("z"):
            body += bytes([len(bytes.fromhex(data))])
        return self.entry(body + bytes.fromhex(data) + bytes.fromhex(instructions), wide)

    def fde(
        self, cie: int, start: bytes, size: bytes, instructions: str, *, wide: bool = False
    ) -> int:
        at = len(self.data)
        width = 8 if wide else 4
        reference = at + 4 - cie if self.exception else cie
        return self.entry(
            self.number(width, reference) + start + size + bytes.fromhex(instructions), wide
        )

    def plain(self, cie: int, start: int, size: int, instructions: str, wide: bool = False) -> int:
        return self.fde(
            cie,
            self.number(self.word, start),
            self.number(self.word, size),
            instructions,
            wide=wide,
        )

    def elf(self) -> Any:
        name = ".eh_frame" if self.exception else ".debug_frame"
        return FakeElf({name: self.data}, self.order == "<", self.word)


def memory(number: int, offset: int) -> InMemory:
    return InMemory(DwarfRegister(number), ByteOffset(offset))


def frame(offset: int) -> FrameRelative:
    return FrameRelative(ByteOffset(offset))


def row_of(instructions: str, distance: int = 0, initial: str = "0c0708 9001") -> Row:
    """The row ``distance`` bytes into a function with these instructions (debug_frame)."""
    built = Builder(exception=False)
    built.plain(built.cie(initial, version=3), 0x1000, 0x100000, instructions)
    found = row(built.elf(), Address(0x1000 + distance))
    assert found is not None
    return found


PUSHED = "41 0e10 8602 43 0d06"  # push rbp at +0, mov rsp,rbp at +1


@pytest.mark.parametrize(
    ("distance", "expected"),
    [(0, memory(7, 8)), (1, memory(7, 16)), (3, memory(7, 16)), (4, memory(6, 16))],
)
def test_the_frame_address_moves_with_the_prologue(distance: int, expected: InMemory) -> None:
    assert row_of(PUSHED, distance).cfa == expected


@pytest.mark.parametrize(
    ("instructions", "distance", "expected"),
    [
        ("0220 0e20", 0x20, memory(7, 0x20)),  # advance_loc1
        ("030002 0e20", 0x1FF, memory(7, 8)),
        ("030002 0e20", 0x200, memory(7, 0x20)),  # advance_loc2
        ("0400000100 0e20", 0x10000, memory(7, 0x20)),  # advance_loc4
        ("1d0001000000000000 0e20", 0x100, memory(7, 0x20)),  # MIPS_advance_loc8
        ("01 2010000000000000 0e20", 0x1F, memory(7, 8)),  # set_loc 0x1020
        ("01 2010000000000000 0e20", 0x20, memory(7, 0x20)),
        ("12 06 7e", 0, memory(6, 16)),  # def_cfa_sf rbp, -2 * -8
        ("13 7d", 0, memory(7, 24)),  # def_cfa_offset_sf, Go's
        ("2e 10 0e18", 0, memory(7, 24)),  # GNU_args_size says nothing of the CFA
        ("2d", 0, memory(7, 8)),  # GNU_window_save
        ("0a 0e20 0b", 0, memory(7, 8)),  # remember, change, restore
        ("0a 41 0e20 42 0b", 2, memory(7, 0x20)),
        ("0f 03 767806", 0, Indirect(memory(6, -8), ByteOffset(0))),  # realigned stack
        ("0f 02 7708", 0, memory(7, 8)),
    ],
)
def test_instructions(instructions: str, distance: int, expected: Place) -> None:
    assert row_of(instructions, distance).cfa == expected


def test_an_expression_that_only_a_run_could_tell() -> None:
    # The CFA of a lazily bound PLT on x86-64, as binutils writes it.
    plt = "0f 0b 7708 80003f1a3b2a332422"
    cfa = row_of(plt).cfa
    assert cfa == Absent("no address", "its address is computed at run time (DW_OP_plus)")


def test_the_caller_s_registers() -> None:
    rules = dict(row_of("8602 050303 0704").registers)
    assert rules[DwarfRegister(6)] == frame(-16)
    assert rules[DwarfRegister(3)] == frame(-24)
    assert rules[DwarfRegister(16)] == frame(-8)
    kept_nowhere = rules[DwarfRegister(4)]
    assert isinstance(kept_nowhere, Absent)
    assert kept_nowhere.code == "FC0401"


def test_rules_of_each_kind() -> None:
    rules = dict(row_of("0806 090506 140a01 150b7f 160c0130 100d022310 110f7f 2f0e02").registers)
    assert rules[DwarfRegister(6)] == InRegister(DwarfRegister(6))  # same_value
    assert rules[DwarfRegister(5)] == InRegister(DwarfRegister(6))  # register
    for computed in (10, 11, 12):  # val_offset, val_offset_sf, val_expression
        place = rules[DwarfRegister(computed)]
        assert isinstance(place, Absent)
        assert place.code == "FC0406"
    assert rules[DwarfRegister(13)] == frame(16)  # expression, from the CFA
    assert rules[DwarfRegister(15)] == frame(8)  # offset_extended_sf
    assert rules[DwarfRegister(14)] == frame(16)  # GNU_negative_offset_extended


def test_restored_rules_are_the_cie_s() -> None:
    rules = dict(row_of("9002 8602 d0 c6").registers)
    assert rules == {DwarfRegister(16): frame(-8)}
    assert dict(row_of("9002 0610").registers) == {DwarfRegister(16): frame(-8)}


@pytest.mark.parametrize("little", [True, False])
@pytest.mark.parametrize("word", [4, 8])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("version", [1, 3, 4])
def test_debug_frame_of_any_machine(little: bool, word: int, wide: bool, version: int) -> None:
    built = Builder(exception=False, little=little, word=word)
    cie = built.cie(version=version, wide=wide)
    for position in range(4):
        built.plain(cie, 0x1000 + 0x100 * position, 0x80, f"0e{8 * position + 8:02x}", wide)
    elf = built.elf()
    for position in range(4):
        start = Address(0x1000 + 0x100 * position)
        expected = memory(7, 8 * position + 8)
        assert cfa_at(elf, start) == expected
        assert cfa_at(elf, Address(start + 0x7F)) == expected
        assert cfa_at(elf, Address(start + 0x7F), start) == expected
        assert cfa_at(elf, Address(start + 0x80), start) == Absent(
            "no location", f"the file has no call-frame information for {start + 0x80:#x}"
        )


def test_bytes_that_look_like_an_address_are_no_entry() -> None:
    # The function's address stands in the instructions of another entry first.
    built = Builder(exception=False)
    cie = built.cie(version=3)
    built.plain(cie, 0x1000, 0x100, "01" + "0020000000000000" + "0e20")
    built.plain(cie, 0x2000, 0x100, "0e18")
    assert cfa_at(built.elf(), Address(0x2004), Address(0x2000)) == memory(7, 0x18)


@pytest.mark.parametrize(
    ("encoding", "start", "size"),
    [
        ("00", "0010000000000000", "0001000000000000"),  # absptr
        ("03", "00100000", "00010000"),  # udata4
        ("0b", "00100000", "00010000"),  # sdata4
        ("04", "0010000000000000", "0001000000000000"),  # udata8
        ("02", "0010", "0001"),  # udata2
        ("01", "8020", "8002"),  # uleb128
        ("09", "8020", "8002"),  # sleb128
    ],
)
def test_encodings_of_addresses(encoding: str, start: str, size: str) -> None:
    built = Builder(exception=True)
    cie = built.cie(augmentation="zR", data=encoding)
    built.fde(cie, bytes.fromhex(start), bytes.fromhex(size), "00 0e18")
    for inside in (0x1000, 0x10FF):
        assert cfa_at(built.elf(), Address(inside)) == memory(7, 0x18)
    for outside in (0xFFF, 0x1100):
        assert row(built.elf(), Address(outside)) is None


def pc_relative(augmentation: str = "zR", data: str = "1b") -> Builder:
    """An .eh_frame with functions at 0x1000 and 0x1200, as linkers write it."""
    built = Builder(exception=True)
    cie = built.cie(augmentation=augmentation, data=data)
    for start, offset in ((0x1000, "18"), (0x1200, "28")):
        distance = start - (FRAME_ADDRESS + len(built.data) + 8)
        built.fde(cie, struct.pack("<i", distance), struct.pack("<i", 0x100), f"00 0e{offset}")
    built.data += bytes(4)
    return built


def header(*entries: tuple[int, int], table: int = 0x3B) -> bytes:
    """An .eh_frame_hdr over (address, offset in .eh_frame)."""
    data = bytes([1, 0x1B, 0x03, table]) + struct.pack("<iI", 0, len(entries))
    for address, offset in entries:
        data += struct.pack(
            "<ii", address - HEADER_ADDRESS, FRAME_ADDRESS + offset - HEADER_ADDRESS
        )
    return data


@pytest.mark.parametrize(
    ("augmentation", "data"),
    [("zR", "1b"), ("zPLR", "9b 10000000 1b 1b"), ("zRS", "1b"), ("zRB", "1b")],
)
def test_augmentations(augmentation: str, data: str) -> None:
    built = pc_relative(augmentation, data)
    assert cfa_at(built.elf(), Address(0x1201)) == memory(7, 0x28)
    found = row(built.elf(), Address(0x1201))
    assert found is not None
    assert found.signal_frame == ("S" in augmentation)


def test_the_sorted_table_is_asked_first() -> None:
    built = pc_relative()
    first = 4 + int.from_bytes(built.data[:4], "little")
    second = first + 4 + int.from_bytes(built.data[first : first + 4], "little")
    for table in (0x3B, 0x03):  # another encoding than the linkers': entry by entry
        elf: Any = built.elf()
        elf.sections[".eh_frame_hdr"] = header((0x1000, first), (0x1200, second), table=table)
        assert cfa_at(elf, Address(0x1000)) == memory(7, 0x18)
        assert cfa_at(elf, Address(0x10FF)) == memory(7, 0x18)
        assert cfa_at(elf, Address(0x12FF)) == memory(7, 0x28)
        for nowhere in (0xFFF, 0x1100, 0x1300):
            assert isinstance(cfa_at(elf, Address(nowhere)), Absent)


def test_debug_frame_is_asked_where_eh_frame_has_nothing() -> None:
    built = Builder(exception=False)
    built.plain(built.cie(version=3), 0x5000, 0x100, "0e30")
    elf: Any = pc_relative().elf()
    elf.sections[".debug_frame"] = built.data
    assert cfa_at(elf, Address(0x1000)) == memory(7, 0x18)
    assert cfa_at(elf, Address(0x5000)) == memory(7, 0x30)


def test_a_file_without_any() -> None:
    elf: Any = FakeElf({})
    assert row(elf, Address(0x10)) is None
    assert cfa_at(elf, Address(0x10)) == Absent(
        "no location", "the file has no call-frame information for 0x10"
    )


def test_a_cie_without_a_rule_for_the_frame_address() -> None:
    assert row_of("00", initial="00").cfa == Absent(
        "no address", "the call-frame information gives no rule for the frame address"
    )


@pytest.mark.parametrize(
    ("instructions", "what"),
    [
        ("17", "unknown call-frame instruction 0x17"),
        ("0b", "a state is restored that was not remembered"),
        ("0a" * 600, "more than 512 remembered states"),
        ("0f 03 767806 0e20", "a change to a frame address that is not register and offset"),
        ("0c", "truncated unsigned LEB128 number"),
        ("0f 10 76", "truncated block of 16 bytes"),
        ("".join(f"05 {0x80 + n % 128:02x}{n >> 7:02x} 01" for n in range(600)), "512 registers"),
    ],
)
def test_malformed_programs(instructions: str, what: str) -> None:
    with pytest.raises(DebugInfoError, match=what) as caught:
        row_of(instructions)
    assert caught.value.code == "FC0904"
    assert caught.value.section == ".debug_frame"
    assert caught.value.path == "a.out.debug"


@pytest.mark.parametrize(
    ("augmentation", "data", "code"),
    [
        ("eh", "", "FC0905"),  # gcc 2: a pointer follows
        ("zX", "00", "FC0905"),
        ("zR", "9b", "FC0905"),  # in memory at run time only
        ("zR", "30", "FC0905"),  # data-relative: to the GOT
        ("zR", "0e", "FC0904"),
        ("zR", "ff", "FC0904"),
    ],
)
def test_cies_that_are_not_read(augmentation: str, data: str, code: str) -> None:
    built = pc_relative(augmentation, data)
    with pytest.raises(DebugInfoError) as caught:
        cfa_at(built.elf(), Address(0x1000))
    assert caught.value.code == code
    assert caught.value.section == ".eh_frame"


def test_an_fde_that_points_at_another_fde() -> None:
    built = pc_relative()
    built.data = built.data[: len(built.data) - 4]
    at = len(built.data)
    first = 4 + int.from_bytes(built.data[:4], "little")
    built.fde(first, struct.pack("<i", 0x3000 - FRAME_ADDRESS - at - 8), b"\0\1\0\0", "00")
    with pytest.raises(DebugInfoError, match="an FDE where a CIE is expected"):
        cfa_at(built.elf(), Address(0x3000))


def test_a_table_longer_than_its_section() -> None:
    elf: Any = pc_relative().elf()
    elf.sections[".eh_frame_hdr"] = header((0x1000, 0))[:-4]
    with pytest.raises(DebugInfoError, match="a table of 1 entries runs past the end"):
        cfa_at(elf, Address(0x1000))


@given(st.data(), st.booleans())
def test_mutated_tables_end_in_a_rule_or_a_located_error(data: st.DataObject, eh: bool) -> None:
    if eh:
        built = pc_relative("zPLR", "9b 10000000 1b 1b")
    else:
        built = Builder(exception=False)
        cie = built.cie(version=3)
        for start in (0x1000, 0x1200):
            built.plain(cie, start, 0x100, "41 0e10 8602 43 0d06 0a 42 0c0708 0b 0f03767806")
    raw = bytearray(built.data)
    for at, value in data.draw(
        st.lists(st.tuples(st.integers(0, len(raw) - 1), st.integers(0, 255)), max_size=4)
    ):
        raw[at] = value
    built.data = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    located: str | None = ".eh_frame" if eh else ".debug_frame"
    expected = located
    for function in (None, Address(0x1200)):
        try:
            cfa_at(built.elf(), Address(0x1234), function)
        except DebugInfoError as error:
            located = error.section
    assert located == expected


@pytest.mark.parametrize("name", ["go1.15", "go1.22", "go1.27"])
def test_the_frame_address_at_a_go_function_s_entry(name: str) -> None:
    elf = Elf(str(ROOT / "corpus/go/dnsforward/bin" / name))
    functions = [s for s in elf.function_symbols() if s.name.startswith("main.") and s.size]
    assert len(functions) > 10
    for function in functions:
        assert cfa_at(elf, function.address) == memory(7, 8)
        assert cfa_at(elf, function.address, function.address) == memory(7, 8)


@pytest.mark.parametrize("name", ["gcc-O2-dwarf5", "clang-O0-dwarf4", "gcc-O0-dwarf4"])
def test_the_frame_address_at_a_c_function_s_entry(name: str) -> None:
    elf = Elf(str(ROOT / "corpus/c/layouts/bin" / name))
    functions = [s for s in elf.function_symbols() if s.size and ".cold" not in s.name]
    assert len(functions) > 10
    for function in functions:
        assert cfa_at(elf, function.address) == memory(7, 8), function.name
