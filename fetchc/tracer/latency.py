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
_DEPTH = 64


class Calls:
    """The calls that were entered and have not returned, by a key that is one call's own.

    Where the key holds the address of the frame (process, function, stack pointer), recursion
    has a key a level, and a frame left by longjmp or the end of its thread gives its key to the
    next call at that depth. Where it cannot (a goroutine's stack moves), a key has several
    open calls and the last one returns first. Memory is bounded: with more than ``keys``
    keys, and ``depth`` calls of one, the oldest is forgotten and counted in ``forgotten``.
    """

    __slots__ = ("_depth", "_keys", "_open", "forgotten")

    def __init__(self, keys: int = _KEYS, depth: int = _DEPTH) -> None:
        self._open: dict[Hashable, list[Event]] = {}
        self._keys = keys
        self._depth = depth
        self.forgotten = 0

    def enter(self, key: Hashable, event: Event) -> None:
        """A call began."""
        waiting = self._open.get(key)
        if waiting is None:
            if len(self._open) >= self._keys:
                oldest = next(iter(self._open))
                self.forgotten += len(self._open.pop(oldest))
            self._open[key] = [event]
            return
        if len(waiting) >= self._depth:
            del waiting[0]
            self.forgotten += 1
        waiting.append(event)

    def leave(self, key: Hashable) -> Event | None:
        """The entry of the call that returned; None where it was not seen."""
        waiting = self._open.get(key)
        if waiting is None:
            return None
        entry = waiting.pop()
        if not waiting:
            del self._open[key]
        return entry


def microseconds(start: Event, end: Event) -> float:
    """From one event to the other, to the nanosecond."""
    return round((end.timestamp - start.timestamp) * 1e6, 3)
