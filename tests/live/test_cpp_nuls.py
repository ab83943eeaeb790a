"""A NUL is a character of a ``std::string``: what stands after it is not left out silently."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.live.cpp_library import COMPILERS
from tests.live.traced import trace
from tests.support.toolchains import require
from tests.support.tracefs import require_bpf, require_uprobes

pytestmark = pytest.mark.live

SOURCE = r"""
#include <map>
#include <string>
#include <utility>
#include <vector>
using namespace std::string_literals;
struct batch { std::string rep; std::vector<std::string> keys; std::pair<std::string, int> pair; };
__attribute__((noinline)) int put(batch *b, const std::string &key, std::string value, int n) {
  __asm__ volatile("" :: "r"(b), "r"(&key), "r"(value.data()) : "memory"); return n; }
int main() {
  batch b{"\0\0\1"s, {"x", "y\0z"s, ""}, {"p\0"s, 1}};
  put(&b, std::string(300, 'k') + "\0end"s, "plain", 0);
  put(&b, "\u00e9", "\u00e9\0"s, 1);
  batch none;
  put(&none, "", "", 2);
}
"""
TEXTS = ("b->rep", "key", "value", "b->keys", "b->pair.first")
KEYS = ["x", "y", ""]
VALUES: list[list[Any]] = [
    ["", "k" * 300, "plain", KEYS, "p"],
    ["", "\u00e9", "\u00e9", KEYS, "p"],
    ["", "", "", [], ""],
]
CUT: list[dict[str, int]] = [
    {"b->rep": 3, "key": 304, "b->keys[1]": 3, "b->pair.first": 2},
    {"b->rep": 3, "value": 3, "b->keys[1]": 3, "b->pair.first": 2},
    {},
]
WHOLE: list[list[Any]] = [
    ["\0\0\1", "k" * 300 + "\0end", "plain", ["x", "y\0z", ""], "p\0"],
    ["\0\0\1", "\u00e9", "\u00e9\0", ["x", "y\0z", ""], "p\0"],
    ["", "", "", [], ""],
]
BUILDS = ("g++", "g++ with the old std::string", "clang++ with libc++")


@pytest.fixture(scope="module", params=BUILDS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    command = COMPILERS[request.param]
    require(command[0])
    if request.param.endswith("libc++"):
        require("libc++")
    folder = tmp_path_factory.mktemp("nuls")
    (folder / "program.cc").write_text(SOURCE)
    options = ["-std=c++17", "-g", "-O1", "-o", "program", "program.cc"]
    subprocess.run([*command, *options], cwd=folder, check=True, timeout=120)
    return folder / "program"


def test_a_text_with_a_nul_in_it_is_marked_as_cut(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_uprobes()
    asked = [*TEXTS, "-f", "put", "--format", "jsonl", "--engine", "tracefs"]
    done = trace(capfd, *asked, "-x", program, "--", program)
    assert done.args == [dict(zip(TEXTS, one, strict=True)) for one in VALUES]
    assert [line.get("cut", {}) for line in done.objects] == CUT


def test_an_ebpf_program_copies_all_of_it(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    require_bpf()
    asked = [*TEXTS, "-f", "put", "--format", "jsonl", "--engine", "bpf"]
    done = trace(capfd, *asked, "-x", program, "--", program)
    assert done.args == [dict(zip(TEXTS, one, strict=True)) for one in WHOLE]
    assert not any("cut" in line for line in done.objects)


@pytest.mark.parametrize(
    ("filter", "calls"),
    [
        ('value == "\u00e9"', []),
        ('value != "\u00e9"', [0, 1, 2]),
        ('b->pair.first != "p"', [0, 1, 2]),
        ('value == "plain"', [0]),
        ('key ~ "k*"', [0]),
    ],
)
def test_a_filter_takes_it_for_another_text(
    program: Path, capfd: pytest.CaptureFixture[str], filter: str, calls: list[int]
) -> None:
    require_uprobes()
    done = trace(
        capfd, "n", "-x", program, "-f", "put", "--filter", filter,
        "--format", "jsonl", "--", program,
    )  # fmt: skip
    assert [one["n"] for one in done.args] == calls
