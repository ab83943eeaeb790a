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


TEMPLATES = r"""
template<class T> struct Box {
    T held;
    __attribute__((noinline)) T plus(T more) const { return held + more; }
};
__attribute__((noinline)) int over(int a) { return a + 1; }
__attribute__((noinline)) int over(long a, int b) { return (int)a + b; }
__attribute__((noinline)) void quiet(int n) { static volatile int seen; seen = n; }
int main() {
    Box<int> narrow{1}; Box<long> wide{2};
    quiet(7);
    return narrow.plus(2) + (int)wide.plus(3) + over(1) + over(2L, 3) - 15;
}
"""


@pytest.fixture(scope="module", name="templates")
def templates_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("g++")
    folder = tmp_path_factory.mktemp("templates")
    (folder / "made.cc").write_text(TEMPLATES)
    command = ["g++", "-g", "-O0", "-o", str(folder / "made"), str(folder / "made.cc")]
    subprocess.run(command, check=True, timeout=60)
    return folder / "made"


def test_a_template_s_name_means_all_that_it_made(
    templates: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("Box::plus", "plus"):
        traced = trace(capfd, "more", "-f", name, "--json", "--", templates)
        assert traced.status == 0, traced.errors
        assert traced.args == [{"more": 2}, {"more": 3}]
        assert [each["function"] for each in traced.objects] == [
            "Box<int>::plus", "Box<long int>::plus",
        ]  # fmt: skip
    # Each would need a place of its own.
    inside = trace(capfd, "more", "-f", "plus", "--at", "+0x4", "--json", "--", templates)
    assert "error[FC0203]: 2 functions are called `plus`" in inside.errors


def test_overloads_have_to_be_told_apart(
    templates: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    traced = trace(capfd, "-f", "over", "--json", "--", templates)
    assert (traced.status, traced.lines) == (1, [])
    assert "error[FC0203]: 2 functions are called `over`" in traced.errors


def test_results_are_what_a_return_shows(
    templates: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("-f", "plus", "-f", "quiet", "--return", "--json", "--", templates)
    traced = trace(capfd, *words)
    assert [(each["function"], each["args"]) for each in traced.objects] == [
        ("quiet", {}), ("Box<int>::plus", {"$retval": 3}), ("Box<long int>::plus", {"$retval": 5}),
    ]  # fmt: skip
    assert trace(capfd, "--calls-only", *words).args == [{}, {}, {}]
