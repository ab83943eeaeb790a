"""``std::get<T>``: the part of a tuple or variant that has the type, where one alone has it."""

from __future__ import annotations

import subprocess

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = """
#include <array>
#include <string>
#include <tuple>
#include <variant>
#include <vector>
using Choice = std::variant<int, std::string, std::vector<int>>;
__attribute__((noinline)) int f(std::tuple<int, std::string, char> *t, std::pair<int, int> *p,
                                Choice *v, std::array<short, 3> *a)
{
    asm volatile("" ::"r"(t), "r"(p), "r"(v), "r"(a) : "memory");
    return 0;
}
int main()
{
    std::tuple<int, std::string, char> t{1, "one", 'c'};
    std::pair<int, int> p{2, 3};
    Choice v;
    std::array<short, 3> a{};
    return f(&t, &p, &v, &a);
}
"""


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> fetchc.Probe:
    require("g++")
    directory = tmp_path_factory.mktemp("parts")
    (directory / "t.cc").write_text(SOURCE)
    command = ["g++", "-std=c++20", "-g", "-O1", "t.cc", "-o", "t"]
    subprocess.run(command, cwd=directory, check=True, timeout=60)
    return fetchc.open(str(directory / "t")).probe("f", kernel="6.1")


@pytest.mark.parametrize(
    ("by_type", "by_number"),
    [
        ("std::get<int>(t)", "std::get<0>(t)"),
        ("std::get<char>(t)", "std::get<2>(t)"),
        ("std::get<std::string>(t).size()", "std::get<1>(t).size()"),
        ("::std::get< std::string >(*t)", "std::get<1>(t)"),
        ("get<std::vector<int>>(v)[1]", "get<2>(v)[1]"),
    ],
)
def test_the_part_of_a_type(probe: fetchc.Probe, by_type: str, by_number: str) -> None:
    assert probe.compile(by_type).fetcharg == probe.compile(by_number).fetcharg


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("std::get<int>(p)", "`std::pair<int, int>` has 2 parts of the type `int`"),
        ("std::get<float>(p)", "`std::pair<int, int>` has no part of the type `float`"),
        ("std::get<>(p)", "`std::pair<int, int>` has no part of the type ``"),
        ("std::get<short>(a)", "`std::array<short, 3>` has no part of the type `short`"),
    ],
)
def test_a_type_that_no_part_alone_has(probe: fetchc.Probe, expression: str, message: str) -> None:
    with pytest.raises(fetchc.CompileError) as refused:
        probe.compile(expression)
    (one,) = refused.value.diagnostics
    assert one.code == "FC0303"
    assert one.message.replace("short int", "short").replace("3ul", "3") == message
