"""Buffers of system calls, as long as their counts say: read in booted kernels of a program."""

from __future__ import annotations

import json

import pytest

from tests.support.kernel_lab import SOURCES, LabKernel, built
from tests.support.kernel_lab_guest import Guest, LabError
from tests.support.kernel_lab_python import files, interpreter, why_no_python

TELLS = (6, 2)  # the first version that says whether a program's memory could be read
BIG = "lab:" + "q" * 252
EDGE = "lab:edge"
# What tests/lab/writes.c passes to write(). None: memory that was not in RAM, or no memory.
WRITTEN = [
    "lab:hello",
    "lab:a\0b\udcff",
    BIG,  # of 3000
    EDGE,
    EDGE,  # of 12, of which four are in a page that no one has touched
    None,
    "",
    None,
    "\0" * 16,
    "lab:end",
]
CUT = [{}, {}, {"buf[0:count]": 3000}, {}, {"buf[0:count]": 12}, {}, {}, {}, {}, {}]


def _traced(guest: Guest, *words: str) -> list[dict[str, object]]:
    command = (interpreter(guest.kernel), "-m", "fetchc", "trace", *words)
    text = guest.run(*command, "--format", "jsonl", "--", "/writes")
    return [json.loads(line) for line in text.splitlines()]


def _column(events: list[dict[str, object]], name: str) -> list[object]:
    found = []
    for event in events:
        args = event["args"]
        assert isinstance(args, dict)
        found.append(args[name])
    return found


def test_what_a_program_writes(lab_kernel: LabKernel) -> None:
    reason = why_no_python(lab_kernel)
    if reason:
        pytest.skip(reason)
    major, minor = lab_kernel.release.split(".")[:2]
    writes = built(lab_kernel.machine, SOURCES / "writes.c", "-O1")
    with Guest(lab_kernel, {**files(lab_kernel), "writes": writes}, 300) as guest:
        if (int(major), int(minor)) < TELLS:
            with pytest.raises(LabError, match="FC0506"):
                _traced(guest, "buf[0:count]", "-x", "kernel", "-f", "ksys_write")
            return
        wanted = ["buf[0:count]", "bytes=buf[0:count]:u8", "first=buf[0:4]", "letter=buf[0]:u8"]
        events = _traced(guest, *wanted, "-x", "kernel", "-f", "ksys_write")
        assert _column(events, "buf[0:count]") == WRITTEN
        assert [event.get("cut", {}) for event in events] == [
            one | ({"bytes": one["buf[0:count]"]} if one else {}) for one in CUT
        ]
        assert _column(events, "bytes") == [
            None if text is None else list(text.encode("utf-8", "surrogateescape"))[:64]
            for text in WRITTEN
        ]
        first = _column(events, "first")
        assert first == [*["lab:"] * 5, None, "lab:", None, "\0" * 4, "lab:"]
        letters = [108, 108, 108, 108, 108, None, 108, None, 0, 108]
        assert _column(events, "letter") == letters
        # Structures in the memory of the program.
        events = _traced(guest, "vec[0:vlen]", "*vec", "-x", "kernel", "-f", "do_writev")
        (parts,), (one,) = _column(events, "vec[0:vlen]"), _column(events, "*vec")
        assert isinstance(parts, list)
        assert [part["iov_len"] for part in parts] == [7, 7]
        assert one == parts[0]
        # What could not be read passes no filter.
        events = _traced(
            guest, "fd", "--filter", 'buf[0:count] ~ "lab:?*"', "-x", "kernel", "-f", "ksys_write"
        )
        assert len(events) == 6
