"""Records of an event, made here from registers and memory as the kernel makes them of a probe.

The kernel runs the fetches of a uprobe. Where there is no uprobe (an execution breakpoint), the
same fetches run here, on the registers of the hit, and their record has the layout of an event of
tracefs: :class:`~fetchc.tracer.decode.Decoder` reads both.

Source: store_trace_args and process_fetch_insn of kernel/trace/trace_probe_tmpl.h, and
fetch_store_string of kernel/trace/trace_uprobe.c, Linux 6.18.
"""

from __future__ import annotations

from struct import Struct

from fetchc.ir.fetch import (
    Absolute,
    Array,
    Bits,
    Char,
    Comm,
    Deref,
    Fetch,
    Immediate,
    Register,
    ReturnValue,
    Scalar,
    StackEntry,
    StackPointer,
    Symbol,
    Text,
    Word,
    chain,
    fixed_bytes,
)
from fetchc.record import Record, assert_never
from fetchc.tracer.events import Field, Format
from fetchc.tracer.tracefs import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    from fetchc.ir.fetch import Store, Value
    from fetchc.tracer.events import Plan

    class Memory(Protocol):
        """The memory of a thread at a hit."""

        def read(self, address: int, size: int) -> bytes:
            """The bytes from ``address`` on that can be read, at most ``size``."""


__all__ = ["FetchedRecord", "Thread", "read_later", "record_format"]

_HEADER = Struct("<HBBiQ")  # common_type, common_flags, common_preempt_count, common_pid; address
_WORD = 8
_MASK = (1 << 64) - 1
_LONGEST = 4096  # MAX_STRING_SIZE: PATH_MAX
_ROOM = 0xFFFF  # bytes that an offset in a record reaches: the low half of a __data_loc word
_CHUNK = 256  # bytes of a text that are read at a time


class Thread(Record):
    """A thread at a hit: its registers by the kernel's names, its memory, its name (comm)."""

    number: int
    address: int
    registers: Mapping[str, int]
    memory: Memory
    comm: bytes


def record_format(number: int, plan: Plan) -> Format:
    """The format of the records that :class:`FetchedRecord` makes of the plan's fetches."""
    found = [Field("__probe_ip", 8, 8, False, None, False)]
    offset = _HEADER.size
    for name, fetch in plan.fields[0]:
        store = fetch.store
        element = store.element if isinstance(store, Array) else store
        size = fixed_bytes(element)
        signed = isinstance(element, Scalar) and element.kind == "s"
        count = store.count if isinstance(store, Array) else None
        found.append(Field(name, offset, size, signed, count, isinstance(element, Text)))
        offset += size * (count or 1)
    return Format(number, plan.event, tuple(found))


def read_later(plan: Plan) -> frozenset[str]:
    """The labels of the values that are read behind a pointer, in memory that is not the stack's.

    That memory is read after the hit, when the program may have changed it.
    """
    fields = plan.fields[0] if plan.in_memory else ()
    later = {name for name, fetch in fields if _is_read_later(fetch.value)}
    return frozenset([one.label for one in plan.values if later & set(_names(one.shape))])


def _is_read_later(value: Value) -> bool:
    base, loads = chain(value)
    # The words of the stack are copied with the registers.
    return len(loads) > isinstance(base, StackPointer)


def _names(part: object) -> list[str]:
    match part:
        case str():
            return [part]
        case Record():
            names: tuple[str, ...] = type(part).__match_args__
            return [found for name in names for found in _names(getattr(part, name))]
        case tuple():
            return [found for one in part for found in _names(one)]
        case _:
            return []


class _Fault(Exception):
    """Memory that cannot be read."""


class FetchedRecord:
    """Makes the records of one event out of its fetches."""

    def __init__(self, number: int, fields: Sequence[tuple[str, Fetch]]) -> None:
        self._number = number
        self._fetches = [fetch for _, fetch in fields]
        self._fixed = _HEADER.size + sum([fixed_bytes(each.store) for each in self._fetches])

    def make(self, thread: Thread) -> bytes:
        """The record of a hit; what cannot be read is 0, or a text of no bytes."""
        record = bytearray(_HEADER.pack(self._number & 0xFFFF, 0, 0, thread.number, thread.address))
        strings = _Strings(self._fixed, self._room(thread))
        for fetch in self._fetches:
            size = fixed_bytes(fetch.store)
            try:
                record += _stored(fetch, thread, strings)
            except _Fault:
                count = fetch.store.count if isinstance(fetch.store, Array) else 1
                if isinstance(_element(fetch.store), Text):
                    record += strings.none() * count
                else:
                    record += bytes(size)
        return bytes(record + strings.content)

    def _room(self, thread: Thread) -> int:
        # What the kernel reserves: the texts' own lengths, of long ones nothing.
        room = 0
        for fetch in self._fetches:
            if isinstance(_element(fetch.store), Text):
                room += sum([len(one) for one in _texts(fetch, thread) if one is not None])
        return min(room, _ROOM - self._fixed)


class _Strings:
    """The texts of a record, one behind the other; each takes what room is left."""

    def __init__(self, start: int, room: int) -> None:
        self.content = bytearray()
        self._start = start
        self._room = max(room, 0)

    def add(self, address: int, thread: Thread) -> bytes:
        """The word (__data_loc) of the text at an address, with its end."""
        left = self._room - len(self.content)
        if left <= 0:
            return self.none()
        text = _string(thread, address, left)
        if text is None:
            return self.none()
        if len(text) >= left:
            text = text[: left - 1]
        at = self._start + len(self.content)
        self.content += text + b"\0"
        return ((len(text) + 1) << 16 | at).to_bytes(4, "little")

    def none(self) -> bytes:
        """The word of a text that was not read."""
        return (self._start + len(self.content)).to_bytes(4, "little")


def _element(store: Store) -> Store:
    return store.element if isinstance(store, Array) else store


def _string(thread: Thread, address: int, limit: int) -> bytes | None:
    # Without its end; None where not one byte can be read up to it.
    found = b""
    while len(found) < limit:
        part = thread.memory.read((address + len(found)) & _MASK, min(_CHUNK, limit - len(found)))
        end = part.find(b"\0")
        if end >= 0:
            return found + part[:end]
        if not part:
            return None
        found += part
    return found


def _texts(fetch: Fetch, thread: Thread) -> list[bytes | None]:
    # With their end, as strnlen_user counts them; empty where one is longer than the kernel copies.
    found: list[bytes | None] = []
    try:
        addresses = _text_addresses(fetch, thread)
    except _Fault:
        return []
    for address in addresses:
        if address is None:
            found.append(thread.comm + b"\0")
            continue
        text = _string(thread, address, _LONGEST)
        found.append(None if text is None or len(text) >= _LONGEST else text + b"\0")
    return found


def _text_addresses(fetch: Fetch, thread: Thread) -> list[int | None]:
    # None: the name of the task.
    base, loads = chain(fetch.value)
    if isinstance(base, Comm):
        return [None]
    if not isinstance(fetch.store, Array):
        value = _base(base, thread)
        for load in loads[:-1]:
            value = _word(thread, value + load.offset)
        return [value + loads[-1].offset] if loads else [value]
    if not loads:
        raise _Fault  # the kernel takes an array of texts in memory only
    # The last load is of the pointers to the texts; texts themselves are one load further.
    value = _base(base, thread)
    for load in loads[:-1]:
        value = _word(thread, value + load.offset)
    start = value + loads[-1].offset
    found: list[int | None] = []
    for at in range(fetch.store.count):
        found.append(_word(thread, start + at * _WORD))
    return found


def _stored(fetch: Fetch, thread: Thread, strings: _Strings) -> bytes:
    store = fetch.store
    element = _element(store)
    if isinstance(element, Text):
        words = b""
        for address in _text_addresses(fetch, thread):
            if address is None:
                words += _of_comm(thread, strings)
            else:
                words += strings.add(address, thread)
        return words
    base, loads = chain(fetch.value)
    value = _base(base, thread)
    if not loads:
        return _number(element, (value & _MASK).to_bytes(_WORD, "little")[: fixed_bytes(element)])
    for load in loads[:-1]:
        value = _word(thread, value + load.offset)
    address, size = value + loads[-1].offset, fixed_bytes(element)
    if not isinstance(store, Array):
        return _number(element, _bytes(thread, address, size))
    found = b""
    for at in range(store.count):
        try:
            found += _number(element, _bytes(thread, address + at * size, size))
        except _Fault:
            found += bytes(size)
    return found


def _of_comm(thread: Thread, strings: _Strings) -> bytes:
    at = len(strings.content) + strings._start
    left = strings._room - len(strings.content)
    text = thread.comm[: max(left - 1, 0)]
    if left <= 0:
        return strings.none()
    strings.content += text + b"\0"
    return ((len(text) + 1) << 16 | at).to_bytes(4, "little")


def _number(store: Store, raw: bytes) -> bytes:
    match store:
        case Bits(width, offset, container):
            value = int.from_bytes(raw, "little") >> offset & ((1 << width) - 1)
            return value.to_bytes(container // 8, "little")
        case Word() | Scalar() | Char() | Text() | Array() | Symbol():
            return raw
        case _:
            assert_never(store)


def _base(value: Value, thread: Thread) -> int:
    match value:
        case Register(name):
            return thread.registers[name]
        case StackPointer():
            return thread.registers["sp"]
        case ReturnValue():
            return thread.registers["ax"]
        case Immediate(constant):
            return constant
        case Absolute(address):
            return address
        case StackEntry() | Deref():
            raise AssertionError("a load below the base of a chain")
        case _:
            raise refused("FC0705", "a breakpoint cannot fetch what only the kernel's probes have")


def _word(thread: Thread, address: int) -> int:
    return int.from_bytes(_bytes(thread, address, _WORD), "little")


def _bytes(thread: Thread, address: int, size: int) -> bytes:
    found = thread.memory.read(address & _MASK, size)
    if len(found) < size:
        raise _Fault
    return found
