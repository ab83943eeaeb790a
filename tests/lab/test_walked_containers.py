"""Containers are walked on each kernel: it takes the programs, and the elements are right."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.live.test_walked_containers import CPP, GO, C, compared
from tests.support.kernel_lab import LabKernel, built
from tests.support.kernel_lab_guest import Guest
from tests.support.kernel_lab_python import files, interpreter, why_no_python
from tests.support.toolchains import go_build, require

_SECONDS = 300  # to boot with so many files, when the machine is busy
_SEED = "3"
_MAPS = frozenset(("m[:]", "p[:150].Name", "q[:]", "s[:5]", "w[:12]", "v[:].B[7]"))
_TOGETHER = 4  # expressions of one trace


def _programs(kernel: LabKernel, folder: Path) -> dict[str, tuple[str, bytes]]:
    # By name: the function, and the program, which needs nothing of a guest.
    source = folder / "lists.c"
    source.write_text(C)
    found = {"lists": ("look", built(kernel.machine, source, "-g", "-O1", "-w"))}
    if kernel.machine.name != "x86_64":
        return found
    require("g++", "go1.15", "go1.27")
    source = folder / "containers.cc"
    source.write_text(CPP)
    output = folder / "containers"
    subprocess.run(["g++", "-static", "-g", "-O1", "-w", "-o", output, source], check=True)
    found["containers"] = ("look", (folder / "containers").read_bytes())
    for version in ("1.15", "1.27"):
        drawn = folder / version / "src" / "drawn"
        drawn.mkdir(parents=True)
        (drawn / "main.go").write_text(GO)
        go = go_build(version, folder / version)
        program = folder / version / "maps"
        subprocess.run(
            [go.command, "build", "-o", program, "drawn"], env=go.environment, check=True
        )
        found[f"go{version}"] = ("main.look", program.read_bytes())
    return found


@pytest.mark.long
def test_elements_on_each_kernel(lab_kernel: LabKernel, tmp_path: Path) -> None:
    if reason := why_no_python(lab_kernel):
        pytest.skip(reason)
    programs = _programs(lab_kernel, tmp_path)
    content = {**files(lab_kernel), **{name: one for name, (_, one) in programs.items()}}
    python = interpreter(lab_kernel)
    with Guest(lab_kernel, content, _SECONDS) as guest:
        for name, (function, _) in programs.items():
            command = (f"/{name}", _SEED, "/said")
            guest.run(*command)
            labels = list(json.loads(guest.read("/said").splitlines()[0]))
            for start in range(0, len(labels), _TOGETHER):
                some = labels[start : start + _TOGETHER]
                where = ("-x", f"/{name}", "-f", function, "--format", "jsonl")
                shown = guest.run(python, "-m", "fetchc", "trace", *some, *where, "--", *command)
                calls = [json.loads(line) for line in guest.read("/said").splitlines()]
                hits = [json.loads(line) for line in shown.splitlines() if line.startswith("{")]
                assert len(hits) == len(calls), shown
                for hit, call in zip(hits, calls, strict=True):
                    asked = {label: call[label] for label in some}
                    assert compared(hit, asked, _MAPS) == "", (lab_kernel.label, name)
