"""Tables of a trace on the running kernel, as text, as JSON, and as they grow on a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.live.traced import SECONDS, build, left_behind, trace
from tests.support.toolchains import ROOT

pytestmark = pytest.mark.live

SHADES = {0: "DARK", 1: "PLAIN", 2: "LIGHT"}


@pytest.fixture(scope="module", name="program")
def program_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("traced"))


def test_hits_by_an_enum_and_a_text(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ("--count-by", "it->shade,it->name", "-f", "work", "--")
    shown = trace(capfd, "--json", *words, program, "calls", "90").objects
    found = {(each["key"][0]["name"], each["key"][1]): each["count"] for each in shown}
    names = ["plain", "", 'a "b" \\', "two\nlines", "esc\x1b[31m", None]
    assert found == Counter((SHADES[n % 3], names[n % 6]) for n in range(90))
    counts = [each["count"] for each in shown]
    assert counts == sorted(counts, reverse=True)
    text = trace(capfd, "--top", "2", *words, program, "calls", "90").lines
    assert text[1].split() == ["COUNT", "SHARE", "it->shade", "it->name"]
    assert len(text) == 5
    assert text[-1] == "and 4 more"


def test_several_at_once_are_one_table(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    traced = trace(
        capfd, "--json", "--sum", "n", "--histogram", "it->number", "--linear", "20,n", "--by",
        "it->yes", "-f", "work", "--", program, "calls", "200",
    )  # fmt: skip
    for each in traced.objects:
        numbers = [n for n in range(200) if (n % 2 == 1) is each["key"]]
        if "sum" in each:
            assert (each["count"], each["total"]) == (100, sum(numbers))
            exact = sorted(numbers)[89]
            assert abs(each["p90"] - exact) <= exact / 32
        elif each["histogram"] == "n":
            assert each["buckets"] == [[low, low + 20, 10] for low in range(0, 200, 20)]
        else:
            assert each["smallest"] == min(numbers) - 50
    assert len(traced.objects) == 6


def test_an_interval_is_one_line_of_a_pipe(program: Path) -> None:
    command = [sys.executable, "-m", "fetchc", "trace", "--sum", "n", "--by", "it->yes"]
    command += [
        "--interval",
        "200ms",
        "-f",
        "work",
        "--timeout",
        "1.5s",
        "--",
        str(program),
        "loop",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, cwd=ROOT, check=True
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    *intervals, total = lines
    assert len(intervals) > 3
    ends = [each["interval"] for each in intervals]
    assert [one[1] for one in ends[:-1]] == [one[0] for one in ends[1:]]
    for key in (True, False):
        rows = [row for each in intervals for row in each["rows"] if row["key"] == [key]]
        (whole,) = [row for row in total["rows"] if row["key"] == [key]]
        assert sum(row["hits"] for row in rows) == whole["hits"] > 0
        sums = [row["values"]["n"]["total"] for row in rows]
        assert sum(sums) == whole["values"]["n"]["total"]


ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(
    columns: int, lines: int, words: list[str], resized: tuple[int, int] | None = None
) -> tuple[int, str]:
    """The exit status of a trace that a Ctrl-C ends, and all that it wrote to its terminal."""
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(ROOT)
        environment = {**os.environ, "TERM": "xterm-256color"}
        environment.pop("NO_COLOR", None)
        os.execve(sys.executable, [sys.executable, "-m", "fetchc", *words], environment)
    size = struct.pack("HHHH", lines, columns, 0, 0)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
    written, until, asked = b"", time.monotonic() + SECONDS, False
    while time.monotonic() < until:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                read = os.read(terminal, 1 << 16)
            except OSError:  # EIO: the other side is closed
                break
            if not read:
                break
            written += read
        drawn = written.count(b"\x1b[H")
        if drawn >= 3 and resized is not None:
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *resized[::-1], 0, 0))
            resized = None
        if drawn >= 6 and not asked:
            os.write(terminal, b"\x03")
            asked = True
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert left_behind(pid) == []
    return status, written.decode()


@pytest.mark.parametrize("columns", [40, 100])
def test_a_table_that_grows_on_a_terminal(program: Path, columns: int) -> None:
    with subprocess.Popen([program, "loop"], stdout=subprocess.DEVNULL) as child:
        try:
            words = ["trace", "--latency", "--histogram", "$latency", "--by", "it->shade"]
            words += ["-f", "work", "--interval", "0.2s", "-p", str(child.pid)]
            status, written = on_terminal(columns, 24, words, resized=(columns - 5, 12))
        finally:
            child.kill()
    assert os.waitstatus_to_exitcode(status) == 0
    # The first screen is given back, with the cursor, before the last table is printed on it.
    assert written.count("\x1b[?1049h") == written.count("\x1b[?1049l") == 1
    assert written.rindex("\x1b[?25h") < written.rindex("COUNT")
    frames = written[: written.index("\x1b[?1049l")].split("\x1b[H")[1:]
    first, last = (ESCAPE.sub("", frame).split("\r\n") for frame in (frames[1], frames[-1]))
    for frame, width, height in ((first, columns, 24), (last, columns - 5, 12)):
        assert max(map(len, frame)) <= width
        assert len(frame) <= height
        assert any(line.split()[:1] == ["COUNT"] and "it->shade" in line for line in frame)
    assert "DARK" in frames[-1]
    assert "\x1b[48;5;" in frames[-1]  # the heat map


def test_a_killed_view_gives_the_terminal_back(program: Path) -> None:
    with subprocess.Popen([program, "loop"], stdout=subprocess.DEVNULL) as child:
        pid, terminal = pty.fork()
        if not pid:
            os.chdir(ROOT)
            words = ["trace", "--count-by", "n", "-f", "work", "--interval", "0.1s", "-p"]
            os.execv(sys.executable, [sys.executable, "-m", "fetchc", *words, str(child.pid)])
        written = b""
        try:
            while b"\x1b[H" not in written:
                written += os.read(terminal, 1 << 16)
            os.kill(pid, signal.SIGTERM)
            while True:
                try:
                    written += os.read(terminal, 1 << 16)
                except OSError:
                    break
        finally:
            child.kill()
            os.waitpid(pid, 0)
            os.close(terminal)
    assert written.count(b"\x1b[?1049l") == 1
    assert left_behind(pid) == []
