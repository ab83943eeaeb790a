"""Fixed buffers, and structures that state more bytes than their one field has: how they are
passed, and what they show.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from tests.support.pewriter import core_tables, image, metadata, native_number

SEQUENTIAL = 0x109
STRUCTURE = ("TypeDef", 3)
UNSAFE = "System.Runtime.CompilerServices"


def program(folder: Path) -> fetchc.Program:
    """A core library with ``M(Id, int, Padded, int, Wide, int)``.

    ``Id`` has a fixed buffer of 12 bytes; ``Padded`` states 16 bytes and ``Wide`` 64, of which
    their one field has 8 and 4.
    """
    rows = {name: [tuple(row) for row in rows] for name, rows in core_tables().items()}
    rows["TypeDef"] += [
        (1, "UnsafeValueTypeAttribute", UNSAFE, ("TypeDef", 2), 1, 1),
        (SEQUENTIAL, "Id", "N", STRUCTURE, 1, 2),
        (SEQUENTIAL | 2, "<data>e__FixedBuffer", "", STRUCTURE, 2, 2),
        (SEQUENTIAL, "Padded", "N", STRUCTURE, 3, 2),
        (SEQUENTIAL, "Wide", "N", STRUCTURE, 4, 2),
        (1, "App", "N", ("TypeDef", 2), 5, 2),
    ]
    rows["NestedClass"] = [(8, 7)]
    rows["ClassLayout"] = [(0, 12, 8), (0, 16, 9), (0, 64, 10)]
    rows["Field"] = [
        (0, "data", b"\x06\x11" + bytes([8 << 2])),
        (0, "FixedElementField", b"\x06\x05"),
        (0, "Value", b"\x06\x0a"),
        (0, "Small", b"\x06\x08"),
    ]
    values = [b"\x11" + bytes([row << 2]) for row in (7, 9, 10)]
    signature = b"\x00\x06\x01" + b"\x08".join(values) + b"\x08"
    rows["MethodDef"] = [
        (0, 0, 0, ".ctor", b"\x20\x00\x01", 1),
        (0, 0, 0x10, "M", signature, 1),
    ]
    rows["Param"] = [(0, at, name) for at, name in enumerate("abcdef", 1)]
    rows["CustomAttribute"] = [(("TypeDef", 8), ("MethodDef", 1), b"\x01\x00\x00\x00")]
    path = folder / "System.Private.CoreLib.dll"
    path.write_bytes(image(metadata(rows), b"\xc3", [(0, 1)], {1: native_number(0)}))
    return fetchc.open(str(path))


@pytest.mark.parametrize(
    ("expression", "fetch"),
    [
        ("b", "%dx:s32"),  # after two registers of a
        ("c.Value", "%cx:s64"),
        ("d", "%r9:s32"),  # after two of c
        ("e.Small", "+8(%sp):s32"),
        ("f", "+72(%sp):s32"),
        ("a.data[3]", "%di:b8@24/64"),
        ("a.data[9]", "%si:b8@8/64"),
    ],
)
def test_parameters_behind_them(expression: str, fetch: str, tmp_path: Path) -> None:
    probe = program(tmp_path).probe("N.App.M", kernel="6.1")
    assert probe.compile(expression).fetcharg == fetch


def test_a_fixed_buffer_is_an_array(tmp_path: Path) -> None:
    (layout,) = program(tmp_path).layouts("N.Id")
    assert [(row.offset, row.size, row.type, row.name) for row in layout.rows] == [
        (0, 12, "byte[12]", "data")
    ]


@pytest.mark.parametrize("version", [8, 9])
def test_an_empty_structure_in_another(version: int, tmp_path: Path) -> None:
    # Up to .NET 8 what holds one is in memory: System.Linq.Parallel's Pair<T, NoKey...> of 3.1.
    rows = {name: [tuple(row) for row in rows] for name, rows in core_tables().items()}
    rows["TypeDef"] += [
        (SEQUENTIAL, "None", "N", STRUCTURE, 1, 1),
        (SEQUENTIAL, "Pair", "N", STRUCTURE, 1, 1),
        (SEQUENTIAL, "Small", "N", STRUCTURE, 3, 1),
        (1, "App", "N", ("TypeDef", 2), 5, 1),
    ]
    empty, pair, small = (b"\x11" + bytes([row << 2]) for row in (6, 7, 8))
    rows["Field"] = [
        (0, "first", b"\x06\x0a"),
        (0, "second", b"\x06" + empty),
        (0, "number", b"\x06\x08"),
        (0, "none", b"\x06" + empty),
    ]
    rows["MethodDef"] = [
        (0, 0, 0x10, "M", b"\x00\x04\x01\x08" + pair + b"\x08" + small, 1),
    ]
    rows["Param"] = [(0, at, name) for at, name in enumerate("abcd", 1)]
    rows["Assembly"] = [(0x8004, version, *row[2:]) for row in rows["Assembly"]]
    path = tmp_path / "System.Private.CoreLib.dll"
    path.write_bytes(image(metadata(rows), b"\xc3", [(0, 1)], {0: native_number(0)}))
    probe = fetchc.open(str(path)).probe("N.App.M", kernel="6.1")
    assert probe.compile("a").fetcharg == "%di:s32"
    if version == 8:
        fetches = [probe.compile(text).fetcharg for text in ("b.first", "c", "d.number")]
        assert fetches == ["+8(%sp):s64", "%si:s32", "+24(%sp):s32"]
        return
    for name in ("b.first", "c", "d.number"):
        with pytest.raises(fetchc.CompileError) as raised:
            assert not probe.compile(name).fetcharg
        assert [one.code for one in raised.value.diagnostics] == ["FC0401"]
