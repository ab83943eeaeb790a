"""The command line: one module a command. The only place that prints or reads argv."""

from __future__ import annotations

import gc
import sys

from fetchc.cli.options import COMMANDS, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status of docs/interface.md."""
    gc.disable()  # a command ends soon, and collecting what it imports costs 2 ms
    try:
        status = _run(argv)
        _save()
        return status
    finally:
        if argv is None:
            gc.freeze()  # nor does the interpreter have to look at it all before it ends


def _run(argv: Sequence[str] | None) -> int:
    options = parse(sys.argv[1:] if argv is None else argv)
    if isinstance(options, int):
        return options
    from fetchc.cli.output import Output, Unwritable, exit_status
    from fetchc.diag.errors import CompileError, DebugInfoError, TracerError

    output = Output(options.color)
    if "uncached" in COMMANDS[options.command].options:
        from fetchc.debuginfo.image import Image

        Image.cache_folder = "" if options.uncached else cache_folder()
    try:
        run = __import__(f"fetchc.cli.{COMMANDS[options.command].module}", fromlist=["run"]).run
        status: int = run(options, output)
        output.flush()
        return status
    except CompileError as refusal:
        output.diagnostics(refusal.diagnostics, "")
        return exit_status(refusal.diagnostics)
    except DebugInfoError as unreadable:
        output.diagnostics((unreadable.diagnostic,), "")
        return 3
    except TracerError as refused:
        output.diagnostics(refused.diagnostics, refused.text)
        return 4
    except BrokenPipeError:
        return _quiet_end()
    except Unwritable as failed:
        output.say(f"error: standard output cannot be written: {failed}")
        _quiet_end()
        return 3
    except KeyboardInterrupt:
        return 130
    except Exception:  # noqa: BLE001 - the outermost edge: anything else is a bug of ours
        import traceback

        traceback.print_exc()
        output.say("error: this is a bug in fetchc; please report it with the lines above")
        return 70


def cache_folder() -> str:
    """Where this user's cache is; empty where the environment names no place.

    Source: XDG Base Directory Specification, XDG_CACHE_HOME.
    """
    import os

    base = os.environ.get("XDG_CACHE_HOME", "")
    if not base.startswith("/"):
        home = os.environ.get("HOME", "")
        base = f"{home}/.cache" if home.startswith("/") else ""
    return base and f"{base}/fetchc"


def _save() -> None:
    # What is not loaded has nothing to save.
    cache = sys.modules.get("fetchc.debuginfo.cache")
    if cache is not None:
        cache.save()


def _quiet_end() -> int:
    # Nobody takes our output. What is left in the buffer must not be tried
    # again when the interpreter closes standard output.
    import os

    if sys.stdout is None:
        return 0
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
