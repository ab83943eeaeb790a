"""Whether a running program has memory at an address.

The kernel is asked with process_vm_readv(2): it heeds protections as a probe's fetch does, while
``/proc/PID/mem`` reads what the program itself may not.
"""

from __future__ import annotations

import ctypes
import errno

__all__ = ["mapped"]


class _Range(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


_libc = ctypes.CDLL(None, use_errno=True)
_read = _libc.process_vm_readv
_read.argtypes = [
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_ulong,
    ctypes.c_void_p,
    ctypes.c_ulong,
    ctypes.c_ulong,
]
_read.restype = ctypes.c_ssize_t


def mapped(thread: int, address: int) -> bool | None:
    """Whether the program of ``thread`` can read the byte at ``address``.

    None where that cannot be known: the thread is gone, or this process may not look.
    """
    byte = ctypes.create_string_buffer(1)
    here = _Range(ctypes.cast(byte, ctypes.c_void_p), 1)
    there = _Range(address, 1)
    if _read(thread, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) == 1:
        return True
    return False if ctypes.get_errno() == errno.EFAULT else None
