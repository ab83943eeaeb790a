"""What a guard tells: whether a pointer can lead anywhere, and whether memory is where it leads.

What the kernel does when a load fails depends on which one it is (process_fetch_insn of
kernel/trace/trace_probe_tmpl.h). After the last load of a chain the number is 0. After an inner
one nothing is stored, and the record holds what an earlier event left in the buffer. So each
pointer on the way is fetched as a value of its own: it is a last load, and can be believed if the
one before it led somewhere. Where all of them did, only a number that is 0 is left in doubt, and
the program is asked whether it has memory there.

What cannot be known: the program is asked some time after the event, when it may have mapped or
unmapped the page, or have ended. Then a 0 stands.
"""

from __future__ import annotations

import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Mapped = Callable[[int, int], bool | None]

__all__ = ["HIGHEST", "LOWEST", "Remembered"]

LOWEST = 0x1000
"""No program has memory in the first page (vm.mmap_min_addr; the privileged may lower it)."""

HIGHEST = 1 << (56 if sys.maxsize > 1 << 32 else 32)
"""Nor from here on: with five levels of pages the user half has 56 bits of addresses."""

_PAGE = 12  # bits of an address inside of the smallest page
_FRESH = 1.0  # seconds
_MOST = 100_000


class Remembered:
    """``mapped(thread, address)`` with the pages that were there remembered for a second.

    Zeros are frequent, and asking costs some microseconds. That a page is not there is not
    remembered: programs map new ones all the time.
    """

    def __init__(self, mapped: Mapped, clock: Callable[[], float] = time.monotonic) -> None:
        self._mapped = mapped
        self._clock = clock
        self._there: set[tuple[int, int]] = set()
        self._until = 0.0

    def __call__(self, thread: int, address: int) -> bool | None:
        """Whether the program of ``thread`` has memory at ``address``, None if unknown."""
        page = thread, address >> _PAGE
        now = self._clock()
        if now >= self._until or len(self._there) >= _MOST:
            self._there.clear()
            self._until = now + _FRESH
        elif page in self._there:
            return True
        found = self._mapped(thread, address)
        if found:
            self._there.add(page)
        return found
