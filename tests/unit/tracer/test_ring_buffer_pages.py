"""Pages of the ring buffer, built word by word."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.diag.diagnostic import TracerError
from fetchc.tracer.events import Sample
from fetchc.tracer.ring_buffer import SubBufferLayout, parse_sub_buffer_layout, records, samples
from tests.support.ring_pages import EVENT, PAGE, word

LAYOUT = SubBufferLayout(0, 8, 16, 4096)
START = 5_000_000_000


def record(event: int, thread: int, values: bytes = b"", delta: int = 1) -> bytes:
    body = struct.pack("<HBBi", event, 0, 0, thread) + values
    assert len(body) % 4 == 0
    return word(len(body) // 4, delta) + body


def long_record(event: int, thread: int, values: bytes, delta: int) -> bytes:
    body = struct.pack("<HBBi", event, 0, 0, thread) + values
    padded = body + bytes(-len(body) % 4)
    return word(0, delta) + struct.pack("<I", len(body) + 4) + padded


def page(*parts: bytes, flags: int = 0, length: int | None = None) -> bytes:
    data = b"".join(parts)
    commit = (len(data) if length is None else length) | flags
    return (struct.pack("<QQ", START, commit) + data).ljust(4096, b"\xff")


def data(sample: Sample) -> bytes:
    _, _, page, at, end, _ = sample
    return page[at:end]


def test_the_layout_of_the_running_kernels() -> None:
    assert parse_sub_buffer_layout(PAGE, EVENT) == LAYOUT


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("offset:16", "offset:18"),
        ("timestamp", "stamp"),
        ("size:8;\tsigned:0", "size:4;\tsigned:0"),
    ],
)
def test_other_pages_are_not_read(text: str, other: str) -> None:
    with pytest.raises(TracerError, match=r"FC0716: .* unknown layout"):
        parse_sub_buffer_layout(PAGE.replace(text, other), EVENT)


@pytest.mark.parametrize(("text", "other"), [("27 bits", "28 bits"), ("== 29", "== 28")])
def test_other_records_are_not_read(text: str, other: str) -> None:
    with pytest.raises(TracerError, match="unknown layout"):
        parse_sub_buffer_layout(PAGE, EVENT.replace(text, other))


def test_records_bear_event_thread_and_time() -> None:
    found = samples(page(record(7, 100, b"abcd", 3), record(8, 101, b"", 4)), LAYOUT, 1)
    assert [(nanoseconds, cpu, stack) for nanoseconds, cpu, _, _, _, stack in found] == [
        (START + 3, 1, ()),
        (START + 7, 1, ()),
    ]
    assert data(found[0]) == struct.pack("<HBBi", 7, 0, 0, 100) + b"abcd"
    assert data(found[1]) == struct.pack("<HBBi", 8, 0, 0, 101)


def test_a_record_of_more_than_28_words_has_its_length_in_front() -> None:
    found = samples(page(long_record(9, 5, b"x" * 301, 2), record(7, 6)), LAYOUT, 0)
    assert data(found[0])[8 : 8 + 301] == b"x" * 301
    assert len(data(found[0])) == 312
    assert data(found[1]) == struct.pack("<HBBi", 7, 0, 0, 6)


def test_long_waits_and_absolute_times() -> None:
    extend = word(30, 5) + struct.pack("<I", 3)
    stamp = word(31, 9) + struct.pack("<I", 64)
    found = samples(page(extend, record(7, 1, delta=1), stamp, record(7, 1, delta=2)), LAYOUT, 0)
    assert [sample[0] for sample in found] == [START + (3 << 27) + 6, (64 << 27) + 11]


def test_an_absolute_time_lacks_the_upper_bits_of_a_late_page() -> None:
    late = struct.pack("<QQ", 3 << 59, 20) + word(31, 9) + struct.pack("<I", 64) + record(7, 1)
    (found,) = samples(late, LAYOUT, 0)
    assert found[0] == (3 << 59) + (64 << 27) + 10


def test_dropped_records_leave_their_time() -> None:
    gone = word(29, 40) + struct.pack("<I", 8) + b"gone"
    free = word(29, 1) + struct.pack("<I", 8) + b"gone"
    found = samples(page(gone, free, record(7, 1, delta=2)), LAYOUT, 0)
    assert [sample[0] for sample in found] == [START + 42]


def test_padding_ends_the_page() -> None:
    assert len(samples(page(record(7, 1), word(29, 0), record(7, 2)), LAYOUT, 0)) == 1


def test_flags_of_missed_events_are_no_length() -> None:
    for flags in (1 << 31, 1 << 30, 3 << 30):
        assert len(samples(page(record(7, 1), flags=flags), LAYOUT, 0)) == 1


@pytest.mark.parametrize(
    "broken",
    [
        page(record(7, 1), length=4084),
        page(record(7, 1), length=8),
        page(word(0, 1)),
        page(word(30, 1)),
        page(word(29, 5)),
        page(word(1, 1) + b"abcd"),
        b"",
        bytes(15),
        bytes(18),
    ],
)
def test_what_reaches_out_of_its_page_is_refused(broken: bytes) -> None:
    with pytest.raises(TracerError, match="page"):
        samples(broken, LAYOUT, 0)


@given(st.binary(max_size=400), st.integers(0, 1 << 32))
def test_any_bytes_are_read_or_refused(data: bytes, commit: int) -> None:
    whole = struct.pack("<QQ", START, commit) + data + bytes(-len(data) % 4)
    try:
        found = samples(whole, LAYOUT, 0)
    except TracerError:
        return
    assert sum(end - at + 4 for _, _, _, at, end, _ in found) <= len(data) + 3


def test_records_of_one_length_are_found_as_such() -> None:
    for one in (record(7, 100, b"abcd", 3), long_record(9, 5, b"x" * 301, 2)):
        for before in ((), (word(30, 5) + struct.pack("<I", 3),)):
            whole = page(*before, *[one] * 9)
            found = records(whole, LAYOUT, 1)
            assert found is not None
            assert found.step == len(one)
            assert found.samples() == samples(whole, LAYOUT, 1)


def test_a_record_as_long_as_two_is_one() -> None:
    one, two = record(7, 1, b"abcd"), record(7, 2, bytes(20))
    assert len(two) == 2 * len(one)
    whole = page(*[one] * 9, two, *[one] * 9)
    found = records(whole, LAYOUT, 1)
    assert found is not None
    assert found.step == 0
    assert found.samples() == samples(whole, LAYOUT, 1)


LENGTHS = st.sampled_from([record(7, 1, b"abcd", 3), record(7, 2, b"abcd", 0), record(7, 1),
                           long_record(9, 5, b"x" * 120, 2), long_record(9, 6, b"y" * 119, 9),
                           word(30, 5) + struct.pack("<I", 3), word(29, 1) + b"\x08\0\0\0" * 2,
                           word(29, 0), word(31, 9) + struct.pack("<I", 1 << 20)])  # fmt: skip


@given(st.lists(st.tuples(LENGTHS, st.integers(1, 12)), max_size=4), st.sampled_from([0, 0, 1, 9]))
def test_records_are_those_one_by_one(several: list[tuple[bytes, int]], cut: int) -> None:
    parts = [one for data, count in several for one in [data] * count]
    whole = page(*parts)
    if cut:
        whole = whole[: max(16, 16 + sum(map(len, parts)) - 4 * cut)]
    try:
        wanted = samples(whole, LAYOUT, 1)
    except TracerError:
        with pytest.raises(TracerError):
            records(whole, LAYOUT, 1)
        return
    found = records(whole, LAYOUT, 1)
    if found is None:
        assert wanted == []
        return
    assert found.samples() == sorted(wanted, key=lambda one: one[0])
    assert found.times == [one[0] for one in found.samples()]
    for count in range(1, len(found.times)):
        first, rest = found.cut(count)
        assert first.samples() + rest.samples() == found.samples()
