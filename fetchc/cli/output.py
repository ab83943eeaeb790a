"""Results to standard output, everything else to standard error."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.diag.model import Diagnostic

__all__ = ["Output", "Unwritable", "exit_status"]


class Unwritable(Exception):
    """Standard output takes no results: closed, or its disk is full."""


def exit_status(refused: Sequence[Diagnostic]) -> int:
    """The exit status for what was refused: 3 where the file is to blame, else 1, 0 for none.

    A file that cannot be read has no place in an expression; a name that it lacks has one.
    """
    if any(each.code.startswith("FC09") and each.primary is None for each in refused):
        return 3
    return int(bool(refused))


class Output:
    """Where a command's words go. ``color`` is ``auto``, ``always`` or ``never``."""

    __slots__ = ("_color",)

    def __init__(self, color: str) -> None:
        shown = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        self._color = color == "always" or (color == "auto" and shown)

    def line(self, text: str) -> None:
        """One line of a result; raises Unwritable, or BrokenPipeError where nobody reads on."""
        if sys.stdout is None:
            raise Unwritable("it is closed")
        try:
            sys.stdout.write(text + "\n")
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Unwritable(error.strerror) from error
        except UnicodeEncodeError:
            # A name of the file that is no text here: its bytes, as the file has them.
            sys.stdout.flush()
            sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape") + b"\n")

    def flush(self) -> None:
        """Hand over all results; raises as :meth:`line` does."""
        if sys.stdout is None:
            return  # and nothing was written
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Unwritable(error.strerror) from error

    def say(self, text: str) -> None:
        """One line beside the results."""
        print(text.encode("utf-8", "backslashreplace").decode(), file=sys.stderr)

    def diagnostics(self, diagnostics: Sequence[Diagnostic], text: str) -> None:
        """Diagnostics about the argument ``text`` (empty: about none)."""
        if not diagnostics:
            return
        from fetchc.diag.render import render

        for diagnostic in diagnostics:
            self.say(render(diagnostic, text, color=self._color))
