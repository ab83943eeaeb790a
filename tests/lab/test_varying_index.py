"""An index that varies on each kernel: it takes the programs, and the elements are right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab.test_walked_containers import made
from tests.live.test_varying_index import CASES, CPP, GO, wrong
from tests.live.test_walked_containers import go_program
from tests.support.kernel_lab import LabKernel
from tests.support.kernel_lab_guest import Guest
from tests.support.kernel_lab_python import files, interpreter, why_no_python
from tests.support.toolchains import require

_SECONDS = 300  # to boot with so many files, when the machine is busy
_MEBIBYTES = 512


@pytest.mark.long
def test_elements_on_each_kernel(lab_kernel: LabKernel, tmp_path: Path) -> None:
    if reason := why_no_python(lab_kernel):
        pytest.skip(reason)
    compiler = lab_kernel.machine.compiler.replace("gcc", "g++")
    require(compiler)
    source = tmp_path / "indexed.cc"
    source.write_text(CPP)
    command = [compiler, "-static", "-g", "-O1", "-w", str(source)]
    machine = lab_kernel.label.partition("-")[0]
    go = go_program(tmp_path / "go", "1.27", GO, machine)
    programs = {"c++": made(command, tmp_path / "indexed"), "go": go.read_bytes()}
    with Guest(lab_kernel, files(lab_kernel) | programs, _SECONDS, _MEBIBYTES) as guest:
        for name in programs:
            _, function, expressions = CASES[name]
            where = ("-x", f"/{name}", "-f", function, "--format", "jsonl")
            asked = (interpreter(lab_kernel), "-m", "fetchc", "trace", *expressions, *where)
            shown = guest.run(*asked, "--", f"/{name}", "one", "last")
            hits = [json.loads(line) for line in shown.splitlines() if line.startswith("{")]
            assert wrong(hits, expressions) == [], (lab_kernel.label, shown)
