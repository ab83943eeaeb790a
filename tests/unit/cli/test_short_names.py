"""``-x libc``, ``-p NAME``, ``-p A,B``, and no ``-x``: what is found, and what is refused."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fetchc.cli import main, parse
from fetchc.cli.option_table import Options
from fetchc.cli.short_names import complete, library_files, processes_named
from fetchc.diag.diagnostic import TracerError
from tests.support.programs import fixture

C = str(fixture("c/layouts/gcc-O2-dwarf5"))
SLEEP = "/bin/sleep"


def completed(*words: str) -> Options:
    options = parse(words)
    assert isinstance(options, Options)
    complete(options)
    return options


NAPPER = f"napper{os.getpid()}"  # of this run alone


@pytest.fixture(name="sleepers")
def sleepers_(tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes of one file, and one of another."""
    for name in (NAPPER, "other"):
        shutil.copy(SLEEP, tmp_path / name)
    with ExitStack() as stack:
        started = []
        for name in (NAPPER, NAPPER, "other"):
            child = subprocess.Popen([tmp_path / name, "60"])
            stack.callback(child.wait)
            stack.callback(child.kill)
            started.append(child)
        yield started


def pids(sleepers: list[subprocess.Popen[bytes]]) -> list[int]:
    return [child.pid for child in sleepers]


def test_the_program_of_a_process(sleepers: list[subprocess.Popen[bytes]]) -> None:
    first, second, other = pids(sleepers)
    found = completed("trace", "-f", "f", "-p", f"{first},{second}")
    assert found.pids == [first, second]
    assert os.path.samefile(found.binary, f"/proc/{first}/exe")
    assert completed("functions", "-p", "other").binary.endswith("/other")
    assert completed("trace", "-f", "f", "-x", C, "-p", str(other)).binary == C


def test_names_of_processes(sleepers: list[subprocess.Popen[bytes]]) -> None:
    assert processes_named(NAPPER) == sorted(pids(sleepers)[:2])
    assert processes_named("nappe") == []
    assert os.getpid() not in processes_named(Path("/proc/self/comm").read_text().strip())


def test_the_children_of_a_server_are_meant_with_it(tmp_path: Path) -> None:
    name = f"forker{os.getpid()}"  # nobody else's
    server = tmp_path / name
    shutil.copy(shutil.which("bash") or "/bin/bash", server)
    os.mkfifo(tmp_path / "nobody_writes")
    # The child waits without a program of its own, which would have the name until it runs.
    command = [str(server), "-c", "(read line <> nobody_writes; true) & echo; wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=tmp_path) as child:
        assert child.stdout is not None
        child.stdout.readline()
        family = completed("trace", "-f", "f", "-p", name).pids
        assert child.pid in family
        assert len(family) == 2
        for pid in family:
            os.kill(pid, 9)
        child.wait()


def refusal(*words: str) -> tuple[str, str, str, str]:
    """Code, message, the place in what was typed, help."""
    with pytest.raises(TracerError) as caught:
        completed(*words)
    (found,) = caught.value.diagnostics
    assert found.primary is not None
    span = found.primary.span
    return found.code, found.message, caught.value.text[span.start : span.end], found.help or ""


def test_what_is_not_clear_is_refused(sleepers: list[subprocess.Popen[bytes]]) -> None:
    first, second, other = pids(sleepers)
    code, message, place, help = refusal("trace", "-f", "f", "-p", f"1,{NAPPER}")
    assert (code, message, place) == ("FC0757", f"2 processes are called `{NAPPER}`", NAPPER)
    assert help == f"name those that you mean: `-p {first},{second}`"
    code, message, _, help = refusal("trace", "-f", "f", "-p", f"{first},{other}")
    assert (code, message) == ("FC0757", "the processes run different programs")
    assert f"/{NAPPER}`" in help


def test_a_process_of_another_user_is_refused(
    sleepers: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (first, *_), stat = pids(sleepers), os.stat

    def refused(path: str, **flags: bool) -> os.stat_result:
        if path == f"/proc/{first}/exe":  # as the kernel answers who may not trace it
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return stat(path, **flags)

    monkeypatch.setattr(os, "stat", refused)
    code, message, place, help = refusal("trace", "-f", "f", "-p", str(first))
    assert (code, place) == ("FC0701", str(first))
    assert message == f"process {first} is another user's, or hides its program"
    assert help == "run fetchc as root, or name the file to probe: `-x FILE`"


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("no-such-name", "no process is called `no-such-name`", "no-such-name"),
        ("self,", "no process is called `self`", "self"),
        ("0", "0 is not the number of a process", "0"),
        ("4194305", "4194305 is not the number of a process", "4194305"),
        ("4194304", "there is no process 4194304", "4194304"),
        ("-3", "no process is called `-3`", "-3"),
        ("", "a process is missing", ""),
        ("../1", "no process is called `../1`", "../1"),
    ],
)
def test_no_process(text: str, message: str, place: str) -> None:
    found = refusal("trace", "-f", "f", "-p", text)
    assert found[:3] == ("FC0707", message, place)
    assert refusal("trace", "-x", "./server", "-f", "f", "-p", text) == found


def test_the_program_that_is_started() -> None:
    assert completed("trace", "-f", "f", "--", "sh", "-c", "true").binary == shutil.which("sh")
    with pytest.raises(TracerError, match=r"FC0753"):
        completed("trace", "-f", "f", "--", "no-such-program")


@pytest.mark.parametrize(
    ("name", "file", "meant"),
    [
        ("libc", "libc.so.6", True),
        ("libc", "libc-2.28.so", True),
        ("libc", "libc.so", True),
        ("libc", "libc++.so.1", False),
        ("libc", "libcrypt.so.1", False),
        ("libc.so.6", "libc.so.6", True),
        ("libssl", "libssl.so.1.1", True),
        ("libstdc++", "libstdc++.so.6.0.33", True),
        ("libpython3.11", "libpython3.11.so.1.0", True),
    ],
)
def test_names_of_libraries(name: str, file: str, meant: bool) -> None:
    assert library_files(name)(f"/usr/lib/{file}") is meant


def test_a_library(sleepers: list[subprocess.Popen[bytes]]) -> None:
    here = completed("functions", "-x", "libc").binary
    assert os.path.basename(here).startswith("libc.so")
    of_process = completed("trace", "-f", "f", "-x", "libc", "-p", str(pids(sleepers)[0])).binary
    assert os.path.samefile(here, of_process)
    code, message, place, _ = refusal(
        "trace", "-f", "f", "-x", "libssl", "-p", str(pids(sleepers)[0])
    )
    assert (code, place) == ("FC0757", "libssl")
    assert "has loaded no `libssl`" in message


def test_a_file_of_that_name_is_meant_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libc").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    assert completed("functions", "-x", "libc").binary == "libc"
    assert completed("functions", "-x", "libx.nosuch").binary == "libx.nosuch"


def test_nothing_is_inferred_from_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "-f", "f"]) == 2
    missing = "--binary BINARY is missing: give -x FILE or -p PID|NAME or -- COMMAND"
    assert missing in capsys.readouterr().err
