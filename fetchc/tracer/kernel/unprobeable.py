"""Why the kernel lets a function of its own not be probed, as far as its files tell.

Some must not be (what handles breakpoints itself): ``blacklist`` of debugfs lists them, a range of
addresses and a name a line. Others cannot be traced (``notrace``, code that runs before tracing
can): those are not in ``available_filter_functions``. Source: Documentation/trace/kprobes.rst,
``The kprobes debugfs interface``; kernel/trace/trace_kprobe.c, ``within_notrace_func``.
"""

from __future__ import annotations

from fetchc.tracer.kernel.kernel_symbols import SYMBOLS, why_not_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.tracer.kernel.tracefs import Tracefs

__all__ = ["BLACKLIST", "unprobeable", "untraceable"]

# Letters of probes that not every kernel has -> what they need.
BUILT = {
    "f": "CONFIG_FPROBE_EVENTS", "t": "CONFIG_FPROBE_EVENTS", "e": "CONFIG_KPROBE_EVENTS",
}  # fmt: skip
BLACKLIST = "/sys/kernel/debug/kprobes/blacklist"
_BANNED = "`{}` is on the kernel's list of functions that must not be probed"
_UNKNOWN = "`{}` is none of the functions that the kernel can trace"


def unprobeable(
    tracefs: Tracefs, line: str, blacklist: str = BLACKLIST, symbols: str = SYMBOLS
) -> tuple[str, ...]:
    """Notes about the function of a refused definition; none where nothing is known of it.

    Of a definition for a program as well: its place is a path.
    """
    words = line.split()
    if len(words) < 2 or words[1].startswith("/"):
        return ()
    if line[0] in BUILT:
        return (f"a kernel that is built without {BUILT[line[0]]} refuses all of the kind",)
    function = words[1].partition("+")[0].rpartition(":")[2]
    absent = why_not_there(line, symbols)
    if absent:
        return absent
    if any(row[-1:] == [function] for row in _rows(blacklist)):
        return (_BANNED.format(function),)
    traceable = [row[0] for row in _rows(tracefs.path("available_filter_functions")) if row]
    if traceable and function not in traceable:
        return (_UNKNOWN.format(function),)
    return ()


def untraceable(
    tracefs: Tracefs, lines: Iterable[str], blacklist: str = BLACKLIST
) -> dict[str, tuple[str, ...]]:
    """Those of many definitions whose functions the lists exclude, with the notes about each.

    For what a pattern matched: each list is read once. What kinds of probes a kernel lacks is not
    looked at.
    """
    banned = {row[-1] for row in _rows(blacklist) if row}
    known = {row[0] for row in _rows(tracefs.path("available_filter_functions")) if row}
    found: dict[str, tuple[str, ...]] = {}
    for line in lines:
        words = line.split(maxsplit=2)
        if line[0] not in "prf" or words[1].startswith("/"):
            continue
        function = words[1].partition("+")[0].partition("%")[0].rpartition(":")[2]
        if function in banned:
            found[line] = (_BANNED.format(function),)
        elif known and function not in known:
            found[line] = (_UNKNOWN.format(function),)
    return found


def _rows(path: str) -> list[list[str]]:
    # Not every kernel has them, and a locked-down one does not show them.
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return [line.split() for line in file]
    except OSError:
        return []
