"""The walk of docs/walks-kernel.md in a booted kernel: it prints what the page shows.

Times, process numbers and addresses differ from run to run; all else is compared word for word.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.live.test_walks import settled
from tests.support.examples import examples
from tests.support.kernel_lab import labelled
from tests.support.kernel_lab_calls import program
from tests.support.kernel_lab_guest import Guest
from tests.support.kernel_lab_python import PYTHON, files

PAGE = Path(__file__).parents[2] / "docs" / "walks-kernel.md"
KERNEL = labelled("amd64-newest")
MENTIONED = "Linux 7.3"  # by the page
SECONDS = 300  # for the boot, when the machine is busy


def run(guest: Guest, command: str) -> str:
    name, *words = shlex.split(command)
    assert name == "fetchc", "a guest has no shell"
    return guest.run(PYTHON, "-m", "fetchc", *words)


@pytest.mark.long
def test_the_walk_prints_what_the_page_shows(request: pytest.FixtureRequest) -> None:
    reason = KERNEL.why_not()
    if reason:
        pytest.skip(reason)
    bless = request.config.getoption("--bless")
    if not bless and not f"Linux {KERNEL.release}".startswith(MENTIONED):
        pytest.skip(f"the page shows {MENTIONED}, the newest kernel here is {KERNEL.release}")
    text = PAGE.read_text()
    with Guest(KERNEL, {**files(KERNEL), "calls": program(KERNEL)}, SECONDS) as guest:
        printed = [
            (command, shown, run(guest, command))
            for command, shown in examples(text, "console lab")
        ]
    if bless:
        for command, shown, output in printed:
            text = text.replace(f"$ {command}\n{shown}", f"$ {command}\n{output}", 1)
        PAGE.write_text(text)
        return
    assert len(printed) >= 10
    for command, shown, output in printed:
        assert plain(output) == plain(shown), command


def plain(text: str) -> str:
    # The program's own lines have numbers of inodes and processes.
    return settled(re.sub(r"^(open|read|write|process) .*\n", "", text, flags=re.M))


def test_what_differs_is_seen() -> None:
    line = '    0.000123  lab caller/91  vfs_read  name="lab_a"  count=100\n'
    assert plain(line) == plain(line.replace("0.000123", "0.000456").replace("/91 ", "/92 "))
    assert plain(line) != plain(line.replace("count=100", "count=101"))
    assert examples("```console lab\n$ fetchc list\nx\n```\n", "console lab") == [
        ("fetchc list", "x\n")
    ]
