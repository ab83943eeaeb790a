"""Evaluates a fetch on given memory as the kernel's fetch program does.

It follows ``process_fetch_insn`` (kernel/trace/trace_probe_tmpl.h) and the readers of
kernel/trace/trace_uprobe.c, faults and truncation included. Memory can be a live process,
a core file, or bytes.
"""

from __future__ import annotations

from fetchc.ir.evaluate_steps import calculated
from fetchc.ir.fetch import (
    Absolute,
    Array,
    Bits,
    Calculated,
    Chosen,
    Comm,
    Contents,
    Cursor,
    Deref,
    ElementAddress,
    Fetch,
    Image,
    Immediate,
    KernelValue,
    OfEntry,
    OfHit,
    Part,
    Register,
    ReturnValue,
    Scalar,
    StackEntry,
    StackPointer,
    Text,
    ThreadPointer,
    Walk,
    Word,
    body,
    fixed_bytes,
    is_address,
    number,
)
from fetchc.ir.step_support import THREAD_POINTER, thread_address
from fetchc.record import Record, assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fetchc.ir.fetch import Store, Term, Value

    Read = Callable[[int, int], bytes | None]
    Element = int | bytes | None

__all__ = ["Fault", "Outcome", "State", "evaluate", "listing"]

_MASK = (1 << 64) - 1
_TEXT_BYTES = 4096  # MAX_STRING_SIZE, with the NUL
_CHUNK = 256  # text is read in pieces that do not cross a page


class State(Record):
    """A stopped thread: registers by the kernel's names, and ``read`` for its memory.

    ``read(address, size)`` gives the bytes that are there, which may be fewer than
    ``size``, or None. ``bias`` is what ``@+OFF`` counts from: the load bias of the probed
    file. ``stack`` and ``result`` name the registers that ``$stack`` and ``$retval`` mean.
    ``word_bytes`` is the size of the kernel's long. ``elapsed`` are the nanoseconds since the call
    began that returns, None where its entry was not seen, ``noted`` numbers of that entry.
    ``context`` is the address of what the kernel gives an eBPF program. ``process``, ``thread`` and
    ``cpu`` are numbers of the hit, ``task`` is the address of its task's structure,
    ``thread_pointer`` that of the program's thread.
    """

    registers: Mapping[str, int]
    read: Read
    bias: int = 0
    comm: bytes = b""
    stack: str = "sp"
    result: str = "ax"
    word_bytes: int = 8
    little_endian: bool = True
    elapsed: int | None = None
    context: int = 0
    process: int = 0
    thread: int = 0
    task: int = 0
    thread_pointer: int = 0
    cpu: int = 0
    noted: tuple[int, ...] = ()

    def wrapped(self, number: int) -> int:
        """``number`` in a word of the machine."""
        return number & (1 << 8 * self.word_bytes) - 1

    def number(self, raw: bytes, signed: bool = False) -> int:
        """The number whose bytes in memory are ``raw``."""
        return int.from_bytes(raw, "little" if self.little_endian else "big", signed=signed)


class Outcome(Record):
    """What the event holds: a number, a string without its NUL, or one such per element.

    ``faulted``: the last load failed, so that missing bytes of numbers are 0 and a string
    (or an element that is one) is None.
    """

    value: int | bytes | tuple[Element, ...] | None
    faulted: bool = False


class Fault(Record):
    """An inner load failed at ``address``: the event holds bytes of some earlier event."""

    address: int


def evaluate(fetch: Fetch, state: State) -> Outcome | Fault:
    """Run ``fetch``, which ``verify`` found sound, on ``state``."""
    value, store = fetch.value, fetch.store
    if isinstance(value, Comm):
        return Outcome(state.comm)
    if not isinstance(value, Deref):
        word = _base(value, state)
        return word if isinstance(word, Fault) else Outcome(_from_register(word, store, state))
    place = _address(value, state)
    if isinstance(place, Fault):
        return place
    match store:
        case Text():
            text = _text(place, state)
            return Outcome(text, text is None)
        case Array(Text(), count):
            return _texts(place, count, state)
        case Array(element, count):
            size = fixed_bytes(element)
            loads = [_load(place + size * index, size, state) for index in range(count)]
            values = tuple([_number(raw, element, state) for raw, _ in loads])
            return Outcome(values, any(faulted for _, faulted in loads))
        case _:
            raw, faulted = _load(place, _bytes(store, state), state)
            return Outcome(_number(raw, store, state), faulted)


def _address(load: Deref, state: State) -> int | Fault:
    # Of the outermost load, after all the inner ones; a loop, as chains can be deep.
    offsets = []
    value: Value = load
    while isinstance(value, Deref):
        offsets.append(value.offset)
        value = value.base
    base = _base(value, state)
    if isinstance(base, Fault):
        return base
    place = base + offsets.pop()
    while offsets:
        raw, faulted = _load(place, state.word_bytes, state)
        if faulted:
            return Fault(state.wrapped(place))
        place = state.number(raw) + offsets.pop()
    return state.wrapped(place)


def _base(value: Value, state: State) -> int | Fault:
    match value:
        case Register(name):
            return state.registers[name]
        case StackPointer():
            return state.registers[state.stack]
        case StackEntry(index):
            # get_user_stack_nth gives 0 for a word it cannot read.
            place = state.registers[state.stack] + state.word_bytes * index
            raw, faulted = _load(place, state.word_bytes, state)
            return 0 if faulted else state.number(raw)
        case ReturnValue():
            return state.registers[state.result]
        case Immediate(constant):
            return constant
        case Absolute(address):
            return address
        case Image(offset):
            return state.bias + offset
        case ElementAddress(address):
            return _term(address, state)
        case ThreadPointer():
            return _term(thread_address(value), state)
        case Comm() | Deref() | KernelValue() | Cursor() | Walk() | Contents():
            raise AssertionError(f"not the base of a number: {value!r}")
        case _:
            assert_never(value)


def _term(term: Term, state: State) -> int | Fault:
    # In 64 bits; a fault where one of its loads fails.
    match term:
        case int():
            return term & _MASK
        case Calculated(operation=operation, left=left, right=right):
            two = _terms((left, right), state)
            return two if isinstance(two, Fault) else calculated(operation, *two)
        case Chosen(condition=condition, nonzero=nonzero, zero=zero):
            three = _terms((condition, nonzero, zero), state)
            return three if isinstance(three, Fault) else three[1 if three[0] else 2]
        case Part(base=base, offset=offset, size=size, when=when):
            wanted = 1 if when is None else _term(when, state)
            if isinstance(wanted, Fault) or not wanted:
                return wanted
            start = _term(base, state)
            return start if isinstance(start, Fault) else _number_at(start + offset, size, state)
        case Deref():
            place = _address(term, state)
            return place if isinstance(place, Fault) else _number_at(place, 8, state)
        case OfHit(name) if name == THREAD_POINTER:
            return state.thread_pointer
        case OfHit() | OfEntry():
            raise AssertionError(f"no part of an address: {term!r}")
        case _:
            word = _base(term, state)
            return word if isinstance(word, Fault) else word & _MASK


def _terms(terms: tuple[Term, ...], state: State) -> list[int] | Fault:
    found = []
    for one in terms:
        value = _term(one, state)
        if isinstance(value, Fault):
            return value
        found.append(value)
    return found


def _number_at(place: int, size: int, state: State) -> int | Fault:
    raw, faulted = _load(place, size, state)
    return Fault(state.wrapped(place)) if faulted else state.number(raw)


def _load(address: int, size: int, state: State) -> tuple[bytes, bool]:
    # copy_from_user: bytes that cannot be read are 0, and the caller gets the error.
    raw = state.read(state.wrapped(address), size) or b""
    return raw.ljust(size, b"\0"), len(raw) < size


def _text(address: int, state: State) -> bytes | None:
    # strncpy_from_user: None where no NUL comes before the limit or before a hole.
    text = b""
    while len(text) < _TEXT_BYTES:
        start = state.wrapped(address + len(text))
        size = min(_CHUNK - start % _CHUNK, _TEXT_BYTES - len(text))
        piece = state.read(start, size) or b""
        end = piece.find(b"\0")
        if end >= 0:
            return text + piece[:end]
        if len(piece) < size:
            return None
        text += piece
    return None


def _texts(place: int, count: int, state: State) -> Outcome | Fault:
    texts = []
    for index in range(count):
        pointer = state.wrapped(place + state.word_bytes * index)
        raw, faulted = _load(pointer, state.word_bytes, state)
        if faulted:
            return Fault(pointer)  # this element and the later ones are stale
        texts.append(_text(state.number(raw), state))
    return Outcome(tuple(texts), None in texts)


def _from_register(value: int, store: Store, state: State) -> int:
    # A register is stored from its low end, whatever the byte order.
    size = _bytes(store, state)
    low = state.wrapped(value) & (1 << 8 * size) - 1
    return _number(low.to_bytes(size, "little" if state.little_endian else "big"), store, state)


def _number(raw: bytes, store: Store, state: State) -> int:
    value = state.number(raw, isinstance(store, Scalar) and store.kind == "s")
    if isinstance(store, Bits):
        return value >> store.offset & (1 << store.width) - 1
    return value


def _bytes(store: Store, state: State) -> int:
    return state.word_bytes if isinstance(store, Word) else fixed_bytes(store)


# ------------------------------------------------------------------------------
# A listing of a fetch, one step a line, for internal errors and explanations.


def listing(fetch: Fetch) -> str:
    """The steps of ``fetch`` from the innermost on, as the kernel takes them.

    ``+0(+8(%di)):string`` reads::

        %di
        load 8 bytes at +8
        load string at +0
    """
    loads: list[Deref] = []
    value: Value = fetch.value
    while isinstance(value, Deref):
        loads.append(value)
        value = value.base
    lines = [_start(value)]
    for position, load in enumerate(reversed(loads), 1):
        what = _stored(fetch.store) if position == len(loads) else "8 bytes"
        memory = "user memory " if load.user else ""
        sign, size = ("-", -load.offset) if load.offset < 0 else ("+", load.offset)
        lines.append(f"load {what} at {memory}{sign}{number(size)}")
    if not loads:
        lines.append(f"store {_stored(fetch.store)}")
    return "\n".join(lines)


def _start(value: Value) -> str:
    match value:
        case Absolute(address):
            return f"address {address:#x}"
        case Image(offset):
            return f"image {offset:+#x}"
        case KernelValue(text=text) if is_address(value):
            return f"symbol {text.removeprefix('@')}"
        case _:
            return body(Fetch(value, Word()))


def _stored(store: Store) -> str:
    match store:
        case Word():
            return "8 bytes"
        case Array(element, count):
            return f"{count} times {_stored(element)}"
        case Bits(width, offset, container):
            return f"{width} bits from bit {offset} of {container}"
        case _:
            # The text after the colon says it as well as any words.
            return body(Fetch(Deref(Absolute(0), 0), store)).partition(":")[2]
