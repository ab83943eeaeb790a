"""The text of a fetch, in the notation of the kernel: a fetch-arg without its name.

It stands beside the nodes, not in ``emit``, because the kernel's limits count its bytes:
``verify`` needs it. The output formats, which are many, are ``emit``'s.
"""

from __future__ import annotations

from fetchc.diag.errors import reject
from fetchc.ir.nodes import (
    Absolute,
    Array,
    Bits,
    Char,
    Comm,
    Deref,
    Fetch,
    Image,
    Immediate,
    KernelValue,
    Register,
    ReturnValue,
    Scalar,
    StackEntry,
    StackPointer,
    Symbol,
    Text,
    Word,
    is_address,
)
from fetchc.record import assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.ir.nodes import Store, Value

__all__ = ["body", "number", "type_text"]

_COMM = Fetch(Comm(), Text())


def body(fetch: Fetch) -> str:
    """The canonical text of ``fetch``.

    Offsets and constants are in decimal unless hexadecimal is shorter; addresses are in
    hexadecimal, as symbol tables show them.
    ``$comm`` needs no type and a word has none. An address that is not loaded from has
    no text (``@ADDR`` is a load): FC0405.
    """
    if fetch == _COMM:
        return "$comm"
    return _value(fetch.value) + _suffix(fetch.store)


def type_text(store: Store) -> str:
    """What stands behind the colon, of a word what the kernel takes it for."""
    return _suffix(store)[1:] or "x64"


def _value(value: Value) -> str:
    # A chain can be as deep as its text is long: a loop, for no stack to overflow.
    opening: list[str] = []
    while isinstance(value, Deref) and not is_address(value.base):
        sign, size = ("-", -value.offset) if value.offset < 0 else ("+", value.offset)
        opening.append(f"{sign}{'u' if value.user else ''}{number(size)}(")
        value = value.base
    return "".join(opening) + _innermost(value) + ")" * len(opening)


def _innermost(value: Value) -> str:
    match value:
        case Register(name):
            return "%" + name
        case StackPointer():
            return "$stack"
        case StackEntry(index):
            return f"$stack{index}"  # decimal only
        case ReturnValue():
            return "$retval"
        case Comm():
            return "$comm"
        case Immediate(constant):
            return "\\" + number(constant)
        case KernelValue() if is_address(value):
            raise reject("FC0405", "the kernel cannot fetch an address, only what it holds")
        case KernelValue(_, text):
            return text
        case Deref(Absolute(address), offset):
            return f"@{address + offset:#x}"
        case Deref(Image(start), offset):
            return f"@+{start + offset:#x}"  # a negative one reads @+-0x8
        case Deref(KernelValue("symbol", text, 0), offset):
            return f"{text}{offset:+d}" if offset else text
        case Absolute() | Image():
            raise reject("FC0405", "the kernel cannot fetch an address, only what it holds")
        case Deref():  # taken apart by the caller
            raise AssertionError("a dereference below the innermost value")
        case _:
            assert_never(value)


def _suffix(store: Store) -> str:
    match store:
        case Word():
            return ""
        case Array(element, count):
            return f"{_suffix(element)}[{count}]"
        case Scalar(kind, bits):
            return f":{kind}{bits}"
        case Char():
            return ":char"
        case Bits(width, offset, container):
            return f":b{width}@{offset}/{container}"
        case Text(user):
            return ":ustring" if user else ":string"
        case Symbol(text):
            return ":symstr" if text else ":symbol"
        case _:
            assert_never(store)


def number(value: int) -> str:
    """``value`` in decimal, or in hexadecimal where that is shorter."""
    decimal, hexadecimal = str(value), f"{value:#x}"
    return hexadecimal if len(hexadecimal) < len(decimal) else decimal
