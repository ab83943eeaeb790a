"""What programs at probes of the kernel read by its symbols, its task, and without registers."""

from __future__ import annotations

import struct

import pytest

from fetchc.emit.bpf_counting import Counted, Entry, key_bytes, keyed_record
from fetchc.emit.bpf_program import ring_record
from fetchc.emit.bpf_steps import Maps, Point
from fetchc.ir.evaluate import State
from fetchc.ir.evaluate_steps import record
from fetchc.ir.fetch import (
    Calculated,
    Decode,
    Deref,
    ElementAddress,
    Fetch,
    KernelValue,
    Register,
    Scalar,
    Text,
    Value,
    Word,
)
from fetchc.ir.step_lowering import Totals, counting_steps, filter_steps, steps_of
from fetchc.ir.step_support import CPU_OFFSETS, symbol_of, unsupported
from fetchc.ir.steps import Program, Slot
from fetchc.source import Span
from fetchc.target.bpf_rules import bpf_machine, bpf_rules
from fetchc.tracer.bpf.bpf_filters import passing
from fetchc.tracer.events import EventValue, Plan
from fetchc.tracer.filter_conditions import Condition
from fetchc.tracer.value_shapes import Leaf
from tests.property.test_bpf_programs import KERNEL_MEMORY, LAYOUT, of_context, of_event, unlike
from tests.support.bpf_machine import CONTEXT, BpfMachine

X86, RULES = bpf_machine("x86_64"), bpf_rules((6, 18))

OFFSETS, QUEUES, JIFFIES, TASK = [0xFFFF_FFFF_8200_0000 + 0x1000 * one for one in range(4)]
SYMBOLS = ((CPU_OFFSETS, OFFSETS), ("jiffies", JIFFIES), ("runqueues", QUEUES))
DISTANCE = 0xFFFF_8880_0100_0000 - QUEUES & (1 << 64) - 1  # of what processor 5 has
CPU = 5
PASSED = tuple(
    Slot(name, at, 8, False, None, False) for name, at in (("$arg1", 0), ("%di", 0), ("%si", 8))
)
QUEUE = KernelValue("per_cpu", "this_cpu_ptr(@runqueues)")


def indexed(start: Value, each: int) -> ElementAddress:
    """An element of the kernel's own array, by the low bit of an argument."""
    moved = Calculated("mul", Calculated("and", Register("si"), 1), each)
    return ElementAddress(Calculated("add", start, moved))


LISTED = [
    Fetch(Deref(KernelValue("symbol", "@jiffies"), 0), Scalar("u", 64)),
    Fetch(Deref(KernelValue("symbol", "@jiffies"), 4), Scalar("u", 32)),
    Fetch(Deref(QUEUE, 8), Scalar("u", 32)),
    Fetch(Deref(Deref(QUEUE, 16), 4), Text()),
    Fetch(QUEUE, Word()),
    Fetch(Deref(KernelValue("current", "$current"), 4), Text()),
    Fetch(KernelValue("current", "$current"), Word()),
    Fetch(Register("si"), Scalar("s", 32)),
    Fetch(Deref(Register("di"), 0), Scalar("u", 64)),
    Fetch(Deref(indexed(KernelValue("symbol", "@jiffies"), 4), 0), Scalar("u", 32)),
    Fetch(Deref(indexed(QUEUE, 8), 0), Scalar("u", 32)),
]


def steps() -> Program:
    fields = [(f"f{number}", one) for number, one in enumerate(LISTED)]
    return steps_of(fields, "sp", "ax", context=PASSED, symbols=SYMBOLS)


def state(cpu: int, context: bytes) -> State:
    """The thread on that processor; only processor 5 has a distance that leads to memory."""
    regions = {
        CONTEXT: context,
        OFFSETS: struct.pack("<8Q", *[DISTANCE if one == CPU else 1 for one in range(8)]),
        JIFFIES: struct.pack("<Q", 0x1122_3344_5566_7788),
        QUEUES + DISTANCE & (1 << 64) - 1: struct.pack("<QQQ", 0, 77, TASK),
        TASK: b"\0\0\0\0its name\0" + bytes(20),
    }

    def read(address: int, size: int) -> bytes | None:
        for start, data in regions.items():
            if start <= address < start + len(data):
                return data[address - start :][:size]
        return None

    return State({}, read, 0, b"task", context=CONTEXT, task=TASK, cpu=cpu)


@pytest.mark.parametrize("cpu", [CPU, 0])
def test_what_belongs_to_the_kernel_is_recorded(cpu: int) -> None:
    assert [unsupported(one, PASSED, SYMBOLS) for one in LISTED] == [None] * len(LISTED)
    context, program = struct.pack("<QQ", JIFFIES, 1 << 32 | 9), steps()
    thread = state(cpu, context)
    machine = BpfMachine(context, thread.read, task=TASK, cpu=cpu)
    x86 = bpf_machine("x86_64")
    assert x86 is not None
    code = ring_record(
        program, x86, bpf_rules((6, 18)), Maps(5, 6), Point(1, 0, False), False, False,
        probed="trampoline",
    )  # fmt: skip
    machine.run(code.instructions)
    (data,) = machine.submitted
    wanted = record(program, thread, 64)
    faults = int.from_bytes(data[program.faults_at : program.size], "little")
    assert {bit for bit in range(program.faults) if faults >> bit & 1} == wanted.faults
    assert bool(wanted.faults) == (cpu != CPU)
    slots = {one.name: one for one in program.slots}

    def number(name: str) -> int:
        slot = slots[name]
        return int.from_bytes(data[slot.at : slot.at + slot.size], "little")

    assert [number(f"f{one}") for one in (0, 1, 6, 7, 8)] == [
        0x1122_3344_5566_7788, 0x1122_3344, TASK, 9, 0x1122_3344_5566_7788
    ]  # fmt: skip
    assert number("f9") == 0x1122_3344
    assert number("f2") == number("f10") == (77 if cpu == CPU else 0)
    assert number("f4") == QUEUES + (DISTANCE if cpu == CPU else 1) & (1 << 64) - 1
    texts = [data[word & 0xFFFF :][: word >> 16] for word in map(number, ("f3", "f5"))]
    assert texts == [b"its name\0" if cpu == CPU else b"", b"its name\0"]


def test_without_its_symbol_a_value_is_refused() -> None:
    for one in (0, 2, 4, 9, 10):
        assert unsupported(LISTED[one], PASSED, SYMBOLS[:1])
    values = [KernelValue("argument", "$arg1"), KernelValue("symbol", "@jiffies"), QUEUE]
    assert [symbol_of(one) for one in values] == [None, "jiffies", "runqueues"]


# ------------------------------------------------------------------------------
# What a tracepoint passes, in filters and in keys.

FIELDS = (
    ("small", Fetch(of_event("$small"), Scalar("s", 16))),
    ("wide", Fetch(of_event("$wide"), Scalar("u", 64))),
    ("name", Fetch(of_event("$name"), Text())),
    ("said", Fetch(of_event("$said"), Text())),
    ("text", Fetch(Deref(of_event("$pointer"), 0), Text())),
    ("of_user", Fetch(Deref(of_event("$pointer"), 0), Text(user=True))),
    ("number", Fetch(Deref(of_event("$pointer"), 0), Scalar("u", 32))),
    ("number_of_user", Fetch(Deref(of_event("$pointer"), 0, True), Scalar("u", 32))),
)
SHAPES = {
    name: Leaf(
        name,
        Decode("integer", fetch.store.bits, fetch.store.kind == "s")
        if isinstance(fetch.store, Scalar)
        else Decode("text"),
    )
    for name, fetch in FIELDS
}
DEFINITION = "e:g/e g.e " + " ".join(
    [f"{name}=x:{'s16' if name == 'small' else 'string'}" for name in SHAPES]
)
EVENT = Plan(
    "g", "e", "", None, "entry", 0, (DEFINITION,),
    tuple([EventValue(label, shape) for label, shape in SHAPES.items()]), fields=(FIELDS,),
)  # fmt: skip
OF_USER, OF_KERNEL = struct.unpack("<I", b"of u")[0], struct.unpack("<I", b"of k")[0]
CONDITIONS: list[tuple[str, str, int | str, dict[int, bool | None]]] = [
    ("small", "<", 0, dict.fromkeys((0x5000, KERNEL_MEMORY, 0x9000), True)),
    ("small", "==", 2**16 - 2, dict.fromkeys((0x5000, KERNEL_MEMORY, 0x9000), False)),
    ("wide", ">", 2**63 - 1, dict.fromkeys((0x5000, KERNEL_MEMORY, 0x9000), True)),
    ("name", "==", "a name", dict.fromkeys((0x5000, KERNEL_MEMORY, 0x9000), True)),
    ("name", "~", "a m*", dict.fromkeys((0x5000, KERNEL_MEMORY, 0x9000), False)),
    ("said", "!=", "later", dict.fromkeys((0x5000, KERNEL_MEMORY, 0x9000), False)),
    ("text", "~", "of *", {0x5000: True, KERNEL_MEMORY: True, 0x9000: None}),
    ("of_user", "~", "of *", {0x5000: True, KERNEL_MEMORY: None, 0x9000: None}),
    ("number", "==", OF_KERNEL, {0x5000: False, KERNEL_MEMORY: True, 0x9000: None}),
    ("number_of_user", "==", OF_USER, {0x5000: True, KERNEL_MEMORY: None, 0x9000: None}),
]


@pytest.mark.parametrize(("label", "operator", "constant", "passes"), CONDITIONS)
def test_a_filter_reads_what_a_tracepoint_passes(
    label: str, operator: str, constant: int | str, passes: dict[int, bool | None]
) -> None:
    condition = Condition(label, operator, constant, False, False, "", Span(0, 0))
    found = passing(EVENT, FIELDS, condition)
    assert found is not None
    assert X86 is not None
    filter = filter_steps(found.condition, "sp", "ax", LAYOUT)
    whole = steps_of((), "sp", "ax", context=LAYOUT)
    code = ring_record(
        whole, X86, RULES, Maps(5, 6), Point(1, 0, False), False, False, filter=filter,
        probed="tracepoint",
    )  # fmt: skip
    for pointer, lets_pass in passes.items():
        context, state = of_context(pointer)
        machine = BpfMachine(context, state.read)
        machine.run(code.instructions)
        # What cannot be read is left to the reader.
        assert bool(machine.submitted) == (lets_pass is not False)
        if pointer == 0x5000 or "user" not in label:
            said = record(filter, state, 64).numbers
            assert said == (None if lets_pass is None else (int(lets_pass),))


@pytest.mark.parametrize("pointer", [0x5000, KERNEL_MEMORY, 0x9000])
def test_a_key_has_what_a_tracepoint_passes(pointer: int) -> None:
    fields = [one for one in FIELDS if one[0] != "of_user"]
    program = counting_steps(fields[:-1], Totals((), (), ("cpu",)), "sp", "ax", LAYOUT)
    whole = steps_of((), "sp", "ax", context=LAYOUT)
    context, state = of_context(pointer)
    machine = BpfMachine(
        context, state.read, counting=9, key_size=key_bytes(program), value_size=Entry.at(0)
    )
    assert X86 is not None
    code = ring_record(
        whole, X86, RULES, Maps(5, 6), Point(1, 0, False), False, False, Counted(program, 9),
        probed="tracepoint",
    )  # fmt: skip
    machine.run(code.instructions)
    assert len(machine.submitted) == (pointer == 0x9000)
    assert len(machine.entries) == (pointer != 0x9000)
    for key in machine.entries:
        assert unlike(program, keyed_record(program, key), record(program, state, 64)) == ""
        other = record(program, of_context(0x9000)[1], 64)
        assert unlike(program, keyed_record(program, key), other)
