"""What a small file can cost: a ceiling, a located FC0905 and exit status 3, in bounded resources.

Each question is a process of its own, whose memory and processor time the kernel counts.
"""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

import fetchc
from fetchc import ceilings
from tests.support.elfwriter import Load, elf_file
from tests.support.fuzzing.bombs import BOMBS, compressed, doubling, named, symbols

LARGEST = 1200  # MB, of which 1 GB is what one question may take
LONGEST = 30.0  # seconds of processor time
PATIENCE = 300.0


class Cost(NamedTuple):
    """What a process came to: megabytes at most, seconds of processor time."""

    status: int
    out: str
    err: str
    megabytes: float
    seconds: float


def cost(words: tuple[str, ...], *, code: str = "", **environment: str) -> Cost:
    """A command of fetchc, or a program of Python, in a process of its own."""
    start = ["-c", code] if code else ["-m", "fetchc"]
    with (
        subprocess.Popen(
            [sys.executable, *start, *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | environment,
        ) as running,
    ):  # fmt: skip
        out, err = running.communicate(timeout=PATIENCE)
        status = running.returncode
    return Cost(status, out[:4000].decode("utf-8", "replace"), err.decode("utf-8", "replace"),
                0, 0)  # fmt: skip


MEASURED = """
import os, resource, sys
pid = os.fork()
if not pid:
    os.execv(sys.executable, [sys.executable, "-m", "fetchc", *sys.argv[1:]])
_, status, used = os.wait4(pid, 0)
print("\\ncost", os.waitstatus_to_exitcode(status), used.ru_maxrss // 1024,
      used.ru_utime + used.ru_stime, file=sys.stderr)
"""


def measured(words: tuple[str, ...], **environment: str) -> Cost:
    """A command of fetchc with what the kernel counted for it."""
    found = cost(words, code=MEASURED, **environment)
    err, _, counted = found.err.rpartition("\ncost ")
    status, megabytes, seconds = counted.split()
    return Cost(int(status), found.out, err, float(megabytes), float(seconds))


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_or_answered_within_the_ceilings(name: str, tmp_path: Path) -> None:
    bomb = BOMBS[name]
    path = tmp_path / "program"
    path.write_bytes(bomb.make())
    for question in bomb.questions:
        found = measured((question[0], "-x", str(path), "--no-cache", *question[1:]))
        assert "Traceback" not in found.err, found.err[-2000:]
        assert found.status in ((3,) if "more than" in bomb.says else (0, 1, 3)), found.err
        assert bomb.says in found.err
        if found.status == 3:
            assert "error[FC0905]: " + str(path) in found.err
        assert len(found.err) < 20_000
        assert found.megabytes < LARGEST, (question, found)
        assert found.seconds < LONGEST, (question, found)


def test_what_is_measured_is_seen() -> None:
    # A process that takes more than the ceilings is noticed by what measures them.
    code = MEASURED.replace('"-m", "fetchc"', '"-c", "held = bytearray(1 << 29); print(len(held))"')
    found = cost((), code=code)
    assert float(found.err.split()[-2]) > 500


def test_the_last_line_of_defence_is_a_refusal(tmp_path: Path) -> None:
    # A ceiling that nothing else guards: one megabyte is less than any listing takes.
    path = tmp_path / "program"
    path.write_bytes(symbols(2_000_000, b"visit" * 200))
    listing = ("functions", "--long", "-x", str(path))
    for name, value, said in (
        ("FETCHC_MAX_MEMORY", "100M", "more than 100 MB of memory"),
        ("FETCHC_MAX_SECONDS", "1", "more than 1 s of processor time"),
    ):
        found = measured(listing, **{name: value})
        assert (found.status, found.err.splitlines()[0]) == (
            3, f"error[FC0905]: {path}: the answer takes {said}",
        )  # fmt: skip
        assert found.seconds < 10
    asked = ("compile", "k", "-x", str(path), "-f", "visit", "--format", "json")
    found = measured(asked, FETCHC_MAX_MEMORY="200M")
    assert found.status == 3
    assert "the answer takes more than 200 MB of memory" in found.out, found
    assert found.out.lstrip().startswith("{")


def test_the_child_that_reads_for_a_trace_is_bounded_too(tmp_path: Path) -> None:
    # Root parses in a child without rights, to which timers are not handed down.
    path = tmp_path / "program"
    path.write_bytes(symbols(2_000_000, b"visit" * 200))
    tmp_path.chmod(0o755)
    asked = ("trace", "-x", str(path), "-f", "visit", "--timeout", "1")
    for name, value, said in (
        ("FETCHC_MAX_MEMORY", "100M", "more than 100 MB of memory"),
        ("FETCHC_MAX_SECONDS", "1", "more than 1 s of processor time"),
    ):
        found = measured(asked, **{name: value})
        assert (found.status, found.err.splitlines()[0]) == (
            3, f"error[FC0905]: {path}: the answer takes {said}",
        )  # fmt: skip


def test_the_time_of_processes_that_help_is_the_question_s(tmp_path: Path) -> None:
    # One unit of blocks within each other: one process reads it, and what it does not finish is
    # read again by the one that asked.
    start = struct.pack("<QQ", 0x1000, 16)
    abbreviations = b"\1\x11\1\x11\1\x12\7\x13\x0b\3\x08\0\0\2\x0b\1\0\0\0"
    unit = struct.pack("<HBBI", 5, 1, 8, 0) + b"\1" + start + b"\x0ca.c\0" + b"\2" * (60 << 20)
    info = struct.pack("<I", len(unit)) + unit
    path = tmp_path / "program"
    sections = {".debug_abbrev": abbreviations, ".debug_info": info}
    path.write_bytes(elf_file(sections, loads=[Load(0x1000, b"\xc3" * 16)]))
    found = measured(("types", "a*", "-x", str(path), "--no-cache"), FETCHC_MAX_SECONDS="2")
    assert found.status == 3, found
    assert "more than 2 s of processor time" in found.err
    assert found.seconds < 3


def test_a_name_that_doubles_ends_with_the_question(tmp_path: Path) -> None:
    # The machine's own demangler writes it, in one call that no look interrupts.
    path = tmp_path / "program"
    path.write_bytes(named(doubling(33)))
    asked = ("functions", "x*", "-x", str(path))
    found = measured(asked, FETCHC_MAX_SECONDS="2", FETCHC_MAX_MEMORY="300M")
    assert found.status == 3, found
    assert found.err.startswith(f"error[FC0905]: {path}: the answer takes more than"), found
    assert found.megabytes < 700
    assert found.seconds < 10


def test_a_batch_continues_after_a_question_that_costs_too_much(tmp_path: Path) -> None:
    bomb, sound = tmp_path / "bomb", Path("corpus/c/layouts/bin/gcc-O2-dwarf5").absolute()
    bomb.write_bytes(symbols(2_000_000, b"visit" * 200))
    lines = "".join(
        f'{{"binary": "{path}", "function": "visit", "expressions": ["{text}"]}}\n'
        for path, text in ((sound, "r->i"), (bomb, "k"), (sound, "depth"))
    )
    (tmp_path / "batch").write_text(lines)
    found = measured(("compile", "--batch", str(tmp_path / "batch")), FETCHC_MAX_MEMORY="60M")
    first, second, third = found.out.splitlines()[:3]
    assert found.status == 3
    assert '"fetcharg"' in first
    assert "more than 60 MB of memory" in second
    assert '"fetcharg"' in third


def test_memory_that_is_not_there_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr("fetchc.answers.batch_questions.OpenPrograms.get", full)
    question = {"binary": "program", "function": "visit", "expressions": ["k"]}
    (answer,) = fetchc.bulk([question])
    assert [each["code"] for each in answer["diagnostics"]] == ["FC0905"]
    assert answer["diagnostics"][0]["message"].startswith("program: the answer takes more")


@pytest.mark.parametrize(
    ("name", "value"),
    [("FETCHC_MAX_MEMORY", "much"), ("FETCHC_MAX_MEMORY", "0"), ("FETCHC_MAX_SECONDS", "-1"),
     ("FETCHC_MAX_SECONDS", "\u0661")],
)  # fmt: skip
def test_a_ceiling_that_is_none_is_reported(name: str, value: str) -> None:
    found = cost(("functions", "-x", "/bin/true"), **{name: value})
    assert found.status == 2
    assert found.err.startswith(f"error: {name} is `{value}`, not a")


def test_ceilings_can_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FETCHC_MAX_MEMORY", raising=False)
    monkeypatch.delenv("FETCHC_MAX_SECONDS", raising=False)
    assert ceilings.limits() == (1 << 30, 30.0)
    path = tmp_path / "program"
    path.write_bytes(compressed(".debug_str", 80 << 20, "zlib"))
    assert list(fetchc.open(path).types("struct node"))
    monkeypatch.setenv("FETCHC_MAX_MEMORY", "100m")
    assert ceilings.limits() == (100 << 20, 30.0)
    with pytest.raises(fetchc.DebugInfoError) as refused:
        list(fetchc.open(path).types("struct node"))
    assert refused.value.code == "FC0905"
    monkeypatch.setenv("FETCHC_MAX_SECONDS", "300")
    assert ceilings.limits()[1] == 300.0


def test_nothing_is_bounded_behind_the_answer() -> None:
    # Whoever calls the command line has signals and limits of their own afterwards.
    import resource

    before = signal.getsignal(signal.SIGPROF), resource.getrlimit(resource.RLIMIT_DATA)
    ceilings.watch("", incremental=True)
    try:
        assert ceilings.watched()
        end = time.process_time() + 0.2
        while time.process_time() < end:
            pass
        assert resource.getrlimit(resource.RLIMIT_DATA) != before[1]
    finally:
        ceilings.unwatch()
        signal.signal(signal.SIGPROF, before[0])
    assert not ceilings.watched()
    assert resource.getrlimit(resource.RLIMIT_DATA) == before[1]
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_a_look_within_an_import_leaves_the_import_alone() -> None:
    # The handler imports, which Python before 3.12 does not expect within an import (gh-91351).
    code = """
import sys
from fetchc import ceilings
looked = 0
def trace(frame, event, argument):
    global looked
    if frame.f_code.co_name == "acquire" and "importlib" in frame.f_code.co_filename:
        sys.settrace(None)
        sys.modules.pop("resource", None)
        ceilings._look(0, frame)
        looked += 1
        sys.settrace(trace)
    return trace
ceilings.watch("")
sys.settrace(trace)
import json.encoder, csv, decimal
sys.settrace(None)
ceilings.unwatch()
print(looked > 3)
"""
    found = cost((), code=code)
    assert (found.status, found.out, found.err) == (0, "True\n", "")
