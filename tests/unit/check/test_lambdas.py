"""Variables that a lambda captured, by the names that they have in the source."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = """
#include <string>
#define USE(e) asm volatile("" : : "r"(&(e)) : "memory")
struct Outer {
    int m;
    __attribute__((noinline)) int run(int given)
    {
        long wide = given + 1;
        std::string text = "text";
        auto counted = [this, wide, &text](int a) __attribute__((noinline)) {
            USE(a);
            USE(text);
            return a + (int)wide + m + (int)text.size();
        };
        return counted(2);
    }
};
struct Plain {
    int __hidden;
    __attribute__((noinline)) int run(int a) { USE(a); return __hidden; }
};
int main(int argc, char **)
{
    Outer outer{argc};
    Plain plain{argc};
    return outer.run(3) + plain.run(4);
}
"""


@pytest.fixture(scope="module", params=["g++ -O0", "g++ -O2", "clang++ -O0", "clang++ -O2"])
def program(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    compiler, level = request.param.split()
    require(compiler)
    where: Path = tmp_path_factory.mktemp("lambdas")
    (where / "lambdas.cc").write_text(SOURCE)
    command = [compiler, "-g", level, "-fno-ipa-cp", "lambdas.cc", "-o", "lambdas"]
    if compiler == "clang++":
        command.remove("-fno-ipa-cp")
        command.insert(1, "-fstandalone-debug")
    subprocess.run(command, cwd=where, check=True, timeout=60)
    return where / "lambdas"


def _lambda(program: Path) -> fetchc.Probe:
    opened = fetchc.open(str(program))
    names = [name for name in opened.functions() if "clEi" in name]
    found = names or [name for name in opened.functions() if "operator()" in name]
    return opened.probe(found[0], kernel="6.1")


@pytest.mark.parametrize(
    ("expression", "fetcharg"),
    [
        ("m", "+0(+0(%di)):s32"),
        ("wide", "+8(%di):s64"),
        ("text", "+0(+0(+16(%di))):string"),
        ("text.size()", "+8(+16(%di)):u64"),
        ("a", "%si:s32"),
    ],
)
def test_captured_variables_have_their_names(program: Path, expression: str, fetcharg: str) -> None:
    assert _lambda(program).compile(expression).fetcharg == fetcharg


def test_names_that_only_look_captured_are_not(program: Path) -> None:
    probe = fetchc.open(str(program)).probe("Plain::run", kernel="6.1")
    assert probe.compile("__hidden").fetcharg == "+0(%di):s32"
    with pytest.raises(fetchc.CompileError, match="no variable `hidden`"):
        probe.compile("hidden")
