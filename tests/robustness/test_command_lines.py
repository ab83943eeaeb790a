"""Any words on the command line: a proper answer, never a traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fetchc.cli import parse
from fetchc.cli.option_table import COMMANDS, OPTIONS
from tests.support.cases import CORPUS
from tests.support.fuzzing.asking import ask, fault

# What neither changes anything nor looks at what runs on the machine.
HARMLESS = ("compile", "functions", "variables", "types", "offsets", "check", "explain", "perfmap")
PROGRAM = "c/layouts/bin/gcc-O2-dwarf5"
FILES = (
    PROGRAM, "go/stripped/bin/go1.22", "dotnet/echo/bin/sample.dll", "README.md", "c", "", "\0",
    "no/such", "rust/requests/bin/rustc-O0", "kernel:none", "/dev/null", "\udcff", "a:b", ".",
)  # fmt: skip
FUNCTIONS = (
    *("visit", "main", "*", "main.*", "visit%return", "[", "Server.Move", "", "a:b", "\udc80"),
)
POINTS = ("+0", "+0x1", "body", "shapes.c:12", ":12", "0x47e0", "-1", "+99999999999999999999", "é")
EXPRESSIONS = (
    *("r->i", "r", "$arg1", "*", "a=b=c", "-1", "r->text:string", "", "FC0302", "fc9", "\0", "%di"),
    *("struct record.list", "struct", "p:g/e c:0x1", "+0(%di)", "find", "\udcff"),
)
KERNELS = ("6.1", "5", "running", "3.5", "7.99", "x", "", "6.1.2.3", "-1", "\u0661")
NUMBERS = ("0", "-1", "1", "1e9", "nan", "inf", "99999999999999999999", "x", "", "1_0", "\u0661")
VALUES = {
    "binary": FILES, "binaries": FILES, "debug_file": FILES, "debug_dirs": FILES,
    "references": FILES, "function": FUNCTIONS, "functions": FUNCTIONS, "since": FUNCTIONS,
    "at": POINTS, "expr": EXPRESSIONS, "kernel": KERNELS, "batch": ("no/such", "README.md", "c"),
    "arch": ("x86_64", "arm64", "s390x", "vax", ""),
}  # fmt: skip


@st.composite
def lines(draw: st.DrawFn, commands: tuple[str, ...]) -> list[str]:
    """A command with some of its options, mostly with a value of the right kind."""
    name = draw(st.sampled_from(commands))
    command = COMMANDS[name]
    words = [name]
    for key in draw(st.lists(st.sampled_from(command.options), max_size=5)):
        option = OPTIONS[key]
        words.append(draw(st.sampled_from(option.flags)))
        if option.metavar is not None and draw(st.integers(0, 9)):
            known = VALUES.get(option.attribute) or option.choices or NUMBERS
            words.append(draw(st.sampled_from(known)))
    if draw(st.booleans()):
        words += ["-x", PROGRAM]
    operands = FUNCTIONS if name in ("functions", "variables", "types") else EXPRESSIONS
    words += draw(st.lists(st.sampled_from(operands), max_size=3))
    words += draw(st.sampled_from([[], [], [], ["--"], ["--", "-r"], ["--help"], ["-"], ["-\0"]]))
    return words


@given(words=lines(HARMLESS))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_commands_that_only_answer(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CORPUS)
    answer = ask(words, b"p:g/e c:0x1 %di\n")
    wrong = fault(answer, words)
    # Where no file is named at all, an error of the command line names none either.
    assert wrong is None or wrong.startswith("no place"), (words, answer.err)


@given(words=lines(HARMLESS), end=st.integers(0, 12), quote=st.sampled_from(("", "'", '"')))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_completion_says_nothing_but_its_answer(
    words: list[str], end: int, quote: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CORPUS)
    *before, last = words
    line = " ".join(["fetchc", *before, quote + last[:end]])
    for asked in (
        ["words", "--", *before, last[:end]],
        ["bash", "--", line, " \t\n\"'@><=;|&(:", "9"],
    ):
        answer = ask(["complete", *asked])
        assert (answer.status, answer.err) == (0, ""), asked
        assert not answer.out or answer.out.split("\n")[0] in ("word", "more", "menu", "files")


@given(words=lines(tuple(COMMANDS)))
def test_any_command_is_parsed_or_explained(words: list[str]) -> None:
    # Not run: some of them change the kernel's definitions.
    parsed = parse(words)
    assert not isinstance(parsed, int) or parsed in (0, 2)


@given(words=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), max_size=4))
def test_any_words(words: list[str]) -> None:
    if words and words[0] in COMMANDS:
        words[0] += "x"
    assert fault(ask(words)) is None


def test_most_lines_reach_their_command() -> None:
    reached = []

    @given(words=lines(HARMLESS))
    @settings(max_examples=300, database=None, derandomize=True)
    def drawn(words: list[str]) -> None:
        reached.append(not isinstance(parse(words), int))

    drawn()
    assert sum(reached) > len(reached) // 5


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("functions --long --no-cache -x go/dnsforward/bin/go1.27", 0),
        ("doctor", 0),
        (f"trace depth -f visit -x {PROGRAM}", 4),
    ],
)
def test_where_proc_is_not_mounted(words: str, status: int) -> None:
    # As in the root folder of a build; where the processor's time is looked at, it was an error.
    unshare = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    if subprocess.run([*unshare, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no mount namespace of its own")
    command = [sys.executable, "-m", "fetchc", *words.split()]
    command[:0] = unshare
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=CORPUS)
    assert "Traceback" not in done.stderr
    assert done.returncode == status
