"""Every kind of probe of booted kernels: what it fetches is what a program passed in."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable

import pytest

import fetchc
from tests.lab.test_kernel_functions import NAME, Row, rows, version
from tests.support.kernel_lab import LabKernel
from tests.support.kernel_lab_calls import COMM, definition, hits, program, recorded
from tests.support.kernel_lab_guest import Guest

ARGUMENTS_AT_RETURN = (6, 9)
EVENT_PROBES = (5, 15)
CURRENT = (7, 3)
# Debian builds function probes into these; of 64-bit Arm not yet into 6.12.
FUNCTION_PROBES = {"amd64-6.12", "amd64-newest", "arm64-newest"}
WITHOUT_VARIABLES = {"arm64-6.1"}  # built without CONFIG_KALLSYMS_ALL
COLUMNS = ("name", "count", "result")


def returned(seen: list[Row]) -> list[tuple[str | int, ...]]:
    return [(row[0], row[1], row[5]) for row in seen]


def test_calls_with_their_results(lab_kernel: LabKernel, tell: Callable[[object], None]) -> None:
    opened = fetchc.open(str(lab_kernel.image))
    texts = (f"name={NAME}", "count", "result=$retval")
    points: list[tuple[str, str, int | None]] = []
    if version(lab_kernel) >= ARGUMENTS_AT_RETURN:
        points.append(("returned", "vfs_read", 64))
    if lab_kernel.label in FUNCTION_PROBES:
        points.append(("left", "fprobe:vfs_read", None))
    if not points:
        with pytest.raises(fetchc.CompileError, match="FC0506"):
            definition(opened, lab_kernel, "returned", "vfs_read", "count", returns=True)
        return
    lines = [
        definition(opened, lab_kernel, event, point, *texts, returns=True, active=active)
        for event, point, active in points
    ]
    with Guest(lab_kernel, {"calls": program(lab_kernel)}) as guest:
        for line, (event, _, _) in zip(lines, points, strict=True):
            account, seen = hits(guest, [line])
            assert rows(seen, event, *COLUMNS) == returned(list(account.read)), line
            wrong = line.replace("$arg3", "$arg4")
            assert wrong != line
            account, seen = hits(guest, [wrong])
            assert rows(seen, event, *COLUMNS) != returned(list(account.read)), wrong
    tell(f"{lab_kernel.release}, returns with their arguments: {len(lines)} kinds agree")


def test_functions_and_tracepoints_without_breakpoints(lab_kernel: LabKernel) -> None:
    opened = fetchc.open(str(lab_kernel.image))
    if lab_kernel.label not in FUNCTION_PROBES:
        pytest.skip("a kernel without CONFIG_FPROBE_EVENTS")
    rename = ("old=task->comm", "new=comm", "pid=task->pid")
    lines = [
        definition(opened, lab_kernel, "entered", "fprobe:vfs_write", f"name={NAME}", "count"),
        definition(opened, lab_kernel, "called", "rawtracepoint:task_rename", *rename),
    ]
    with Guest(lab_kernel, {"calls": program(lab_kernel)}) as guest:
        account, seen = recorded(guest, lines)
        assert rows(seen, "entered", "name", "count") == [row[:2] for row in account.written]
        found = [tuple(hit.values.values()) for hit in seen if hit.event == "called"]
        assert ('"calls"', '"lab caller"', str(account.process)) in found
        account, seen = recorded(guest, [lines[1].replace("$arg1", "$arg2")])
        found = [tuple(hit.values.values()) for hit in seen]
        assert ('"calls"', '"lab caller"', str(account.process)) not in found


def test_the_task_that_runs(lab_kernel: LabKernel) -> None:
    opened = fetchc.open(str(lab_kernel.image))
    texts = ("who=$current->tgid", "name=$current->comm", "parent=$current->real_parent->tgid")
    if version(lab_kernel) < CURRENT:
        with pytest.raises(fetchc.CompileError, match="FC0506"):
            definition(opened, lab_kernel, "read", "vfs_read", *texts)
        return
    lines = [
        definition(opened, lab_kernel, "entered", "vfs_read", *texts),
        definition(opened, lab_kernel, "left", "vfs_read", *texts, returns=True),
        definition(opened, lab_kernel, "called", "fprobe:vfs_read", *texts),
    ]
    with Guest(lab_kernel, {"calls": program(lab_kernel)}) as guest:
        account, seen = hits(guest, lines)
        for event in ("entered", "left", "called"):
            found = [tuple(hit.values.values()) for hit in seen if hit.event == event]
            # The agent, the guest's first process, starts it.
            assert set(found) == {(str(account.process), f'"{COMM}"', "1")}, event
            assert len(found) == len(account.read)
        wrong = re.sub(r"who=\+(\d+)", lambda found: f"who=+{int(found[1]) + 4}", lines[0])
        assert wrong != lines[0]
        account, seen = hits(guest, [wrong])
        assert str(account.process) not in [hit.values["who"] for hit in seen]


def test_events_by_their_fields(lab_kernel: LabKernel) -> None:
    opened = fetchc.open(str(lab_kernel.image))
    texts = ("old=oldcomm", "new=newcomm", "task=$comm")
    if version(lab_kernel) < EVENT_PROBES:
        with pytest.raises(fetchc.CompileError, match="FC0506"):
            definition(opened, lab_kernel, "renamed", "tracepoint:task:task_rename", *texts)
        return
    line = definition(opened, lab_kernel, "renamed", "tracepoint:task:task_rename", *texts)
    with Guest(lab_kernel, {"calls": program(lab_kernel)}) as guest:
        _, seen = recorded(guest, [line])
    changes = [(hit.values["old"], hit.values["new"]) for hit in seen]
    assert ('"calls"', '"lab caller"') in changes


def test_variables_of_the_kernel(lab_kernel: LabKernel) -> None:
    opened = fetchc.open(str(lab_kernel.image))
    texts = ("release=init_uts_ns.name.release", "first=init_task.comm", "jiffies")
    line = definition(opened, lab_kernel, "read", "vfs_read", *texts, "line=saved_command_line")
    with Guest(lab_kernel, {"calls": program(lab_kernel)}) as guest:
        if lab_kernel.label in WITHOUT_VARIABLES:
            (verdict,) = guest.judge("kprobe_events", [line])
            assert verdict.errno == errno.ENOENT
            return
        account, seen = hits(guest, [line])
    found = [hit.values for hit in seen]
    assert len(found) >= len(account.read)
    for one in found:
        assert one["release"] == f'"{lab_kernel.release}"'
        assert one["first"] == '"swapper/0"'
        assert one["line"].startswith('"panic=-1 quiet')
    ticks = [int(one["jiffies"], 0) for one in found]
    assert ticks == sorted(ticks)
    assert ticks[0] > 0
