"""The index of a package of .dwo files, built by hand: look-ups by hash, and damage."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from fetchc.debuginfo.dwarf.split_units import PackageIndex
from fetchc.debuginfo.elf.headers import Image
from fetchc.diag.diagnostic import DebugInfoError
from tests.support.elfwriter import elf_file

INFO, ABBREV, STR_OFFSETS = 1, 3, 6


def index(
    keys: dict[int, tuple[int, int]], *, version: int = 5, slots: int = 4, little: bool = True
) -> bytes:
    """A table of (offset, size) in .debug_info by key; abbreviations are at twice the offset."""
    order = "<" if little else ">"
    hashes, rows = [0] * slots, [0] * slots
    for row, key in enumerate(keys, 1):
        slot = key & (slots - 1)
        while rows[slot]:
            slot = (slot + (key >> 32 & (slots - 1) | 1)) & (slots - 1)
        hashes[slot], rows[slot] = key, row
    head = struct.pack(order + "HH", 5, 0) if version == 5 else struct.pack(order + "I", version)
    table = [INFO, ABBREV]
    table += [number for at, _ in keys.values() for number in (at, 2 * at)]
    table += [number for _, size in keys.values() for number in (size, size)]
    return (
        head
        + struct.pack(order + "III", 2, len(keys), slots)
        + struct.pack(f"{order}{slots}Q{slots}I{len(table)}I", *hashes, *rows, *table)
    )


def opened(path: Path, data: bytes, little: bool = True) -> PackageIndex:
    file = path / "package"
    file.write_bytes(elf_file({".debug_cu_index": data}, little=little))
    section = Image(str(file)).open_section(".debug_cu_index")
    assert section is not None
    return PackageIndex(section)


@pytest.mark.parametrize("version", [2, 5])
@pytest.mark.parametrize("little", [True, False])
def test_units_are_found_by_their_hash(tmp_path: Path, version: int, little: bool) -> None:
    # The second and third fall on the first one's slot and go on by steps of their own.
    keys = {0x11: (0, 8), 0x1_0000_0011: (8, 16), 0x2_0000_0021: (24, 4)}
    found = opened(tmp_path, index(keys, version=version, little=little), little)
    for key, (offset, size) in keys.items():
        assert found.contributions(key) == {
            ".debug_info": (offset, size),
            ".debug_abbrev": (2 * offset, size),
        }
    assert found.contributions(0x12) is None
    assert found.contributions(0x31) is None
    assert sorted(found.keys()) == sorted(keys)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (index({1: (0, 4)}, version=3), "version 3 of the index of a package"),
        (index({1: (0, 4)}, slots=3), "3 slots for 1 units"),
        (index({1: (0, 4)})[:-4], "the index runs past the end of its section"),
        (index({1: (0, 4)})[:10], "truncated 4-byte number"),
        (struct.pack("<HHIII", 5, 0, 2, 1, 1 << 30), "the index runs past the end"),
    ],
)
def test_damaged_indexes(tmp_path: Path, data: bytes, said: str) -> None:
    with pytest.raises(DebugInfoError, match=said) as raised:
        opened(tmp_path, data)
    assert raised.value.code == "FC0904"
    assert raised.value.section == ".debug_cu_index"


def test_a_row_that_is_not_there(tmp_path: Path) -> None:
    data = bytearray(index({1: (0, 4)}))
    rows = 16 + 8 * 4
    assert data[rows + 4] == 1
    data[rows + 4] = 9
    with pytest.raises(DebugInfoError, match="row 9 of 1"):
        opened(tmp_path, bytes(data)).contributions(1)
