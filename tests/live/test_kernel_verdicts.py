"""``fetchc check`` against the running kernel: verdict, reason and place of definitions.

What the kernel refuses must be refused here, for its reason and at the column of its caret;
what it accepts must be accepted. The exceptions are those of
:mod:`tests.support.verdict_compare`. No definition is ever enabled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fetchc.diag.diagnostic import Diagnostic, Label
from fetchc.driver.check_definitions import Checked, check_definition
from fetchc.ir.fetch import Fetch, body
from fetchc.source import Span
from fetchc.target.kernel_versions import kernel, running_version
from tests.support import fetches
from tests.support.selftests import SelfTest, selftests
from tests.support.verdict_compare import STRICTER, compare
from tests.support.verdict_texts import HEADS, soups, written
from tests.support.verdicts import TRACEFS, Uprobes, why_not

pytestmark = [pytest.mark.live]

GROUP = "fetchc_kernel_verdicts"
KERNEL = kernel(running_version())
Check = Callable[[str], Checked]


@pytest.fixture(scope="module")
def uprobes() -> Iterator[Uprobes]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    if not KERNEL.has("error_log"):
        pytest.skip("this kernel tells no place")
    probes = Uprobes(GROUP)
    probes.clear()
    try:
        yield probes
    finally:
        probes.clear()


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("verdicts") / "target"
    path.write_bytes(bytes(4096))  # the kernel looks at a file's content when enabled only
    return str(path)


def ours(line: str) -> Checked:
    return check_definition(line, KERNEL)


def difference(uprobes: Uprobes, line: str, check: Check = ours) -> str:
    """How our verdict on a line differs from the kernel's; nothing where it does not."""
    return compare(line, check(line), uprobes.judge(line))


@pytest.mark.parametrize("letter", ["p", "r"])
@pytest.mark.parametrize("texts", [written(), soups], ids=["sound pieces", "any pieces"])
def test_random_texts(
    uprobes: Uprobes, target: str, letter: str, texts: st.SearchStrategy[str]
) -> None:
    head = f"{letter}:{GROUP}/e {target}:0x100"

    @settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(texts, min_size=1, max_size=2))
    def check(arguments: list[str]) -> None:
        words = [text for text in arguments if text]
        assert difference(uprobes, " ".join([head, *words])) == ""

    check()


@pytest.mark.parametrize("letter", ["p", "r"])
def test_random_fetches(uprobes: Uprobes, target: str, letter: str) -> None:
    @settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
    @given(fetches.fetches(returning=letter == "r", wild=True, longest=15))
    def check(fetch: Fetch) -> None:
        line = f"{letter}:{GROUP}/e {target}:0x100 a={body(fetch)}"
        assert difference(uprobes, line) == ""

    check()


@pytest.mark.parametrize("head", HEADS, ids=lambda head: head[:40])
def test_lines(uprobes: Uprobes, target: str, head: str) -> None:
    line = "p:" + head.format(g=GROUP, t=target)
    try:
        assert difference(uprobes, line) == ""
    finally:
        sweep(uprobes, target)


@pytest.mark.parametrize("line", ["p {t}:0x100", "r {t}:0x100 $retval", "p1:{g}/e {t}:0x100"])
def test_lines_that_the_kernel_names(uprobes: Uprobes, target: str, line: str) -> None:
    try:
        assert difference(uprobes, line.format(g=GROUP, t=target)) == ""
    finally:
        sweep(uprobes, target)


def sweep(uprobes: Uprobes, target: str) -> None:
    """Remove what the kernel put into a group of its own choice: known by our file."""
    for line in (TRACEFS / "uprobe_events").read_text().splitlines():
        if f" {target}:" in line:
            uprobes.add("-" + line.split()[0][1:])


ARGUMENTS = [case for case in selftests() if case.kind == "argument"]


@pytest.mark.parametrize("case", ARGUMENTS, ids=lambda case: case.text[:40])
def test_arguments_of_the_selftests(uprobes: Uprobes, target: str, case: SelfTest) -> None:
    head = f"p:{GROUP}/e {target}:0x100 "
    assert difference(uprobes, head + case.text) == ""
    assert bool(uprobes.judge(head + case.text).errno) != case.accepted


def moved(line: str) -> Checked:
    """A wrong check: every place one column further."""
    return changed(line, lambda p, at: Diagnostic(p.code, p.message, Label(at, "")))


def renamed(line: str) -> Checked:
    """A wrong check: every reason another one."""
    return changed(line, lambda p, at: Diagnostic("FC0905", p.message, p.primary))


def changed(line: str, change: Callable[[Diagnostic, Span], Diagnostic]) -> Checked:
    right = ours(line)
    problems = [
        change(p, Span(p.primary.span.start + 1, p.primary.span.end + 1))
        for p in right.problems
        if p.primary
    ]
    return Checked(line, right.kind, tuple(problems), (), ())


def lenient(line: str) -> Checked:
    """A wrong check: everything is accepted."""
    return Checked(line, "uprobe", (), (), ())


def strict(line: str) -> Checked:
    """A wrong check: everything is refused."""
    return Checked(line, "uprobe", (Diagnostic("FC0507", "no", Label(Span(0, 1), "")),), (), ())


@pytest.mark.parametrize(
    ("check", "argument"),
    [
        (moved, "%rdi"),
        (moved, "a=+u8(+0(%rdi)):u8"),
        (moved, "+0(%di):b9@0/8"),
        (renamed, "+0(%di):bool"),
        (lenient, "+0(%di"),
        (strict, "+0(%di):u8"),
    ],
)
def test_a_wrong_check_is_noticed(
    uprobes: Uprobes, target: str, check: Check, argument: str
) -> None:
    line = f"p:{GROUP}/e {target}:0x100 {argument}"
    assert difference(uprobes, line) == ""
    assert difference(uprobes, line, check) != ""


@pytest.mark.parametrize(("reason", "code", "start"), STRICTER)
def test_every_stricter_rule_is_one(
    uprobes: Uprobes, target: str, reason: str, code: str, start: str
) -> None:
    arguments = ["+0(%di)+8", "a#b", "+4294967296(%di)", '\\"a"', "\\8:string"]
    lines = [f"p:{GROUP}/e {target}:0x100 {text}" for text in arguments]
    lines += [f"p:{GROUP}/e {target}:0x100 #", f"p1:{GROUP}/e {target}:0x100"]
    lines += [f"p:{GROUP}/e /bin/sh:0x0", f"r:{GROUP}/e {target}:0x100 +0($retval))"]
    found = []
    try:
        for line in lines:
            problems = ours(line).problems
            hits = [p for p in problems if p.code == code and p.message.startswith(start)]
            if hits and len(problems) == 1 and not uprobes.judge(line).errno:
                found.append(line)
    finally:
        sweep(uprobes, target)
    assert found, reason
