"""``fetchc conformance`` from outside: what it prints, how it ends, what it leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fetchc.check.indexing
from fetchc.cli import main
from fetchc.conformance import (
    dwarf_comparison,
    engines,
    shown_values,
    suite,
    written_programs,
)
from fetchc.conformance.dwarf_comparison import Row
from fetchc.debuginfo.dwarf.constants import DW_AT_byte_size
from fetchc.diag.diagnostic import DebugInfoError
from tests.support.toolchains import require

CHECKOUT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Few expressions, and a directory that must be empty in the end."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setattr(suite, "_FAMILIES", 2)
    monkeypatch.setattr(suite, "_EXPRESSIONS", 12)
    monkeypatch.setattr(suite, "_FUNCTIONS", 4)
    monkeypatch.setattr(written_programs, "_EXPRESSIONS", 12)
    monkeypatch.setattr(engines, "unavailable", lambda engine: "these tests are not live")
    monkeypatch.setattr("fetchc.conformance.toolchains._C_OPTIONS", [("-O0", "-gdwarf-4")])
    return scratch


def test_a_table(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require("gcc")
    assert main(["conformance", "--cc", "gcc"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("gcc: gcc")
    assert lines[1].split()[:3] == ["build", "part", "programs"]
    of_c = [part for part in suite.PARTS if part != "containers"]
    assert [line.split()[3] for line in lines[2:6]] == of_c
    assert lines[6].split()[0] == "all"
    assert lines[6].split()[-1] == "0"
    assert not list(small.iterdir())


def test_a_toolchain_without_programs_of_the_part(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require("gcc")
    command = ["conformance", "--cc", "gcc", "--only", "containers", "--format", "json"]
    assert main(command) == 0
    printed = capsys.readouterr()
    assert "note: gcc: no programs of its language are of this part" in printed.err
    assert [each["results"] for each in json.loads(printed.out)["toolchains"]] == [[]]
    assert not list(small.iterdir())


def test_the_json_form(capsys: pytest.CaptureFixture[str]) -> None:
    require("gcc")
    options = ["--cc", "gcc", "--only", "signatures", "--seed", "x", "--rounds", "2"]
    assert main(["conformance", *options, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["seed"], found["rounds"], found["reproducer"]) == ("x", 2, None)
    (toolchain,) = found["toolchains"]
    (result,) = toolchain["results"]
    assert (result["part"], result["programs"], result["wrong"]) == ("signatures", 2, 0)
    assert result["compared"] + sum(result["refused"].values()) == result["expressions"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_misreading_comes_with_a_small_program(
    form: str, small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    require("gcc")
    right = fetchc.check.indexing.first_element

    def without_stride(*given: object) -> tuple[object, object, int]:
        start, made, _ = right(*given)  # type: ignore[arg-type]
        return start, made, 1

    monkeypatch.setattr("fetchc.check.indexing.first_element", without_stride)
    command = ["conformance", "--cc", "gcc", "--only", "layouts", "--seed", "4", "--format", form]
    assert main(command) == 1
    printed = capsys.readouterr().out
    if form == "json":
        found = json.loads(printed)["reproducer"]
        assert found["command"].startswith("gcc -g")
        assert found["expression"] in found["source"] or "[" in found["expression"]
        assert "int main(void)" in found["source"]
        assert found["fetched"] != found["program"]
    else:
        for label in ("built by:", "expression:", "fetch-arg:", "fetched:", "the program:"):
            assert label in printed
    assert not list(small.iterdir())


def test_debug_information_is_compared_entry_by_entry(capsys: pytest.CaptureFixture[str]) -> None:
    require("gcc")
    command = ["conformance", "--cc", "gcc", "--only", "entries", "--format", "json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    (result,) = found["toolchains"][0]["results"]
    assert (result["part"], result["wrong"], found["reproducer"]) == ("entries", 0, None)
    assert result["compared"] > 100


def test_an_entry_that_is_read_wrong_is_shown(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    require("gcc")
    right = dwarf_comparison.our_rows

    def of_another_size(*given: Any) -> Iterator[Row]:
        for offset, tag, children, values, ranges in right(*given):
            changed = [(at, form, 99 if at == DW_AT_byte_size else it) for at, form, it in values]
            yield offset, tag, children, tuple(changed), ranges

    monkeypatch.setattr(dwarf_comparison, "our_rows", of_another_size)
    command = ["conformance", "--cc", "gcc", "--only", "entries", "--format", "json"]
    assert main(command) == 1
    found = json.loads(capsys.readouterr().out)["reproducer"]
    assert "DW_AT_byte_size(DW_FORM_data1)=99" in found["fetched"]
    assert found["fetched"].split()[:2] == found["program"].split()[:2]  # offset and tag
    assert found["fetched"] != found["program"]
    assert "int main(void)" in found["source"]
    assert not list(small.iterdir())


def test_debug_information_that_cannot_be_read_is_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    require("gcc")

    def refuse(*given: object) -> None:
        raise DebugInfoError("FC0904", "drawn", "planted", ".debug_info", 0)

    monkeypatch.setattr(dwarf_comparison, "our_rows", refuse)
    assert main(["conformance", "--cc", "gcc", "--only", "entries"]) == 1
    assert "planted" in capsys.readouterr().out


def test_a_calculation_that_is_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    require("gcc")
    right = shown_values.lettered

    def turned(function: str, printed: str) -> dict[str, list[list[object]]]:
        (calls,) = right(function, printed).values()
        return {function: [[*one[1:], one[0]] for one in calls]}

    monkeypatch.setattr(written_programs, "lettered", turned)
    assert main(["conformance", "--cc", "gcc", "--only", "operators"]) == 1
    assert "by ir.evaluate_steps" in capsys.readouterr().out


def test_without_pyelftools(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    require("gcc")
    monkeypatch.setitem(sys.modules, "elftools.elf.elffile", None)
    assert main(["conformance", "--cc", "gcc"]) == 3
    said = capsys.readouterr().err
    assert "error[FC0807]" in said
    assert "fetchc[conformance]" in said
    assert main(["conformance", "--cc", "gcc", "--only", "signatures"]) == 0


def test_without_a_toolchain(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance"]) == 2
    assert "no toolchain is given" in capsys.readouterr().err
    assert main(["conformance", "gcc"]) == 2
    assert "no operand is taken: what is `gcc`?" in capsys.readouterr().err


def test_a_missing_compiler(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "--cc", "no-such-cc"]) == 3
    said = capsys.readouterr().err
    assert said.startswith("error[FC0801]: `no-such-cc` cannot be run")
    assert "= help:" in said
    assert not list(small.iterdir())


def test_without_permission_to_trace(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    require("go1.22")
    monkeypatch.setattr("fetchc.conformance.child_processes._LAUNCHER", "import os; os._exit(99)")
    root = str(CHECKOUT / ".toolchains/go-1.22.10/go")
    assert main(["conformance", "--go", root, "--only", "signatures"]) == 4
    assert "error[FC0806]" in capsys.readouterr().err


def test_without_rich(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert main(["conformance", "--cc", "gcc"]) == 3
    said = capsys.readouterr().err
    assert "error[FC0807]" in said
    assert "fetchc[conformance]" in said


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_nothing(number: int, status: int, tmp_path: Path) -> None:
    slow = tmp_path / "cc"
    lines = ["#!/bin/sh", 'case "$1" in --version) exit;; esac', f"echo $$ >{tmp_path}/pid"]
    slow.write_text("\n".join([*lines, "exec sleep 100", ""]))
    slow.chmod(0o755)
    scratch = tmp_path / "other"
    scratch.mkdir()
    child = subprocess.Popen(
        [sys.executable, "-m", "fetchc", "conformance", "--cc", str(slow)],
        cwd=CHECKOUT,
        env=os.environ | {"TMPDIR": str(scratch)},
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + 60
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            assert time.monotonic() < end
            assert child.poll() is None
            time.sleep(0.05)
        child.send_signal(number)
        assert child.wait(30) == status
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
    assert not list(scratch.iterdir())
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()
