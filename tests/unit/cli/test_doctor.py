"""``fetchc doctor``: what it finds is what other ways of asking find, and all of it is optional."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from fetchc.cli import doctor_command, main
from fetchc.cli.doctor_command import CHECKS, Finding, held_capabilities
from fetchc.diag.diagnostic import TracerError
from fetchc.privileges import NOBODY
from fetchc.tracer.tracefs import find_tracefs, refused


def finding(name: str) -> Finding:
    return next(each for each in (check() for check in CHECKS) if each.name == name)


def test_text_and_json_say_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # It counts the modules that are loaded so far.
    monkeypatch.setattr(doctor_command, "bytecode_note", lambda: "no bytecode; run it")
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert main(["doctor", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == len(CHECKS) == len({row["name"] for row in rows})
    for row in rows:
        mark = "ok" if row["ok"] else "no"
        assert any(
            line.startswith(f"{mark} ") and row["found"] in line for line in text.splitlines()
        )
        assert row["ok"] == (row["how"] is None)
        assert row["how"] is None or row["how"] in text


def test_an_operand_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "me"]) == 2
    assert "what is `me`" in capsys.readouterr().err


def test_capabilities(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tx\nCapEff:\t000000c000080000\n")
    assert held_capabilities(str(status)) == {"PERFMON", "BPF", "SYS_PTRACE"}
    status.write_text("CapEff:\t0000000000000000\n")
    assert held_capabilities(str(status)) == set()


def test_tracefs_is_found_where_trace_finds_it() -> None:
    found = finding("tracefs")
    try:
        tracefs = find_tracefs()
    except TracerError as refusal:
        expected, well = refusal.diagnostics[0].message, False
    else:
        expected, well = tracefs.root, os.path.exists(f"{tracefs.root}/kprobe_events")
    assert found.found.startswith(expected)
    assert (not found.how) == well


def test_what_is_missing_has_a_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_tracefs() -> None:
        raise refused("FC0702", "tracefs is not mounted", help="mount it: `mount -t tracefs`")

    monkeypatch.setattr("fetchc.tracer.tracefs.find_tracefs", no_tracefs)
    monkeypatch.setattr("fetchc.target.kernel_versions.running_version", lambda: "99.1")
    monkeypatch.setattr(doctor_command, "held_capabilities", lambda: set())
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(doctor_command, "_DEBUG_FOLDER", "/nonexistent")
    monkeypatch.setattr("fetchc.tracer.bpf.features.unusable", lambda *_, **__: "it is old")
    monkeypatch.setattr(doctor_command, "bytecode_note", lambda: "no bytecode; run it")
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)
    lacking = {each.name for each in (check() for check in CHECKS) if each.how}
    assert lacking >= {
        "python", "libraries", "kernel", "privileges", "tracefs", "BPF", "debug files",
        "debuginfod",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("error", "well"), [(None, True), (errno.EPERM, False), (errno.ENOSYS, False)]
)
def test_answers_of_bpf(error: int | None, well: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fetchc.tracer.bpf.features.unusable", lambda *_, **__: None)
    monkeypatch.setattr(doctor_command, "_refusal_of_bpf", lambda: error)
    assert (not finding("BPF").how) == well


@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
def test_bpf_is_lacking_without_root() -> None:
    well = []
    for user in (0, NOBODY):
        child = os.fork()
        if not child:
            os.setresuid(user, user, user)
            os._exit(bool(finding("BPF").how))
        well.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0)
    assert not well[1]
    assert well[0] or finding("BPF").how
