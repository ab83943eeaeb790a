"""What the kernel says of a definition or filter that it refuses, as a diagnostic.

``error_log`` keeps the last eight refusals of everybody, each with its command: only the entry
about the very line is looked at. Source: Documentation/trace/ftrace.rst; before Linux 5.2 there is
no such file, and some refusals are logged nowhere.
"""

from __future__ import annotations

import errno
import os
import re

from fetchc.diag.diagnostic import Diagnostic, Label, TracerError
from fetchc.source import Span
from fetchc.tracer.kernel.unprobeable import unprobeable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.tracer.kernel.tracefs import Tracefs

__all__ = ["refused_definition", "refused_filter"]

_ENTRY = re.compile(
    r"^\[[ \d.]+\] \w+: error: (?P<said>.*)\n  Command: (?P<command>.*)\n(?P<caret> *\^)\n?",
    re.MULTILINE,
)
_INDENT = len("  Command: ")
# What the kernel's words mean, where they are bare or mislead. Texts: kernel/trace/trace_probe.h.
_MEANING = {
    "There is already the exact same probe event": "another process put it there",
    "Argument type or name is different from existing probe": (
        "several definitions of one event need the same names and types in the same order"
    ),
    "Probe type is different from existing probe": (
        "an event is of entries or of returns, not of both"
    ),
    "Failed to find the given file": "the path is the one that the kernel sees",
    "String accepts only memory argument": "texts and arrays are read from memory only",
    "Argument expression is too long": "`fetchc check` tells how long it may be",
    "Failed to register probe event": (
        "some functions must not be probed: see /sys/kernel/debug/kprobes/blacklist"
    ),
    "Event too big (too many fields?)": "the arguments take more bytes than an event may have",
}


def refused_definition(tracefs: Tracefs, line: str, error: OSError) -> TracerError:
    """The kernel's refusal of ``line``, with its place in it.

    The place is of the line with one blank between its words, as the kernel quotes it.
    """
    quoted = " ".join(line.split())
    code = "FC0706" if error.errno == errno.EEXIST else "FC0705"
    said, primary = _logged(tracefs, quoted)
    name = quoted.split(" ")[0].partition(":")[2]
    message = f"the kernel refused the definition of `{name}`"
    if code == "FC0706":
        message = f"an event `{name}` exists already"
    notes: tuple[str, ...] = (
        (f"the kernel said: {said}",) if said else (f"its error is: {_strerror(error)}",)
    )
    notes += unprobeable(tracefs, quoted)
    if said in _MEANING:
        notes += (_MEANING[said],)
    help = None
    if code == "FC0706":
        help = "see `fetchc list`, or give another name with --event"
    diagnostic = Diagnostic(code, message, primary, notes=notes, help=help)
    return TracerError((diagnostic,), quoted)


def refused_filter(text: str, shown: str, error: OSError) -> TracerError:
    """The kernel's refusal of the event filter ``text``; ``shown`` is its filter file now."""
    last = shown.strip().rsplit("\n", 1)[-1]
    note = f"its error is: {_strerror(error)}"
    if last.startswith("parse_error: "):
        note = f"the kernel said: {last.removeprefix('parse_error: ')}"
    message = f"the kernel refused the filter `{text}`"
    return TracerError((Diagnostic("FC0708", message, notes=(note,)),))


def _logged(tracefs: Tracefs, command: str) -> tuple[str, Label | None]:
    # What was said about the command, and where: ("", None) where it was not logged.
    try:
        log = tracefs.read("error_log")
    except OSError:
        return "", None
    entries = [each for each in _ENTRY.finditer(log) if each["command"].rstrip() == command]
    if not entries:
        return "", None
    said, caret = entries[-1]["said"], len(entries[-1]["caret"]) - 1 - _INDENT
    start = min(max(caret, 0), len(command) - 1)
    end = command.find(" ", start)
    span = Span(start, len(command) if end < 0 else max(end, start + 1))
    return said, Label(span, "refused here")


def _strerror(error: OSError) -> str:
    name = errno.errorcode.get(error.errno or 0, "")
    return f"{os.strerror(error.errno or 0)} ({name})"
