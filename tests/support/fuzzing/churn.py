"""Other tools add and remove probes without a pause, while fetchc adds, lists and removes its own.

A round is one such use of fetchc; what it finds is a definition that stays, one that is not listed,
or a crash. The probes of all are in a copy of a program that nobody runs.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import pytest

from fetchc.cli import main
from fetchc.diag.diagnostic import TracerError
from fetchc.tracer.install import group_and_event, install, listed, uninstall
from fetchc.tracer.tracefs import Tracefs, find_tracefs
from tests.support.programs import fixture

__all__ = ["rounds"]

PROGRAM = "c/layouts/gcc-O2-dwarf5"
# Adds a few events, removes them again; appends, and ends by itself when nobody reads any more.
CHURN = """
import os, signal, sys
# What starts in the background of a shell has SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
path, binary, group = sys.argv[1:]
file = os.open(path, os.O_WRONLY | os.O_APPEND)
def put(line):
    try: os.write(file, line.encode())
    except OSError: pass
number = 0
try:
    while True:
        few = [f"{group}/e{number + n}" for n in range(5)]
        for n, name in enumerate(few):
            put(f"p:{name} {binary}:{0x1200 + n:#x} a=%di b=%si c=%dx\\n")
        for name in few: put(f"-:{name}\\n")
        number = (number + 5) % 1000
        if not number:
            os.write(1, b".")
except BaseException:
    for name in few: put(f"-:{name}\\n")
"""


@contextmanager
def _churned(tracefs: Tracefs, binary: str, count: int) -> Iterator[None]:
    command = [sys.executable, "-c", CHURN, tracefs.path("uprobe_events"), binary]
    group = f"fetchc_others{os.getpid()}"
    running = [
        subprocess.Popen([*command, f"{group}_{n}"], stdout=subprocess.DEVNULL)
        for n in range(count)
    ]
    try:
        yield
    finally:
        for one in running:
            one.send_signal(2)
        for one in running:
            one.wait()
        for line in listed(tracefs):
            if group_and_event(line)[0].startswith(group):
                uninstall(tracefs, [group_and_event(line)])


def rounds(seed: int, first: int, count: int) -> Generator[str | dict[str, object], None, None]:
    """The name of each round, and after it what it finds."""
    tracefs = find_tracefs()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", folder)
        binary = str(shutil.copy(fixture(PROGRAM), Path(folder) / "program"))
        with _churned(tracefs, binary, 2):
            for number in range(first, first + count):
                yield (label := f"{seed} churn {number}")
                group = f"fetchc_churn{os.getpid()}_{number}"
                try:
                    found = _round(tracefs, binary, group, random.Random(label))
                except Exception as crash:  # noqa: BLE001 - which is what is looked for
                    found = f"{type(crash).__name__}: {crash}"
                left = _left(tracefs, group)
                found = found or (f"{len(left)} definitions stay" if left else "")
                if found:
                    yield {"fault": found, "base": "churn", "seed": label, "question": []}


def _left(tracefs: Tracefs, group: str) -> list[str]:
    # By the folder of the events, which is exact; and takes away what is found.
    try:
        names = [one.name for one in os.scandir(tracefs.path("events", group)) if one.is_dir()]
    except FileNotFoundError:
        return []
    for name in names:
        with suppress(OSError):
            tracefs.write("0", "events", group, name, "enable")
            tracefs.write(f"-:{group}/{name}\n", "uprobe_events")
    return names


def _round(tracefs: Tracefs, binary: str, group: str, source: random.Random) -> str:
    # What is wrong; empty where nothing is.
    count = source.choice((1, 2, 3, 10, 40))
    names = [(group, f"e{number}") for number in range(count)]
    lines = [
        f"p:{group}/{event} {binary}:{0x1100 + at:#x} a=%di" for at, (_, event) in enumerate(names)
    ]
    if source.random() < 0.3:
        return _commands(tracefs, binary, group, source.random() < 0.5)
    if source.random() < 0.3:
        bad = source.randrange(count)
        lines[bad] = lines[bad].replace("%di", "%none")
        try:
            install(tracefs, lines)
            return "a definition that is none was taken"
        except TracerError as refused:
            return "" if refused.text == lines[bad] else f"refused: {refused.text}"
    install(tracefs, lines)
    there = {group_and_event(line) for line in listed(tracefs)}
    lacking = [event for event in names if event not in there]
    uninstall(tracefs, names)
    return f"{len(lacking)} of {count} were not listed" if lacking else ""


def _commands(tracefs: Tracefs, binary: str, group: str, enable: bool) -> str:
    added = ("add", "r->i", "-f", "visit", "-x", binary, "--group", group)
    for words, status in (
        (("list",), 0),
        ((*added, *(["--enable"] if enable else [])), 0),
        (("list", f"{group}/*", "--format", "json"), 0),
        (added, 4),
        (("remove", f"{group}/visit"), 0),
    ):
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            answered = main(words)
        if answered != status:
            return f"{words[0]} ends with {answered}: {err.getvalue()[-300:]}"
        if "json" in words:
            owners = [one["owner"] for one in json.loads(out.getvalue())["definitions"]]
            if owners != ["added"]:
                return f"it is listed as {owners}"
    return ""
