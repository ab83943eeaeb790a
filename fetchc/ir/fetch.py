"""Nodes of a fetch: a value, how the kernel stores it, what the reader makes of it.

The nodes mirror the stages of the kernel's fetch program (load, dereferences, store,
modify, loop: kernel/trace/trace_probe.h, ``enum fetch_op``), so that a verifier can
apply a kernel's limits exactly. ``Absolute`` and ``Image`` are addresses: the kernel
has no way to give an address itself, so each is below a ``Deref`` (``@ADDR`` *is*
a load).
"""

from __future__ import annotations

from fetchc.diag.diagnostic import reject
from fetchc.record import Record, assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ELEMENTS",
    "TEXT_BYTES",
    "Absolute",
    "Array",
    "Bits",
    "Calculated",
    "Char",
    "Chosen",
    "Comm",
    "Contents",
    "Cursor",
    "Decode",
    "Deref",
    "ElementAddress",
    "Fetch",
    "Image",
    "Immediate",
    "KernelValue",
    "Load",
    "OfEntry",
    "OfHit",
    "Part",
    "Register",
    "ReturnValue",
    "Scalar",
    "StackEntry",
    "StackPointer",
    "Store",
    "Symbol",
    "Term",
    "Text",
    "ThreadPointer",
    "Value",
    "Walk",
    "Word",
    "body",
    "chain",
    "count_of",
    "element_of",
    "fixed_bytes",
    "is_address",
    "mapped",
    "number",
    "relocated",
    "type_text",
]


_WORD_BYTES = 8  # long of a 64-bit kernel; the others are not supported


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


class ThreadPointer(Record):
    """What thread-local variables count from in the thread; only eBPF programs can fetch it.

    It is the thread pointer where the word there is its own address, and else cannot be read. The
    word at ``word``, which is not 0, is added to it.
    """

    word: Absolute | Image | None = None


class Deref(Record):
    """``+offset(base)``: the memory at base plus offset.

    ``user`` is ``+u``: user memory, read from a kernel probe.
    """

    base: Value
    offset: int
    user: bool = False


class Cursor(Record):
    """The word ``number`` that a :class:`Walk` carries from one round to the next."""

    number: int


class Walk(Record):
    """The first entries of a container, found in rounds; only eBPF programs can fetch it.

    There is a cursor for each of ``places``, and after those one for each word of ``start``, which
    has that of ``next`` in the next round. A round whose ``end`` is not 0 is none any more: nothing
    else of it is evaluated. The others have an entry where ``found`` is not 0. Only then the first
    cursors are ``places``, and what is fetched of the entry is ``fields``, by cursors.

    ``most`` entries are recorded, of ``rounds`` rounds at most. ``count`` is the number of all
    entries, ``version`` what changes when they do; both are evaluated before and after, of
    cursors that stay as they are; and so is ``writing``, which is not 0 while somebody changes it.
    Without a ``count`` the rounds go on, and count the entries. ``twice``: all of it is done a
    second time, and has to find the same: what another thread changes meanwhile is seen by that.
    """

    start: tuple[Term, ...]
    end: Term
    found: Term
    places: tuple[Term, ...]
    next: tuple[Term, ...]
    count: Term | None
    version: Term | None
    writing: Term | None
    fields: tuple[tuple[str, Fetch], ...]
    most: int
    rounds: int
    twice: bool


class Contents(Record):
    """As many bytes as ``size`` says, ``most`` of them at most; only eBPF programs can fetch it.

    The first of them is where ``start`` loads from. It is recorded as a string of any bytes.
    Without a ``size`` it is a string that ends with its NUL, or with the array of ``limit`` bytes
    that it is in (None: in no array).
    """

    start: Deref
    size: Term | None
    most: int
    limit: int | None = None


class ElementAddress(Record):
    """The address of an element by an index that is computed; only eBPF programs have it.

    ``address`` fails where the index is out of range, and with it each load from there.
    """

    address: Term


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
    | Cursor
    | Walk
    | Contents
    | ElementAddress
    | ThreadPointer
)


class Part(Record):
    """``size`` bytes of memory, ``offset`` bytes from ``base``, as an unsigned number.

    They are read where ``when`` is not 0; else they are 0. None: always. ``user`` is as in
    :class:`Deref`.
    """

    base: Term
    offset: int
    size: int
    when: Term | None = None
    user: bool = False


class Calculated(Record):
    """A number of 64 bits: ``operation`` is one of :data:`fetchc.ir.steps.OPERATIONS`."""

    operation: str
    left: Term
    right: Term


class Chosen(Record):
    """``nonzero`` where the condition is not 0, else ``zero``; both are evaluated."""

    condition: Term
    nonzero: Term
    zero: Term


class OfHit(Record):
    """What the kernel says of a hit: the number of its ``process``, ``thread`` or ``cpu``.

    ``elapsed``: the nanoseconds since the call began that returns. ``comm`` and ``comm8``: the two
    words of the task's name.
    """

    name: str


class OfEntry(Record):
    """The number that was noted, as that ``number``, at the entry of the call that returns."""

    number: int


Term = Value | Part | Calculated | Chosen | OfHit | OfEntry | int
"""What a walk computes with: a value of 64 bits, which a load as :class:`Deref` gives, too."""


def is_address(value: Value) -> bool:
    """Whether ``value`` is an address, of which the kernel gives only the memory there."""
    if isinstance(value, KernelValue):
        return value.rule == "symbol" and not value.loads
    return isinstance(value, Absolute | Image)


class Load(Record):
    """One load of a chain: of what is ``offset`` bytes from the address before.

    ``user`` is as in :class:`Deref`.
    """

    offset: int
    user: bool


def chain(value: Value, word_bytes: int = _WORD_BYTES) -> tuple[Value, tuple[Load, ...]]:
    """What a value begins at, and the loads that follow, in their order.

    A word of the stack is a load at the stack pointer. The last load is as wide as the value is
    stored, those before it load an address.
    """
    loads: list[Load] = []
    while isinstance(value, Deref):
        loads.append(Load(value.offset, value.user))
        value = value.base
    if isinstance(value, StackEntry):
        loads.append(Load(word_bytes * value.index, False))
        value = StackPointer()
    return value, tuple(reversed(loads))


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


TEXT_BYTES = 4096
"""The most bytes of a string, with its NUL, that the kernel fetches: PATH_MAX, linux/limits.h."""


class Array(Record):
    """``T[count]``."""

    element: Scalar | Char | Bits | Text
    count: int


Store = Word | Scalar | Char | Bits | Text | Symbol | Array


def fixed_bytes(store: Store) -> int:
    """Bytes of ``store`` in the event's fixed part; a string is a 4-byte reference there."""
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


def element_of(store: Store) -> Word | Scalar | Char | Bits | Text | Symbol:
    """What an array has several of; of others the store itself."""
    return store.element if isinstance(store, Array) else store


def count_of(store: Store) -> int | None:
    """How many elements an array has; None of others."""
    return store.count if isinstance(store, Array) else None


class Fetch(Record):
    """One fetch-arg without its name."""

    value: Value
    store: Store


def relocated(value: Value, image: int) -> Value:
    """The value in a process that has the file's image at that address: by addresses of memory."""
    match value:
        case Deref(base=base, offset=offset, user=user):
            return Deref(relocated(base, image), offset, user)
        case Image(offset=offset):
            return Absolute(image + offset)
        case ElementAddress(address=address):
            return ElementAddress(mapped(address, lambda one: relocated(one, image)))
        case ThreadPointer(word=Image(offset=offset)):
            return ThreadPointer(Absolute(image + offset))
        case _:
            return value


def mapped(term: Term, change: Callable[[Value], Term]) -> Term:
    """The term with what ``change`` makes of each value that it is computed from."""
    match term:
        case int() | OfHit() | OfEntry():
            return term
        case Part(base=base, when=when):
            moved = None if when is None else mapped(when, change)
            return term.replaced(base=mapped(base, change), when=moved)
        case Calculated(operation=operation, left=left, right=right):
            return Calculated(operation, mapped(left, change), mapped(right, change))
        case Chosen(condition=condition, nonzero=nonzero, zero=zero):
            return Chosen(*[mapped(one, change) for one in (condition, nonzero, zero)])
        case _:
            return change(term)


# ------------------------------------------------------------------------------
# What the reader of an event makes of a fetched value; the kernel knows none of it.


class Decode(Record):
    """How to turn the fetched number, text or list into the value of the source.

    ``kind``: integer, bool, char, enum, float, pointer, reference (a pointer that is null where it
    is 0), symbol, text, address (a number that people read in hexadecimal), utf-16 (a string in
    units of two bytes), bytes (as a string with a length, of any bytes), turned (an integer whose
    bytes are in the order of the network, for a trace alone), list (what a walk finds).
    ``bits`` is the width of the value (a signed bit field is extended from it),
    ``signed`` whether it is. ``enumerators`` for enums. ``count`` for lists: the kernel
    prints a list of that many. ``limit`` is a string's greatest length in bytes, where the type
    bounds it (a full ``char[4]`` has no NUL, and the kernel reads on to the next one).
    ``flags``: a value of the enum is a set of enumerators. ``otherwise`` is the name of every
    value that no enumerator has. ``unit``: the number is one of that unit (``ms``), for a trace
    alone.
    """

    kind: str
    bits: int | None = None
    signed: bool = False
    count: int | None = None
    enumerators: tuple[tuple[str, int], ...] = ()
    limit: int | None = None
    flags: bool = False
    otherwise: str = ""
    unit: str = ""


# ------------------------------------------------------------------------------
# The text of a fetch, in the notation of the kernel: a fetch-arg without its name.
#
# It is beside the nodes, not in ``emit``, because the kernel's limits count its bytes:
# ``verify`` needs it. The output formats, which are many, are ``emit``'s.

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
    """What follows the colon: the type; for an alias, the type that the kernel takes it for."""
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
        case ElementAddress():
            raise reject("FC0314", "a fetch-arg cannot compute the place of an element")
        case ThreadPointer():
            raise reject("FC0403", "a fetch-arg cannot read the thread pointer")
        case Cursor() | Walk() | Contents():
            raise reject("FC0314", "a fetch-arg cannot read what is found by a walk")
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
