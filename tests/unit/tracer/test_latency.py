"""Pairs of entries and returns."""

from __future__ import annotations

from random import Random

import pytest

from fetchc.tracer.events import Event, OpenCalls, Plan, microseconds

PLAN = Plan("g", "e", "/bin/x", "f", "entry", 0x10, (), ())


def event(timestamp: float) -> Event:
    return Event(PLAN, 1, 1, "x", 0, timestamp, 0x10, {}, ())


def test_each_level_of_a_recursion_has_its_own_entry() -> None:
    calls = OpenCalls()
    first, second = event(1.0), event(2.0)
    calls.enter(("f", 0x100), first)
    calls.enter(("f", 0x80), second)
    assert calls.leave(("f", 0x80)) is second
    assert calls.leave(("f", 0x100)) is first
    assert calls.leave(("f", 0x100)) is None


def test_without_the_frame_the_last_call_returns_first() -> None:
    calls = OpenCalls()
    entries = [event(float(number)) for number in range(3)]
    for entry in entries:
        calls.enter("goroutine", entry)
    assert [calls.leave("goroutine") for _ in range(4)] == [*reversed(entries), None]


def test_a_call_that_never_returned_does_not_stand_in_the_way() -> None:
    calls = OpenCalls()
    calls.enter(0x100, event(1.0))  # left by longjmp
    again = event(2.0)
    calls.enter(0x100, again)
    assert calls.leave(0x100) is again


def test_a_call_that_a_panic_ended_leaves_the_return_to_its_caller() -> None:
    calls = OpenCalls()
    outer, again = event(1.0), event(3.0)
    calls.enter("goroutine", outer, 0x100)
    calls.enter("goroutine", event(2.0), 0x180)  # panics; the outer one recovers
    assert calls.leave("goroutine", 0x100) is outer
    calls.enter("goroutine", event(2.5), 0x140)
    calls.enter("goroutine", again, 0x120)  # above the one before, which is gone
    assert calls.leave("goroutine", 0x140) is None
    assert calls.leave("goroutine", 0x120) is again
    assert calls.leave("goroutine", 0x100) is None


@pytest.mark.parametrize("seed", range(20))
def test_whatever_ends_calls_a_return_has_its_own_entry(seed: int) -> None:
    """Goroutines call, return and panic by chance; the reader sees entries and returns alone."""
    random, calls = Random(seed), OpenCalls()
    stacks: dict[int, list[tuple[int, Event]]] = {number: [] for number in range(4)}
    paired = unwound = 0
    for step in range(3000):
        goroutine = random.randrange(len(stacks))
        stack = stacks[goroutine]
        top = stack[-1][0] if stack else 0
        if not stack or (len(stack) < 40 and random.random() < 0.5):
            depth, entered = top + random.choice([32, 64, 96]), event(float(step))
            stack.append((depth, entered))
            calls.enter(goroutine, entered, depth)
        elif random.random() < 0.2:
            unwound += 1
            del stack[random.randrange(len(stack)) :]
        else:
            depth, entered = stack.pop()
            paired += 1
            assert calls.leave(goroutine, depth) is entered
    assert paired > 500
    assert unwound > 100


def test_memory_is_bounded() -> None:
    calls = OpenCalls(keys=3, most=2)
    for key in range(5):
        calls.enter(key, event(float(key)))
    assert calls.forgotten == 2
    assert [calls.leave(key) is None for key in range(5)] == [True, True, False, False, False]
    deep = [event(float(level)) for level in range(4)]
    for entry in deep:
        calls.enter("deep", entry)
    assert calls.forgotten == 4
    assert [calls.leave("deep") for _ in range(3)] == [deep[3], deep[2], None]


def test_time_between_events() -> None:
    assert microseconds(event(12.000000001), event(12.000012346)) == 12.345
