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
    count_of,
    element_of,
    fixed_bytes,
)
from fetchc.record import Record, assert_never
from fetchc.tracer.events import Field, Format
from fetchc.tracer.tracefs import refused
from fetchc.tracer.value_shapes import texts_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    from fetchc.ir.fetch import Load, Store, Value
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
_CHUNK = 256  # bytes of a string that are read at a time


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
        element, count = element_of(fetch.store), count_of(fetch.store)
        size = fixed_bytes(element)
        signed = isinstance(element, Scalar) and element.kind == "s"
        found.append(Field(name, offset, size, signed, count, isinstance(element, Text)))
        offset += size * (count or 1)
    return Format(number, plan.event, tuple(found))


def read_later(plan: Plan) -> frozenset[str]:
    """The labels of the values that are read behind a pointer, in memory that is not the stack's.

    That memory is read after the hit, when the program may have changed it.
    """
    fields = plan.fields[0] if plan.in_memory and not plan.at_hit else ()
    later = {name for name, fetch in fields if _is_read_later(fetch.value)}
    return frozenset([one.label for one in plan.values if later & texts_in(one.shape)])


def _is_read_later(value: Value) -> bool:
    base, loads = chain(value)
    # The words of the stack are copied with the registers.
    return len(loads) > isinstance(base, StackPointer)


class _Fault(Exception):
    """Memory that cannot be read."""


class FetchedRecord:
    """Makes the records of one event out of its fetches."""

    def __init__(self, number: int, fields: Sequence[tuple[str, Fetch]]) -> None:
        self.number = number
        """Of the event, in its records."""

        self._fetches = [fetch for _, fetch in fields]
        self._fixed = _HEADER.size + sum([fixed_bytes(each.store) for each in self._fetches])

    def make(self, thread: Thread) -> bytes:
        """The record of a hit; what cannot be read is 0, or a string of no bytes."""
        record = bytearray(_HEADER.pack(self.number & 0xFFFF, 0, 0, thread.number, thread.address))
        strings = _Strings(self._fixed, self._room(thread))
        for fetch in self._fetches:
            try:
                record += _stored(fetch, thread, strings)
            except _Fault:
                if isinstance(element_of(fetch.store), Text):
                    record += strings.none() * (count_of(fetch.store) or 1)
                else:
                    record += bytes(fixed_bytes(fetch.store))
        return bytes(record + strings.content)

    def _room(self, thread: Thread) -> int:
        # What the kernel reserves: the strings' own lengths, of long ones nothing.
        room = 0
        for fetch in self._fetches:
            if isinstance(element_of(fetch.store), Text):
                room += sum([len(one) for one in _texts(fetch, thread) if one is not None])
        return min(room, _ROOM - self._fixed)


class _Strings:
    """The strings of a record, one after the other; each takes what room is left."""

    def __init__(self, start: int, room: int) -> None:
        self.content = bytearray()
        self._start = start
        self._room = max(room, 0)

    def add(self, address: int, thread: Thread) -> bytes:
        """The word (__data_loc) of the text at an address, with its end."""
        left = self._room - len(self.content)
        text = _string(thread, address, left) if left > 0 else None
        return self.none() if text is None else self.put(text)

    def put(self, text: bytes) -> bytes:
        """The word of ``text``, of which as much is copied as there is room for."""
        left = self._room - len(self.content)
        if left <= 0:
            return self.none()
        at = self._start + len(self.content)
        text = text[: left - 1]
        self.content += text + b"\0"
        return ((len(text) + 1) << 16 | at).to_bytes(4, "little")

    def none(self) -> bytes:
        """The word of a string that was not read."""
        return (self._start + len(self.content)).to_bytes(4, "little")


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
    address = _address(base, loads, thread)
    count = count_of(fetch.store)
    if count is None or (count == 1 and not loads):
        return [address]
    if not loads:
        raise _Fault  # the kernel has no load to repeat for the next text
    # The last load is of the pointers to the strings; strings themselves are one load further.
    return [_word(thread, address + at * _WORD) for at in range(count)]


def _address(base: Value, loads: Sequence[Load], thread: Thread) -> int:
    # What the last load is of; the base itself where there is none.
    value = _base(base, thread)
    for load in loads[:-1]:
        value = _word(thread, value + load.offset)
    return value + loads[-1].offset if loads else value


def _stored(fetch: Fetch, thread: Thread, strings: _Strings) -> bytes:
    element, count = element_of(fetch.store), count_of(fetch.store)
    if isinstance(element, Text):
        words = b""
        for text_at in _text_addresses(fetch, thread):
            words += strings.put(thread.comm) if text_at is None else strings.add(text_at, thread)
        return words
    base, loads = chain(fetch.value)
    address, size = _address(base, loads, thread), fixed_bytes(element)
    if not loads:
        return _number(element, (address & _MASK).to_bytes(_WORD, "little")[:size])
    found = b""
    for at in range(1 if count is None else count):
        # Of what is only there in part the kernel has that part, with zeros after it.
        part = thread.memory.read((address + at * size) & _MASK, size)
        found += _number(element, part.ljust(size, b"\0"))
    return found


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
    found = thread.memory.read(address & _MASK, _WORD)
    if len(found) < _WORD:
        raise _Fault
    return int.from_bytes(found, "little")
