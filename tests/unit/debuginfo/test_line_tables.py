"""Line tables as bytes: headers of each version, opcodes, malformed tables."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.debuginfo.byte_reader import Cursor
from fetchc.debuginfo.dwarf.line_tables import LineRow, file_name, rows
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address

OPERANDS = "00 01 01 01 01 00 00 00 01 00 00 01"
TWO_FILES = "2f7372632f6100 62 00 006d61696e2e6300 00 00 00 782e6800 01 00 00 00"
AT_0X1000 = "00 09 02 0010000000000000"
END = "00 01 01"


class FakeSection:
    def __init__(self, name: str, data: bytes, little: bool) -> None:
        self.name, self.data, self.little = name, data, little

    def cursor(self, offset: int) -> Cursor:
        return Cursor("a.out", self.name, self.data, offset, None, self.little)

    def cstring(self, offset: int) -> bytes:
        return Cursor("a.out", self.name, self.data, offset).cstring()


class FakeFile:
    """Info, a unit and the unit's top entry in one, as line tables ask for them."""

    path = "a.out"
    comp_dir: str | None = "/build"

    def __init__(self, sections: dict[str, bytes], little: bool = True, word: int = 8) -> None:
        self.skeleton: Any = self
        self.elf: Any = self
        self.top: Any = self
        self.line_header = None
        self.sections, self.little, self.address_size = sections, little, word

    def open_section(self, name: str, unit: FakeFile) -> FakeSection | None:
        raw = self.sections.get(name)
        return None if raw is None else FakeSection(name, raw, self.little)

    def is_discarded(self, address: int) -> bool:
        return address == 0

    def raw(self, attribute: int) -> int | None:
        return 0 if attribute == 0x10 and ".debug_line" in self.sections else None


def table(
    program: str,
    *,
    version: int = 4,
    files: str = "00 00",
    operands: str = OPERANDS,
    order: str = "<",
    wide: bool = False,
    line_range: int = 14,
    operations: int = 1,
) -> bytes:
    """A table with line base -5 and first special opcode 13."""
    offset = "Q" if wide else "I"
    body = b"\x01"  # minimum instruction length
    if version >= 4:
        body += bytes([operations])
    counts = bytes.fromhex(operands)
    body += bytes([1, 0xFB, line_range, len(counts) + 1]) + counts + bytes.fromhex(files)
    start = struct.pack(order + "H", version)
    if version >= 5:
        start += b"\x08\x00"
    body = start + struct.pack(order + offset, len(body)) + body + bytes.fromhex(program)
    length = b"\xff" * 4 if wide else b""
    return length + struct.pack(order + offset, len(body)) + body


def file_of(data: bytes, **options: Any) -> Any:
    return FakeFile({".debug_line": data}, **options)


def read(data: bytes, **options: Any) -> list[tuple[int, int, int]]:
    file = file_of(data, **options)
    return [(row.address, row.file, row.line) for row in rows(file, file)]


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (f"{AT_0X1000} 01", [(0x1000, 1, 1)]),  # copy
        (f"{AT_0X1000} 03 09 01 02 8001 03 7e 01", [(0x1000, 1, 10), (0x1080, 1, 8)]),
        (f"{AT_0X1000} 14", [(0x1000, 1, 3)]),  # special: line +2
        (f"{AT_0X1000} 4b", [(0x1004, 1, 2)]),  # special: 62 = 4 * 14 + 6: address +4, line +1
        (f"{AT_0X1000} 04 02 01", [(0x1000, 2, 1)]),  # set_file
        (f"{AT_0X1000} 08 01", [(0x1011, 1, 1)]),  # const_add_pc: (255 - 13) / 14
        (f"{AT_0X1000} 09 2000 01", [(0x1020, 1, 1)]),  # fixed_advance_pc
        (f"{AT_0X1000} 05 07 07 0b 0c 01 01", [(0x1000, 1, 1)]),  # column, block, epilogue, isa
        (f"{AT_0X1000} 00 02 04 05 01", [(0x1000, 1, 1)]),  # discriminator
        (f"{AT_0X1000} 00 03 80 aa bb 01", [(0x1000, 1, 1)]),  # a vendor's own
        (f"{AT_0X1000} 14 {END} 01", [(0x1000, 1, 3), (0x1000, 1, 3), (0, 1, 1)]),
    ],
)
def test_opcodes(program: str, expected: list[tuple[int, int, int]]) -> None:
    assert read(table(program)) == expected


def test_flags_of_rows() -> None:
    file = file_of(table(f"{AT_0X1000} 0a 01 01 06 01 {END}"))
    flags = [(row.is_stmt, row.prologue_end, row.end_sequence) for row in rows(file, file)]
    assert flags == [
        (True, True, False),
        (True, False, False),
        (False, False, False),
        (False, False, True),
    ]


def test_an_unknown_opcode_is_left_out_by_its_operand_count() -> None:
    data = table(f"{AT_0X1000} 0d 8001 05 01", operands=OPERANDS + "02")
    assert read(data) == [(0x1000, 1, 1)]


def test_fewer_opcodes_of_version_2() -> None:
    # Special opcodes start at 10 there: 0x0a is no prologue_end.
    data = table(f"{AT_0X1000} 0f", version=2, operands="00 01 01 01 01 00 00 00 01")
    assert read(data) == [(0x1000, 1, 1)]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("version", [2, 3, 4])
def test_headers(order: str, wide: bool, version: int) -> None:
    program = "00 05 02 " + ("00100000" if order == "<" else "00001000") + " 01"
    data = table(program, order=order, wide=wide, version=version, files=TWO_FILES)
    assert read(data, little=order == "<", word=4) == [(0x1000, 1, 1)]
    file = file_of(data, little=order == "<", word=4)
    assert file_name(file, file, 1) == "/build/main.c"
    assert file_name(file, file, 2) == "/src/a/x.h"
    assert file_name(file, file, 0) is None
    assert file_name(file, file, 3) is None


def test_files_of_version_5() -> None:
    # Directories by line_strp; files with a path inline, by strp, an index and an MD5.
    directories = "01 01 1f 02 00000000 07000000"
    files = (
        "04 01 08 02 0b 05 1e 8140 0f 02"
        f"6d61696e2e6300 00 {'ab' * 16} 8001"
        f"782e6800 01 {'cd' * 16} 05"
    )
    data = table(f"{AT_0X1000} 01", version=5, files=directories + files)
    file: Any = FakeFile({".debug_line": data, ".debug_line_str": b"/build\0include\0"})
    assert file_name(file, file, 0) == "/build/main.c"
    assert file_name(file, file, 1) == "/build/include/x.h"
    assert file_name(file, file, 2) is None
    assert read(data) == [(0x1000, 1, 1)]


def test_names_that_are_no_utf_8() -> None:
    data = table("", files="00 ff2e6300 00 00 00 00")
    file = file_of(data)
    assert file_name(file, file, 1) == "/build/\udcff.c"


def test_a_unit_without_a_line_table() -> None:
    file: Any = FakeFile({})
    assert list(rows(file, file)) == []
    assert file_name(file, file, 1) is None


def test_a_line_table_that_is_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    file: Any = FakeFile({})
    monkeypatch.setattr(file, "raw", lambda attribute: 0)
    with pytest.raises(DebugInfoError, match="a line table is referred to, but there is none"):
        list(rows(file, file))


@pytest.mark.parametrize(
    ("data", "code", "what"),
    [
        (table("", version=6), "FC0905", "version 6 of a line table"),
        (table("", operations=4), "FC0905", "several operations an instruction"),
        (table("", files="00")[:-1], "FC0904", "runs past the end of the section"),
        (table("", line_range=0), "FC0904", "special opcodes cover no lines"),
        (table("", operands="00 01 01 02"), "FC0904", "other operands than the standard's"),
        (table("02"), "FC0904", "a line table that cannot be read: "),
        (table("00 09 02 00"), "FC0904", "truncated operation of a line table"),
        (table("00 00"), "ok", ""),
        (table("00 7f 03"), "FC0904", "truncated operation of a line table"),
        (table("00 40 02" + "00" * 63), "ok", ""),
        (table("", version=5, files="00 05"), "FC0904", "a table of 5 entries runs past the end"),
        (table("", version=5, files="01 01 19 01 00"), "FC0905", "form 0x19 in a line table"),
        (
            table("", version=5, files="01 01 08 ffffff7f"),
            "FC0904",
            "a table of 268435455 entries runs past the end",
        ),
    ],
)
def test_malformed_tables(data: bytes, code: str, what: str) -> None:
    if code == "ok":
        assert read(data) == []
        return
    with pytest.raises(DebugInfoError, match=what) as caught:
        read(data)
    assert caught.value.code == code
    assert caught.value.section == ".debug_line"


@given(st.data(), st.sampled_from([2, 4, 5]))
def test_mutated_tables_end_in_rows_or_a_located_error(data: st.DataObject, version: int) -> None:
    files = TWO_FILES if version < 5 else "01 01 08 01 2f6200 02 01 08 02 0b 01 6100 00"
    raw = bytearray(
        table(f"{AT_0X1000} 14 0a 4b 08 09 2000 01 {END}", version=version, files=files)
    )
    for at, value in data.draw(
        st.lists(st.tuples(st.integers(0, len(raw) - 1), st.integers(0, 255)), max_size=4)
    ):
        raw[at] = value
    file = file_of(bytes(raw[: data.draw(st.integers(0, len(raw)))]))
    located: str | None = ".debug_line"
    try:
        for row in rows(file, file):
            assert isinstance(row, LineRow)
            assert 0 <= row.address < Address(1 << 64)
        file_name(file, file, 1)
    except DebugInfoError as error:
        located = error.section
    assert located in (".debug_line", ".debug_line_str", ".debug_str")
