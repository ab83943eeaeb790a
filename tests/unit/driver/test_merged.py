"""Functions that a compiler made one of, and left no symbol of the others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import require

BODY = """
  for (int i = 0; i < n; i++) {
    sink += n * i; printf("%ld", sink); sink -= n; printf("%ld", sink); }
  return sink;
"""
SOURCE = f"""
#include <stdio.h>
volatile long sink;
int first(int n) {{ {BODY} }}
int second(int n) {{ {BODY} }}
int unlike(int n) {{ {BODY.replace("sink -=", "sink *=")} }}
int other(int n, int m) {{ {BODY.replace("sink -=", "sink /= m +")} }}
int main(int n, char **v) {{
  if (n > 1) first(n);
  second(n + 1);
  if (n > 2) {{ first(n + 3); second(n + 9); first(7); second(9); unlike(n); unlike(n + 1); }}
  return n > 3 ? unlike(n + 2) + other(n, 3) + other(n + 1, 4) : 0;
}}
"""
WRAPPED = """
#include <stdio.h>
volatile long sink;
int alpha(int x) { sink += x; return sink * 7 + x; }
int beta(int y) { sink += y; return sink * 7 + y; }
int main(int n, char **v) {
  int (*volatile f)(int) = alpha;
  int (*volatile g)(int) = beta;
  printf("%d %d", f(n), g(n + 1));
  return 0;
}
"""
STATICS = """
volatile long sink;
__attribute__((noinline)) static int gamma_(int z) { sink += z; return sink * 9 + z; }
__attribute__((noinline)) static int delta(int w) { sink += w; return sink * 9 + w; }
int main(int n, char **v) { return gamma_(n) + delta(n + 1); }
"""
RUST = """
pub struct P { a: u64, b: u32 }
#[inline(never)] pub fn first(p: &P) -> u64 { p.a * 3 + p.b as u64 }
#[inline(never)] pub fn second(q: &(u64, u32)) -> u64 { q.0 * 3 + q.1 as u64 }
fn main() {
    let n = std::env::args().count() as u64;
    println!("{} {}", first(&P { a: n, b: 2 }), second(&(n + 1, 5)));
}
"""


def built(folder: Path, name: str, text: str, *command: str) -> fetchc.Program:
    require(command[0])
    (folder / name).write_text(text)
    whole = [*command, "-g", "-o", "program", name]
    subprocess.run(whole, check=True, cwd=folder, timeout=120, capture_output=True)
    return fetchc.open(str(folder / "program"))


def warned(program: fetchc.Program, function: str) -> list[str]:
    probe = program.probe(function, kernel="6.1")
    return [one.message for one in probe.warnings if one.code in ("FC0624", "FC0628")]


@pytest.mark.parametrize("whole", ["-flto", "-fwhole-program"])
def test_what_gcc_left_no_code_of_may_be_seen_too(whole: str, tmp_path: Path) -> None:
    program = built(tmp_path, "t.c", SOURCE, "gcc", "-O2", whole)
    assert warned(program, "first") == ["calls of `second` may hit the probe, too"]
    with pytest.raises(fetchc.CompileError) as refused:
        program.probe("second", kernel="6.1")
    assert refused.value.diagnostics[0].code == "FC0202"
    assert "merged it with" in refused.value.diagnostics[0].notes[0]
    separate = built(tmp_path, "t.c", SOURCE, "gcc", "-O2", whole, "-fno-ipa-icf")
    assert warned(separate, "first") == []


def test_a_wrapper_of_the_same_code_has_its_own_parameters(tmp_path: Path) -> None:
    program = built(tmp_path, "t.c", WRAPPED, "gcc", "-O2", "-flto")
    assert program.probe("alpha", kernel="6.1").compile("x").fetcharg == "%di:s32"
    assert program.probe("beta", kernel="6.1").compile("y").fetcharg == "%di:s32"


@pytest.mark.parametrize("whole", ["-flto", "-fwhole-program", "-O2"])
def test_statics_of_one_address_have_their_own_parameters(whole: str, tmp_path: Path) -> None:
    program = built(tmp_path, "t.cc", STATICS, "g++", "-O2", whole)
    for function, other, parameter in (("gamma_", "delta", "z"), ("delta", "gamma_", "w")):
        probe = program.probe(function, kernel="6.1")
        assert probe.compile(parameter).fetcharg == "%di:s32"
        assert warned(program, function) == [f"calls of `{other}(int)` are seen too"]


@pytest.mark.parametrize("level", ["0", "2", "s"])
def test_rustc_leaves_nothing_of_what_it_merged(level: str, tmp_path: Path) -> None:
    program = built(tmp_path, "t.rs", RUST, "rustc", "-C", f"opt-level={level}")
    if level == "0":
        assert warned(program, "first") == []
        assert program.probe("second", kernel="6.1").function is not None
        return
    assert "may hit the probe, too" in warned(program, "first")[0]
    with pytest.raises(fetchc.CompileError) as refused:
        program.probe("second", kernel="6.1")
    assert "merged it with" in " ".join(refused.value.diagnostics[0].notes)
