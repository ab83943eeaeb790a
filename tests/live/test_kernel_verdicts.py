"""``fetchc check`` against the running kernel: verdict, reason and place of definitions.

What the kernel refuses must be refused here, for its reason and at the column of its caret;
what it accepts must be accepted. The exceptions are ``STRICTER`` and ``ELSEWHERE``. No
definition is ever enabled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fetchc.conformance import machine
from fetchc.diag.model import Diagnostic, Label
from fetchc.driver.checking import Checked, check_definition
from fetchc.emit.fetcharg import body
from fetchc.ir.nodes import Fetch
from fetchc.source import Span
from fetchc.target.kernel import kernel, running_version
from tests.support import fetches
from tests.support.selftests import SelfTest, selftests
from tests.support.verdicts import TRACEFS, Uprobes, why_not

pytestmark = [pytest.mark.live]

GROUP = "fetchc_kernel_verdicts"
KERNEL = kernel(running_version())
Check = Callable[[str], Checked]

# Where we refuse what the kernel accepts: the reason, our code and how our message begins.
STRICTER = [
    ("text behind the bracket that closes is dropped", "FC0101", "the kernel ignores `"),
    ("what begins with $retval is that, a bracket too many as well", "FC0101", "`)` closes"),
    ("the line is cut at #", "FC0101", "the kernel ignores the line"),
    ("digits behind the letter take the event its name", "FC0101", "a uprobe takes no number"),
    ("an offset is kept in 32 bits, a stack index likewise", "FC0511", ""),
    ("an immediate string always faults", "FC0507", "an immediate string prints"),
    ("an immediate as string is an address that nobody wrote", "FC0507", r"`\N` cannot be fetched"),
    ("the file has no code there: nothing looks before it is enabled", "FC0206", "no code of"),
]

# The kernel's words for each of our codes.
_NAMES = "must follow the same rules as C identifiers"
WORDS = {
    "FC0101": {
        "Dereference needs a brace",
        "Invalid dereference offset",
        "Dereference brace is not closed",
        "Invalid fetch argument",
        "Invalid memory address",
        "Invalid file offset value",
        "Invalid immediate value",
        "String is not closed with '\"'",
        "Array is not closed",
        "Array has wrong suffix",
    },
    "FC0104": {"No argument expression"},
    "FC0201": {"BTF is not available or not supported", "Invalid $-variable specified"},
    "FC0206": {
        "Invalid uprobe offset",
        "Reference counter brace is not closed",
        "Reference counter has wrong suffix",
        "Invalid reference counter offset",
        "Invalid probed address suffix",
        "Not a regular file",
    },
    "FC0207": {
        "Argument name is too long",
        "Argument name is not specified",
        f"Argument name {_NAMES}",
        "This argument name is already used",
    },
    "FC0501": {machine.TOO_LONG},
    "FC0502": {machine.NESTED, machine.TOO_LONG},
    "FC0503": {
        "Event name is not specified",
        "Group name is not specified",
        "Event name is too long",
        "Group name is too long",
        f"Event name {_NAMES}",
        f"Group name {_NAMES}",
    },
    "FC0504": {"Too many arguments are specified"},
    "FC0505": {"Invalid array size", "Array number is too big"},
    "FC0507": {
        machine.NOT_MEMORY,
        machine.BAD_TYPE,
        machine.BAD_BITFIELD,
        "$retval is not available on probe",
        "$comm and immediate-string only accepts string type",
        "$comm can not be dereferenced",
        "$arg* can be used only on function entry or exit",
        "Invalid argument number",
        "Invalid $-variable specified",
        "Symbol is not available with uprobe",
    },
    "FC0508": {"Event too big (too many fields?)"},
    "FC0511": {
        "Invalid dereference offset",
        "Invalid memory address",
        "Invalid file offset value",
        "Invalid immediate value",
        "Invalid $-variable specified",
    },
    "FC0512": {"Invalid register name"},
}


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
    problems = check(line).problems
    verdict = uprobes.judge(line)
    listed = [(p.code, p.primary.span.start if p.primary else None, p.message) for p in problems]
    said = f"{line}: the kernel says {verdict}, we say {listed}"
    if not verdict.errno:
        return said if any(not _stricter(problem) for problem in problems) else ""
    if not problems:
        return said
    if not verdict.text or unbalanced(line):
        return ""
    for problem in problems:
        place = problem.primary
        if place is None or verdict.text not in WORDS.get(problem.code, ()):
            continue
        if verdict.caret in carets(line, place.span, verdict.text):
            return ""
    return said


def _stricter(problem: Diagnostic) -> bool:
    return any(
        problem.code == code and problem.message.startswith(start) for _, code, start in STRICTER
    )


def unbalanced(line: str) -> bool:
    """Whether brackets are other than those of one chain: the kernel ends it at the last one.

    So it complains of what is before that, a register `%di)`, and not of the bracket.
    """
    depth, ended = 0, False
    for character in line:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0 or (ended and character == "("):
            return True
        ended = ended or (character == ")" and depth == 0)
        if character in " :=":
            depth, ended = 0, False
    return False


EARLY = {
    machine.BAD_TYPE,
    "Array is not closed",
    "Array has wrong suffix",
    "Invalid array size",
    "Array number is too big",
    "$comm and immediate-string only accepts string type",
}
LATE = {machine.BAD_BITFIELD, machine.NOT_MEMORY, "Event too big (too many fields?)"}


def carets(line: str, place: Span, reason: str) -> set[int]:
    """Columns of the kernel's caret that mean our ``place``; the slips are those of 6.18.

    * It forgets to count the `u` of `+u8(`, and the plus of `+-8(`.
    * What is found last is told behind the outermost `+8(`: too far right by that.
    * Too many loads are told behind the outermost `+8(`, which is not where one is too many.
    """
    start = line.rfind(" ", 0, place.start) + 1
    equals = line.find("=", start)
    if 0 <= equals < place.start:
        start = equals + 1
    levels = loads(line[start:])
    lost = [sum(levels[:count]) for count in range(len(levels) + 1)]
    first = re.match(_LOAD, line[start:])
    moved = 0 if first is None else len(first[0]) - levels[0]
    if reason == machine.NESTED:
        return {start + moved}
    if reason in EARLY:
        return {place.start}
    if reason in LATE:
        return {place.start, place.start + moved}
    if reason == "Dereference brace is not closed":
        return {place.start - each for each in lost}  # which level tells it, the tree does not say
    before = re.match(f"({_LOAD})*", line[start : place.start])
    return {place.start - sum(loads(before[0] if before else ""))}


_LOAD = r"[+-](?:u?-?)[^():\s]*\("


def loads(text: str) -> list[int]:
    """Of each load that the text begins with, the characters that the kernel does not count."""
    found = []
    while level := re.match(r"([+-])(u?)(-?)[^():\s]*\(", text):
        sign, user, minus = level.groups()
        found.append(len(user) + (sign == "+" and bool(minus)))
        text = text[level.end() :]
    return found


OPENINGS = ["+0(", "+8(", "-8(", "+u4(", "-u0x10(", "+-8(", "+010(", "++8("]
WRONG_OPENINGS = ["+x(", "+(", "--8(", "+4294967296(", "+0x8000000000000000("]
BASES = ["%di", "%ax", "$stack", "$stack3", "$comm", "$COMM", "$retval", "@0x10", "@+8", "@+-8"]
BASES += ["\\1", "\\-1", "\\+1", "\\0x10"]
WRONG_BASES = ["%rdi", "%", "$stackx", "$stack0x1", "$arg1", "$arg*", "$foo", "$", "@sym", "@08"]
WRONG_BASES += ["@", "@+zz", "\\x", "\\", '\\"a"', '\\"a', "foo", "8", "_", "*di", "", "$retvalx"]
TYPES = [":u8", ":x64", ":s16", ":char", ":string", ":ustring", ":b3@4/8", ":b0x2@010/0x20"]
WRONG_TYPES = [":", ":u128", ":bool", ":symbol", ":symstr", ":b9@4/8", ":b0@0/8", ":b1@/8", ":b1/8"]
WRONG_TYPES += [":b1@0/24", ":u8:u8", ":U8"]
ARRAYS = ["[1]", "[4]", "[0x10]", "[64]"]
WRONG_ARRAYS = ["[0]", "[65]", "[-1]", "[]", "[", "[2", "[3]x", "[2][2]", "[4294967296]"]
NAMES = ["a=", "b=", "_1="]
WRONG_NAMES = ["=", "1=", "a-b=", "a[0]=", "common_pid=", f"{'n' * 33}="]
PIECES = (
    OPENINGS + BASES + TYPES + ARRAYS + NAMES + [")", ")", "(", "[", ":", "=", "+", "9", "x", '"']
)


@st.composite
def written(draw: st.DrawFn) -> str:
    """A fetch-arg of sound pieces, now and then with one that is not, or not closed."""

    def piece(right: list[str], wrong: list[str]) -> str:
        chosen = draw(st.integers(0, 6))
        return draw(st.sampled_from(wrong if chosen == 0 else right))

    name = piece(["", *NAMES], WRONG_NAMES)
    levels = draw(st.integers(0, 5))
    opened = "".join([piece(OPENINGS, WRONG_OPENINGS) for _ in range(levels)])
    closed = ")" * (levels + draw(st.sampled_from([0, 0, 0, 0, 0, 0, 0, -1, 1])))
    tail = draw(st.sampled_from([""] * 12 + ["+8", "x"])) if levels else ""
    kind = piece(["", "", *TYPES], WRONG_TYPES)
    array = piece(["", "", "", *ARRAYS], WRONG_ARRAYS) if kind else ""
    return f"{name}{opened}{piece(BASES, WRONG_BASES)}{closed}{tail}{kind}{array}"


soups = st.lists(st.sampled_from(PIECES), min_size=1, max_size=7).map("".join)


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


LONG = "x" * 64
HEADS = [
    "{g}/e {t}:0x100",
    "{g}/e {t}:256 %di",
    "{g}/e {t}:0400 %di",
    "{g}/e {t}:0x1g",
    "{g}/e {t}:08",
    "{g}/e {t}:99999999999999999999",
    "{g}/e {t}:-5",
    "{g}/e {t}:",
    "{g}/e {t}:name",
    "{g}/e {t}",
    "{g}/e",
    "{g}/e {t}:0x100(0x10)",
    "{g}/e {t}:0x100(0x10",
    "{g}/e {t}:0x100(0x10)x",
    "{g}/e {t}:0x100(zz)",
    "{g}/e {t}:0x100()",
    "{g}/e {t}:0x100%return $retval",
    "{g}/e {t}:0x100%ret",
    "{g}/e {t}:0x100%",
    "{g}/e {t}:0x100%return(0x10)",
    "{g}/e {t}:0x100(0x10)%return",
    "{g}/ {t}:0x100",
    "{g}. {t}:0x100",
    "{g}.e {t}:0x100",
    "{g}.e.f {t}:0x100",
    "/e {t}:0x100",
    ".e {t}:0x100",
    " {t}:0x100",
    "{g}/1e {t}:0x100",
    "{g}/e-v {t}:0x100",
    "{g}/a/b {t}:0x100",
    "1{g}/e {t}:0x100",
    "{g}-x/e {t}:0x100",
    f"{{g}}/{LONG} {{t}}:0x100",
    f"{LONG}/e {{t}}:0x100",
    f"{{g}}/{LONG[1:]} {{t}}:0x100",
    "{g}/e {t}:0x100 a=%di#b=%si",
    "{g}/e {t}:0x100 " + " ".join([f"a{n}=%di" for n in range(128)]),
    "{g}/e {t}:0x100 " + " ".join([f"a{n}=%di" for n in range(129)]),
    "{g}/e {t}:0x100 " + " ".join([f"a{n}=+0(%di):u64[64]" for n in range(6)]),
    "{g}/e {t}:0x100 " + " ".join([f"a{n}=+0(%di):u64[64]" for n in range(7)]),
    "{g}/e {t}:0x100 arg2=%di %si",
    "{g}/e {t}:0x100 arg1=%di %si",
]


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
