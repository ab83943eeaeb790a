"""Persistent definitions: ``fetchc add`` installs them, ``list`` and ``remove`` find them again.

Whose a definition is: one that is in the state file, word for word as the kernel lists it, was
added; one of a session has the session's name as group; all others are somebody else's.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import tempfile
from contextlib import contextmanager, suppress

from fetchc.debuginfo.safe_open import check_owner, read_regular
from fetchc.diag.diagnostic import TracerError
from fetchc.record import Record
from fetchc.target.kernel_versions import kernel, running_version
from fetchc.tracer.install import (
    ProbedFiles,
    group_and_event,
    hits,
    install,
    listed,
    uninstall,
)
from fetchc.tracer.session import shielded
from fetchc.tracer.tracefs import alive, refused, refused_setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.tracer.tracefs import Tracefs

__all__ = [
    "AddedEvent",
    "ListedEvent",
    "State",
    "add",
    "added_events",
    "definitions",
    "remove",
    "state_file",
]

# ------------------------------------------------------------------------------
# The state file of ``fetchc add``: the kernel has definitions, not their sources.
#
# One JSON file for each user, under ``$XDG_STATE_HOME`` (XDG base directory specification). It is
# for one run of the system: definitions do not outlive a reboot, so the boot's number is in it.

_FORM = 1  # of the file
_LARGEST = 1 << 28  # bytes: a thousand definitions have a megabyte
_TEXTS = ("group", "event", "binary")


class AddedEvent(Record):
    """One event that was added: where, what for, and its definitions as the kernel lists them."""

    group: str
    event: str
    binary: str
    function: str | None
    expressions: tuple[str, ...]
    definitions: tuple[str, ...]


def state_file() -> str:
    """Where this user's file is; raises TracerError (FC0712) where there is no place for it."""
    root = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(root):  # the specification: others are to be ignored
        home = os.environ.get("HOME", "")
        # Empty, unset, of wherever this runs; or another user's, as `sudo -E` leaves it.
        if not os.path.isabs(home) or check_owner(home):
            home = _home()
        root = os.path.join(home, ".local/state")
    return os.path.join(root, "fetchc", "definitions.json")


def _home() -> str:
    # As the system lists it, where the environment names no place.
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        what = f"user {os.getuid()} has no home directory to record it in"
        raise refused("FC0712", what, help="set XDG_STATE_HOME to a directory") from None


class State:
    """The file at ``path``. Raises TracerError (FC0712) where it is damaged or cannot be read."""

    def __init__(self, path: str, boot: str | None = None) -> None:
        self.path = path
        self._boot = boot or _running_boot()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from changing the file meanwhile."""
        self._check_owner()
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise self._failed(error) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def load(self) -> list[AddedEvent]:
        """What was added since the system was started; nothing where there is no file."""
        self._check_owner()
        try:
            text = read_regular(self.path, _LARGEST)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._failed(error) from error
        try:
            return _parsed(json.loads(text.decode("utf-8")), self._boot)
        except (ValueError, RecursionError):
            raise self._damaged() from None

    def save(self, entries: Sequence[AddedEvent]) -> None:
        """Replace the file: by all of the new one or not at all."""
        document = {
            "form": _FORM,
            "boot": self._boot,
            "definitions": [_shown(one) for one in entries],
        }
        try:
            handle, temporary = tempfile.mkstemp(dir=os.path.dirname(self.path))  # 0600
        except OSError as error:
            raise self._failed(error) from error
        try:
            with open(handle, "w", encoding="utf-8") as file:
                json.dump(document, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
        except OSError as error:
            with suppress(OSError):
                os.unlink(temporary)
            raise self._failed(error) from error

    def _check_owner(self) -> None:
        foreign = check_owner(self.path)
        if foreign:
            raise self._failed(foreign)

    def _failed(self, error: OSError | str) -> TracerError:
        return refused(
            "FC0712",
            f"{self.path} cannot be used",
            notes=(str(error),),
            help="fix that, or set XDG_STATE_HOME to another directory",
        )

    def _damaged(self) -> TracerError:
        return refused(
            "FC0712",
            f"{self.path} is damaged",
            notes=("fetchc did not write it, so nothing in it is used",),
            help="delete it; what it listed stays in the kernel",
        )


def _running_boot() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def _shown(entries: AddedEvent) -> dict[str, object]:
    return {field: getattr(entries, field) for field in AddedEvent.__match_args__}


def _parsed(document: Any, boot: str) -> list[AddedEvent]:
    # Raises ValueError for anything that save does not write.
    if type(document) is not dict or document.keys() != {"form", "boot", "definitions"}:
        raise ValueError("not a document of ours")
    if document["form"] != _FORM or type(document["definitions"]) is not list:
        raise ValueError("not a form of ours")
    entries = [_entry(each) for each in document["definitions"]]
    return entries if document["boot"] == boot else []


def _entry(shown: Any) -> AddedEvent:
    if type(shown) is not dict or shown.keys() != set(AddedEvent.__match_args__):
        raise ValueError("not an entry of ours")
    texts = all(type(shown[field]) is str for field in _TEXTS)
    lists = all(_is_list(shown[field]) for field in ("expressions", "definitions"))
    if not texts or not lists or not (shown["function"] is None or type(shown["function"]) is str):
        raise ValueError("a field of another kind")
    return AddedEvent(
        shown["group"],
        shown["event"],
        shown["binary"],
        shown["function"],
        tuple(shown["expressions"]),
        tuple(shown["definitions"]),
    )


def _is_list(value: Any) -> bool:
    return type(value) is list and all(type(each) is str for each in value)


_READINGS = 8


class ListedEvent(Record):
    """An event with its definitions, as the kernel lists them.

    ``owner`` is ``added`` (then ``added`` says what for), ``session``, ``stale`` (a session's that
    is gone) or ``other``. ``enabled`` is the state in the top instance, or in the session's; None
    where there is no such event. ``hits`` counts those while it was enabled anywhere, None where
    it is not known.
    """

    group: str
    event: str
    owner: str
    definitions: tuple[str, ...]
    added: AddedEvent | None
    enabled: bool | None
    hits: int | None

    @property
    def name(self) -> str:
        """``GROUP/EVENT``."""
        return f"{self.group}/{self.event}"


def add(
    tracefs: Tracefs, state: State, wanted: AddedEvent, enable: bool, identity: str = ""
) -> ListedEvent:
    """Install ``wanted``, whose definitions are lines of one event, and write it down.

    ``identity`` is that of its binary when it was read; empty for the kernel. Raises TracerError:
    there is such an event (FC0706), refused (FC0705), not to be written down (FC0712), another
    file is there now (FC0719). Nothing is there then.
    """
    with shielded(), state.locked():
        entries = _present(state.load(), tracefs)
        name = (wanted.group, wanted.event)
        if tracefs.exists("events", *name):
            raise refused(
                "FC0706",
                f"an event `{wanted.group}/{wanted.event}` exists already",
                help="see `fetchc list`, or give another name with --event",
            )
        _install(tracefs, wanted, identity)
        try:
            lines = tuple(_by_event(tracefs, [wanted]).get(name, ()))
            entry = AddedEvent(*name, wanted.binary, wanted.function, wanted.expressions, lines)
            state.save([*entries, entry])
            if enable:
                _switch(tracefs, *name, on=True)
        except BaseException:
            uninstall(tracefs, [name])
            state.save(entries)
            raise
    return ListedEvent(*name, "added", lines, entry, enable, 0)


def _install(tracefs: Tracefs, wanted: AddedEvent, identity: str) -> None:
    files = ProbedFiles()
    try:
        if identity:
            files.open(wanted.binary, identity)
        install(tracefs, wanted.definitions)
        if kernel(running_version()).has("several_probes_in_event"):
            files.check(tracefs, wanted.definitions)
    finally:
        files.close()


def added_events(state: State) -> tuple[list[AddedEvent], tuple[Diagnostic, ...]]:
    """What the state file says; nothing, and why, where it cannot be used."""
    try:
        return state.load(), ()
    except TracerError as error:
        return [], error.diagnostics


def definitions(tracefs: Tracefs, entries: Sequence[AddedEvent]) -> list[ListedEvent]:
    """Every event of a probe, those of uprobes first; ``entries`` are those that were added."""
    lines = _by_event(tracefs, entries)
    ours = {(one.group, one.event): one for one in entries}
    counted = hits(tracefs)
    found = []
    for name, own in lines.items():
        entry = ours.get(name)
        if entry is not None and sorted(entry.definitions) != sorted(own):
            entry = None
        owner = "other" if entry is None else "added"
        living = alive(name[0])
        if entry is None and living is not None:
            owner = "session" if living else "stale"
        enabled = _enabled(tracefs, *name)
        found.append(ListedEvent(*name, owner, tuple(own), entry, enabled, counted.get(name)))
    return found


def _by_event(tracefs: Tracefs, wanted: Sequence[AddedEvent]) -> dict[tuple[str, str], list[str]]:
    # The lines of each event. The kernel's list may lack some (see `install`): read again while it
    # has fewer than are ``wanted`` of an event that is there.
    lines: dict[tuple[str, str], list[str]] = {}
    for _ in range(_READINGS):
        lines.clear()
        for line in listed(tracefs):
            lines.setdefault(group_and_event(line), []).append(line)
        if not any(_lacking(tracefs, one, lines) for one in wanted):
            break
    return lines


def _lacking(tracefs: Tracefs, one: AddedEvent, lines: Mapping[tuple[str, str], list[str]]) -> bool:
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


def remove(tracefs: Tracefs, state: State, names: Sequence[str] | None) -> list[ListedEvent]:
    """Remove what was added: the events ``names`` (GROUP/EVENT or EVENT), all of them for None.

    Raises TracerError: nothing of that name, several, or somebody else's (FC0711), in use
    (FC0710). Where one of the names is wrong, nothing is removed.
    """
    with shielded(), state.locked():
        entries = state.load()
        present = definitions(tracefs, entries)
        ours = [one for one in present if one.owner == "added"]
        chosen = ours if names is None else [_chosen(present, name) for name in names]
        for one in chosen:
            if one.enabled:
                _switch(tracefs, one.group, one.event, on=False)
        try:
            uninstall(tracefs, [(one.group, one.event) for one in chosen])
        finally:
            state.save(_present(entries, tracefs))
    return chosen


def _chosen(present: list[ListedEvent], name: str) -> ListedEvent:
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
    raise refused("FC0711", what, notes=("fetchc does not remove it",), help=help)


def _present(entries: Sequence[AddedEvent], tracefs: Tracefs) -> list[AddedEvent]:
    # Those that the kernel still has an event of: what is not listed may be there all the same.
    return [one for one in entries if tracefs.exists("events", one.group, one.event)]
