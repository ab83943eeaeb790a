"""What eBPF programs read at probes of booted kernels that older definitions do not have."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.support.kernel_lab import SOURCES, LabKernel, built
from tests.support.kernel_lab_calls import COMM, done, program
from tests.support.kernel_lab_guest import Guest, LabError
from tests.support.kernel_lab_python import files, interpreter, why_no_python

pytestmark = pytest.mark.long

COLD, RENAMED = "/none/lab_in_a_cold_page", "lab renamed"
TRAMPOLINES = (6, 4)  # fentry and fexit of arm64 from here on
PER_CPU = (5, 11)  # BTF has variables of each processor from here on
DEFINED = (7, 3)  # definitions have `$current` and per-CPU variables
WAITS = (7, 3)  # programs at events of system calls wait for a page; 6.18 takes none that can
FUNCTION = {"x86_64": "__x64_sys_openat", "aarch64": "__arm64_sys_openat"}
PATH = {"x86_64": "regs->si", "aarch64": "regs->regs[1]"}
INSIDE = ("+0x5", "+0x9", "+0x8")  # after what ftrace has at the entry: one is an instruction
Values = list[dict[str, object]]


class Traced:
    """fetchc in a guest, by an engine."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self.machine = guest.kernel.machine.name

    def __call__(self, *words: str, engine: str = "bpf", run: str = "/calls") -> tuple[Values, str]:
        """The values of the hits in their order, and all that was printed."""
        command = (interpreter(self._guest.kernel), "-m", "fetchc", "trace", *words)
        text = self._guest.run(
            *command, "-x", "kernel", "--engine", engine, "--format", "jsonl", "--", run
        )
        shown = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return [one["args"] for one in shown], text


def test_programs_read_what_old_definitions_lack(
    lab_kernel: LabKernel, tell: Callable[[object], None]
) -> None:
    if reason := why_no_python(lab_kernel):
        pytest.skip(reason)
    machine = lab_kernel.machine.name
    major, minor = map(int, lab_kernel.release.split(".")[:2])
    version = (major, minor)
    content = {
        **files(lab_kernel),
        "calls": program(lab_kernel),
        "cold": built(lab_kernel.machine, SOURCES / "cold_path.c", "-O1"),
    }
    with Guest(lab_kernel, content, 300) as guest:
        traced = Traced(guest)
        # The running task, a variable by its symbol, and what each processor has of its own.
        both: tuple[str, ...] = ("count", "init_task.comm", "nr_cpu_ids")
        alone: tuple[str, ...] = ("$current->pid", "$current->comm")
        if version >= PER_CPU:
            alone += ("runqueues.curr->pid", "runqueues.cpu")
        where = ("-f", "vfs_read")
        found, text = traced(*both, *alone, *where)
        if "built without CONFIG_KALLSYMS_ALL" in text:  # Debian's 6.1 of arm64 lists no variables
            both, alone = ("count",), alone[:2]
        account = done(text)
        assert [one["count"] for one in found] == [row[1] for row in account.read], text
        for one in found:
            assert (one["$current->pid"], one["$current->comm"]) == (account.process, COMM)
            if "runqueues.cpu" in alone:
                assert (one["runqueues.curr->pid"], one["runqueues.cpu"]) == (account.process, 0)
        names = both + alone if version >= DEFINED else both
        by_definition, text = traced(*names, *where, engine="tracefs")
        process = done(text).process
        for one in by_definition:
            for name in {"$current->pid", "runqueues.curr->pid"} & one.keys():
                assert one[name] == process
                one[name] = account.process
        assert by_definition == [{name: one[name] for name in names} for one in found]
        # Arguments at a return, and registers inside of the function.
        at_return = ("count", "$retval", "--return", *where)
        if machine == "aarch64" and version < TRAMPOLINES:
            with pytest.raises(LabError, match="at a function without a breakpoint: not supported"):
                traced(*at_return)
        else:
            found, text = traced(*at_return)
            assert [(one["count"], one["$retval"]) for one in found] == [
                (row[1], row[5]) for row in done(text).read
            ], text
        inside = inside_of(traced)
        # Tracepoints and events, and a path in a page that is not resident.
        found, text = traced("task->comm", "comm", "-f", "rawtracepoint:task_rename", run="/cold")
        assert found == [{"task->comm": "cold", "comm": RENAMED}], text
        found, text = traced("oldcomm", "newcomm", "-f", "tracepoint:task:task_rename", run="/cold")
        assert found == [{"oldcomm": "cold", "newcomm": RENAMED}], text
        wanted = ["/cold_file", COLD if version >= WAITS else None]
        for expression, place in (
            ("filename", "tracepoint:syscalls:sys_enter_openat"),
            (f"path=((char *){PATH[machine]}):ustring", FUNCTION[machine]),
        ):
            found, text = traced(expression, "-f", place, run="/cold")
            assert [one for values in found for one in values.values()] == wanted, text
    cold = "read" if version >= WAITS else "a fault"
    tell(f"{lab_kernel.release}, {machine}: programs at {inside}, a cold path is {cold}")


def inside_of(traced: Traced) -> str:
    """Where in the function both engines have the same registers."""
    for place in INSIDE:
        words = ("count=%dx", "-f", "vfs_read", "--at", place)
        if traced.machine == "aarch64":
            words = ("count=%x2", *words[1:])
        try:
            by_definition, _ = traced(*words, engine="tracefs")
        except LabError:
            continue
        by_program, text = traced(*words)
        assert by_definition, text
        assert by_program == by_definition
        return f"vfs_read{place}"
    raise AssertionError("no instruction is at any of the places")
