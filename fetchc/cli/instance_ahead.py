"""The instance of a trace, created while the files of the trace are parsed.

The kernel takes 50 ms for it: it waits for all processors where it sets the clock and the sizes of
the buffers, and again where it removes an instance. A process of its own creates the instance, and
removes it unless the trace takes it over: also where the trace is refused, interrupted or killed.
So a refusal waits for neither.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from fetchc.diag.diagnostic import TracerError
from fetchc.tracer.tracefs import find_tracefs, session_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from fetchc.cli.option_table import Options

__all__ = ["InstanceAhead", "instance_ahead"]

# A terminal, `timeout` and a service manager send them to both processes.
_ENDING = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM)
_CREATED = _TAKEN = b"!"


def instance_ahead(options: Options) -> InstanceAhead | None:
    """The instance for a trace by these options; None where it will hardly need one."""
    by_tracefs = options.engine == "tracefs"
    if options.engine == "auto":  # which has eBPF programs count
        by_tracefs = not (options.histograms or options.linear or options.sums or options.count_by)
    named = options.binary and not options.binary.startswith("/proc/") and not options.watched
    return InstanceAhead() if by_tracefs and named and os.geteuid() == 0 else None


class InstanceAhead:
    """The instance :attr:`name`. To be made while this process has one thread."""

    def __init__(self) -> None:
        self.name = session_name()
        source, self._gate = os.pipe()
        self._answer, target = os.pipe()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        self._pid = os.fork()
        if not self._pid:
            self._become(source, target)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(source)
        os.close(target)

    def taken(self) -> bool:
        """Take the instance over when it is there; False where it cannot be created."""
        created = os.read(self._answer, 1) == _CREATED
        if created:
            os.write(self._gate, _TAKEN)
        self.drop()
        os.waitpid(self._pid, 0)
        return created

    def drop(self) -> None:
        """Have the instance removed; does not wait. Nothing where it was taken over."""
        for pipe in (self._gate, self._answer):
            if pipe >= 0:
                os.close(pipe)
        self._gate = self._answer = -1

    def wait(self) -> None:
        """Return when the instance that was dropped is gone."""
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def _become(self, source: int, target: int) -> NoReturn:
        # In the child, which must never come back from here. The signals stay blocked.
        try:
            from fetchc.privileges import let_go
            from fetchc.tracer.trace_instance import Instance, remove_instance

            let_go((source, target), 0)
            tracefs, taken = find_tracefs(), b""
            try:
                Instance(tracefs, self.name).create(None)
                os.write(target, _CREATED)
                taken = os.read(source, 1)
            finally:
                if taken != _TAKEN:
                    remove_instance(tracefs, self.name)
        except (OSError, TracerError):
            pass  # the trace does it itself, and says what is wrong
        finally:
            os._exit(0)
