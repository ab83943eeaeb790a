"""C++ methods: ``this``, members without ``this->``, references, what hides what."""

from __future__ import annotations

import subprocess

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = """
int both = 1, outside = 2;
namespace app {
int limit = 3;
struct Point { int x, y; };
struct Base { int first = 4; };
struct Shape : Base {
    int both = 5, id = 6;
    Point corner = {7, 8};
    static int counter;
    int area(int k, const Point &p) const;
};
int Shape::counter = 9;
__attribute__((noinline)) int Shape::area(int k, const Point &p) const {
    int id = k + p.x;
    return id + both + outside + limit + counter + first + corner.y;
}
}
struct Left { int twice; };
struct Right { int twice, once; };
struct Both : Left, Right {};
__attribute__((noinline)) int ask(Both *b) { return b->Left::twice + b->once; }
int main() {
    Both both{};
    ask(&both);
    app::Shape shape;
    app::Point p{1, 2};
    return shape.area(3, p);
}
"""


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> fetchc.Probe:
    require("g++")
    where = tmp_path_factory.mktemp("methods")
    (where / "shape.cc").write_text(SOURCE)
    subprocess.run(
        ["g++", "-g", "-O0", "shape.cc", "-o", "shape"], cwd=where, check=True, timeout=60
    )
    return fetchc.open(str(where / "shape")).probe("app::Shape::area", kernel="6.1")


@pytest.mark.parametrize(
    ("expression", "fetcharg"),
    [
        ("k", "%si:s32"),
        ("p.y", "+4(%dx):s32"),
        ("this->id", "+8(%di):s32"),
        ("both", "+4(%di):s32"),  # the member hides the global
        ("first", "+0(%di):s32"),  # of the base class
        ("corner.y", "+16(%di):s32"),
    ],
)
def test_members_need_no_this(probe: fetchc.Probe, expression: str, fetcharg: str) -> None:
    assert probe.compile(expression).fetcharg == fetcharg


@pytest.mark.parametrize("expression", ["outside", "limit", "app::limit", "counter"])
def test_names_outside_the_class_are_found(probe: fetchc.Probe, expression: str) -> None:
    assert probe.compile(expression).fetcharg.startswith("@+0x")


def test_a_local_hides_the_member(probe: fetchc.Probe) -> None:
    with pytest.raises(fetchc.CompileError, match="FC0401"):
        probe.compile("id")


def test_a_member_of_two_bases_is_ambiguous(probe: fetchc.Probe) -> None:
    assert probe.compile("b.once @ ask").fetcharg == "+8(%di):s32"
    with pytest.raises(fetchc.CompileError, match="FC0208"):
        probe.compile("b.twice @ ask")
    assert probe.compile("b.Right.twice @ ask").fetcharg == "+4(%di):s32"
