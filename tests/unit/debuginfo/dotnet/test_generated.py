"""Names that compilers make of the source's, and types that are called so."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
from fetchc.debuginfo.dotnet.dotnet_types import source_names
from fetchc.program.types import StructType
from tests.support.pewriter import core_tables, image, metadata, native_number


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("<note>5__2", "note"),  # of Roslyn
        ("<note>__2", "note"),  # of mcs
        ("<name>P", "name"),
        ("<Name>i__Field", "Name"),
        ("<Name>", "Name"),
        ("Name@", "Name"),
        ("<>4__this", "this"),
        ("$this", "this"),
    ],
)
def test_names_of_the_source(name: str, called: str) -> None:
    assert source_names((name, "other")) == {name: called}


@pytest.mark.parametrize(
    "name",
    [
        "plain", "", "<", "<>1__state", "<>t__builder", "<>2__current", "<>3__limit", "<>7__wrap1",
        "<>u__1", "$PC", "$locvar0", "<a>5__", "<a>5__x", "<a>b__0_0", "<a<b>5__1", "@",
    ],
)  # fmt: skip
def test_names_that_the_source_does_not_have(name: str) -> None:
    assert source_names((name, "other")) == {}


def test_several_variables_of_one_name() -> None:
    names = ("<i>5__2", "<i>5__4", "<n>5__3", "n")
    assert source_names(names) == {"<i>5__2": "i__2", "<i>5__4": "i__4", "<n>5__3": "<n>5__3"}


def program(folder: Path) -> DotnetProgram:
    """A core library with ``N.App``, and what a compiler made of a method and of a lambda of it."""
    rows = {name: [tuple(row) for row in rows] for name, rows in core_tables().items()}
    rows["TypeDef"] += [
        (1, "App", "N", ("TypeDef", 2), 1, 1),
        (0x103, "<Work>d__0`1", "", ("TypeDef", 2), 2, 1),
        (0x103, "<>c__DisplayClass0_0", "", ("TypeDef", 2), 6, 1),
    ]
    rows["NestedClass"] = [(7, 6), (8, 6)]
    reference = b"\x06\x12"
    rows["Field"] = [
        (0, "handled", b"\x06\x08"),
        (0, "<>4__this", reference + bytes([6 << 2])),
        (0, "<>8__1", reference + bytes([8 << 2])),
        (0, "<sum>5__2", b"\x06\x08"),
        (0, "retries", b"\x06\x08"),
        (0, "retries", b"\x06\x08"),
        (0, "<>4__this", reference + bytes([6 << 2])),
    ]
    rows["MethodDef"] = [(0, 0, 0x10, "M", b"\x00\x00\x01", 1)]
    path = folder / "System.Private.CoreLib.dll"
    entries = {0: native_number(0)}
    path.write_bytes(image(metadata(rows), b"\xc3", [(0, 1)], entries))
    return DotnetProgram(str(path))


def test_a_type_that_a_compiler_named_is_found_by_its_name(tmp_path: Path) -> None:
    opened = program(tmp_path)
    for name in ("N.App.<>c__DisplayClass0_0", "N.App.<Work>d__0<int>"):
        (found,) = opened.types_named(name, None)
        made = opened.type(found)
        assert isinstance(made, StructType)
        assert made.name == name
    assert opened.types_named("N.App.<Work>d__0", None) == ()


def test_variables_of_the_source_are_members(tmp_path: Path) -> None:
    opened = program(tmp_path)
    (found,) = opened.types_named("N.App.<Work>d__0<int>", None)
    made = opened.type(found)
    assert isinstance(made, StructType)
    known = {member.name: (member.offset, member.embedded) for member in made.members}
    # The parameter that a closure captures is the closure's: that of the method was it at first.
    assert known == {
        "this": (8, True), "<>8__1": (16, True), "sum": (24, False), "retries__0": (28, False),
    }  # fmt: skip
