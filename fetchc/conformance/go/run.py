"""Building and running a drawn Go program, and what it tells.

It prints ``region ADDRESS HEX`` of memory and ``value TAG N ITEM...`` as Go evaluates it; its
registers and stack at the probes are read by ptrace.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import fetchc
from fetchc.conformance.errors import refused
from fetchc.conformance.go.types import GoProbe
from fetchc.conformance.machine import Machine, Memory
from fetchc.conformance.process import call, written
from fetchc.conformance.stops import run_with_stops
from fetchc.record import Record

__all__ = ["KERNEL", "GoBuild", "GoRun", "build_go"]

KERNEL = "6.12"
_BUILD_SECONDS = 300
# The kernel's names by DWARF number: System V ABI, AMD64 supplement, figure 3.36.
_NAMES = dict(enumerate(["ax", "dx", "cx", "bx", "si", "di", "bp", "sp"]))
_NAMES |= {number: f"r{number}" for number in range(8, 16)}


class GoBuild(Record):
    """A Go toolchain and options of ``go build``; ``version`` is that of the toolchain."""

    command: str
    version: tuple[int, int]
    options: tuple[str, ...]
    environment: Mapping[str, str]

    def __str__(self) -> str:
        return " ".join([f"go{self.version[0]}.{self.version[1]}", *self.options])

    @property
    def generics(self) -> bool:
        """Whether the language has type parameters."""
        return self.version >= (1, 18)

    def line(self, file: Path | str, binary: Path | str) -> tuple[str, ...]:
        """The command that builds ``binary`` from the source ``file``."""
        return (
            *(self.command, "build", "-trimpath"),
            *(*self.options, "-o", str(binary), str(file)),
        )


def build_go(source: str, build: GoBuild, folder: Path) -> Path:
    """Build a program in ``folder``; raises ConformanceError where Go does not take it (FC0802)."""
    file, binary = folder / "drawn.go", folder / "drawn"
    file.write_text(source)
    binary.unlink(missing_ok=True)
    line = build.line(file, binary)
    done = call(line, folder, _BUILD_SECONDS, build.environment)
    if done.status or not binary.exists():
        lines = [it for it in done.errors.splitlines() if it.strip() and it[0] != "#"]
        said = (lines or ["it said nothing"])[0]
        raise refused(
            "FC0802",
            f"`{build}` {done.ending} and built no program: {said}",
            "build a Go program by hand with these options, or name another toolchain",
            f"the command is `{written(line)}`",
        )
    return binary


class GoRun:
    """One program that was built and stopped at every probe, and what it told."""

    def __init__(self, source: str, probes: list[GoProbe], build: GoBuild, folder: Path) -> None:
        binary = build_go(source, build, folder)
        program = fetchc.open(str(binary))
        self.points = {it.tag: program.probe(it.function, kernel=KERNEL) for it in probes}
        printed, self._stops = run_with_stops(binary, [it.address for it in self.points.values()])
        self._regions: dict[int, bytes] = {}
        self.values: dict[tuple[str, int], list[int | bytes]] = {}
        for line in printed.splitlines():
            word, name, rest, *items = line.split(" ")
            if word == "region":
                self._regions[int(name, 16)] = bytes.fromhex(rest)
            else:
                read = [bytes.fromhex(it[1:]) if it[:1] == "t" else int(it) for it in items]
                self.values[name, int(rest)] = read

    def vectors(self, probe: GoProbe) -> tuple[bytes, ...]:
        """The vector registers at the probe's stop."""
        stop = self._stops[self.points[probe.tag].address]
        return tuple(stop.registers[17 + number] for number in range(16))

    def machine(self, probe: GoProbe) -> Machine:
        """The machine at a probe's stop; Go's programs are where their files say."""
        point = self.points[probe.tag]
        stop = self._stops[point.address]
        registers = {
            name: int.from_bytes(stop.registers[number][:8], "little")
            for number, name in _NAMES.items()
        }
        memory = Memory(self._regions | {registers["sp"]: stop.stack})
        return Machine(registers, memory, point.address - point.offset)
