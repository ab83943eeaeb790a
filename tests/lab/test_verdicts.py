"""``fetchc check`` against kernels of several ages: verdict, reason and place of definitions.

As tests/live does with the running kernel, for hundreds of definitions a kernel, probes of
programs and of the kernel itself; see :mod:`tests.support.verdict_compare`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

import pytest

from fetchc.diag.diagnostic import Diagnostic, Label
from fetchc.driver.check_definitions import Checked, check_definition
from fetchc.ir.fetch import body
from fetchc.source import Span
from fetchc.target.kernel_versions import kernel
from tests.support import fetches, verdict_kernel_texts, verdict_texts
from tests.support.kernel_lab import LabKernel
from tests.support.kernel_lab_guest import Guest
from tests.support.kernel_lab_verdicts import compared, drawn, verdicts
from tests.support.selftests import selftests
from tests.support.verdict_compare import OF_SOME, STRICTER_OF_KINDS, compare
from tests.support.verdicts import Verdict

GROUP = "fetchc_lab"
TARGET = "/init"  # any file: the kernel looks into it when a probe is enabled
# Of each strategy; some are drawn twice.
_DRAWN = 300 if os.environ.get("FETCHC_LAB") else 60
# Registers of other machines in place of those of x86-64, and the start of an instruction that
# is not the function's first.
ELSEWHERE = {
    "arm64": {"%di": "%x0", "%si": "%x1", "%ax": "%x2", "%r8": "%x8", "read+9 ": "read+16 "},
    "amd64": {},
}


def of_programs() -> Iterator[str]:
    """Probes of programs: random ones, every kind of line, the kernel's selftests."""
    for letter in "pr":
        head = f"{letter}:{GROUP}/e {TARGET}:0x100 "
        yield from [head + text for text in drawn(verdict_texts.written(), _DRAWN)]
        yield from [head + text for text in drawn(verdict_texts.soups, _DRAWN)]
        random = fetches.fetches(returning=letter == "r", wild=True, longest=15)
        yield from [f"{head}a={body(fetch)}" for fetch in drawn(random, _DRAWN)]
    yield from ["p:" + head.format(g=GROUP, t=TARGET) for head in verdict_texts.HEADS]
    for case in selftests():
        if case.kind == "argument":
            yield f"p:{GROUP}/e {TARGET}:0x100 {case.text}"


def of_the_kernel(file: str) -> Iterator[str]:
    """Probes of the kernel that are written to ``file``."""
    lines = [line.format(g=GROUP) for line in verdict_kernel_texts.LINES]
    lines += [case.text for case in selftests() if case.kind == "kprobe"]
    for head in verdict_kernel_texts.BASES:
        if verdict_kernel_texts.file_of(head) == file:
            lines += drawn(verdict_kernel_texts.written(head), _DRAWN)
    yield from [line for line in lines if verdict_kernel_texts.file_of(line) == file]


def localised(lab_kernel: LabKernel, lines: Iterable[str]) -> list[str]:
    found = []
    for line in lines:
        for here, there in ELSEWHERE[lab_kernel.label.partition("-")[0]].items():
            line = line.replace(here, there)
        found.append(line)
    return found


def test_probes_of_programs(lab_kernel: LabKernel, tell: Callable[[object], None]) -> None:
    with Guest(lab_kernel) as guest:
        answers = verdicts(guest, localised(lab_kernel, of_programs()))
    round = compared(lab_kernel, answers)
    tell(f"{lab_kernel.release}, probes of programs: {round}")
    assert round.differences == []
    assert round.asked >= 400
    assert round.accepted >= 60
    # Kernels differ, and that is seen: the rules of the other end are wrong for this one.
    other = "7.3" if lab_kernel.label.endswith(("5.10", "6.1")) else "5.10"
    assert len(compared(lab_kernel, answers, other).differences) >= 5


def test_probes_of_the_kernel(lab_kernel: LabKernel, tell: Callable[[object], None]) -> None:
    asked = accepted = 0
    with Guest(lab_kernel) as guest:
        for file in ("kprobe_events", "dynamic_events"):
            lines = localised(lab_kernel, of_the_kernel(file))
            round = compared(lab_kernel, verdicts(guest, lines, file))
            tell(f"{lab_kernel.release}, {file}: {round}")
            assert round.differences == []
            asked, accepted = asked + round.asked, accepted + round.accepted
        met = sum(stricter_here(guest, file, line) for file, line in STRICT_LINES)
    tell(f"{lab_kernel.release}: {met} of {len(STRICT_LINES)} definitions taken and refused here")
    assert asked >= 300
    assert accepted >= 30
    assert met >= 2


# Each is stricter than some kernel, for a reason of OF_SOME or STRICTER_OF_KINDS.
STRICT_LINES = [
    ("uprobe_events", f"p:{GROUP}/e {TARGET}:0x100 $COMM"),
    ("kprobe_events", f"p:{GROUP}/e vfs_read $stack1:symstr"),
    ("uprobe_events", f"p:{GROUP}/e {TARGET}:0x100 " + " ".join(["%sp"] * 129)),
    ("dynamic_events", f'e:{GROUP}/e syscalls.sys_enter_openat \\"text":u8'),
    ("dynamic_events", f"e:{GROUP}/e syscalls.sys_enter_openat $comm:u8"),
    ("dynamic_events", f"e:{GROUP}/e syscalls.sys_enter_openat +0($comm)"),
    ("dynamic_events", f"f:{GROUP}/e vfs_read @-8"),
    ("dynamic_events", f"f:{GROUP}/e vfs_read @linux_banner+x"),
    ("kprobe_events", f"p:{GROUP}/e vfs_read $arg*:u8"),
]


def stricter_here(guest: Guest, file: str, line: str) -> bool:
    """Whether the guest's kernel takes what we refuse, for one of the reasons."""
    (verdict,) = guest.judge(file, [line])
    rules = kernel(guest.kernel.release)
    problems = check_definition(line, rules, guest.kernel.machine.name).problems
    starts = [start for _, start in OF_SOME] + [start for *_, start in STRICTER_OF_KINDS]
    reasons = [p for p in problems if p.message.startswith(tuple(starts))]
    return verdict.errno == 0 and reasons != []


ACCEPTED, REFUSED = Verdict(0, ""), Verdict(22, "Invalid register name", 24)
LINES = {
    "p:fetchc_lab/e vfs_read %none": REFUSED,
    "p:fetchc_lab/e vfs_read %di": ACCEPTED,
}


def altered(line: str, change: Callable[[Diagnostic, Span], Diagnostic]) -> Checked:
    right = check_definition(line, kernel("6.12"))
    problems = [change(p, p.primary.span) for p in right.problems if p.primary]
    return Checked(line, right.kind, tuple(problems), right.warnings, ())


def further(problem: Diagnostic, at: Span) -> Diagnostic:
    return Diagnostic(problem.code, problem.message, Label(Span(at.start + 1, at.end), ""))


def renamed(problem: Diagnostic, at: Span) -> Diagnostic:
    return Diagnostic("FC0905", problem.message, Label(at, ""))


@pytest.mark.parametrize("line", LINES)
def test_a_wrong_verdict_is_noticed(line: str) -> None:
    right, verdict = check_definition(line, kernel("6.12")), LINES[line]
    assert compare(line, right, verdict) == ""
    other = ACCEPTED if verdict.errno else REFUSED
    assert compare(line, right, other) != ""
    if verdict.errno:
        assert compare(line, altered(line, further), verdict) != ""
        assert compare(line, altered(line, renamed), verdict) != ""
        assert compare(line, right, Verdict(22, "Unknown type is specified", 24)) != ""
