"""Functions of a guest's kernel, probed while a program makes calls that it tells about.

The program is ``tests/lab/calls.c``: what it passed in and got back is what the kernel's functions
must have had.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import fetchc
from fetchc.tracer.install import file_of
from tests.support.kernel_lab import SOURCES, LabKernel, built
from tests.support.kernel_lab_guest import TRACEFS, Guest
from tests.support.tracefs import Hit, parse_hit

__all__ = ["COMM", "GROUP", "PATH", "Done", "definition", "done", "hits", "program", "recorded"]

PATH = "/calls"  # in the guest
COMM = "lab caller"
GROUP = "fetchc_lab"
LARGE_FILE = 0o100000  # O_LARGEFILE, which 64-bit kernels add by themselves (force_o_largefile)
ARM_LARGE_FILE = 0o400000


@dataclass(frozen=True)
class Done:
    """What the program did, in order: a row for each call, its numbers and names."""

    opened: list[tuple[str, int, int, int]]  # path, flags, mode, result
    read: list[tuple[str, int, int, int, int, int]]  # name, count, flags, inode, mode, result
    written: list[tuple[str, int, int, int, int, int]]
    process: int


def program(kernel: LabKernel) -> bytes:
    """The program for a kernel's machine."""
    return built(kernel.machine, SOURCES / "calls.c", "-O1")


def done(text: str, large_file: int = LARGE_FILE) -> Done:
    """The program's own account; ``text`` may have other lines between its own."""
    opened: list[tuple[str, int, int, int]] = []
    read: list[tuple[str, int, int, int, int, int]] = []
    written: list[tuple[str, int, int, int, int, int]] = []
    process = 0
    for line in text.splitlines():
        call, *words = line.split(" ")
        if call == "open" and len(words) == 4:
            flags, mode, result = map(int, words[1:])
            opened.append((words[0], flags | large_file, mode, result))
        elif call in ("read", "write") and len(words) == 6:
            count, flags, inode, mode, result = map(int, words[1:])
            row = (words[0], count, flags, inode, mode, result)
            (read if call == "read" else written).append(row)
        elif call == "process":
            process = int(words[0])
    return Done(opened, read, written, process)


def definition(
    opened: fetchc.Program,
    kernel: LabKernel,
    event: str,
    function: str,
    *texts: str,
    returns: bool = False,
    active: int | None = None,
) -> str:
    """The definition that fetches ``texts`` at the entry of a function of the kernel."""
    probe = opened.probe(function, kernel=kernel.release, returns=returns, active=active)
    return probe.definition([probe.compile(text) for text in texts], GROUP, event)


def hits(guest: Guest, definitions: list[str]) -> tuple[Done, list[Hit]]:
    """Install definitions, run the program, take them away: its account, and what it caused."""
    account, found = recorded(guest, definitions)
    return account, [hit for hit in found if hit.comm == COMM]


def recorded(guest: Guest, definitions: list[str]) -> tuple[Done, list[Hit]]:
    """As :func:`hits`, with what others caused meanwhile."""
    large = ARM_LARGE_FILE if guest.kernel.machine.name == "aarch64" else LARGE_FILE
    names = {
        line.split()[0].partition("/")[2]: re.findall(r" (\w+)=", line) for line in definitions
    }
    guest.write(f"{TRACEFS}/trace", "\n")
    for line in definitions:
        guest.write(f"{TRACEFS}/{file_of(line)}", line + "\n", append=True)
    guest.write(f"{TRACEFS}/events/{GROUP}/enable", "1")
    try:
        account = done(guest.run(PATH), large)
        # Off before the trace is read: reading it is a read, too.
        guest.write(f"{TRACEFS}/events/{GROUP}/enable", "0")
        rows = guest.read(f"{TRACEFS}/trace").split("\n")
    finally:
        guest.write(f"{TRACEFS}/events/{GROUP}/enable", "0")
        for line in definitions:
            name = line.split()[0].partition(":")[2]
            guest.write(f"{TRACEFS}/{file_of(line)}", f"-:{name}\n", append=True)
    # Symbols of the kernel, or events, stand where programs have addresses.
    rows = [re.sub(r": \([\w.+/ <-]+\)", ": (0x0)", row, count=1) for row in rows]
    return account, [parse_hit(row, names) for row in rows if row and not row.startswith("#")]
