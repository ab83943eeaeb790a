"""What `trace` asks where the program that it started hit no probe."""

from __future__ import annotations

import sys

from fetchc.cli.trace import _unhit


def test_whether_the_program_runs_what_is_probed() -> None:
    assert _unhit("sh", sys.executable) == f"does `sh` run `{sys.executable}`?"
    did_not_come = f"`{sys.executable}` did not come to what is probed"
    assert _unhit(sys.executable, sys.executable) == did_not_come


def test_every_program_runs_the_kernel() -> None:
    for binary in ("kernel", "kernel:loop"):
        assert _unhit("sh", binary) == "`sh` did not come to what is probed"
