"""What programs at probes of the kernel read by its symbols, its task, and without registers."""

from __future__ import annotations

import struct

import pytest

from fetchc.emit.bpf_program import ring_record
from fetchc.emit.bpf_steps import Maps, Point
from fetchc.ir.evaluate import State
from fetchc.ir.evaluate_steps import record
from fetchc.ir.fetch import (
    Calculated,
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
from fetchc.ir.step_lowering import steps_of
from fetchc.ir.step_support import CPU_OFFSETS, symbol_of, unsupported
from fetchc.ir.steps import Program, Slot
from fetchc.target.bpf_rules import bpf_machine, bpf_rules
from tests.support.bpf_machine import CONTEXT, BpfMachine

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
