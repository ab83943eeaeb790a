"""Where pointers can lead, and pages that were there a moment ago."""

from __future__ import annotations

import os
import struct

import pytest

from fetchc.tracer.guards import OF_KERNEL, OF_PROGRAM, MappedCache, guarded


def test_what_was_there_is_remembered_for_a_second() -> None:
    now = 100.0
    asked: list[tuple[int, int]] = []

    def mapped(thread: int, address: int) -> bool | None:
        asked.append((thread, address))
        return True if address < 0x5000 else False if thread == 1 else None

    look = MappedCache(mapped, lambda: now)
    assert look(1, 0x4010) is True
    assert look(1, 0x4FFF) is True  # the same page
    assert asked == [(1, 0x4010)]
    assert look(2, 0x4010) is True  # of another program
    assert look(1, 0x5000) is False
    assert look(1, 0x5000) is False  # never remembered: it can be mapped at any time
    assert look(2, 0x5000) is None
    assert len(asked) == 5
    now += 0.9
    assert look(1, 0x4010) is True
    assert len(asked) == 5
    now += 0.2
    assert look(1, 0x4010) is True
    assert len(asked) == 6


@pytest.mark.skipif(
    os.uname().machine not in ("x86_64", "aarch64", "riscv64"), reason="halves of other machines"
)
def test_what_was_taken_out_of_a_list_leads_nowhere() -> None:
    read = guarded(lambda data, faults: 7, [(0, 16, False, OF_KERNEL)], None, "node.next")
    word = struct.Struct("=Q")
    for pointer, value in (
        (0xDEAD000000000100, None),
        (0xDEAD000000000122, None),
        (0xFF11000029EAAF80, 7),  # five levels of pages
        (0xFFFF888000001000, 7),
    ):
        faults: list[str] = []
        assert read(word.pack(pointer), faults) == value
        assert faults == ["node.next"] * (value is None)


def test_pointers_lead_into_the_kernel_or_into_the_program() -> None:
    word, path = struct.Struct("=Q"), "file->flags"
    nowhere = (0, 8, 1 << 60, (1 << 64) - 22)
    for bounds, good, bad in (
        (OF_KERNEL, (0xFFFF888000001000, 0x7F0000001000), nowhere),
        (OF_PROGRAM, (0x7F0000001000,), (*nowhere, 0xFFFF888000001000)),
    ):
        read = guarded(lambda data, faults: 7, [(0, 16, False, bounds)], None, path)
        faults: list[str] = []
        assert [read(word.pack(pointer), faults) for pointer in good] == [7] * len(good)
        assert faults == []
        assert [read(word.pack(pointer), faults) for pointer in bad] == [None] * len(bad)
        assert faults == [path] * len(bad)
