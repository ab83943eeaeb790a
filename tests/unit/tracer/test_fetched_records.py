"""Records made from registers and memory, compared with an interpreter of the kernel's fetches."""

from __future__ import annotations

from hypothesis import assume, example, given, reject
from hypothesis import strategies as st

from fetchc.conformance.machine import TEXT_BYTES, Machine, Refused, run
from fetchc.ir.fetch import (
    Array,
    Bits,
    Char,
    Comm,
    Decode,
    Deref,
    Fetch,
    Image,
    Immediate,
    Register,
    Scalar,
    StackEntry,
    StackPointer,
    Text,
    Word,
    body,
)
from fetchc.tracer.events import COMM, EventValue, Plan
from fetchc.tracer.fetched_records import FetchedRecord, Thread, read_later, record_format
from fetchc.tracer.value_shapes import Leaf
from tests.support.fetches import fetches, memory

NAME = (COMM, Fetch(Comm(), Text()))
WORD = Fetch(Register("di"), Word())


def plan_of(*fetched: tuple[str, Fetch]) -> Plan:
    values = tuple([EventValue(name, Leaf(name, Decode("integer"))) for name, _ in fetched])
    return Plan("g", "e", "/f", "f", "entry", 0, (), values, (), ((*fetched, NAME),))


def shown(fetch: Fetch, record: bytes, offset: int) -> str:
    """The field as the kernel prints it."""
    store = fetch.store
    element = store.element if isinstance(store, Array) else store
    count = store.count if isinstance(store, Array) else 1
    parts = [_part(element, record, offset, number) for number in range(count)]
    return "{" + ",".join(parts) + "}" if isinstance(store, Array) else parts[0]


def _part(element: object, record: bytes, offset: int, number: int) -> str:
    if isinstance(element, Text):
        word = int.from_bytes(record[offset + 4 * number :][:4], "little")
        start, size = word & 0xFFFF, word >> 16
        text = record[start : start + size]
        return f'"{text[:-1].decode("latin-1")}"' if size and text[-1:] == b"\0" else "(fault)"
    bits = getattr(element, "bits", None) or getattr(element, "container", None)
    size = (bits or (8 if isinstance(element, Char) else 64)) // 8
    raw = record[offset + size * number :][:size]
    if isinstance(element, Char):
        return f"'{chr(raw[0])}'"
    kind = (
        element.kind if isinstance(element, Scalar) else "u" if isinstance(element, Bits) else "x"
    )
    value = int.from_bytes(raw, "little", signed=kind == "s")
    return f"{value:#x}" if kind == "x" else str(value)


def has_image(fetch: Fetch) -> bool:
    value = fetch.value
    while isinstance(value, Deref):
        value = value.base
    return isinstance(value, Image)


@given(fetches(), st.integers(0, 1 << 32))
@example(Fetch(Immediate(0x10000), Array(Text(), 1)), 0)
@example(Fetch(Deref(Register("di"), 0), Array(Text(), 1)), 0)
@example(Fetch(Deref(Deref(Deref(StackEntry(2), 0), 0), 0), Word()), (1 << 32) - 1)  # one byte
@example(Fetch(Deref(Deref(Register("di"), 0), 8), Array(Text(), 3)), 0)
def test_a_field_is_what_the_kernel_would_fetch(fetch: Fetch, seed: int) -> None:
    assume(not has_image(fetch) and (fetch == NAME[1] or fetch.value != Comm()))
    content, registers = memory(seed)
    registers |= {"ip": 0x1234}
    comm = "name"
    machine = Machine(registers, content, comm=comm)
    try:
        expected = run(body(fetch), machine, limit=1 << 20)
    except Refused:
        reject()
    plan = plan_of(("first", WORD), ("wanted", fetch), ("last", WORD))
    record = FetchedRecord(7, plan.fields[0]).make(
        Thread(5, 0x1234, registers, content, comm.encode())
    )
    places = {field.name: field for field in record_format(7, plan).fields}
    assert record[:2] == b"\7\0"
    assert int.from_bytes(record[4:8], "little") == 5
    assert int.from_bytes(record[8:16], "little") == 0x1234
    for name in ("first", "last"):  # what is beside it
        assert shown(WORD, record, places[name].offset) == f"{registers['di']:#x}"
    assert shown(NAME[1], record, places[COMM].offset) == '"name"'
    if expected is not None:
        assert shown(fetch, record, places["wanted"].offset) == expected


def test_a_text_that_is_too_long_takes_no_room_of_the_name() -> None:
    class Endless:
        def read(self, address: int, size: int) -> bytes:
            return b"x" * size

    text = Fetch(Deref(Register("di"), 0), Text())
    plan = plan_of(("text", text))
    thread = Thread(1, 0, {"di": 0x1000}, Endless(), b"name")
    record = FetchedRecord(1, plan.fields[0]).make(thread)
    # As in the kernel: it is cut, and the last text has no room left.
    places = {field.name: field.offset for field in record_format(1, plan).fields}
    word = int.from_bytes(record[places["text"] :][:4], "little")
    assert word >> 16 <= TEXT_BYTES
    assert int.from_bytes(record[places[COMM] :][:4], "little") >> 16 == 0


def test_what_is_on_the_stack_is_not_read_later() -> None:
    stacked = Fetch(Deref(StackPointer(), 8), Word())
    heap = Fetch(Deref(Register("di"), 8), Word())
    behind = Fetch(Deref(Deref(StackPointer(), 8), 8), Word())
    plan = plan_of(("a", WORD), ("b", stacked), ("c", heap), ("d", behind))
    assert read_later(plan) == {"c", "d"}
