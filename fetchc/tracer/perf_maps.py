"""A perf map of all code of a .NET process, and symbol files that perf reads.

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
from struct import Struct

from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
from fetchc.debuginfo.dotnet.perf_map_methods import MappedMethods
from fetchc.debuginfo.dotnet.portable_executable import ASSEMBLY, bundle_of
from fetchc.debuginfo.perf_map_format import MapLine, number, parse_line, parse_lines, written_line
from fetchc.debuginfo.safe_open import open_regular, read_regular
from fetchc.diag.diagnostic import DebugInfoError, reject
from fetchc.driver.unknown_functions import unknown
from fetchc.record import Record
from fetchc.tracer.stacks import DELETED, read_maps
from fetchc.tracer.tracefs import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.debuginfo.dotnet.perf_map_methods import Mapped
    from fetchc.diag.diagnostic import TracerError
    from fetchc.tracer.events import Mapping

__all__ = [
    "MACHINES",
    "Collected",
    "MappedPlace",
    "Merged",
    "Process",
    "ProcessImage",
    "collected",
    "in_image",
    "merge",
    "own_lines",
    "symbol_file",
    "write",
]

# ------------------------------------------------------------------------------
# The precompiled images of .NET in a running process, and from its addresses to their bytes.
#
# The runtime maps ReadyToRun images as files, so that a mapping says which byte of the image an
# address is. They are read from the path, if the file there is the mapped one still.


class MappedPlace(Record):
    """A byte of a method's code: in which file, and how far after the method's begin.

    ``start`` is where that begins, relative to the image or in the process.
    """

    path: str
    method: Mapped
    start: int
    inside: int = 0

    @property
    def offset(self) -> int:
        """Where the byte is in the file."""
        return self.method.offset + self.inside

    @property
    def line(self) -> MapLine:
        """The line of a map that names the method."""
        return MapLine(self.start, self.method.size, self.method.shown)


def in_image(program: DotnetProgram, methods: MappedMethods, text: str) -> list[MappedPlace]:
    """What a line of crossgen's map, a number of one, or a method's name is in an image.

    Raises CompileError FC0202 or FC0206.
    """
    line, plain = parse_line(text), _bare_number(text)
    if line is not None or plain is not None:
        start, symbol = (plain or 0, "") if line is None else (line.start, line.symbol)
        found = [methods.begun(start, symbol)]
    else:
        begins = {function.address for function in program.functions_named(text)}
        found = [method for method in methods.methods if method.address in begins]
        if not found:
            raise unknown(program, text)
    return [MappedPlace(program.path, method, method.address) for method in found]


class ProcessImage:
    """A precompiled image and where its code is mapped."""

    __slots__ = ("_methods", "mappings", "path", "program")

    def __init__(self, path: str, program: DotnetProgram, mappings: list[Mapping]) -> None:
        self.path = path
        self.program = program
        self.mappings = mappings
        self._methods: MappedMethods | None = None

    @property
    def methods(self) -> MappedMethods:
        """Its methods by address."""
        if self._methods is None:
            self._methods = MappedMethods(self.program)
        return self._methods

    def address(self, offset: int) -> int | None:
        """Where a byte of the file is in the process; None where it is not mapped as code."""
        for one in self.mappings:
            if one.offset <= offset < one.offset + one.end - one.start:
                return one.start + offset - one.offset
        return None


class Process:
    """A process that runs here: its code by file.

    ``skipped`` are images that could not be read, with the reason. Raises TracerError FC0707 where
    there is no such process, FC0713 where it is in a container, FC0701 where it may not be looked
    at.
    """

    __slots__ = ("images", "mappings", "pid", "skipped")

    def __init__(self, pid: int) -> None:
        self.pid = pid
        try:
            self.mappings = read_maps(pid)
            for kind in ("pid", "mnt"):
                own, others = (os.readlink(f"/proc/{one}/ns/{kind}") for one in ("self", pid))
                if own != others:
                    raise _contained(pid)
        except (FileNotFoundError, ProcessLookupError):
            raise _ended(pid) from None
        except PermissionError:
            what = f"the memory maps of process {pid} are another user's"
            raise refused("FC0701", what, help="run fetchc as that user, or as root") from None
        self.skipped: list[tuple[str, str]] = []
        self.images = self._images()

    def find(self, text: str) -> list[MappedPlace]:
        """What a line of the process's map, an address or a method's name is.

        Raises CompileError FC0202, FC0206, or FC0906 for code that no file has.
        """
        line = parse_line(text)
        address = _bare_number(text) if line is None else line.start
        return self._named(text) if address is None else [self._at(address)]

    def _named(self, name: str) -> list[MappedPlace]:
        found = []
        for image in self.images:
            try:
                begins = {function.address for function in image.program.functions_named(name)}
            except DebugInfoError:
                continue  # it has the method, without code
            for method in image.methods.methods if begins else ():
                start = image.address(method.offset)
                if method.address in begins and start is not None:
                    found.append(MappedPlace(image.path, method, start))
        if not found:
            raise reject(
                "FC0202",
                f"no precompiled image of process {self.pid} has a method `{name}`",
                help="see the images: `grep r-x /proc/PID/maps`",
            )
        return found

    def _at(self, address: int) -> MappedPlace:
        mapping = next((one for one in self.mappings if one.start <= address < one.end), None)
        if mapping is None:
            raise reject("FC0206", f"process {self.pid} has no code at {address:#x}")
        offset = address - mapping.start + mapping.offset
        for image in self.images:
            if mapping in image.mappings and (method := image.methods.holding(offset)):
                inside = offset - method.offset
                return MappedPlace(image.path, method, address - inside, inside)
        if not mapping.path.startswith("/") or mapping.path.startswith("/memfd:"):
            raise reject(
                "FC0906",
                f"the code at {address:#x} was compiled at run time and is not in a file",
                notes=("a uprobe needs a file: the kernel refuses it here, or it never fires",),
                help="compile the method ahead of time, or probe one that it calls",
            )
        raise reject("FC0206", f"{address:#x} is {mapping.path}:{offset:#x}, in no method there")

    def _images(self) -> list[ProcessImage]:
        by_path: dict[str, list[Mapping]] = {}
        for one in self.mappings:
            if one.path.startswith("/"):
                by_path.setdefault(one.path, []).append(one)
        found = []
        for path, mappings in by_path.items():
            try:
                found += self._opened(path, mappings)
            except DebugInfoError as unread:
                self.skipped.append((path, unread.what))
        return found

    def _opened(self, path: str, mappings: list[Mapping]) -> list[ProcessImage]:
        try:
            handle, status = open_regular(path.removesuffix(DELETED))
            with open(handle, "rb") as file:
                replaced = status.st_ino != mappings[0].inode
                head = file.read(4)
        except (OSError, ValueError):
            replaced, head = True, b""
        if replaced:
            if path.removesuffix(DELETED).endswith((".dll", ".exe")):
                self.skipped.append((path, "the file is not the one that is mapped any more"))
            return []
        if head[:2] == b"MZ":
            program = DotnetProgram(path)
            return [ProcessImage(path, program, mappings)] if program.is_compiled else []
        return _bundled(path, mappings) if head == b"\x7fELF" else []


def _bare_number(text: str) -> int | None:
    # `Add` is a name: numbers begin with a digit.
    return number(text) if text[:1].isdecimal() else None


def _bundled(path: str, mappings: list[Mapping]) -> list[ProcessImage]:
    # Only a bundle has code beyond what its ELF headers tell.
    bundle = bundle_of(path) if len(mappings) > 1 else None
    found: list[ProcessImage] = []
    if bundle is None:
        return found
    for entry in bundle.entries.values():
        # A mapping begins with the page, which may be before the image.
        end = entry.offset + entry.size
        inside = [
            m for m in mappings if m.offset < end and entry.offset < m.offset + m.end - m.start
        ]
        if inside and entry.kind == ASSEMBLY and not entry.compressed:
            program = DotnetProgram(path, (), bundle, bundle.image(entry))
            if program.is_compiled:
                found.append(ProcessImage(path, program, inside))
    return found


def _contained(pid: int) -> Exception:
    return refused(
        "FC0713",
        f"process {pid} is in a container: it has another number there, and another /tmp",
        help=f"run fetchc in it: `nsenter -t {pid} -p -m`, with the number that it has there",
    )


# ------------------------------------------------------------------------------
# ELF files with a symbol table and nothing else: names for code of files that are no ELF files.
#
# perf looks for symbols below ``--symfs`` under the path of each mapped file, and reads ELF
# alone. Addresses are offsets in the file that is described, which is what perf asks by.

MACHINES = {"x86_64": 62, "aarch64": 183}  # e_machine
HEADER = Struct("<16sHHIQQQIHHHHHH")
SEGMENT = Struct("<IIQQQQQQ")
SECTION = Struct("<IIQQQQIIQQ")
SYMBOL = Struct("<IBBHQQ")
IDENT = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")  # 64 bits, little-endian
SHARED, LOAD, READ_EXECUTE = 3, 1, 5
NO_BITS, SYMBOLS, STRINGS, ALLOCATED_CODE = 8, 2, 3, 6
GLOBAL_FUNCTION = 0x12
NAMES = b"\0.text\0.symtab\0.strtab\0.shstrtab\0"


def symbol_file(architecture: str, symbols: Iterable[tuple[int, int, str]]) -> bytes:
    """A file with these symbols: offset, size and name of each. Little-endian, 64 bits."""
    table, names, end = bytearray(SYMBOL.size), bytearray(1), 0
    for offset, size, name in symbols:
        table += SYMBOL.pack(len(names), GLOBAL_FUNCTION, 0, 1, offset, size)
        names += name.encode("utf-8", "surrogateescape") + b"\0"
        end = max(end, offset + size)
    at_table = HEADER.size + SEGMENT.size
    at_names = at_table + len(table)
    at_own = at_names + len(names)
    at_sections = (at_own + len(NAMES) + 7) & -8
    machine = MACHINES[architecture]
    image = HEADER.pack(
        IDENT, SHARED, machine, 1, 0, HEADER.size, at_sections, 0, HEADER.size, SEGMENT.size, 1,
        SECTION.size, 5, 4,
    )  # fmt: skip
    image += SEGMENT.pack(LOAD, READ_EXECUTE, 0, 0, 0, end, end, 0x1000)
    image += bytes(table) + bytes(names) + NAMES
    sections = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (1, NO_BITS, ALLOCATED_CODE, 0, 0, end, 0, 0, 16, 0),
        (7, SYMBOLS, 0, 0, at_table, len(table), 3, 1, 8, SYMBOL.size),
        (15, STRINGS, 0, 0, at_names, len(names), 0, 0, 1, 0),
        (23, STRINGS, 0, 0, at_own, len(NAMES), 0, 0, 1, 0),
    ]
    return image.ljust(at_sections, b"\0") + b"".join(SECTION.pack(*one) for one in sections)


FOLDER = "/tmp"  # where runtimes write maps, and perf looks for them
DEBUG_FILES = "/usr/lib/debug"
PRECOMPILED = "[ReadyToRun]"
LARGEST = 1 << 28  # bytes of a map: two million lines; the process writes anything there
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
    return write(process.pid, collected(process, folder), folder)


class Collected(Record):
    """What there is to write for a process: the text of its map, and for each mapped file its
    symbols (ELF), None where the file has them itself.
    """

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
    return Collected(text, None if own is None else len(own), precompiled, symbols)


def write(pid: int, found: Collected, folder: str = FOLDER) -> Merged:
    """Write what was collected of a process. Raises TracerError FC0715."""
    path = os.path.join(folder, f"perf-{pid}.map")
    tree = os.path.join(folder, f"perf-{pid}.symbols")
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


def _ended(pid: int) -> TracerError:
    return refused("FC0707", f"there is no process {pid}")


def own_lines(process: Process, path: str) -> list[MapLine] | None:
    """What the process itself wrote so far; None where it writes no map.

    It is read from the file that the process has open: the one under that name may be a merged
    one, which the process does not write to, or left over from an earlier process. Raises
    TracerError FC0707 where the process has ended.
    """
    folder = f"/proc/{process.pid}/fd"
    try:
        handles = os.listdir(folder)
    except (FileNotFoundError, ProcessLookupError):
        raise _ended(process.pid) from None
    for each in handles:
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
    # Returns the names that are not created, for the kernel gives no file such a path.
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
                if not _created(top, name, content):
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


def _created(top: int, name: str, content: bytes | None) -> bool:
    """Create the file, or without ``content`` the link, ``name`` below the folder ``top``.

    False where that is no path of a file: the name of a file in memory (memfd_create(2)), or of a
    buffer, is what its owner likes, ``/../`` included. No link that is created is followed.
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
