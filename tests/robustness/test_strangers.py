"""Processes and containers that lie in wait: some rounds, the same in every run.

``python -m tests.robustness.fuzz --reader process --reader container --minutes 60`` goes on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from fetchc.cli import main
from tests.support.fuzzing import strangers

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a stranger of another user needs root")


def test_processes() -> None:
    found = [one for one in strangers.processes(1, 0, 15) if not isinstance(one, str)]
    assert found == []


def test_containers() -> None:
    if shutil.which("objcopy") is None:
        pytest.skip("no objcopy: .ci/setup installs it")
    found = [one for one in strangers.containers(1, 0, 20) if not isinstance(one, str)]
    assert found == []


def test_what_they_do_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"merge": ("", 0, strangers.SECRET), "compile": ("no answer in 20 s", -1, "")}
    monkeypatch.setattr(strangers, "ask", lambda words: answers.get(words[1], answers["compile"]))
    found = [one for one in strangers.processes(1, 0, 1) if not isinstance(one, str)]
    assert [one["fault"] for one in found] == ["it read a file of root's", "no answer in 20 s"]


def test_a_write_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def writing(words: tuple[str, ...]) -> tuple[str, int, str]:
        # As a merge would that joins names: into the folder that the stranger wants.
        (victim,) = Path(f"/proc/{words[2]}/cmdline").read_bytes().split(b"\0")[6:7]
        (Path(os.fsdecode(victim)).parent / "planted").write_text("")
        return "", 0, ""

    monkeypatch.setattr(
        strangers, "ask", lambda words: writing(words) if words[1] == "merge" else ("", 0, "x")
    )
    found = [one for one in strangers.processes(1, 0, 1) if not isinstance(one, str)]
    assert {one["fault"] for one in found} == {"it wrote where nobody asked it to"}


def test_a_file_of_the_host_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("objcopy") is None:
        pytest.skip("no objcopy: .ci/setup installs it")
    monkeypatch.setattr(strangers, "ask", lambda words: ("", 0, "+8(%di):s32"))
    found = [one for one in strangers.containers(1, 0, 4) if not isinstance(one, str)]
    assert {one["fault"] for one in found} == {"it read a file of the host"}


CALLS = ("open", "stat", "lstat", "readlink", "listdir", "fork")  # of os: each is a step


def ended_before(step: int, *words: str) -> tuple[int, int]:
    """The status of a command about a process that ends before that step, and how many it took."""
    steps, process = 0, os.getpid()
    with subprocess.Popen(["/bin/sleep", "100"]) as stranger, pytest.MonkeyPatch.context() as patch:

        def stepping(call: str, *given: object, **named: object) -> object:
            nonlocal steps
            if os.getpid() == process:
                if steps == step:
                    stranger.kill()
                    stranger.wait()
                steps += 1
            return before[call](*given, **named)

        before = {call: getattr(os, call) for call in CALLS}
        for call in CALLS:
            patch.setattr(os, call, partial(stepping, call))
        try:
            status = main([word.format(stranger.pid) for word in words])
        finally:
            patch.undo()
            stranger.kill()
            strangers.cleared(stranger.pid)
    return status, steps


@pytest.mark.parametrize(
    "words",
    [
        ("compile", "x", "-x", "/proc/{}/exe", "-f", "main"),
        ("functions", "main", "-x", "/proc/{}/exe"),
        ("perfmap", "merge", "{}"),
        ("perfmap", "find", "0x1", "-p", "{}"),
    ],
)
def test_a_process_that_ends_before_any_step(
    words: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    _, count = ended_before(-1, *words)
    assert count > 5
    for step in range(min(count, 30)):
        status, _ = ended_before(step, *words)
        assert status in (0, 1, 3, 4), (step, capfd.readouterr().err)
