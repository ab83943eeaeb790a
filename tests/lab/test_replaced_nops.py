"""Which kernels harm a program by a probe on a NOP: what the table says, asked of each kernel."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fetchc.code.uprobe_instructions import nop_bytes
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.quantities import Address
from fetchc.target.kernel_versions import kernel
from fetchc.target.machines import table
from tests.support.kernel_lab import LabKernel
from tests.support.kernel_lab_guest import Guest
from tests.support.nops import CALLS, FORMS, IN_CHILD, around, source

TRACING = "/sys/kernel/tracing"
BEHIND = 54  # bytes of the six stores before the NOP


def test_the_table_is_the_kernels(lab_kernel: LabKernel, tmp_path: Path) -> None:
    if lab_kernel.machine.name != "x86_64":
        pytest.skip("NOPs of x86-64")
    if shutil.which("gcc") is None:
        pytest.skip("no gcc: .ci/setup brings it")
    (tmp_path / "nops.c").write_text(source({name: around(code) for name, code in FORMS.items()}))
    command = ["gcc", "-O1", "-static", "-no-pie", "nops.c", "-o", "nops"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    binary = tmp_path / "nops"
    program, definitions = DwarfProgram(str(binary)), []
    for name in FORMS:
        (found,) = program.functions_named(name)
        offset = program.file_offset(Address(found.address + BEHIND))
        definitions.append(f"p:fetchc_nops/{name} /nops:{offset:#x}")
    with Guest(lab_kernel, {"nops": binary.read_bytes()}) as guest:
        for line in definitions:
            guest.write(f"{TRACING}/uprobe_events", line + "\n", append=True)
        guest.write(f"{TRACING}/events/fetchc_nops/enable", "1")
        lines = [line.split() for line in guest.run("/nops").splitlines()]
        hits = {
            words[1]: int(words[2])
            for words in map(str.split, guest.read(f"{TRACING}/uprobe_profile").splitlines())
        }
    size = kernel(lab_kernel.release).replaced_nop("x86_64")
    rules = table("arch/x86_64")["uprobes"]
    sizes = {name: nop_bytes(bytes.fromhex(code), rules) for name, code in FORMS.items()}
    wanted = {name for name, its in sizes.items() if size and its == size}
    assert {name for name, bad, status in lines if (bad, status) != ("0", "0")} == wanted
    assert {name for name in FORMS if hits[name] != CALLS + IN_CHILD} <= wanted
