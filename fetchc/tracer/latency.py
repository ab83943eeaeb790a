"""Which return belongs to which entry."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable

    from fetchc.tracer.model import Event

__all__ = ["Calls", "microseconds"]

_KEYS = 1 << 16  # calls that wait for their return; each is an event of some hundred bytes
# A call frame is entered again before it returns only by tail calls, and of those the kernel
# sees at most so many return (MAX_URETPROBE_DEPTH, include/linux/uprobes.h).
_MOST = 64


class Calls:
    """The calls that were entered and have not returned, by a key that is one call's own.

    Where the key holds the address of the frame (process, function, stack pointer), recursion
    has a key a level, and a frame left by longjmp, an exception or the end of its thread gives its
    key to the next call at that depth. A goroutine's stack moves, so the key is the goroutine's,
    and ``depth`` is where the frame is: in bytes from the stack's high end, which a move keeps. A
    call that a panic or runtime.Goexit ended is forgotten once the goroutine is at its depth or
    above it again. Memory is bounded: with more than ``keys`` keys, and ``most`` calls of one, the
    oldest is forgotten and counted in ``forgotten``.
    """

    __slots__ = ("_keys", "_most", "_open", "forgotten")

    def __init__(self, keys: int = _KEYS, most: int = _MOST) -> None:
        self._open: dict[Hashable, list[tuple[int, Event]]] = {}
        self._keys = keys
        self._most = most
        self.forgotten = 0

    def enter(self, key: Hashable, event: Event, depth: int | None = None) -> None:
        """A call began."""
        waiting = self._open.get(key)
        if waiting is None:
            if len(self._open) >= self._keys:
                oldest = next(iter(self._open))
                self.forgotten += len(self._open.pop(oldest))
            self._open[key] = [(depth or 0, event)]
            return
        if depth is not None:
            while waiting and waiting[-1][0] >= depth:
                waiting.pop()
        if len(waiting) >= self._most:
            del waiting[0]
            self.forgotten += 1
        waiting.append((depth or 0, event))

    def leave(self, key: Hashable, depth: int | None = None) -> Event | None:
        """The entry of the call that returned; None where it was not seen."""
        waiting = self._open.get(key, [])
        if depth is not None:
            while waiting and waiting[-1][0] > depth:
                waiting.pop()
        entry = None
        if waiting and (depth is None or waiting[-1][0] == depth):
            entry = waiting.pop()[1]
        if not waiting:
            self._open.pop(key, None)
        return entry


def microseconds(start: Event, end: Event) -> float:
    """From one event to the other, to the nanosecond."""
    return round((end.timestamp - start.timestamp) * 1e6, 3)
