"""``fetchc.tracing()``: what the library's users see of a session."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.live.hitting import leftovers
from tests.support.programs import calls, fixture
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

FILES = ("enable", "filter")


@pytest.fixture(autouse=True)
def _uprobes() -> None:
    require_uprobes()


def own(folder: Path, name: str = "c/layouts/gcc-O2-dwarf5") -> str:
    """A fixture that nobody else runs: tests beside this one do so with the fixture itself."""
    return str(shutil.copy(fixture(name), folder / "own"))


@pytest.mark.parametrize(
    ("binary", "function", "expressions"),
    [
        ("c/layouts/gcc-O2-dwarf5", "visit", ("r->head->next->value", "r->colour", "r->text")),
        (
            "go/dnsforward/go1.15",
            "main.(*server).handleRequest",
            ("r->Question[0].Name", "r->Question[0].Qtype", "len(r->Question)"),
        ),
    ],
)
def test_the_values_that_the_program_prints(
    binary: str, function: str, expressions: tuple[str, ...], tmp_path: Path
) -> None:
    path = own(tmp_path, binary)
    with fetchc.tracing() as session:
        plan = session.add(fetchc.open(path).probe(function), expressions)
        session.start()
        with subprocess.Popen([path], stdout=subprocess.PIPE, text=True) as child:
            output, _ = child.communicate(timeout=60)
        session.stop()
        events = list(session.events())
        assert (session.lost, session.missed) == (0, (0, 0))
        assert session.warnings() == ()
    printed = [call.values for call in calls(output) if call.function == function]
    assert printed
    assert len(events) == len(printed)
    for event, values in zip(events, printed, strict=True):
        assert event.plan == plan
        assert (event.pid, event.faults) == (child.pid, ())
        assert event.args == {name: values[name] for name in expressions}
    assert leftovers(plan.group) == []


def test_events_start_it_and_a_point_can_be_probed_twice(tmp_path: Path) -> None:
    path = own(tmp_path)
    probe = fetchc.open(path).probe("visit")
    with fetchc.tracing(buffer_kib=256) as session:
        names = [session.add(probe, ["r->i"]).event, session.add(probe).event]
        assert names == ["visit", "visit_2"]
        assert list(session.events(timeout=0)) == []
        subprocess.run([path], stdout=subprocess.DEVNULL, check=True)
        first, second = list(session.events(timeout=0.3))[:2]
    assert [first.name, second.name] == names
    assert (list(first.args), list(second.args)) == (["r->i"], [])
    assert first.timestamp < second.timestamp


def test_one_process_alone() -> None:
    path = str(fixture("c/layouts/gcc-O2-dwarf5"))
    with fetchc.tracing() as session:
        session.add(fetchc.open(path).probe("visit"))
        with subprocess.Popen(
            ["sh", "-c", 'read go; exec "$0"', path],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        ) as child:
            session.only(child.pid)
            session.start()
            subprocess.run([path], stdout=subprocess.DEVNULL, check=True)
            child.communicate("go\n", timeout=60)
        session.stop()
        assert {event.pid for event in session.events()} == {child.pid}


def test_a_refused_expression_is_reported_at_once() -> None:
    path = str(fixture("c/layouts/gcc-O2-dwarf5"))
    with fetchc.tracing() as session, pytest.raises(fetchc.CompileError, match="FC0302"):
        session.add(fetchc.open(path).probe("visit"), ["r->nothing"])


def test_long_names_are_distinguished(tmp_path: Path) -> None:
    require("gcc")
    name = "f" + 80 * "o"
    source, program = tmp_path / "long.c", tmp_path / "long"
    source.write_text(f"int {name}(int n) {{ return n; }} int main(void) {{ return {name}(0); }}")
    subprocess.run(["gcc", "-g", "-o", program, source], check=True, timeout=60)
    probe = fetchc.open(str(program)).probe(name)
    with fetchc.tracing() as session:
        plans = [session.add(probe, ["n"]) for _ in range(3)]
        session.start()
        subprocess.run([program], check=True, timeout=60)
        session.stop()
        assert {event.name for event in session.events()} == {plan.event for plan in plans}
    assert len({plan.event for plan in plans}) == 3
    assert leftovers(plans[0].group) == []


def test_functions_that_are_called_like_files_of_the_kernel(tmp_path: Path) -> None:
    # In the folder of a group these two are files; an event of that name is a folder there.
    require("gcc")
    source, program = tmp_path / "gate.c", tmp_path / "gate"
    functions = [f"__attribute__((noinline)) int {n}(int n) {{ return n; }}" for n in FILES]
    calls = " + ".join([f"{name}({number})" for number, name in enumerate(FILES)])
    source.write_text("\n".join([*functions, f"int main(void) {{ return {calls}; }}"]))
    subprocess.run(["gcc", "-g", "-O0", "-o", program, source], check=True, timeout=60)
    opened = fetchc.open(program)
    with fetchc.tracing() as session:
        for name in FILES:
            session.add(opened.probe(name), ["n"])
        session.start()
        subprocess.run([program], check=False, timeout=60)
        session.stop()
        assert [event.args["n"] for event in session.events()] == [0, 1]


def test_a_refused_start_can_be_tried_again(tmp_path: Path) -> None:
    path = fixture("c/layouts/gcc-O2-dwarf5")
    gone = tmp_path / "gone"
    shutil.copy(path, gone)
    with fetchc.tracing() as session:
        session.add(fetchc.open(str(gone)).probe("visit"), ["r->i"])
        gone.unlink()
        with pytest.raises(fetchc.TracerError):
            session.start()
        plan = session.add(fetchc.open(str(path)).probe("visit"), ["r->i"])
        session.start()
        subprocess.run([path], stdout=subprocess.DEVNULL, check=True, timeout=60)
        session.stop()
        assert [event.plan for event in session.events()] != []
    assert leftovers(plan.group) == []


def test_a_program_reads_the_same_while_it_is_traced() -> None:
    # The kernel writes its breakpoints into private mappings of the file, whoever has them.
    path = str(fixture("c/layouts/gcc-O2-dwarf5"))
    opened = fetchc.open(path)
    with fetchc.tracing() as session:
        session.add(opened.probe("visit"), ["r->i"])
        session.start()
        for program in (opened, fetchc.open(path)):
            assert program.probe("visit").compile("r->i").fetcharg == "+8(%di):s32"


def test_a_session_that_is_not_open_installs_nothing() -> None:
    probe = fetchc.open(str(fixture("c/layouts/gcc-O2-dwarf5"))).probe("visit")
    before = fetchc.tracing()
    with pytest.raises(ValueError, match="the session is not open"):
        before.add(probe)
    with fetchc.tracing() as session:
        plan = session.add(probe, ["r->i"])
    for call in (
        session.start,
        session.events,
        lambda: session.only(1),
        lambda: session.add(probe),
    ):
        with pytest.raises(ValueError, match="the session is not open"):
            call()
    assert list(session._session.events(timeout=0)) == []
    assert leftovers(plan.group) == []


def test_a_session_that_was_running_is_not_open_either() -> None:
    with fetchc.tracing() as session:
        session.start()
    for call in (session.start, session.events):
        with pytest.raises(ValueError, match="the session is not open"):
            call()


def test_a_forked_process_leaves_the_probes_to_its_parent(tmp_path: Path) -> None:
    path = own(tmp_path)
    with fetchc.tracing() as session:
        plan = session.add(fetchc.open(path).probe("visit"), ["r->i"])
        session.start()
        child = os.fork()
        if child == 0:
            try:
                session.__exit__(None, None, None)  # as `sys.exit` does
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        subprocess.run([path], stdout=subprocess.DEVNULL, check=True)
        session.stop()
        assert [event.plan for event in session.events()]
    assert leftovers(plan.group) == []
