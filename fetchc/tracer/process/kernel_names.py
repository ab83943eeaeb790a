"""Addresses of the running kernel's code to its functions: ``/proc/kallsyms``.

The list has no sizes: a function ends where the next symbol begins. Who may not see addresses sees
zeros (kptr_restrict), and then nothing has a name. Source: kernel/kallsyms.c.
"""

from __future__ import annotations

from bisect import bisect_right

from fetchc.tracer.kernel.kernel_symbols import CODE, SYMBOLS, all_symbols

__all__ = ["KernelNames", "is_kernel"]

_LONGEST = 1 << 20  # bytes of a function: what is farther from its symbol is in none


def is_kernel(address: int) -> bool:
    """Whether an address is in the kernel's half; no program has code there."""
    return bool(address >> 63)


class KernelNames:
    """The functions of the running kernel, by address; read when first asked for."""

    __slots__ = ("_names", "_path", "_starts")

    def __init__(self, path: str = SYMBOLS) -> None:
        self._path = path
        self._starts: list[int] | None = None
        self._names: list[str | None] = []

    def find(self, address: int) -> tuple[str, int] | None:
        """The function that holds ``address``, and how far into it that is."""
        starts = self._starts
        if starts is None:
            starts = self._load()
        at = bisect_right(starts, address) - 1
        if at < 0 or address - starts[at] >= _LONGEST:
            return None
        name = self._names[at]
        return None if name is None else (name, address - starts[at])

    def _load(self) -> list[int]:
        # Of several names of an address the first stands, of a function before other kinds.
        found: dict[int, str | None] = {}
        for digits, kind, name, _ in all_symbols(self._path):
            address = int(digits, 16)
            if is_kernel(address) and found.get(address) is None:
                found[address] = name if kind in CODE else None
        self._starts = sorted(found)
        self._names = [found[start] for start in self._starts]
        return self._starts
