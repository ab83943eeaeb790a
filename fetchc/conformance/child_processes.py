"""Compilers and programs as children that end: by themselves, or with us."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from fetchc.diag.diagnostic import Diagnostic, Error
from fetchc.record import Record
from fetchc.tracer.session import postponed

__all__ = [
    "ConformanceError",
    "Done",
    "PtraceRefused",
    "Read",
    "Stop",
    "call",
    "refused",
    "run_with_stops",
    "unavailable",
    "unbuilt",
    "written",
]

# ------------------------------------------------------------------------------
# What ends a run of the suite: a toolchain that cannot be used, a machine that does not let us.


class ConformanceError(Error):
    """The suite cannot continue; ``diagnostic`` is of the FC08 family."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(f"{diagnostic.code}: {diagnostic.message}")
        self.diagnostic = diagnostic


class PtraceRefused(ConformanceError):
    """This machine does not let a process trace its own children."""


def refused(code: str, message: str, help: str, *notes: str) -> ConformanceError:
    """An exception with one diagnostic, for ``raise refused(...)``."""
    return ConformanceError(Diagnostic(code, message, notes=notes, help=help))


class Done(Record):
    """How a command ended: its status (negative: the signal), what it printed to where."""

    command: tuple[str, ...]
    status: int
    output: str
    errors: str

    @property
    def ending(self) -> str:
        """The end in words: ``ended with status 1``."""
        if self.status < 0:
            return f"was ended by {signal.Signals(-self.status).name}"
        return f"ended with status {self.status}"

    @property
    def complaint(self) -> str:
        """The line of what it printed that says most; empty where it printed nothing."""
        lines = [line.strip() for line in (self.errors or self.output).splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower() or "undefined" in line]
        return (errors or lines[-1:] or [""])[0][:300]


def unbuilt(build: object, done: Done, help: str, complaint: str = "") -> ConformanceError:
    """FC0802 for a compiler that built no program."""
    complaint = complaint or done.complaint or "it said nothing"
    what = f"`{build}` {done.ending} and built no program: {complaint}"
    return refused("FC0802", what, help, f"the command is `{written(done.command)}`")


def call(
    command: Sequence[str],
    folder: Path,
    seconds: float,
    environment: Mapping[str, str] | None = None,
    built: str = "",
) -> Done:
    """Run ``command`` in ``folder`` to its end; nothing of it outlives this call.

    ``built`` names what built the command, where that is a program of ours. Raises
    ConformanceError where there is no such command (FC0801; FC0805 where it was ``built``), or
    it takes longer than ``seconds`` (FC0803).
    """
    child: subprocess.Popen[str] | None = None
    try:
        # A signal that unwinds in the midst of it would leave a child that nobody ends.
        with postponed():
            child = _started(command, folder, environment, built)
        output, errors = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise refused(
            "FC0803",
            f"`{Path(command[0]).name}` did not end within {seconds:g} s",
            "run the command by hand to see what it waits for",
            f"the command is `{written(command)}`",
        ) from None
    finally:
        if child is not None:
            _end(child)
    return Done(tuple(command), child.returncode, output, errors)


def _started(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None, built: str
) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=None if environment is None else dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="backslashreplace",
            start_new_session=True,  # so that what it starts itself ends with it
        )
    except OSError as error:
        if built:
            raise refused(
                "FC0805",
                f"a program built by `{built}` cannot be run: {error.strerror}",
                "name a compiler that builds for this machine",
            ) from error
        raise refused(
            "FC0801",
            f"`{command[0]}` cannot be run: {error.strerror}",
            "name a command of the search path, or the path of one",
        ) from error


def _end(child: subprocess.Popen[str]) -> None:
    # Also what the child left behind in its session.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            stream.close()


def written(command: Sequence[str]) -> str:
    """The command as a shell takes it."""
    import shlex

    return shlex.join(command)


# ------------------------------------------------------------------------------
# Registers and stack of a program at chosen addresses, by ptrace; x86-64 only.
#
# Each address is stopped at once. The program must come by on its first thread, and must not be
# position-independent. No privilege is needed: the program is a child that asks for it.

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


Read = Callable[[int, int], bytes]
"""Gives the bytes from an address on that are there, as many as the second number at most."""


def unavailable() -> str | None:
    """Why no program can be traced here, or None."""
    code = "import ctypes, os; os._exit(99 if ctypes.CDLL(None).ptrace(0, 0, 0, 0) else 0)"
    if subprocess.run([sys.executable, "-c", code], check=False).returncode:
        return "ptrace is not permitted here"
    return None


def run_with_stops(
    binary: Path,
    addresses: Iterable[int],
    seconds: float = _SECONDS,
    look: Callable[[int, Stop, Read], None] | None = None,
) -> tuple[str, dict[int, Stop]]:
    """Run the program to its end: what it printed, and the stop at each address it came by.

    ``look`` is called at each stop, with its address and what reads the program's memory. Raises
    ConformanceError where it takes longer than ``seconds`` (FC0803), does not end well (FC0805), or
    cannot be traced (FC0806).
    """
    output = binary.with_suffix(".out")
    with ExitStack() as end:
        # A signal that unwinds in the midst of it would leave a child that nobody ends.
        with output.open("wb") as stream, postponed():
            child = subprocess.Popen([sys.executable, "-c", _LAUNCHER, str(binary)], stdout=stream)
            end.callback(_end_stopped, child)
        late = threading.Timer(seconds, child.kill)
        end.callback(late.cancel)
        late.start()
        try:
            stops = _follow(child.pid, addresses, look)
        except _Ended as ended:
            if late.finished.is_set():
                raise refused(
                    "FC0803",
                    f"`{binary.name}` did not end within {seconds:g} s under ptrace",
                    "run it by hand to see what it waits for",
                ) from None
            raise _explained(binary, ended.status) from None
    return output.read_text(), stops


def _end_stopped(child: subprocess.Popen[bytes]) -> None:
    child.poll()
    if child.returncode is None:
        child.kill()
    child.wait()


class _Ended(Exception):
    def __init__(self, status: int) -> None:
        self.status = status


def _explained(binary: Path, status: int) -> Exception:
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 99:
        return PtraceRefused(
            Diagnostic(
                "FC0806",
                "ptrace is not permitted here",
                help="allow it: `sysctl kernel.yama.ptrace_scope=1`, in a container CAP_SYS_PTRACE",
            )
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


def _follow(
    pid: int, addresses: Iterable[int], look: Callable[[int, Stop, Read], None] | None
) -> dict[int, Stop]:
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
            if look is not None:
                look(address, stops[address], partial(_read, memory.fileno()))
            os.pwrite(memory.fileno(), replaced[address], address)
            registers[_INSTRUCTION_POINTER] = address
            request(_SET_REGISTERS, ctypes.byref(registers))
            passed = 0


def _read(memory: int, address: int, size: int) -> bytes:
    try:
        return os.pread(memory, size, address)
    except (OSError, OverflowError):
        return b""
