"""Overloads that only `ref` or `?` tells apart."""

from __future__ import annotations

import pytest

from fetchc.debuginfo.dotnet.csharp_names import parameters_fit
from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
from fetchc.diag.diagnostic import DebugInfoError
from tests.support.dotnet import NETCORE31, framework, missing


@pytest.fixture(scope="module")
def core() -> DotnetProgram:
    if reason := missing(NETCORE31):
        pytest.skip(reason)
    return DotnetProgram(framework(NETCORE31))


@pytest.mark.parametrize(
    ("written", "symbol"),
    [
        ("Decimal.Truncate(decimal)", "System.Decimal.Truncate(System.Decimal)"),
        ("Decimal.Truncate(ref decimal)", "System.Decimal.Truncate(System.Decimal&)"),
        ("Decimal.Truncate(System.Decimal&)", "System.Decimal.Truncate(System.Decimal&)"),
        # Without a namesake, `ref` and `out` can be left out.
        ("Version.TryParse(string, Version)", "System.Version.TryParse(string, System.Version&)"),
        (
            "Version.TryParse(string, out Version)",
            "System.Version.TryParse(string, System.Version&)",
        ),
    ],
)
def test_a_reference_is_another_parameter(core: DotnetProgram, written: str, symbol: str) -> None:
    assert [one.symbol for one in core.functions_named(written)] == [symbol]


def test_an_overload_without_code_is_not_another_one(core: DotnetProgram) -> None:
    # Round(ref decimal, ...) has code; so has Round(decimal, int, MidpointRounding).
    assert core.functions_named("Decimal.Round(ref decimal)") == ()
    with pytest.raises(DebugInfoError, match="no precompiled code"):
        core.functions_named("Vector<T>.CopyTo(T[])")


@pytest.mark.parametrize(
    ("own", "written", "fits"),
    [
        ("System.Nullable<int>", "int?", True),
        ("int", "int?", False),
        ("string", "string?", True),
        ("string[]", "params string[]", True),
        ("int&", "in int", True),
        ("int&", "int", False),
        ("int", "ref int", False),
    ],
)
def test_parameters_as_the_source_has_them(own: str, written: str, fits: bool) -> None:
    assert parameters_fit(f"N.T.M({own})", (written,)) is fits
