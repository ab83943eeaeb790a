"""Buffers of several processors as one stream: pipes with pages stand for the kernel's files."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fetchc.diag.diagnostic import TracerError
from fetchc.tracer import ring_buffer as module
from fetchc.tracer.events import Field, Format, Sample
from fetchc.tracer.ring_buffer import Ring, in_order
from fetchc.tracer.trace_instance import Instance
from fetchc.tracer.tracefs import Tracefs
from tests.support.ring_pages import EVENT, PAGE, word

STACK = Format(9, "user_stack", (Field("caller", 16, 8, False, 2, False),))
SECOND = 1_000_000_000
HOUR = 3600 * SECOND


def record(event: int, thread: int, *words: int) -> bytes:
    body = struct.pack("<HBBi", event, 0, 0, thread) + struct.pack(f"<{len(words)}Q", *words)
    return word(len(body) // 4, 0) + body


class Buffers:
    """The files of two processors, and a ring that reads them."""

    def __init__(self, root: Path) -> None:
        events = root / "instances/one/events"
        events.mkdir(parents=True)
        (events / "header_page").write_text(PAGE)
        (events / "header_event").write_text(EVENT)
        tracefs = Tracefs(str(root))
        instance = Instance(tracefs, "one")
        files = [Path(instance.path) / f"per_cpu/cpu{cpu}/trace_pipe_raw" for cpu in (0, 1)]
        for file in files:
            file.parent.mkdir(parents=True)
            os.mkfifo(file)
        self.ring = Ring()
        self.ring.open(tracefs, instance)
        self._pipes = [os.open(file, os.O_WRONLY) for file in files]
        self.now = time.monotonic_ns()

    def put(self, cpu: int, *records: tuple[int, bytes]) -> None:
        """A page for each record: its age in nanoseconds, and its bytes."""
        for age, data in records:
            page = struct.pack("<QQ", self.now - age, len(data)) + data
            os.write(self._pipes[cpu], page.ljust(4096, b"\0"))

    def fill(self, cpu: int, age: int, thread: int, count: int, delta: int) -> None:
        """A page of records of one length, ``delta`` nanoseconds apart from an age on."""
        body = struct.pack("<HBBiQ", 7, 0, 0, thread, 5)
        data = b"".join([word(len(body) // 4, delta if number else 0) + body
                         for number in range(count)])  # fmt: skip
        self.put(cpu, (age, data))

    def read(self, ended: bool = False) -> list[Sample]:
        """What the ring gives, as one list."""
        return [one for part in self.ring.read(ended) for one in in_order(part)]

    def close(self) -> None:
        self.ring.close()
        for pipe in self._pipes:
            os.close(pipe)


@pytest.fixture
def buffers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Buffers]:
    monkeypatch.setattr(module, "_LITTLE", 1 << 12)  # pages of one record count as full
    made = Buffers(tmp_path)
    yield made
    made.close()


def common(sample: Sample) -> tuple[int, int]:
    """The event and the thread."""
    _, _, page, at, _, _ = sample
    event, _, _, thread = struct.unpack_from("<HBBi", page, at)
    return event, thread


def threads(found: list[Sample]) -> list[int]:
    return [common(sample)[1] for sample in found]


def stacks(found: list[Sample]) -> list[tuple[int, tuple[int, ...]]]:
    """The thread of each, and its stack."""
    return [(common(one)[1], one[5]) for one in found if isinstance(one[5], tuple)]


def test_records_of_two_processors_are_in_the_order_of_time(buffers: Buffers) -> None:
    buffers.put(0, (5 * SECOND, record(7, 1)), (3 * SECOND, record(7, 3)))
    buffers.put(1, (4 * SECOND, record(7, 2)), (2 * SECOND, record(7, 4)))
    found = buffers.read()
    assert threads(found) == [1, 2, 3, 4]
    assert [sample[1] for sample in found] == [0, 1, 0, 1]
    assert buffers.read() == []


def test_a_page_that_is_being_written_to_is_left_alone(
    buffers: Buffers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LITTLE", 4)
    buffers.put(0, *[(age * SECOND, record(7, age)) for age in (9, 8, 7, 6, 5)])
    buffers.put(1, (SECOND, record(7, 1)))
    assert threads(buffers.read()) == [9, 8]
    assert not buffers.ring.more  # who reads looks again a moment later
    buffers.fill(0, 4 * SECOND, 4, 170, 1)
    buffers.put(0, *[(age * SECOND, record(7, age)) for age in (3, 2, 2, 2)])
    assert threads(buffers.read()) == [7, 6]
    assert set(threads(buffers.read(ended=True))) == {5, 4, 3, 2, 1}  # all that there is
    assert buffers.read(ended=True) == []
    assert not buffers.ring.more


def test_what_may_not_be_complete_is_held_back(buffers: Buffers) -> None:
    # Of the second one it is long until it is old enough.
    buffers.put(0, (5 * SECOND, record(7, 1)), (-2 * HOUR, record(7, 2)))
    assert threads(buffers.read()) == [1]
    assert buffers.read() == []
    buffers.put(1, (-HOUR, record(7, 3)))
    assert threads(buffers.read(ended=True)) == [3, 2]
    assert not buffers.ring.more


def test_one_that_is_not_emptied_bounds_the_others(
    buffers: Buffers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAGES", 2)
    buffers.put(0, *[(age * SECOND, record(7, age)) for age in (9, 8, 7, 6, 5)])
    buffers.put(1, (SECOND, record(7, 1)))
    assert threads(buffers.read()) == [9, 8]
    assert buffers.ring.more
    assert threads(buffers.read()) == [7, 6]
    assert threads(buffers.read()) == [5, 1]
    assert not buffers.ring.more


def test_a_full_buffer_at_the_end_comes_in_parts(
    buffers: Buffers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAGES", 2)
    buffers.put(0, *[(age * SECOND, record(7, age)) for age in (5, 4, 3)])
    buffers.put(1, (SECOND, record(7, 1)))
    found = buffers.read(ended=True)
    assert threads(found) == [5, 4]
    assert buffers.ring.more
    assert threads(buffers.read(ended=True)) == [3, 1]
    assert not buffers.ring.more


def test_pages_that_overlap_in_time_are_one_part(buffers: Buffers) -> None:
    buffers.fill(0, 9 * SECOND, 1, 50, 1000)
    buffers.fill(1, 9 * SECOND - 500, 2, 50, 1000)  # between those of the other processor
    buffers.fill(0, 8 * SECOND, 3, 50, 1000)
    parts = buffers.ring.read()
    assert [[(each.cpu, len(each.times)) for each in part] for part in parts] == [
        [(0, 50), (1, 50)],
        [(0, 50)],
    ]
    assert all(each.step for part in parts for each in part)
    found = [one for part in parts for one in in_order(part)]
    assert threads(found) == [1, 2] * 50 + [3] * 50
    assert found == sorted(found, key=lambda one: one[0])


def test_of_equal_times_the_first_read_is_first(buffers: Buffers) -> None:
    buffers.fill(0, 9 * SECOND, 1, 50, 0)
    buffers.fill(1, 9 * SECOND, 2, 50, 0)
    assert threads(buffers.read()) == [1] * 50 + [2] * 50


def test_a_page_is_cut_where_its_records_may_not_be_complete(buffers: Buffers) -> None:
    # The last twenty come hours after the others.
    buffers.fill(0, 9 * SECOND, 1, 10, 100_000)
    buffers.put(0, (SECOND, b"".join([record(7, 2)] * 20 + [word(30, 0), struct.pack("<I", 1 << 16)]
                                     + [record(7, 3)] * 20)))  # fmt: skip
    assert threads(buffers.read()) == [1] * 10 + [2] * 20
    assert buffers.read() == []
    assert threads(buffers.read(ended=True)) == [3] * 20


def test_waiting_ends_at_once_where_there_is_more(
    buffers: Buffers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def times(seconds: float) -> float:
        start = time.monotonic()
        buffers.ring.wait(seconds)
        return time.monotonic() - start

    assert 0.05 <= times(0.05) < 5
    buffers.put(0, (3 * SECOND, record(7, 1)), (2 * SECOND, record(7, 2)))
    assert times(60) < 30  # there is something to read
    monkeypatch.setattr(module, "_PAGES", 1)
    buffers.read()
    assert times(60) < 30


def test_a_stack_goes_to_the_event_of_its_thread_before_it(buffers: Buffers) -> None:
    buffers.ring.expect_stacks(STACK)
    buffers.put(0, (9 * SECOND, record(7, 1, 0x400, 5)), (8 * SECOND, record(7, 2, 0x500, 6)))
    # The thread went on on another processor.
    buffers.put(1, (7 * SECOND, record(9, 1, 0, 0x400, 0x99, 0)))
    buffers.put(0, (6 * SECOND, record(9, 2, 0, 0x500, (1 << 64) - 1)))
    found = buffers.read()
    assert stacks(found) == [(1, (0x400, 0x99)), (2, (0x500,))]


def test_a_stack_on_the_next_page_is_waited_for(
    buffers: Buffers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAGES", 1)
    buffers.ring.expect_stacks(STACK)
    for age, thread in ((9, 1), (5, 2), (1, 3)):
        buffers.put(0, (age * SECOND, record(7, thread, 0x400, 5)))
        buffers.put(0, (age * SECOND - 1000, record(9, thread, 0, 0x400, 0x90 + thread, 0)))
    found = []
    while True:
        found += buffers.read()
        if not buffers.ring.more:
            break
    assert stacks(found) == [(thread, (0x400, 0x90 + thread)) for thread in (1, 2, 3)]


def test_the_stack_of_a_return_begins_where_it_returns_to(buffers: Buffers) -> None:
    buffers.ring.expect_stacks(STACK)
    buffers.put(0, (9 * SECOND, record(7, 1, 0x400, 0x700)))
    buffers.put(0, (8 * SECOND, record(9, 1, 0, 0x700, 0x99, 0)))
    assert stacks(buffers.read()) == [(1, (0x700, 0x99))]


def test_the_stack_of_an_event_that_was_lost_is_nobodys(buffers: Buffers) -> None:
    buffers.ring.expect_stacks(STACK)
    buffers.put(0, (9 * SECOND, record(7, 1, 0x400, 5)))
    buffers.put(0, (8 * SECOND, record(9, 1, 0, 0x500, 0x99, 0)))
    buffers.put(0, (7 * SECOND, record(9, 3, 0, 0x500, 0x99, 0)))
    buffers.put(0, (6 * SECOND, record(9, 1, 0, 0x400, 0x98, 0)))
    buffers.put(0, (5 * SECOND, record(9, 1, 0, 0x400, 0x97, 0)))
    found = buffers.read()
    assert stacks(found) == [(1, (0x400, 0x98))]


def test_the_stack_of_a_probe_of_the_kernel_begins_in_the_program(buffers: Buffers) -> None:
    buffers.ring.expect_stacks(STACK)
    buffers.ring.expect_kernel(8)
    buffers.put(0, (9 * SECOND, record(8, 1, 0xFFFFFFFF81000100, 5)))
    buffers.put(0, (8 * SECOND, record(9, 1, 0, 0x500, 0x99, 0)))
    buffers.put(0, (7 * SECOND, record(7, 1, 0xFFFFFFFF81000100, 5)))  # of another event
    buffers.put(0, (6 * SECOND, record(9, 1, 0, 0x500, 0x98, 0)))
    found = buffers.read()
    assert [(common(one)[0], one[5]) for one in found] == [(8, (0x500, 0x99)), (7, ())]


def test_stacks_of_another_form_are_refused(buffers: Buffers) -> None:
    narrow = Format(9, "user_stack", (Field("caller", 16, 4, False, 2, False),))
    with pytest.raises(TracerError, match="addresses of another size"):
        buffers.ring.expect_stacks(narrow)
