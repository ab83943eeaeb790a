"""``fetchc trace --stack``: stacks of threads, of libraries that come later, full buffers."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from pathlib import Path

import pytest

from fetchc.tracer.session import Session
from fetchc.tracer.unwind import StackCopy
from tests.live.traced import SECONDS, trace
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone, noipa))
NOINLINE int leaf(int n) { __asm__ volatile(""); return n + 1; }
static inline __attribute__((always_inline)) int inlined(int n) { return leaf(n) * 3; }
NOINLINE int deep(int left, int n)
{
    volatile char room[700]; room[3] = n;
    return left ? deep(left - 1, n) + room[3] : inlined(n) + room[3];
}
static int many;
static void *work(void *unused) { for (int i = 0; i < many; i++) leaf(i); return 0; }
int main(int argc, char **argv)
{
    if (argc > 2) { /* a library calls back, and the program ends at once */
        void *library = dlopen(argv[2], RTLD_NOW);
        int (*call)(int (*)(int)) = (int (*)(int (*)(int)))dlsym(library, "call");
        return call(leaf) == 0;
    }
    char line[16];
    many = atoi(argv[1]);
    puts("ready"); fflush(stdout);
    if (!many) return deep(5, 1) == 0;
    fgets(line, sizeof line, stdin);
    pthread_t threads[6];
    for (int i = 0; i < 6; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 6; i++) pthread_join(threads[i], 0);
    work(0);
    return 0;
}
"""
LIBRARY = (
    "int call(int (*f)(int)) { volatile char room[64]; room[0] = 1; return f(7) + room[0]; }\n"
)


@pytest.fixture(scope="module", name="program")
def program_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_uprobes()
    require("gcc")
    folder = tmp_path_factory.mktemp("copied")
    (folder / "program.c").write_text(SOURCE)
    (folder / "later.c").write_text(LIBRARY)
    flags = ["-O2", "-g", "-fomit-frame-pointer"]
    for command in (
        ["gcc", *flags, "program.c", "-o", "program", "-pthread", "-ldl"],
        ["gcc", *flags, "-shared", "-fPIC", "later.c", "-o", "later.so"],
    ):
        subprocess.run(command, cwd=folder, check=True, timeout=60)
    return folder / "program"


def names(line: dict[str, object]) -> list[str]:
    stack = line["stack"]
    assert isinstance(stack, list)
    return [frame["function"] for frame in stack]


def line_of(text: str) -> int:
    return next(at for at, line in enumerate(SOURCE.split("\n"), 1) if text in line)


def test_inlined_functions_and_lines(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shown = trace(capfd, "-x", program, "-f", "leaf", "--stack=lines", "--", program, "0")
    lines = [line.strip() for line in shown.lines if line.startswith("     ")]
    assert lines[0] == f"leaf+0x0 (program) at program.c:{line_of('int leaf(')}"
    called = line_of("leaf(n) * 3")
    assert lines[1] == f"inlined [inlined] (program) at program.c:{called}"
    called = line_of("inlined(n) + room")
    assert re.fullmatch(rf"deep\+0x\w+ \(program\) at program\.c:{called}", lines[2])
    called = line_of("deep(5, 1)")
    assert re.fullmatch(rf"main\+0x\w+ \(program\) at program\.c:{called}", lines[8])


def test_a_short_copy_says_so(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ("-x", program, "-f", "leaf", "--stack", "--format", "jsonl", "--", program, "0")
    (whole,) = [json.loads(line) for line in trace(capfd, *words).lines if line[:1] == "{"]
    assert names(whole)[:8] == ["leaf", *["deep"] * 6, "main"]
    assert "not_unwound" not in whole["stack"][-1]
    short = ("--stack-bytes", "2048", *words)
    (cut,) = [json.loads(line) for line in trace(capfd, *short).lines if line[:1] == "{"]
    assert names(cut) == ["leaf", "deep", "deep", "deep"]
    assert cut["stack"][-1]["not_unwound"] == "stack copy ended after 2048 bytes"


def test_a_library_that_came_later_of_a_program_that_has_ended(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    library = program.with_name("later.so")
    shown = trace(
        capfd, "-x", program, "-f", "leaf", "--stack", "--format", "jsonl", "--",
        program, "1", library,
    )  # fmt: skip
    (one,) = shown.objects
    assert names(one)[:3] == ["leaf", "call", "main"]
    assert one["stack"][1]["file"] == str(library)


def test_what_nobody_wants_to_see_is_not_lost(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # Six hits, of which the first one ends the trace: the others are in the buffers by then.
    words = ("-x", program, "-f", "deep", "--stack", "--count", "1", "--", program, "0")
    shown = trace(capfd, *words)
    assert len([line for line in shown.lines if "  deep  " in line or line.endswith("deep")]) == 1
    assert "lost" not in shown.errors


def test_stacks_for_flame_graphs(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shown = trace(
        capfd, "-x", program, "-f", "leaf", "--stack", "--format", "folded", "--", program, "0"
    )
    (line,) = [line for line in shown.lines if ";" in line]
    assert line.endswith(";main;deep;deep;deep;deep;deep;deep;leaf 1")


@pytest.mark.parametrize("buffer_kib", [None, 1024])
def test_each_hit_of_each_thread_is_seen_once_or_lost(
    program: Path, buffer_kib: int | None
) -> None:
    # Of a process that runs already, whose threads begin later, and inherit the events.
    from fetchc.api.library import open as opened

    each = 400
    with subprocess.Popen(
        [program, str(each)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        with Session(buffer_kib) as session:
            probe = opened(str(program)).probe("leaf")
            session.add(probe.plan((probe.asked("n"),), session.group, "leaf"))
            session.stacks(4096)
            session.only([child.pid])
            session.start()
            child.stdin.write("\n")
            child.stdin.flush()
            ended = threading.Timer(SECONDS, child.kill)
            ended.start()
            child.wait()
            ended.cancel()
            session.stop()
            events = list(session.events())
            lost = session.lost
    assert len(events) + lost == 7 * each
    assert (lost > 0) == (buffer_kib is not None)
    assert all(event.pid == child.pid for event in events)
    stacks = [event.stack for event in events]
    assert all(isinstance(stack, StackCopy) for stack in stacks)
    by_thread: dict[int, list[object]] = {}
    for event in events:
        by_thread.setdefault(event.thread, []).append(event.args["n"])
    if not lost:
        assert sorted(by_thread.values(), key=str) == [list(range(each))] * 7
