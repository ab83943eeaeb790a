"""How the command ends: at once, with all that it said, and not before what has to be done."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fetchc import cli

CHECKOUT = Path(__file__).parents[3]
ASKED = ["compile", "r->i", "-x", "corpus/c/layouts/bin/gcc-O2-dwarf5", "-f", "visit"]
WRONG = ["compile", "r->nope", *ASKED[2:]]

CODE = """
import os, sys
ending = os._exit
def reported_exit(status):
    os.write(1, b"at once")
    ending(status)
os._exit = reported_exit
from fetchc.cli import main
sys.exit(main())
"""


def _run(code: str, words: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *words]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    return subprocess.run(command, capture_output=True, text=True, cwd=CHECKOUT, env=environment)


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.EMFILE, errno.ENOMEM])
def test_a_limit_of_the_process_is_no_bug(
    number: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def limited(*arguments: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(cli, "_answered", limited)
    assert cli.main(ASKED) == 3
    first, second = capfd.readouterr().err.splitlines()
    assert first == f"error: a limit is reached: {os.strerror(number)}"
    assert second.startswith("   = help: allow more processes, open files and memory")


def test_a_library_that_finds_no_open_file_is_no_bug(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def limited(*arguments: object) -> int:
        raise ImportError("cannot open shared object file")

    def full(*arguments: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(cli, "_answered", limited)
    assert cli.main(ASKED) == 70
    assert "this is a bug in fetchc" in capfd.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(os, "pipe", full)
        assert cli.main(ASKED) == 3
    assert capfd.readouterr().err.startswith("error: a limit is reached: Too many open files\n")


@pytest.mark.parametrize(("words", "status"), [(ASKED, 0), (WRONG, 1), (["compile"], 2)])
def test_it_ends_at_once_with_its_status_and_its_words(words: list[str], status: int) -> None:
    done = _run(CODE, words)
    assert done.returncode == status
    assert ("+" in done.stdout, bool(done.stderr)) == (status == 0, status != 0)
    assert done.stdout.endswith("at once")


@pytest.mark.parametrize("loaded", ["atexit", "bdb", "cProfile"])
def test_not_where_something_is_left_to_do(loaded: str) -> None:
    done = _run(f"import {loaded}\n{CODE}", ASKED)
    assert done.returncode == 0
    assert done.stdout == "+8(%di):s32\n"


def test_threads_are_waited_for() -> None:
    ended = "import threading; end = threading.Thread(target=print); end.start(); end.join()\n"
    assert _run(ended + CODE, ASKED).stdout.endswith("at once")
    # It lives until the main thread has ended, however long that takes.
    last = "lambda: threading.main_thread().join() or print()"
    lives = f"import threading; threading.Thread(target={last}).start()\n"
    assert _run(lives + CODE, ASKED).stdout == "+8(%di):s32\n\n"


def test_what_is_registered_for_the_end_is_done() -> None:
    done = _run(f"import atexit; atexit.register(print, 'the end')\n{CODE}", ASKED)
    assert done.stdout.endswith("the end\n")


def test_a_caller_with_words_of_its_own_continues() -> None:
    code = CODE.replace("sys.exit(main())", "print('status', main(sys.argv[1:]))")
    assert _run(code, ASKED).stdout.endswith("status 0\n")


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["compile", "--help"]])
def test_what_it_says_of_itself_is_said(words: list[str]) -> None:
    done = _run(CODE, words)
    assert done.returncode == 0
    assert len(done.stdout) > len("at once\n")
    assert "at once" in done.stdout


PLANTED = """
import fetchc.cli.functions_command
from fetchc.diag.diagnostic import DebugInfoError
def run(options, output):
    output.line("first")
    raise DebugInfoError("FC0904", "FILE", "it ends here")
fetchc.cli.functions_command.run = run
"""


def test_what_was_said_before_a_refusal_is_said() -> None:
    code = CODE.replace("sys.exit", f"{PLANTED}sys.exit")
    done = _run(code, ["functions", "-x", "FILE"])
    assert done.returncode == 3
    assert done.stdout == "first\nat once"
    assert "it ends here" in done.stderr
