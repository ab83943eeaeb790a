"""What a process has compiled while it runs: its perf map, and assemblies of .NET that it is of.

A program is named ``/proc/PID:NAME`` here: the code that process PID has compiled of assembly NAME;
``/proc/PID:`` has all code of a process that does not run .NET.
Paths and namespaces are the process's own, so that containers need nothing more.

Source: proc(5), /proc/pid/maps, /proc/pid/fd and /proc/pid/status (NSpid).
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress

from fetchc.debuginfo.dotnet.csharp_names import (
    in_source,
    map_line_parts,
    without_arguments,
    written,
)
from fetchc.debuginfo.perf_map_format import CUT, GrowingMap, parse_lines
from fetchc.debuginfo.safe_open import is_regular, open_regular, read_regular, resolved
from fetchc.debuginfo.separate.process_root import of_process
from fetchc.diag.diagnostic import DebugInfoError, reject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
    from fetchc.debuginfo.dotnet.portable_executable import Bundle, Pe
    from fetchc.debuginfo.environment import Environment
    from fetchc.debuginfo.perf_map_format import MapLine
    from fetchc.debuginfo.perf_map_program import PerfMapProgram
    from fetchc.program.protocol import Program

__all__ = [
    "RunningProcess",
    "anonymous",
    "is_dotnet",
    "map_path",
    "named_process",
    "open_in_process",
    "own_number",
]

LARGEST = 1 << 28  # bytes of a map: the process writes anything there
SHOWN = 6  # names in a message
CORE = "System.Private.CoreLib"
SETTINGS = ".runtimeconfig.json"
_DELETED = " (deleted)"
_DLL = ".dll"


# What of CoreCLR is mapped: its library or the core library; of a single-file program, which has
# both within it, the memory that code is written to. Source: dotnet/runtime,
# src/coreclr/minipal/Unix/doublemapping.cpp.
CORECLR = (b"libcoreclr.so", f"{CORE}.dll".encode(), b"/memfd:doublemapper")


def is_dotnet(pid: int) -> bool:
    """Whether a process runs CoreCLR, by its maps."""
    try:
        maps = read_regular(f"/proc/{pid}/maps", LARGEST)
    except OSError:
        return False
    return any(one in maps for one in CORECLR)


def anonymous(pid: int) -> list[tuple[int, int]]:
    """Begin and end of each part of a process's executable memory that is of no file on a disk."""
    try:
        text = os.fsdecode(read_regular(f"/proc/{pid}/maps", LARGEST))
    except OSError:
        return []
    return [
        place
        for place, path in _executable(text.split("\n"))
        if not path.startswith("/") or path.startswith("/memfd:")
    ]


def _executable(lines: Iterable[str]) -> Iterator[tuple[tuple[int, int], str]]:
    # Begin and end of executable memory, and its file, of lines of /proc/PID/maps.
    for line in lines:
        words = line.split(None, 5)
        if len(words) >= 5 and "x" in words[1]:
            start, _, end = words[0].partition("-")
            yield (int(start, 16), int(end, 16)), words[5] if len(words) > 5 else ""


def named_process(path: str) -> tuple[int, str] | None:
    """The process and the assembly of ``/proc/PID:NAME``; None for other paths.

    The name is empty for ``/proc/PID`` alone.
    """
    if not path.startswith("/proc/"):
        return None
    number, _, name = path[len("/proc/") :].partition(":")
    return (int(number), name) if number.isdecimal() and "/" not in name else None


class RunningProcess:
    """A process that compiles code. Raises DebugInfoError FC0901 where it may not be looked at."""

    __slots__ = ("_bundle", "_map", "folder", "is_dotnet", "lines", "pid")

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.folder = f"/proc/{pid}"
        self.lines: list[MapLine] = []
        self._map = GrowingMap()
        self.is_dotnet = is_dotnet(pid)
        self._bundle: Bundle | None = None
        self.read()

    def executable(self) -> list[tuple[int, int]]:
        """Begin and end of each part of its memory that it can execute."""
        return [place for place, _ in _executable(self._maps())]

    def code(self, address: int, size: int) -> bytes:
        """Machine code in its memory, none outside of executable memory."""
        end = next((end for start, end in self.executable() if start <= address < end), 0)
        if not end:
            return b""
        try:
            handle, _ = open_regular(f"{self.folder}/mem")
        except OSError:
            return b""
        try:
            return os.pread(handle, min(size, end - address), address)
        except OSError:
            return b""
        finally:
            os.close(handle)

    def _maps(self) -> list[str]:
        path = f"{self.folder}/maps"
        try:
            return os.fsdecode(read_regular(path, LARGEST)).split("\n")
        except FileNotFoundError:
            raise DebugInfoError("FC0901", self.folder, f"there is no process {self.pid}") from None
        except OSError as error:
            what = f"cannot be read: {error.strerror}"
            raise DebugInfoError("FC0901", path, what, help="run fetchc as root") from None

    def read(self) -> list[MapLine]:
        """The lines that the map has since the last call.

        None without a map, or of a process that has closed it, which it does before it ends.
        Raises DebugInfoError FC0904 for a line that is none, or a map that somebody has cut,
        FC0906 where a process of .NET has no map.
        """
        path = self.map_file_of(self.pid)
        if path is None and (self.lines or not self.is_dotnet):
            return []
        if path is None:
            raise DebugInfoError(
                "FC0906",
                self.folder,
                "the process does not say where its compiled code is",
                help="start it with `DOTNET_PerfMapEnabled=1`, before .NET 6 "
                "`COMPlus_PerfMapEnabled=1`",
            )
        try:
            handle, _ = open_regular(path)
            with open(handle, "rb"):
                written = _written(path)
                size = os.fstat(handle).st_size  # at that time or later: the process writes on
                if written > size:
                    what = f"the map was cut: {size} bytes of it are left"
                    raise DebugInfoError("FC0904", path, what, help=CUT)
                data, _ = self._map.read(handle, LARGEST)
        except OSError as error:
            raise DebugInfoError.of(path, error) from None
        new = parse_lines(path, data)
        self.lines += new
        return new

    @staticmethod
    def map_file_of(pid: int) -> str | None:
        """A path to the map that a process writes, or has written; None without one.

        By its file, not by its name: there may be one of another process under the name. Java
        writes a map at a time and closes it: there is its name, and that no earlier process wrote
        it.
        """
        folder = f"/proc/{pid}/fd"
        own = f"perf-{own_number(pid)}.map"
        try:
            for opened, _ in _opened(folder, f"/{own}"):
                return opened
        except FileNotFoundError:
            raise DebugInfoError("FC0901", folder, f"there is no process {pid}") from None
        except OSError as error:
            raise DebugInfoError(
                "FC0901", folder, f"cannot be read: {error.strerror}", help="run fetchc as root"
            ) from None
        return None if is_dotnet(pid) else _closed_map(pid, own)

    def bundle(self) -> Bundle | None:
        """The single-file program that the process runs; None of others."""
        if self._bundle is None and CORE not in self._mapped():
            from fetchc.debuginfo.dotnet.portable_executable import bundle_of

            program = f"{self.folder}/exe"
            try:
                inside = f"{self.folder}/root{os.readlink(program)}"
                self._bundle = bundle_of(of_process(inside, None)[0])
            except OSError as error:
                raise DebugInfoError.of(program, error) from None
        return self._bundle

    def assemblies(self) -> dict[str, str]:
        """The assemblies of the process: the path of each by its name, as mapped.

        Those of a single-file program have the program's path.
        """
        found, bundle = self._mapped(), self.bundle()
        inside = [] if bundle is None else bundle.names()
        return found | dict.fromkeys(inside, "" if bundle is None else bundle.path)

    def _image(self, name: str, path: str) -> tuple[str, Bundle | None, Pe | None]:
        # Where an assembly is to be read: a path seen from here, and what a bundle has of it.
        bundle = self.bundle()
        entry = None if bundle is None else bundle.assembly(name)
        if bundle is None or entry is None:
            return of_process(f"{self.folder}/root{path}", None)[0], None, None
        return bundle.path, bundle, bundle.image(entry)

    def _mapped(self) -> dict[str, str]:
        # The assemblies that are files of their own. One that has data in a section of its own
        # (`{ 1, 2, 3 }` of C#) is copied by .NET Core 3.1, not mapped, and stays open.
        lines = [line.split(None, 5) for line in self._maps()]
        paths = [words[5] for words in lines if len(words) == 6]
        with suppress(OSError):
            paths += sorted([path for _, path in _opened(f"{self.folder}/fd", _DLL)])
        found: dict[str, str] = {}
        for path in paths:
            if path.endswith(_DLL):
                found.setdefault(os.path.basename(path)[: -len(_DLL)], path)
        return found

    def assemblies_with(self, type_name: str) -> list[str]:
        """The names of the assemblies that define a type of that whole name."""
        from fetchc.debuginfo.dotnet.assemblies import Assembly

        found = []
        for name, path in self.assemblies().items():
            with suppress(DebugInfoError):  # others are none of .NET
                seen, _, image = self._image(name, path)
                if Assembly(seen, image).type_named(type_name):
                    found.append(name)
        return found

    def assembly_of(self, names: Iterable[str]) -> str:
        """The assembly that has compiled methods of these names; of none: the program's own.

        Raises CompileError FC0202 where there is none, or they are of several.
        """
        found: dict[str, str] = {}
        for name in names:
            holders = self._holders(name)
            if len(holders) > 1:
                listed = ", ".join(f"`{one}`" for one in sorted(holders)[:SHOWN])
                raise reject(
                    "FC0202",
                    f"`{name}` can mean methods of several assemblies: {listed}",
                    help=f"name the assembly: `-x {self.folder}:{sorted(holders)[0]}`",
                )
            if not holders:
                raise self._not_compiled(name)
            found[holders.pop()] = name
        if len(found) > 1:
            listed = ", ".join(f"`{one}`" for one in found)
            raise reject(
                "FC0202",
                f"the methods are of several assemblies: {listed}",
                help="trace those of one assembly at a time",
            )
        return next(iter(found), None) or self._own()

    def assembly_at(self, address: int) -> str:
        """The assembly whose code is at an address; of no line of the map: the program's own."""
        for line in reversed(self.lines):
            if line.start <= address < line.start + line.size:
                return map_line_parts(line.symbol)[0] or self._own()
        return self._own()

    def _holders(self, name: str) -> set[str]:
        # The assemblies whose lines have a method that the name can mean.
        asked = written(name)
        wanted = [*map(_plain, asked.types), _plain(asked.method)]
        last = wanted[-1]
        holders: set[str] = set()
        for line in self.lines:
            if last not in line.symbol:
                continue
            assembly, method = map_line_parts(line.symbol)
            if not assembly:
                continue
            has = written(method)
            source = in_source(has.types, has.method.partition("[")[0])
            parts = [*map(_plain, has.types), _plain(has.method)]
            of_source = [] if source is None else [_plain(one) for one in source.parts]
            if wanted in (parts[-len(wanted) :], of_source[-len(wanted) :]):
                holders.add(assembly)
        return holders

    def _own(self) -> str:
        # The assembly with the entry point: the one with the settings of the run time beside it, or
        # in a single-file program. Without any, the first that is not of the framework's folder.
        listed, bundle = self.assemblies(), self.bundle()
        if bundle is not None:
            settings = [name for name in bundle.entries if name.endswith(SETTINGS)]
            return next((name.removesuffix(SETTINGS) for name in settings), "")
        for name, path in listed.items():
            beside = f"{self.folder}/root{path.removesuffix('.dll')}{SETTINGS}"
            if is_regular(of_process(beside, None)[0]):
                return name
        framework = os.path.dirname(listed.get(CORE, ""))
        return next(
            (name for name, path in listed.items() if os.path.dirname(path) != framework),
            next(iter(listed), ""),
        )

    def _not_compiled(self, name: str) -> Exception:
        compiled = sum(1 for line in self.lines if "::" in line.symbol)
        return reject(
            "FC0202",
            f"process {self.pid} has not compiled a method `{name}`",
            notes=(
                "the runtime compiles a method when it is called first; precompiled code is "
                "traced with `-x IMAGE`",
            ),
            help=f"list the {compiled} that are compiled: `fetchc functions -p {self.pid}`",
        )

    def open(
        self, name: str, references: tuple[str, ...], environment: Environment
    ) -> DotnetProgram:
        """The code that is compiled of an assembly. Raises DebugInfoError FC0901 without one."""
        from fetchc.debuginfo.dotnet.assemblies import Process
        from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram

        path = self.assemblies().get(name)
        if path is None:
            what = f"the process has no assembly `{name}` mapped"
            raise DebugInfoError("FC0901", self.folder, what)
        seen, bundle, image = self._image(name, path)
        _, search = of_process(f"{self.folder}/root{path}", None)
        process = Process(self.folder, "" if search is None else search.root)
        return DotnetProgram(seen, references, bundle, image, process, environment, running=self)


def _written(link: str) -> int:
    # Where the process writes on in a map that it has open. Source: proc(5), /proc/pid/fdinfo.
    folder, mark, number = link.rpartition("/fd/")
    if not mark:
        return 0
    word = read_regular(f"{folder}/fdinfo/{number}", 1 << 12).split()[1]
    return int(word)


def map_path(pid: int, proc: str = "/proc") -> str:
    """The path of a process's map below its root, whether it is there or not."""
    own = f"perf-{own_number(pid, proc)}.map"
    found = ("", f"/tmp/{own}")
    with suppress(OSError):
        found = next(_opened(f"{proc}/{pid}/fd", f"/{own}"), found)
    return f"{proc}/{pid}/root{found[1]}"


def _opened(folder: str, ending: str) -> Iterator[tuple[str, str]]:
    # The open files whose paths end so: the link in the folder, and the path.
    for each in os.listdir(folder):
        link = os.path.join(folder, each)
        try:
            target = os.readlink(link)
        except OSError:
            continue  # closed meanwhile
        if target.removesuffix(_DELETED).endswith(ending):
            yield link, target


def _closed_map(pid: int, name: str) -> str | None:
    try:
        path = resolved(f"/proc/{pid}/root", f"/tmp/{name}")
        found, owner = os.lstat(path), os.stat(f"/proc/{pid}").st_uid
        words = read_regular(f"/proc/{pid}/stat", 1 << 12).rpartition(b") ")[2].split()
    except OSError:
        return None
    # proc(5), /proc/pid/stat: field 22 is when the process began, in ticks since the boot.
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(words[19]) / os.sysconf("SC_CLK_TCK")
    is_own = stat.S_ISREG(found.st_mode) and found.st_uid in (owner, 0)
    return path if is_own and found.st_mtime >= time.time() - age else None


def own_number(pid: int, proc: str = "/proc") -> int:
    """The number that a process has itself, which differs in a PID namespace, as in a container."""
    try:
        text = read_regular(f"{proc}/{pid}/status", 1 << 16)
    except OSError:
        return pid
    words = text.partition(b"\nNSpid:")[2].partition(b"\n")[0].split()
    return int(words[-1]) if words else pid


def _plain(name: str) -> str:
    return without_arguments(name).partition("`")[0].partition("[")[0]


def open_in_process(
    path: str,
    references: tuple[str, ...],
    environment: Environment,
    types: Program | None = None,
) -> DotnetProgram | PerfMapProgram | None:
    """The program that ``/proc/PID:NAME`` names; None for other paths.

    ``types`` has types for code that no metadata describes.
    """
    named = named_process(path)
    if named is None:
        return None
    pid, name = named
    process = RunningProcess(pid)
    if not process.is_dotnet:
        from fetchc.debuginfo.perf_map_program import PerfMapProgram

        return PerfMapProgram(process, types)
    return process.open(name or process.assembly_of(()), references, environment)
