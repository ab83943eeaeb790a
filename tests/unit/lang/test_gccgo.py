"""Go as gccgo compiles it: it calls as C does, on stacks that go from thread to thread."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import require

# What gccgo 12 makes of `func take(a int, s string, big [3]int) (int, string)`: results of more
# than two words are written to where a hidden first parameter says.
SOURCE = r"""
struct string { const unsigned char *__data; long __length; };
struct rows { long of[3]; };
struct results { long first; struct string second; };
__attribute__((noinline)) struct results take(long a, struct string s, struct rows big) {
  struct results made = {a + big.of[1], s};
  __asm__ volatile("" ::: "memory");
  return made;
}
int main(int n, char **v) {
  struct string s = {(unsigned char *)v[0], n};
  struct rows big = {{1, 2, 3}};
  return take(n, s, big).first;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> fetchc.Program:
    require("gcc")
    folder = tmp_path_factory.mktemp("gccgo")
    listing, binary = folder / "program.s", folder / "program"
    command = ["gcc", "-x", "c", "-g", "-gdwarf-5", "-dA", "-O1", "-S", "-o", str(listing), "-"]
    subprocess.run(command, check=True, timeout=60, input=SOURCE, text=True)
    text = re.sub(r"\.byte\s+0x1d(\s+# DW_AT_language)", r".byte 0x16\1", listing.read_text())
    listing.write_text(re.sub(r'"GNU C\d+ ', '"GNU Go ', text))
    subprocess.run(["gcc", "-o", str(binary), str(listing)], check=True, timeout=60)
    return fetchc.open(str(binary))


@pytest.mark.parametrize(
    ("text", "fetch"),
    [
        ("a", "%si:s64"),
        ("s.__length", "%cx:s64"),
        ("big.of[1]", "+16(%sp):s64"),
        ("$arg1", "%di:u64"),
    ],
)
def test_parameters_are_where_c_puts_them(program: fetchc.Program, text: str, fetch: str) -> None:
    assert program.probe("take").compile(text).fetcharg == fetch


def test_a_return_probe_is_refused(program: fetchc.Program) -> None:
    with pytest.raises(fetchc.CompileError, match=r"FC0409.*goroutine .* another thread"):
        program.probe("take", returns=True)


def test_a_return_probe_is_refused_without_debug_information(
    program: fetchc.Program, tmp_path: Path
) -> None:
    # What gccgo compiled has a section with what its packages export; strip leaves it.
    require("objcopy")
    bare, exported = tmp_path / "bare", tmp_path / "exported"
    exported.write_bytes(b"v3;\n")
    added = f"--add-section=.go_export={exported}"
    command = ["objcopy", "--strip-debug", added, program.path, str(bare)]
    subprocess.run(command, check=True, timeout=60)
    stripped = fetchc.open(str(bare))
    assert stripped.probe("take").compile("$arg1").fetcharg == "%di:u64"
    with pytest.raises(fetchc.CompileError, match=r"FC0409.*goroutine .* another thread"):
        stripped.probe("take", returns=True)
    taken = fetchc.open(str(bare), unsafe_return=True).probe("take", returns=True)
    assert [one.code for one in taken.warnings] == ["FC0621"]


def test_it_has_no_number_of_the_goroutine(program: fetchc.Program) -> None:
    with pytest.raises(fetchc.CompileError, match=r"FC0201.*no `\$goid`"):
        program.probe("take").compile("$goid")
