"""Records of perf, as the kernel lays them out, to samples and to changes of mappings."""

from __future__ import annotations

import struct

import pytest

from fetchc.diag.diagnostic import TracerError
from fetchc.tracer.events import Mapping, MappingChange, Sample
from fetchc.tracer.perf_ring import PerfRing, sampled_machines
from fetchc.tracer.ring_buffer import in_order
from fetchc.tracer.unwind import StackCopy

MACHINES = sampled_machines()
pytestmark = pytest.mark.skipif(not MACHINES, reason="perf's registers of this machine are unknown")

RAW = b"\x10\x00\x00\x00" + struct.pack("<i", 12) + struct.pack("<QI", 0x401000, 7)  # 20 bytes
REGISTERS = list(range(100, 117))  # ax bx cx dx si di bp sp ip r8 to r15


def record(kind: int, body: bytes, misc: int = 0) -> bytes:
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def sample(
    time: int = 5,
    identity: int = 1,
    abi: int = 2,
    stack: bytes = bytes(16),
    copied: int = 16,
    cpu: int = 1,
) -> bytes:
    head = struct.pack("<IIQQIII", 11, 12, time, identity, cpu, 0, len(RAW))
    body = head + RAW + struct.pack("<Q", abi)
    if abi:
        body += struct.pack("<17Q", *REGISTERS)
        body += struct.pack("<Q", len(stack)) + stack + struct.pack("<Q", copied)
    else:
        body += struct.pack("<Q", 0)
    return record(9, body)


def identified(body: bytes, time: int) -> bytes:
    return body + struct.pack("<IIQQII", 11, 12, time, 1, 0, 0)


def mapped(time: int, start: int, size: int, path: bytes, process: int = 11) -> bytes:
    body = struct.pack("<IIQQQIIQQII", process, 12, start, size, 0x2000, 8, 1, 77, 0, 5, 2)
    return record(10, identified(body + path.ljust(-(-len(path) // 8) * 8 + 8, b"\0"), time))


def read(ring: PerfRing) -> list[Sample]:
    return [one for part in ring.read(ended=True) for one in in_order(part)]


@pytest.fixture(name="ring")
def ring_() -> PerfRing:
    return PerfRing(16, MACHINES)


def test_a_sample_has_the_record_the_registers_and_the_stack(ring: PerfRing) -> None:
    ring._samples(sample(stack=bytes(range(16)), copied=11))
    (found,) = read(ring)
    time, cpu, page, at, end, copy = found
    assert (time, cpu, page[at:end]) == (5, 1, RAW)
    assert isinstance(copy, StackCopy)
    assert (copy.process, copy.time, copy.stack_pointer) == (11, 5, 107)
    assert (copy.memory, copy.wanted) == (bytes(range(11)), 16)
    # DWARF's numbers: ax dx cx bx si di bp sp, r8 to r15, the return address.
    assert [copy.registers[one] for one in range(17)] == [
        100, 103, 102, 101, 104, 105, 106, 107, *range(109, 117), 108,
    ]  # fmt: skip


def test_a_program_of_32_bits(ring: PerfRing) -> None:
    ring._samples(sample(abi=1))
    copy = read(ring)[0][5]
    assert isinstance(copy, StackCopy)
    # ax cx dx bx sp bp si di ip
    assert [copy.registers[one] for one in range(9)] == [
        100, 102, 103, 101, 107, 106, 104, 105, 108,
    ]  # fmt: skip
    assert copy.word_bytes == 4


def test_a_thread_of_the_kernel_has_no_stack(ring: PerfRing) -> None:
    ring._samples(sample(abi=0))
    assert read(ring)[0][5] == ()


def test_samples_are_in_the_order_of_time_and_lost_ones_are_counted(ring: PerfRing) -> None:
    ring._samples(sample(9) + record(2, struct.pack("<QQ", 1, 40)) + sample(3))
    ring._samples(record(2, struct.pack("<QQ", 1, 2)) + record(3, bytes(24)) + sample(7))
    assert [one[0] for one in read(ring)] == [3, 7, 9]
    assert ring.lost == 42


def test_a_hit_that_came_by_two_events_is_one(ring: PerfRing) -> None:
    # A thread that was found when it had inherited the event already. Its other hits are others.
    ring._threads = [11]
    ring._samples(sample(1, 1) + sample(2, 2) + sample(3, 1) + sample(4, 2))
    assert [one[0] for one in read(ring)] == [1, 3]
    ring._samples(sample(5, 1) + sample(6, 1, stack=b"\1" * 16) + sample(7, 2, stack=b"\1" * 16))
    assert [one[0] for one in read(ring)] == [5, 6]


def test_a_record_without_a_size_ends_the_reading(ring: PerfRing) -> None:
    with pytest.raises(TracerError):
        ring._samples(bytes(16))


def test_changes_of_mappings(ring: PerfRing) -> None:
    ring._samples(
        mapped(4, 0x1000, 0x2000, b"/lib/x.so")
        + mapped(5, 0x9000, 0x1000, b"//anon")
        + record(3, identified(struct.pack("<II", 11, 11) + b"name\0\0\0\0", 2), misc=1 << 13)
        + record(3, identified(struct.pack("<II", 11, 11) + b"name\0\0\0\0", 3))
        + record(7, identified(struct.pack("<IIIIQ", 13, 11, 13, 11, 6), 6))
        + record(7, identified(struct.pack("<IIIIQ", 11, 11, 14, 11, 7), 7))
    )
    assert read(ring) == []
    assert list(ring.changes) == [
        MappingChange(2, 11),
        MappingChange(4, 11, None, Mapping(0x1000, 0x3000, 0x2000, "/lib/x.so", 77)),
        MappingChange(5, 11, None, Mapping(0x9000, 0xA000, 0x2000, "", 77)),
        MappingChange(6, 13, 11),
    ]


def test_a_hit_that_two_events_have_counts_once(ring: PerfRing) -> None:
    ring._threads = [11]
    ring._samples(sample(time=5, identity=1) + sample(time=5, identity=2))
    assert [time for time, *_ in read(ring)] == [5]


def test_equal_hits_on_two_processors_are_two(ring: PerfRing) -> None:
    ring._threads = [11]
    # The thread has moved: each processor has an event of its own.
    ring._samples(sample(time=5, identity=1) + sample(time=6, identity=2, cpu=0))
    assert [time for time, *_ in read(ring)] == [5, 6]
