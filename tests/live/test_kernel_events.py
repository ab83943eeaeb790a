"""Events and tracepoints of the running kernel by eBPF: values are what a program says it did."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

import fetchc
from fetchc.tracer.bpf import bpf_session, features, plan_programs
from fetchc.tracer.bpf.bpf_session import BpfSession
from fetchc.tracer.bpf.kernel_probes import KernelProbe, kernel_probe
from fetchc.tracer.events import Event, Plan
from tests.live.traced import SECONDS, trace
from tests.support.toolchains import ROOT, require
from tests.support.tracefs import require_bpf

# A line for each thing that it does, as it must be in the trace. The second file does not exist,
# the third path is in a page that nobody has touched, and the fourth is an address of the kernel.
SOURCE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void opened(const char *path, int flags)
{
    long file = syscall(SYS_openat, AT_FDCWD, path, flags, 0);
    printf("open %d %ld\n", flags, file < 0 ? -errno : file);
    char bytes[100];
    if (file >= 0)
        printf("read %ld 100 %ld\n", file, (long)syscall(SYS_read, file, bytes, sizeof bytes));
}
int main(int count, char **words)
{
    setvbuf(stdout, 0, _IOFBF, 65536);
    printf("process %d parent %d\n", getpid(), getppid());
    char *page = mmap(0, 4096, PROT_READ, MAP_PRIVATE, open(words[1], O_RDONLY), 0);
    int children[2];
    for (int each = 0; each < 2; each++)
        if (!(children[each] = fork())) {
            pause();
            _exit(0);
        }
    printf("children %d %d\n", children[0], children[1]);
    prctl(PR_SET_NAME, "fetchc renamed");
    for (int each = 0; each < 2; each++) {
        kill(children[each], SIGKILL);
        waitpid(children[each], 0, 0);
    }
    opened(words[1], O_RDONLY);
    opened("/none/fetchc_missing", O_RDWR | O_APPEND);
    opened(page, O_RDONLY | O_NOFOLLOW);
    opened((char *)-4096, O_RDONLY | O_CLOEXEC);
    return 0;
}
"""
OPENAT = "tracepoint:syscalls:sys_enter_openat"
SYS_READ = {"x86_64": 0, "aarch64": 63}.get(os.uname().machine)
READ = ("tracepoint:syscalls:sys_enter_read", "tracepoint:syscalls:sys_exit_read")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_bpf()
    require("gcc")
    path = tmp_path_factory.mktemp("kernel") / "fetchc_opens"
    path.with_suffix(".c").write_text(SOURCE)
    subprocess.run(["gcc", "-O1", "-o", path, path.with_suffix(".c")], check=True, timeout=60)
    return path


def asked(function: str, *texts: str) -> tuple[str, tuple[str, ...]]:
    """A probe point of the kernel, and expressions."""
    return function, texts


def plans(session: BpfSession, wanted: Sequence[tuple[str, tuple[str, ...]]]) -> list[Plan]:
    """The plans of what is asked, for a session."""
    opened = fetchc.open("kernel")
    probes = [(opened.probe(function), texts) for function, texts in wanted]
    return [
        probe.plan([probe.asked(text) for text in texts], session.group, f"ev{number}")
        for number, (probe, texts) in enumerate(probes)
    ]


def traced(
    program: Path, file: Path, *wanted: tuple[str, tuple[str, ...]]
) -> tuple[list[list[str]], list[Event]]:
    """What the program says, in words, and the events of its process alone."""
    with BpfSession() as session:
        session.add(*plans(session, wanted))
        # It waits until it is followed: nobody else's calls are recorded.
        words = ["sh", "-c", 'read go; exec "$@"', "sh", str(program), str(file)]
        child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            session.only([child.pid])
            session.start()
            said, _ = child.communicate("\n", timeout=SECONDS)
        finally:
            child.kill()
            child.wait()
        session.stop()
        events = list(session.events())
        assert session.lost == 0
    lines = [line.split() for line in said.splitlines()]
    assert {one.pid for one in events} <= {child.pid, *map(int, lines[1][1:])}
    return lines, events


def rows(events: list[Event], number: int) -> list[tuple[object, ...]]:
    """The values of an event, of hits after the program has named itself."""
    of_event = [one for one in events if one.name == f"ev{number}"]
    return [tuple(one.args.values()) for one in of_event if one.comm == "fetchc renamed"]


def test_system_calls_and_their_results(program: Path, tmp_path: Path) -> None:
    file = tmp_path / "fetchc_file"
    file.write_text("/none/in_a_cold_page\0 and more of it")
    said, events = traced(
        program, file,
        asked(OPENAT, "filename", "flags", "$comm"),
        asked("tracepoint:syscalls:sys_exit_openat", "ret"),
        asked(READ[0], "fd", "count"),
        asked(READ[1], "ret"),
        asked("tracepoint:raw_syscalls:sys_enter", "id", "args[0]", "args[2]"),
    )  # fmt: skip
    calls = [words for words in said if words[0] == "open"]
    # A program at an event cannot wait for a page: what is not there is a fault, and no text.
    paths = [str(file), "/none/fetchc_missing", None, None]
    assert rows(events, 0) == [
        (path, int(words[1]), "fetchc renamed") for path, words in zip(paths, calls, strict=True)
    ]
    faults = [one.faults for one in events if one.args.get("filename", "") is None]
    assert faults == 2 * [("filename",)]
    assert rows(events, 1) == [(int(words[2]),) for words in calls]
    reads = [words for words in said if words[0] == "read"]
    assert rows(events, 2) == [(int(words[1]), int(words[2])) for words in reads]
    assert rows(events, 3) == [(int(words[3]),) for words in reads]
    # The same calls by the event of all of them, whose record has an array.
    read = [row for row in rows(events, 4) if row[0] == SYS_READ]
    assert read == [(SYS_READ, int(words[1]), 100) for words in reads]


def test_structures_and_texts_of_the_kernel(program: Path, tmp_path: Path) -> None:
    said, events = traced(
        program, tmp_path,
        asked("rawtracepoint:task_rename", "task->comm", "task->tgid", "comm",
              "task->real_parent->tgid", "list(task->children, task_struct, sibling).tgid",
              "$current->tgid"),
        asked("tracepoint:task:task_rename", "oldcomm", "newcomm", "pid", "$current->comm"),
        asked("tracepoint:sched:sched_process_exec", "filename", "pid"),
    )  # fmt: skip
    process, parent = int(said[0][1]), int(said[0][3])
    of = [[tuple(one.args.values()) for one in events if one.name == f"ev{n}"] for n in range(3)]
    names = [("sh", program.name), (program.name, "fetchc renamed")]
    assert [row[:4] for row in of[0]] == [(old, process, new, parent) for old, new in names]
    children = [int(text) for text in said[1][1:]]
    assert [row[4] for row in of[0]] == [[], children]
    assert of[1] == [(old, new, process, old) for old, new in names]
    assert {row[5] for row in of[0]} == {process}
    assert of[2] == [(str(program), process)]


def moved(plan: Plan, line: str) -> KernelProbe:
    """The probe, whose values are not where they are."""
    probe = kernel_probe(plan, line)
    return probe.replaced(context=tuple([one.replaced(at=one.at + 8) for one in probe.context]))


def test_another_place_in_the_record_is_seen(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bpf_session, "kernel_probe", moved)
    file = tmp_path / "fetchc_file"
    file.write_text("x")
    said, events = traced(program, file, asked(READ[0], "fd", "count"))
    reads = [(int(words[1]), int(words[2])) for words in said if words[0] == "read"]
    assert reads
    assert rows(events, 0) != reads


def test_the_command_takes_the_engine_that_can(program: Path, tmp_path: Path) -> None:
    file = tmp_path / "fetchc_file"
    file.write_text("x")
    command = [sys.executable, "-m", "fetchc", "trace", "filename", "--filter", "flags == 1026",
               "--stack", "--verbose", "--json", "-x", "kernel", "-f", OPENAT]  # fmt: skip
    done = subprocess.run(
        [*command, "--", program, file], capture_output=True, text=True, timeout=SECONDS, check=True
    )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [one["args"] for one in found] == [{"filename": "/none/fetchc_missing"}]
    (stack,) = [[frame["function"] for frame in one["stack"]] for one in found]
    assert "main" in stack, stack
    first = next(line for line in done.stderr.splitlines() if line.startswith("note: the engine"))
    assert first.startswith(("note: the engine is bpf: ", "note: the engine is tracefs: "))


def test_two_capabilities_are_enough_at_a_tracepoint(program: Path) -> None:
    if "uprobe_multi" not in features.running()[0].features:
        pytest.skip("before 6.6 CAP_SYS_ADMIN is needed")
    plan = fetchc.open("kernel").probe("rawtracepoint:task_rename").plan([], "fetchc_x", "ev")
    script = (
        "import pickle, sys\n"
        "from fetchc.tracer.bpf.bpf_session import BpfSession\n"
        "from fetchc.tracer.bpf.plan_programs import unable\n"
        "plan = pickle.load(sys.stdin.buffer)\n"
        "print(unable([plan]))\n"
        "with BpfSession(group=plan.group) as session:\n"
        "    session.add(plan); session.start()\n"
        "    print('attached')\n"
    )
    said = {}
    for held in ("-all,+bpf,+perfmon", "-all,+bpf"):
        words = [f"--inh-caps={held}", f"--ambient-caps={held}", f"--bounding-set={held}"]
        words += ["--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c", script]
        done = subprocess.run(
            ["setpriv", *words], cwd=ROOT, input=pickle.dumps(plan), capture_output=True,
            timeout=SECONDS,
        )  # fmt: skip
        said[held] = done.stdout.decode().splitlines()
    assert said["-all,+bpf,+perfmon"] == ["None", "attached"]
    assert said["-all,+bpf"] == ["this process lacks CAP_PERFMON"]


def test_a_table_of_an_event_is_counted_in_the_kernel(
    program: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "fetchc_file"
    file.write_text("/none/in_a_cold_page\0 and more of it")
    own = 'fd >= 0 && $comm == "fetchc renamed"'
    for function, words, said, at in (
        (OPENAT, ("--count-by", "flags", "--filter", '$comm == "fetchc renamed"'), "open", 1),
        (OPENAT, ("--count-by", "filename", "--filter", 'filename ~ "/none/f*"'), "", 0),
        (READ[0], ("--count-by", "fd", "--sum", "count", "--filter", own), "read", 1),
    ):
        command = *words, "-v", "--json", "-f", function, "-x", "kernel", "--", program, file
        for as_it_is in (
            (True, False) if said else (True,)
        ):  # a path elsewhere is left to the reader
            with monkeypatch.context() as changed:
                if not as_it_is:
                    changed.setattr(plan_programs, "kernel_probe", moved)
                done = trace(capfd, *command)
            assert "the kernel counts" in done.errors
            told = [json.loads(line) for line in done.lines if line.startswith("{")]
            rows = {str(line["key"]): line["count"] for line in told if line.get("key") is not None}
            lines = [line.split() for line in done.lines if said and line.startswith(said)]
            wanted = Counter(line[at] for line in lines) or {"/none/fetchc_missing": 1}
            assert (rows == wanted) == as_it_is
