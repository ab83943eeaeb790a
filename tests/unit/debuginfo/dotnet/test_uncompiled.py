"""Why a method has no code, and whether callers have it inlined, by what metadata says."""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from fetchc.debuginfo.dotnet.assemblies import Assembly
from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
from fetchc.debuginfo.dotnet.method_code import is_inlined, why_no_code
from fetchc.diag.diagnostic import CompileError, DebugInfoError
from tests.support.dotnet import NETCORE31, framework, missing
from tests.support.pewriter import Column, core_tables, image, metadata

# Of the image's code, read as headers of bodies: tiny ones of 16 and of 17 bytes, a fat one of 300.
TINY, LONGER, FAT = 0, 4, 8
CODE = bytes([16 << 2 | 2, 0, 0, 0, 17 << 2 | 2, 0, 0, 0]) + b"\x13\x30\0\0" + b"\x2c\x01\0\0"


def assembly(folder: Path, how: int, flags: int, body: int | None) -> Assembly:
    """An assembly of one method."""
    path = folder / "one.dll"
    rows: dict[str, list[tuple[Column, ...]]] = {
        name: [tuple(row) for row in rows] for name, rows in core_tables().items()
    }
    rows["MethodDef"] = [(0, how, flags, "one", b"\x00\x00\x01", 1)]
    path.write_bytes(image(metadata(rows), CODE, [(0, 2)], {}))
    empty = Assembly(str(path)).native
    assert empty is not None
    address = 0 if body is None else empty.begin(0) + body  # known when there is an image
    rows["MethodDef"] = [(address, how, flags, "one", b"\x00\x00\x01", 1)]
    path.write_bytes(image(metadata(rows), CODE, [(0, 2)], {}))
    return Assembly(str(path))


@pytest.mark.parametrize(
    ("how", "flags", "body", "inlined"),
    [
        (0, 0x10, TINY, True),
        (0, 0x10, LONGER, False),
        (0, 0x10, FAT, False),
        (0x100, 0x10, FAT, True),  # AggressiveInlining
        (0x08, 0x10, TINY, False),  # NoInlining
        (0x20, 0x00, TINY, False),  # Synchronized
        (0, 0x40, TINY, False),  # virtual
        (0, 0x10, None, False),
        (0, 0x10, 1 << 20, False),  # a body outside of the image
    ],
)
def test_what_is_inlined(
    tmp_path: Path, how: int, flags: int, body: int | None, inlined: bool
) -> None:
    assert is_inlined(assembly(tmp_path, how, flags, body), 1) is inlined


@pytest.mark.parametrize(
    ("how", "flags", "body", "reason"),
    [
        (0, 0x400, None, "it is abstract: its implementations have code"),
        (0x80, 0x2010, None, "it is a function of a native library"),
        (0x1000, 0x10, None, "it is a part of the runtime itself"),
        (0x03, 0, None, "it is a part of the runtime itself"),
        (0x200, 0, FAT, "it is marked AggressiveOptimization, which leaves it to the runtime"),
        (0, 0, FAT, "the compiler left it to the runtime"),
    ],
)
def test_reasons(tmp_path: Path, how: int, flags: int, body: int | None, reason: str) -> None:
    assert why_no_code(assembly(tmp_path, how, flags, body), 1) == reason


@pytest.mark.parametrize(
    ("asked", "shared"),
    [
        ("List<string>.Insert", ["List<__Canon>.Insert(int, __Canon)"]),
        ("List<Uri[]>.Insert(int, Uri[])", []),
        ("List<int[]>.Insert(int, int[])", ["List<__Canon>.Insert(int, __Canon)"]),
        ("List<string>.Insert(int, int)", []),
        ("Dictionary<String, int>.Remove(string)", ["Dictionary<__Canon, int>.Remove(__Canon)"]),
        ("Dictionary<string, int>.TryGetValue(string, out int)",
         ["Dictionary<__Canon, int>.TryGetValue(__Canon, int&)"]),
        ("Array.IndexOf<string>(string[], string)",
         ["System.Array.IndexOf<__Canon>(__Canon[], __Canon)"]),
    ],
)  # fmt: skip
def test_code_that_classes_share_is_taken(asked: str, shared: list[str]) -> None:
    if reason := missing(NETCORE31):
        pytest.skip(reason)
    program = fetchc.open(framework(NETCORE31))
    if not shared:
        with pytest.raises((CompileError, DebugInfoError)):
            program.probe(asked)
        return
    (taken,) = shared
    probe = program.probe(asked)
    assert probe.function is not None
    assert probe.function.symbol.endswith(taken)
    assert "FC0624" in [one.code for one in probe.warnings]
    whole = program.probe(probe.function.symbol)
    assert "FC0624" not in [one.code for one in whole.warnings]


@pytest.mark.parametrize(
    ("asked", "shared"),
    [("List<My.Own>.Insert(int, Own)", "List<__Canon>.Insert(int, __Canon)")],
)
def test_what_may_be_a_structure_is_not_taken(asked: str, shared: str) -> None:
    # No assembly at hand has the type: structures have code of their own.
    if reason := missing(NETCORE31):
        pytest.skip(reason)
    with pytest.raises(DebugInfoError, match="no code for these types alone") as refused:
        DotnetProgram(framework(NETCORE31)).functions_named(asked)
    assert refused.value.help is not None
    assert f"{shared}`" in refused.value.help


@pytest.mark.parametrize("asked", ["Lazy<int>.CreateValue", "Lazy<DateTime?>.CreateValue"])
def test_structures_share_none(asked: str) -> None:
    if reason := missing(NETCORE31):
        pytest.skip(reason)
    with pytest.raises(DebugInfoError, match="no instantiation of it is in this image"):
        DotnetProgram(framework(NETCORE31)).functions_named(asked)
