"""Programs for bpftrace are for the version that is asked for, else for the installed one."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.cli import main
from fetchc.cli.compile_command import installed_bpftrace
from tests.support.programs import fixture


def compiled(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    binary = str(fixture("c/layouts/gcc-O2-dwarf5"))
    asked = ["compile", "r->four", "-x", binary, "-f", "visit", "--format", "bpftrace"]
    status = main([*asked, *words])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("bpftrace v0.17.0", "0.17.0"),
        ("bpftrace v0.26.1-12-gabcdef", "0.26.1"),
        ("bpftrace", ""),
        ("bpftrace v0.1.2.3.4", ""),
        ("\\377", ""),
    ],
)
def test_the_installed_one(
    printed: str,
    version: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tool = tmp_path / "bpftrace"
    tool.write_text(f"#!/bin/sh\nprintf '{printed}\\n'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert installed_bpftrace() == version
    size = 4 if version == "0.17.0" else 5
    assert f'str(reg("di") + 128, {size})' in compiled(capsys)[1]
    assert 'str(reg("di") + 128, 4)' in compiled(capsys, "--bpftrace-version", "v0.22.1")[1]


def test_without_one_it_is_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert installed_bpftrace() == ""
    assert "// For bpftrace 0.23 and later: " in compiled(capsys)[1]


def test_what_is_no_version(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, errors = compiled(capsys, "--bpftrace-version", "new")
    assert (status, out) == (2, "")
    assert errors == "error: --bpftrace-version takes 0.27, not `new`\n"
    status, out, errors = compiled(capsys, "--bpftrace-version", "0.9")
    assert (status, out) == (1, "")
    assert "bpftrace 0.9 is older than 0.17" in errors
