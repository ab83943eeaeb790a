"""Images: headers, sections, the way from a method to its code, what is broken in one place."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.debuginfo.byte_reader import Cursor
from fetchc.debuginfo.dotnet.assemblies import Assembly
from fetchc.debuginfo.dotnet.metadata_signatures import (
    Array,
    Parameter,
    Pointer,
    Primitive,
    SignatureReader,
)
from fetchc.debuginfo.dotnet.portable_executable import Pe
from fetchc.debuginfo.dotnet.ready_to_run import (
    ReadyToRun,
    array_element,
    array_elements,
    native_number,
    signed_number,
    table_entries,
)
from fetchc.diag.diagnostic import DebugInfoError
from tests.support.pewriter import (
    assembly,
    core_tables,
    image,
    metadata,
    native_array,
)
from tests.support.pewriter import native_number as written

VOID = b"\x00\x00\x01"  # a static method of no parameters


def tables(methods: int = 3) -> dict[str, list[tuple[int | str | bytes | tuple[str, int], ...]]]:
    made = {name: [tuple(row) for row in rows] for name, rows in core_tables().items()}
    made["MethodDef"] = [(0, 0, 0x10, f"m{number}", VOID, 1) for number in range(methods)]
    last = made["TypeDef"][-1]
    made["TypeDef"].append((1, "T", "N", ("TypeDef", 2), 1, 1))
    assert last[1] == "String"
    return made


def opened(folder: Path, content: bytes) -> Assembly:
    path = folder / "image.dll"
    path.write_bytes(content)
    return Assembly(str(path))


def refused(folder: Path, content: bytes) -> str:
    with pytest.raises(DebugInfoError) as raised:
        opened(folder, content)
    return f"{raised.value.code} " + str(raised.value).removeprefix(f"{folder}/image.dll: ")


def test_a_method_leads_to_the_offset_of_its_code_in_the_file(tmp_path: Path) -> None:
    code = b"\x55\xc3" + bytes(14) + b"\x90\xc3"
    entries = {0: written(0 << 1), 2: written(1 << 2 | 1)}  # with fixups: another shift
    made = opened(tmp_path, image(metadata(tables()), code, [(0, 2), (16, 18)], entries))
    assert (made.kind, made.image.machine, made.image.system) == ("ReadyToRun", "x86_64", "linux")
    native = made.native
    assert isinstance(native, ReadyToRun)
    assert native.version == (3, 1)
    assert [native.entry(row) for row in (1, 2, 3, 4)] == [0, None, 1, None]
    begin = native.begin(1)
    assert native.end(1) - begin == 2
    at = made.image.offset(begin)
    assert int(at) != int(begin)
    assert made.image.data[at : at + 2] == b"\x90\xc3"
    assert made.image.address(at) == begin
    with pytest.raises(DebugInfoError, match="there is no function 2"):
        native.begin(2)
    with pytest.raises(DebugInfoError, match="no section has bytes of the file at 0x30000"):
        made.image.offset(0x30000)


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (0x8664, ("x86_64", "windows")),
        (0xD11D, ("aarch64", "linux")),
        (0x8664 ^ 0x4644, ("x86_64", "apple")),
        (0x14C, ("i386", "windows")),
        (0x1234, ("", "")),
    ],
)
def test_machines_carry_the_system(tmp_path: Path, machine: int, expected: tuple[str, str]) -> None:
    made = opened(tmp_path, image(metadata(tables()), machine=machine))
    assert (made.image.machine, made.image.system) == expected


def test_an_image_of_il_has_no_native_code(tmp_path: Path) -> None:
    made = opened(tmp_path, assembly(tables()))
    assert (made.kind, made.native, made.name) == ("IL", None, "System.Private.CoreLib")


def test_a_fragile_image_says_so(tmp_path: Path) -> None:
    made = opened(tmp_path, image(metadata(tables()), b"\xc3", [(0, 1)], native=b"NGE\0"))
    assert (made.kind, made.native) == ("fragile", None)


def test_what_is_no_image_of_dotnet(tmp_path: Path) -> None:
    assert refused(tmp_path, b"#!/bin/sh\n") == "FC0902 not a portable executable"
    assert refused(tmp_path, b"") == "FC0902 not a portable executable"
    good = image(metadata(tables()))
    no_cli = bytearray(good)
    no_cli[0x98 + 112 + 14 * 8 : 0x98 + 112 + 15 * 8] = bytes(8)
    assert refused(tmp_path, bytes(no_cli)) == "FC0902 a portable executable without .NET metadata"


def test_a_truncated_image_names_the_place(tmp_path: Path) -> None:
    good = image(metadata(tables()))
    assert refused(tmp_path, good[:0x3C]) == "FC0904 DOS header+0x3c: truncated 4-byte number"
    assert refused(tmp_path, good[:0x100]).startswith("FC0904 PE ")
    assert "past the end of the image" in refused(tmp_path, good[:0x410])


def test_streams_and_tables_that_run_past_their_ends(tmp_path: Path) -> None:
    content = metadata(tables())
    at = content.index(b"#Strings\0") - 4
    broken = content[:at] + b"\xff\xff\xff\x7f" + content[at + 4 :]
    assert "stream b'#Strings' runs past the end" in refused(tmp_path, image(broken))
    rows = content.index(b"#~") and content.index((6).to_bytes(4, "little"), 100)  # of TypeDef
    many = content[:rows] + b"\xff\xff\0\0" + content[rows + 4 :]
    assert "the tables run past the end of their stream" in refused(tmp_path, image(many))


@pytest.mark.parametrize("width", [1, 2, 4])
def test_sparse_arrays(width: int) -> None:
    elements = {index: written(1000 + index) for index in (0, 1, 3, 15, 16, 31, 40)}
    data = native_array(elements, width)
    for index in range(-1, 60):
        found = array_element(Cursor("f", "s", data), index)
        assert (found is not None) == (index in elements), index
        assert found is None or native_number(found) == 1000 + index
    whole = array_elements(Cursor("f", "s", data))
    assert {index: native_number(each) for index, each in whole} == {
        index: 1000 + index for index in elements
    }


def test_an_early_end_of_a_tree_is_of_its_own_branch() -> None:
    # The root has both branches; the low one ends with an element of the high one.
    tree = written(3 << 2 | 3) + written(9 << 2) + b"\x02" + written(9 << 2) + b"\x04"
    data = written(16 << 2) + b"\x01" + tree
    found = [(index, native_number(each)) for index, each in array_elements(Cursor("f", "s", data))]
    assert found == [(9, 2)]
    nine = array_element(Cursor("f", "s", data), 9)
    assert nine is not None
    assert native_number(nine) == 2


def test_hash_tables() -> None:
    distances = [3, -2, 1000, -70000, 1 << 22, -(1 << 29)]
    entries = b""
    expected = []
    for number, distance in enumerate(distances):
        bits = next(
            size * 7 for size in range(1, 6) if -(1 << size * 7 - 1) <= distance < 1 << size * 7 - 1
        )
        expected.append(3 + len(entries) + 1 + distance)
        entries += bytes([number]) + written_as(distance, bits // 7)
    table = b"\x00" + bytes([2, 2 + len(entries)]) + entries
    assert table_entries(Cursor("f", "s", table)) == expected
    with pytest.raises(DebugInfoError, match="an entry that is broken off"):
        table_entries(Cursor("f", "s", b"\x00\x02\x04\x00\x01"))
    with pytest.raises(DebugInfoError, match="buckets that are not in order"):
        table_entries(Cursor("f", "s", b"\x00\x05\x04\x00\x01"))


def written_as(value: int, size: int) -> bytes:
    """A signed native number of so many bytes."""
    if size == 5:
        return b"\x0f" + (value & (1 << 32) - 1).to_bytes(4, "little")
    return ((value & (1 << 7 * size) - 1) << size | (1 << size - 1) - 1).to_bytes(size, "little")


@pytest.mark.parametrize("value", [0, 127, 128, 1 << 14, (1 << 21) - 1, 1 << 27, (1 << 32) - 1])
def test_native_numbers(value: int) -> None:
    cursor = Cursor("f", "s", written(value))
    assert native_number(cursor) == value
    assert cursor.at_end()


def test_signed_native_numbers() -> None:
    assert signed_number(written(0x7F), 0) == (-1, 1)
    assert signed_number(written(0x3F), 0) == (63, 1)
    assert signed_number(b"\x0f\xfe\xff\xff\xff", 0) == (-2, 5)
    with pytest.raises(DebugInfoError, match="a number that begins with 0x1f"):
        native_number(Cursor("f", "s", b"\x1f\0\0\0\0"))


def reader(folder: Path, blob: bytes) -> SignatureReader:
    return SignatureReader(opened(folder, assembly(tables())).metadata, blob)


def test_signatures(tmp_path: Path) -> None:
    assert reader(tmp_path, b"\x06\x1d\x0f\x08").field() == Pointer(
        "array", Pointer("pointer", Primitive("int"))
    )
    # A required modifier, an array of two dimensions with one stated size.
    blob = b"\x06\x1f\x05\x14\x0e\x02\x01\x03\x00"
    assert reader(tmp_path, blob).field() == Array(Primitive("string"), 2)
    method = reader(tmp_path, b"\x30\x01\x02\x01\x1e\x00\x41\x13\x00").method()
    assert (method.receives, method.generic) == (True, 1)
    assert method.parameters == (Parameter(0, True), Parameter(0, False))


@pytest.mark.parametrize(
    ("blob", "said"),
    [
        (b"\x06", "breaks off"),
        (b"\x06\x45", "breaks off"),
        (b"\x07\x08", "no field's signature"),
        (b"\x06\x99", "the unknown type code 0x99"),
        (b"\x06" + b"\x1d" * 100 + b"\x08", "nested too deeply"),
        (b"\x06\x15\x12\x04\xdf\xff\xff\xff\x08", "types in"),
        (b"\x06\x15\x08\x01\x08", "something that is no class"),
        (b"\x06\x12\xff", "breaks off"),
    ],
)
def test_broken_signatures(tmp_path: Path, blob: bytes, said: str) -> None:
    with pytest.raises(DebugInfoError, match=said) as raised:
        reader(tmp_path, blob).field()
    assert raised.value.code == "FC0904"


def test_an_image_inside_of_a_file(tmp_path: Path) -> None:
    content = image(metadata(tables()), b"\xc3", [(0, 1)], {0: written(0)})
    path = str(tmp_path / "bundle")
    made = Assembly(path, Pe(path, b"x" * 77 + content + b"y" * 9, 77, len(content)))
    assert made.native is not None
    assert made.native.entry(1) == 0
    assert made.image.data[77 + made.image.offset(made.native.begin(0))] == 0xC3
