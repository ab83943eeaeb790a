"""Code that the runtime compiled, by lines of its perf map as .NET 3.1 and 9 write them."""

from __future__ import annotations

import pytest

from fetchc.debuginfo.dotnet.assemblies import Assembly
from fetchc.debuginfo.dotnet.csharp_names import map_line_parts, of_map_line, written
from fetchc.debuginfo.dotnet.jit_code import JitCode
from fetchc.debuginfo.dotnet.method_code import Methods
from fetchc.debuginfo.perf_map_format import MapLine
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
    code = JitCode(assembly, [MapLine(0x1000, 0x20, symbol)])
    (row,) = Methods(assembly).overloads(HANDLE)
    assert code.entry(row) == 0x1000


@pytest.mark.parametrize(
    "symbol",
    ["JS:*sum /srv/app.js:1:15", "Server.Handle(string)", "Server::Handle(string[] , int)"],
)
def test_other_texts_are_of_no_assembly(symbol: str) -> None:
    assert map_line_parts(symbol) == ("", symbol)
    assert of_map_line(symbol) == symbol
