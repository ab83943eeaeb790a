"""Sections packed by zstd: read as far as asked for, damaged ones, and without the library."""

from __future__ import annotations

import struct
import sys
import tracemalloc
from pathlib import Path

import pytest
import zstandard

from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.elf.headers import Section
from fetchc.diag.diagnostic import DebugInfoError
from tests.support.elfwriter import elf_file

COMPRESSED = 0x800
CONTENT = b"".join(b"entry %d\0" % number for number in range(200_000))


def packed(content: bytes, checksum: bool = True) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=checksum).compress(content)


def section(path: Path, stream: bytes, size: int, bits: int = 64, little: bool = True) -> Section:
    order = "<" if little else ">"
    layout, fields = ("IIQQ", (2, 0, size, 1)) if bits == 64 else ("III", (2, size, 1))
    content = struct.pack(order + layout, *fields) + stream
    written = elf_file(
        {".debug_info": content}, flags={".debug_info": COMPRESSED}, bits=bits, little=little
    )
    (path / "file").write_bytes(written)
    found = Elf(str(path / "file")).open_section(".debug_info")
    assert found is not None
    return found


@pytest.mark.parametrize(("bits", "little"), [(64, True), (64, False), (32, True), (32, False)])
def test_every_class(tmp_path: Path, bits: int, little: bool) -> None:
    found = section(tmp_path, packed(CONTENT), len(CONTENT), bits, little)
    assert bytes(found.upto()) == CONTENT
    assert found.cstring(CONTENT.index(b"entry 199999")) == b"entry 199999"


def test_frames_behind_each_other_are_one_section(tmp_path: Path) -> None:
    stream = packed(b"one") + packed(b"") + packed(b"two")
    assert bytes(section(tmp_path, stream, 6).upto()) == b"onetwo"


def test_the_beginning_is_had_alone(tmp_path: Path) -> None:
    stream = packed(CONTENT)
    cut = section(tmp_path, stream[: len(stream) // 2], len(CONTENT))
    assert cut.bytes_between(0, 100) == CONTENT[:100]  # what is missing is not looked at
    with pytest.raises(DebugInfoError, match="ends before the stated size"):
        cut.upto()


@pytest.mark.parametrize(
    ("stream", "size", "what"),
    [
        (b"no stream", 9, "damaged zstd stream"),
        (packed(b"some") + b"more", 5, "damaged zstd stream"),
        (packed(b"some") + b"more", 4, "damaged zstd stream"),
        (packed(b"some"), 5, "ends before the stated size"),
        (packed(b"some"), 3, "longer than the stated size"),
        (packed(b"some")[:-1] + b"?", 4, "damaged zstd stream"),
        (
            packed(b"some"),
            1 << 40,
            "cannot inflate 17 bytes to the 1099511627776 that its header states",
        ),
        (b"", 1, "cannot inflate 0 bytes"),
    ],
)
def test_what_is_damaged_is_refused(stream: bytes, size: int, what: str, tmp_path: Path) -> None:
    with pytest.raises(DebugInfoError, match=what) as refused:
        section(tmp_path, stream, size).upto()
    assert (refused.value.code, refused.value.section) == ("FC0904", ".debug_info")


def test_a_small_file_does_not_take_much_memory(tmp_path: Path) -> None:
    bomb = packed(bytes(1 << 28))  # 256 MiB of nothing in some kilobytes
    assert len(bomb) < 1 << 15
    found = section(tmp_path, bomb, 1 << 28)
    tracemalloc.start()
    assert found.bytes_between(0, 10) == bytes(10)
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    tracemalloc.stop()


def test_without_the_library_the_help_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(DebugInfoError, match="compressed with zstd") as refused:
        section(tmp_path, packed(b"some"), 4)
    assert refused.value.code == "FC0905"
    assert refused.value.help == "install it: `python3 -m pip install zstandard`"
