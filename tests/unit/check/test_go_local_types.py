"""Types that a Go function declares for itself: `fetchc types` lists them as `main.T·1`."""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from tests.support.go_programs import go_program

SOURCE = """package main
type T struct{ g float64; n int }
//go:noinline
func show(v any) { println(v) }
func one(n int) { type T struct { x, y int }; show(T{n, n}) }
func two(n int) { type T struct { s string; z int }; show(&T{"", n}) }
func main() { one(1); two(2); show(T{}) }
"""


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> fetchc.Probe:
    folder: Path = tmp_path_factory.mktemp("types")
    path = go_program("1.22", folder, SOURCE, name="types")
    return fetchc.open(str(path)).probe("show", kernel="6.1")


@pytest.mark.parametrize(
    ("text", "fetch"),
    [
        ("v.(T·1).y", "+8(%bx):s64"),
        ("v.(main.T·1).y", "+8(%bx):s64"),
        ("v.(*T·2).z", "+16(%bx):s64"),
        ("(*main.T·2)(%bx).z", "+16(%bx):s64"),
        ("v.(T).n", "+8(%bx):s64"),
        ("sizeof(T·2)", "\\24:u64"),
    ],
)
def test_they_are_named_as_they_are_listed(probe: fetchc.Probe, text: str, fetch: str) -> None:
    assert probe.compile(text).fetcharg == fetch


def test_a_dot_in_the_middle_is_nothing_else(probe: fetchc.Probe) -> None:
    with pytest.raises(fetchc.CompileError, match="`·` has no meaning"):
        probe.compile("v·x")
