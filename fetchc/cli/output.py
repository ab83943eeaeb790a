"""Results to standard output, everything else to standard error."""

from __future__ import annotations

import os
import sys
from errno import EAGAIN, EMFILE, ENFILE, ENOMEM

from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO, TextIO

    from fetchc.diag.diagnostic import Diagnostic

__all__ = [
    "LIMITS",
    "NAMED",
    "Output",
    "Unwritable",
    "discard",
    "exit_status",
    "given_bytes",
    "given_lines",
    "replace_file",
]

LIMITS = (EAGAIN, EMFILE, ENFILE, ENOMEM)
"""What the kernel says where a limit is reached: of processes, open files, or memory."""


class Unwritable(Exception):
    """A file takes no results: it is closed, or its disk is full. No ``path``: standard output."""

    def __init__(self, reason: str | None, path: str = "") -> None:
        super().__init__(reason, path)  # what a pickle has
        self.path = path

    def __str__(self) -> str:
        return f"{self.path or 'standard output'} cannot be written: {self.args[0]}"


def exit_status(refused: Sequence[Diagnostic]) -> int:
    """The exit status for what was refused: 3 where the file is to blame, else 1, 0 for none."""
    if any(each.blames_file for each in refused):
        return 3
    return int(bool(refused))


def discard(stream: TextIO | None) -> None:
    """Let all that is written to a stream which takes nothing get lost from now on.

    What is left in its buffer would be tried again, and fail, when the interpreter ends.
    """
    if stream is None:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


class Output:
    """Where a command's words go. ``color`` is ``auto``, ``always`` or ``never``.

    ``terminal`` says whether somebody looks at standard error, ``shown`` whether at the results,
    ``colored`` whether these have colours. ``full_types``: types of C++ are shown whole.
    ``replace_file`` is :func:`replace_file`; a process without rights has its parent do it.
    """

    __slots__ = (
        "_color", "_full_types", "_path", "colored", "replace_file", "results", "shown", "terminal",
    )  # fmt: skip

    def __init__(self, color: str, full_types: bool = False) -> None:
        self._full_types = full_types
        self.replace_file = replace_file
        self.results: TextIO | None = None  # standard output
        self._path = ""
        self.terminal = sys.stderr is not None and sys.stderr.isatty()
        self.shown = sys.stdout is not None and sys.stdout.isatty()
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        painted = self.terminal and not plain
        self._color = color == "always" or (color == "auto" and painted)
        self.colored = color == "always" or (color == "auto" and self.shown and not plain)

    def to_file(self, path: str) -> None:
        """Write results to a file from now on, in place of what it holds; raises Unwritable."""
        try:
            self.results = open(  # noqa: SIM115 - until the command ends
                path, "w", encoding="utf-8", errors="surrogateescape"
            )
        except OSError as error:
            raise Unwritable(error.strerror, path) from error
        self._path = path
        self.shown = self.colored = False

    def close(self) -> None:
        """Close the file of the results, where they have one; what was written is flushed."""
        if self.results is not None:
            try:
                self.results.close()
            except OSError:  # its disk is full: that was said before
                return

    def line(self, text: str) -> None:
        """One record of a result, on one line whatever is in it; raises as :meth:`document` does.

        What does not print as itself is escaped, on terminals and in pipes: a name of a file or of
        debug information forges no record, moves no cursor, changes no colours. The bytes of such
        a name are in JSON.
        """
        self.document(_harmless(text))

    def lines(self, records: Sequence[str]) -> None:
        """Several of them."""
        text = "\n".join(records)
        # A long list is looked through at once.
        if not text.replace("\n", " ").isprintable() or text.count("\n") >= len(records):
            text = "\n".join([_harmless(each) for each in records])
        self.document(text)

    def document(self, text: str, end: str = "\n") -> None:
        """Lines of fetchc's own making, as they are: JSON, a help, records that are printable.

        Raises Unwritable, or BrokenPipeError where nobody reads on.
        """
        self._write(text + end)

    def raw(self, content: bytes) -> None:
        """A part of a result that is no text; raises as :meth:`document` does."""
        self._write(content)

    def _write(self, content: str | bytes) -> None:
        file = self.results or sys.stdout
        if file is None:
            raise Unwritable("it is closed")
        try:
            _write(file, content)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Unwritable(error.strerror, self._path) from error

    def exact(self, text: str) -> None:
        """Lines that the kernel or another tool is to read: as they are, or not at all.

        Bytes of a path that are no text go as they are into a pipe. Raises CompileError FC0510 for
        other characters that a reader would not see, and as :meth:`document` does.
        """
        if not text.isprintable():
            from fetchc.diag.diagnostic import reject

            for character in text:
                hidden = not character.isprintable() and character != "\n"
                if hidden and not "\udc80" <= character <= "\udcff":
                    raise reject(
                        "FC0510",
                        f"a path or name holds {character!r}, which the text form cannot show",
                        help="make a link with a plain name and give that, or take --format json",
                    )
            if self.shown:
                text = "\n".join(map(_harmless, text.split("\n")))
        self.document(text)

    def flush(self) -> None:
        """Hand over all results; raises as :meth:`line` does."""
        file = self.results or sys.stdout
        if file is None:
            return  # and nothing was written
        try:
            file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Unwritable(error.strerror, self._path) from error

    def say(self, *lines: str) -> None:
        """Lines beside the results, each on one line whatever is in it."""
        self._beside("\n".join(map(_harmless, lines)))

    def diagnostics(self, diagnostics: Sequence[Diagnostic], text: str) -> None:
        """Diagnostics about the argument ``text`` (empty: about none)."""
        if not diagnostics:
            return
        from fetchc.diag.render import render

        for diagnostic in diagnostics:
            each = diagnostic.reworded(self.types)
            self._beside(render(each, text, color=self._color))

    def types(self, text: str) -> str:
        """A string for people with the types of C++ in it as short as they write them."""
        if self._full_types or "std::" not in text:
            return text
        from fetchc.program.cpp_names import short_types

        return short_types(text)

    def _beside(self, text: str) -> None:
        if sys.stderr is None:
            return
        try:
            print(text, file=sys.stderr)
        except OSError:  # no output is possible: only the exit status shows it
            discard(sys.stderr)


def _write(file: TextIO, text: str | bytes) -> None:
    if isinstance(text, bytes):  # text is never in the same results
        file.buffer.write(text)
        return
    try:
        file.write(text)
    except UnicodeEncodeError:
        # Bytes of a path that are no text here: as the file system has them.
        file.flush()
        file.buffer.write(text.encode("utf-8", "surrogateescape"))


def _harmless(text: str) -> str:
    if text.isprintable():
        return text
    from fetchc.diag.render import printable

    return printable(text)


def replace_file(path: str, content: bytes) -> None:
    """Make ``content`` the file at ``path``: all of it, or the file stays as it was.

    What is no regular file (``/dev/stdout``) is written to. Raises Unwritable.
    """
    from tempfile import mkstemp

    try:
        if os.path.exists(path) and not os.path.isfile(path):
            with open(path, "wb") as file:
                file.write(content)
            return
        place = os.path.realpath(path)
        handle, partial = mkstemp(dir=os.path.dirname(place), prefix=".fetchc-")
        try:
            with open(handle, "wb") as file:
                file.write(content)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(partial, 0o666 & ~mask)
            os.replace(partial, place)
        except BaseException:
            os.unlink(partial)
            raise
    except OSError as error:
        raise Unwritable(error.strerror, path) from error


# ------------------------------------------------------------------------------
# Standard input, for operands that are ``-``.

NAMED = "-"
_LONGEST = 1 << 20  # bytes of a line


def given_bytes() -> BinaryIO:
    """Standard input as bytes; raises DebugInfoError FC0901 where it is closed."""
    if sys.stdin is None:
        raise DebugInfoError("FC0901", NAMED, "cannot be read: standard input is closed")
    return sys.stdin.buffer


def given_lines() -> Iterator[str]:
    """Each line without what ends it, and without those that say nothing.

    Bytes that are no UTF-8 are lone surrogates. Raises DebugInfoError FC0901 where it cannot be
    read: it is closed, or a folder. FC0905 for a line without an end: /dev/zero has one.
    """
    file = given_bytes()
    try:
        while raw := file.readline(_LONGEST + 1):
            if len(raw) > _LONGEST:
                raise DebugInfoError("FC0905", NAMED, f"a line of more than {_LONGEST:,} bytes")
            line = raw.decode("utf-8", "surrogateescape").rstrip("\r\n")
            if line.strip():
                yield line
    except OSError as refused:
        raise DebugInfoError.of(NAMED, refused) from None
