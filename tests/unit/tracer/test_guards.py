"""Pages that were there a moment ago."""

from __future__ import annotations

from fetchc.tracer.guards import Remembered


def test_what_was_there_is_remembered_for_a_second() -> None:
    now = 100.0
    asked: list[tuple[int, int]] = []

    def mapped(thread: int, address: int) -> bool | None:
        asked.append((thread, address))
        return True if address < 0x5000 else False if thread == 1 else None

    look = Remembered(mapped, lambda: now)
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
