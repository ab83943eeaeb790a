"""Classes that clang's ``-gsimple-template-names`` calls by their template's name alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = """
#define USE(e) asm volatile("" : : "r"(&(e)) : "memory")
template <class T> struct Box { T value; int after; };
template <class T, int N = 3> struct Fixed { T v[N]; int last; };
namespace ns {
enum Kind { one, two };
enum class Way { up = 4 };
template <class A, class B> struct Pair { A a; B b; struct Inner { A x; } in; };
template <Kind k, Way w> struct OfKind { int q; };
template <bool b, char c, unsigned long l> struct Of { int r; };
template <class... T> struct Pack { int k; };
template <template <class> class T> struct Around { int t; };
template <int *p> struct At { int pp; };
template <class F> struct Fn { F *f; };
}
struct Node;
int g;
extern template struct Box<long>;
struct Holder { Box<long> *declared; ns::Pack<> *none; };
__attribute__((noinline)) int look(Box<int> *i, Fixed<char, 5> *c,
    ns::Pair<int, Box<char *>> *pair, ns::OfKind<ns::two, ns::Way::up> *kind,
    ns::Of<true, 'a', 7> *of,
    ns::Pack<int, const char *, ns::Kind> *pack, ns::Around<Box> *around, ns::At<&g> *at,
    ns::Fn<int (*)(int, const Box<int> &)> *pointer, ns::Fn<void(int, ...)> *function,
    ns::Pair<const int *const, int[3]> *array,
    ns::Pair<int Node::*, volatile unsigned char> *member,
    ns::Pair<int, Box<char *>>::Inner *inner, Holder *holder, void *any)
{ USE(i); return i->value; }
int main()
{
    Box<int> i{1, 2}; Fixed<int> f; USE(f); Fixed<char, 5> c; ns::Pair<int, Box<char *>> pair;
    ns::OfKind<ns::two, ns::Way::up> kind; USE(kind); ns::Of<true, 'a', 7> of; USE(of);
    ns::Pack<int, const char *, ns::Kind> pack; USE(pack); ns::Around<Box> around; USE(around);
    ns::At<&g> at; USE(at); Holder holder{}; USE(holder); USE(c); USE(pair);
    return look(&i, &c, &pair, &kind, &of, &pack, &around, &at, 0, 0, 0, 0, &pair.in, &holder, &i);
}
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same program with whole names, and with simple ones."""
    require("clang++")
    where = tmp_path_factory.mktemp("templates")
    (where / "templates.cc").write_text(SOURCE)
    for name, option in (
        ("whole", "-gno-simple-template-names"),
        ("simple", "-gsimple-template-names"),
    ):
        command = ["clang++", "-std=c++20", "-w", "-g", option, "templates.cc", "-o", name]
        subprocess.run(command, cwd=where, check=True, timeout=120)
    return where / "whole", where / "simple"


def test_names_are_those_of_a_build_without_the_option(programs: tuple[Path, Path]) -> None:
    whole, simple = (set(fetchc.open(str(path)).types()) for path in programs)
    assert whole == simple - {"long", "unsigned char"}  # those of arguments alone
    assert "ns::Pair<int, Box<char *> >::Inner" in simple


def test_types_of_parameters(programs: tuple[Path, Path]) -> None:
    whole, simple = (
        [(one.name, one.type) for one in fetchc.open(str(path)).probe("look").variables()]
        for path in programs
    )
    assert whole == simple
    assert ("function", "ns::Fn<void (int, ...)> *") in simple


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("((Box<int> *)any)->after", "+4(+72(%sp)):s32"),
        ("((Fixed<int> *)any)->last", "+12(+72(%sp)):s32"),
        ("((Fixed<char, 5> *)any)->last", "+8(+72(%sp)):s32"),
    ],
)
def test_casts_pick_the_instance(programs: tuple[Path, Path], expression: str, wanted: str) -> None:
    for path in programs:
        assert fetchc.open(str(path)).probe("look").compile(expression).fetcharg == wanted


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("holder->declared->after", "FC0311"),  # Box<int> is defined, Box<long> is declared
        ("((Box *)any)->after", "FC0204"),
        ("((Box<long> *)any)->after", "FC0204"),
    ],
)
def test_no_other_instance_stands_in(
    programs: tuple[Path, Path], expression: str, code: str
) -> None:
    for path in programs:
        with pytest.raises(fetchc.CompileError) as refused:
            fetchc.open(str(path)).probe("look").compile(expression)
        assert refused.value.diagnostics[0].code == code
