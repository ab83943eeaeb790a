"""The time between start and end of a trace: events are shown as they come."""

from __future__ import annotations

import os
import select
import signal
import sys
import time

from fetchc.tracer.tracefs import started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType

    from fetchc.tracer.events import Event
    from fetchc.tracer.processes import Command
    from fetchc.tracer.session import Session

    # Takes a batch of events; True: that was the last one wanted.
    Sink = Callable[[Iterable[Event]], bool]

__all__ = ["Ending", "watch"]

_TURN = 0.05  # seconds after which the ends are looked at


class Ending:
    """A context manager: SIGINT, SIGTERM and SIGHUP ask for an end, and interrupt nothing.

    So that what was recorded is still shown. The second one ends at once, as it would without
    this: somebody waits for what does not come. Signals that were ignored stay so.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}

    def __enter__(self) -> Ending:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:
                self._before[number] = before
                signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self._restore()

    def _restore(self) -> None:
        while self._before:
            number, before = self._before.popitem()
            signal.signal(number, before)


def watch(
    session: Session,
    sink: Sink,
    ending: Ending,
    command: Command | None,
    pids: Iterable[int],
    timeout: float | None,
) -> list[int]:
    """Run a started session to its end, and show all that was recorded until then.

    It ends when it is asked to, after ``timeout`` seconds, with the program or the last of the
    processes it watches, when the sink has enough, or when nobody reads standard output.
    Returns the processes that ended meanwhile.
    """
    until = None if timeout is None else time.monotonic() + timeout
    waiting, gone = list(pids), list[int]()
    reader = _Reader()
    enough = False
    while not enough:
        # Looked at first: what the program did before its end is then in the buffers.
        over = ending.asked or (command is not None and command.ended()) or reader.left()
        gone += [pid for pid in waiting if started(pid) is None]
        waiting = [pid for pid in waiting if pid not in gone]
        if over or (gone and not waiting):
            break
        turn = _TURN
        if until is not None:
            turn = min(_TURN, until - time.monotonic())
            if turn <= 0:
                break
        for batch in session.batches(turn):
            if sink(batch):
                enough = True
                break
        else:
            sink(())
    session.stop()
    if not enough:
        for batch in session.batches():
            if sink(batch):
                break
    return gone


class _Reader:
    """Who reads standard output through a pipe, if somebody does."""

    def __init__(self) -> None:
        self._poll = select.poll()
        if sys.stdout is not None:
            try:
                file = sys.stdout.fileno()
            except (OSError, ValueError):  # not a file: a caller in the same process
                return
            if os.isatty(file):
                return
            self._poll.register(file, 0)

    def left(self) -> bool:
        """Whether the reader has gone away."""
        return any(state & select.POLLERR for _, state in self._poll.poll(0))
