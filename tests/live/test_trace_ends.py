"""How a trace ends, in order and otherwise: what is shown, said, returned, and left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from importlib import import_module
from pathlib import Path

import pytest

from fetchc.cli import main
from tests.live.traced import SECONDS, build, event, hit, left_behind, running, trace
from tests.support.programs import fixture
from tests.support.tracefs import require_bpf

pytestmark = pytest.mark.live


@pytest.fixture(scope="module", name="program")
def program_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("traced"))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    ("number", "engine"),
    [
        (signal.SIGINT, ()),
        (signal.SIGTERM, ()),
        (signal.SIGHUP, ()),
        (signal.SIGQUIT, ()),
        (signal.SIGINT, ("--engine", "bpf")),
    ],
)
def test_a_signal_ends_the_trace_and_its_program(
    number: signal.Signals, engine: tuple[str, ...], program: Path
) -> None:
    if engine:
        require_bpf()
    with running(*engine, "n", "-x", program, "-f", "work", "--", program, "loop") as child:
        pid = event(child)["pid"]
        assert isinstance(pid, int)
        assert left_behind(child.pid) != []
        child.send_signal(number)
        output, errors = child.communicate(timeout=SECONDS)
    assert (child.returncode, errors) == (0, "")
    assert not alive(pid)
    # What was on its way is shown, whole lines of it.
    assert all(line.endswith("}") for line in output.splitlines())


def test_a_process_that_is_watched_continues(program: Path) -> None:
    with subprocess.Popen([program, "loop"], stdout=subprocess.PIPE) as other:
        try:
            with running("n", "-x", program, "-f", "work", "-p", str(other.pid)) as child:
                assert event(child)["pid"] == other.pid
                child.send_signal(signal.SIGTERM)
                child.communicate(timeout=SECONDS)
            assert child.returncode == 0
            assert other.poll() is None
        finally:
            other.kill()


def test_summaries_come_after_a_signal(program: Path) -> None:
    words = ("-f", "work", "--summary", "--timeout", str(SECONDS))
    with subprocess.Popen([program, "loop"], stdout=subprocess.PIPE) as other:
        try:
            with running("-x", program, *words, "-p", str(other.pid)) as child:
                assert child.stderr is not None
                assert child.stderr.readline().startswith("tracing 1 function of ")
                hit(child.pid, 11)
                child.send_signal(signal.SIGINT)
                output, _ = child.communicate(timeout=SECONDS)
        finally:
            other.kill()
    shown = json.loads(output)
    assert shown["summary"] == "work"
    assert shown["hits"] > 10


def test_the_process_ends(program: Path) -> None:
    with subprocess.Popen([program, "loop"], stdout=subprocess.PIPE) as other:
        try:
            with running("n", "-x", program, "-f", "work", "-p", str(other.pid)) as child:
                event(child)
                other.kill()
                other.wait()
                _, errors = child.communicate(timeout=SECONDS)
        finally:
            other.kill()
    assert child.returncode == 0
    assert errors.endswith(f"process {other.pid} has ended\n")


def test_nobody_reads_on(program: Path) -> None:
    with running("n", "-x", program, "-f", "work", "--", program, "loop") as child:
        pid = event(child)["pid"]
        assert isinstance(pid, int)
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.wait(SECONDS) == 0
        assert child.stderr.read() == ""
    assert not alive(pid)


@pytest.mark.parametrize(
    ("asked", "how"),
    [(("n",), "loop"), (("n", "--format", "text"), "loop"), (("--summary",), "calls 3")],
    ids=["jsonl", "text", "summary"],
)
def test_the_disk_is_full(asked: tuple[str, ...], how: str, program: Path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        script = f"exec {program} {how} >/dev/null"
        words: tuple[str | Path, ...] = (
            *asked,
            "-x",
            program,
            "-f",
            "work",
            "--",
            "sh",
            "-c",
            script,
        )
        with running(*words, stdout=full) as child:
            _, errors = child.communicate(timeout=SECONDS)
    finally:
        os.close(full)
    assert child.returncode == 3
    assert errors == "error: standard output cannot be written: No space left on device\n"


def test_count(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ("n", "-x", program, "-f", "work", "--count", "3", "--format", "jsonl", "--")
    shown = trace(capfd, *words, "sh", "-c", f"exec {program} loop >/dev/null")
    assert shown.status == 0
    assert [each["n"] for each in shown.args] == [0, 1, 2]


@pytest.mark.parametrize(
    ("script", "status"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("exit 127", 127)]
)
def test_the_programs_own_status(
    script: str, status: int, program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("-x", program, "-f", "work", "--format", "jsonl")
    traced = trace(capfd, *words, "--", "sh", "-c", f"{program} calls 2; {script}")
    assert traced.status == status
    assert len(traced.objects) == 2


def test_its_output_and_errors_are_its_own(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    traced = trace(
        capfd, "-x", program, "-f", "nap", "--", "sh", "-c", "echo EVENT out; echo err >&2"
    )
    note = f"note: nothing was hit: does `sh` run `{program}`?\n"
    assert (traced.program, traced.errors, traced.lines) == (["EVENT out"], f"err\n{note}", [])


def test_a_program_that_does_not_call_the_function(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    traced = trace(capfd, "-x", program, "-f", "nap", "--", program, "calls", "0")
    note = f"note: nothing was hit: `{program}` never reached the probed code\n"
    assert (traced.errors, traced.lines) == (note, [])


def test_a_timeout(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    begin = time.monotonic()
    words = ("-x", program, "-f", "work", "--timeout", "0.4", "--format", "jsonl", "--")
    traced = trace(capfd, *words, "sh", "-c", f"exec {program} loop >/dev/null")
    assert traced.status == 0
    assert 0.4 < time.monotonic() - begin < SECONDS
    # Whether it comes to a hit in that time is up to the machine.
    assert {each["event"] for each in traced.objects} <= {"work"}


def test_no_such_program_is_reported_before_anything_is_installed(
    program: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a session was opened")

    monkeypatch.setattr("fetchc.tracer.session.Session.__enter__", never)
    traced = trace(capfd, "n", "-x", program, "-f", "work", "--", "no-such-program")
    assert traced.status == 4
    assert traced.errors.startswith(
        "error[FC0753]: `no-such-program` cannot be run: it is not in PATH\n"
    )


def test_what_the_system_cannot_execute(
    program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF nothing")
    broken.chmod(0o755)
    traced = trace(capfd, "n", "-x", program, "-f", "work", "--", broken)
    assert traced.status == 4
    assert "Exec format error" in traced.errors


def test_no_such_process(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    traced = trace(capfd, "n", "-x", program, "-f", "work", "-p", "2147483000")
    assert traced.status == 4
    assert traced.errors.startswith("error[FC0707]")


def test_nothing_to_trace(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    traced = trace(capfd, "nosuch", "-x", program, "-f", "w*", "-f", "outer", "--", program)
    assert traced.status == 1
    assert traced.program == []
    assert traced.errors.startswith("error[FC0201]: no variable `nosuch` is visible at `work`")
    assert "left out `work`, `outer`: `nosuch`: no variable" in traced.errors


def test_hits_of_the_tracer_itself_are_not_shown(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # The process that becomes the program runs code of the C library before that.
    library = _library(program)
    traced = trace(capfd, "-x", library, "-f", "read", "--format", "jsonl", "--", program)
    assert {each["comm"] for each in traced.objects} <= {"traced"}


def _library(program: Path) -> Path:
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return Path(next(word for word in listed.split() if "/libc.so" in word))


def test_without_permission(capfd: pytest.CaptureFixture[str]) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    binary = fixture("c/layouts/gcc-O2-dwarf5")
    words = ("n", "-x", binary, "-f", "triple", "--timeout", "0.01")
    assert trace(capfd, *words).status == 0  # and all modules are loaded
    import_module("fetchc.tracer.bpf.bpf_session")  # that without root, too
    capfd.readouterr()
    os.seteuid(65534)
    try:
        status = main(["trace", *map(str, words)])
    finally:
        os.seteuid(0)
    assert status == 4
    assert capfd.readouterr().err.startswith("error[FC07")
