"""The walks of docs/walks.md, run on the live kernel: they print what the page shows.

Times, process numbers and addresses differ from run to run; all else is compared word for word.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.dotnet import NETCORE21, NETCORE31, missing
from tests.support.examples import examples
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

CHECKOUT = Path(__file__).parents[2]
PAGES = sorted(
    page for page in (CHECKOUT / "docs").rglob("*.md") if "```console walk\n" in page.read_text()
)

# What differs between two runs, and what stands for it here.
CHANGING: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
    (r"^ +\d+\.\d{6}", "TIME"),
    (r'"timestamp": [\d.]+', '"timestamp": TIME'),
    (r'"(pid|thread|cpu|address)": \d+', r'"\1": N'),
    (r"/\d+(:\d+)? +", "/PID "),  # the thread stands there too where it is not the process's first
    (r" +[\d.]+ (ns|us|ms|s)  ", " DURATION "),
    (r"0x[0-9a-f]{9,}", "ADDRESS"),
    # Times in tables, and the widths of their columns.
    (r"^ *(\d+) [ \d.]+(?=[^ ].*|$)", r"\1 N "),
    (r"^ *(COUNT|HITS) .*", lambda head: re.sub(" +", " ", head[0]).strip()),
]


def settled(text: str) -> str:
    for pattern, word in CHANGING:
        text = re.sub(pattern, word, text, flags=re.MULTILINE)
    return text


def run(command: str, state: Path) -> str:
    here = f'"{sys.executable}" -m fetchc'
    environment = {**os.environ, "NO_COLOR": "1", "XDG_STATE_HOME": str(state)}
    done = subprocess.run(
        ["sh", "-c", re.sub(r"^fetchc\b", here, command)],
        cwd=CHECKOUT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        encoding="utf-8",
    )
    return (done.stdout + done.stderr).replace(str(CHECKOUT), "/src/fetchc")


def lacking(page: str) -> str | None:
    """What a page's own tools are missing, None where all are there."""
    if page == "slow-server.md":
        return None if shutil.which("cc") else "no cc: .ci/setup installs it"
    if page != "dotnet.md":
        return None
    tools = [tool for tool in ("mcs", "mono", "as", "ld") if shutil.which(tool) is None]
    if tools:
        return f"no {tools[0]}: .ci/setup installs it"
    return missing(NETCORE21) or missing(NETCORE31)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_a_walk_prints_what_the_page_shows(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    require_uprobes()
    if reason := lacking(page.name):
        pytest.skip(reason)
    text = page.read_text()
    walk = examples(text, "console walk")
    try:
        printed = [(command, shown, run(command, tmp_path)) for command, shown in walk]
    finally:
        run("fetchc remove --all", tmp_path)
    if request.config.getoption("--bless"):
        for command, shown, output in printed:
            text = text.replace(f"$ {command}\n{shown}", f"$ {command}\n{output}", 1)
        page.write_text(text)
        return
    for command, shown, output in printed:
        assert settled(output) == settled(shown), command


def test_what_differs_is_seen() -> None:
    line = '    0.000123  s/20308  3.1 us  main.f  name="a" at 0x7ffe12345678\n'
    assert settled(line) == settled(line.replace("0.000123", "1.000000").replace("20308", "7"))
    assert settled(line) == settled(line.replace("20308  ", "20308:20311  "))
    assert settled(line) != settled(line.replace('"a"', '"b"'))
    assert examples("```console walk\n$ fetchc list\nx\n```\n", "console walk") == [
        ("fetchc list", "x\n")
    ]
