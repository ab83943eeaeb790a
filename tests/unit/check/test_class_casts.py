"""Casts between classes and their bases, and the members of bases, in all their shapes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = """
struct Left { int left; virtual ~Left() {} };
struct Right { int right; virtual ~Right() {} };
struct Middle : Left { int middle; };
struct Derived : Middle, Right { int own; };
struct OneSide : Left { int one; };
struct Twice : Middle, OneSide { int twice; };
struct Shared : virtual Left { int shared; };
struct Below : Shared { int below; };
struct Other { int other; };
struct Base { int base; };
struct Rooted : Base { int rooted; virtual ~Rooted() {} };
struct Holder : virtual Rooted { int holder; };
struct Further : virtual Holder { int further; };
struct Mixed : Left, Shared { int mixed; };
int main(int argc, char **argv);
__attribute__((noinline)) int f(
    Derived *derived, Right *right, Left *left, Twice *twice, Below *below, Other *other,
    Holder *holder, Further *further, Mixed *mixed)
{
    asm volatile("" : : "r"(derived), "r"(right), "r"(left), "r"(twice), "r"(below), "r"(other));
    asm volatile("" : : "r"(holder), "r"(further), "r"(mixed));
    return derived->own;
}
int main(int argc, char **)
{
    static Derived derived;
    static Twice twice;
    static Below below;
    static Other other;
    static Further further;
    static Mixed mixed;
    return f(&derived, &derived, &derived, &twice, &below, &other, &further,
             &further, &mixed) + argc;
}
"""


@pytest.fixture(scope="module", params=["g++", "clang++"])
def probe(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> fetchc.Probe:
    require(request.param)
    where: Path = tmp_path_factory.mktemp("casts")
    (where / "casts.cc").write_text(SOURCE)
    command = [request.param, "-g", "-O1", "casts.cc", "-o", "casts"]
    subprocess.run(command, cwd=where, check=True, timeout=60)
    return fetchc.open(str(where / "casts")).probe("f", kernel="6.1")


@pytest.mark.parametrize(
    ("expression", "fetcharg"),
    [
        ("((Derived *)right)->own", "+12(%si):s32"),  # Right is 16 bytes into it
        ("((Derived *)left)->own", "+28(%dx):s32"),
        ("((Right *)derived)->right", "+24(%di):s32"),
        ("((Left *)derived)->left", "+8(%di):s32"),
        ("((Middle *)right)->middle", "+12(%si):s32"),  # no relation: the same address
        ("((Other *)derived)->other", "+0(%di):s32"),
        ("((Derived *)other)->own", "+28(%r9):s32"),
        ("((Middle *)twice)->left", "+8(%cx):s32"),
        ("((OneSide *)twice)->left", "+24(%cx):s32"),
        ("((Left *)(OneSide *)twice)->left", "+24(%cx):s32"),
        ("twice->OneSide::left", "+24(%cx):s32"),
        ("derived->Right::right", "+24(%di):s32"),
        ("derived->Derived::own", "+28(%di):s32"),
        ("((Right &)*derived).right", "+24(%di):s32"),
        ("static_cast<Right &>(*derived).right", "+24(%di):s32"),
        ("((unsigned long *)derived)[1]", "+8(%di):u64"),
    ],
)
def test_the_address_moves_by_the_bases_place(
    probe: fetchc.Probe, expression: str, fetcharg: str
) -> None:
    assert probe.compile(expression).fetcharg == fetcharg


@pytest.mark.parametrize(
    ("expression", "code", "words"),
    [
        ("((Left *)twice)->left", "FC0208", "related in 2 ways"),
        ("((Left *)below)->left", "FC0312", "only known at run time"),
        ("((Base *)holder)->base", "FC0312", "only known at run time"),
        ("static_cast<Left &>(*below).left", "FC0312", "only known at run time"),
        ("((Base *)further)->base", "FC0312", "only known at run time"),
        ("((Below *)left)->below", "FC0306", "virtual base"),
        ("((Holder *)(Base *)other)->holder", "FC0306", "virtual base"),
        ("((Left *)mixed)->left", "FC0208", "related in 2 ways"),
        ("below->left", "FC0312", "only known at run time"),
        ("twice->left", "FC0208", "in 2 embedded members"),
        ("derived->Other::other", "FC0302", "no member `Other::other`"),
    ],
)
def test_what_is_not_certain_is_refused(
    probe: fetchc.Probe, expression: str, code: str, words: str
) -> None:
    with pytest.raises(fetchc.CompileError) as caught:
        probe.compile(expression)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert words in diagnostic.message
    if "virtual base" in words:
        assert diagnostic.help is not None
    if expression == "((Left *)below)->left":
        assert "where `-24(+0(%r8)):s64` is 16, it is `+24(%r8):s32`" in diagnostic.notes
