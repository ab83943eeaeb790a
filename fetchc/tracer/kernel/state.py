"""What ``fetchc add`` installed, written down: the kernel keeps definitions, not their sources.

One JSON file for each user, under ``$XDG_STATE_HOME`` (XDG base directory specification). It is
for one run of the system: definitions do not outlive a reboot, so the boot's number is in it.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from contextlib import contextmanager, suppress

from fetchc.debuginfo.safe_open import check_owner, read_regular
from fetchc.record import Record
from fetchc.tracer.kernel.tracefs import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from fetchc.diag.diagnostic import TracerError

__all__ = ["Kept", "State", "state_file"]

_FORM = 1  # of the file
_LARGEST = 1 << 28  # bytes: a thousand definitions have a megabyte
_TEXTS = ("group", "event", "binary")


class Kept(Record):
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
        what = f"user {os.getuid()} has no home directory to write it down in"
        raise refused("FC0712", what, help="set XDG_STATE_HOME to a directory") from None


class State:
    """The file at ``path``. Raises TracerError (FC0712) where it is damaged or cannot be had."""

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

    def load(self) -> list[Kept]:
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

    def save(self, kept: Sequence[Kept]) -> None:
        """Replace the file: by all of the new one or not at all."""
        document = {"form": _FORM, "boot": self._boot, "definitions": [_shown(one) for one in kept]}
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
            help="see to it, or set XDG_STATE_HOME to another directory",
        )

    def _damaged(self) -> TracerError:
        return refused(
            "FC0712",
            f"{self.path} is damaged",
            notes=("it is not what fetchc wrote, so nothing in it is trusted",),
            help="delete it; what it listed stays in the kernel",
        )


def _running_boot() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def _shown(kept: Kept) -> dict[str, object]:
    return {field: getattr(kept, field) for field in Kept.__match_args__}


def _parsed(document: Any, boot: str) -> list[Kept]:
    # Raises ValueError for anything that save does not write.
    if type(document) is not dict or document.keys() != {"form", "boot", "definitions"}:
        raise ValueError("not a document of ours")
    if document["form"] != _FORM or type(document["definitions"]) is not list:
        raise ValueError("not a form of ours")
    kept = [_entry(each) for each in document["definitions"]]
    return kept if document["boot"] == boot else []


def _entry(shown: Any) -> Kept:
    if type(shown) is not dict or shown.keys() != set(Kept.__match_args__):
        raise ValueError("not an entry of ours")
    texts = all(type(shown[field]) is str for field in _TEXTS)
    lists = all(_is_list(shown[field]) for field in ("expressions", "definitions"))
    if not texts or not lists or not (shown["function"] is None or type(shown["function"]) is str):
        raise ValueError("a field of another kind")
    return Kept(
        shown["group"],
        shown["event"],
        shown["binary"],
        shown["function"],
        tuple(shown["expressions"]),
        tuple(shown["definitions"]),
    )


def _is_list(value: Any) -> bool:
    return type(value) is list and all(type(each) is str for each in value)
