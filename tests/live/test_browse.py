"""``fetchc browse`` on live programs: the right value in few keys, and nothing left behind.

Once by textual's pilot, which counts keys; once in a real terminal, tmux's.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fetchc
from tests.live.hitting import leftovers
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytest.importorskip("textual", reason="the extra tui is not installed")

from textual.pilot import Pilot

from fetchc.browse.browser import Browser
from fetchc.browse.questions import Questions
from fetchc.browse.trace_pane import TracePane

pytestmark = pytest.mark.live

CHECKOUT = Path(__file__).parents[2]
MOST_KEYS = 12
SOURCE = """
#include <time.h>
struct item { const char *name; long price; };
struct order { int id; struct item *first; };
__attribute__((noinline)) void handle(struct order *o, long n) {
    asm volatile("" :: "r"(o), "r"(n) : "memory");
}
int main(void) {
    struct item pear = {"pear", 7};
    struct order o = {4711, &pear};
    for (long n = 0;; n++) {
        handle(&o, n % 100);
        struct timespec wait = {0, 5000000};
        nanosleep(&wait, 0);
    }
}
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A program that runs, with an order of the number 4711."""
    require("gcc")
    require_uprobes()
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O2", "-o", "shop", "shop.c"], cwd=folder, check=True)
    with subprocess.Popen([folder / "shop"]) as running:
        yield str(folder / "shop")
        running.kill()


def run(path: str, walk: Callable[[Pilot[None], Browser], Awaitable[None]]) -> None:
    answers = Questions(lambda: fetchc.open(path), str).answers()

    def ask(name: str, *arguments: object) -> Any:
        return answers[name](*arguments)

    async def walked() -> None:
        app = Browser(ask, ask("functions"), ["-x", path])
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            await walk(pilot, app)

    asyncio.run(walked())


def drawn(app: Browser) -> str:
    strips = app.screen._compositor.render_strips()
    return "\n".join(["".join([each.text for each in strip]).rstrip() for strip in strips])


async def shows(app: Browser, pattern: str, seconds: float = 20) -> str:
    until = time.monotonic() + seconds
    while not re.search(pattern, drawn(app)):
        assert time.monotonic() < until, f"no `{pattern}` in\n{drawn(app)}"
        await asyncio.sleep(0.1)
    return drawn(app)


def trace_of(app: Browser) -> tuple[TracePane, int]:
    pane = app.screen.query_one(TracePane)
    assert pane.pid is not None
    return pane, pane.pid


def test_the_first_right_value_in_few_keys(shop: str) -> None:
    keys = [*"hand", "enter", "enter", "right", "down", "t"]

    async def walk(pilot: Pilot[None], app: Browser) -> None:
        await pilot.press(*keys)
        await shows(app, r"handle  o->id=4711")
        _, pid = trace_of(app)
        assert leftovers(f"fetchc_{pid}_")  # so an empty list below means something
        await pilot.press("escape")
        await pilot.pause()
        assert leftovers(f"fetchc_{pid}_") == []

    run(shop, walk)
    assert len(keys) <= MOST_KEYS


def test_pause_filter_and_histogram(shop: str) -> None:
    async def walk(pilot: Pilot[None], app: Browser) -> None:
        await pilot.press(*"hand", "enter", "enter", "down", "t")
        await shows(app, r"handle  n=\d+")
        pane, first = trace_of(app)
        await pilot.press("p")
        await asyncio.sleep(0.3)
        still = re.findall(r"n=\d+", drawn(app))
        hits = pane.hits
        await asyncio.sleep(0.5)
        assert re.findall(r"n=\d+", drawn(app)) == still
        assert pane.hits > hits  # it is still traced
        assert "paused" in drawn(app)
        await pilot.press("p", "slash", *"> 97", "enter")
        shown = await shows(app, r"handle  n=9[89]")
        assert "--filter 'n > 97'" in " ".join(shown.split())  # which may be on two lines
        assert set(re.findall(r"n=(\d+)", drawn(app))) <= {"98", "99"}
        assert leftovers(f"fetchc_{first}_") == []
        await pilot.press("h")
        shown = await shows(app, r"\[64, 128\) +\d+ \|@+\|")
        assert "fetchc trace --histogram n --interval 1" in shown
        assert not re.search(r"\[32, 64\)", shown)
        _, last = trace_of(app)
        await pilot.press("ctrl+c")
        assert leftovers(f"fetchc_{last}_") == []

    run(shop, walk)


def test_what_trace_refuses_is_in_the_pane(shop: str) -> None:
    async def walk(pilot: Pilot[None], app: Browser) -> None:
        await pilot.press(*"hand", "enter", "enter", "slash", *"!!", "enter", "t")
        await shows(app, r"error\[FC0751\]")
        assert "ended" in drawn(app)

    run(shop, walk)


# ------------------------------------------------------------------------------
# A real terminal.


class Terminal:
    """A window of tmux of its own, with a shell that runs fetchc."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("tmux") is None:
            pytest.skip("no tmux")
        self._words = ["tmux", "-S", str(folder / "socket"), "-f", "/dev/null"]
        self._call("new-session", "-d", "-x", "80", "-y", "24", "sh")
        self._call("set-option", "-g", "set-clipboard", "on")
        self.type(f"cd {shlex.quote(str(CHECKOUT))}; PS1='READY '; stty -a > {folder}/before")
        self.keys("Enter")
        self._folder = folder

    def _call(self, *words: str) -> str:
        done = subprocess.run(
            [*self._words, *words], capture_output=True, text=True, check=True, timeout=20,
            env={**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        return done.stdout

    def type(self, text: str) -> None:
        self._call("send-keys", "-l", text)

    def keys(self, *names: str) -> None:
        for name in names:
            self._call("send-keys", name)
            time.sleep(0.05)

    def shows(self, pattern: str, seconds: float = 30) -> str:
        until = time.monotonic() + seconds
        while True:
            shown = self._call("capture-pane", "-p")
            if re.search(pattern, shown, re.MULTILINE):
                return shown
            assert time.monotonic() < until, f"no `{pattern}` in\n{shown}"
            time.sleep(0.1)

    def resize(self, columns: int, lines: int) -> None:
        self._call("resize-window", "-x", str(columns), "-y", str(lines))

    def clipboard(self) -> str:
        return self._call("show-buffer")

    def restored(self) -> bool:
        """Whether the terminal is as it was before: its settings, its first screen, its cursor."""
        self.type(f"stty -a > {self._folder}/after")
        self.keys("Enter")
        state = "#{alternate_on} #{cursor_flag} #{mouse_any_flag}"
        until = time.monotonic() + 20
        while time.monotonic() < until:
            after = self._folder / "after"
            if after.exists() and after.read_text().count("\n") > 3:
                break
            time.sleep(0.1)
        # Its size changed meanwhile.
        before, now = [
            re.sub(r"(rows|columns) \d+", "", (self._folder / name).read_text())
            for name in ("before", "after")
        ]
        (self._folder / "after").unlink()
        shown = self._call("display-message", "-p", state).strip()
        return (now, shown) == (before, "0 1 0")

    def close(self) -> None:
        subprocess.run([*self._words, "kill-server"], capture_output=True, check=False)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    found = Terminal(tmp_path)
    yield found
    found.close()


def _browse(terminal: Terminal, shop: str) -> None:
    terminal.type(f"{sys.executable} -m fetchc browse -x {shop}")
    terminal.keys("Enter")
    terminal.shows("^handle")


def _processes(shop: str) -> list[int]:
    """The traces and browsers of a program."""
    found = []
    for entry in filter(str.isdecimal, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if shop.encode() in words and words[0] == sys.executable.encode():
            found.append(int(entry))
    return found


def _gone(pids: list[int]) -> None:
    until = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < until, "a process is left"
        time.sleep(0.1)
    assert [line for pid in pids for line in leftovers(f"fetchc_{pid}_")] == []


def test_in_a_terminal_resized_while_it_traces(terminal: Terminal, shop: str) -> None:
    _browse(terminal, shop)
    terminal.keys(*"hand", "Enter")
    terminal.shows("^entry")
    terminal.keys("Enter")
    terminal.shows("fetchc trace o ")
    terminal.keys("Right", "Down", "Enter")
    terminal.shows("copied:")
    assert terminal.clipboard() == f"fetchc trace 'o->id' -x {shop} -f handle"
    terminal.keys("t")
    terminal.shows("o->id=4711")
    for size in ((50, 14), (100, 30), (80, 24)):
        terminal.resize(*size)
        time.sleep(0.5)
    terminal.shows("o->id=4711")
    pids = _processes(shop)
    assert len(pids) >= 2
    terminal.keys("C-c")
    shown = terminal.shows("^READY")
    copied = f"fetchc trace 'o->id' -x {shop} -f handle"
    # A terminal breaks long lines anywhere, and a blank at the end of one is lost.
    assert "".join(copied.split()) in "".join(shown.split())
    _gone(pids)
    assert terminal.restored()


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_leaves_no_probe(terminal: Terminal, shop: str, end: int) -> None:
    _browse(terminal, shop)
    terminal.keys(*"hand", "Enter")
    terminal.shows("^entry")
    terminal.keys("Enter")
    terminal.shows("fetchc trace o ")
    terminal.keys("t")
    terminal.shows("handle  o=")
    pids = _processes(shop)
    os.kill(min(pids), end)
    _gone(pids)
    if end != signal.SIGKILL:  # which nobody can answer
        assert terminal.restored()


def test_ctrl_c_at_any_moment(terminal: Terminal, shop: str) -> None:
    keys = [*"hand", "Enter", "Enter", "Right", "Down", "t"]
    for number in range(0, len(keys) + 1, 3):
        _browse(terminal, shop)
        terminal.keys(*keys[:number])
        pids = _processes(shop)
        terminal.keys("C-c")
        _gone(pids)
        assert terminal.restored()
        terminal.type("clear")
        terminal.keys("Enter")
