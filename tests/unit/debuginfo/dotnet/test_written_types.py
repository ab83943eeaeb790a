"""Types of other assemblies, for casts of what a library is given."""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from fetchc.diag.diagnostic import CompileError
from tests.support.dotnet import NETCORE31, framework, missing

TYPES = Path(__file__).parents[4] / "corpus/dotnet/layouts/bin"  # types.dll, of programs' types
WRITE = "System.IO.TextWriter.Write(object)"


def compiled(library: str, function: str, expression: str, *references: str) -> str:
    if reason := missing(NETCORE31):
        pytest.skip(reason)
    program = fetchc.open(framework(NETCORE31, library), references=references)
    return program.probe(function, kernel="6.1").compile(expression).fetcharg


# The offsets are those that .NET Core 3.1.23 printed, and the header's 8 bytes.
@pytest.mark.parametrize(
    ("expression", "fetcharg"),
    [
        ("((L.HasBig)value).c", "+17(%si):u8"),
        ("((HasBig)value).b.f", "+64(%si):u8"),
        ("((L.Gen<int>)value).b", "+20(%si):s32"),
        ("len((HasBig[])value)", "+8(%si):s32"),
    ],
)
def test_the_types_of_a_program_that_calls(expression: str, fetcharg: str) -> None:
    assert compiled("System.Private.CoreLib", WRITE, expression, str(TYPES)) == fetcharg


def test_they_are_looked_for_where_it_says() -> None:
    with pytest.raises(CompileError, match=r"no type `L\.HasBig`"):
        compiled("System.Private.CoreLib", WRITE, "((L.HasBig)value).c")


def test_a_type_of_an_assembly_that_is_referred_to() -> None:
    # The library has the type by way of System.Runtime, which only says where it is.
    where = ("System.Net.Http", "HttpClient.GetAsync(Uri, HttpCompletionOption, CancellationToken)")
    own = compiled(*where, "requestUri._flags")
    assert own.endswith("(%si):u64")
    assert compiled(*where, "((System.Uri)requestUri)._flags") == own


def test_an_enumerator_of_an_assembly_that_is_referred_to() -> None:
    where = ("System.Net.Http", "HttpClient.GetAsync(Uri, HttpCompletionOption, CancellationToken)")
    assert compiled(*where, "System.DayOfWeek.Friday") == "\\5:s32"
    assert compiled(*where, "DayOfWeek.Sunday") == "\\0:s32"
    assert compiled(*where, "HttpCompletionOption.ResponseHeadersRead") == "\\1:s32"
    for wrong in ("System.DayOfWeek.Frida", "DayOfWeek", "System.Uri.Friday"):
        with pytest.raises(CompileError) as refused:
            compiled(*where, wrong)
        assert refused.value.diagnostics[0].code == "FC0201"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("int?", "System.Nullable<int>"),
        ("string?", "string"),
        ("int[]?", "int[]"),
        ("Guid?[]", "System.Nullable<System.Guid>[]"),
        ("(int id, string? name)", "System.ValueTuple<int, string>"),
        ("List<(int, int[])>", "System.Collections.Generic.List<System.ValueTuple<int, int[]>>"),
        ("(int, int[])[]", "System.ValueTuple<int, int[]>[]"),
        ("(int, int, int, int, int, int, int, byte, string)",
         "System.ValueTuple<int, int, int, int, int, int, int, System.ValueTuple<byte, string>>"),
    ],
)  # fmt: skip
def test_nullables_and_tuples_are_types(written: str, meant: str) -> None:
    if reason := missing(NETCORE31):
        pytest.skip(reason)
    program = fetchc.open(framework(NETCORE31))
    (layout,) = program.layouts(written)
    assert layout.name == meant


def test_in_a_box_is_the_value_of_a_nullable() -> None:
    # A boxed int? is a boxed int, of which it is true that it has a value.
    assert compiled("System.Private.CoreLib", WRITE, "(int?)value") == "+8(%si):s32"
    inside = compiled("System.Private.CoreLib", WRITE, "((int?[])value)[1].Value")
    assert inside == "+28(%si):s32"
    second = compiled("System.Private.CoreLib", WRITE, "(((int, string))value).Item1")
    assert second == "+16(%si):s32"
