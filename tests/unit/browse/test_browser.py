"""The screens of ``fetchc browse``, by textual's pilot: keys and clicks in, the drawn text out."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as Xml
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fetchc
from fetchc.cli import main

pytest.importorskip("textual", reason="the extra tui is not installed")

from textual.pilot import Pilot
from textual.widgets import Tree

from docs.site import browse_picture
from fetchc.browse.browser import Browser, Scope, matching
from fetchc.browse.questions import Questions
from fetchc.browse.trace_pane import TracePane

CHECKOUT = Path(__file__).parents[3]
SVG = "{http://www.w3.org/2000/svg}"
C = "corpus/c/layouts/bin/gcc-O2-dwarf5"
GO = "corpus/go/dnsforward/bin/go1.27"
SIZE = (80, 24)
VISIT = ["v", "i", "s", "i", "enter", "enter"]  # to what is in scope at the entry of visit


def browser(path: str, ascii: bool = False) -> Browser:
    answers = Questions(lambda: fetchc.open(path), str).answers()

    def ask(name: str, *arguments: object) -> Any:
        return answers[name](*arguments)

    return Browser(ask, ask("functions"), ["-x", path], ascii)


def drawn(app: Browser) -> str:
    """What the terminal shows, a line each."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(["".join([each.text for each in strip]).rstrip() for strip in strips])


def run(app: Browser, walk: Callable[[Pilot[None]], Awaitable[None]], size: Any = SIZE) -> None:
    async def walked() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await walk(pilot)

    asyncio.run(walked())


def after(path: str, *keys: str, size: Any = SIZE, ascii: bool = False) -> str:
    """What is drawn after the keys."""
    app, found = browser(path, ascii), [""]

    async def walk(pilot: Pilot[None]) -> None:
        await pilot.press(*keys)
        await pilot.pause()
        found[0] = drawn(app)

    run(app, walk, size)
    return found[0]


def test_functions_by_the_characters_of_their_names() -> None:
    shown = after(C, "v", "s", "t")
    assert "visit" in shown.splitlines()
    assert "flags" not in shown


def test_the_points_of_a_function() -> None:
    shown = after(C, *VISIT[:-1]).splitlines()
    assert shown[:3] == ["visit", "entry   shapes.c:11", "return"]
    assert "line    shapes.c:14" in shown


def test_variables_and_why_one_cannot_be_fetched() -> None:
    shown = after(C, *VISIT)
    assert re.search(r"r +struct record \* +%di:x64", shown)
    assert re.search(r"depth +int +%si:s32", shown)
    assert re.search(r"sum +int +-- `sum` cannot be fetched here", shown)


def test_at_a_return_the_results_come_first() -> None:
    shown = after(C, *VISIT[:-1], "down", "enter")
    assert "fetchc trace '$retval' -x corpus/c/layouts/bin/gcc-O2-dwarf5 -f visit --return" in shown
    assert re.search(r"\$retval .*\$retval:s32\n(.*\n)*.*depth .*--", shown)


def test_the_expression_grows_with_its_fetch_arg_kernels_and_command() -> None:
    shown = after(C, *VISIT, "e", *"->to", "enter", "right", "down")
    assert "fetchc trace 'r->to->s' -x corpus/c/layouts/bin/gcc-O2-dwarf5 -f visit" in shown
    assert "+0(+88(%di)):s16  (short int)" in shown
    assert "accepted by Linux from 3.14" in shown


def test_offsets_and_holes() -> None:
    shown = after(C, *VISIT, "right")
    assert re.search(r"\+36 +\(hole of 4 bytes\)\n.*\+40 +d +double +\+40\(%di\):x64", shown)


def test_warnings_and_refusals_are_below_the_tree() -> None:
    keys = ["h", "a", "n", "d", "l", "e", "R", "enter", "enter", "down", "down", "e"]
    shown = after(GO, *keys, *".Question[0].Name", "enter")
    assert "+0(+0(+40(%di))):string  (string)" in shown
    assert "warning[FC06" in shown
    refused = after(C, *VISIT, "down", "down", "down")
    assert "error[FC0401]: `sum` cannot be fetched here" in refused


def test_enter_copies_the_command_and_shows_it() -> None:
    app = browser(C)

    async def walk(pilot: Pilot[None]) -> None:
        await pilot.press(*VISIT, "down", "enter")
        await pilot.pause()
        command = "fetchc trace depth -x corpus/c/layouts/bin/gcc-O2-dwarf5 -f visit"
        assert app.clipboard == app.copied == command
        assert f"copied:\n{command}" in drawn(app)

    run(app, walk)


def test_the_mouse_chooses_and_opens() -> None:
    app = browser(C)

    async def walk(pilot: Pilot[None]) -> None:
        await pilot.press(*VISIT[:4])
        await pilot.pause()
        await pilot.click("OptionList", offset=(2, 0))
        await pilot.pause()
        await pilot.click("OptionList", offset=(2, 0))
        await pilot.pause()
        await pilot.click(Tree, offset=(8, 1))
        await pilot.pause()
        assert "(hole of 4 bytes)" in drawn(app)

    run(app, walk)


def test_back_leads_to_the_functions() -> None:
    shown = after(C, *VISIT, "escape", "escape")
    assert "visit" in shown.splitlines()
    assert "1 function" in shown


@pytest.mark.parametrize("path", [C, GO])
def test_ascii_alone(path: str) -> None:
    keys = ["escape", "e", "enter", "enter", "right"]
    assert not after(path, *keys).isascii()
    assert after(path, *keys, ascii=True).isascii()


@pytest.mark.parametrize("size", [(40, 12), (20, 5), (200, 60)])
def test_any_size_of_the_terminal(size: tuple[int, int]) -> None:
    shown = after(C, *VISIT, "right", "down", size=size)
    assert max(map(len, shown.splitlines())) <= size[0]
    assert len(shown.splitlines()) <= size[1]


def test_without_colours_the_cursor_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = browser(C)

    async def walk(pilot: Pilot[None]) -> None:
        await pilot.press(*VISIT)
        await pilot.pause()
        strips = app.screen._compositor.render_strips()
        styles = {
            segment.style.bgcolor.name
            for strip in strips[2:4]  # with the cursor, and without
            for segment in strip
            if segment.style is not None and segment.style.bgcolor is not None
        }
        assert len(styles) > 1
        for strip in strips:
            for segment in strip:
                for color in (segment.style.color, segment.style.bgcolor) if segment.style else ():
                    if color is not None and color.triplet is not None:
                        assert len(set(color.triplet)) == 1  # a grey

    run(app, walk)


def test_names_of_a_file_draw_nothing_else() -> None:
    app = browser(C)
    app.functions = ["[bold]x[/bold]", "a\x1b[31mb", "\u202eevil"]

    async def walk(pilot: Pilot[None]) -> None:
        await pilot.press("escape")
        await pilot.pause()
        assert "[bold]x[/bold]" in drawn(app)
        assert "\\x1b[31m" in drawn(app)
        assert "\u202e" not in drawn(app)
        await pilot.press("enter")
        await pilot.pause()
        assert "error[FC0202]" in drawn(app)

    run(app, walk)


def test_a_name_that_types_into_a_shell_is_not_copied() -> None:
    app = browser(C)

    async def walk(pilot: Pilot[None]) -> None:
        await pilot.press(*VISIT)
        await pilot.pause()
        assert isinstance(app.screen, Scope)
        app.target = ["-x", "a\x1b[201~b"]  # the end of a bracketed paste
        await pilot.press("enter")
        await pilot.pause()
        assert app.copied == app.clipboard == ""
        assert "not copied" in drawn(app)

    run(app, walk)


def test_keys_of_a_table_are_printable() -> None:
    app = browser(C)

    async def walk(pilot: Pilot[None]) -> None:
        await pilot.press(*VISIT)
        await pilot.pause()
        pane = app.screen.query_one(TracePane)
        row = {"key": ["a\x1b[31m\n"], "hits": 3}
        pane._take([json.dumps({"interval": [0, 1], "rows": [row]})], counted=True)
        (line,) = pane._counted(40)
        assert line == "        3  a\\x1b[31m\\n"

    run(app, walk)


def test_a_file_that_cannot_be_read_any_more_is_said() -> None:
    app = browser(C)

    def ask(*_: object) -> Any:
        raise fetchc.DebugInfoError("FC0905", "x", "ended with SIGKILL")

    async def walk(pilot: Pilot[None]) -> None:
        app.ask = ask
        await pilot.press("v", "enter")
        await pilot.pause()
        assert "error[FC0905]" in drawn(app)

    run(app, walk)


def test_the_picture_of_the_page_is_what_the_browser_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CHECKOUT)
    texts = [
        ["".join(text.itertext()).strip() for text in Xml.fromstring(drawn).iter(f"{SVG}text")]
        for drawn in (browse_picture.PICTURE.read_text(), browse_picture.picture())
    ]
    assert texts[0] == texts[1]
    loaded = re.findall(r"url\(\"?http|href|@import", browse_picture.PICTURE.read_text())
    assert loaded == []


# ------------------------------------------------------------------------------
# The command.


def _run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = main(["browse", "-x", C, *words])
    return status, capsys.readouterr().err


def test_without_textual_the_command_says_how_to_get_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "textual" else find(name)
    )
    status, said = _run(capsys)
    assert status == 3
    assert "pip install 'fetchc[tui]'" in said


def test_without_a_terminal_it_names_the_other_commands(capsys: pytest.CaptureFixture[str]) -> None:
    status, said = _run(capsys)
    assert status == 2
    assert "needs a terminal" in said


def test_nothing_else_imports_textual() -> None:
    code = (
        "import sys; from fetchc.cli import main; import fetchc.cli.browse_command; "
        f"main(['compile', 'depth', '-x', {C!r}, '-f', 'visit']); "
        "sys.exit('textual' in sys.modules or 'rich' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, check=True, stdout=subprocess.PIPE)


# ------------------------------------------------------------------------------
# Which functions match.


@pytest.mark.parametrize(
    ("typed", "names", "found"),
    [
        ("handle", ["sighandler", "main.handle", "x"], ["main.handle", "sighandler"]),
        ("hR", ["handleRequest", "hr", "h_R"], ["h_R", "handleRequest"]),
        ("abc", ["a.b.c", "abc", "ab.c"], ["abc", "ab.c", "a.b.c"]),
        ("", ["b", "a"], ["b", "a"]),
    ],
)
def test_the_closest_first(typed: str, names: Sequence[str], found: Sequence[str]) -> None:
    assert matching(names, typed) == found


def _has(name: str, typed: str) -> bool:
    rest = iter(name)
    return all(character in rest for character in typed)


@given(st.lists(st.text("abA.", max_size=12), max_size=20), st.text("abA.", max_size=5))
@settings(max_examples=200, deadline=None)
def test_what_matches_has_all_characters_in_order(names: list[str], typed: str) -> None:
    fold = typed.lower() == typed
    expected = [name for name in names if _has(name.lower() if fold else name, typed)]
    assert sorted(matching(names, typed)) == sorted(expected)


def test_a_name_without_end_takes_no_time() -> None:
    # A regular expression with a gap between all characters goes back over and over.
    begin = time.process_time()
    assert matching(["h" * 2000] * 50, "h" * 20 + "x") == []
    assert len(matching(["handle::client::" * 40] * 200, "handle_cl")) == 0
    assert len(matching(["handle_x_client" * 40] * 200, "handle_cl")) == 200
    assert time.process_time() - begin < 5
