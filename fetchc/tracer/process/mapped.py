"""The precompiled images of .NET in a running process, and from its addresses to their bytes.

The runtime maps ReadyToRun images as files, so that a mapping says which byte of the image an
address is. They are read from the path, if the file there is the mapped one still.
"""

from __future__ import annotations

import os

from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
from fetchc.debuginfo.dotnet.perf_map_methods import MappedMethods
from fetchc.debuginfo.dotnet.portable_executable import ASSEMBLY, bundle_of
from fetchc.debuginfo.perf_map_format import MapLine, number, parse_line
from fetchc.debuginfo.safe_open import open_regular
from fetchc.diag.diagnostic import DebugInfoError, reject
from fetchc.driver.unknown_functions import unknown
from fetchc.record import Record
from fetchc.tracer.kernel.tracefs import refused
from fetchc.tracer.process.stacks import read_maps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.perf_map_methods import Mapped
    from fetchc.tracer.process.stacks import Mapping

__all__ = ["DELETED", "MappedPlace", "Process", "ProcessImage", "in_image"]

DELETED = " (deleted)"


class MappedPlace(Record):
    """A byte of a method's code: in which file, and how far behind the method's begin.

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
            raise refused("FC0707", f"there is no process {pid}") from None
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
                f"the code at {address:#x} is in memory, where the runtime compiled it to",
                notes=("a probe there can be set in no file, or never fires",),
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
    # Only a bundle has code behind what its ELF headers tell.
    bundle = bundle_of(path) if len(mappings) > 1 else None
    found: list[ProcessImage] = []
    if bundle is None:
        return found
    for entry in bundle.entries.values():
        # A mapping begins with the page, which may be in front of the image.
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
        help=f"run fetchc in there: `nsenter -t {pid} -p -m`, with the number that it has there",
    )
