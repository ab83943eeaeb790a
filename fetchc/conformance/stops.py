"""Registers and stack of a program at chosen addresses, by ptrace; x86-64 only.

Each address is stopped at once. The program must come by on its first thread, and must
not be position-independent. No privilege is needed: the program is a child that asks for it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from fetchc.conformance.errors import refused
from fetchc.record import Record
from fetchc.tracer.session import postponed

__all__ = ["Stop", "run_with_stops", "unavailable"]

# include/uapi/linux/ptrace.h and arch/x86/include/asm/user_64.h
_CONTINUE, _GET_REGISTERS, _SET_REGISTERS, _GET_FLOATS, _SET_OPTIONS = 7, 12, 13, 14, 0x4200
_EXIT_KILL = 0x100000
_WALL = 0x40000000
_INSTRUCTION_POINTER = 16  # index in struct user_regs_struct
_BY_DWARF = {
    **{0: 10, 1: 12, 2: 11, 3: 5, 4: 13, 5: 14, 6: 4, 7: 19},
    **{8: 9, 9: 8, 10: 7, 11: 6, 12: 3, 13: 2, 14: 1, 15: 0},
}
_STACK_BYTES = 4096
_SECONDS = 60

_LAUNCHER = """
import ctypes, os, sys
if ctypes.CDLL(None).ptrace(0, 0, 0, 0):
    os._exit(99)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Stop(Record):
    """Registers by DWARF number (16 bytes each, vectors too) and the stack from its pointer."""

    registers: dict[int, bytes]
    stack: bytes


def unavailable() -> str | None:
    """Why no program can be traced here, or None."""
    code = "import ctypes, os; os._exit(99 if ctypes.CDLL(None).ptrace(0, 0, 0, 0) else 0)"
    if subprocess.run([sys.executable, "-c", code], check=False).returncode:
        return "ptrace is not permitted here"
    return None


def run_with_stops(
    binary: Path, addresses: Iterable[int], seconds: float = _SECONDS
) -> tuple[str, dict[int, Stop]]:
    """Run the program to its end: what it printed, and the stop at each address it came by.

    Raises ConformanceError where it takes longer than ``seconds`` (FC0803), does not end well
    (FC0805), or cannot be traced (FC0806).
    """
    output = binary.with_suffix(".out")
    with ExitStack() as end:
        # A signal that unwinds in the midst of it would leave a child that nobody knows.
        with output.open("wb") as stream, postponed():
            child = subprocess.Popen([sys.executable, "-c", _LAUNCHER, str(binary)], stdout=stream)
            end.callback(_end, child)
        late = threading.Timer(seconds, child.kill)
        end.callback(late.cancel)
        late.start()
        try:
            stops = _follow(child.pid, addresses)
        except _Ended as ended:
            if late.finished.is_set():
                raise refused(
                    "FC0803",
                    f"`{binary.name}` did not end within {seconds:g} s under ptrace",
                    "run it by hand to see what it waits for",
                ) from None
            raise _explained(binary, ended.status) from None
    return output.read_text(), stops


def _end(child: subprocess.Popen[bytes]) -> None:
    child.poll()
    if child.returncode is None:
        child.kill()
    child.wait()


class _Ended(Exception):
    def __init__(self, status: int) -> None:
        self.status = status


def _explained(binary: Path, status: int) -> Exception:
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 99:
        return refused(
            "FC0806",
            "ptrace is not permitted here",
            "allow it: `sysctl kernel.yama.ptrace_scope=1`, in a container CAP_SYS_PTRACE",
        )
    how = (
        f"ended with status {os.WEXITSTATUS(status)}"
        if os.WIFEXITED(status)
        else f"was ended by {signal.Signals(os.WTERMSIG(status)).name}"
    )
    return refused(
        "FC0805",
        f"`{binary.name}` {how} under ptrace",
        "run a program of this toolchain by hand: it may be built for another machine",
    )


def _follow(pid: int, addresses: Iterable[int]) -> dict[int, Stop]:
    library = ctypes.CDLL(None, use_errno=True)
    library.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    library.ptrace.restype = ctypes.c_long

    def request(number: int, data: object = None) -> None:
        if library.ptrace(number, pid, None, data):
            raise OSError(ctypes.get_errno(), f"ptrace request {number:#x}")

    stops: dict[int, Stop] = {}
    replaced: dict[int, bytes] = {}
    _, status = os.waitpid(pid, _WALL)
    if not os.WIFSTOPPED(status):
        raise _Ended(status)
    request(_SET_OPTIONS, ctypes.c_void_p(_EXIT_KILL))
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for address in set(addresses):
            replaced[address] = os.pread(memory.fileno(), 1, address)
            os.pwrite(memory.fileno(), b"\xcc", address)
        passed = 0
        while True:
            request(_CONTINUE, ctypes.c_void_p(passed))
            _, status = os.waitpid(pid, _WALL)
            if not os.WIFSTOPPED(status):
                if status:
                    raise _Ended(status)
                return stops
            passed = os.WSTOPSIG(status)
            if passed != signal.SIGTRAP:
                continue
            registers = (ctypes.c_uint64 * 27)()
            request(_GET_REGISTERS, ctypes.byref(registers))
            address = registers[_INSTRUCTION_POINTER] - 1
            if address not in replaced:
                continue
            floats = (ctypes.c_ubyte * 512)()
            request(_GET_FLOATS, ctypes.byref(floats))
            values = {
                number: struct.pack("<QQ", registers[index], 0)
                for number, index in _BY_DWARF.items()
            }
            for index in range(16):
                values[17 + index] = bytes(floats[160 + 16 * index : 176 + 16 * index])
            stack = os.pread(memory.fileno(), _STACK_BYTES, registers[_BY_DWARF[7]])
            stops[address] = Stop(values, stack)
            os.pwrite(memory.fileno(), replaced[address], address)
            registers[_INSTRUCTION_POINTER] = address
            request(_SET_REGISTERS, ctypes.byref(registers))
            passed = 0
