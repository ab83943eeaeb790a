"""A whole session in a booted kernel: globs, stacks, names of functions, and what was missed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fetchc
from fetchc.target.bpf_rules import bpf_machine
from tests.live.test_bpf_engine import source_of_kinds
from tests.support import kernel_lab_guest
from tests.support.kernel_lab import SOURCES, LabKernel, built
from tests.support.kernel_lab_calls import program
from tests.support.kernel_lab_guest import Guest
from tests.support.kernel_lab_python import files, interpreter, why_no_python

SLEEPERS, ROOM = 20, 3
WRITES = 3
STAYS = "1000"  # seconds: fetchc ends it when it has seen what it was to see


def test_sessions_in_the_kernel(lab_kernel: LabKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    # The kernel's list of symbols is long to read where other work keeps the machine busy.
    monkeypatch.setattr(kernel_lab_guest, "_ANSWER_SECONDS", 300)
    reason = why_no_python(lab_kernel)
    if reason:
        pytest.skip(reason)
    sleepers = built(lab_kernel.machine, SOURCES / "sleepers.c", "-O1", "-pthread")
    content = {**files(lab_kernel), "calls": program(lab_kernel), "sleepers": sleepers}
    with Guest(lab_kernel, content, 300) as guest:
        run = (interpreter(guest.kernel), "-m", "fetchc", "trace", "-x", "kernel")
        # A function that runs once at the start is none to probe, and no reason to end.
        globs = ("-f", "vfs_cache*", "-f", "vfs_writ*")
        shown = guest.run(*run, *globs, "--summary", "--", "/calls", "0")
        assert "vfs_write" in shown.split()
        # The files of a process that has ended are not known: it stays while it is read.
        wanted = ("read=file->f_op->read_iter", "--stack", "-f", "vfs_write")
        until = ("--count", str(WRITES), "--format", "jsonl", "--", "/calls", STAYS)
        shown = guest.run(*run, *wanted, *until)
        # Beside them it may say that hits were missed: 5.10 loses some while perf takes a sample.
        hits = [json.loads(line) for line in shown.splitlines() if line.startswith("{")]
        assert len(hits) == WRITES
        for hit in hits:
            assert hit["stack"][0]["file"] == "/calls"
            assert "write" in hit["stack"][0]["function"]
            assert "main" in [frame["function"] for frame in hit["stack"]]
            assert hit["args"]["read"] in ("generic_file_read_iter", "shmem_file_read_iter")
        sleep = ("-f", "hrtimer_nanosleep", "--summary", "--return", "$retval")
        for room, missed in ((ROOM, SLEEPERS - ROOM), (2 * SLEEPERS, 0)):
            words = (*sleep, "--maxactive", str(room), "--", "/sleepers", str(SLEEPERS))
            shown = guest.run(*run, *words)
            assert f"{SLEEPERS - missed}  hrtimer_nanosleep" in shown
            assert (f"warning: {missed} returns were missed" in shown) == (missed > 0), shown


KINDS = 12  # functions with a link each: so many that those of a killed trace are pinned
# What the kernel has before, while and after a trace that is killed: the numbers of all programs,
# maps and links of eBPF, and the code of a traced program.
KILLED = """
import ctypes, json, os, struct, subprocess, sys, time

call, address, *trace = sys.argv[1:]
system_call = ctypes.CDLL(None, use_errno=True).syscall
next_ids = {"programs": 11, "maps": 12, "links": 31}  # BPF_*_GET_NEXT_ID


def numbers(command):
    found, number = [], 0
    while True:
        asked = ctypes.create_string_buffer(struct.pack("=III", number, 0, 0), 12)
        if system_call(int(call), command, asked, len(asked)):
            return found  # ENOENT: behind the last one
        number = struct.unpack_from("=I", asked, 4)[0]
        found.append(number)


def state():
    with open(f"/proc/{target.pid}/mem", "rb") as memory:
        memory.seek(int(address))
        code = memory.read(64).hex()
    return {name: numbers(command) for name, command in next_ids.items()} | {"code": code}


target = subprocess.Popen(["/kinds"])
time.sleep(1)
before = state()
with subprocess.Popen(trace, stderr=subprocess.PIPE, text=True) as child:
    for said in child.stderr:
        if said.startswith("tracing"):
            break
    meanwhile = state()
    child.kill()
until = time.monotonic() + 200
while state() != before and time.monotonic() < until:
    time.sleep(0.1)
print(json.dumps([before, meanwhile, state()]))
target.kill()
"""


@pytest.mark.long
def test_nothing_stays_behind_a_killed_trace(lab_kernel: LabKernel, tmp_path: Path) -> None:
    if reason := why_no_python(lab_kernel):
        pytest.skip(reason)
    source, kinds = tmp_path / "kinds.c", tmp_path / "kinds"
    source.write_text(source_of_kinds(KINDS, "for (;;) pause();"))
    kinds.write_bytes(built(lab_kernel.machine, source, "-g", "-O1"))
    address = str(fetchc.open(str(kinds)).probe("kind_0").address)
    machine = bpf_machine(lab_kernel.machine.name)
    assert machine is not None
    content = {**files(lab_kernel), "kinds": kinds.read_bytes(), "killed.py": KILLED.encode()}
    python = interpreter(lab_kernel)
    with Guest(lab_kernel, content, 300) as guest:
        for words, links in (
            (("$args", "-x", "/kinds", "-f", "kind_*"), KINDS),
            (("count", "-x", "kernel", "-f", "vfs_read", "-f", "vfs_write"), 0),
        ):
            trace = (python, "-m", "fetchc", "trace", "--engine", "bpf", *words)
            text = guest.run(python, "/killed.py", str(machine.bpf), address, *trace)
            before, meanwhile, after = json.loads(text.splitlines()[-1])
            assert len(meanwhile["programs"]) > len(before["programs"])
            assert len(meanwhile["maps"]) > len(before["maps"])
            assert (meanwhile["code"] != before["code"]) == (links > 0)
            assert after == before
