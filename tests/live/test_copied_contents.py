"""Strings and lists that an eBPF program copies by their length, in programs of four languages.

Each program makes values of the lengths that it is given, of a rule that the test knows, too.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.live.built import built
from tests.live.traced import trace
from tests.support.toolchains import require
from tests.support.tracefs import require_bpf

pytestmark = pytest.mark.live

LENGTHS = (0, 1, 63, 64, 65, 256, 257, 512, 513, 4095, 4096, 4097, 20000)

GO = """package main
import ("os"; "strconv"; "strings")
type point struct { x int16; odd bool }
type record struct { name string; rows []int32; points []point; names []string }
//go:noinline
func look(s string, b []byte, words []string, r *record, m map[string]*record) int {
  return len(s) + len(b) + len(words) + len(m)
}
func main() {
  for _, one := range os.Args[1:] {
    n, _ := strconv.Atoi(one)
    s := strings.Repeat("ab\\x00c", n/4+1)[:n]
    rows := make([]int32, n)
    points, names := make([]point, n), make([]string, n)
    for i := range rows {
      rows[i] = int32(i * -3); points[i] = point{int16(i), i % 2 == 1}; names[i] = s[:i % 99]
    }
    r := &record{s, rows, points, names}
    look(s, []byte(s), []string{s, "x"}, r, map[string]*record{"r": r})
  }
}
"""
RUST = r"""
struct Point { x: i16, odd: bool }
struct Record { name: String, rows: Vec<i32>, points: Vec<Point>, names: Vec<String> }
#[inline(never)]
fn look(s: &str, words: &[i32], r: &Record) -> usize {
    let odd = r.points.iter().filter(|one| one.odd && one.x > 0).count();
    let bytes: usize = s.bytes().chain(r.name.bytes()).map(usize::from).sum();
    let odd = odd + r.names.iter().map(|one| one.len()).sum::<usize>();
    let numbers: i32 = words.iter().chain(r.rows.iter()).sum();
    bytes + numbers as usize + odd
}
fn main() {
    for one in std::env::args().skip(1) {
        let n: usize = one.parse().unwrap();
        let s: String = "ab\0c".chars().cycle().take(n).collect();
        let rows: Vec<i32> = (0..n as i32).map(|i| i * -3).collect();
        let points = (0..n).map(|i| Point { x: i as i16, odd: i % 2 == 1 }).collect();
        let names = (0..n).map(|i| s[..i % 99].to_string()).collect();
        let r = Record { name: s.clone(), rows: rows.clone(), points, names };
        println!("EVENT {}", look(&s, &rows, &r));
    }
}
"""
CPP = r"""
#include <string>
#include <string_view>
#include <vector>
struct point { short x; bool odd; };
struct record {
  std::string name; std::vector<int> rows;
  std::vector<point> points; std::vector<std::string> names;
};
__attribute__((noipa)) void look(const std::string &s, std::string_view v, const record &r,
                                 const char *buf, long n)
{ __asm__ volatile("" :: "r"(&s), "r"(v.data()), "r"(&r), "r"(buf), "r"(n) : "memory"); }
int main(int count, char **words) {
  for (int at = 1; at < count; at++) {
    long n = std::stol(words[at]);
    record r;
    for (long i = 0; i < n; i++)
      r.name += "ab\0c"[i % 4], r.rows.push_back(i * -3),
      r.points.push_back({short(i), i % 2 == 1});
    for (long i = 0; i < n; i++) r.names.push_back(r.name.substr(0, i % 99));
    look(r.name, r.name, r, r.name.data(), n);
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


def text(length: int) -> str:
    """What every program makes of a length."""
    return ("ab\0c" * (length // 4 + 1))[:length]


def rows(length: int) -> list[int]:
    """And of numbers."""
    return [-3 * index for index in range(length)]


def words(length: int) -> list[int]:
    """The bytes of the text."""
    return [ord(one) for one in text(length)]


def points(length: int) -> list[dict[str, int | bool]]:
    """And of structures."""
    return [{"x": index, "odd": index % 2 == 1} for index in range(length)]


def names(length: int) -> list[str]:
    """And of strings."""
    return [text(index % 99) for index in range(length)]


def few_names(length: int) -> list[str]:
    """Those of an entry that is looked up."""
    return names(length)[:4]


# By language: the function, and of each expression what it is and the bytes of an element: of a
# structure and a string, those that it takes of what is copied.
Whole = Callable[[int], Any]
CASES: dict[str, tuple[str, str, dict[str, tuple[Whole, int]]]] = {
    "go": (GO, "main.look", {
        "s": (text, 1), "b": (words, 1), "words[0]": (text, 1), "r.name": (text, 1),
        "r.rows": (rows, 4), "s[:len(b)]": (text, 1), "r.points": (points, 64),
        "r.names": (names, 256), 'm["r"].names': (few_names, 256), 'm["r"].points': (points, 64),
    }),
    "rust": (RUST, "copied::look", {
        "s": (text, 1), "words": (rows, 4), "r.name": (text, 1), "r.rows": (rows, 4),
        "r.points": (points, 64), "r.names": (names, 256),
    }),
    "c++": (CPP, "look", {
        "s": (text, 1), "v": (text, 1), "r.name": (text, 1), "r.rows": (rows, 4),
        "buf[0:n]": (text, 1), "r.points": (points, 64), "r.names": (names, 256),
    }),
    "mono": (CSHARP, "Copied.Look", {"s": (text, 2), "rows": (rows, 4)}),
}  # fmt: skip


@pytest.mark.parametrize("most", [None, 30000])
@pytest.mark.parametrize("language", CASES)
def test_contents_are_those_of_the_program(
    language: str, most: int | None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_bpf()
    source, function, expressions = CASES[language]
    program = built(language, source, "copied", tmp_path)
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


ARRAYS = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
struct point { short x; unsigned odd : 1; char name[6]; };
struct record {
  int id; int rows[1000]; struct point points[10]; char text[1200]; short grid[30][20];
};
__attribute__((noipa)) void look(struct point *p, long n, struct record *r)
{ __asm__ volatile("" :: "r"(p), "r"(n), "r"(r) : "memory"); }
int main(void) {
  struct record *r = calloc(1, sizeof *r);
  r->id = 7;
  for (int i = 0; i < 1000; i++) r->rows[i] = i * -3;
  for (int i = 0; i < 600; i++) r->grid[i / 20][i % 20] = i;
  for (int i = 0; i < 10; i++) r->points[i].x = i, r->points[i].odd = i, r->points[i].name[0] = 'p';
  memset(r->text, 'q', 1000);
  char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(page + 4096, 4096);
  struct point *last = (struct point *)(page + 4096) - 5;
  memcpy(last, r->points, sizeof *last * 5);
  look(last, 9, r);
  look(0, 0, r);
  look((struct point *)8, 9, r);
}
"""


def test_arrays_are_whole_and_a_page_that_is_not_there_is_no_element(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_bpf()
    require("gcc")
    (tmp_path / "arrays.c").write_text(ARRAYS)
    command = ["gcc", "-g", "-O1", "-o", "arrays", "arrays.c"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
    program = str(tmp_path / "arrays")
    asked = ["p[0:n]", "*r", "r->rows[990:1000]", "--engine", "bpf", "--format", "jsonl"]
    done = trace(capfd, *asked, "-x", program, "-f", "look", "--", program)
    assert (done.status, len(done.objects)) == (0, 3), done.errors
    ten = [{"x": at, "odd": at % 2, "name": "p"} for at in range(10)]
    grid = [list(range(20 * row, 20 * row + 20)) for row in range(30)]
    wanted = {"id": 7, "rows": rows(1000), "points": ten, "text": "q" * 1000, "grid": grid}
    for hit in done.objects:
        assert hit["args"]["*r"] == wanted
        assert hit["args"]["r->rows[990:1000]"] == rows(1000)[990:]
    parts = [(hit["args"]["p[0:n]"], hit["faults"]) for hit in done.objects]
    missing = [f"p[0:n][{at}]" for at in range(5, 9)]
    assert parts == [(ten[:5] + [None] * 4, missing), ([], []), (None, ["p[0:n]"])]
