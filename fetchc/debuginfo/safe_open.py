"""Opens files that others name: in a container, beside a binary, in debug information.

A root that reads for others must not be led out of a container, wait for a FIFO, start a device, or
read without an end. So each such file is opened here, and nowhere else:

* a path below ``/proc/PID/root``, or below another given root, is resolved in there: an absolute
  link starts at that root and ``..`` does not lead out (as ``RESOLVE_IN_ROOT`` of openat2(2) does
  it; by a walk through the components, which no race with a rename leads astray);
* it is looked at before it is opened to be read (``O_PATH``): opening alone makes a driver act.
  Regular files only;
* opening waits for nobody (``O_NONBLOCK``: neither for a writer nor for a lease to end);
* what is read at once has a stated greatest size.

Folders are the other side: what fetchc writes to and believes must be the user's own.
"""

from __future__ import annotations

import errno
import os
from stat import S_ISDIR, S_ISLNK, S_ISREG, S_ISVTX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "check_owner", "exists", "file_identity", "is_regular", "listed", "open_regular",
    "own_folder", "read_regular", "real_path", "resolved", "root_of",
]  # fmt: skip

_LINKS = 40  # that one name may go through. Source: MAXSYMLINKS of Linux
_DEPTH = 256  # folders within each other; each stays open meanwhile
_LOOK = os.O_PATH | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def file_identity(status: os.stat_result) -> str:
    """What tells an opened file from all others, and from itself before it was changed.

    A build ID and a checksum can be written into another one, the time of its last change cannot.
    """
    where = f"{status.st_dev} {status.st_ino} {status.st_size}"
    return f"{where} {status.st_mtime_ns} {status.st_ctime_ns}"


def open_regular(path: str, root: str = "") -> tuple[int, os.stat_result]:
    """A descriptor to read the regular file at ``path``, and its fstat(2).

    ``path`` is as seen from here; where it is below ``root``, it is resolved in there. Raises
    OSError, also for what is no regular file, and ValueError for a NUL in the path.
    """
    looked = _looked_at(path, root)
    try:
        status = os.fstat(looked)
        _check_regular(status, path)
        try:
            handle = os.open(f"/proc/self/fd/{looked}", _READ)
        except FileNotFoundError:  # no /proc: by its name, if that still leads to the same file
            handle = os.open(path, _READ | os.O_NOFOLLOW)
            if not os.path.samestat(os.fstat(handle), status):
                os.close(handle)
                raise OSError(errno.ESTALE, "it was replaced meanwhile", path) from None
        return handle, status
    finally:
        os.close(looked)


def _check_regular(status: os.stat_result, path: str) -> None:
    if S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a directory", path)
    if not S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", path)


def read_regular(path: str, most: int, root: str = "") -> bytes:
    """The bytes of the regular file at ``path``; OSError where it has more than ``most``."""
    handle, status = open_regular(path, root)
    with os.fdopen(handle, "rb") as file:
        data = b"" if status.st_size > most else file.read(most + 1)
    if max(len(data), status.st_size) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", path)
    return data


def is_regular(path: str, root: str = "") -> bool:
    """Whether there is a regular file at ``path``; the file is not opened."""
    status = _status(path, root)
    return status is not None and S_ISREG(status.st_mode)


def exists(path: str, root: str = "") -> bool:
    """Whether there is anything at ``path``."""
    return _status(path, root) is not None


def _status(path: str, root: str) -> os.stat_result | None:
    try:
        looked = _looked_at(path, root)
    except (OSError, ValueError):
        return None
    try:
        return os.fstat(looked)
    finally:
        os.close(looked)


def listed(folder: str, most: int, ending: str = "", root: str = "") -> list[str]:
    """The names in a folder that end so, in order, ``most`` at most; OSError where it has none."""
    looked = _looked_at(folder, root)
    try:
        handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=looked)
    finally:
        os.close(looked)
    try:
        found = []
        with os.scandir(handle) as entries:
            for entry in entries:
                if entry.name.endswith(ending):
                    found.append(entry.name)
                    if len(found) == most:
                        break
        return sorted(found)
    finally:
        os.close(handle)


def root_of(path: str) -> str:
    """``/proc/PID/root`` of a path below it: a container's file; empty for all others."""
    parts = path.split("/", 4)
    if len(parts) < 5 or parts[:2] != ["", "proc"] or parts[3] != "root":
        return ""
    return "/".join(parts[:4]) if parts[2].isdecimal() or parts[2] == "self" else ""


def resolved(root: str, path: str) -> str:
    """The path outside of ``root`` of ``path`` in the file system whose root is ``root``.

    Without links as far as it is there. As given, below ``root``, where that cannot be found out.
    """
    if not root:
        return path
    try:
        looked, names = _walk(root, path)
    except OSError:
        return root + path
    if looked >= 0:
        os.close(looked)
    return "/".join([root, *names])


def real_path(path: str, root: str = "") -> str:
    """``path``, which is as seen from here, without links; within ``root`` where it is below it.

    As given where that cannot be found out.
    """
    root = root_of(path) or root
    if root and path.startswith(root + "/"):
        return resolved(root, path[len(root) :])
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return path


def _looked_at(path: str, root: str) -> int:
    root = root_of(path) or root
    if not root or not path.startswith(root + "/"):
        return os.open(path, _LOOK)
    looked, _ = _walk(root, path[len(root) :])
    if looked < 0:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return looked


def _walk(root: str, path: str) -> tuple[int, list[str]]:
    # A descriptor (O_PATH) of what is at ``path`` within ``root``, -1 where nothing is, and the
    # components that lead there without links.
    folders = [os.open(root, _LOOK | os.O_DIRECTORY)]
    names: list[str] = []
    links = 0
    rest = _components(path)
    try:
        while rest:
            part = rest.pop()
            if part == "..":
                if names:
                    os.close(folders.pop())
                    names.pop()
                continue
            try:
                found = os.open(part, _LOOK | os.O_NOFOLLOW, dir_fd=folders[-1])
            except (FileNotFoundError, NotADirectoryError):
                return -1, _lexically([*names, part, *reversed(rest)])
            folders.append(found)
            names.append(part)
            if len(names) > _DEPTH:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), root + path)
            if S_ISLNK(os.fstat(found).st_mode):
                target = os.readlink("", dir_fd=found)
                os.close(folders.pop())
                names.pop()
                links += 1
                if links > _LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), root + path)
                if target.startswith("/"):
                    while names:
                        os.close(folders.pop())
                        names.pop()
                rest += _components(target)
        return folders.pop(), names
    finally:
        for each in folders:
            os.close(each)


def _components(path: str) -> list[str]:
    # The last one first.
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _lexically(parts: Sequence[str]) -> list[str]:
    done: list[str] = []
    for part in parts:
        if part == "..":
            del done[-1:]
        else:
            done.append(part)
    return done


def own_folder(path: str, user: int | None = None) -> bool:
    """Whether the folder is there, the user's own, and others can neither write nor replace it.

    ``user`` is the effective one by default; a process without rights reads folders of another.
    """
    user = os.geteuid() if user is None else user
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return False
    own = status.st_uid == user and not status.st_mode & 0o22
    return S_ISDIR(status.st_mode) and own and not check_owner(path, user)


def check_owner(path: str, user: int | None = None) -> str:
    """Why what is at ``path``, or will be created there, is not safe to use for ``user``.

    Empty where it is: each folder and link on the way, as far as there is one, is the user's or
    root's, and nobody else can rename in it: others cannot write to it, or it is sticky.
    """
    user = os.geteuid() if user is None else user
    links = 0
    done = ""
    rest = _components(path)
    while rest:
        part = rest.pop()
        if part == "..":
            done = done.rpartition("/")[0]
            continue
        here = f"{done}/{part}"
        try:
            status = os.lstat(here)
        except FileNotFoundError:
            return ""
        except (OSError, ValueError) as refused:
            return f"{here}: {refused}"
        if status.st_uid not in (0, user):
            return f"{here} is user {status.st_uid}'s, and this runs as user {user}"
        if S_ISLNK(status.st_mode):
            links += 1
            if links > _LINKS:
                return f"{here}: {os.strerror(errno.ELOOP)}"
            target = os.readlink(here)
            done = "" if target.startswith("/") else done
            rest += _components(target)
            continue
        if S_ISDIR(status.st_mode) and status.st_mode & 0o2 and not status.st_mode & S_ISVTX:
            return f"{here} can be written to by everybody"
        done = here
    return ""
