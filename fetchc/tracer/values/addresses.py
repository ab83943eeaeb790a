"""Which numbers can be addresses: the bits of a pointer that cannot are marked.

Pointers that were never set, that were overwritten or that carry an error number lead nowhere; as
plain addresses people would follow them. What a debugger says of a load from there, a mark says of
the value alone: nothing is read.

Sources: Documentation/arch of Linux: x86/x86_64/mm.rst and 5level-paging.rst (47 or 56 bits),
arm64/memory.rst and tagged-pointers.rst (52 bits, with a tag on top), include/linux/err.h.
"""

from __future__ import annotations

import os

from fetchc.tracer.values.guards import HIGHEST, OF_KERNEL
from fetchc.tracer.values.kinds import Hexadecimal, NoAddress

__all__ = ["address_of_kernel", "address_of_program"]

_CPU = "/proc/cpuinfo"
_FIRST = 1 << 13  # bytes of it: the first processor, of which all others are like
_VSYSCALL = 0xFFFF_FFFF_FF60_0000  # a page of the kernel's half that x86-64 programs can call
_VSYSCALL_END = _VSYSCALL + 0x1000
_MASK = (1 << 64) - 1
_MACHINE = os.uname().machine


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
# Below the first page and above the last one are numbers as pointers. Those below, people write on
# purpose; of the kernel's own half each address is one, as far as it is canonical.
_KERNEL = max(OF_KERNEL[-1][0], _MASK + 1 - _USER_END if _MACHINE == "x86_64" else 0)
_KERNEL_END = OF_KERNEL[-1][1]


def address_of_program(number: int) -> Hexadecimal:
    """A pointer of a program: one that it cannot have anything at is a :class:`NoAddress`."""
    if number & ~_TAG < _USER_END or _VSYSCALL <= number < _VSYSCALL_END:
        return Hexadecimal(number)
    return NoAddress(number)


def address_of_kernel(number: int) -> Hexadecimal:
    """A pointer that the kernel has: into its own half, or into a program's."""
    if number & ~_TAG < _USER_END or _KERNEL <= number < _KERNEL_END:
        return Hexadecimal(number)
    return NoAddress(number)
