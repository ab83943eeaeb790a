"""A thread-local variable: the program, its oracle and the fetch have one value, or none."""

from __future__ import annotations

import struct

import pytest

from fetchc.emit.bpf_program import ring_record
from fetchc.emit.bpf_steps import Maps, Point
from fetchc.ir.evaluate import Fault, Outcome, State, evaluate
from fetchc.ir.evaluate_steps import record
from fetchc.ir.fetch import Deref, Fetch, Image, Scalar, ThreadPointer
from fetchc.ir.step_lowering import steps_of
from fetchc.target.bpf_rules import bpf_machine, bpf_rules
from tests.support.bpf_machine import BpfMachine

TASK, IN_TASK = 0xFFFF_8880_0100_0000, 0x1388
BLOCK, POINTER, BIAS, WORD = 0x7000, 0x7100, 0x40_0000, 0x2000
ADDRESS, OFFSET = BIAS + 0x1000, 0x1000
VALUE = -77
OWN = Fetch(Deref(ThreadPointer(), -16), Scalar("s", 32))
OF_LIBRARY = Fetch(Deref(ThreadPointer(Image(WORD)), 48), Scalar("s", 32))
BEHIND = Fetch(Deref(Deref(ThreadPointer(), -24), 4), Scalar("s", 32))


def thread(noted: int, at_pointer: int, in_library: int | None) -> State:
    """One whose task says ``noted``; the words that ``noted`` and the loader's one leads to."""
    block = bytearray(0x200)
    struct.pack_into("<Qi", block, POINTER - BLOCK - 24, POINTER - 20, 0)
    struct.pack_into("<i", block, POINTER - BLOCK - 16, VALUE)
    struct.pack_into("<Q", block, POINTER - BLOCK, at_pointer)
    regions = {TASK + IN_TASK: struct.pack("<Q", noted), BLOCK: bytes(block)}
    if in_library is not None:
        regions[BIAS + WORD] = struct.pack("<q", in_library)

    def read(address: int, size: int) -> bytes | None:
        for start, data in regions.items():
            if start <= address < start + len(data):
                return data[address - start :][:size]
        return None

    return State({}, read, BIAS, task=TASK, thread_pointer=noted)


def shown(fetch: Fetch, state: State, sleepable: bool) -> int | None:
    """The value, in which all three agree; None: it cannot be read."""
    program, x86 = steps_of([("v", fetch)], "sp", "ax"), bpf_machine("x86_64")
    assert x86 is not None
    context = bytearray(200)
    struct.pack_into("<Q", context, x86.registers["ip"], ADDRESS)
    machine = BpfMachine(bytes(context), state.read, task=TASK, resident=not sleepable)
    rules, point = bpf_rules((6, 18)), Point(1, OFFSET, False)
    code = ring_record(
        program, x86.replaced(thread_pointer=IN_TASK), rules, Maps(5, 6), point, False, sleepable
    )
    machine.run(code.instructions)
    (data,), said = machine.submitted, record(program, state, 64)
    (faults,) = struct.unpack_from("<Q", data, program.faults_at)
    assert {bit for bit in range(program.faults) if faults >> bit & 1} == said.faults
    ((slot,), (block,)) = program.slots, program.blocks
    low, high = slot.at, slot.at + slot.size
    assert data[low:high] == said.fixed[low:high]
    (read,) = struct.unpack_from("<I", data, block.word)
    found = evaluate(fetch, state)
    assert (isinstance(found, Fault) or found.faulted) == (read == 0)
    if read == 0:
        return None
    (number,) = struct.unpack_from("<i", data, slot.at)
    assert found == Outcome(number)
    return int(number)


@pytest.mark.parametrize("sleepable", [False, True])
@pytest.mark.parametrize(
    ("fetch", "noted", "at_pointer", "in_library", "expected"),
    [
        (OWN, POINTER, POINTER, None, VALUE),
        (BEHIND, POINTER, POINTER, None, VALUE),
        (OWN, POINTER, POINTER + 8, None, None),  # of another program, or of a thread that begins
        (OWN, 0, POINTER, None, None),
        (OWN, 0x9000, POINTER, None, None),
        (OF_LIBRARY, POINTER, POINTER, -64, VALUE),
        (OF_LIBRARY, POINTER, POINTER, 0, None),  # no loader was there
        (OF_LIBRARY, POINTER, POINTER, None, None),
        (OF_LIBRARY, POINTER, 0, -64, None),
    ],
)
def test_it_is_that_of_the_thread_or_a_fault(
    fetch: Fetch,
    noted: int,
    at_pointer: int,
    in_library: int | None,
    expected: int | None,
    sleepable: bool,
) -> None:
    assert shown(fetch, thread(noted, at_pointer, in_library), sleepable) == expected


def test_the_comparison_sees_another_thread() -> None:
    state = thread(POINTER, POINTER, None)
    with pytest.raises(AssertionError):
        shown(OWN, state.replaced(thread_pointer=POINTER + 8), False)
