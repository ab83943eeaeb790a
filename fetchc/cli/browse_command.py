"""``fetchc browse``: a program on a terminal, from its functions to live values."""

from __future__ import annotations

import importlib.util
import os
import sys
from functools import partial

from fetchc.browse.questions import Questions
from fetchc.ceilings import Exceeded, unwatch, watch
from fetchc.cli.functions_command import say_none
from fetchc.cli.parsing_child import Reader, reader
from fetchc.diag.diagnostic import too_costly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output

__all__ = ["run"]


def run(options: Options, output: Output) -> int:
    """Browse until the user quits; prints the last command that was copied."""
    if importlib.util.find_spec("textual") is None:
        output.say(
            "error: `fetchc browse` needs the package `textual`, which is not installed",
            "  = help: install it: `pip install 'fetchc[tui]'`",
        )
        return 3
    if not (output.shown and sys.stdin is not None and sys.stdin.isatty()):
        output.say(
            "error: `fetchc browse` needs a terminal",
            "  = help: in a pipe take `fetchc functions`, `variables` and `types`",
        )
        return 2
    questions = Questions(options.opened, output.types).answers()
    none = {"none": lambda: say_none(options.opened(), "*", output)}
    with reader(options, output, {**questions, **none}) as asked:
        functions = asked.ask("functions")
        if not functions:
            asked.ask("none")
            return 1
        unwatch()  # each question has its own time from now on
        ask: Callable[..., Any] = asked.ask
        if not isinstance(asked, Reader):
            ask = partial(_bounded, options.path, asked.ask)
        from fetchc.browse.browser import Browser

        if options.color == "never":
            os.environ["NO_COLOR"] = "1"
        browser = Browser(ask, functions, _target(options), not _draws_utf8())
        browser.run()
    if browser.copied:
        output.line(browser.copied)
    return browser.return_code or 0


def _draws_utf8() -> bool:
    # Where LC_ALL is C, Python writes UTF-8 (PEP 540), and the terminal may draw something else.
    names = map(os.environ.get, ("LC_ALL", "LC_CTYPE", "LANG"))
    named = next(filter(None, names), "UTF-8")
    return "utf" in named.lower() and "utf" in (sys.stdout.encoding or "").lower()


def _bounded(path: str, ask: Callable[..., Any], *question: object) -> Any:
    watch(path, incremental=True)
    try:
        return ask(*question)
    except (Exceeded, MemoryError) as beyond:
        unwatch()
        raise too_costly(path, beyond) from None
    finally:
        unwatch()


def _target(options: Options) -> list[str]:
    # The options of `trace` that name the program as this command does.
    words = [] if options.binary.endswith(":") else ["-x", options.binary]
    words += [word for pid in options.pids for word in ("-p", str(pid))]
    words += [word for folder in options.references for word in ("--reference", folder)]
    words += ["--debug-file", options.debug_file] if options.debug_file else []
    return words + [word for folder in options.debug_dirs for word in ("--debug-dir", folder)]
