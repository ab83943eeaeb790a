"""Values that kernels of several ages fetch, on each machine, against what the program printed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.kernel_lab import LabKernel
from tests.support.kernel_lab_guest import Guest
from tests.support.kernel_lab_values import build, fetched

_VALUES = 400  # of a run at least

# Each makes some definitions wrong: another offset, width or register.
WRONG = {
    "offset": ("+8(", "+12("),
    "width": (":u16", ":u8"),
    "register of x86-64": ("(%di)", "(%si)"),
    "register of arm64": ("(%x0)", "(%x1)"),
}


def test_every_value_is_what_the_program_printed(
    lab_kernel: LabKernel, tmp_path: Path, tell: Callable[[object], None]
) -> None:
    program = build(lab_kernel.machine, tmp_path)
    with Guest(lab_kernel, {"program": program.read_bytes()}) as guest:
        outcome = fetched(guest, program)
        tell(f"{lab_kernel.release}, values: {outcome}")
        assert outcome.wrong == []
        assert outcome.compared >= _VALUES
        assert {code for *_, code in outcome.refused} <= {"FC0402"}  # vector registers
        spoilt: dict[str, str] = {}  # events to what is wrong with them
        again = fetched(guest, program, lambda line: spoil(line, spoilt))
    for kind in set(spoilt.values()):
        events = [event for event, its in spoilt.items() if its == kind]
        assert [text for text in again.wrong if text.split()[0] in events], kind
    assert {text.split()[0] for text in again.wrong} <= set(spoilt)
    assert len(set(spoilt.values())) >= 3


def spoil(line: str, spoilt: dict[str, str]) -> str:
    """A definition with one thing wrong, of the kind that was had the least."""
    for kind in sorted(WRONG, key=list(spoilt.values()).count):
        right, wrong = WRONG[kind]
        if right in line:
            spoilt[line.split()[0].partition("/")[2]] = kind
            return line.replace(right, wrong)
    return line


def test_a_machine_without_its_compiler_is_skipped_with_the_reason(
    lab_kernel: LabKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert ".ci/lab" in str(lab_kernel.why_not())
