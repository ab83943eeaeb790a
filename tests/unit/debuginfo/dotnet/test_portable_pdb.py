"""Sequence points and names of locals, as a compiler would write them."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.debuginfo.dotnet.assemblies import Assembly
from fetchc.debuginfo.dotnet.metadata_tables import Metadata
from fetchc.debuginfo.dotnet.portable_pdb import (
    LocalName,
    PortablePdb,
    SequencePoint,
    _points,
    pdb_of,
)
from fetchc.diag.diagnostic import DebugInfoError
from tests.support.dotnet import NET9, missing

GUID = bytes(range(16))


def blob_heap(*blobs: bytes) -> tuple[bytes, list[int]]:
    heap, offsets = b"\0", []
    for one in blobs:
        offsets.append(len(heap))
        heap += bytes([len(one)]) + one
    return heap, offsets


def pdb(identity: bytes = GUID + b"\1\2\3\4") -> bytes:
    """Debug information of one method of an assembly with 70000 methods."""
    # In line 12 from IL 0, hidden from 4, in line 10 from 6 on.
    points = bytes([0, 0, 0, 5, 12, 9, 4, 0, 0, 2, 0, 8, 0x7D, 0])
    heap, (directory, file, name, own) = blob_heap(b"src", b"a.cs", b"/\x01\x05", points)
    strings = b"\0first\0second\0hidden\0"
    tables = struct.pack("<IBBBBQQ", 0, 2, 0, 0, 1, 1 << 0x30 | 1 << 0x31 | 0b11 << 0x32, 0)
    tables += struct.pack("<4I", 1, 1, 2, 3)
    assert (directory, file) == (1, 5)
    tables += struct.pack("<4H", name, 0, 0, 0)
    tables += struct.pack("<2H", 1, own)
    # The column of a method is wide, by the rows of the other file.
    tables += struct.pack("<I3H2I", 1, 0, 1, 1, 0, 20) + struct.pack("<I3H2I", 1, 0, 3, 1, 4, 6)
    for slot, at, flags in ((0, 1, 0), (2, 14, 1), (1, 7, 0)):
        tables += struct.pack("<3H", flags, slot, at)
    other = identity + struct.pack("<IQI", 0, 1 << 6, 70000)
    streams = {b"#Pdb": other, b"#~": tables, b"#Strings": strings, b"#Blob": heap, b"#GUID": GUID}
    version = b"PDB v1.0\0\0\0\0"
    head = b"BSJB" + struct.pack("<HHII", 1, 1, 0, len(version)) + version
    head += struct.pack("<HH", 0, len(streams))
    at = len(head) + sum(8 + (len(name) // 4 + 1) * 4 for name in streams)
    body = b""
    for stream, content in streams.items():
        padded = stream.ljust((len(stream) // 4 + 1) * 4, b"\0")
        head += struct.pack("<II", at + len(body), len(content)) + padded
        body += content
    return head + body


def read(data: bytes) -> PortablePdb:
    return PortablePdb(Metadata("a.pdb", data, 0, len(data)))


def test_lines_and_locals() -> None:
    made = read(pdb())
    assert made.points(1) == [
        SequencePoint(0, 1, 12),
        SequencePoint(4, 0, 0xFEEFEE),
        SequencePoint(6, 1, 10),
    ]
    assert made.file(1) == "src/a.cs"
    assert made.locals(1) == [LocalName(0, "first", 0, 20), LocalName(1, "second", 4, 10)]
    assert made.points(2) == []
    assert made.locals(2) == []
    assert Metadata("a.pdb", pdb(), 0, len(pdb())).pdb_id[:16] == GUID


@given(st.binary(max_size=40))
def test_points_of_any_bytes(blob: bytes) -> None:
    data = pdb()
    metadata = Metadata("a.pdb", data, 0, len(data))
    found, code = [], "FC0904"
    try:
        found = _points(metadata, blob, 1)
    except DebugInfoError as refused:
        code = refused.code
    assert code == "FC0904"
    assert [one.il for one in found] == sorted(one.il for one in found)


@given(st.data())
def test_damaged_files(data: st.DataObject) -> None:
    content = bytearray(pdb())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    code = "FC0904"
    try:
        made = read(bytes(content))
        made.points(1)
        made.locals(1)
        made.file(1)
    except DebugInfoError as refused:
        code = refused.code
    assert code in ("FC0904", "FC0905")


def test_the_embedded_one_of_a_real_program() -> None:
    if reason := missing(NET9):
        pytest.skip(reason)
    assembly = Assembly(str(NET9 / "azmcp.dll"))
    found = pdb_of(assembly.image)
    assert found is not None
    points = sum(len(found.points(row)) for row in found.methods())
    names = sum(len(found.locals(row)) for row in found.methods())
    assert (points, names) == (3272, 289)
    assert pdb_of(Assembly(str(NET9 / "System.Private.CoreLib.dll")).image) is None


def test_a_file_beside_is_that_of_the_same_build(tmp_path: Path) -> None:
    if reason := missing(NET9):
        pytest.skip(reason)
    # Its directory names a file that is not delivered with it.
    original = (NET9 / "System.Private.CoreLib.dll").read_bytes()
    image = tmp_path / "System.Private.CoreLib.dll"
    image.write_bytes(original)
    own = original[original.index(b"RSDS") + 4 :][:16]
    beside = image.with_suffix(".pdb")
    beside.write_bytes(pdb(own + bytes(4)))
    assert pdb_of(Assembly(str(image)).image) is not None
    beside.write_bytes(pdb())
    assert pdb_of(Assembly(str(image)).image) is None
    beside.write_bytes(b"Microsoft C/C++ MSF 7.00\r\n")
    assert pdb_of(Assembly(str(image)).image) is None
    beside.unlink()
    beside.symlink_to("/proc/self/mem")  # a file that cannot be read, by root either
    with pytest.raises(DebugInfoError) as refused:
        pdb_of(Assembly(str(image)).image)
    assert (refused.value.code, refused.value.path) == ("FC0901", str(beside))


def test_an_embedded_one_that_does_not_inflate() -> None:
    from fetchc.debuginfo.dotnet.portable_executable import Pe
    from fetchc.debuginfo.dotnet.portable_pdb import _inflated

    if reason := missing(NET9):
        pytest.skip(reason)
    data = pdb()
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(data) + packer.flush()
    start = (NET9 / "azmcp.dll").read_bytes()
    for size, body, good in (
        (len(data), packed, True),
        (len(data) + 1, packed, False),
        (len(data), b"\xff" + packed, False),
        (1 << 30, packed, False),
    ):
        entry = b"MPDB" + struct.pack("<I", size) + body
        image = Pe("x.dll", start + entry)
        if good:
            assert _inflated(image, len(start), len(entry)) == data
        else:
            with pytest.raises(DebugInfoError):
                _inflated(image, len(start), len(entry))
