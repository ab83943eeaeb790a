"""What sessions left in the kernel whose processes were killed."""

from __future__ import annotations

import os
from contextlib import suppress

from fetchc.diag.diagnostic import Diagnostic
from fetchc.tracer.kernel.install import head, listed, uninstall
from fetchc.tracer.kernel.instance import remove_instance
from fetchc.tracer.kernel.owner import alive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.tracer.kernel.tracefs import Tracefs

__all__ = ["leftovers", "remove_leftovers", "told"]


def leftovers(tracefs: Tracefs) -> list[str]:
    """The names of dead sessions that have an instance or definitions."""
    names = {head(line)[0] for line in listed(tracefs)}
    names.update(os.listdir(tracefs.path("instances")))
    return sorted(name for name in names if alive(name) is False)


def _events(tracefs: Tracefs, group: str) -> list[tuple[str, str]]:
    # By the list and by the folder of the events: the list may lack some (see `install`).
    found = {head(line) for line in listed(tracefs) if head(line)[0] == group}
    with suppress(FileNotFoundError):
        for entry in os.scandir(tracefs.path("events", group)):
            if entry.is_dir():
                found.add((group, entry.name))
    return sorted(found)


def told(names: list[str]) -> tuple[Diagnostic, ...]:
    """The warning about ``names``; none where there are none."""
    if not names:
        return ()
    what = "a session that was killed" if len(names) == 1 else f"{len(names)} sessions, killed,"
    notes = tuple(f"`{name}`" for name in names[:3])
    help = "take it away: `fetchc remove --stale`"
    return (Diagnostic("FC0612", f"{what} left definitions in the kernel", notes=notes, help=help),)


def remove_leftovers(tracefs: Tracefs) -> list[str]:
    """Take away what dead sessions left; the names of those that were.

    Raises TracerError (FC0710) where something is still in use. An instance that somebody has
    open is a session's that lives in another PID namespace: it stays as it is.
    """
    removed = []
    for name in leftovers(tracefs):
        if remove_instance(tracefs, name):
            uninstall(tracefs, _events(tracefs, name))
            removed.append(name)
    return removed
