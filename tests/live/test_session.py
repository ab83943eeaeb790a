"""Sessions on the running kernel: every record comes, in order, and nothing stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from fetchc.diag.diagnostic import TracerError
from fetchc.tracer.events import Event
from fetchc.tracer.session import Session, shielded
from fetchc.tracer.tracefs import Tracefs
from tests.live.hitting import FUNCTIONS, build, leftovers, plan
from tests.live.watching import new_session
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

TRACING = Path("/sys/kernel/tracing")


def append(line: str) -> None:
    Tracefs(str(TRACING)).write(f"{line}\n", "uprobe_events")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_uprobes()
    return build(tmp_path_factory.mktemp("hitting"))


@pytest.fixture
def session(program: Path) -> Iterator[Session]:
    with new_session() as made:
        yield made
    assert leftovers(made.group) == []


def ended(session: Session) -> list[Event]:
    session.stop()
    return list(session.events())


def values(events: list[Event]) -> list[object]:
    return [event.args["n"] for event in events]


def test_every_hit_comes_in_the_order_of_time(session: Session, program: Path) -> None:
    session.add(plan(session.group, program))
    session.start()
    before = time.monotonic()
    with subprocess.Popen([program, "loop", "20000"]) as child:
        child.wait()
    after = time.monotonic()
    events = ended(session)
    assert values(events) == list(range(20000))
    times = [event.timestamp for event in events]
    assert times == sorted(times)
    assert before < times[0] < times[-1] < after  # the clock is time.monotonic's
    assert {(event.pid, event.thread, event.comm) for event in events} == {
        (child.pid, child.pid, "hitting")
    }
    assert session.lost == 0


def test_processors_are_merged(session: Session, program: Path) -> None:
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) < 2:
        pytest.skip("one processor")
    session.add(plan(session.group, program))
    session.start()
    children = [
        subprocess.Popen(
            [program, "loop", "3000"], preexec_fn=partial(os.sched_setaffinity, 0, {cpu})
        )
        for cpu in processors[:2]
    ]
    for child in children:
        child.wait()
    events = ended(session)
    times = [event.timestamp for event in events]
    assert times == sorted(times)
    assert {event.cpu for event in events} == set(processors[:2])
    for child in children:
        assert values([event for event in events if event.pid == child.pid]) == list(range(3000))


def test_events_come_while_the_program_runs(session: Session, program: Path) -> None:
    session.add(plan(session.group, program))
    session.start()
    with subprocess.Popen(
        [program, "steps"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for number in range(3):
            child.stdin.write("go\n")
            child.stdin.flush()
            child.stdout.readline()
            event = next(session.events(timeout=60))  # while the program waits
            assert event.args == {"n": number}
        child.stdin.close()


def test_a_timeout_ends_the_wait_and_not_the_session(session: Session, program: Path) -> None:
    session.add(plan(session.group, program))
    session.start()
    start = time.monotonic()
    assert list(session.events(timeout=0.2)) == []
    assert 0.2 <= time.monotonic() - start < 60
    subprocess.run([program, "loop", "3"], check=True)
    assert values(list(session.events(timeout=0.2))) == [0, 1, 2]


def test_a_consumer_that_stops_in_a_batch_continues_where_it_stopped(
    session: Session, program: Path
) -> None:
    session.add(plan(session.group, program))
    session.start()
    subprocess.run([program, "loop", "10"], check=True)
    some = [event.args["n"] for event, _ in zip(session.events(), range(4), strict=False)]
    rest = values(ended(session))
    # The fifth was taken out of the iterator by zip.
    assert (some, rest) == ([0, 1, 2, 3], [5, 6, 7, 8, 9])


def test_plans_share_an_event_and_are_distinguished(session: Session, program: Path) -> None:
    plans = [plan(session.group, program, which) for which in (0, 7, 9999)]
    other = plan(session.group, program, 7, "other", "x=%di:x8 ")
    session.add(*plans, other)
    session.start()
    assert len(os.listdir(TRACING / "events" / session.group)) == 2 + 2  # enable, filter
    subprocess.run([program, "all"], check=True)
    found = [(event.name, event.plan, event.args["n"]) for event in ended(session)]
    assert sorted(found, key=lambda one: one[0]) == [
        ("f0", plans[0], 0),
        ("f7", plans[1], 7),
        ("f9999", plans[2], 9999),
        ("other", other, 7),
    ]


def test_ten_thousand_probes_come_and_go(program: Path) -> None:
    with new_session() as session:
        session.add(*[plan(session.group, program, which) for which in range(FUNCTIONS)])
        session.start()
        if type(session) is Session:  # of tracefs
            # They share one event: 10,000 would take nine minutes to be switched off.
            assert len(os.listdir(TRACING / "events" / session.group)) == 1 + 2  # enable, filter
        subprocess.run([program, "all"], check=True)
        events = ended(session)
        assert [(event.name, event.args["n"]) for event in events] == [
            (f"f{number}", number) for number in range(FUNCTIONS)
        ]
        assert session.lost == 0
    assert leftovers(session.group) == []


def test_plans_can_be_added_while_it_runs(session: Session, program: Path) -> None:
    session.add(plan(session.group, program, 0))
    session.start()
    session.add(plan(session.group, program, 1), plan(session.group, program, 2))
    subprocess.run([program, "all"], check=True)
    assert [event.name for event in ended(session)] == ["f0", "f1", "f2"]


def test_a_second_plan_of_a_name_or_group_is_a_mistake(session: Session, program: Path) -> None:
    session.add(plan(session.group, program))
    with pytest.raises(ValueError, match="a second plan `f0`"):
        session.add(plan(session.group, program))
    with pytest.raises(ValueError, match="not of the group"):
        session.add(plan("fetchc_other", program, 1))


def test_threads_and_children_count_and_others_do_not(session: Session, program: Path) -> None:
    session.add(plan(session.group, program))
    with subprocess.Popen(
        [program, "tasks"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        pid = int(child.stdout.readline())
        session.only([pid])
        session.start()
        subprocess.run([program, "loop", "5"], check=True)  # somebody else
        output, _ = child.communicate("go\n", timeout=60)
    grandchild = int(output)
    events = ended(session)
    assert values(events) == [1, 2, 3, 4]
    # The threads and the child are gone by now: their processes are known all the same.
    assert [event.pid for event in events] == [pid, pid, grandchild, grandchild]
    threads = [event.thread for event in events]
    assert (threads[0], threads[2]) == (pid, grandchild)
    assert threads[1] not in (pid, grandchild)
    assert threads[3] not in (pid, grandchild)


def test_a_process_that_is_gone_is_reported(session: Session) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    with pytest.raises(TracerError) as refused:
        session.only([child.pid])
    (printed,) = refused.value.diagnostics
    assert (printed.code, printed.message) == ("FC0707", f"there is no process {child.pid}")


def test_the_kernels_filter(session: Session, program: Path) -> None:
    plans = [plan(session.group, program, which) for which in (0, 1, 2)]
    session.add(*plans)
    for one in plans[:2]:
        session.filter(one, "n == 1 || n == 7")
    session.start()
    subprocess.run([program, "all"], check=True)
    subprocess.run([program, "loop", "9"], check=True)
    found = [(event.name, event.args["n"]) for event in ended(session)]
    assert found == [("f1", 1), ("f2", 2), ("f0", 1), ("f0", 7)]


def test_a_filter_that_the_kernel_refuses(session: Session, program: Path) -> None:
    one = plan(session.group, program)
    session.add(one)
    session.filter(one, "n == ")
    with pytest.raises(TracerError) as refused:
        session.start()
    (printed,) = refused.value.diagnostics
    assert printed.code == "FC0708"
    assert printed.notes[0].startswith("the kernel said: ")


def test_user_stacks_go_with_their_events(session: Session, program: Path) -> None:
    session.add(plan(session.group, program))
    session.stacks()
    session.start()
    subprocess.run([program, "loop", "2000"], check=True)
    events = ended(session)
    assert values(events) == list(range(2000))
    stacks = [event.stack for event in events]
    assert all(isinstance(stack, tuple) for stack in stacks)
    assert [each[0] for each in stacks if isinstance(each, tuple)] == [
        event.address for event in events
    ]


def test_a_definition_that_the_kernel_refuses(session: Session, program: Path) -> None:
    good, bad = plan(session.group, program, 0), plan(session.group, program, 1, more="x=%zz ")
    session.add(good, bad)
    with pytest.raises(TracerError) as refused:
        session.start()
    (printed,) = refused.value.diagnostics
    assert printed.code == "FC0705"
    assert printed.notes[0] == "the kernel said: Invalid register name"
    assert printed.primary is not None
    assert refused.value.text[printed.primary.span.start :].startswith("%zz")
    assert [line for line in leftovers(session.group) if "/" in line] == []
    session.add(good)  # without the other one it goes on
    session.start()
    subprocess.run([program, "all"], check=True)
    assert [event.name for event in ended(session)] == ["f0"]


def test_many_threads_are_watched(session: Session, program: Path) -> None:
    session.add(plan(session.group, program))
    script = (
        "import subprocess, sys, threading\n"
        "done = threading.Event()\n"
        "many = [threading.Thread(target=done.wait) for _ in range(200)]\n"
        "for one in many: one.start()\n"
        "def last():\n"
        "    done.wait()\n"
        "    subprocess.run([sys.argv[1], 'loop', '2'])\n"
        "it = threading.Thread(target=last)\n"
        "it.start()\n"
        "print(flush=True)\n"
        "sys.stdin.readline()\n"
        "done.set()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        session.only([child.pid])
        session.start()
        child.communicate("go\n", timeout=60)
    assert values(ended(session)) == [0, 1]


def test_an_event_that_somebody_else_has_put_there(session: Session, program: Path) -> None:
    one = plan(session.group, program)
    append(one.definitions[0])
    session.add(one)
    try:
        with pytest.raises(TracerError, match="FC0706"):
            session.start()
    finally:
        append(f"-:{session.group}/f0")


def test_two_sessions_at_once_have_each_their_own(program: Path) -> None:
    with new_session() as one, new_session() as two:
        one.add(plan(one.group, program, 0))
        two.add(plan(two.group, program, 0), plan(two.group, program, 1))
        one.start()
        two.start()
        subprocess.run([program, "all"], check=True)
        assert [event.name for event in ended(one)] == ["f0"]
        assert [event.name for event in ended(two)] == ["f0", "f1"]
    assert leftovers(one.group) + leftovers(two.group) == []


def test_a_flood_is_counted_and_nobody_waits(program: Path) -> None:
    with new_session(buffer_kib=8) as session:
        session.add(plan(session.group, program))
        session.start()
        one = min(os.sched_getaffinity(0))
        subprocess.run(
            [program, "loop", "20000"],
            check=True,
            timeout=60,
            preexec_fn=partial(os.sched_setaffinity, 0, {one}),
        )
        lost = session.lost
        events = ended(session)
        assert 0 < len(events) < 20000
        assert lost == 20000 - len(events)
        assert values(events) == list(range(len(events)))  # what was there first
    assert session.lost == lost


def test_a_reader_that_keeps_up_with_a_small_buffer_loses_little(program: Path) -> None:
    with new_session(buffer_kib=64) as session:
        session.add(plan(session.group, program))
        session.start()
        with subprocess.Popen([program, "loop", "50000"]) as child:
            found: list[object] = []
            while child.poll() is None:
                found += values(list(session.events(timeout=0.01)))
        found += values(ended(session))
        assert len(found) + session.lost == 50000
        assert found == sorted(set(found), key=int)  # type: ignore[arg-type]


def copied(program: Path, folder: Path) -> Path:
    copy = folder / "copy"
    copy.write_bytes(program.read_bytes())
    copy.chmod(0o755)
    return copy


@pytest.mark.parametrize("what", ["replaced", "deleted"])
def test_a_file_that_changes_while_it_is_traced(what: str, program: Path, tmp_path: Path) -> None:
    copy = copied(program, tmp_path)
    with new_session() as session:
        session.add(plan(session.group, copy))
        session.start()
        with subprocess.Popen(
            [copy, "steps"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        ) as child:
            assert session.warnings() == ()
            if what == "deleted":
                copy.unlink()
            else:
                other = tmp_path / "other"
                other.write_bytes(program.read_bytes())
                other.rename(copy)
            child.communicate("go\ngo\n", timeout=60)
        assert values(ended(session)) == [0, 1]  # who ran it is traced on
        (printed,) = session.warnings()
        assert (printed.code, printed.message) == ("FC0613", f"the traced file {copy} was {what}")
        assert session.warnings() == ()
    assert leftovers(session.group) == []


def test_a_debugger_at_traced_code_is_named(program: Path) -> None:
    require("gdb")
    with new_session() as session, subprocess.Popen(
        [program, "steps"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as child:  # fmt: skip
        session.add(plan(session.group, program))
        session.start()
        assert session.warnings() == ()
        with subprocess.Popen(
            ["gdb", "-q", "-nx", "-p", str(child.pid), "-ex", "shell echo attached"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "DEBUGINFOD_URLS": ""},
        ) as debugger:  # fmt: skip
            assert any(line.endswith("attached\n") for line in debugger.stdout or ())
            (printed,) = session.warnings()
            assert session.warnings() == ()
            debugger.communicate("detach\nquit\n", timeout=60)
        child.communicate("go\ngo\n", timeout=60)
        assert child.returncode == 0
    said = f"process {debugger.pid} (gdb) debugs process {child.pid}, which runs traced code"
    assert (printed.code, printed.severity, printed.message) == ("FC0636", "warning", said)


def test_a_buffer_that_cannot_be_had(program: Path) -> None:
    session = Session(buffer_kib=1 << 40)
    with pytest.raises(TracerError) as refused, session:
        raise AssertionError("entered all the same")
    assert refused.value.diagnostics[0].code == "FC0709"
    assert leftovers(session.group) == []


def test_an_exception_inside_leaves_nothing(program: Path) -> None:
    session = new_session()
    with pytest.raises(ZeroDivisionError), session:  # noqa: PT012 - what is inside is tested
        session.add(plan(session.group, program))
        session.start()
        raise ZeroDivisionError
    assert leftovers(session.group) == []
    session.close()


def test_a_signal_just_before_the_end_leaves_nothing(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "fetchc.tracer.session.shielded"

    def interrupted() -> None:
        monkeypatch.setattr(name, shielded)
        raise SystemExit(143)

    made = new_session()
    with pytest.raises(SystemExit), made:  # noqa: PT012 - the end of the block is what is tested
        made.add(plan(made.group, program))
        made.start()
        monkeypatch.setattr(name, interrupted)
    assert leftovers(made.group) == []


def test_an_instance_that_somebody_reads_is_reported(program: Path) -> None:
    session = Session()
    with ExitStack() as reading, pytest.raises(TracerError) as refused, session:  # noqa: PT012
        session.add(plan(session.group, program))
        session.start()
        path = TRACING / "instances" / session.group / "trace_pipe"
        reading.enter_context(open(path, "rb"))
    assert refused.value.diagnostics[0].message.startswith("the instance `")
    assert leftovers(session.group) == [session.group]  # its definitions are gone
    (TRACING / "instances" / session.group).rmdir()


def test_an_event_in_use_elsewhere_is_reported_and_can_be_removed_later(program: Path) -> None:
    session = Session()
    enable = TRACING / "events" / session.group / "f0/enable"
    with pytest.raises(TracerError) as refused, session:  # noqa: PT012 - as above
        session.add(plan(session.group, program))
        session.start()
        enable.write_text("1")  # somebody looks at it in the top instance
    assert refused.value.diagnostics[0].code == "FC0710"
    try:
        assert len(leftovers(session.group)) == 1
    finally:
        enable.write_text("0")
        append(f"-:{session.group}/f0")
    assert leftovers(session.group) == []


CHILD = """
import sys
from pathlib import Path
from fetchc.tracer.session import Session
from fetchc.tracer.session import terminable
from fetchc.tracer.tracefs import Tracefs
from tests.live.hitting import plan
with terminable(), Session() as session:
    session.add(plan(session.group, Path(sys.argv[1])))
    session.start()
    print(session.group, flush=True)
    for event in session.events():
        pass
"""


def running(program: Path) -> tuple[subprocess.Popen[str], str]:
    """A process that traces, and its session's name."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, program], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    group = child.stdout.readline().strip()
    assert leftovers(group) != []
    return child, group


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_leave_nothing(program: Path, number: signal.Signals) -> None:
    child, group = running(program)
    with child:
        child.send_signal(number)
        if number == signal.SIGINT:
            assert child.wait(timeout=60) != 0
        else:
            assert child.wait(timeout=60) == 128 + number
    assert leftovers(group) == []


def test_what_a_killed_session_leaves(program: Path) -> None:
    child, group = running(program)
    alive, other = running(program)
    try:
        with child:
            child.kill()
        assert len(leftovers(group)) == 2
        with Session() as session:
            (printed,) = session.warnings()
        assert printed.code == "FC0612"
        assert printed.notes == (f"`{group}`",)
        assert printed.help == "remove them: `fetchc remove --stale`"
        done = subprocess.run(
            [sys.executable, "-m", "fetchc", "remove", "--stale"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert (done.stdout, done.stderr) == (f"{group}\n", "")
        assert leftovers(group) == []
        assert len(leftovers(other)) == 2  # who lives keeps what is his
    finally:
        with alive:
            alive.terminate()
    assert leftovers(other) == []


def test_nothing_added_is_nothing_traced(session: Session) -> None:
    session.start()
    assert ended(session) == []
