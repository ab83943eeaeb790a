"""One perf map of all of a .NET process's code, and symbol files that perf reads.

The runtime lists what it compiled while running; precompiled methods are in no map. perf asks the
map for code without a file alone, and for a mapped file that file's symbols, of ELF. So both are
written: the whole map for readers that go by address, and symbols for ``perf --symfs``.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from contextlib import suppress

from fetchc.debuginfo.perf_map_format import MapLine, parse_lines, written_line
from fetchc.debuginfo.safe_open import read_regular
from fetchc.record import Record
from fetchc.tracer.kernel.tracefs import refused
from fetchc.tracer.process.mapped import DELETED
from fetchc.tracer.process.symbolfile import MACHINES, symbol_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.diag.diagnostic import TracerError
    from fetchc.tracer.process.mapped import Process

__all__ = ["Collected", "Merged", "collected", "merge", "own_lines", "write"]

FOLDER = "/tmp"  # where runtimes write maps, and perf looks for them
DEBUG_FILES = "/usr/lib/debug"
PRECOMPILED = "[ReadyToRun]"
LARGEST = 1 << 28  # bytes of a map: two million lines; the process writes it as it likes
SETTING = (
    "start it with `DOTNET_PerfMapEnabled=1`, before .NET 6 `COMPlus_PerfMapEnabled=1`, for names "
    "of what it compiles"
)


class Merged(Record):
    """What was written: the map and its lines by kind, the folder for ``--symfs``; ``left_out``
    are names of mappings that are no paths.
    """

    path: str
    compiled: int | None
    precompiled: int
    symbols: str
    left_out: tuple[str, ...]


def merge(process: Process, folder: str = FOLDER) -> Merged:
    """Write the map and the symbols of a process; what was there of an earlier time is replaced.

    ``compiled`` is None where the process writes no map. Raises TracerError FC0715.
    """
    return write(collected(process, folder), folder)


class Collected(Record):
    """What there is to write for a process: the text of its map, and for each mapped file its
    symbols (ELF), None where the file has them itself.
    """

    pid: int
    text: str
    compiled: int | None
    precompiled: int
    symbols: tuple[tuple[str, bytes | None], ...]


def collected(process: Process, folder: str = FOLDER) -> Collected:
    """What :func:`write` writes. Raises TracerError FC0715."""
    path = os.path.join(folder, f"perf-{process.pid}.map")
    own = own_lines(process, path)
    if own is None and not process.images:
        raise refused(
            "FC0715",
            f"process {process.pid} has no code of .NET, and writes no perf map",
            help=f"if it is one of .NET, {SETTING}",
        )
    lines = list(own or ())
    precompiled = 0
    for image in process.images:
        for method in image.methods.methods:
            address = image.address(method.offset)
            if address is not None:
                lines.append(MapLine(address, method.size, method.shown))
                precompiled += 1
    lines.sort(key=lambda line: line.start)
    text = "".join(map(written_line, lines))
    symbols = tuple(_symbols(process, own or []).items())
    return Collected(process.pid, text, None if own is None else len(own), precompiled, symbols)


def write(found: Collected, folder: str = FOLDER) -> Merged:
    """Write what was collected. Raises TracerError FC0715."""
    path = os.path.join(folder, f"perf-{found.pid}.map")
    tree = os.path.join(folder, f"perf-{found.pid}.symbols")
    try:
        _replace(path, found.text)
        left_out = _replace_tree(tree, dict(found.symbols))
    except OSError as error:
        raise refused("FC0715", f"{error.filename or path} cannot be written: {error}") from None
    return Merged(path, found.compiled, found.precompiled, tree, tuple(left_out))


def _symbols(process: Process, own: list[MapLine]) -> dict[str, bytes | None]:
    # For each mapped file that is no ELF file of its own its symbols, None for others.
    named: dict[str, list[tuple[int, int, str]]] = {}
    architecture = ""
    for image in process.images:
        architecture = image.program.architecture
        named.setdefault(image.path, []).extend(
            [(method.offset, method.size, method.shown) for method in image.methods.methods]
        )
    # Where memory is never writable and executable at once, compiled code is in a file in memory.
    for one in process.mappings:
        if one.path.startswith("/memfd:"):
            inside = [line for line in own if one.start <= line.start < one.end]
            shift = one.offset - one.start
            named.setdefault(one.path, []).extend(
                [(line.start + shift, line.size, line.symbol) for line in inside]
            )
    found: dict[str, bytes | None] = {}
    for one in process.mappings:
        if one.path in named and architecture in MACHINES:
            found[one.path] = symbol_file(architecture, named[one.path])
        elif one.path.startswith("/") and not one.path.endswith(DELETED):
            found[one.path] = None
    if os.path.isdir(DEBUG_FILES) and not any(one.startswith(DEBUG_FILES) for one in found):
        found[DEBUG_FILES] = None  # perf looks for these below --symfs as well
    return found


def own_lines(process: Process, path: str) -> list[MapLine] | None:
    """What the process itself wrote so far; None where it writes no map.

    It is read from the file that the process has open: the one under that name may be a merged
    one, which the process does not write to, or left over from an earlier process.
    """
    folder = f"/proc/{process.pid}/fd"
    for each in os.listdir(folder):
        opened = os.path.join(folder, each)
        try:
            if os.readlink(opened).removesuffix(DELETED) == path:
                return _lines(path, opened)
        except (FileNotFoundError, ProcessLookupError):
            continue  # closed meanwhile
    try:
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_uid not in (os.geteuid(), 0):
            raise _foreign(path)
        left = _lines(path, path)
    except FileNotFoundError:
        return None
    if any(not line.symbol.endswith(PRECOMPILED) for line in left):
        raise _foreign(path)
    return None


def _lines(path: str, opened: str) -> list[MapLine]:
    try:
        return parse_lines(path, read_regular(opened, LARGEST))
    except (FileNotFoundError, ProcessLookupError):
        raise
    except OSError as error:
        raise refused("FC0715", f"{path} cannot be read: {error.strerror}") from None


def _foreign(path: str) -> TracerError:
    return refused(
        "FC0715",
        f"{path} is not a map that this process writes",
        notes=("an earlier process of the same number, or another user, left it",),
        help="look at it, and remove it",
    )


def _replace(path: str, content: str) -> None:
    # At once, and without following a link: what is under the name is replaced, never written to.
    handle, partial = tempfile.mkstemp(prefix=os.path.basename(path), dir=os.path.dirname(path))
    try:
        with open(handle, "wb") as file:
            os.fchmod(handle, 0o644)
            file.write(content.encode("utf-8", "surrogateescape"))
        os.rename(partial, path)
    except BaseException:
        os.unlink(partial)
        raise


def _replace_tree(path: str, files: dict[str, bytes | None]) -> list[str]:
    # As --symfs wants it: a file for each mapped one, a link to itself where there is no other.
    # Returns the names that are not made, for the kernel gives no file such a path.
    try:
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise _foreign(path)
    except FileNotFoundError:
        pass
    partial = tempfile.mkdtemp(prefix=os.path.basename(path), dir=os.path.dirname(path))
    left_out = []
    try:
        top = os.open(partial, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for name, content in sorted(files.items()):
                if not _made(top, name, content):
                    left_out.append(name)
            os.fchmod(top, 0o755)
        finally:
            os.close(top)
        if os.path.lexists(path):
            shutil.rmtree(path)
        os.rename(partial, path)
    except BaseException:
        shutil.rmtree(partial)
        raise
    return left_out


def _made(top: int, name: str, content: bytes | None) -> bool:
    """Make the file, or without ``content`` the link, ``name`` below the folder ``top``.

    False where that is no path of a file: the name of a file in memory (memfd_create(2)), or of a
    buffer, is what its owner likes, ``/../`` included. Nothing of what is made is followed.
    """
    *folders, last = name.split("/")[1:]
    parts = (*folders, last)
    if not all(parts) or not {".", ".."}.isdisjoint(parts) or (folders and _in_memory(name)):
        return False
    at = os.dup(top)
    try:
        for folder in folders:
            with suppress(FileExistsError):
                os.mkdir(folder, 0o755, dir_fd=at)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            below = os.open(folder, flags, dir_fd=at)
            os.close(at)
            at = below
        if content is None:
            os.symlink(name, last, dir_fd=at)
            return True
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(last, flags, 0o644, dir_fd=at), "wb") as file:
            file.write(content)
        return True
    except OSError as error:
        # One path goes through another, which was a file; or no file has so long a name.
        if error.errno not in (errno.EEXIST, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG):
            raise
        return False
    finally:
        os.close(at)


def _in_memory(name: str) -> bool:
    # Of no file system: `/memfd:NAME`, `/dmabuf:NAME`.
    return name.startswith(("/memfd:", "/dmabuf:"))
