"""Code that the runtime compiled, by lines of its perf map as .NET 3.1 and 9 write them."""

from __future__ import annotations

import pytest

from fetchc.debuginfo.dotnet.assemblies import Assembly
from fetchc.debuginfo.dotnet.csharp_names import (
    map_line_parts,
    of_map_line,
    parameters_fit,
    type_arguments,
    written,
)
from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
from fetchc.debuginfo.dotnet.jit_code import JitCode
from fetchc.debuginfo.dotnet.metadata_signatures import open_spelled
from fetchc.debuginfo.dotnet.method_code import Methods
from fetchc.debuginfo.perf_map_format import MapLine
from fetchc.debuginfo.running_process import RunningProcess
from fetchc.program.entities import Absent
from fetchc.quantities import Address
from tests.support.dotnet import NET9, NETCORE31, framework, missing
from tests.support.toolchains import ROOT

SAMPLE = str(ROOT / "corpus/dotnet/echo/bin/sample.dll")
HANDLE = "sample.Server.Handle(string, int)"


@pytest.mark.parametrize(
    "returned",
    [
        "void", "instance int32[]", "object[]", "instance class [System.Runtime]System.Type[,]",
        "instance !0& modreq(System.Runtime.InteropServices.InAttribute)",
        "instance class [A]System.Collections.Generic.List`1<class [B]N.Item[]>",
        "method int32 *(string,class [A]N.Item)",
    ],
)  # fmt: skip
def test_a_line_is_of_its_assembly_and_method_whatever_that_returns(returned: str) -> None:
    symbol = f"{returned} [sample] sample.Server::Handle(string,int32)[QuickJitted]"
    assert map_line_parts(symbol)[0] == "sample"
    name = written(symbol)
    assert (name.types, name.method) == (("sample", "Server"), "Handle")
    assert name.parameters == ("string", "int32")
    assert of_map_line(symbol) == HANDLE
    assembly = Assembly(SAMPLE)
    code = JitCode(assembly, [MapLine(0x1000, 0x20, symbol)], lambda _: ())
    (row,) = Methods(assembly).overloads(HANDLE)
    assert code.entry(row) == 0x1000


@pytest.mark.parametrize(
    ("line", "listed"),
    [
        ("valuetype [System.Private.CoreLib]System.DateTime", "System.DateTime"),
        ("class [my-lib]N.List`1<valuetype Point>", "N.List<Point>"),
        ("class N.Map`2<string,class [a]N.List`1<int32[]>>&", "N.Map<string, N.List<int[]>>&"),
        ("native int", "nint"),
        ("int64[0...,0...]", "long[,]"),
    ],
)
def test_parameters_of_a_line_are_those_of_a_listing(line: str, listed: str) -> None:
    assert parameters_fit(f"Server.Handle(string, {listed})", ("string", line))
    assert not parameters_fit(f"Server.Handle(string, {listed}[])", ("string", line))


@pytest.mark.parametrize(
    "symbol",
    ["JS:*sum /srv/app.js:1:15", "Server.Handle(string)", "Server::Handle(string[] , int)"],
)
def test_other_texts_are_of_no_assembly(symbol: str) -> None:
    assert map_line_parts(symbol) == ("", symbol)
    assert of_map_line(symbol) == symbol


@pytest.fixture(scope="module")
def core() -> Assembly:
    if reason := missing(NETCORE31):
        pytest.skip(reason)
    return Assembly(framework(NETCORE31))


def compiled(core: Assembly, method: str, defined_in: tuple[str, ...] = ("A",)) -> JitCode:
    """The code of one line of the core library's."""
    symbol = f"void [System.Private.CoreLib] {method}[QuickJitted]"
    return JitCode(core, [MapLine(0x1000, 0x20, symbol)], lambda _: defined_in)


@pytest.mark.parametrize(
    ("written", "given"),
    [
        ("System.Int64", [("long",)]),
        ("System.__Canon", [("__Canon",)]),
        ("System.DateTime", [("System.DateTime",)]),
        (
            "System.Collections.Generic.KeyValuePair`2[System.__Canon,System.Guid]",
            [("System.Collections.Generic.KeyValuePair<__Canon, System.Guid>",)],
        ),
        ("Shop.Point", []),
        ("System.Int64[]", []),
        ("System.Collections.Generic.KeyValuePair`2[System.__Canon,Shop.Point]", []),
    ],
)
def test_type_arguments_are_those_of_the_line(
    core: Assembly, written: str, given: list[tuple[str, ...]]
) -> None:
    (row,) = Methods(core).called("System.Collections.Generic.List.Add")
    native = compiled(core, f"System.Collections.Generic.List`1[{written}]::Add(!0)")
    found = [arguments for arguments, _, begin in native.instantiations(row) if begin == 0x1000]
    assert [tuple([open_spelled(core, x, (), ()) for x in one]) for one in found] == given
    assert native.entry(row) is None
    assert bool(given) == ("is not certain" not in native.why_unknown(row))


@pytest.mark.parametrize(
    ("holder", "name", "given"),
    [
        ("N.Pair`2[System.__Canon,N.Point]", "N.Pair`2", "System.__Canon,N.Point"),
        ("N.Box`1+Inner[N.Pair`2[N.A,N.B[]]]", "N.Box`1+Inner", "N.Pair`2[N.A,N.B[]]"),
        ("N.Box`1+<N.IRead<T[]>.Get>d__5[N.A]", "N.Box`1+<N.IRead<T[]>.Get>d__5", "N.A"),
        ("N.Server", "N.Server", ""),
        ("N.Server]", "N.Server]", ""),
        ("", "", ""),
    ],
)
def test_type_arguments_are_behind_the_name(holder: str, name: str, given: str) -> None:
    assert type_arguments(holder) == (name, given)


def test_a_method_of_an_interface_has_the_type_arguments_of_its_own_type(core: Assembly) -> None:
    # The name of the method has some, too.
    method = "System.Collections.Generic.IEnumerable<T>.GetEnumerator"
    (row,) = [
        one
        for one in Methods(core).called(f"System.Collections.Generic.List.{method}")
        if core.method_name(one) == method
    ]
    for given, entries in (("[System.Int32]", 1), ("", 0)):
        native = compiled(core, f"System.Collections.Generic.List`1{given}::{method}()")
        assert len(list(native.instantiations(row))) == entries
        assert native.entry(row) is None


def test_a_type_that_two_assemblies_define_is_not_certain(core: Assembly) -> None:
    (row,) = Methods(core).called("System.Collections.Generic.List.Add")
    add = "System.Collections.Generic.List`1[System.DateTime]::Add(!0)"
    assert list(compiled(core, add, ("A",)).instantiations(row))
    twice = compiled(core, add, ("A", "B"))
    assert not list(twice.instantiations(row))
    assert "which assembly has its type arguments is not certain: `System.DateTime`" in (
        twice.why_unknown(row)
    )


def test_code_of_a_generic_method_is_of_no_known_types(core: Assembly) -> None:
    # Its parameters fit, but who knows whether a hidden one is before them.
    (row,) = Methods(core).called("System.Array.Empty")
    native = compiled(core, "System.Array::Empty()")
    assert native.entry(row) is None
    assert not list(native.instantiations(row))
    assert native.why_unknown(row).endswith("registers are at `--at 0x1000`")


class Running(RunningProcess):
    """A process that has compiled one method of a program with a PDB within it."""

    def __init__(self, start: int) -> None:
        self.pid = 1
        method = "AzureMcp.Commands.CommandFactory::ConfigureCommands(class CommandGroup)"
        line = MapLine(start, 0x100, f"instance void [azmcp] {method}[QuickJitted]")
        self.lines = [line]


def test_run_time_code_has_the_line_where_a_method_begins() -> None:
    # The image has precompiled code of the same method, whose lines are at other addresses.
    if reason := missing(NET9):
        pytest.skip(reason)
    path = framework(NET9, "azmcp")
    program = DotnetProgram(path, running=Running(0x7000_0000))
    (function,) = program.functions_named("CommandFactory.ConfigureCommands")
    assert program.source_line(function) == "CommandFactory.cs:230"
    assert precompiled_lines(path) > 5
    lines = program.code_map()
    assert lines is not None
    assert list(lines.lines("CommandFactory.cs").values()) == [{230: (0x7000_0000,)}]
    names = {one.name for one in program.variables(function, function.address)}
    assert {"this", "group", "cmd"} <= names
    inner = Address(function.address + 8)
    assert all(
        isinstance(program.place(one, function, inner), Absent)
        for one in program.variables(function, inner)
    )


def precompiled_lines(path: str) -> int:
    """How many lines the precompiled code of the method has."""
    program = DotnetProgram(path)
    (function,) = program.functions_named("CommandFactory.ConfigureCommands")
    lines = program.code_map()
    assert lines is not None
    found = lines.lines_of(function)
    assert found is not None
    return len(found[1])
