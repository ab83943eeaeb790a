"""Where the kernel's tracing files are, and what to do where they are not.

Only what is there already is used: mounting is the administrator's to do. Sources:
Documentation/trace/ftrace.rst (the file system), security/lockdown (what it locks), and trials on
Linux 6.18.
"""

from __future__ import annotations

import errno
import itertools
import os
import re

from fetchc.diag.diagnostic import Diagnostic, TracerError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "Tracefs",
    "alive",
    "find_tracefs",
    "refused",
    "refused_setting",
    "session_name",
    "started",
]

_USUAL = "/sys/kernel/tracing"
_MOUNTING = f"mount it: `mount -t tracefs nodev {_USUAL}`"


def refused(
    code: str, message: str, *, notes: tuple[str, ...] = (), help: str | None = None
) -> TracerError:
    """An exception with one diagnostic, for ``raise refused(...)``."""
    return TracerError((Diagnostic(code, message, notes=notes, help=help),))


def refused_setting(what: str, error: OSError) -> TracerError:
    """The kernel's refusal of ``what``, a file of tracefs and what was to be in it."""
    help = "ask for smaller buffers" if error.errno == errno.ENOMEM else None
    return refused("FC0709", f"the kernel refused {what}", notes=(str(error),), help=help)


class Tracefs:
    """A mounted tracefs. Paths are given in parts below ``root``.

    Every file is opened to append: opening ``uprobe_events`` any other way would delete what
    everybody has in it.
    """

    def __init__(self, root: str) -> None:
        self.root = root

    def path(self, *parts: str) -> str:
        """The path of a file or directory."""
        return "/".join((self.root, *parts))

    def read(self, *parts: str) -> str:
        """The text of a file, whatever bytes it has; raises OSError.

        FileNotFoundError also where the file's event goes while it is open (ENODEV): another tool
        has removed it.
        """
        path = self.path(*parts)
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                return file.read()
        except OSError as error:
            if error.errno != errno.ENODEV:
                raise
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None

    def write(self, text: str, *parts: str) -> None:
        """Append ``text``, in one write as far as the kernel takes it whole; raises OSError."""
        _, refusal = self.write_each([text], *parts)
        if refusal is not None:
            raise refusal

    def write_each(self, texts: Iterable[str], *parts: str) -> tuple[int, OSError | None]:
        """Append each text by a write of its own, up to the first that is refused.

        Returns how many were taken, and the refusal. Raises OSError where the file does not open.
        """
        file = os.open(self.path(*parts), os.O_WRONLY | os.O_APPEND)
        count = 0
        try:
            for text in texts:
                left = os.fsencode(text)
                while left:
                    taken = os.write(file, left)
                    if not taken:
                        raise OSError(errno.EIO, "nothing was written", self.path(*parts))
                    left = left[taken:]
                count += 1
        except OSError as refusal:
            return count, refusal
        finally:
            os.close(file)
        return count, None

    def exists(self, *parts: str) -> bool:
        """Whether a file or directory is there."""
        return os.path.exists(self.path(*parts))


def find_tracefs(mounts: str = "/proc/mounts") -> Tracefs:
    """The mounted tracefs, checked to take definitions of uprobes.

    ``mounts`` is the list of mounted file systems, as in proc(5). Raises TracerError: no
    permission (FC0701), not mounted (FC0702), no uprobes in this kernel (FC0703), locked down or
    read-only (FC0704).
    """
    lacking = ""  # a root without the file
    for root in _mounted(mounts):
        tracefs = Tracefs(root)
        try:
            os.close(os.open(tracefs.path("uprobe_events"), os.O_WRONLY | os.O_APPEND))
        except FileNotFoundError:
            lacking = lacking or (root if os.path.isdir(root) else "")
        except OSError as error:
            raise _closed(root, error) from error
        else:
            return tracefs
    if lacking:
        raise _no_uprobes(lacking)
    raise refused("FC0702", "tracefs is not mounted", help=_MOUNTING)


def _mounted(mounts: str) -> list[str]:
    # The roots of tracefs; one under debugfs is only mounted when somebody looks there.
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            listed = [line.split() for line in file]
    except OSError as error:
        what = f"where tracefs is mounted cannot be read: {mounts}: {error.strerror}"
        raise refused("FC0702", what, help="mount it: `mount -t proc proc /proc`") from None
    roots = [_unescaped(words[1]) for words in listed if words[2] == "tracefs"]
    roots.sort(key=lambda root: root != _USUAL)
    below = [_unescaped(words[1]) + "/tracing" for words in listed if words[2] == "debugfs"]
    return roots + [path for path in below if path not in roots]


def _unescaped(path: str) -> str:
    # proc(5): blanks, tabs, new lines and backslashes are octal.
    for code, character in (("040", " "), ("011", "\t"), ("012", "\n"), ("134", "\\")):
        path = path.replace(f"\\{code}", character)
    return path


def _no_uprobes(root: str) -> TracerError:
    note = f"there is no {root}/uprobe_events"
    help = "run a kernel that is built with CONFIG_UPROBE_EVENTS=y"
    return refused("FC0703", "this kernel has no uprobe events", notes=(note,), help=help)


def _closed(root: str, error: OSError) -> TracerError:
    if error.errno == errno.EPERM:
        note = f"{root}/uprobe_events cannot be opened even by root: {error.strerror}"
        help = "see /sys/kernel/security/lockdown; `lockdown=none` on the kernel's command line"
        return refused("FC0704", "the kernel is locked down", notes=(note,), help=help)
    if error.errno == errno.EROFS:
        help = f"mount it writable: `mount -o remount,rw {root}`"
        return refused("FC0704", f"tracefs at {root} is read-only", help=help)
    if error.errno == errno.EACCES:
        user = os.geteuid()
        notes = (f"{root} is root's; this runs as user {user}",)
        help = "run it as root, with `sudo`"
        if user == 0:
            notes = ("this root does not have the capability CAP_DAC_OVERRIDE, as in a container",)
            help = "start the container privileged, or run fetchc outside of it"
        return refused("FC0701", "tracing is not permitted", notes=notes, help=help)
    note = f"{root}/uprobe_events: {error.strerror}"
    return refused("FC0709", "tracefs cannot be used", notes=(note,))


# ------------------------------------------------------------------------------
# The names of sessions: they say which process created one, so that leftovers are recognized.
#
# ``fetchc_PID_START_N``: the process, when it started (ticks since boot, which a reused number
# does not share; proc_pid_stat(5), field 22), and the number of the session in it.

_NAME = re.compile(r"fetchc_(\d+)_(\d+)_(\d+)\Z")
_numbers = itertools.count()


def session_name() -> str:
    """A name for a new session of this process, good for an instance and a group."""
    pid = os.getpid()
    return f"fetchc_{pid}_{started(pid)}_{next(_numbers)}"


def started(pid: int) -> int | None:
    """When process ``pid`` started, in ticks since boot; None where there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is a name in brackets, with any characters in it.
    state, *fields = text[text.rindex(b")") + 2 :].split()
    return None if state in (b"Z", b"X") else int(fields[18])


def alive(name: str) -> bool | None:
    """Whether the process that created the session ``name`` still runs; None: not such a name."""
    matched = _NAME.match(name)
    if matched is None:
        return None
    return started(int(matched[1])) == int(matched[2])
