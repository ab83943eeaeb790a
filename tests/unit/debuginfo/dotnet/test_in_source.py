"""Methods that a C# compiler made, by what they are in the source."""

from __future__ import annotations

import pytest

from fetchc.debuginfo.dotnet.csharp_names import in_source
from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
from tests.support.dotnet import NET9, framework, missing


@pytest.mark.parametrize(
    ("name", "said"),
    [
        # Roslyn's
        ("N.T+<Get>d__5::MoveNext", "body of N.T.Get"),
        ("N.T+<N.IReader.Get>d__5`1::MoveNext", "body of N.T.N.IReader.Get"),
        ("N.T::<Get>b__7_0", "lambda in N.T.Get"),
        ("N.T+<>c::<Get>b__7_0", "lambda in N.T.Get"),
        ("N.T`1+<>c__DisplayClass7_0`2::<Get>b__1", "lambda in N.T.Get"),
        ("N.T::<Get>g__Inner|7_0", "local function N.T.Get.Inner"),
        ("N.T+<>c__DisplayClass7_0::<Get>g__Inner|0", "local function N.T.Get.Inner"),
        ("N.T+<>c+<<Get>b__7_0>d::MoveNext", "body of lambda in N.T.Get"),
        ("N.T+<<Get>g__Inner|7_0>d`1::MoveNext", "body of N.T.Get.Inner"),
        ("Program::<<Main>$>g__Inner|0_0", "local function Program.Main.Inner"),
        # mcs's
        ("T+<Get>c__async0::MoveNext", "body of T.Get"),
        ("T+<Get>c__Iterator1::MoveNext", "body of T.Get"),
        ("T+<Get>c__AnonStorey2::<>m__0", "lambda in T.Get"),
        ("T::<Get>m__0", "lambda in T.Get"),
        # of no method, or not a compiler's
        ("T::<>m__0", None),
        ("T+<Get>d__5::Dispose", None),
        ("T+<Get>data::MoveNext", None),
        ("T+<>f__AnonymousType0::MoveNext", None),
        ("T::MoveNext", None),
        ("::MoveNext", None),
        ("T::<Get>g__Inner", None),
        ("T::<Clone>$", None),
        ("T::g__Inner|1", None),
    ],
)
def test_what_a_method_is_in_the_source(name: str, said: str | None) -> None:
    types, _, method = name.partition("::")
    found = in_source(tuple(types.split("+")), method)
    assert (None if found is None else str(found)) == said


def test_a_name_of_any_depth_is_taken_apart() -> None:
    assert in_source(("<MoveNext>d__0",) * 5000, "MoveNext") is not None


def test_a_local_function_has_its_name_in_the_source() -> None:
    if reason := missing(NET9):
        pytest.skip(reason)
    program = DotnetProgram(framework(NET9, "azmcp"))
    (found,) = program.functions_named("Program.Main.ConfigureServices")
    assert found.name == "Program.<<Main>$>g__ConfigureServices|0_0"
    assert program.functions_named("Main.ConfigureServices") == (found,)
    assert not program.functions_named("Other.ConfigureServices")
    assert program.dotnet.in_source(found) == "local function Program.Main.ConfigureServices"
