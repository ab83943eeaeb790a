"""What is said once: no ``-x`` with ``-p`` or a command, libraries by name, names as typed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.live.traced import build, trace
from tests.support.toolchains import require

pytestmark = pytest.mark.live

COLD = r"""
#include <cstdio>
#include <stdexcept>
#include <string>
namespace shop { namespace {
struct Store {
    std::string names[3];
    __attribute__((noinline)) std::string label(int i) {
        if (i > 90) throw std::runtime_error("no " + std::to_string(i));
        return names[i];
    }
};
}
struct Shelf { __attribute__((noinline)) int label(int i) { __asm__(""); return i; } };
}
extern "C" __attribute__((noinline)) int handle(int i) {
    if (i > 90) throw std::runtime_error("no");
    return i * 2;
}
int main(int c, char **) {
    shop::Store s; shop::Shelf f;
    return s.label(c).size() + f.label(c) + handle(c) - 3;
}
"""


@pytest.fixture(scope="module", name="program")
def program_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("traced"))


@pytest.fixture(scope="module", name="cold")
def cold_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("g++")
    folder = tmp_path_factory.mktemp("cold")
    (folder / "cold.cc").write_text(COLD)
    command = ["g++", "-g", "-O2", "-o", str(folder / "cold"), str(folder / "cold.cc")]
    subprocess.run(command, check=True, timeout=60)
    symbols = subprocess.run(
        ["nm", folder / "cold"], capture_output=True, text=True, check=True
    ).stdout
    if "handle.cold" not in symbols:
        pytest.skip("this compiler splits no cold part off")
    return folder / "cold"


def test_the_program_is_the_command_s(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    traced = trace(capfd, "n", "-f", "work", "--json", "--", program, "calls", "3")
    assert traced.args == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert traced.errors == ""


def test_the_program_is_the_process_s(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with subprocess.Popen([program, "loop"], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            traced = trace(capfd, "n", "-f", "work", "-p", str(child.pid), "--count", "2", "--json")
            by_name = trace(
                capfd, "n", "-f", "work", "-p", "traced", "--count", "1", "--timeout", "20s",
                "--json",
            )  # fmt: skip
        finally:
            child.kill()
    assert len(traced.args) == 2
    assert {each["pid"] for each in traced.objects + by_name.objects} == {child.pid}
    assert f"note: the program is {program}" in traced.errors


def test_a_library_by_its_name(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    traced = trace(
        capfd, "-x", "libc", "-f", "usleep", "--count", "1", "--json", "--", program, "nap"
    )
    assert [each["function"] for each in traced.objects] == ["usleep"]
    assert "note: `libc` is /" in traced.errors


def test_the_name_that_was_typed_is_shown(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    traced = trace(
        capfd, "-x", "libc", "-f", "open", "--count", "1", "--json", "--", "cat", os.devnull
    )
    assert [(each["function"], each["event"]) for each in traced.objects] == [("open", "open")]


def test_a_plain_name_that_means_nothing_is_an_error(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    traced = trace(capfd, "-f", "work", "-f", "nosuch", "--", program, "calls", "1")
    assert traced.status == 1
    assert traced.errors.startswith("error[FC0202]: no function `nosuch` has code in ")
    assert (traced.lines, traced.program) == ([], [])  # nothing was started


def test_cold_parts_are_no_rivals(cold: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("shop::Store::label", "handle", "hand*"):
        traced = trace(capfd, "i", "-f", name, "--json", "--", cold)
        assert traced.args == [{"i": 1}], name
        assert "cold" not in traced.errors
    # A clone of one function is no clone of another that has the same last name.
    both = trace(capfd, "i", "-f", "label", "--json", "--", cold)
    assert both.status == 1
    assert "error[FC0203]: 2 functions are called `label`" in both.errors
