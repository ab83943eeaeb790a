"""Faults: whether the pointers to a value are addresses, and whether the kernel could read it.

A failed load depends on its place in the chain (process_fetch_insn of
kernel/trace/trace_probe_tmpl.h). If the last load fails, the number is 0. If an inner one fails,
nothing is stored, and the record holds stale bytes of an earlier event. So each pointer on the path
is fetched as a value of its own: that is a last load, and valid if the pointer before it is an
address. If all are, only a number 0 is in doubt. A string that begins at a byte of that number is
``""`` if the page is mapped, and a fault if it is not: a :class:`~fetchc.tracer.events.FaultProbe`.

Records of eBPF programs say it of every load (:class:`Unread`).

For other pages, and where the event has no room for fault probes, the program is asked. That is
some time after the event: it may have mapped or unmapped the page, or have ended. Then the number
is shown as 0.
"""

from __future__ import annotations

import os
import struct
import sys
import time

from fetchc.record import Record
from fetchc.tracer.display_values import CodeAddress, Hexadecimal, NoAddress, SymbolName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fetchc.tracer.events import BpfRecord, Value

    Faults = list[str]
    Make = Callable[[bytes, Faults], Value]
    Mapped = Callable[[int, int], bool | None]
    There = Callable[[bytes, int], bool | None]
    Symbol = Callable[[int, int], str | None]

__all__ = [
    "HIGHEST",
    "LOWEST",
    "OF_KERNEL",
    "OF_PROGRAM",
    "PID",
    "THREAD",
    "MappedCache",
    "Presence",
    "Residence",
    "Unread",
    "ZeroCheck",
    "address_of_kernel",
    "address_of_program",
    "by_length",
    "guarded",
    "if_resident",
    "names",
]

THREAD = struct.Struct("=i").unpack_from
PID = 4
"""Offset of common_pid in every record: include/linux/trace_events.h, struct trace_entry."""

_WORD = struct.Struct("=Q").unpack_from
_HALF_WORD = struct.Struct("=I").unpack_from
_MASK = (1 << 64) - 1
# No program has memory in the first page (vm.mmap_min_addr; the privileged may lower it), nor
# above the user half, which has 56 address bits with five levels of page tables.
LOWEST = 0x1000
HIGHEST = 1 << (56 if sys.maxsize > 1 << 32 else 32)
OF_PROGRAM = ((LOWEST, HIGHEST),)
"""The ranges of addresses where a program can have memory."""
# The kernel's half. The last page is of error numbers as pointers (include/linux/err.h); s390 has
# an address space of its own for the kernel, 32-bit machines differ in where they divide theirs.
# Between the halves is no memory: poisoned list pointers of the kernel point there
# (0xdead000000000100, include/linux/poison.h), and a load from there leaves stale bytes in the
# buffer. Sources: Documentation/arch of Linux: x86/x86_64/mm.rst, riscv/vm-layout.rst (5 levels),
# arm64/memory.rst (52 bits; tags of pointers, 0xf0 to 0xff, lie on top of them).
_HALVES = {"x86_64": 0xFF << 56, "riscv64": 0xFF << 56, "aarch64": 0xF0 << 56}
_WORD_BITS = sys.maxsize.bit_length() + 1
_MACHINE = os.uname().machine
_DIVIDED = _WORD_BITS == 64 and _MACHINE != "s390x"
_LAST = (1 << _WORD_BITS) - 0x1000
_HALF = _HALVES.get(_MACHINE, 1 << 63)
OF_KERNEL = (*OF_PROGRAM, (_HALF, _LAST)) if _DIVIDED else ((LOWEST, _LAST),)
"""The ranges that a load of a kernel probe can read: where the address ranges do not overlap
(``CONFIG_ARCH_HAS_NON_OVERLAPPING_ADDRESS_SPACE``), also the program's memory."""
_PAGE = 12  # bits of an address inside of the smallest page
_FRESH = 1.0  # seconds
_MOST = 100_000


class ZeroCheck(Record):
    """A number that is 0 after a fault: the bytes ``low`` to ``high`` of the record.

    It was loaded from ``moved`` bytes after the address in the word at ``pointer``; ``there`` says
    whether that could be read.
    """

    low: int
    high: int
    pointer: int
    moved: int
    there: There


def guarded(
    make: Make,
    checks: Sequence[tuple[int, int, bool, tuple[tuple[int, int], ...]]],
    doubt: ZeroCheck | None,
    path: str,
    none: Value = 0,
) -> Make:
    """``make`` if the pointers on the path are addresses; else ``path`` is a fault.

    Each of ``checks``, outermost first, is the offset of a pointer in the record, the offset of the
    next load from where it points, whether NULL is the value ``none`` and no fault, and the ranges
    where it can point.
    """
    if not checks and doubt is None:
        return make
    low, high = (doubt.low, doubt.high) if doubt else (0, 0)
    there = doubt.there if doubt else None
    last, behind = (doubt.pointer, doubt.moved) if doubt else (0, 0)
    nothing = bytes(high - low)

    def careful(data: bytes, faults: Faults) -> Value:
        for start, moved, empty, bounds in checks:
            pointer = _WORD(data, start)[0]
            address = pointer + moved & _MASK
            for lowest, highest in bounds:
                if lowest <= address < highest and pointer >= lowest:
                    break
            else:
                if empty and pointer == 0:
                    return none
                faults.append(path)
                return None
        if there is not None and data[low:high] == nothing:
            address = _WORD(data, last)[0] + behind & _MASK
            if there(data, address) is False:
                faults.append(path)
                return None
        return make(data, faults)

    return careful


def by_length(length: Make, make: Make, empty: Callable[[], Value], path: str) -> Make:
    """``make``, or ``empty`` where ``length`` is 0.

    A length that no object can have is a fault: the memory is something else.
    """

    def counted(data: bytes, faults: Faults) -> Value:
        count = length(data, faults)
        if count is None:
            return None
        assert isinstance(count, int)
        if count == 0:
            return empty()
        if 0 < count < HIGHEST:
            return make(data, faults)
        faults.append(path)
        return None

    return counted


class Presence:
    """``there(data, address)``: whether the program of a record had memory at ``address``.

    A fault probe on that page says what the kernel could read at the hit; else ``mapped`` asks the
    program now. None where neither can say.
    """

    def __init__(
        self, fault_probes: Sequence[tuple[int, int, int, int]], last: int, mapped: Mapped | None
    ) -> None:
        """``fault_probes``: the record offsets of each one's ``__data_loc`` word and of the
        next one's, of the pointer, and the offset of the byte from the pointer. ``last`` is the
        record offset of the last ``__data_loc`` word.
        """
        self._fault_probes = fault_probes
        self._last = last
        self._mapped = mapped

    def __call__(self, data: bytes, address: int) -> bool | None:
        """Whether there was memory, None if unknown."""
        page = address >> _PAGE
        for text, following, pointer, moved in self._fault_probes:
            if (_WORD(data, pointer)[0] + moved & _MASK) >> _PAGE != page:
                continue
            if not _HALF_WORD(data, self._last)[0] >> 16:
                break  # the event had no room for strings
            place = _HALF_WORD(data, text)[0]
            # Not read if it has no length, or the next string begins at its place.
            advanced: bool = place & 0xFFFF != _HALF_WORD(data, following)[0] & 0xFFFF
            return advanced and place >> 16 != 0
        return None if self._mapped is None else self._mapped(THREAD(data, PID)[0], address)


class MappedCache:
    """``mapped(thread, address)``, with mapped pages cached for a second.

    Zeros are frequent, and asking costs some microseconds. Pages that are not mapped are not
    cached: programs map new ones all the time. Threads that cannot be asked are: a program may end
    long before its last event is read.
    """

    def __init__(self, mapped: Mapped, clock: Callable[[], float] = time.monotonic) -> None:
        self._mapped = mapped
        self._clock = clock
        self._there: set[tuple[int, int]] = set()
        self._silent: set[int] = set()
        self._until = 0.0

    def __call__(self, thread: int, address: int) -> bool | None:
        """Whether the program of ``thread`` has memory at ``address``, None if unknown."""
        page = thread, address >> _PAGE
        now = self._clock()
        if now >= self._until or len(self._there) >= _MOST:
            self._there.clear()
            self._silent.clear()
            self._until = now + _FRESH
        elif page in self._there:
            return True
        elif thread in self._silent:
            return None
        found = self._mapped(thread, address)
        if found:
            self._there.add(page)
        elif found is None:
            self._silent.add(thread)
        return found


# ------------------------------------------------------------------------------
# Records of eBPF programs say of each load whether it failed: no number is in doubt.

_HALVES_OF_WORD = struct.Struct("=HH").unpack_from


class Unread:
    """Which bytes of a record stand for memory that could not be read."""

    def __init__(self, record: BpfRecord) -> None:
        self._bits = record.bits
        self._blocks = record.blocks
        self._low, self._high = record.faults, record.faults + record.fault_bytes

    def any(self, data: bytes, low: int, high: int) -> bool:
        """Whether some byte from ``low`` to ``high`` could not be read."""
        for first, end, word in self._blocks:
            if low < end and first < high:
                read = _HALVES_OF_WORD(data, word)
                if max(low, first) < read[0] or read[1] < min(high, end):
                    return True
        mask = 0
        for first, end, bit in self._bits:
            if low < end and first < high:
                mask |= 1 << bit
        return bool(mask and mask & int.from_bytes(data[self._low : self._high], "little"))

    def checked(self, make: Make, low: int, high: int, path: str) -> Make:
        """``make`` where all bytes from ``low`` to ``high`` were read; else ``path`` is a fault."""
        inside = [one for one in (*self._bits, *self._blocks) if low < one[1] and one[0] < high]
        return self.checked_to(make, low, lambda data: high, path) if inside else make

    def checked_to(self, make: Make, low: int, end: Callable[[bytes], int], path: str) -> Make:
        """``make`` where all bytes from ``low`` up to ``end`` of the record were read."""

        def careful(data: bytes, faults: Faults) -> Value:
            if self.any(data, low, end(data)):
                faults.append(path)
                return None
            return make(data, faults)

        return careful


# ------------------------------------------------------------------------------
# User memory read by a kernel probe: whether it was in RAM.
#
# A uprobe faults a page in. A kprobe must not sleep: a failed read leaves stale bytes in the record
# (``copy_from_user_nofault`` of mm/maccess.c clears nothing; seen on 7.3). A number does not show
# the failure, a string does; and as the name of a symbol (``symstr``) any eight bytes are a short
# string. So one is fetched for each page.


_PAGE_BYTES = 4096  # bytes; with larger pages the ends of the range are still checked
_READ = 8  # bytes that one check covers


class Residence:
    """Whether the pages of an object were in RAM, by the read checks of its guard.

    ``pointer`` is the record offset of the pointer to the object; each of ``texts`` comes with the
    offset from that pointer of the bytes that it checks.
    """

    def __init__(self, pointer: int, texts: Sequence[tuple[Make, int]]) -> None:
        self._pointer = pointer
        self._texts = texts

    def there(self, data: bytes, address: int) -> bool:
        """Whether the page of ``address`` was in RAM."""
        start = _WORD(data, self._pointer)[0]
        page = address // _PAGE_BYTES
        for text, behind in self._texts:
            low = start + behind & _MASK
            last = low + _READ - 1
            if low // _PAGE_BYTES <= page <= last // _PAGE_BYTES and text(data, []) is not None:
                return True
        return False

    def all_there(self, data: bytes, moved: int, size: int) -> bool:
        """Whether ``size`` bytes were, from ``moved`` bytes after where the pointer points."""
        low = _WORD(data, self._pointer)[0] + moved & _MASK
        pages = range(low // _PAGE_BYTES, (low + size - 1) // _PAGE_BYTES + 1)
        return all(self.there(data, page * _PAGE_BYTES) for page in pages)


def if_resident(make: Make, residence: Residence, moved: int, size: int, path: str) -> Make:
    """``make`` of an object of ``size`` bytes if all of it was read; else ``path`` is a fault."""

    def careful(data: bytes, faults: Faults) -> Value:
        if not residence.all_there(data, moved, size):
            faults.append(path)
            return None
        return make(data, faults)

    return careful


# ------------------------------------------------------------------------------
# Addresses of code as the names of what is there.


def names(
    unpack: Callable[[bytes, int], tuple[int, ...]],
    start: int,
    symbol: Symbol,
    pointer: Callable[[int], Hexadecimal],
) -> Callable[[bytes], list[Value]]:
    """The names of the addresses at ``start`` of a record.

    NULL has none. What ``symbol(thread, address)`` does not find is a number; ``pointer`` marks
    what is not an address.
    """

    def name(thread: int, address: int) -> Value:
        if not address:
            return Hexadecimal(0)
        found = symbol(thread, address)
        if found is not None:
            return SymbolName(found)
        plain = pointer(address)
        return plain if isinstance(plain, NoAddress) else CodeAddress(address)

    def named(data: bytes) -> list[Value]:
        (thread,) = THREAD(data, PID)
        return [name(thread, address) for address in unpack(data, start)]

    return named


# ------------------------------------------------------------------------------
# Which numbers can be addresses; other pointers are marked.
#
# Uninitialized, overwritten and error pointers point nowhere; the mark keeps people from following
# them. It depends on the number alone: nothing is read.
#
# Sources: Documentation/arch of Linux: x86/x86_64/mm.rst and 5level-paging.rst (47 or 56 bits),
# arm64/memory.rst and tagged-pointers.rst (52 bits, with a tag on top), include/linux/err.h.

_CPU = "/proc/cpuinfo"
_FIRST = 1 << 13  # bytes of it: the first processor; the others have the same flags
_VSYSCALL = 0xFFFF_FFFF_FF60_0000  # a page of the kernel's half that x86-64 programs can call
_VSYSCALL_END = _VSYSCALL + 0x1000


def _user_end() -> int:
    if _MACHINE != "x86_64":
        return HIGHEST
    try:
        with open(_CPU, encoding="ascii", errors="replace") as file:
            flags = file.read(_FIRST).split()
    except OSError:
        return HIGHEST
    return 1 << (56 if "la57" in flags else 47)


_USER_END = _user_end()
_TAG = 0xFF << 56 if _MACHINE == "aarch64" else 0
# Below the first page and above the last one, pointers are numbers; those below are often on
# purpose. In the kernel's half every canonical address counts.
_KERNEL = max(OF_KERNEL[-1][0], _MASK + 1 - _USER_END if _MACHINE == "x86_64" else 0)
_KERNEL_END = OF_KERNEL[-1][1]


def address_of_program(number: int) -> Hexadecimal:
    """A pointer of a program; a :class:`NoAddress` where a program can have no memory."""
    if number & ~_TAG < _USER_END or _VSYSCALL <= number < _VSYSCALL_END:
        return Hexadecimal(number)
    return NoAddress(number)


def address_of_kernel(number: int) -> Hexadecimal:
    """A pointer of the kernel: into its own half, or into a program's."""
    if number & ~_TAG < _USER_END or _KERNEL <= number < _KERNEL_END:
        return Hexadecimal(number)
    return NoAddress(number)
