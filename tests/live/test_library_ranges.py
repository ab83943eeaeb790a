"""Ranges of C++ library classes: no more elements than the object has."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.live.traced import trace
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = r"""
#include <array>
#include <bitset>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>
__attribute__((noinline)) int cut(std::array<int, 3> &a, std::string &s, std::vector<int> &v,
    std::span<int> &p, std::unique_ptr<int[]> &u, int n)
{
    asm volatile("" ::"r"(&a), "r"(&s), "r"(&v), "r"(&p), "r"(&u) : "memory");
    return n;
}
__attribute__((noinline)) int odd(std::vector<bool> &v, std::bitset<70> &b, std::deque<int> &d,
    char *text, int n)
{
    asm volatile("" ::"r"(&v), "r"(&b), "r"(&d), "r"(text) : "memory");
    return n;
}
int main()
{
    std::array<int, 3> a{1, 2, 3};
    std::string s = "text";
    std::vector<int> v{4, 5, 6};
    std::span<int> p(v);
    std::unique_ptr<int[]> u(new int[5]{7, 8, 9, 10, 11});
    for (int n : {0, 2, 3, 5})
        cut(a, s, v, p, u, n);
    std::vector<bool> w{true, false, true};
    std::bitset<70> b(5);
    std::deque<int> d{1, 2, 3};
    char text[] = "text";
    return odd(w, b, d, text, 0);
}
"""
WANTED = ["a[0:n]", "s[0:n]", "v[0:n]", "p[0:n]", "u[0:n]"]


@pytest.fixture(scope="module", name="program", params=["g++", "clang++"])
def program_(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_uprobes()
    require(request.param)
    folder: Path = tmp_path_factory.mktemp("library_ranges")
    (folder / "t.cc").write_text(SOURCE)
    command = [request.param, "-std=c++20", "-g", "-O1", "t.cc", "-o", "t"]
    subprocess.run(command, cwd=folder, check=True, timeout=120)
    return folder / "t"


def test_no_more_than_the_object_has(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = trace(capfd, *WANTED, "-x", program, "-f", "cut", "--", program)
    assert (done.status, done.errors) == (0, "")
    shown = [line.partition("  cut  ")[2] for line in done.lines]
    values = [[part.partition("=")[2].strip() for part in _parts(line)] for line in shown]
    assert values == [
        ["[]", '""', "[]", "[]", "[]"],
        ["[1, 2]", '"te"', "[4, 5]", "[4, 5]", "[7, 8]"],
        ["[1, 2, 3]", '"tex"', "[4, 5, 6]", "[4, 5, 6]", "[7, 8, 9]"],
        ["(fault)", "(fault)", "(fault)", "(fault)", "[7, 8, 9, 10, 11]"],
    ]


def _parts(line: str) -> list[str]:
    starts = [line.index(f"{label}=") for label in WANTED]
    return [line[at:end] for at, end in zip(starts, [*starts[1:], len(line)], strict=True)]


@pytest.mark.parametrize(
    ("expression", "code"),
    [("v[0:n]", "FC0304"), ("b[0:n]", "FC0304"), ("text[0:d.back()]", "FC0303")],
)
def test_what_no_reader_cuts_is_refused(expression: str, code: str, program: Path) -> None:
    # Packed bits; a bound that is in one of two places.
    probe = fetchc.open(str(program)).probe("odd")
    with pytest.raises(fetchc.CompileError) as refused:
        probe.plan([expression], "group")
    assert refused.value.diagnostics[0].code == code
