"""Every name that a listing of a real image shows finds its method."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.debuginfo.dotnet.csharp_names import without_arguments
from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
from tests.support.dotnet import NET9, NETCORE31, framework, missing

LIBRARIES = {
    "azmcp": (NET9, 1186),
    "System.Collections": (NETCORE31, 813),
    "System.Linq": (NETCORE31, 985),
}


@pytest.mark.parametrize("name", LIBRARIES)
def test_names_of_a_listing(name: str) -> None:
    folder, count = LIBRARIES[name]
    if reason := missing(folder):
        pytest.skip(reason)
    program = DotnetProgram(framework(folder, name))
    listed = list(program.function_names())
    assert len(listed) == count
    for symbol in listed:
        assert symbol in [one.symbol for one in program.functions_named(symbol)]


@pytest.mark.parametrize(
    ("folder", "library", "written", "found"),
    [
        (NETCORE31, "System.Collections", "Queue<__Canon>..ctor(int)", "Queue<__Canon>..ctor(int)"),
        (NET9, "azmcp", "Program.<Main>$", "Program.<Main>$(string[])"),
        (NETCORE31, "System.Private.Uri", "Uri.AbsoluteUri", "System.Uri.get_AbsoluteUri()"),
        (NETCORE31, "System.Private.CoreLib", "Int32.ToInt64",
         "System.Int32.System.IConvertible.ToInt64(System.IFormatProvider)"),
        (NETCORE31, "System.Private.CoreLib", "Int32.System.IConvertible.ToInt64",
         "System.Int32.System.IConvertible.ToInt64(System.IFormatProvider)"),
    ],
)  # fmt: skip
def test_names_as_people_write_them(folder: Path, library: str, written: str, found: str) -> None:
    if reason := missing(folder):
        pytest.skip(reason)
    symbols = [
        one.symbol for one in DotnetProgram(framework(folder, library)).functions_named(written)
    ]
    assert [symbol for symbol in symbols if symbol.endswith(found)] == symbols
    assert symbols


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("List<int>", "List"),
        ("<Main>$", "<Main>$"),
        ("<<Main>$>g__Run|0_0<int>", "<<Main>$>g__Run|0_0"),
        ("<>c", "<>c"),
        ("<", "<"),
        ("", ""),
    ],
)
def test_names_without_type_arguments(name: str, plain: str) -> None:
    assert without_arguments(name) == plain
