"""The walks of docs/ in a booted kernel: they print what the pages show.

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

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "walks-kernel.md", DOCS / "tutorials" / "kernel.md"]
KERNEL = labelled("amd64-newest")
MENTIONED = "Linux 7.3"  # by the pages
SECONDS = 300  # for the boot, when the machine is busy


def run(guest: Guest, command: str) -> str:
    name, *words = shlex.split(command)
    assert name == "fetchc", "a guest has no shell"
    return guest.run(PYTHON, "-m", "fetchc", *words)


@pytest.mark.long
def test_the_walks_print_what_the_pages_show(request: pytest.FixtureRequest) -> None:
    reason = KERNEL.why_not()
    if reason:
        pytest.skip(reason)
    bless = request.config.getoption("--bless")
    if not bless and not f"Linux {KERNEL.release}".startswith(MENTIONED):
        pytest.skip(f"the pages show {MENTIONED}, the newest kernel here is {KERNEL.release}")
    texts = {page: page.read_text() for page in PAGES}
    with Guest(KERNEL, {**files(KERNEL), "calls": program(KERNEL)}, SECONDS) as guest:
        printed = [
            (page, command, shown, run(guest, command))
            for page, text in texts.items()
            for command, shown in examples(text, "console lab")
        ]
    if bless:
        for page, command, shown, output in printed:
            block, again = f"$ {command}\n{shown}", f"$ {command}\n{output}"
            texts[page] = texts[page].replace(block, again, 1)
        for page, text in texts.items():
            page.write_text(text)
        return
    assert len(printed) >= 10
    assert {page for page, *_ in printed} == set(PAGES)
    for _, command, shown, output in printed:
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
