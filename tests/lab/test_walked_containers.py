"""Containers are walked on each kernel: it takes the programs, and the elements are right."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fetchc.target.bpf_rules import bpf_rules
from fetchc.target.kernel_versions import kernel
from tests.live.test_walked_containers import CPP, GO, MAPS_OF_GO, C, compared, go_program
from tests.support.kernel_lab import LabKernel, built
from tests.support.kernel_lab_guest import Guest
from tests.support.kernel_lab_python import files, interpreter, why_no_python
from tests.support.toolchains import require

_SECONDS = 300  # to boot with so many files, when the machine is busy
_SEED = "3"
_TOGETHER = 4  # expressions of one trace


def _programs(kernel: LabKernel, folder: Path) -> dict[str, tuple[str, bytes]]:
    # By name: the function, and the program, which needs nothing of a guest.
    source = folder / "lists.c"
    source.write_text(C)
    found = {"lists": ("look", built(kernel.machine, source, "-g", "-O1", "-w"))}
    if kernel.machine.name != "x86_64":
        return found
    require("g++")
    source = folder / "containers.cc"
    source.write_text(CPP)
    output = folder / "containers"
    subprocess.run(["g++", "-static", "-g", "-O1", "-w", "-o", output, source], check=True)
    found["containers"] = ("look", (folder / "containers").read_bytes())
    for version in ("1.15", "1.27"):
        program = go_program(folder / version, version, GO)
        found[f"go{version}"] = ("main.look", program.read_bytes())
    return found


def wrong(hit: dict[str, Any], call: dict[str, Any], loops: bool) -> str:
    """How a hit differs from what the program has.

    Without ``loops`` a walk has few rounds: the elements that it found are some of all.
    """
    if loops:
        return compared(hit, call, MAPS_OF_GO)
    if hit["faults"] or "changed" in hit:
        return f"faults: {hit}"
    for label, whole in call.items():
        shown = hit["args"][label]
        if not isinstance(whole, list):
            if shown not in (whole, {"unavailable": "the walk ended before the key was found"}):
                return f"{label}: {shown} for {whole}"
        elif any(one not in whole for one in shown) or (whole and not shown and "[" not in label):
            return f"{label}: {shown} for {whole}"
    return ""


def test_what_differs_is_seen() -> None:
    hit: dict[str, Any] = {"args": {"v[:]": [9], "v[1]": 7}, "faults": []}
    assert wrong(hit, {"v[:]": [8, 9], "v[1]": 7}, loops=False) == ""
    for call in ({"v[:]": [8, 7]}, {"v[1]": 8}):
        assert wrong(hit, call, loops=False)
    assert wrong(hit, {"v[:]": [8, 9]}, loops=True)


@pytest.mark.long
def test_elements_on_each_kernel(lab_kernel: LabKernel, tmp_path: Path) -> None:
    if reason := why_no_python(lab_kernel):
        pytest.skip(reason)
    programs = _programs(lab_kernel, tmp_path)
    content = {**files(lab_kernel), **{name: one for name, (_, one) in programs.items()}}
    python = interpreter(lab_kernel)
    loops = "loops" in bpf_rules(kernel(lab_kernel.release).version).features
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
                    assert wrong(hit, asked, loops) == "", (lab_kernel.label, name)
