"""Which fetches the steps of an eBPF program can make, and what in the kernel they begin at."""

from __future__ import annotations

from fetchc.ir.fetch import (
    Calculated,
    Chosen,
    Contents,
    Cursor,
    Deref,
    ElementAddress,
    Fetch,
    KernelValue,
    OfEntry,
    OfHit,
    Part,
    Symbol,
    Text,
    ThreadPointer,
    Walk,
    Word,
    body,
    chain,
    fixed_bytes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fetchc.ir.fetch import Store, Term, Value
    from fetchc.ir.steps import Slot

    Symbols = Sequence[tuple[str, int]]

__all__ = [
    "CALL_FRAME",
    "CPU_OFFSETS",
    "TASK",
    "TASK_NAME",
    "THREAD_POINTER",
    "begins_at",
    "has_cursor",
    "is_array",
    "symbol_of",
    "thread_address",
    "unsupported",
    "values_in",
]

TASK_NAME = "$COMM"
"""The task's name, where ``$comm`` is a field of the event."""

TASK = "$current"
"""The task that runs."""

CALL_FRAME = "$frame"
"""Where the frame of a call is for which the kernel runs programs at both ends, without a
breakpoint: it gives both of them the same context, in that frame.
"""

CPU_OFFSETS = "__per_cpu_offset"
"""Of the kernel: by the processor's number, how far its own objects are from their symbols."""

THREAD_POINTER = "thread_pointer"
"""Of a task: the thread pointer of its program."""

_OF_SYMBOLS = ("symbol", "per_cpu")


def unsupported(fetch: Fetch, context: Sequence[Slot] = (), symbols: Symbols = ()) -> str | None:
    """Why no steps give what ``fetch`` does, in words that complete "because"; None: they do.

    ``context`` is what the kernel gives the program, and ``symbols`` are the kernel's: see
    :func:`steps_of`.
    """
    value: Value = fetch.value
    if isinstance(value, Walk):
        starts = [one for term in value.start for one in values_in(term)]
        return _unsupported_one(starts, context, symbols)
    if isinstance(value, Contents):
        size = () if value.size is None else values_in(value.size)
        return _unsupported_one([value.start, *size], context, symbols)
    while isinstance(value, Deref):
        value = value.base
    if isinstance(value, ElementAddress):
        return _unsupported_one(values_in(value.address), context, symbols)
    if isinstance(value, KernelValue) and value.rule in _OF_SYMBOLS:
        if symbol_of(value) not in dict(symbols):
            shown = value.text if value == fetch.value else body(fetch)  # an address has no body
            return f"`{shown}` is at a symbol of the kernel"
    elif isinstance(value, KernelValue) and value.text not in (TASK_NAME, TASK, CALL_FRAME):
        slot = next((one for one in context if one.name == value.text), None)
        if slot is None:
            return f"`{body(fetch)}` is a value of the kernel"
        if value is fetch.value and not _is_in(fetch.store, slot):
            return f"the field of `{body(fetch)}` is another kind of value"
    if isinstance(fetch.store, Symbol):
        return f"`{body(fetch)}` is the name of a kernel address"
    return None


def _unsupported_one(
    values: Iterable[Value], context: Sequence[Slot], symbols: Symbols
) -> str | None:
    reasons = [unsupported(Fetch(one, Word()), context, symbols) for one in values]
    return next(filter(None, reasons), None)


def begins_at(fetch: Fetch) -> Iterator[Value]:
    """What the loads of a fetch begin at; of a container, those before its walk."""
    value = fetch.value
    match value:
        case Walk(start=start):
            starts = [one for term in start for one in values_in(term)]
        case Contents(start=first, size=size):
            starts = [first, *(() if size is None else values_in(size))]
        case _:
            starts = [value]
    for one in starts:
        begin = chain(one)[0]
        if isinstance(begin, ThreadPointer) and begin.word is not None:
            yield begin.word
        if isinstance(begin, ElementAddress):
            for inner in values_in(begin.address):
                yield from begins_at(Fetch(inner, Word()))
        else:
            yield begin


def values_in(term: Term) -> Iterator[Value]:
    """The values that a term is computed from."""
    match term:
        case int() | OfHit() | OfEntry():
            return
        case Calculated(left=left, right=right):
            parts: tuple[Term, ...] = (left, right)
        case Chosen(condition=condition, nonzero=nonzero, zero=zero):
            parts = (condition, nonzero, zero)
        case Part(base=base, when=when):
            parts = (base, 0 if when is None else when)
        case _:
            yield term
            return
    for part in parts:
        yield from values_in(part)


def has_cursor(term: Term) -> bool:
    """Whether a term is computed from what a walk has found: an element, or a word of one."""
    for value in values_in(term):
        start = chain(value)[0]
        if isinstance(start, ElementAddress) and has_cursor(start.address):
            return True
        if isinstance(start, Cursor):
            return True
    return False


def thread_address(value: ThreadPointer) -> Term:
    """The address that ``value`` is, as a term."""
    from fetchc.ir.arithmetic import Number
    from fetchc.ir.term_operators import Numeral, calculate, fails_where, negated

    pointer = OfHit(THREAD_POINTER)
    own = calculate("eq", Part(pointer, 0, 8), pointer)
    address = fails_where(negated(own), Numeral(pointer, Number(64, False)), None)
    if value.word is not None:
        distance = Deref(value.word, 0)
        moved = address.replaced(term=calculate("add", address.term, distance))
        address = fails_where(negated(distance), moved, None)
    return address.term


def _is_in(store: Store, slot: Slot) -> bool:
    # Whether the bytes of a field are all that is fetched of it.
    if isinstance(store, Text):
        return slot.text or (slot.count is not None and slot.size == 1)
    return not slot.text and fixed_bytes(store) <= slot.size * (slot.count or 1)


def symbol_of(value: KernelValue) -> str | None:
    """The symbol that a value begins at: of ``@jiffies``, of ``this_cpu_ptr(@runqueues)``."""
    if value.rule not in _OF_SYMBOLS or value.loads:
        return None
    return value.text.partition("@")[2].removesuffix(")")


def is_array(value: Value) -> bool:
    """Whether a value is the address of an array in the record of an event."""
    return isinstance(value, KernelValue) and value.rule == "event_array"
