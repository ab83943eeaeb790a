"""Layouts of types that no compiler writes: those that hold themselves, and huge ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.debuginfo.dotnet.assemblies import Assembly, References
from fetchc.debuginfo.dotnet.class_layout import Layout, Layouts
from fetchc.debuginfo.dotnet.closed_types import ClosedTypes, Instance
from fetchc.diag.diagnostic import CompileError, DebugInfoError
from fetchc.target.dotnet_runtimes import runtime
from tests.support.pewriter import Column, assembly, core_tables

SEQUENTIAL, EXPLICIT = 0x109, 0x111
VALUE_TYPE, OBJECT = ("TypeDef", 3), ("TypeDef", 2)
INT = b"\x08"


def laid_out(
    folder: Path,
    types: list[tuple[int, tuple[str, int], list[bytes]]],
    version: tuple[int, int],
    more: dict[str, list[tuple[Column, ...]]] | None = None,
) -> Layout:
    """The layout of the last of these types (flags, base, signatures of fields)."""
    rows = {name: [tuple(row) for row in listed] for name, listed in core_tables().items()}
    fields: list[tuple[Column, ...]] = []
    for number, (flags, base, signatures) in enumerate(types):
        rows["TypeDef"].append((flags, f"T{number}", "N", base, len(fields) + 1, 1))
        fields += [(0, f"f{at}", b"\x06" + one) for at, one in enumerate(signatures)]
    rows["Field"] = fields
    rows.update(more or {})
    path = folder / "core.dll"
    path.write_bytes(assembly(rows))
    made = Assembly(str(path))
    closed = ClosedTypes(References(made, ()))
    number = closed.number(Instance(made, 5 + len(types), ()))
    return Layouts(closed, runtime("coreclr", version).layout).of(number)


def a_value(row: int) -> bytes:
    return b"\x11" + bytes([row << 2])


@pytest.mark.parametrize("version", [(3, 1), (9, 0)])
def test_each_type_is_looked_at_once(tmp_path: Path, version: tuple[int, int]) -> None:
    types = [(SEQUENTIAL, VALUE_TYPE, [INT])]
    types += [(SEQUENTIAL, VALUE_TYPE, 2 * [a_value(6 + level)]) for level in range(20)]
    found = laid_out(tmp_path, types, version)
    assert found.size == 4 << 20


def test_what_holds_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DebugInfoError, match=r"`N\.T1` holds itself"):
        laid_out(
            tmp_path,
            [(SEQUENTIAL, VALUE_TYPE, [a_value(7)]), (SEQUENTIAL, VALUE_TYPE, [a_value(6)])],
            (9, 0),
        )


def test_what_is_too_big_is_refused(tmp_path: Path) -> None:
    types = [(SEQUENTIAL, VALUE_TYPE, [INT])]
    types += [(SEQUENTIAL, VALUE_TYPE, 4 * [a_value(6 + level)]) for level in range(14)]
    with pytest.raises(DebugInfoError, match="bytes"):
        laid_out(tmp_path, types, (9, 0))


def test_a_class_that_is_its_own_base_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DebugInfoError, match=r"too many bases|holds itself"):
        laid_out(tmp_path, [(1, ("TypeDef", 6), [INT])], (9, 0))


def test_explicit_fields_need_their_offsets(tmp_path: Path) -> None:
    types = [(EXPLICIT, VALUE_TYPE, [INT, INT])]
    with pytest.raises(DebugInfoError, match="explicit layout has no offset"):
        laid_out(tmp_path, types, (9, 0))
    found = laid_out(tmp_path, types, (9, 0), {"FieldLayout": [(0, 1), (6, 2)]})
    assert ([field.offset for field in found.fields], found.size) == ([0, 6], 12)


def test_structures_in_structures_changed_with_dotnet_7(tmp_path: Path) -> None:
    # Two bytes in a structure, then a class that holds it after a byte of its own.
    types = [(SEQUENTIAL, VALUE_TYPE, [b"\x05", b"\x05"]), (1, OBJECT, [a_value(6), b"\x05"])]
    assert [f.offset for f in laid_out(tmp_path, types, (3, 1)).fields] == [8, 0]
    assert [f.offset for f in laid_out(tmp_path, types, (7, 0)).fields] == [1, 0]


def test_releases_that_were_not_compared_are_refused() -> None:
    assert runtime("coreclr", (10, 0)).layout.inline_arrays
    with pytest.raises(CompileError, match=r"objects of \.NET 11 have their fields is not known"):
        runtime("coreclr", (11, 0))
