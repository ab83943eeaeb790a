"""Nodes of a fetch: a value, how the kernel stores it, what the reader makes of it.

The nodes mirror the stages of the kernel's fetch program (load, dereferences, store,
modify, loop: kernel/trace/trace_probe.h, ``enum fetch_op``), so that a verifier can
apply a kernel's limits exactly. ``Absolute`` and ``Image`` are addresses: the kernel
has no way to give an address itself, so each stands below a ``Deref`` (``@ADDR`` *is*
a load).
"""

from __future__ import annotations

from fetchc.record import Record, assert_never

__all__ = [
    "ELEMENTS",
    "Absolute",
    "Array",
    "Bits",
    "Char",
    "Comm",
    "Deref",
    "Fetch",
    "Image",
    "Immediate",
    "KernelValue",
    "Register",
    "ReturnValue",
    "Scalar",
    "StackEntry",
    "StackPointer",
    "Store",
    "Symbol",
    "Text",
    "Value",
    "Word",
    "fixed_bytes",
    "is_address",
]


class Register(Record):
    """``%name``: a register, by the kernel's name."""

    name: str


class StackPointer(Record):
    """``$stack``."""


class StackEntry(Record):
    """``$stackN``: the N-th word at the stack pointer."""

    index: int


class ReturnValue(Record):
    """``$retval``: the return register, in return probes."""


class Comm(Record):
    """``$comm``: the task's name."""


class Immediate(Record):
    r"""``\N``: a constant."""

    value: int


class KernelValue(Record):
    """What only a probe of the kernel's own code reads: ``$arg2``, ``@jiffies``, ``file->f_pos``.

    ``rule`` names it among the bases of ``targets/kernel``, ``text`` is how it is written,
    ``loads`` the loads that it makes by itself. A ``symbol`` that makes none is its address.
    """

    rule: str
    text: str
    loads: int = 0


class Absolute(Record):
    """The address of ``@ADDR``: an absolute address of the traced process."""

    address: int


class Image(Record):
    """The address of ``@+OFF``: relative to the load bias of the probed file."""

    offset: int


class Deref(Record):
    """``+offset(base)``: what memory holds at base plus offset.

    ``user`` is ``+u``: user memory, read from a kernel probe.
    """

    base: Value
    offset: int
    user: bool = False


Value = (
    Register
    | StackPointer
    | StackEntry
    | ReturnValue
    | Comm
    | Immediate
    | KernelValue
    | Absolute
    | Image
    | Deref
)


def is_address(value: Value) -> bool:
    """Whether ``value`` is an address, of which the kernel can only give what it holds."""
    if isinstance(value, KernelValue):
        return value.rule == "symbol" and not value.loads
    return isinstance(value, Absolute | Image)


class Word(Record):
    """No type written: a machine word, printed in hexadecimal."""


class Scalar(Record):
    """``u32``, ``s8``, ``x64``: ``kind`` is u, s or x; ``bits`` 8, 16, 32 or 64."""

    kind: str
    bits: int


class Char(Record):
    """``char``: one byte printed as a character."""


class Bits(Record):
    """``bW@O/C``: ``width`` bits, ``offset`` from the least significant one of a container."""

    width: int
    offset: int
    container: int


class Text(Record):
    """``string``: bytes up to a NUL; ``user`` is ``ustring``."""

    user: bool = False


class Symbol(Record):
    """``symbol``: a kernel address as symbol+offset (kernel probes only); ``text``: ``symstr``."""

    text: bool = False


ELEMENTS = 64
"""Elements that an array has at most: MAX_ARRAY_LEN, kernel/trace/trace_probe.h, since 4.20."""


class Array(Record):
    """``T[count]``."""

    element: Scalar | Char | Bits | Text
    count: int


Store = Word | Scalar | Char | Bits | Text | Symbol | Array

_WORD_BYTES = 8  # long of a 64-bit kernel; the others are not supported


def fixed_bytes(store: Store) -> int:
    """Bytes of ``store`` in the event's fixed part; a text is a 4-byte reference there."""
    match store:
        case Text() | Symbol(True):
            return 4
        case Word() | Symbol():
            return _WORD_BYTES
        case Scalar(_, bits):
            return bits // 8
        case Char():
            return 1
        case Bits(_, _, container):
            return container // 8
        case Array(element, count):
            return fixed_bytes(element) * count
        case _:
            assert_never(store)


class Fetch(Record):
    """One fetch-arg without its name."""

    value: Value
    store: Store
