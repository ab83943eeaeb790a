"""Strings and lists that an eBPF program copies by their length, in programs of four languages.

Each program makes values of the lengths that it is given, of a rule that the test knows, too.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.live.rustc import COMPILERS, compiled
from tests.live.traced import trace
from tests.support.dotnet import ahead_of_time
from tests.support.go_programs import go_program
from tests.support.toolchains import require
from tests.support.tracefs import require_bpf

pytestmark = pytest.mark.live

LENGTHS = (0, 1, 63, 64, 65, 256, 257, 512, 513, 4095, 4096, 4097, 20000)

GO = """package main
import ("os"; "strconv"; "strings")
type record struct { name string; rows []int32 }
//go:noinline
func look(s string, b []byte, words []string, r *record) int { return len(s)+len(b)+len(words) }
func main() {
  for _, one := range os.Args[1:] {
    n, _ := strconv.Atoi(one)
    s := strings.Repeat("ab\\x00c", n/4+1)[:n]
    rows := make([]int32, n)
    for i := range rows { rows[i] = int32(i * -3) }
    look(s, []byte(s), []string{s, "x"}, &record{s, rows})
  }
}
"""
RUST = r"""
struct Record { name: String, rows: Vec<i32> }
#[inline(never)]
fn look(s: &str, words: &[i32], r: &Record) -> usize {
    let bytes: usize = s.bytes().chain(r.name.bytes()).map(usize::from).sum();
    let numbers: i32 = words.iter().chain(r.rows.iter()).sum();
    bytes + numbers as usize
}
fn main() {
    for one in std::env::args().skip(1) {
        let n: usize = one.parse().unwrap();
        let s: String = "ab\0c".chars().cycle().take(n).collect();
        let rows: Vec<i32> = (0..n as i32).map(|i| i * -3).collect();
        let r = Record { name: s.clone(), rows: rows.clone() };
        println!("EVENT {}", look(&s, &rows, &r));
    }
}
"""
CPP = r"""
#include <string>
#include <string_view>
#include <vector>
struct record { std::string name; std::vector<int> rows; };
__attribute__((noipa)) void look(const std::string &s, std::string_view v, const record &r,
                                 const char *buf, long n)
{ __asm__ volatile("" :: "r"(&s), "r"(v.data()), "r"(&r), "r"(buf), "r"(n) : "memory"); }
int main(int count, char **words) {
  for (int at = 1; at < count; at++) {
    long n = std::stol(words[at]);
    std::string s; std::vector<int> rows;
    for (long i = 0; i < n; i++) s += "ab\0c"[i % 4], rows.push_back(i * -3);
    look(s, s, record{s, rows}, s.data(), n);
  }
}
"""
CSHARP = r"""
using System.Runtime.CompilerServices;
using System.Text;
class Copied {
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Look(string s, int[] rows) { return s.Length + rows.Length; }
    static int Main(string[] words) {
        int all = 0;
        foreach (string word in words) {
            int n = int.Parse(word);
            var made = new StringBuilder();
            var rows = new int[n];
            for (int i = 0; i < n; i++) { made.Append("ab\0c"[i % 4]); rows[i] = i * -3; }
            all += Look(made.ToString(), rows);
        }
        return all == -1 ? 1 : 0;
    }
}
"""


def _go(folder: Path) -> list[str | Path]:
    return [go_program("1.27", folder, GO, name="copied")]


def _rust(folder: Path) -> list[str | Path]:
    if not COMPILERS:
        pytest.skip("no rustc here (.ci/setup brings it)")
    source = folder / "copied" / "main.rs"
    source.parent.mkdir()
    source.write_text(RUST)
    (compiler,) = COMPILERS[0].values
    return [compiled(str(compiler), source, folder / "program", "-C", "opt-level=1")]


def _cpp(folder: Path) -> list[str | Path]:
    require("g++")
    (folder / "copied.cc").write_text(CPP)
    command = ["g++", "-std=c++17", "-g", "-O1", "-o", "copied", "copied.cc"]
    subprocess.run(command, cwd=folder, check=True, timeout=120)
    return [folder / "copied"]


def _mono(folder: Path) -> list[str | Path]:
    source = folder / "copied.cs"
    source.write_text(CSHARP)
    return ["mono", ahead_of_time(source, folder / "copied.exe")]


def text(length: int) -> str:
    """What every program makes of a length."""
    return ("ab\0c" * (length // 4 + 1))[:length]


def rows(length: int) -> list[int]:
    """And of numbers."""
    return [-3 * index for index in range(length)]


def words(length: int) -> list[int]:
    """The bytes of the text."""
    return [ord(one) for one in text(length)]


# By language: the function, and of each expression what it is and the bytes of an element.
Whole = Callable[[int], Any]
CASES: dict[str, tuple[Callable[[Path], list[str | Path]], str, dict[str, tuple[Whole, int]]]] = {
    "go": (_go, "main.look", {
        "s": (text, 1), "b": (words, 1), "words[0]": (text, 1), "r.name": (text, 1),
        "r.rows": (rows, 4), "s[:len(b)]": (text, 1),
    }),
    "rust": (_rust, "copied::look", {
        "s": (text, 1), "words": (rows, 4), "r.name": (text, 1), "r.rows": (rows, 4),
    }),
    "c++": (_cpp, "look", {
        "s": (text, 1), "v": (text, 1), "r.name": (text, 1), "r.rows": (rows, 4),
        "buf[0:n]": (text, 1),
    }),
    "mono": (_mono, "Copied.Look", {"s": (text, 2), "rows": (rows, 4)}),
}  # fmt: skip


@pytest.mark.parametrize("most", [None, 30000])
@pytest.mark.parametrize("language", CASES)
def test_contents_are_those_of_the_program(
    language: str, most: int | None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_bpf()
    build, function, expressions = CASES[language]
    program = build(tmp_path)
    # Two at once, which is as many as a record has room for.
    limit = ["--engine", "bpf"] if most is None else ["--value-bytes", str(most)]
    labels = list(expressions)
    for some in [labels[at : at + 2] for at in range(0, len(labels), 2)]:
        asked = [*some, *limit, "--format", "jsonl", "-x", program[-1], "-f", function]
        done = trace(capfd, *asked, "--", *program, *map(str, LENGTHS))
        assert (done.status, len(done.objects)) == (0, len(LENGTHS)), done.errors
        for length, hit in zip(LENGTHS, done.objects, strict=True):
            cut = {}
            for label in some:
                whole, each = expressions[label]
                shown = whole(length)[: (most or 4096) // each]
                assert hit["args"][label] == shown, (label, length)
                if len(shown) < length:
                    cut[label] = length
            assert (hit.get("cut", {}), hit["faults"]) == (cut, [])
