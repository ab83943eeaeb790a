"""Definitions that stay: ``fetchc add`` installs them, ``list`` and ``remove`` know them again.

Whose a definition is: one that is in the state file, word for word as the kernel lists it, was
added; one of a session has the session's name as group; all others are somebody else's.
"""

from __future__ import annotations

import errno

from fetchc.diag.diagnostic import TracerError
from fetchc.record import Record
from fetchc.tracer.kernel.install import head, install, listed, uninstall
from fetchc.tracer.kernel.owner import alive
from fetchc.tracer.kernel.profile import hits
from fetchc.tracer.kernel.state import Kept
from fetchc.tracer.kernel.tracefs import refused, refused_setting
from fetchc.tracer.signals import shielded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.tracer.kernel.state import State
    from fetchc.tracer.kernel.tracefs import Tracefs

__all__ = ["Listed", "add", "definitions", "known", "remove"]


_READINGS = 8


class Listed(Record):
    """An event with its definitions, as the kernel lists them.

    ``owner`` is ``added`` (then ``kept`` says what for), ``session``, ``stale`` (a session's that
    is gone) or ``other``. ``enabled`` is the state in the top instance, or in the session's; None
    where there is no such event. ``hits`` counts those while it was enabled anywhere, None where
    it is not known.
    """

    group: str
    event: str
    owner: str
    definitions: tuple[str, ...]
    kept: Kept | None
    enabled: bool | None
    hits: int | None

    @property
    def name(self) -> str:
        """``GROUP/EVENT``."""
        return f"{self.group}/{self.event}"


def add(tracefs: Tracefs, state: State, wanted: Kept, enable: bool) -> Listed:
    """Install ``wanted``, whose definitions are lines of one event, and write it down.

    Raises TracerError: there is such an event (FC0706), refused (FC0705), not to be written
    down (FC0712). Nothing is there then.
    """
    with shielded(), state.locked():
        kept = _present(state.load(), tracefs)
        name = (wanted.group, wanted.event)
        if tracefs.exists("events", *name):
            raise refused(
                "FC0706",
                f"an event `{wanted.group}/{wanted.event}` exists already",
                help="see `fetchc list`, or give another name with --event",
            )
        install(tracefs, wanted.definitions)
        try:
            lines = tuple(_by_event(tracefs, [wanted]).get(name, ()))
            made = Kept(*name, wanted.binary, wanted.function, wanted.expressions, lines)
            state.save([*kept, made])
            if enable:
                _switch(tracefs, *name, on=True)
        except BaseException:
            uninstall(tracefs, [name])
            state.save(kept)
            raise
    return Listed(*name, "added", lines, made, enable, 0)


def known(state: State) -> tuple[list[Kept], tuple[Diagnostic, ...]]:
    """What the state file says; nothing, and why, where it cannot be used."""
    try:
        return state.load(), ()
    except TracerError as error:
        return [], error.diagnostics


def definitions(tracefs: Tracefs, kept: Sequence[Kept]) -> list[Listed]:
    """Every event of a probe, those of uprobes first; ``kept`` are those that were added."""
    lines = _by_event(tracefs, kept)
    ours = {(one.group, one.event): one for one in kept}
    counted = hits(tracefs)
    found = []
    for name, own in lines.items():
        made = ours.get(name)
        if made is not None and sorted(made.definitions) != sorted(own):
            made = None
        owner = "other" if made is None else "added"
        living = alive(name[0])
        if made is None and living is not None:
            owner = "session" if living else "stale"
        enabled = _enabled(tracefs, *name)
        found.append(Listed(*name, owner, tuple(own), made, enabled, counted.get(name)))
    return found


def _by_event(tracefs: Tracefs, wanted: Sequence[Kept]) -> dict[tuple[str, str], list[str]]:
    # The lines of each event. The kernel's list may lack some (see `install`): read anew while it
    # has fewer than are ``wanted`` of an event that is there.
    lines: dict[tuple[str, str], list[str]] = {}
    for _ in range(_READINGS):
        lines.clear()
        for line in listed(tracefs):
            lines.setdefault(head(line), []).append(line)
        if not any(_lacking(tracefs, one, lines) for one in wanted):
            break
    return lines


def _lacking(tracefs: Tracefs, one: Kept, lines: Mapping[tuple[str, str], list[str]]) -> bool:
    name = (one.group, one.event)
    few = len(lines.get(name, ())) < len(one.definitions)
    return few and tracefs.exists("events", *name)


def _enabled(tracefs: Tracefs, group: str, event: str) -> bool | None:
    # A session enables its events in its own instance only.
    below = ("events", group, event, "enable")
    states = []
    for path in (below, ("instances", group, *below)):
        try:
            states.append(tracefs.read(*path).startswith("1"))
        except FileNotFoundError:
            continue
    return any(states) if states else None


def _switch(tracefs: Tracefs, group: str, event: str, on: bool) -> None:
    try:
        tracefs.write("1" if on else "0", "events", group, event, "enable")
    except OSError as error:
        if not on and error.errno in (errno.ENOENT, errno.ENODEV):
            return  # somebody else has removed it
        raise refused_setting(f"to switch `{group}/{event}`", error) from error


def remove(tracefs: Tracefs, state: State, names: Sequence[str] | None) -> list[Listed]:
    """Remove what was added: the events ``names`` (GROUP/EVENT or EVENT), all of them for None.

    Raises TracerError: nothing of that name, several, or somebody else's (FC0711), in use
    (FC0710). Where one of the names is wrong, nothing is removed.
    """
    with shielded(), state.locked():
        kept = state.load()
        present = definitions(tracefs, kept)
        ours = [one for one in present if one.owner == "added"]
        chosen = ours if names is None else [_chosen(present, name) for name in names]
        for one in chosen:
            if one.enabled:
                _switch(tracefs, one.group, one.event, on=False)
        try:
            uninstall(tracefs, [(one.group, one.event) for one in chosen])
        finally:
            state.save(_present(kept, tracefs))
    return chosen


def _chosen(present: list[Listed], name: str) -> Listed:
    found = [one for one in present if name in (one.name, one.event)]
    ours = [one for one in found if one.owner == "added"]
    if len(ours) == 1:
        return ours[0]
    if len(ours) > 1:
        notes = tuple(f"there is `{one.name}`" for one in ours)
        help = "give group and event"
        raise refused("FC0711", f"several events are called `{name}`", notes=notes, help=help)
    help = "`fetchc list` shows what there is"
    if not found:
        raise refused("FC0711", f"there is no event `{name}`", help=help)
    if found[0].owner == "stale":
        help = "`fetchc remove --stale` removes it"
    what = f"`{found[0].name}` was not added by `fetchc add`"
    raise refused("FC0711", what, notes=("it is left alone",), help=help)


def _present(kept: Sequence[Kept], tracefs: Tracefs) -> list[Kept]:
    # Those that the kernel still has an event of: what is not listed may be there all the same.
    return [one for one in kept if tracefs.exists("events", one.group, one.event)]
