"""What an optional or a variant does not hold is not shown as if it did."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import fetchc
from tests.live.traced import trace
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = r"""
#include <optional>
#include <variant>
struct pair { int x, y; };
struct held { std::optional<int> port; std::optional<pair> at; std::variant<int, double, int> v; };
__attribute__((noinline)) int visit(held *h, int n) {
  __asm__ volatile("" :: "r"(h) : "memory"); return n; }
int main() {
  held h; visit(&h, 0);
  h.port = 80; h.at = pair{1, 2}; h.v.emplace<2>(7); visit(&h, 1);
  h.port.reset(); h.at.reset(); h.v = 2.5; visit(&h, 2);
}
"""
NONE = {"variant": "nothing"}
VALUES: dict[str, list[Any]] = {
    "*h->port": [NONE, 80, NONE],
    "h->port.value()": [NONE, 80, NONE],
    "h->at->y": [NONE, 2, NONE],
    "h->port.has_value()": [False, True, False],
    "std::get<0>(h->v)": [0, {"variant": "int #2"}, {"variant": "double"}],
    "std::get<1>(h->v)": [{"variant": "int #0"}, {"variant": "int #2"}, 2.5],
    "std::get<2>(h->v)": [{"variant": "int #0"}, 7, {"variant": "double"}],
}


@pytest.fixture(scope="module", params=["g++", "clang++"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    require(request.param)
    folder = tmp_path_factory.mktemp("alternatives")
    (folder / "program.cc").write_text(SOURCE)
    command = [request.param, "-std=c++17", "-g", "-O1", "-o", "program", "program.cc"]
    subprocess.run(command, cwd=folder, check=True, timeout=120)
    return folder / "program"


def test_the_one_that_is_there_is_compared(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_uprobes()
    done = trace(capfd, *VALUES, "-x", program, "-f", "visit", "--format", "jsonl", "--", program)
    assert done.args == [
        {text: values[call] for text, values in VALUES.items()} for call in range(3)
    ]
    assert "FC0620" not in done.errors


def test_a_lone_fetch_arg_has_a_note_that_nothing_compares(program: Path) -> None:
    probe = fetchc.open(str(program)).probe("visit")
    for text in ("*h->port", "h->port.value()", "h->at->y", "std::get<1>(h->v)"):
        assert [one.code for one in probe.compile(text).warnings] == ["FC0620"], text
    assert not probe.compile("h->port.has_value()").warnings
