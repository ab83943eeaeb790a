"""Thread-local variables on each kernel of x86-64: those of the thread that hits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab.test_walked_containers import made
from tests.live.test_thread_locals import LIBRARY, PROGRAM, THREADS
from tests.support.kernel_lab import LabKernel
from tests.support.kernel_lab_guest import Guest
from tests.support.kernel_lab_python import files, interpreter, why_no_python
from tests.support.toolchains import require

_SECONDS = 300  # to boot with so many files, when the machine is busy


@pytest.mark.long
def test_thread_locals_on_each_kernel(lab_kernel: LabKernel, tmp_path: Path) -> None:
    if reason := why_no_python(lab_kernel):
        pytest.skip(reason)
    if not lab_kernel.label.startswith("amd64"):
        pytest.skip("elsewhere the kernel does not say where thread-local storage is")
    require("gcc")
    for name, text in (("program.c", PROGRAM), ("library.c", LIBRARY)):
        (tmp_path / name).write_text(text)
    sources = [str(tmp_path / name) for name in ("program.c", "library.c")]
    command = ["gcc", "-static", "-pthread", "-g", "-O1", "-w", *sources]
    program = made(command, tmp_path / "locals")
    with Guest(lab_kernel, files(lab_kernel) | {"locals": program}, _SECONDS) as guest:
        asked = (interpreter(lab_kernel), "-m", "fetchc", "trace", "n", "value", "own")
        where = ("-x", "/locals", "-f", "hit", "--format", "jsonl")
        shown = guest.run(*asked, *where, "--", "/locals")
        hits = [json.loads(line)["args"] for line in shown.splitlines() if line.startswith("{")]
        assert sorted(one["n"] for one in hits) == [*THREADS, 500, 600, 900, 901], shown
        assert [one["value"] for one in hits] == [one["n"] for one in hits], lab_kernel.label
        assert all(one["own"]["number"] == one["n"] % 7 for one in hits if one["n"] <= 500)
