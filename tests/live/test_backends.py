"""The formats of other tools, each by the real tool: its values are what the program printed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.programs import fixture
from tests.support.tool_values import Asked, asked_of, compared_values, together
from tests.support.toolchains import require
from tests.support.tools import (
    bpftrace_version,
    missing,
    run_bpftrace,
    run_perf,
    run_uprobe,
)
from tests.support.tracefs import Session

pytestmark = pytest.mark.live

RETURNS = ["go/features/go1.15", "go/features/go1.27"]
FIXTURES = [
    "c/layouts/gcc-O2-dwarf5",
    "c/layouts/clang-O0-dwarf4",
    "go/dnsforward/go1.15",
    "go/dnsforward/go1.27",
]


def _require(tool: str) -> None:
    reason = missing(tool)
    if reason:
        pytest.skip(reason)


def _program(asked: list[Asked], which: str = "installed") -> str:
    return together("bpftrace", asked, bpftrace_version(which)).text


def _texts(asked: list[Asked], format: str, group: str) -> list[str]:
    return [each.probe.written(format, each.arguments, group, each.event).text for each in asked]


def _own(folder: Path) -> Path:
    # A fixture that nobody else runs: these tools record all processes.
    return Path(shutil.copy(fixture(FIXTURES[0]), folder / "own"))


@pytest.mark.parametrize(
    ("name", "which"),
    [(name, "installed") for name in FIXTURES + RETURNS]
    + [(FIXTURES[0], "newer"), ("go/dnsforward/go1.27", "newer")],
)
def test_bpftrace_prints_what_the_program_did(name: str, which: str, tmp_path: Path) -> None:
    _require("bpftrace")
    asked = asked_of(name, "bpftrace")
    program = _program(asked, which)
    reported, printed = run_bpftrace(program, fixture(name), tmp_path, which)
    compared, wrong = compared_values(asked, reported, printed, exact=True)
    assert not wrong, "\n".join(wrong)
    assert compared >= 100, compared


@pytest.mark.parametrize("name", FIXTURES + RETURNS)
def test_perf_reads_back_what_the_program_printed(name: str, tmp_path: Path) -> None:
    _require("perf")
    group = f"fetchc_perf_{os.getpid()}"
    asked = sorted(asked_of(name, "perf"), key=lambda each: "%" not in each.function)[:8]
    lines = "\n".join(_texts(asked, "perf", group))
    reported, printed = run_perf(lines, group, fixture(name), tmp_path)
    compared, wrong = compared_values(asked, reported, printed)
    assert not wrong, "\n".join(wrong)
    assert compared >= 80, compared


def test_a_wrong_program_is_noticed(tmp_path: Path) -> None:
    _require("bpftrace")
    name = FIXTURES[0]
    asked = asked_of(name, "bpftrace")
    text = _program(asked)
    mutants = {
        "another member": ('(int32)reg("si")', '(int32)reg("dx")'),
        "no sign": ("*(int16*)", "*(uint16*)"),
        "half of the width": ('*(uint64*)(reg("di") + 40)', '*(uint32*)(reg("di") + 40)'),
        "a longer text": (", 4)", ", 8)"),
    }
    for what, (right, other) in mutants.items():
        assert right in text, what
        reported, printed = run_bpftrace(text.replace(right, other), fixture(name), tmp_path)
        assert compared_values(asked, reported, printed, exact=True)[1], what


def test_a_wrong_command_line_is_noticed(tmp_path: Path) -> None:
    _require("perf")
    group = f"fetchc_perf_{os.getpid()}"
    asked = asked_of(FIXTURES[0], "perf")[:1]
    lines = "\n".join(_texts(asked, "perf", group)).replace("+8(%di):s32", "+9(%di):s32")
    reported, printed = run_perf(lines, group, fixture(FIXTURES[0]), tmp_path)
    assert compared_values(asked, reported, printed)[1]


def test_perf_takes_returns(tmp_path: Path) -> None:
    _require("perf")
    group = f"fetchc_perf_{os.getpid()}"
    binary = fixture(FIXTURES[0])
    probe = fetchc.open(str(binary)).probe("visit", returns=True)
    text = probe.written("perf", [probe.compile("v=$retval")], group, "ev").text
    reported, _ = run_perf(text, group, binary, tmp_path)
    assert list(reported) == ["ev__return"]
    assert [hit["v"] for hit in reported["ev__return"]][:2] == ["-2147483648", "-2147483637"]


def test_perf_shows_the_next_text_where_there_is_none(tmp_path: Path) -> None:
    _require("perf")
    require("gcc")
    source, program = tmp_path / "texts.c", tmp_path / "texts"
    source.write_text(
        '__attribute__((noinline)) void say(const char *a, const char *b) { __asm__(""); }\n'
        'int main(void) { say("one", "two"); say(0, "three"); return 0; }\n'
    )
    subprocess.run(["gcc", "-g", "-O1", "-o", program, source], check=True, timeout=60)
    group = f"fetchc_perf_{os.getpid()}"
    probe = fetchc.open(program).probe("say")
    written = probe.written("perf", [probe.compile(text) for text in ("a", "b")], group, "ev")
    assert [each.code for each in written.warnings] == ["FC0625"]
    reported, _ = run_perf(written.text, group, program, tmp_path)
    assert reported["ev"] == [{"a": '"one"', "b": '"two"'}, {"a": '"three"', "b": '"three"'}]


def test_the_uprobe_tool_takes_a_definition(tmp_path: Path) -> None:
    _require("uprobe-perf")
    binary = _own(tmp_path)
    probe = fetchc.open(str(binary)).probe("visit")
    arguments = [probe.compile("text=r->text"), probe.compile("depth")]
    definition = probe.definition(arguments, "fetchc_tool", f"fetchc_{os.getpid()}")
    # Its definitions have no group: it uses `uprobes`.
    shown = run_uprobe(definition.replace("fetchc_tool/", ""), binary)
    hits = [line.partition(") ")[2] for line in shown[1:]]
    assert hits[:2] == ['text="ord 0" depth=0', 'text="ord 1" depth=10'], shown


def test_trace_cmd_records_the_event(tmp_path: Path) -> None:
    _require("trace-cmd")
    binary = _own(tmp_path)
    probe = fetchc.open(str(binary)).probe("visit")
    with Session() as session:
        arguments = [probe.compile("text=r->text"), probe.compile("depth")]
        session.add(probe.definition(arguments, session.group, "ev"))
        data = tmp_path / "trace.dat"
        record: list[str | Path] = [
            "trace-cmd",
            "record",
            "-q",
            "-e",
            f"{session.group}:ev",
            "-o",
            data,
            binary,
        ]
        done = subprocess.run(record, capture_output=True, text=True, timeout=60)
        if "Can't enable ftrace" in done.stderr:
            pytest.skip(f"trace-cmd record: {' '.join(done.stderr.split())}")
        assert not done.returncode, done.stderr
        report: list[str | Path] = ["trace-cmd", "report", "-i", data]
        shown = subprocess.run(report, capture_output=True, text=True, timeout=60).stdout
    hits = [line.partition(") ")[2] for line in shown.splitlines() if " text=" in line]
    assert hits[:2] == ["text=ord 0 depth=0", "text=ord 1 depth=10"], shown
