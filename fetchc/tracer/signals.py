"""Ending in order: signals that wait while something is half done, and signals that unwind."""

from __future__ import annotations

import signal
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["postponed", "shielded", "terminable"]

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def shielded() -> Iterator[None]:
    """Hold signals that end a process back until the block is done.

    They are blocked for the calling thread: a program that handles signals in its main thread
    while it traces in another one sees no difference.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def postponed() -> Iterator[None]:
    """Have the handlers of signals that end a process run behind the block, not in it.

    For what :func:`shielded` cannot be put around: a process that is started inside would
    inherit blocked signals. For the main thread; what is ignored, or not Python's, stays so.
    """
    met: list[int] = []
    before = {each: signal.getsignal(each) for each in _ENDING}
    held = [each for each in _ENDING if callable(before[each])]
    for each in held:
        signal.signal(each, lambda number, _: met.append(number))
    try:
        yield
    finally:
        for each in held:
            signal.signal(each, before[each])
        for number in met:
            signal.raise_signal(number)


def _nothing(number: int, frame: FrameType | None) -> None:
    pass


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind as Ctrl-C does, so that everything is taken away again.

    For commands, in the main thread. The first signal raises KeyboardInterrupt or SystemExit
    with status 128 + its number; those that follow do nothing, for the first one is being
    obeyed. Signals that were ignored before (``nohup``) still are.
    """
    before = {each: signal.getsignal(each) for each in _ENDING}
    handled = [each for each in _ENDING if before[each] is not signal.SIG_IGN]

    def end(number: int, frame: FrameType | None) -> None:
        for each in handled:
            # Not SIG_IGN: of one that came with the first and has to be handled yet, Python would
            # print a traceback ("ignored due to race condition").
            signal.signal(each, _nothing)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)

    for each in handled:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each in handled:
            signal.signal(each, before[each])
