"""Building and running a drawn Go program, and what it tells.

It prints ``region ADDRESS HEX`` of memory and ``value TAG N ITEM...`` as Go evaluates it; its
registers and stack at the probes are read by ptrace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal

import fetchc
from fetchc.conformance.errors import refused
from fetchc.conformance.go.types import GoProbe
from fetchc.conformance.machine import REGISTERS, WORD, Machine, Memory
from fetchc.conformance.process import call, written
from fetchc.conformance.stops import Stop, run_with_stops
from fetchc.record import Record

__all__ = ["HERE", "KERNEL", "GoBuild", "GoRun", "Host", "Seen", "Site", "build_go"]

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


class Seen(Record):
    """A stopped thread: registers by the kernel's names, and the stack from its pointer on.

    ``vectors`` are empty where they are not known.
    """

    registers: Mapping[str, int]
    vectors: tuple[bytes, ...]
    stack: bytes


class Host(Record):
    """Where drawn programs run: what stops them at addresses, and the kernel's words there."""

    run: Callable[[Path, Iterable[int]], tuple[str, dict[int, Seen]]]
    kernel: str = KERNEL
    names: frozenset[str] = REGISTERS
    word: int = WORD
    order: Literal["little", "big"] = "little"
    stack: str = "sp"
    result: str = "ax"
    returns: bool = True  # whether fetchc finds a function's returns there


class Site(Record):
    """A probe point, and the thread that stopped there."""

    point: fetchc.Probe
    machine: Machine
    vectors: tuple[bytes, ...]


class GoRun:
    """One program that was built and stopped at every probe, and what it told."""

    def __init__(
        self, source: str, probes: list[GoProbe], build: GoBuild, folder: Path, host: Host
    ) -> None:
        binary = build_go(source, build, folder)
        program = fetchc.open(str(binary))
        self._host = host
        self._points: dict[tuple[str, str], list[fetchc.Probe]] = {}
        for it in probes:
            entry = program.probe(it.function, kernel=host.kernel)
            self._points[it.tag, "entry"] = [entry]
            if it.results and host.returns:
                left = program.probe(it.function, returns=True, kernel=host.kernel)
                self._points[it.tag, "leave"] = [each for each, _ in left.each()]
        self._binary = binary
        self.run()

    def run(self) -> None:
        """Run it, once more perhaps: its values are what it told last."""
        addresses = [each.address for found in self._points.values() for each in found]
        printed, self._seen = self._host.run(self._binary, addresses)
        self._regions: dict[int, bytes] = {}
        self.values: dict[tuple[str, int], list[int | bytes]] = {}
        for line in printed.splitlines():
            word, name, rest, *items = line.split(" ")
            if word == "region":
                self._regions[int(name, 16)] = bytes.fromhex(rest)
            else:
                read = [bytes.fromhex(it[1:]) if it[:1] == "t" else int(it) for it in items]
                self.values[name, int(rest)] = read

    def sites(self, probe: GoProbe) -> dict[str, Site]:
        """Where the program stopped for the probe, by stage: its entry, and where it left."""
        found = {}
        for (tag, stage), points in self._points.items():
            if tag == probe.tag:
                (point,) = [each for each in points if each.address in self._seen]
                found[stage] = self._site(point)
        return found

    def _site(self, point: fetchc.Probe) -> Site:
        # Go's programs are where their files say.
        host, seen = self._host, self._seen[point.address]
        machine = Machine(
            seen.registers,
            Memory(self._regions | {seen.registers[host.stack]: seen.stack}),
            point.address - point.offset,
            word=host.word,
            order=host.order,
            names=host.names,
            stack=host.stack,
            result=host.result,
        )
        return Site(point, machine, seen.vectors)


def _stopped(binary: Path, addresses: Iterable[int]) -> tuple[str, dict[int, Seen]]:
    printed, stops = run_with_stops(binary, addresses)
    return printed, {address: _seen(stop) for address, stop in stops.items()}


def _seen(stop: Stop) -> Seen:
    registers = {
        name: int.from_bytes(stop.registers[number][:8], "little")
        for number, name in _NAMES.items()
    }
    vectors = tuple(stop.registers[17 + number] for number in range(16))
    return Seen(registers, vectors, stop.stack)


HERE = Host(_stopped)  # Linux on x86-64, by ptrace
