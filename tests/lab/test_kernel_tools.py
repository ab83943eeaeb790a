"""perf and bpftrace on a booted kernel: what they print is what a program passed in."""

from __future__ import annotations

import re
import shlex

import pytest

import fetchc
from fetchc.cli.compile_command import installed_bpftrace
from fetchc.emit.output_formats import Event, written
from tests.lab.test_kernel_functions import NAME, value, version
from tests.support.kernel_lab import LabKernel
from tests.support.kernel_lab_calls import COMM, Done, done, program
from tests.support.kernel_lab_guest import Guest
from tests.support.kernel_lab_python import files, interpreter
from tests.support.kernel_lab_tools import program_files

GROUP = "fetchc_lab"
SECONDS = 200  # to boot with so many files, when the machine is busy
LINE = re.compile(rf"\s*{COMM}\s+{GROUP}:(\w+): \([0-9a-f]+(?: <- [0-9a-f]+)?\) (.*)")
ASKED = (
    ("opened", "do_sys_openat2", ("path=filename", "flags=how->flags"), False),
    ("reading", "vfs_read", (f"name={NAME}", "count", "flags=file->f_flags"), False),
    ("returned", "vfs_read", ("result=$retval",), True),
)
PRINTED = re.compile(rf"(?:calls|{COMM})-\d+ (\w+): (.*)")
MEBIBYTES = 1200  # LLVM is large, and in memory twice
# bpftrace looks for functions below debugfs, and takes its length of strings from the environment.
STARTED = """
import ctypes, os, sys
ctypes.CDLL(None).mount(b"debug", b"/sys/kernel/debug", b"debugfs", 0, None)
os.execve("/bpftrace", ["bpftrace", *sys.argv[1:]], {"BPFTRACE_STRLEN": "200"})
"""
WITHOUT_BREAKPOINT = (f"name={NAME}", "count", "result=$retval")
Rows = dict[str, list[tuple[str | int, ...]]]


def recorded(guest: Guest, commands: list[str]) -> tuple[Done, Rows]:
    """The program's account under perf's probes, and the values that perf printed."""
    for command in commands:
        words = shlex.split(command)
        assert words[:2] == ["perf", "probe"], command
        guest.run("/perf", "probe", "-q", *words[2:])
    try:
        record = ("record", "-q", "-e", f"{GROUP}:*", "-o", "/perf.data", "/calls")
        account = done(guest.run("/perf", *record))
        shown = guest.run("/perf", "script", "-i", "/perf.data", "-F", "comm,event,trace")
    finally:
        guest.run("/perf", "probe", "-q", "-d", f"{GROUP}:*")
    return account, values(LINE, shown)


def values(pattern: re.Pattern[str], shown: str) -> Rows:
    """The printed values of each event, of lines that the program caused."""
    rows: Rows = {}
    for line in shown.splitlines():
        if found := pattern.fullmatch(line):
            texts = re.findall(r'\w+=("[^"]*"|\S+)', found[2])
            rows.setdefault(found[1], []).append(tuple([value(text) for text in texts]))
    return rows


def of_files(rows: list[tuple[str | int, ...]]) -> list[tuple[str | int, ...]]:
    return [row for row in rows if "lab_" in str(row[0])]


def test_perf_reads_back_what_was_passed_in(lab_kernel: LabKernel) -> None:
    if lab_kernel.machine.name != "x86_64":
        pytest.skip("perf of this machine runs in guests of its own architecture alone")
    if version(lab_kernel) < (6, 1):
        pytest.skip("do_sys_openat2 has another name, or the record another form")
    tool = program_files("perf")
    if not tool:
        pytest.skip("no perf: .ci/setup installs it")
    opened = fetchc.open(str(lab_kernel.image))
    commands = []
    for event, function, texts, returns in ASKED:
        probe = opened.probe(function, kernel=lab_kernel.release, returns=returns)
        arguments = [probe.compile(text) for text in texts]
        commands.append(probe.written("perf", arguments, GROUP, event).text)
    with Guest(lab_kernel, {**tool, "calls": program(lab_kernel)}) as guest:
        account, rows = recorded(guest, commands)
        assert of_files(rows["opened"]) == [row[:2] for row in account.opened]
        assert of_files(rows["reading"]) == [row[:3] for row in account.read]
        results = [row[5] for row in account.read]
        assert [result for (result,) in rows["returned__return"]][-len(results) :] == results
        wrong = commands[1].replace("count=%dx", "count=%cx")
        assert wrong != commands[1]
        account, rows = recorded(guest, [wrong])
        assert of_files(rows["reading"]) != [row[:3] for row in account.read]


def test_bpftrace_prints_what_was_passed_in(lab_kernel: LabKernel) -> None:
    if lab_kernel.machine.name != "x86_64" or version(lab_kernel) < (6, 12):
        pytest.skip("bpftrace of this machine, on kernels that name their arguments")
    tool = program_files("bpftrace")
    if not tool:
        pytest.skip("no bpftrace: .ci/setup installs it")
    opened = fetchc.open(str(lab_kernel.image))
    asked = [
        *ASKED,
        ("called", "fprobe:vfs_read", WITHOUT_BREAKPOINT, True),
        ("renamed", "tracepoint:task:task_rename", ("new=newcomm",), False),
    ]
    events: list[Event] = []
    for event, function, texts, returns in asked:
        probe = opened.probe(function, kernel=lab_kernel.release, returns=returns)
        events += probe.events([probe.compile(text) for text in texts], GROUP, event)
    text = written("bpftrace", events, version=installed_bpftrace()).text
    # Its name lookup runs a command.
    shell = {f"bin/{name}": content for name, content in program_files("sh").items()}
    content = {**files(lab_kernel), **tool, **shell, "calls": program(lab_kernel)}
    with Guest(lab_kernel, content, SECONDS, MEBIBYTES) as guest:

        def printed(program: str) -> tuple[Done, Rows]:
            guest.put("/program.bt", program.encode())
            words = ("/program.bt", "-o", "/printed", "-c", "/calls")
            account = done(guest.run(interpreter(lab_kernel), "-c", STARTED, *words))
            return account, values(PRINTED, guest.read("/printed"))

        account, rows = printed(text)
        assert of_files(rows["opened"]) == [row[:2] for row in account.opened]
        assert of_files(rows["reading"]) == [row[:3] for row in account.read]
        assert of_files(rows["called"]) == [(row[0], row[1], row[5]) for row in account.read]
        assert [result for (result,) in rows["returned"]] == [row[5] for row in account.read]
        assert rows["renamed"] == [(COMM,)]
        wrong = text.replace("args->count", "args->pos")
        assert wrong != text
        account, rows = printed(wrong)
        assert of_files(rows["called"]) != [(row[0], row[1], row[5]) for row in account.read]
