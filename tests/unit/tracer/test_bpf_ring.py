"""The BPF ring buffer: whatever lies in it, its records come out once, whole, in time order."""

from __future__ import annotations

import errno
import mmap
import os
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fetchc.diag.diagnostic import TracerError
from fetchc.ir.steps import CPU, HEADER, TIME
from fetchc.tracer.bpf.bpf_ring import BpfRing
from fetchc.tracer.bpf.features import refusals
from fetchc.tracer.events import Sample
from fetchc.tracer.ring_buffer import in_order

SIZE = 1 << 16
BUSY, DISCARDED = 1 << 31, 1 << 30
PAGE = mmap.PAGESIZE


class Buffer:
    """A file with the layout of a ring buffer: positions, then the data, twice."""

    def __init__(self, path: Path, position: int) -> None:
        path.write_bytes(bytes(2 * PAGE + 2 * SIZE))
        self._file = path.open("r+b")
        self._memory = mmap.mmap(self._file.fileno(), 0)
        self._end = position
        self._memory[0:8] = self._memory[PAGE : PAGE + 8] = struct.pack("=Q", position)
        self.ring = BpfRing(lambda: None)
        self.ring.map(self._file.fileno(), SIZE)

    def add(self, data: bytes, flags: int = 0) -> None:
        """A record, as the kernel's side writes it."""
        whole = struct.pack("=II", len(data) | flags, 0) + data + bytes(-len(data) % 8)
        for at, byte in enumerate(whole, self._end):
            for copy in (0, SIZE):
                self._memory[2 * PAGE + copy + at % SIZE] = byte
        self._end += len(whole)
        self._memory[PAGE : PAGE + 8] = struct.pack("=Q", self._end)

    def cut(self, count: int) -> None:
        """Have the last bytes not written."""
        self._end -= count
        self._memory[PAGE : PAGE + 8] = struct.pack("=Q", self._end)

    def close(self) -> None:
        self.ring.close()
        self._memory.close()
        self._file.close()

    @property
    def free(self) -> bool:
        """Whether everything was given back to who writes."""
        return self._memory[0:8] == struct.pack("=Q", self._end)


def record(number: int, time: int, cpu: int, more: int) -> bytes:
    """A record with a number of its own, and ``more`` bytes after the header."""
    data = bytearray(HEADER + more)
    data[0:4] = struct.pack("=I", number)
    data[TIME : TIME + 8] = struct.pack("=Q", time)
    data[CPU : CPU + 4] = struct.pack("=I", cpu)
    return bytes(data)


def read(ring: BpfRing) -> list[tuple[int, int, int, int]]:
    """Time, processor, number and size of all that is there."""
    found: list[Sample] = []
    while True:
        for part in ring.read(ended=True):
            found += in_order(part)
        if not ring.more:
            break
    return [
        (time, cpu, struct.unpack_from("=I", data, at)[0], end - at)
        for time, cpu, data, at, end, _ in found
    ]


# Runs of records: how many, their time steps, processors, length, flags.
RUNS = st.lists(
    st.tuples(
        st.integers(1, 40),
        st.sampled_from([(1,), (1, 1, 1, -5), (0,)]),
        st.sampled_from([(0,), (3,), (0, 1)]),
        st.sampled_from([0, 8, 20, 64]),
        st.sampled_from([0, 0, 0, DISCARDED]),
    ),
    min_size=1,
    max_size=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs=RUNS, position=st.sampled_from([0, SIZE - 8, SIZE - 400, 5 * SIZE - 1600]))
def test_all_records_come_out_in_time_order(
    tmp_path: Path,
    runs: list[tuple[int, tuple[int, ...], tuple[int, ...], int, int]],
    position: int,
) -> None:
    buffer = Buffer(tmp_path / "ring", position)
    wanted = []
    now, number = 1000, 0
    for count, steps, processors, more, flags in runs:
        for each in range(count):
            now += steps[each % len(steps)]
            number += 1
            cpu = processors[each % len(processors)]
            buffer.add(record(number, now, cpu, more), flags)
            if not flags:
                wanted.append((now, cpu, number, HEADER + more))
    found = read(buffer.ring)
    assert buffer.free
    buffer.close()
    assert found == sorted(wanted, key=lambda one: one[0])


@pytest.mark.parametrize("before", [0, 3, 30])
def test_what_is_not_complete_hides_what_follows(tmp_path: Path, before: int) -> None:
    buffer = Buffer(tmp_path / "ring", 0)
    for number in range(before):
        buffer.add(record(number, number, 0, 8))
    buffer.add(record(98, 98, 0, 8), BUSY)
    buffer.add(record(99, 99, 0, 8))
    buffer.ring.read(ended=True)
    assert not buffer.free
    assert not buffer.ring.more  # it is not asked again and again
    buffer.close()


def test_a_record_that_may_still_be_overtaken_waits(tmp_path: Path) -> None:
    buffer = Buffer(tmp_path / "ring", 0)
    now = 10**18  # later than every settled time
    for number in range(30):
        buffer.add(record(number, now + number if number > 10 else number, 0, 8))
    settled = [one for part in buffer.ring.read() for one in in_order(part)]
    assert [one[0] for one in settled] == list(range(11))
    assert [one[2] for one in read(buffer.ring)] == list(range(11, 30))
    buffer.close()


@pytest.mark.parametrize("before", [0, 30])
def test_a_buffer_that_ends_within_a_record_is_an_error(tmp_path: Path, before: int) -> None:
    buffer = Buffer(tmp_path / "ring", 0)
    for number in range(before):
        buffer.add(record(number, number, 0, 8))
    buffer.add(record(99, 99, 0, 8))
    buffer.cut(8)
    with pytest.raises(TracerError, match="a record reaches out of what was written"):
        buffer.ring.read(ended=True)
    buffer.close()


@pytest.mark.parametrize("count", [1, 30])
def test_a_record_without_a_header_is_an_error(tmp_path: Path, count: int) -> None:
    buffer = Buffer(tmp_path / "ring", 0)
    for _ in range(count):
        buffer.add(bytes(HEADER - 8))
    with pytest.raises(TracerError, match="cannot be read"):
        buffer.ring.read(ended=True)
    buffer.close()


@pytest.mark.parametrize(
    ("number", "help"),
    [(errno.EMFILE, "ulimit -Hn"), (errno.ENOMEM, "ulimit -v"), (errno.EINVAL, "--engine tracefs")],
)
def test_a_ring_buffer_that_the_kernel_refuses_has_an_action(number: int, help: str) -> None:
    with pytest.raises(TracerError) as refused, refusals("a ring buffer"):
        raise OSError(number, os.strerror(number))
    assert help in (refused.value.diagnostics[0].help or "")
