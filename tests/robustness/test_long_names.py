"""Names, globs and points as long as may be given: answered or refused at once, by errors of ours.

Every method of the library that takes a string gets each of them, of a program of each kind.
"""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

import fetchc
from fetchc.api import LONGEST_NAME
from fetchc.diag.diagnostic import LONGEST
from tests.support.cases import CORPUS
from tests.support.fuzzing.asking import ask

SECONDS = 3.0  # of processor time, for one of them
PROGRAMS = {
    "c": "c/layouts/bin/gcc-O2-dwarf5",
    "cpp": "cpp/addressbook/bin/g++-O0",
    "dotnet": "dotnet/echo/bin/sample.dll",
    "go": "go/dnsforward/bin/go1.27",
    "rust": "rust/requests/bin/rustc-O0",
    "stripped": "go/stripped/bin/go1.22",
}
# What parts of names are made of, each as often as it fits.
PIECES = (
    *("a", "*a", "?*a", "a::", "a.", "a/", "a+", "(*a).", "[a]", "a<b>", "A<b,", " a", "[]"),
    *("(", "[", "<", "{", "*", "?", "é", "'", '"', "`1", "%2e", "@", "-1", "$", "\\", ":", ","),
    *("const ", "struct ", "operator", "{closure#0}::", "A.B<C>.", "9", "\udc80", "_ZN1a", "chan "),
    *("_RNvC1a1b", "_Z1fTk", "17h0123456789abcdefE", "unsigned ", "func(", "map[a]"),
    *("::a(", "std::vector<"),
)  # fmt: skip
SAMPLE = str(CORPUS / PROGRAMS["dotnet"])
WRONG = ("\ud800", 3, None, b"visit", ["visit"], 1.5, "a" * 100_000)


class _Late(BaseException):
    pass


@contextmanager
def in_time() -> Iterator[None]:
    """SECONDS of processor time, then _Late."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise _Late

    old = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)


def methods(program: fetchc.Program) -> dict[str, Callable[[str], object]]:
    """What takes one text, by name."""
    return {
        "functions": lambda text: list(program.functions(text)),
        "types": lambda text: list(program.types(text)),
        "layouts": program.layouts,
        "offsets": program.offsets,
        "described": program.described,
        "without_code": program.without_code,
        "probe": lambda text: program.probe(text, kernel="6.1"),
        "at": lambda text: program.probe("main", text, kernel="6.1"),
        "kernel": lambda text: program.probe("main", kernel=text),
        "argument": program.argument,
        "point": program.point,
    }


@pytest.mark.parametrize("kind", PROGRAMS)
def test_long_texts(kind: str) -> None:
    program = fetchc.open(CORPUS / PROGRAMS[kind])
    for name, method in methods(program).items():
        for piece in PIECES:
            if (name, piece) == ("layouts", "*"):
                continue  # everything there is
            text = (piece * LONGEST_NAME)[:LONGEST_NAME]
            try:
                with in_time():
                    method(text)
            except fetchc.DebugInfoError:
                continue  # of a program without debug information
            except fetchc.CompileError as refused:
                said = [each.message for each in refused.diagnostics]
                assert max(map(len, said)) <= LONGEST + 3, (name, piece)
            except _Late:
                pytest.fail(f"{name} of {piece!r} takes more than {SECONDS} s")


@pytest.mark.parametrize("kind", PROGRAMS)
def test_what_is_no_text(kind: str) -> None:
    program = fetchc.open(CORPUS / PROGRAMS[kind])
    for name, method in methods(program).items():
        for wrong in WRONG:
            if wrong is None and name in ("probe", "at", "kernel"):
                continue  # what is left out
            with pytest.raises(fetchc.CompileError if isinstance(wrong, str) else TypeError):
                method(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [*WRONG[:3], *WRONG[4:]])
def test_no_argument_of_a_probe(wrong: object) -> None:
    probe = fetchc.open(CORPUS / PROGRAMS["c"]).probe("visit", kernel="6.1")
    for method in (probe.compile, probe.explain, probe.asked):
        with pytest.raises(fetchc.CompileError if isinstance(wrong, str) else TypeError):
            method(wrong)  # type: ignore[arg-type]


def test_the_command_line_says_so() -> None:
    program = str(CORPUS / PROGRAMS["cpp"])
    for words in (
        ("functions", "a" * 60_000, "-x", program),
        ("variables", "std::vector<" * 1000, "-x", program),
        ("types", "*a" * 50_000, "-x", program),
        ("compile", "x", "-f", "(" * 100_000, "-x", program),
    ):
        answer = ask(words)
        assert answer.status in (1, 3), answer.err
        assert "Traceback" not in answer.err
        assert 0 < len(answer.said) < 5 * LONGEST


def test_a_slow_walk_is_noticed() -> None:
    def endless() -> None:
        with in_time():
            while True:
                pass

    with pytest.raises(_Late):
        endless()


@pytest.mark.parametrize("words", [("check", "-"), ("perfmap", "find", "-", "-x", SAMPLE)])
def test_a_line_without_an_end_is_not_read_to_its_end(words: tuple[str, ...]) -> None:
    limit = (2 << 30, 2 << 30)
    with open("/dev/zero") as endless:
        done = subprocess.run(
            [sys.executable, "-m", "fetchc", *words],
            stdin=endless, capture_output=True, text=True, check=False, timeout=60,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("error[FC0905]: -: a line of more than 1,048,576 bytes")
