"""Overloads in inline namespaces, which people leave out: by name and parameters."""

from __future__ import annotations

import subprocess

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = """
namespace v1 { inline namespace abi2 {
    struct T {
        int q;
        __attribute__((noinline)) int m(int k) const & { return q + k; }
        __attribute__((noinline)) int m(int k) && { return q - k; }
        __attribute__((noinline)) int m(long k, int) { return q * k; }
    };
} }
int main(int c, char **)
{
    v1::T t{c};
    return t.m(c) + v1::T{c}.m(c) + t.m(2L, c);
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> fetchc.Program:
    require("g++")
    directory = tmp_path_factory.mktemp("namespaces")
    (directory / "t.cc").write_text(SOURCE)
    subprocess.run(["g++", "-g", "t.cc", "-o", "t"], cwd=directory, check=True, timeout=60)
    return fetchc.open(str(directory / "t"))


@pytest.mark.parametrize(
    ("name", "symbol"),
    [
        ("v1::T::m(int) const &", "_ZNKR2v14abi21T1mEi"),
        ("v1::T::m(int) &&", "_ZNO2v14abi21T1mEi"),
        ("v1::T::m(long, int)", "_ZN2v14abi21T1mEli"),
        ("v1::abi2::T::m(long, int)", "_ZN2v14abi21T1mEli"),
    ],
)
def test_the_overload_is_found(program: fetchc.Program, name: str, symbol: str) -> None:
    function = program.probe(name, kernel="6.1").function
    assert function is not None
    assert function.symbol == symbol


def test_overloads_are_listed(program: fetchc.Program) -> None:
    with pytest.raises(fetchc.CompileError) as refused:
        program.probe("v1::T::m(char)", kernel="6.1")
    (one,) = refused.value.diagnostics
    assert one.message == "no function `v1::T::m` takes (char)"
    assert len(one.notes) == 3


@pytest.mark.parametrize("name", ["v1::T::m(char)", "v2::T::m(int)", "v1::T::n(int)"])
def test_what_there_is_none_of(program: fetchc.Program, name: str) -> None:
    with pytest.raises(fetchc.CompileError, match="FC0202"):
        program.probe(name, kernel="6.1")
