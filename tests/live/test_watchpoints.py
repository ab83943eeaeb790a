"""``trace --watch``: every write that a program tells of, with its writer, and gdb's watchpoint."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fetchc.cli import main
from fetchc.conformance.go_programs import build_go
from fetchc.tracer.breakpoints import most_breakpoints
from tests.live.rustc import compiled as rustc
from tests.support.toolchains import GO_VERSIONS, go_build, require

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not most_breakpoints(), reason="this machine has no watchpoints"),
]

# Writes what its input says, and tells of it: the member, the function, the value.
SOURCE = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
enum shade { DARK = -1, PLAIN, LIGHT = 300 };
struct item {
    signed char small; unsigned char big; short middle; unsigned number; long wide;
    unsigned five : 5; _Bool yes; enum shade shade; double ratio; float part;
    const char *name; char fixed[4]; struct { int x, y; } pair;
};
struct __attribute__((packed)) odd { char c; int value; } odd;
static struct item first;
struct item *items[2] = { &first, 0 };
long double longest;
static const char *names[] = { "DARK", "PLAIN", "LIGHT" };
static const enum shade shades[] = { DARK, PLAIN, LIGHT };
#define SET(member, value, format, shown) \
    NOINLINE void set_##member(struct item *it, long n) { it->member = value; } \
    NOINLINE void put_##member(struct item *it, long n) { it->member = value; } \
    static void do_##member(long n) { \
        n % 2 ? put_##member(&first, n) : set_##member(&first, n); \
        printf("first." #member " %s_" #member " " format "\n", n % 2 ? "put" : "set", shown); \
    }
SET(small, n, "%d", first.small)
SET(big, n, "%d", first.big)
SET(middle, n, "%d", first.middle)
SET(number, n, "%u", first.number)
SET(wide, n * 12345678901, "%ld", first.wide)
SET(yes, n % 3 == 0, "%s", first.yes ? "true" : "false")
SET(shade, shades[(n % 3 + 3) % 3], "\"%s\"", names[(n % 3 + 3) % 3])
SET(ratio, n / 8.0, "%.17g", first.ratio)
SET(part, n / 4.0f, "%.9g", first.part)
SET(name, names[(n % 3 + 3) % 3], "\"%s\"", first.name)
static int ends[2], later, calls;
static void *thread(void *count) {
    for (long n = (long)count; n--; usleep(500)) __atomic_add_fetch(&later, 1, __ATOMIC_SEQ_CST);
    return 0;
}
NOINLINE void handle(struct item *it, int n) { it->pair.y = n; }
static struct { const char *name; void (*act)(long); } acts[] = {
    { "small", do_small }, { "big", do_big }, { "middle", do_middle }, { "number", do_number },
    { "wide", do_wide }, { "yes", do_yes }, { "shade", do_shade }, { "ratio", do_ratio },
    { "part", do_part }, { "name", do_name },
};
int main(void) {
    char word[16];
    long n;
    printf("ready\n");
    fflush(stdout);
    while (scanf("%15s %ld", word, &n) == 2) {
        calls++;
        for (int at = 0; at < 10; at++)
            if (!strcmp(acts[at].name, word)) acts[at].act(n);
        if (!strcmp(word, "threads")) {
            pthread_t both[2];
            for (int at = 0; at < 2; at++) pthread_create(both + at, 0, thread, (void *)n);
            for (int at = 0; at < 2; at++) pthread_join(both[at], 0);
            printf("later %d\n", later);
        } else if (!strcmp(word, "pipe")) {
            if (pipe(ends) || write(ends[1], &n, 4) != 4 || read(ends[0], &first.number, 4) != 4)
                return 1;
            printf("first.number %u\n", first.number);
        } else if (!strcmp(word, "fork")) {
            pid_t child = fork();
            if (!child) { do_number(n + 1); _exit(0); }
            waitpid(child, 0, 0);
        } else if (!strcmp(word, "handle")) {
            items[1] = &first;
            handle(&first, n);
        }
        fflush(stdout);
    }
    return 0;
}
"""
INSIDE = SOURCE.partition("calls++")[0].count("\n") + 1
MEMBERS = ("small", "big", "middle", "number", "wide", "yes", "shade", "ratio", "part", "name")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("gcc")
    folder = tmp_path_factory.mktemp("watched")
    (folder / "watched.c").write_text(SOURCE)
    command = ["gcc", "-g", "-O1", "-o", "watched", "watched.c", "-pthread"]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    return folder / "watched"


Event = dict[str, Any]


def traced(
    program: Path, watched: list[str], script: str, *words: str, started: bool = False
) -> tuple[list[str], list[Event], str]:
    """What the program printed, the writes, and what fetchc said.

    ``started``: the program runs already.
    """
    wanted = [word for text in watched for word in ("--watch", text)] + [*words, "--json"]
    command = [sys.executable, "-m", "fetchc", "trace", *wanted]
    results = program.parent / "writes.jsonl"
    if not started:
        command += ["-o", str(results), "--", str(program)]
        done = subprocess.run(
            command, input=script, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
        said, printed = done.stderr, done.stdout
    else:
        with (
            subprocess.Popen(
                [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            ) as own,
            subprocess.Popen(
                [*command, "-p", str(own.pid), "-o", str(results)],
                stderr=subprocess.PIPE, text=True,
            ) as tracing,
        ):  # fmt: skip
            said = ""
            for line in tracing.stderr or ():
                said += line
                if line.startswith("tracing "):
                    break
            time.sleep(0.1)
            printed, _ = own.communicate(script, timeout=60)
            said += tracing.communicate(timeout=60)[1]
            assert tracing.returncode == 0, said
    lines = results.read_text().splitlines()
    return printed.splitlines(), [json.loads(line) for line in lines], said


def shown(value: Any) -> str:
    if isinstance(value, dict):
        value = value["name"]
    return json.dumps(value)


def told(lines: list[str], watched: list[str]) -> list[tuple[str, str, float | str]]:
    """The writes that the program told of: what, who, and the value."""
    found = [line.split(" ", 2) for line in lines if line.partition(" ")[0] in watched]
    return [(what, who, json.loads(value)) for what, who, value in found]


@pytest.mark.parametrize("started", [False, True], ids=["command", "process"])
@pytest.mark.parametrize("members", [MEMBERS[:4], MEMBERS[4:8], MEMBERS[8:]], ids="-".join)
def test_each_write_is_the_programs(program: Path, members: tuple[str, ...], started: bool) -> None:
    draw = random.Random(len(members) + started)
    script = [f"{draw.choice(MEMBERS)} {draw.randint(-500, 500)}" for _ in range(200)]
    watched = [f"first.{name}" for name in members]
    printed, events, _ = traced(program, watched, "\n".join(script), started=started)
    source = SOURCE.splitlines()
    before: dict[str, Any] = {}
    seen = []
    for event in events:
        (label,) = [name for name in event["args"] if name in watched]
        value, old = event["args"][label], event["args"]["$old"]
        name = label.removeprefix("first.")
        line = next(at for at, text in enumerate(source, 1) if text.startswith(f"SET({name},"))
        assert event["args"]["$line"] == f"watched.c:{line}"
        assert old == before.get(label, old)
        assert event["kind"] == "write"
        assert event["faults"] == []
        assert "read_later" not in event
        before[label] = value
        seen.append((label, event["function"], json.loads(shown(value))))
    assert seen == told(printed, watched)
    assert len(seen) > 40


def test_threads_and_the_kernel_write_too(program: Path) -> None:
    script = "threads 20\npipe 77\nnumber 3\n"
    printed, events, _ = traced(program, ["later", "first.number"], script, "--stack")
    assert printed == ["ready", "later 40", "first.number 77", "first.number put_number 3"]
    later = [event for event in events if "later" in event["args"]]
    # Of two that are written at once, the other one may be in the value, too.
    values = [event["args"]["later"] for event in later]
    assert set(values) <= set(range(1, 41))
    assert max(values) == 40
    assert {event["function"] for event in later} == {"thread"}
    assert sorted(Counter([event["thread"] for event in later]).values()) == [20, 20]
    *kernel, last = [event for event in events if "first.number" in event["args"]]
    assert kernel[-1]["args"]["first.number"] == 77
    assert {"read"} <= {frame["function"] for frame in kernel[-1]["stack"]}
    callers = [frame["function"] for frame in kernel[-1]["stack"]]
    assert "main" in callers
    assert (last["args"]["$old"], last["function"]) == (77, "put_number")
    assert last["stack"][0]["function"] == "put_number"


def test_a_write_by_a_child_process_is_none(program: Path) -> None:
    _, events, _ = traced(program, ["first.number"], "number 1\nfork 8\nnumber 2\n")
    found = [(event["args"]["$old"], event["args"]["first.number"]) for event in events]
    assert found == [(0, 1), (1, 2)]
    assert len({event["pid"] for event in events}) == 1


def test_an_address_comes_of_a_pointer_or_of_a_call(program: Path) -> None:
    # The first call gives the address; writes from then on are seen.
    script = "".join(f"handle {n}\n" for n in range(2000))
    _, events, said = traced(program, ["it->pair.y"], script, "-f", "handle", "--count", "50")
    values = [event["args"]["it->pair.y"] for event in events]
    assert values == list(range(values[0], values[0] + 50))
    assert "watching `it->pair.y`: 4 bytes at 0x" in said
    # The dynamic linker sets items[0] before the program begins.
    _, events, said = traced(program, ["items[0]->pair.y"], script, "--count", "50")
    assert [event["args"]["items[0]->pair.y"] for event in events] == list(range(50))
    # Two names of one variable.
    watched = ["items[0]->pair.y", "first.pair.y"]
    _, events, said = traced(program, watched, "handle 1\nhandle 2\n")
    assert [event["args"]["first.pair.y"] for event in events] == [1, 2]
    assert "note: `items[0]->pair.y` is at the address of `first.pair.y`, 0x" in said
    watched = ["it->pair.y", "items[1]->pair.y", "*(long *)0x1000"]
    _, events, said = traced(program, watched, "small 1\n", "-f", "handle")
    assert events == []
    assert "`it->pair.y` had no address: `handle` was not called" in said
    for text in watched[1:]:
        assert f"`{text}` had no address: its file was not loaded, or a pointer" in said


OTHERS = {
    "go": ("main.total", "main.own.count", r"""
package main

import "fmt"

type shop struct { open bool; count int32 }

var total int64 = 5
var own shop

//go:noinline
func (s *shop) sell(n int) {
	s.count += int32(n)
	fmt.Println("main.own.count main.(*shop).sell", s.count)
	total -= int64(n)
	fmt.Println("main.total main.(*shop).sell", total)
}

func main() {
	for n := 1; n <= 20; n++ {
		own.sell(n)
	}
}
"""),
    "rust": ("TOTAL", "OWN.count", r"""
pub struct Shop { pub open: bool, pub count: i32 }
static mut TOTAL: i64 = 5;
static mut OWN: Shop = Shop { open: false, count: 0 };
#[inline(never)]
pub fn sell(n: i32) {
    unsafe {
        OWN.count += n;
        let count = OWN.count;
        println!("OWN.count watched::sell {}", count);
        TOTAL -= n as i64;
        let total = TOTAL;
        println!("TOTAL watched::sell {}", total);
        if total == 6 { OWN.open = true; }
    }
}
fn main() { for n in 1..21 { sell(n); } }
"""),
    "g++": ("shop::total", "shop::own.count", r"""
#include <cstdio>
namespace shop {
struct Shop { bool open; int count; void sell(int n); };
long total = 5;
Shop own;
__attribute__((noinline)) void Shop::sell(int n) {
    count += n;
    std::printf("shop::own.count shop::Shop::sell(int) %d\n", count);
    total -= n;
    std::printf("shop::total shop::Shop::sell(int) %ld\n", total);
}
}
int main() { for (int n = 1; n <= 20; n++) shop::own.sell(n); }
"""),
}  # fmt: skip


@pytest.mark.parametrize("language", OTHERS)
def test_variables_of_other_languages(language: str, tmp_path: Path) -> None:
    *watched, source = OTHERS[language]
    folder = tmp_path / "watched"
    folder.mkdir()
    match language:
        case "go":
            require(f"go{GO_VERSIONS[-1]}")
            program = build_go(source, go_build(GO_VERSIONS[-1], folder), folder)
        case "rust":
            require("rustc")
            (folder / "main.rs").write_text(source)
            program = rustc("rustc", folder / "main.rs", folder / "watched", "-O")
        case _:
            require(language)
            (folder / "main.cc").write_text(source)
            program = folder / "watched"
            command = [language, "-g", "-O2", "-o", str(program), str(folder / "main.cc")]
            subprocess.run(command, check=True, timeout=60)
    printed, events, _ = traced(program, watched, "")
    found = []
    for event in events:
        (label,) = [name for name in event["args"] if name in watched]
        found.append((label, event["function"], event["args"][label]))
    # A compiler may write more often than the source: twice of one value.
    found = [one for one, before in zip(found, [None, *found], strict=False) if one != before]
    assert found == told(printed, watched)
    assert len(found) == 40


def test_filters_and_tables_take_what_a_write_has(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = "".join(f"number {n}\n" for n in range(30))
    condition = "first.number >= 10 && $old != 19"
    table = ("--filter", condition, "--count-by", "$function")
    _, rows, _ = traced(program, ["first.number"], script, *table)
    counts = {row["key"]: row["count"] for row in rows}
    assert counts == {"put_number": 10, "set_number": 9}
    words = ["trace", "--watch", "first.number", "--filter", "later > 1", "--", str(program)]
    assert main(words) == 2
    assert "`later` is not what a write to `first.number` has" in capsys.readouterr().err


def test_without_programs_values_carry_a_mark(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fetchc.tracer.bpf.sampled_programs.sampled_programs", lambda _: None)
    with subprocess.Popen(
        [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as own:
        assert own.stdin is not None
        writing = threading.Timer(1, partial(print, "number 7", file=own.stdin, flush=True))
        writing.start()
        words = ["trace", "--watch", "first.number", "-p", str(own.pid)]
        assert main([*words, "--count", "1", "--timeout", "30"]) == 0
        writing.join()
        own.kill()
    out, said = capsys.readouterr()
    assert "first.number~=7  $old~=0" in out
    assert "`~`: the value is read after the hit" in said


@pytest.mark.parametrize(
    ("watched", "message"),
    [
        (["first.five"], "`first.five` is a bit field"),
        (["first.pair"], "`first.pair` is a whole `(anonymous struct)` of 8 bytes"),
        (["longest"], "`longest` has the type `long double`"),
        (["first.number + 1"], "`first.number + 1` is computed"),
        (["odd.value"], "and a watchpoint of 4 bytes begins at a multiple of 4"),
        (["ends[0]", "--watch", "*(char *)ends"], "and 1 bytes wide, not 4"),
        (["it", "-f", "handle"], "`it` is in a register"),
        (["it[it->number].number", "-f", "handle"], "is found by an index that varies"),
        (["word", "-f", "main", "--at", f":{INSIDE}"], "`word` has the type `char[16]`"),
        (["n", "-f", "main", "--at", f":{INSIDE}"], "`n` is on the stack"),
    ],
)
def test_what_no_watchpoint_covers_is_refused(
    program: Path, watched: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", "--watch", *watched, "--", str(program)]) in (1, 4)
    said = capsys.readouterr().err
    assert "error[FC0722]" in said
    assert message in said


def test_there_are_four(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    four = [word for name in MEMBERS[:4] for word in ("--watch", f"first.{name}")]
    assert main(["trace", *four, "--watch", "later", "--", str(program)]) == 4
    assert "5 addresses of COMMAND are wanted" in capsys.readouterr().err
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as own:
        assert own.stdout is not None
        own.stdout.readline()
        process = ["-p", str(own.pid)]
        command = [sys.executable, "-m", "fetchc", "trace", *four, *process]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as other:
            assert any(line.startswith("tracing ") for line in other.stderr or ())
            assert main(["trace", "--watch", "later", *process]) == 4
            assert "all breakpoints of the processor are taken" in capsys.readouterr().err
            other.terminate()
        own.kill()


def test_a_debugger_that_has_them_all_is_named(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require("gdb")
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as own:
        assert own.stdout is not None
        own.stdout.readline()
        commands = [f"watch first.{name}" for name in MEMBERS[:4]]
        commands += ["continue &", "shell echo running; sleep 60"]
        gdb = ["gdb", "-q", "-nx", "-p", str(own.pid)]
        gdb += [word for one in commands for word in ("-ex", one)]
        with subprocess.Popen(
            gdb, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "DEBUGINFOD_URLS": ""}, start_new_session=True,
        ) as debugger:  # fmt: skip
            assert any(line == "running\n" for line in debugger.stdout or ())
            try:
                assert main(["trace", "--watch", "later", "-p", str(own.pid)]) == 4
            finally:
                os.killpg(debugger.pid, signal.SIGKILL)  # and its sleep
        own.kill()
    said = capsys.readouterr().err
    assert "error[FC0720]" in said
    assert f"process {debugger.pid} (gdb) debugs it" in said


def test_the_values_are_those_of_gdbs_watchpoint(program: Path) -> None:
    require("gdb")
    script = program.parent / "gdb_script"
    script.write_text("".join(f"number {n * n}\n" for n in range(1, 8)))
    commands = [
        "set pagination off", "break main", f"run < {script}", "watch first.number",
        *["continue"] * 7, "kill",
    ]  # fmt: skip
    gdb = ["gdb", "-q", "-batch", "-nx", *[w for one in commands for w in ("-ex", one)]]
    done = subprocess.run(
        [*gdb, str(program)], capture_output=True, text=True, check=True, timeout=60,
        env={**os.environ, "DEBUGINFOD_URLS": ""},
    )  # fmt: skip
    values = r"Old value = (\d+)\nNew value = (\d+)\n(?:0x\w+ in )?(\w+) "
    expected = [(int(a), int(b), who) for a, b, who in re.findall(values, done.stdout)]
    _, events, _ = traced(program, ["first.number"], script.read_text())
    found = [
        (event["args"]["$old"], event["args"]["first.number"], event["function"])
        for event in events
    ]
    assert len(found) == 7
    assert found == expected
    assert found != [(old, new + 1, who) for old, new, who in expected]
