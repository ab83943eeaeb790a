"""A core library that does not fit is an error, not a guess."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
from fetchc.diag.diagnostic import DebugInfoError
from tests.support.pewriter import Column, core_tables, image, metadata

LENGTH, LETTER = b"\x06\x08", b"\x06\x03"  # fields: int, char


def core(folder: Path, fields: list[tuple[str, bytes]], version: int = 9) -> None:
    """A core library whose strings have these fields."""
    rows: dict[str, list[tuple[Column, ...]]] = {
        name: [tuple(row) for row in rows] for name, rows in core_tables(version=version).items()
    }
    rows["Field"] = [(0, name, signature) for name, signature in fields]
    (folder / "System.Private.CoreLib.dll").write_bytes(image(metadata(rows), b"\xc3", [(0, 1)]))


def program(folder: Path, release: int = 9) -> DotnetProgram:
    """A program compiled for a release, with one method of a string."""
    rows: dict[str, list[tuple[Column, ...]]] = {
        "Module": [(0, "app.dll", 0, 0, 0)],
        "TypeDef": [(0, "<Module>", "", ("TypeDef", 0), 1, 1)],
        "MethodDef": [(0, 0, 0x10, "Take", b"\x00\x01\x01\x0e", 1)],
        "Param": [(0, 1, "text")],
        "Assembly": [(0, 1, 0, 0, 0, 0, b"", "app", "")],
        "AssemblyRef": [
            (4, 0, 0, 0, 0, b"", "Other", "", b""),
            (release, 0, 0, 0, 0, b"", "System.Runtime", "", b""),
        ],
    }
    path = folder / "app.dll"
    path.write_bytes(image(metadata(rows), b"\xc3", [(0, 1)], {0: b"\0"}))
    return DotnetProgram(str(path))


def ask(opened: DotnetProgram) -> int:
    """How many parameters the method has."""
    (function,) = opened.functions_named("Take")
    return len(opened.parameters(function))


@pytest.mark.parametrize(
    "fields",
    [
        [("_stringLength", LENGTH), ("_firstChar", LETTER)],
        [("m_stringLength", LENGTH), ("m_firstChar", LETTER)],
        [],
    ],
)
def test_texts_where_they_should_be(tmp_path: Path, fields: list[tuple[str, bytes]]) -> None:
    core(tmp_path, fields)
    assert ask(program(tmp_path)) == 1


@pytest.mark.parametrize(
    ("fields", "offsets"),
    [
        ([("_more", LENGTH), ("_stringLength", LENGTH), ("_firstChar", LETTER)], "12 and 16"),
        ([("_stringLength", LENGTH), ("_letters", LETTER)], "8 and None"),
    ],
)
def test_texts_elsewhere(tmp_path: Path, fields: list[tuple[str, bytes]], offsets: str) -> None:
    core(tmp_path, fields)
    with pytest.raises(
        DebugInfoError, match=rf"characters at {offsets}, and those of \.NET 9\.0 at 8 and"
    ):
        ask(program(tmp_path))


def test_a_program_of_a_newer_release(tmp_path: Path) -> None:
    core(tmp_path, [], version=8)
    assert ask(program(tmp_path, 8)) == 1
    with pytest.raises(DebugInfoError, match=r"compiled for .NET 9, and the core library .* 8.0"):
        ask(program(tmp_path, 9))


def test_a_release_that_nobody_knows(tmp_path: Path) -> None:
    core(tmp_path, [], version=99)
    with pytest.raises(DebugInfoError, match=r"where objects of .NET 99 have"):
        ask(program(tmp_path))
