"""Completion at the keys of real shells: what the line is after TAB, by a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

import pytest

from fetchc.cli.completion_command import SCRIPTS
from fetchc.tracer.persistent_probes import AddedEvent, State

CHECKOUT = Path(__file__).parents[3]
GO = "-x corpus/go/dnsforward/bin/go1.27"
C = "-x corpus/c/layouts/bin/gcc-O2-dwarf5 -f visit"
CPP = "-x corpus/cpp/addressbook/bin/g++-O0"
AT = f"{GO} -f 'main.(*server).handleRequest'"

_START = {
    "bash": ("bash", "--norc", "--noprofile", "-i"),
    "zsh": ("zsh", "-f", "-i"),
    "fish": ("fish", "--no-config", "-i"),
}
# Control-G writes the line that is edited to a file.
_SHOW = {
    "bash": 'bind -x \'"\\C-g": printf %s "$READLINE_LINE" >"$SHOWN.part"; '
    'mv "$SHOWN.part" "$SHOWN"\'',
    "zsh": 'show() { printf %s "$BUFFER" >$SHOWN.part; mv $SHOWN.part $SHOWN }; '
    "zle -N show; bindkey '^G' show",
    "fish": "function show; commandline | string collect > $SHOWN.part; "
    "mv $SHOWN.part $SHOWN; end; bind \\cg show",
}


class Shell:
    """An interactive shell that completes ``fetchc``, and what it has printed."""

    def __init__(self, name: str, folder: Path) -> None:
        self.printed = b""
        self._shown = folder / "line"
        self._ready = folder / "ready"
        script = folder / "script"
        script.write_text(SCRIPTS[name])
        command = folder / "fetchc"
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m fetchc "$@"\n')
        command.chmod(0o755)
        environment = {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "HOME": str(folder),
            "PYTHONPATH": str(CHECKOUT),
            "SHOWN": str(self._shown),
            "TERM": "xterm",
            "LC_ALL": "C.UTF-8",
        }
        self._pid, self._terminal = pty.fork()
        if not self._pid:
            os.chdir(CHECKOUT)
            os.execvpe(_START[name][0], _START[name], environment)
        before = "autoload -Uz compinit; compinit -u -D; " if name == "zsh" else ""
        self.type(f"{before}source {script}; {_SHOW[name]}; echo >{self._ready}\r")
        self._wait(self._ready)

    def __enter__(self) -> Shell:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.close(self._terminal)
        os.waitpid(self._pid, 0)

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def line(self, keys: str) -> str:
        """The line after ``keys``; it is then emptied."""
        self.type(keys + "\x07")
        found = self._wait(self._shown)
        self._shown.unlink()
        self.type("\x15")  # kills the line
        return found.rstrip("\n")

    def _wait(self, file: Path) -> str:
        end = time.monotonic() + 60
        while not file.exists():
            if time.monotonic() > end:
                raise TimeoutError(self.printed.decode(errors="replace"))
            if select.select([self._terminal], [], [], 0.05)[0]:
                self.printed += os.read(self._terminal, 1 << 16)
        while select.select([self._terminal], [], [], 0)[0]:
            self.printed += os.read(self._terminal, 1 << 16)
        return file.read_text()


def shell(name: str, folder: Path) -> Shell:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed: .ci/setup brings it")
    return Shell(name, folder)


LINES = {
    "fetchc func": "fetchc functions ",
    "fetchc compile --deb": "fetchc compile --debug-",
    f"fetchc compile {C} --format fe": f"fetchc compile {C} --format fetcharg ",
    f"fetchc compile {GO} -f handleReq": f"fetchc compile {GO} -f "
    "main.\\(\\*server\\).handleRequest ",
    f"fetchc compile {GO} -f 'main.(*server).ha": f"fetchc compile {GO} -f "
    "'main.(*server).handleRequest' ",
    f"fetchc types {CPP} shapes::de": f"fetchc types {CPP} shapes::deep::Point ",
    f"fetchc compile {AT} 'r->Qu": f"fetchc compile {AT} 'r->Question",
    f"fetchc compile {AT} 'r.Question[0].Na": f"fetchc compile {AT} 'r.Question[0].Name' ",
    f'fetchc compile {AT} "name=r.Question[0].Na': f"fetchc compile {AT} "
    '"name=r.Question[0].Name" ',
    # Outside of quotes bash breaks words at `=`, `>`, `:` and `@`.
    f"fetchc compile {AT} name=r.Que": f"fetchc compile {AT} name=r.Question",
    f"fetchc compile {C} r-\\>hea": f"fetchc compile {C} r-\\>head",
    f"fetchc compile {C} --format=fe": f"fetchc compile {C} --format=fetcharg ",
    "fetchc functions -x corpus/c/layouts/bin/gcc-O2-dwa": "fetchc functions "
    "-x corpus/c/layouts/bin/gcc-O2-dwarf",
    "X=1 fetchc func": "X=1 fetchc functions ",
}


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_the_line_after_tab(name: str, tmp_path: Path) -> None:
    with shell(name, tmp_path) as one:
        assert {typed: one.line(typed + "\t") for typed in LINES} == LINES


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_names_of_added_probes(name: str, tmp_path: Path) -> None:
    state = State(str(tmp_path / ".local/state/fetchc/definitions.json"))
    with state.locked():
        state.save([AddedEvent("shop", one, "/b", None, (), ("p:x",)) for one in ("pay", "order")])
    with shell(name, tmp_path) as one:
        assert one.line("fetchc remove sh\t") == "fetchc remove shop/"
        assert one.line("fetchc remove shop/or\t") == "fetchc remove shop/order "


def test_bash_lists_help_and_keeps_what_was_typed(tmp_path: Path) -> None:
    with shell("bash", tmp_path) as bash:
        typed = f"fetchc compile {AT} 'r.Question[0]."
        assert bash.line(typed + "\t\t") == typed
        assert b"Qtype  -- uint16" in bash.printed
        # Several names have it inside, and begin otherwise.
        typed = f"fetchc compile {GO} -f Quest"
        assert bash.line(typed + "\t") == typed


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_a_file_without_debug_information_is_silent(name: str, tmp_path: Path) -> None:
    stripped = tmp_path / "stripped"
    subprocess.run(
        ["strip", "-o", stripped, CHECKOUT / "corpus/c/layouts/bin/gcc-O2-dwarf5"], check=True
    )
    with shell(name, tmp_path) as any_shell:
        before = len(any_shell.printed)
        typed = f"fetchc compile -x {stripped} -f visit 'r->"
        assert any_shell.line(typed + "\t") == typed
        assert b"error" not in any_shell.printed[before:]
        assert b"warning" not in any_shell.printed[before:]
