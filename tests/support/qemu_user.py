"""A program of another machine, stopped where a probe would fire: qemu's user mode and its stub.

Registers and memory are read over the remote protocol. The emulator ends with the ``with`` block,
with this process, or at the deadline, and so does its socket.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal

from tests.support.gdb_remote import Remote, RemoteError

__all__ = ["MACHINES", "Emulated", "Emulator", "Stopped", "unavailable"]

_SECONDS = 120.0
_PAGE = 4096
_SIGNAL_ON_DEATH = 1  # PR_SET_PDEATHSIG


@dataclass(frozen=True)
class Emulated:
    """How qemu names a machine and orders its registers; names are the kernel's.

    ``singly``: its stub gives registers one by one only. ``kind`` is of its breakpoints.
    Source: qemu 7.2, gdb-xml/ and target/*/gdbstub.c.
    """

    qemu: str
    registers: tuple[str, ...]
    stack: str
    link: str  # the register with the return address; empty where a call pushes it
    result: str
    word: int = 8
    order: Literal["little", "big"] = "little"
    kind: int = 4
    singly: bool = False


def _numbered(stem: str, count: int, first: int = 0) -> tuple[str, ...]:
    return tuple(f"{stem}{number}" for number in range(first, count))


_RISCV = "zero ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11"
MACHINES = {
    "aarch64": Emulated("qemu-aarch64", (*_numbered("x", 31), "sp", "pc"), "sp", "x30", "x0"),
    "riscv64": Emulated(
        "qemu-riscv64", (*_RISCV.split(), *_numbered("t", 7, 3), "epc"), "sp", "ra", "a0"
    ),
    "ppc64le": Emulated(
        "qemu-ppc64le",
        (*_numbered("gpr", 32), *_numbered("f", 32), "nip", "msr", "ccr", "link"),
        "gpr1",
        "link",
        "gpr3",
        singly=True,
    ),
    "s390x": Emulated(
        "qemu-s390x", ("pswm", "nip", *_numbered("r", 16)), "r15", "r14", "r2", order="big", kind=2
    ),
    "i386": Emulated(
        "qemu-i386",
        ("ax", "cx", "dx", "bx", "sp", "bp", "si", "di", "ip"),
        *("sp", "", "ax"),
        word=4,
        kind=1,
    ),
    "arm": Emulated(
        "qemu-arm", (*_numbered("r", 11), "fp", "ip", "sp", "lr", "pc"), "sp", "lr", "r0", word=4
    ),
}
_COUNTERS = ("pc", "epc", "nip", "ip")


def unavailable(machine: str) -> str | None:
    """Why programs of that machine cannot be run, or None."""
    name = MACHINES[machine].qemu
    return None if shutil.which(name) else f"no {name} here (.ci/setup brings it)"


class Stopped:
    """Registers of a stopped program, and its memory as it is until it runs on."""

    def __init__(self, machine: Emulated, remote: Remote, registers: dict[str, int]) -> None:
        self.machine = machine
        self.registers = registers
        self._remote = remote
        self._pages: dict[int, bytes] = {}

    @property
    def address(self) -> int:
        """Where it stopped."""
        return self.registers[self._counter]

    @property
    def _counter(self) -> str:
        # Of a machine with a register called ip that is not it, pc comes first.
        return next(name for name in _COUNTERS if name in self.machine.registers)

    def read(self, address: int, size: int) -> bytes:
        """The bytes from ``address`` on that are there, at most ``size``."""
        found = b""
        while len(found) < size:
            at = (address + len(found)) % (1 << 8 * self.machine.word)
            page = self._page(at - at % _PAGE)
            if not page:
                break
            found += page[at % _PAGE : at % _PAGE + size - len(found)]
        return found

    def _page(self, start: int) -> bytes:
        if start not in self._pages:
            halves = [self._remote.memory(start + at, _PAGE // 2) for at in (0, _PAGE // 2)]
            self._pages[start] = b"".join(halves)
        return self._pages[start]

    def number(self, address: int, size: int = 0, signed: bool = False) -> int:
        """The number in memory there, a word unless ``size`` says otherwise."""
        size = size or self.machine.word
        return int.from_bytes(self.read(address, size), self.machine.order, signed=signed)

    def return_address(self) -> int:
        """Where the function returns to, at its first instruction."""
        if self.machine.link:
            return self.registers[self.machine.link]
        return self.number(self.registers[self.machine.stack])


class Emulator:
    """A program under qemu: ``with Emulator("s390x", binary) as it: it.until(0x1000)``."""

    def __init__(
        self,
        machine: str,
        binary: Path,
        environment: Mapping[str, str] | None = None,
        output: Path | None = None,
    ) -> None:
        self._machine = MACHINES[machine]
        self._folder = tempfile.mkdtemp(prefix="fetchc_qemu_")
        self._breakpoints: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._remote: Remote | None = None
        path = os.path.join(self._folder, "gdb")
        printed = open(output or os.devnull, "wb")  # noqa: SIM115
        try:
            self._process = subprocess.Popen(
                [self._machine.qemu, "-g", path, str(binary)],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.PIPE,
                env={**os.environ, **(environment or {})},
                preexec_fn=_end_with_parent,
            )
            self._remote = self._connected(path)
            if self._machine.singly:
                self._remote.features()
            self.offset = self._remote.offset()
        except BaseException:
            self.close()
            raise
        finally:
            printed.close()

    def __enter__(self) -> Emulator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the emulator and remove its socket; more than once does no harm."""
        if self._remote is not None:
            self._remote.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stderr is not None
            self._process.stderr.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def until(self, *addresses: int) -> Stopped:
        """Run to the first of these addresses; RemoteError where the program ends before."""
        assert self._remote is not None
        for gone in self._breakpoints - {*addresses}:
            self._remote.unbreak(gone, self._machine.kind)
        for new in {*addresses} - self._breakpoints:
            self._remote.break_at(new, self._machine.kind)
        self._breakpoints = {*addresses}
        ended = self._remote.go()
        if ended is not None:
            raise RemoteError(f"the program ended: {ended}")
        return Stopped(self._machine, self._remote, self._registers())

    def finish(self) -> None:
        """Run to the program's end; RemoteError where that is not a good one."""
        assert self._remote is not None
        for gone in self._breakpoints:
            self._remote.unbreak(gone, self._machine.kind)
        self._breakpoints = set()
        ended = self._remote.go()
        if ended != "W00":
            raise RemoteError(f"the program ended: {ended}")

    def _registers(self) -> dict[str, int]:
        assert self._remote is not None
        machine, names = self._machine, self._machine.registers
        if machine.singly:
            numbers = [n for n, name in enumerate(names) if not name.startswith("f")]
            raw = {names[n]: self._remote.register(n) for n in numbers}
            return {name: int.from_bytes(found, machine.order) for name, found in raw.items()}
        whole, word = self._remote.registers(), machine.word
        words = [whole[at : at + word] for at in range(0, word * len(names), word)]
        return {
            name: int.from_bytes(found, machine.order)
            for name, found in zip(names, words, strict=True)
        }

    def _connected(self, path: str) -> Remote:
        assert self._process is not None
        end = time.monotonic() + _SECONDS
        while True:
            try:
                return Remote(path, _SECONDS)
            except OSError as error:
                if self._process.poll() is not None:
                    _, said = self._process.communicate()
                    raise RemoteError(f"qemu ended: {said.decode('utf-8', 'replace')}") from error
                if time.monotonic() > end:
                    raise RemoteError(f"qemu does not listen after {_SECONDS:.0f} s") from error
                time.sleep(0.002)


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_SIGNAL_ON_DEATH, signal.SIGKILL, 0, 0, 0)
