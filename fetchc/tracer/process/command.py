"""The program that a trace starts: it waits until the probes are on, then runs as if alone."""

from __future__ import annotations

import os
import shutil
import signal
import time
from contextlib import suppress

from fetchc.diag.diagnostic import Diagnostic, TracerError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["WAITING", "Command"]

# What the process is called until it is the program (comm, up to 15 bytes): its hits before
# that are those of the tracer's own code in a shared library.
WAITING = ":fetchc waits:"
_NOT_RUN = 127  # the status of a child whose program could not be executed; nobody sees it
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
        self._program = _found(self.words[0])

    def prepare(self) -> int:
        """Make the process, which waits; returns its number."""
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

    def go(self) -> None:
        """Let the program run; raises TracerError FC0753 where it cannot be executed."""
        os.write(self._gate, b"!")
        os.close(self._gate)
        self._gate = -1
        said = os.read(self._failure, 16)  # empty: the pipe was closed by becoming the program
        os.close(self._failure)
        self._failure = -1
        if said:
            raise _refused(self.words[0], os.strerror(int(said)))

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
        until = time.monotonic() + _GRACE
        while not self.ended():
            if time.monotonic() > until:
                return False
            time.sleep(0.005)
        return True


def _found(name: str) -> str:
    program = shutil.which(name)
    if program is not None:
        return program
    if os.sep not in name:
        raise _refused(name, "it is not in PATH")
    if os.path.isdir(name):
        raise _refused(name, "it is a directory")
    why = "it is not executable" if os.path.exists(name) else "there is no such file"
    raise _refused(name, why)


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
