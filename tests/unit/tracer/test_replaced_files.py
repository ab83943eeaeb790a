"""A traced file that is replaced or deleted is reported once."""

from __future__ import annotations

import subprocess
from pathlib import Path

from fetchc.tracer.processes import WatchedFiles


def test_changes_are_reported_once(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("1")
    two.write_text("2")
    watched = WatchedFiles()
    watched.watch(str(one))
    watched.watch(str(two))
    assert watched.changes() == ()
    one.write_text("another text, the same file")
    assert watched.changes() == ()
    one.unlink()
    (warning,) = watched.changes()
    assert (warning.code, warning.severity) == ("FC0613", "warning")
    assert warning.message == f"the traced file {one} was deleted"
    assert watched.changes() == ()
    two.rename(one)
    messages = [warning.message for warning in watched.changes()]
    assert messages == [f"the traced file {one} was replaced", f"the traced file {two} was deleted"]


def test_what_is_named_by_a_process_goes_with_it() -> None:
    watched = WatchedFiles()
    with subprocess.Popen(["sleep", "60"]) as process:
        watched.watch(f"/proc/{process.pid}/exe")
        assert watched.changes() == ()
        process.kill()
    assert watched.changes() == ()
