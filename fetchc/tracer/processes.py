"""Traced processes: the program that a trace starts, the files it runs, its mapped memory."""

from __future__ import annotations

import errno
import os
import signal
import struct
import time
from contextlib import suppress

from fetchc.diag.diagnostic import Diagnostic, TracerError
from fetchc.tracer.stacks import DELETED, read_maps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "WAITING",
    "Command",
    "WatchedFiles",
    "all_processes",
    "command_name",
    "debugger_of",
    "find_program",
    "image_start",
    "mapped",
    "running_copies",
    "unloaded",
]

# What the process is called until it is the program (comm, up to 15 bytes): its hits before
# that are those of the tracer's own code in a shared library.
WAITING = ":fetchc waits:"
# Requests of ptrace(2), an option and its event; AT_ENTRY of getauxval(3).
_POKE_USER, _CONTINUE, _DETACH, _SEIZE, _TRACE_EXEC, _EVENT_EXEC = 6, 7, 17, 0x4206, 1 << 4, 4
_ENTRY = 9
_DEBUG_REGISTERS = 848  # of struct user, u_debugreg: the first of eight. Source: <sys/user.h>
_NOT_RUN = 127  # the status of a child whose program could not be executed; nobody sees it
_WITHOUT_BREAKPOINTS = ("strace",)  # users of ptrace(2) that write none into the code
_GRACE = 5.0  # seconds that a program has to end when it is asked to


class Command:
    """COMMAND and its arguments. Its input, output and environment are the tracer's own.

    The constructor looks the program up (TracerError FC0753), :meth:`prepare` makes the
    process, :meth:`go` lets it run, :meth:`close` ends what still runs.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self.pid = 0
        self._status: int | None = None
        self._gate = -1
        self._failure = -1
        self._stopped = False
        self._program = find_program(self.words[0])

    def prepare(self) -> int:
        """Make the process, which waits; returns its number. Once more after :meth:`close`."""
        self._status, self._stopped = None, False
        waits, self._gate = os.pipe()
        self._failure, failed = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._become(waits, failed)
        os.close(waits)
        os.close(failed)
        self.pid = pid
        return pid

    def _become(self, waits: int, failed: int) -> None:
        # In the child, which must never come back from here.
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves them
                    signal.signal(number, signal.SIG_DFL)
            # Python ignores these two, and what is ignored stays so for the new program.
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            os.close(self._gate)
            with open("/proc/self/comm", "w") as comm:
                comm.write(WAITING)
            if os.read(waits, 1):
                os.execv(self._program, self.words)
        except OSError as error:
            os.write(failed, str(error.errno or 0).encode())
        finally:
            os._exit(_NOT_RUN)

    def go(self, stopped: bool = False) -> None:
        """Let the program run; raises TracerError FC0753 where it cannot be executed.

        ``stopped``: it is there, and stands before its first instruction until :meth:`resume`.
        """
        if stopped:
            self._ptrace(_SEIZE, _TRACE_EXEC)
        os.write(self._gate, b"!")
        os.close(self._gate)
        self._gate = -1
        said = os.read(self._failure, 16)  # empty: the pipe was closed by becoming the program
        os.close(self._failure)
        self._failure = -1
        if said:
            raise _refused(self.words[0], os.strerror(int(said)))
        if stopped:
            self._stop(_EVENT_EXEC)

    def _stop(self, event: int) -> None:
        # Wait for an event of ptrace(2), or for SIGTRAP alone.
        while self._status is None:
            _, status = os.waitpid(self.pid, 0)
            if not os.WIFSTOPPED(status):
                self._status = os.waitstatus_to_exitcode(status)
                return
            number, met = os.WSTOPSIG(status), status >> 16
            if met == event and number == signal.SIGTRAP:
                self._stopped = True
                return
            self._ptrace(_CONTINUE, 0 if met else number)  # a signal on the way there

    def run_to_entry(self) -> None:
        """Let the program, which is stopped, run to its entry point, where it stops again.

        Its libraries are loaded there, and its pointers relocated. By an execution breakpoint of
        x86-64; where none is free, it stays where it is.
        """
        with open(f"/proc/{self.pid}/auxv", "rb") as file:
            entries = dict(struct.iter_unpack("QQ", file.read()))
        try:
            self._ptrace(_POKE_USER, entries[_ENTRY], _DEBUG_REGISTERS)
            self._ptrace(_POKE_USER, 1, _DEBUG_REGISTERS + 8 * 7)
        except TracerError:
            return
        self._stopped = False
        self._ptrace(_CONTINUE, 0)
        self._stop(0)
        if self._stopped:
            self._ptrace(_POKE_USER, 0, _DEBUG_REGISTERS + 8 * 7)

    def resume(self) -> None:
        """Let the program run that is stopped."""
        if self._stopped:
            self._stopped = False
            self._ptrace(_DETACH, 0)

    def _ptrace(self, request: int, data: int, address: int = 0) -> None:
        import ctypes

        call = ctypes.CDLL(None, use_errno=True).ptrace
        call.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        call.restype = ctypes.c_long
        if call(request, self.pid, address, data) < 0:
            error = ctypes.get_errno()
            if error != errno.ESRCH:  # a signal has ended it
                raise _refused(self.words[0], f"ptrace(2) refused: {os.strerror(error)}")

    def ended(self) -> bool:
        """Whether the program has ended; does not wait."""
        if self._status is None and self.pid:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status is not None

    @property
    def exit_status(self) -> int:
        """The program's exit status, as a shell shows it: 128 and the signal that killed it."""
        assert self._status is not None
        return self._status if self._status >= 0 else 128 - self._status

    def close(self) -> bool:
        """End the program by SIGTERM where it still runs; False where it does not obey.

        A process that has not become the program yet ends by itself.
        """
        for pipe in (self._gate, self._failure):
            if pipe >= 0:
                os.close(pipe)
        waiting = self._gate >= 0
        self._gate = self._failure = -1
        if not self.pid or self.ended():
            return True
        if not waiting:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)
            self.resume()
        until = time.monotonic() + _GRACE
        while not self.ended():
            if time.monotonic() > until:
                return False
            time.sleep(0.005)
        return True


def find_program(name: str) -> str:
    """The path of a program as a shell finds it; raises TracerError FC0753."""
    if os.sep not in name:
        import shutil  # 2 ms, with all that it can unpack

        program = shutil.which(name)
        if program is None:
            raise _refused(name, "it is not in PATH")
        return program
    if os.path.isdir(name):
        raise _refused(name, "it is a directory")
    if not os.path.exists(name):
        raise _refused(name, "there is no such file")
    if not os.access(name, os.X_OK):
        raise _refused(name, "it is not executable")
    return name


def _refused(name: str, why: str) -> TracerError:
    return TracerError(
        (
            Diagnostic(
                "FC0753",
                f"`{name}` cannot be run: {why}",
                help="give the program as a shell would find it: `-- ./server --port 8080`",
            ),
        )
    )


# ------------------------------------------------------------------------------
# Whether a process runs the code of a file: a probe of another file of that name never fires.


def unloaded(pid: int, path: str) -> str | None:
    """What to say of a process that has not mapped the file's code; None where it has.

    None too where the process is not known: it has ended, or another user has it.
    """
    try:
        status = os.stat(path)
        mappings = read_maps(pid)
    except OSError:
        return None
    # Not by the device: file systems of several layers or volumes show others there (proc(5)).
    if not mappings or any(one.inode == status.st_ino for one in mappings):
        return None
    real = os.path.realpath(path)
    real = real.removeprefix(f"/proc/{pid}/root")
    if any(one.path == real for one in mappings):
        return None
    if any(one.path == real + DELETED for one in mappings):
        before = f"process {pid} runs the `{path}` from before the file was replaced"
        own = os.path.realpath(f"/proc/{pid}/exe") == real + DELETED
        return f"{before}; trace that one with `-x /proc/{pid}/exe`" if own else before
    return f"process {pid} has not loaded `{path}`; it, or a child of it, may do so later"


def image_start(pid: int, path: str) -> int | None:
    """Where the file's first byte is in the memory of a process, by its code; None: not loaded.

    Source: translate_user_vaddr, kernel/trace/trace_uprobe.c. OSError where the process has ended.
    """
    inode = os.stat(path).st_ino
    real = os.path.realpath(path).removeprefix(f"/proc/{pid}/root")
    for one in read_maps(pid):
        if one.inode == inode or one.path.removesuffix(DELETED) == real:
            return one.start - one.offset
    return None


def running_copies(path: str) -> list[tuple[int, str]]:
    """Processes whose program is called like the file at ``path`` and is another file."""
    found = []
    for pid in all_processes():
        own = f"/proc/{pid}/exe"
        try:
            program = os.readlink(own)
            if os.path.basename(program).removesuffix(DELETED) != os.path.basename(path):
                continue
            if not os.path.samefile(own, path):
                plain = os.path.exists(program) and os.path.samefile(own, program)
                found.append((pid, program if plain else own))
        except OSError:
            continue  # it has ended, is another user's, or a thread of the kernel
    return sorted(found)


# ------------------------------------------------------------------------------
# Whether the files that are traced are still those at their paths, and who debugs them.


class WatchedFiles:
    """Remembers the files at some paths, to notice that another one, or none, is there now.

    The kernel probes the file, not the path: a process that runs it continues to be traced.
    """

    def __init__(self) -> None:
        self._files: dict[str, tuple[int, int] | None] = {}
        self._debugged: set[int] = set()

    def watch(self, path: str) -> None:
        """Remember the file at ``path``."""
        self._files.setdefault(path, _identity(path))

    def changes(self) -> tuple[Diagnostic, ...]:
        """A warning for each path with another file since the last call."""
        changed = [
            path
            for path, file in self._files.items()
            if _identity(path) != file and not _of_ended_process(path)
        ]
        found = []
        for path in changed:
            now = self._files[path] = _identity(path)
            what = "deleted" if now is None else "replaced"
            note = "only processes that run the old file are traced"
            help = "start the trace again to trace the new file" if now else None
            message = f"the traced file {path} was {what}"
            found.append(Diagnostic("FC0613", message, notes=(note,), help=help))
        return tuple(found)

    def debugged(self) -> tuple[Diagnostic, ...]:
        """A warning for each debugged process that runs code of the files, once.

        A uprobe and a breakpoint are the same instruction at the same address, and neither the
        kernel nor a debugger knows of the other's: who comes second saves the first one's as the
        program's own. Source: remove_breakpoint, kernel/events/uprobes.c; measured with gdb 13.
        """
        inodes = {file[1] for file in self._files.values() if file is not None}
        found = []
        for pid in all_processes() if inodes else []:
            tracer = debugger_of(pid)
            if tracer in (0, os.getpid()) or pid in self._debugged:
                continue
            name = command_name(tracer)
            with suppress(OSError):  # it has ended, or is another user's
                if name not in _WITHOUT_BREAKPOINTS and any(
                    one.inode in inodes for one in read_maps(pid)
                ):
                    self._debugged.add(pid)
                    found.append(_debugged(pid, f"process {tracer} ({name})"))
        return tuple(found)


def _debugged(pid: int, debugger: str) -> Diagnostic:
    return Diagnostic(
        "FC0636",
        f"{debugger} debugs process {pid}, which runs traced code",
        notes=(
            "a breakpoint that the debugger writes over a probed instruction stops nothing",
            "one that is set while the trace runs stays there after it, and can end the process",
        ),
        help="delete such breakpoints in the debugger, and set none before the trace ends",
    )


def command_name(pid: int) -> str:
    """What a process is called: ``comm`` of proc(5)."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().removesuffix("\n")
    except OSError:
        return "it has ended"


def debugger_of(pid: int) -> int:
    """The process that traces ``pid`` by ptrace(2); 0 without one."""
    # proc(5), /proc/pid/status: TracerPid.
    try:
        with open(f"/proc/{pid}/status", "rb", 0) as file:
            return int(file.read(1 << 12).partition(b"\nTracerPid:")[2].split(maxsplit=1)[0])
    except (OSError, IndexError, ValueError):
        return 0


def all_processes() -> list[int]:
    """The numbers of the processes that can be seen now."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _of_ended_process(path: str) -> bool:
    # /proc/PID/exe or a file below /proc/PID/root: it went with the process, and is not deleted.
    process = "/".join(path.split("/")[:3])
    return path.startswith("/proc/") and not os.path.exists(process)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


# ------------------------------------------------------------------------------
# Whether a running program has memory at an address.
#
# The kernel is asked with process_vm_readv(2): it heeds protections as a probe's fetch does,
# while ``/proc/PID/mem`` reads what the program itself may not.


_READ: list[Callable[..., int]] = []  # the function of the C library, once it is needed


def mapped(thread: int, address: int) -> bool | None:
    """Whether the program of ``thread`` can read the byte at ``address``.

    None where that cannot be read: the thread is gone, or this process may not look.
    """
    import ctypes  # for a few zeros of memory, or none

    if not _READ:
        read = ctypes.CDLL(None, use_errno=True).process_vm_readv
        word, pointer = ctypes.c_ulong, ctypes.c_void_p
        read.argtypes = [ctypes.c_int, pointer, word, pointer, word, word]
        read.restype = ctypes.c_ssize_t
        _READ.append(read)
    # Each range, struct iovec, is an address and a length.
    byte = ctypes.create_string_buffer(1)
    here = (ctypes.c_size_t * 2)(ctypes.addressof(byte), 1)
    there = (ctypes.c_size_t * 2)(address, 1)
    if _READ[0](thread, here, 1, there, 1, 0) == 1:
        return True
    return False if ctypes.get_errno() == errno.EFAULT else None
