"""``fetchc compile --batch``: an answer a line, whatever the line is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fetchc.cli import main
from fetchc.cli.batch_command import LONGEST
from tests.support.cases import CORPUS

C = str(CORPUS / "c/layouts/bin/gcc-O2-dwarf5")
GOOD = {"binary": C, "function": "visit", "expressions": ["r->head->value"], "kernel": "6.1"}


def run(
    path: Path, lines: list[bytes], capsys: pytest.CaptureFixture[str], *more: str
) -> tuple[int, list[dict[str, Any]]]:
    path.write_bytes(b"\n".join(lines))
    status = main(["compile", "--batch", str(path), *more])
    printed = capsys.readouterr()
    assert printed.err == ""
    return status, [json.loads(line) for line in printed.out.splitlines()]


def test_one_bad_line_never_stops_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = json.dumps(GOOD).encode()
    lines = [
        good, b"nonsense", b"", b"  ", b"[" * 100_000, b"x" * (LONGEST + 1), b"x" * LONGEST,
        b"\xff\xfe", b"{}", json.dumps(GOOD | {"binary": C + "\0"}).encode(), good,
    ]  # fmt: skip
    status, answered = run(tmp_path / "lines", lines, capsys)
    assert status == 3  # of the name that is none of a file
    assert [each["line"] for each in answered] == [1, 2, 5, 6, 7, 8, 9, 10, 11]
    assert [each["diagnostics"][0]["code"] for each in answered[1:-1]] == ["FC0105"] * 6 + [
        "FC0901"
    ]
    assert "longer than 1,000,000 bytes" in answered[3]["diagnostics"][0]["message"]
    assert "longer" not in answered[4]["diagnostics"][0]["message"]
    assert answered[0] == answered[-1] | {"line": 1}
    assert answered[0]["probes"][0]["args"][0]["fetcharg"] == "+0(+288(%di)):s32"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, 0),
        ({"expressions": ["r->nothing"]}, 1),
        ({"function": "nowhere"}, 1),
        ({"binary": "/no/such/file"}, 3),
        ({"expressions": ["r", "sum"]}, 1),
    ],
)
def test_the_exit_status_is_the_worst_of_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], status: int
) -> None:
    lines = [json.dumps(GOOD | change).encode(), json.dumps(GOOD).encode()]
    assert run(tmp_path / "lines", lines, capsys)[0] == status


def test_the_kernel_of_questions_that_name_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.dumps(GOOD).encode(), json.dumps(GOOD | {"kernel": None}).encode()]
    _, answered = run(tmp_path / "lines", lines, capsys, "--kernel=5.10")
    assert [each["kernel"] for each in answered] == ["6.1", "5.10"]


@pytest.mark.parametrize(
    "more",
    [
        ["r"],
        ["-x", C],
        ["-f", "visit"],
        ["--return"],
        ["--format=probe"],
        ["--expr=r"],
        ["--arch=arm64"],
        ["--maxactive=4"],
        ["--unsafe-return"],
    ],
)
def test_nothing_else_is_asked_beside_a_batch(
    more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", "--batch", "-", *more]) == 2
    assert "only --kernel, --no-cache, -v and --color go with --batch" in capsys.readouterr().err


def test_a_batch_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (tmp_path / "none", tmp_path):
        assert main(["compile", "--batch", str(path)]) == 3
        assert f"error[FC0901]: {path}: cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["compile", "--batch", "-"], ["check", "-"]])
def test_standard_input_that_cannot_be_read(words: list[str]) -> None:
    with open("/dev/null", "wb") as unreadable:
        done = subprocess.run(
            [sys.executable, "-m", "fetchc", *words],
            stdin=unreadable,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == 3
    assert done.stderr == "error[FC0901]: -: cannot be read: Bad file descriptor\n"


def test_an_answer_comes_before_the_next_question() -> None:
    command = [sys.executable, "-m", "fetchc", "compile", "--batch", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for number in range(3):
            running.stdin.write(json.dumps(GOOD | {"id": number}).encode() + b"\n")
            running.stdin.flush()
            assert json.loads(running.stdout.readline())["id"] == number
        running.stdin.close()
        assert running.wait(30) == 0
