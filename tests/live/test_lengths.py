"""Ranges whose bounds the program knows, as the kernel fetches them and the reader cuts them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

import fetchc
from fetchc.tracer.events import Event
from tests.live.traced import BPF, trace
from tests.live.watching import watched
from tests.support.go_programs import go_program
from tests.support.toolchains import require
from tests.support.tools import bpftrace_version, missing, run_bpftrace
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

NUMBERS = 512 if BPF else 64  # of eight bytes, at most

SOURCE = r"""
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#include <wchar.h>
#define KEPT __attribute__((noipa))
#define USE(value) __asm__ volatile("" : : "g"(value) : "memory")
struct header { int length, offset; unsigned few : 3; };
struct record { struct header header; const char *data; uint8_t raw[64]; short tail[]; };
KEPT void put(int fd, const void *buf, size_t count) { USE(fd); USE(buf); USE(count); }
KEPT void text(const char *buf, int count) { USE(buf); USE(count); }
KEPT void signs(const signed char *buf, uint8_t count) { USE(buf); USE(count); }
KEPT void args(int argc, char **argv) { USE(argc); USE(argv); }
KEPT void vectors(const struct iovec *iov, int iovcnt) { USE(iov); USE(iovcnt); }
KEPT void numbers(int n, int from, long row[n]) { USE(n); USE(from); USE(row); }
KEPT void whole(struct record *r) { USE(r); }
KEPT void wide(const wchar_t *letters, unsigned long n) { USE(letters); USE(n); }
KEPT void reals(double *d, long *n) { USE(d); USE(n); }
int main(int argc, char **argv)
{
    put(1, "hello\0world\377", 12);
    put(2, NULL, 0);
    put(3, NULL, 5);
    put(4, (void *)8, 5);
    put(5, "x", (size_t)-1);
    put(6, "x", (size_t)1 << 63);

    char big[2000];
    memset(big, 'q', sizeof big);
    text("abcdef", 3);
    text("abcdef", -1);
    text("abcdef", 0);
    text(big, 256);
    text(big, 2000);
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 4096, 4096);
    memset(page, 'z', 4096);
    text(page + 4086, 10);
    text(page + 4086, 20);
    memset(page + 4090, 0, 6);
    text(page + 4086, 10);
    text(page + 4096, 3);

    signs((const signed char *)"\377\0\200z", 4);
    args(argc, argv);
    args(2, (char *[]){"one", NULL, "three"});
    struct iovec iov[6] = {{"a", 1}, {"bb", 2}, {NULL, 0}, {"ccc", 3}, {"d", 1}, {"e", 5}};
    for (int i = 0; i < 6; i++)
        iov[i].iov_base = (void *)(long)i;
    vectors(iov, 3);
    vectors(iov, 6);
    vectors(iov, 0);

    long row[100];
    for (int i = 0; i < 100; i++)
        row[i] = i * i - 3;
    numbers(5, 2, row);
    numbers(100, 98, row);
    numbers(3, 4, row);
    numbers(64, 64, row);
    numbers(65, 62, row);

    struct record *r = calloc(1, sizeof *r + 200);
    for (int i = 0; i < 100; i++)
        r->tail[i] = -i;
    r->header = (struct header){7, 2, 3};
    r->data = "payload";
    memcpy(r->raw, "\1\2\3abcd", 7);
    whole(r);
    r->header.length = 65;
    r->header.offset = -1;
    whole(r);
    r->header.length = 0;
    r->data = NULL;
    whole(r);
    wide(L"h\u00e9llo\U0001F600", 6);
    long many = 2;
    reals((double[]){1.5, -2, 3}, &many);
    reals((double[]){1.5}, NULL);
    getchar();
    return 0;
}
"""
CUT = "…"


@pytest.fixture(scope="module", name="program", params=["-O0", "-O2"])
def program_(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_uprobes()
    require("gcc")
    folder: Path = tmp_path_factory.mktemp("lengths")
    program, source = folder / "lengths", folder / "lengths.c"
    source.write_text(SOURCE)
    command = ["gcc", "-g", request.param, "-w", "-o", program, source]
    subprocess.run(command, check=True, timeout=60)
    return program


def _values(
    capfd: pytest.CaptureFixture[str], program: Path, function: str, *wanted: str
) -> list[list[str]]:
    """Every call's values as they are shown to people."""
    command = ["sh", "-c", f"{program} a b c d e f g h i </dev/null"]
    done = trace(capfd, *wanted, "-x", program, "-f", function, "--", *command)
    assert (done.status, done.errors) == (0, "")
    found = []
    for line in done.lines:
        shown = line.partition(f"  {function}  ")[2]
        starts = [shown.index(f"{label}=") for label in map(_label, wanted)]
        ends = [*starts[1:], len(shown)]
        parts = zip(wanted, starts, ends, strict=True)
        found.append([shown[at + len(_label(one)) + 1 : end].strip() for one, at, end in parts])
    return found


def _label(wanted: str) -> str:
    name, equal, _ = wanted.partition("=")
    return name if equal else wanted


def _only(
    capfd: pytest.CaptureFixture[str], program: Path, function: str, wanted: str
) -> list[str]:
    return [one for (one,) in _values(capfd, program, function, wanted)]


def test_what_a_write_writes(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _only(capfd, program, "put", "buf[0:count]") == [
        r'"hello\0world\xff"',
        '""',
        "(fault)",
        "(fault)",
        "(fault)",
        "(fault)",
    ]


def test_texts(
    program: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing is settled, and so read, before the program has ended.
    monkeypatch.setattr("fetchc.tracer.ring_buffer._SETTLE", 3600 * 10**9)
    # Nothing tells whether there were zeros after the page, and as of a number, 0 stands where the
    # program has ended; but a record of an eBPF program says it.
    assert _only(capfd, program, "text", "buf[0:count]") == [
        '"abc"',
        "(fault)",
        '""',
        f'"{"q" * 256}"',
        f'"{"q" * 2000}"' if BPF else f'"{"q" * 256}"{CUT}',
        f'"{"z" * 10}"',
        f'"{"z" * 10}"{CUT}',
        r'"zzzz\0\0\0\0\0\0"',
        "(fault)" if BPF else r'"\0\0\0"',
    ]


def test_texts_of_a_program_that_can_be_asked(program: Path) -> None:
    probe = fetchc.open(str(program)).probe("text")
    _, events = watched(
        lambda group: [probe.plan(["t=buf[0:count]", "count"], group)],
        [program],
        while_running=9,
    )
    assert [_shown(event) for event in events][5:] == [
        "z" * 10,
        "fault",
        "zzzz\0\0\0\0\0\0",
        "fault",
    ]


def _shown(event: Event) -> object:
    assert event.faults == (("t",) if event.args["t"] is None else ())
    return "fault" if event.args["t"] is None else event.args["t"]


def test_signed_characters_and_formats(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wanted = ["buf[0:count]", "n=buf[0:count]:s8", "x=buf[1:count]:hex", "u=buf[0:count]:u8"]
    assert _values(capfd, program, "signs", *wanted) == [
        [r'"\xff\0\x80z"', "[-1, 0, -128, 122]", "[0x0, 0x80, 0x7a]", "[255, 0, 128, 122]"]
    ]


def test_the_arguments_of_main(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first, second = _only(capfd, program, "args", "argv[0:argc]")
    shown = [str(program), *"abcdefghi"]
    assert first == _listed([f'"{one}"' for one in shown], 8)
    assert second == '["one", null]'
    both = _only(capfd, program, "args", "argv[1:argc]")
    assert both == [_listed([f'"{one}"' for one in shown[1:]], 8), "[null]"]


def test_structures(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sizes = (1, 2, 0, 3, 1, 5)
    each = [f"{{iov_base={index:#x}, iov_len={size}}}" for index, size in enumerate(sizes)]
    assert _only(capfd, program, "vectors", "iov[0:iovcnt]") == [
        _listed(each[:3], 4),
        _listed(each, 4),
        "[]",
    ]


def _listed(elements: list[str], most: int) -> str:
    # Definitions have room for so many of them.
    shown = elements if BPF else [*elements[:most], *([CUT] if len(elements) > most else [])]
    return f"[{', '.join(shown)}]"


def test_numbers(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    row = [i * i - 3 for i in range(100)]

    def shown(low: int, high: int) -> str:
        part = [*map(str, row[low : min(high, NUMBERS)]), *[CUT] * (high > NUMBERS)]
        return f"[{', '.join(part)}]"

    wanted = ["row[0:n]", "t=row[from:n]", "c=row[from:5]", "d=row[2:n]"]
    assert _values(capfd, program, "numbers", *wanted) == [
        [shown(0, 5), shown(2, 5), shown(2, 5), shown(2, 5)],
        [shown(0, 100), shown(98, 100), "(fault)", _from_two(row, 100)],
        [shown(0, 3), "(fault)", "[13]", shown(2, 3)],
        [shown(0, 64), "[]", "(fault)", _from_two(row, 64)],
        [shown(0, 65), shown(62, 65), "(fault)", _from_two(row, 65)],
    ]


def _from_two(row: list[int], high: int) -> str:
    # As many are fetched, from a constant start on those after it.
    part = [*map(str, row[2 : min(high, NUMBERS + 2)]), *[CUT] * (high > NUMBERS + 2)]
    return f"[{', '.join(part)}]"


def test_members(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wanted = [
        "d=r->data[0:r->header.length]",
        "w=r->raw[0:r->header.length]",
        "o=r->raw[r->header.offset:r->header.length]",
        "t=r->tail[r->header.few:r->header.length]",
    ]
    found = _values(capfd, program, "whole", *wanted)
    assert found[0] == ['"payload"', r'"\x01\x02\x03abcd"', r'"\x03abcd"', "[-3, -4, -5, -6]"]
    assert found[1][0].startswith('"payload\\0')  # what follows it in memory
    assert found[1][1:3] == ["(fault)", "(fault)"]  # after the end of the array, before it
    tail = [str(-i) for i in range(3, 65)] if BPF else [*[str(-i) for i in range(3, 64)], CUT]
    assert found[1][3] == f"[{', '.join(tail)}]"
    assert found[2] == ['""', '""', "(fault)", "(fault)"]


def test_wide_characters(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _only(capfd, program, "wide", "letters[0:n]") == ['"héllo😀"']
    assert _only(capfd, program, "wide", "letters[1:n]") == ['"éllo😀"']


def test_a_length_behind_a_pointer(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _only(capfd, program, "reals", "d[0:*n]") == ["[1.5, -2.0]", "(fault)"]


def test_filters(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def passed(function: str, wanted: str, filter: str) -> list[object]:
        where: list[str | Path] = ["-x", program, "-f", function, "--format", "jsonl"]
        command = ["sh", "-c", f"{program} </dev/null"]
        done = trace(capfd, wanted, "--filter", filter, *where, "--", *command)
        assert (done.status, done.errors) == (0, "")
        return [args[wanted] for args in done.args]

    assert passed("put", "fd", 'buf[0:count] ~ "hello*"') == [1]
    assert passed("put", "fd", 'buf[0:count] == ""') == [2]
    assert passed("put", "fd", 'buf[0:count] != ""') == [1]  # what could not be read passes none
    assert passed("text", "buf[0:count]", "count == 256") == ["q" * 256]
    assert passed("text", "count", f'buf[0:count] == "{"q" * 256}"') == [256]
    refused = trace(capfd, "fd", "--filter", "buf[0:count] > 3", "-x", program, "-f", "put")
    assert refused.status == 1
    assert "FC0752" in refused.errors


def test_what_was_cut_is_reported_with_its_length(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    where: list[str | Path] = [
        "-x",
        program,
        "-f",
        "text",
        "--filter",
        "count > 300",
        "--format",
        "jsonl",
    ]
    done = trace(capfd, "buf[0:count]", *where, "--", "sh", "-c", f"{program} </dev/null")
    (printed,) = done.objects
    seen = printed["args"]["buf[0:count]"], printed.get("cut")
    assert seen == (("q" * 2000, None) if BPF else ("q" * 256, {"buf[0:count]": 2000}))


CPP = r"""
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>
#define KEPT __attribute__((noipa))
#define USE(value) asm volatile("" : : "g"(value) : "memory")
struct Point { int x, y; const char *name; };
class Store {
    Point *items; unsigned short n;
  public:
    Store(Point *items, unsigned short n) : items(items), n(n) {}
    KEPT void show(const size_t &most, const std::vector<int> &v)
    {
        USE(this); USE(&most); USE(&v);
    }
};
KEPT void letters(const char16_t *a, const char8_t *b, const wchar_t *c, long n)
{
    USE(a); USE(b); USE(c); USE(n);
}
KEPT void words(std::string *first, const char *const (&names)[3], int n)
{
    USE(first); USE(&names); USE(n);
}
int main()
{
    Point points[] = {{1, -1, "one"}, {2, -2, nullptr}, {3, -3, "three"}};
    Store(points, 2).show(1, {4, 5, 6});
    Store(points, 0).show(3, {});
    letters(u"\u00e4bc", u8"\u00e4bc", L"\u00e4bc", 3);
    std::string two[] = {"short", "a text that is longer than what fits in"};
    words(two, {"a", "b", "c"}, 2);
    words(two, {"a", "b", "c"}, 4);
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_members_and_references_of_cpp(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], level: str
) -> None:
    require_uprobes()
    require("g++")
    program, source = tmp_path / "lengths_cpp", tmp_path / "lengths.cc"
    source.write_text(CPP)
    command: list[str | Path] = ["g++", "-std=c++20", "-g", level, "-o", program, source]
    subprocess.run(command, check=True, timeout=60)

    def values(function: str, *wanted: str) -> list[list[object]]:
        where: list[str | Path] = ["-x", program, "-f", function, "--format", "jsonl"]
        done = trace(capfd, *wanted, *where, "--", program)
        assert (done.status, done.errors) == (0, "")
        return [[args[one] for one in wanted] for args in done.args]

    one, two = {"x": 1, "y": -1, "name": "one"}, {"x": 2, "y": -2, "name": None}
    wanted = [
        "items[0:n]",
        "this->items[0:most]",
        "v[0:most]",
        "v[1:v.size()]",
        "items[0:v.size()]",
    ]
    first, second = values("Store::show", *wanted)
    three = {"x": 3, "y": -3, "name": "three"}
    assert first == [[one, two], [one], [4], [5, 6], [one, two, three]]
    assert second == [[], [one, two, three], None, None, []]
    assert values("letters", "a[0:n]", "b[0:n]", "c[0:n]") == [["äbc", "äb", "äbc"]]
    both = ["short", "a text that is longer than what fits in"]
    assert values("words", "first[0:n]", "names[0:n]")[0] == [both, ["a", "b"]]
    assert values("words", "names[0:n]")[1] == [None]


def test_bpftrace_prints_as_many_bytes(tmp_path: Path) -> None:
    if reason := missing("bpftrace"):
        pytest.skip(reason)
    require("gcc")
    program, source = tmp_path / "printed", tmp_path / "printed.c"
    source.write_text(PRINTED)
    subprocess.run(["gcc", "-g", "-O1", "-o", program, source], check=True, timeout=60)
    probe = fetchc.open(str(program)).probe("put")
    asked = [probe.compile("v=buf[0:count]"), probe.compile("fd")]
    text = probe.written("bpftrace", asked, version=bpftrace_version()).text
    printed, _ = run_bpftrace(text, program, tmp_path)
    assert [(hit["fd"], hit["v"], hit["v_len"]) for hit in printed["put"]] == [
        ("1", r'"he\x00llo\xff"', "7"),
        ("2", '""', "0"),
        ("3", f'"{"q" * 200}"', "300"),  # BPFTRACE_STRLEN
    ]


# What is on the stack is in RAM: bpftrace brings nothing in.
PRINTED = r"""
#include <string.h>
#define USE(value) __asm__ volatile("" : : "g"(value) : "memory")
__attribute__((noipa)) void put(int fd, const void *buf, unsigned long count)
{
    USE(fd); USE(buf); USE(count);
}
int main(void)
{
    char buf[300];
    memset(buf, 'q', sizeof buf);
    put(1, memcpy((char[8]){0}, "he\0llo\377", 7), 7);
    put(2, buf, 0);
    put(3, buf, 300);
}
"""


def test_wide_texts_up_to_their_end(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    require_uprobes()
    require("g++")
    program, source = tmp_path / "wide", tmp_path / "wide.cc"
    source.write_text(WIDE)
    subprocess.run(["g++", "-g", "-O1", "-o", program, source], check=True, timeout=60)
    wanted = ["a", "b", "c", "*p"]
    done = trace(capfd, *wanted, "-x", program, "-f", "wide", "--", program)
    assert (done.status, done.errors) == (0, "")
    first, second = [line.partition("wide  ")[2] for line in done.lines]
    assert re.sub(" +", " ", first) == 'a="h\u00e9llo \U0001f600" b="\u00e4" c="" *p={name=null}'
    shown = re.sub(" +", " ", second)
    assert shown == f'a="{"x" * 64}"{CUT} b=null c=(fault) *p={{name="h\u00e9llo \U0001f600"}}'


WIDE = r"""
#include <string>
#define USE(value) asm volatile("" : : "g"(value) : "memory")
struct Pair { const wchar_t *name; };
__attribute__((noipa)) void wide(
    const wchar_t *a, const char16_t *b, char32_t *c, const Pair *p)
{
    USE(a); USE(b); USE(c); USE(p);
}
int main()
{
    Pair none = {nullptr}, one = {L"h\u00e9llo \U0001f600"};
    char32_t empty[64] = {};
    wide(one.name, u"\u00e4", empty, &none);
    wide(std::wstring(300, L'x').c_str(), nullptr, (char32_t *)8, &one);
}
"""


def test_json_lines_are_json(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    where: list[str | Path] = ["-x", program, "-f", "put", "--format", "jsonl"]
    done = trace(capfd, "buf[0:count]", *where, "--", "sh", "-c", f"{program} </dev/null")
    first = json.loads(done.lines[0])
    assert first["args"] == {"buf[0:count]": "hello\0world\udcff"}
    assert [line["faults"] for line in done.objects] == [[], [], *[["buf[0:count]"]] * 4]


GO = r"""
package main

type box struct {
	data []byte
	n    int
}

//go:noinline
func put(b []byte, n int, s string) int { return len(b) + n + len(s) }

//go:noinline
func (x *box) show(words []string, lo, hi uint8) int { return x.n + len(words) + int(lo) + int(hi) }

func main() {
	put([]byte("hello"), 3, "a text")
	put(make([]byte, 3, 8), 8, "a text")
	put(make([]byte, 3, 8), 9, "a text")
	put([]byte("hello"), -1, "a text")
	(&box{[]byte{1, 2, 3}, 2}).show([]string{"a", "bb", "ccc"}, 1, 3)
	(&box{nil, 0}).show(nil, 0, 0)
}
"""


@pytest.mark.parametrize("version", ["1.15", "1.27"])
def test_slices_of_go_up_to_their_capacity(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], version: str
) -> None:
    require_uprobes()
    program = go_program(version, tmp_path, GO, name="lengths_go")

    def values(function: str, *wanted: str) -> list[list[object]]:
        where: list[str | Path] = ["-x", program, "-f", function, "--format", "jsonl"]
        done = trace(capfd, *wanted, *where, "--", program)
        assert (done.status, done.errors) == (0, "")
        return [[args[one] for one in wanted] for args in done.args]

    hello = list(b"hello")
    assert values("main.put", "b[0:n]", "b[1:n]", "s[0:n]", "b") == [
        [hello[:3], hello[1:3], "a t", hello],
        [[0] * 8, [0] * 7, None, [0] * 3],  # after the length, and within the capacity
        [None, None, None, [0] * 3],
        [None, None, None, hello],
    ]
    words = ["words[lo:hi]", "words[0:len(x.data)]", "words[lo:3]", "x.data[0:x.n]"]
    assert values("main.(*box).show", *words) == [
        [["bb", "ccc"], ["a", "bb", "ccc"], ["bb", "ccc"], [1, 2]],
        [[], [], None, []],
    ]
