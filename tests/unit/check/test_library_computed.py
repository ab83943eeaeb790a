"""What methods of C++ library classes compute, of classes with odd names and with parts missing."""

from __future__ import annotations

import subprocess

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = """
#include <array>
#include <span>
#include <vector>
namespace boost {
namespace detail { class sp_counted_base; class shared_count { sp_counted_base *pi_; }; }
template <class T> struct shared_ptr { T *px; detail::shared_count pn; };
}
namespace std::__1 {
class __shared_weak_count;
template <class T> struct shared_ptr { T *__ptr_; __shared_weak_count *__cntrl_; };
}
template <char C> struct of { int n; };
std::__1::shared_ptr<std::array<of<'>'>, 3>> pointer;
std::vector<bool> bits;
extern "C" __attribute__((noinline)) int f(std::array<of<'>'>, 3> *a, std::array<of<'<'>, 4> *b,
    std::array<of<','>, 5> *c, std::span<of<'>'>, 3> *s, std::span<int, 0> *none,
    boost::shared_ptr<int> *p)
{
    asm volatile("" ::"r"(a), "r"(b), "r"(c), "r"(s), "r"(none), "r"(p) : "memory");
    return 0;
}
int main()
{
    std::array<of<'>'>, 3> a{};
    std::array<of<'<'>, 4> b{};
    std::array<of<','>, 5> c{};
    std::span<of<'>'>, 3> s(a);
    std::span<int, 0> none;
    boost::shared_ptr<int> p;
    return f(&a, &b, &c, &s, &none, &p);
}
"""


@pytest.fixture(scope="module", params=["g++", "clang++"])
def probe(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> fetchc.Probe:
    """``f`` of SOURCE by a compiler."""
    compiler = str(request.param)
    require(compiler)
    directory = tmp_path_factory.mktemp("computed")
    (directory / "t.cc").write_text(SOURCE)
    command = [compiler, "-std=c++20", "-g", "-O1", "t.cc", "-o", "t"]
    subprocess.run(command, cwd=directory, check=True, timeout=60)
    return fetchc.open(str(directory / "t")).probe("f", kernel="6.1")


def test_at_is_an_index(probe: fetchc.Probe) -> None:
    assert probe.compile("a->at(2).n").fetcharg == probe.compile("(*a)[2].n").fetcharg
    assert probe.compile("s->at(1).n").fetcharg == probe.compile("(*s)[1].n").fetcharg
    with pytest.raises(fetchc.CompileError, match="FC0303"):
        probe.compile("a->at(3)")
    with pytest.raises(fetchc.CompileError, match="FC0308"):
        probe.compile("bits.flip(1)")


@pytest.mark.parametrize(
    ("expression", "fetched"),
    [
        ("a->back().n", "+8(%di):s32"),
        ("b->back().n", "+12(%si):s32"),
        ("c->back().n", "+16(%dx):s32"),
        ("s->back().n", "+8(+0(%cx)):s32"),
        ("len(*a)", "\\3:u64"),
        ("s->size()", "\\3:u64"),
    ],
)
def test_brackets_in_an_argument_are_a_character(
    expression: str, fetched: str, probe: fetchc.Probe
) -> None:
    # `std::span<of<'>'>, 3>`: the number of elements is still the second argument.
    assert probe.compile(expression).fetcharg == fetched


@pytest.mark.parametrize("expression", ["none->back()", "p->use_count()"])
def test_what_is_not_there_is_refused(expression: str, probe: fetchc.Probe) -> None:
    # An object of no elements, and a counter that is declared alone.
    with pytest.raises(fetchc.CompileError) as refused:
        probe.compile(expression)
    assert refused.value.diagnostics[0].code == "FC0308"


@pytest.mark.parametrize(
    ("expression", "behind"),
    [("(*pointer)[1].n", ":s32"), ("pointer.get()", ":x64"), ("pointer->size()", "\\3:u64")],
)
def test_a_pointer_whose_counters_are_declared_alone(
    expression: str, behind: str, probe: fetchc.Probe
) -> None:
    # clang leaves a class out whose virtual table is in the library: libc++'s __shared_weak_count.
    # What the pointer has no method for is asked of what it leads to.
    assert probe.compile(expression).fetcharg.endswith(behind)


def test_the_refusal_of_a_container_says_what_can_be_had(probe: fetchc.Probe) -> None:
    with pytest.raises(fetchc.CompileError) as refused:
        probe.compile("bits")
    (one,) = refused.value.diagnostics
    assert (one.code, one.help) == (
        "FC0312",
        "name a part of it: `e[0]`, `e.empty()`, `e.size()`",
    )
