"""Events become hits: entries wait for their returns, filters see both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fetchc.cli.trace_events import Hits
from fetchc.cli.trace_request import value_of
from fetchc.cli.trace_targets import FRAME, GOROUTINE, Target
from fetchc.ir.fetch import Decode
from fetchc.tracer.filter_conditions import Condition, parse_filter, with_null
from fetchc.tracer.value_shapes import Leaf
from tests.unit.cli.tracing.events import event, plan, target

if TYPE_CHECKING:
    from fetchc.tracer.events import Value

ENTRY, RETURN = plan("f_in"), plan("f", kind="return")


END = "(*runtime.g)(%r14).stack.hi"


def calls(key: str = FRAME, pushed: int = 8, filter: str = "", stack_end: str = "") -> list[Target]:
    both = {"key": key, "stack_end": stack_end}
    return [
        target("enter", ENTRY, "n", "$retval", **both),
        target("leave", RETURN, "n", "$retval", filter=filter, pushed=pushed, **both),
    ]


def test_a_hit_is_shown_as_it_comes() -> None:
    made = plan()
    shown = target("hit", made, "n", filter="n > 3")
    hits = Hits([shown])
    assert hits.hit(event(made, {"n": 3})) is None
    hit = hits.hit(event(made, {"n": 4}))
    assert hit is not None
    assert (hit.target, hit.event.args, hit.latency) == (shown, {"n": 4}, None)


def test_entry_and_return_are_one_hit_by_their_frame() -> None:
    hits = Hits(calls())
    assert hits.hit(event(ENTRY, {"n": 1, FRAME: 0x100}, 1.0)) is None
    assert hits.hit(event(ENTRY, {"n": 2, FRAME: 0x80}, 2.0)) is None
    inner = hits.hit(event(RETURN, {"$retval": 20, FRAME: 0x88}, 2.5))
    outer = hits.hit(event(RETURN, {"$retval": 10, FRAME: 0x108}, 3.0))
    assert inner is not None
    assert outer is not None
    assert (inner.event.args["n"], inner.event.args["$retval"], inner.latency) == (2, 20, 500000.0)
    assert (outer.event.args["n"], outer.event.args["$retval"], outer.latency) == (1, 10, 2000000.0)


def test_processes_and_functions_do_not_mix() -> None:
    hits = Hits(calls())
    hits.hit(event(ENTRY, {"n": 1, FRAME: 0x100}, pid=1))
    other = hits.hit(event(RETURN, {"$retval": 1, FRAME: 0x108}, 2.0, pid=2))
    assert other is not None
    assert other.latency is None
    assert "n" not in other.event.args
    own = hits.hit(event(RETURN, {"$retval": 1, FRAME: 0x108}, 2.0, pid=1))
    assert own is not None
    assert own.latency == 1e6


def test_goroutines_are_shown_by_their_number() -> None:
    hits = Hits(calls(GOROUTINE, 0, stack_end=END))
    frame: dict[str, Value] = {FRAME: 0x1F00, END: 0x2000}
    hits.hit(event(ENTRY, {"n": 1, GOROUTINE: 5} | frame, 1.0, thread=70))
    hits.hit(event(ENTRY, {"n": 2, GOROUTINE: 6} | frame, 1.5, thread=70))
    moved: dict[str, Value] = {FRAME: 0x9F00, END: 0xA000}
    hit = hits.hit(event(RETURN, {"$retval": 1, GOROUTINE: 5} | moved, 2.0, thread=71))
    assert hit is not None
    assert (hit.event.args["n"], hit.latency) == (1, 1e6)


def test_a_call_that_panics_does_not_take_its_callers_return() -> None:
    hits = Hits(calls(GOROUTINE, 0, stack_end=END))
    for n, frame in enumerate((0x1F00, 0x1E80, 0x1E00), start=1):
        hits.hit(event(ENTRY, {"n": n, GOROUTINE: 5, FRAME: frame, END: 0x2000}, float(n)))
    hit = hits.hit(event(RETURN, {"$retval": 1, GOROUTINE: 5, FRAME: 0x1F00, END: 0x2000}, 4.0))
    assert hit is not None
    assert (hit.event.args["n"], hit.latency) == (1, 3e6)


def test_every_thread_has_a_system_stack_of_its_own() -> None:
    hits = Hits(calls(GOROUTINE, 0, stack_end=END))
    frame: dict[str, Value] = {GOROUTINE: 0, FRAME: 0x1F00, END: 0x2000}
    hits.hit(event(ENTRY, {"n": 1} | frame, 1.0, thread=70))
    hits.hit(event(ENTRY, {"n": 2} | frame, 1.5, thread=71))
    hit = hits.hit(event(RETURN, {"$retval": 1} | frame, 2.0, thread=70))
    assert hit is not None
    assert hit.event.args["n"] == 1


def test_one_of_several_comparisons_is_enough() -> None:
    made = plan()
    hits = Hits([target("hit", made, "n", filter="(n < 3 || n > 7) && n != 9 || $pid == 1")])
    passed = [n for n in range(12) if hits.hit(event(made, {"n": n})) is not None]
    assert passed == [0, 1, 2, 8, 10, 11]
    assert hits.hit(event(made, {}, faults=("n",))) is None
    assert hits.hit(event(made, {}, pid=1, faults=("n",))) is not None


def test_null_is_no_fault() -> None:
    made = plan()
    written = parse_filter("n == nil")
    assert isinstance(written, Condition)
    asked = with_null(written, Leaf("n", Decode("reference", 64)))
    hits = Hits([Target("hit", made, ("n",), asked)])
    assert hits.hit(event(made, {"n": None})) is not None
    assert hits.hit(event(made, {"n": None}, faults=("n",))) is None
    assert hits.hit(event(made, {"n": 1})) is None
    assert hits.hit(event(made, {})) is None  # of an entry that was not seen


def test_filters_see_the_entry_the_return_and_the_time() -> None:
    hits = Hits(calls(filter="n == 1 && $retval > 5 && $latency < 2000000"))

    def shown(n: int, result: int, end: float) -> bool:
        hits.hit(event(ENTRY, {"n": n, FRAME: 0x100}, 1.0))
        return hits.hit(event(RETURN, {"$retval": result, FRAME: 0x108}, end)) is not None

    assert shown(1, 6, 2.0)
    assert not shown(2, 6, 2.0)
    assert not shown(1, 5, 2.0)
    assert not shown(1, 6, 4.0)


def test_faults_of_both_ends_are_kept() -> None:
    hits = Hits(calls())
    hits.hit(event(ENTRY, {"n": None, FRAME: 0x100}, faults=("n",)))
    hit = hits.hit(event(RETURN, {"$retval": None, FRAME: 0x108}, faults=("$retval",)))
    assert hit is not None
    assert hit.event.faults == ("n", "$retval")


def test_the_time_since_the_process_was_elsewhere() -> None:
    start, end = plan("start"), plan("end")
    hits = Hits([target("hit", end), target("start", start)])
    hits.hit(event(start, {}, 1.0, pid=1))
    hits.hit(event(start, {}, 2.0, pid=1))  # it became another program
    hits.hit(event(start, {}, 2.0, pid=2))
    first, again = hits.hit(event(end, {}, 3.0, pid=1)), hits.hit(event(end, {}, 4.0, pid=1))
    other = hits.hit(event(end, {}, 2.5, pid=2, thread=22))
    assert [each and each.latency for each in (first, again, other)] == [1e6, None, 5e5]


def test_the_readers_own_words() -> None:
    made = plan()
    hit = Hits([target("hit", made)]).hit(event(made, {"n": 1}, pid=4, thread=5, comm="c"))
    assert hit is not None
    words = ("$pid", "$tid", "$cpu", "$comm", "$function", "$latency", "n", "m")
    assert [value_of(word)(hit) for word in words] == [4, 5, 0, "c", "main.f", None, 1, None]
