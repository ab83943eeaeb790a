"""Symbolizes stacks and function pointers by the memory maps of the running process.

The maps are read while the process lives, at its first event; they are read again where they do
not explain the address of a hit (the process became another program) or of a frame (it loaded a
library). Of a process that ended before that, the probed file's place is still known: the hit
itself says where it was mapped.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right

from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address
from fetchc.record import Record
from fetchc.tracer.kallsyms import KernelNames, is_kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
    from fetchc.debuginfo.dotnet.perf_map_methods import MappedMethods
    from fetchc.debuginfo.elf.elf_file import Segment
    from fetchc.debuginfo.go.pclntab import FunctionTable
    from fetchc.tracer.events import Event

    Ask = Callable[..., Any]

__all__ = [
    "FileSymbols",
    "Frame",
    "ImageSymbols",
    "RemoteSymbols",
    "Stacks",
    "SymbolFiles",
    "open_symbols",
    "parse_maps",
    "read_maps",
    "remote_symbols",
]

# ------------------------------------------------------------------------------
# The functions of a file by address, for stacks and function pointers.


class FileSymbols:
    """The function symbols of one ELF file, by address; read when first asked for."""

    __slots__ = ("_asked_go", "_elf", "_ends", "_go", "_names", "_starts", "path")

    def __init__(self, elf: Elf) -> None:
        self._elf = elf
        self.path = elf.path
        self._starts: list[int] | None = None
        self._ends: list[int] = []
        self._names: list[str] = []
        self._asked_go = False
        self._go: FunctionTable | None = None

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The parts of the file that are mapped."""
        return self._elf.segments

    def address_at(self, offset: int) -> Address | None:
        """The address that the file states for its byte ``offset``; None where it is not mapped."""
        return _address_at(self._elf.segments, offset)

    def find(self, address: int) -> tuple[str, int] | None:
        """The function that holds ``address``, and how far into it that is."""
        if self._starts is None:
            self._load()
        assert self._starts is not None
        at = bisect_right(self._starts, address) - 1
        if at < 0 or address >= self._ends[at]:
            return self._of_go(address)
        return self._names[at], address - self._starts[at]

    def _of_go(self, address: int) -> tuple[str, int] | None:
        # Go's run time names the functions of a program without symbols, too.
        from fetchc.debuginfo.dwarf.languages import linked_by_go

        if not linked_by_go(self._elf):
            return None
        from fetchc.debuginfo.elf.headers import architecture_of
        from fetchc.debuginfo.go.moduledata import Memory
        from fetchc.debuginfo.go.pclntab import function_table

        try:
            if not self._asked_go:
                self._asked_go = True
                self._go = function_table(Memory(self._elf, architecture_of(self._elf)))
            row = None if self._go is None else self._go.at(address)
        except DebugInfoError:
            return None  # a damaged table: addresses are shown
        return None if row is None else (row.name, address - row.address)

    def _load(self) -> None:
        # Of several names of an address the global one says most, then the shortest: it is
        # the one without the marks of versions and aliases.
        found: dict[int, tuple[tuple[bool, int, str], int]] = {}
        try:
            function_symbols = list(self._elf.function_symbols())
        except DebugInfoError:
            function_symbols = []  # damaged, or in a file of another build: addresses are shown
        for symbol in function_symbols:
            rank = (symbol.binding == 0, len(symbol.name), symbol.name)
            best = found.get(symbol.address)
            if best is None or rank < best[0]:
                found[symbol.address] = (rank, int(symbol.size))
        self._starts = sorted(found)
        following = [*self._starts[1:], 1 << 64]  # one too many where there is no symbol
        for start, after in zip(self._starts, following, strict=False):
            (_, _, name), size = found[start]
            # Assembly often states no size: it reaches to the next function then.
            self._ends.append(start + size if size else after)
            self._names.append(name)


class ImageSymbols:
    """The same of a precompiled image of .NET; offsets in the file take the place of addresses."""

    __slots__ = ("_methods", "_program", "path")

    def __init__(self, program: DotnetProgram) -> None:
        self._program = program
        self._methods: MappedMethods | None = None
        self.path = program.path

    @property
    def segments(self) -> tuple[Segment, ...]:
        """None: it is the runtime that maps the file."""
        return ()

    def address_at(self, offset: int) -> Address | None:
        """The offset itself."""
        return Address(offset)

    def find(self, address: int) -> tuple[str, int] | None:
        """The method that holds a byte of the file, and how far into it that is."""
        if self._methods is None:
            from fetchc.debuginfo.dotnet.perf_map_methods import MappedMethods

            self._methods = MappedMethods(self._program)
        found = self._methods.holding(address)
        return None if found is None else (found.symbol, address - found.offset)


class RemoteSymbols:
    """The same of a file that another process reads: :class:`SymbolFiles`, asked by ``ask``."""

    __slots__ = ("_ask", "_is_image", "_number", "path", "segments")

    def __init__(
        self,
        ask: Ask,
        path: str,
        number: int,
        is_image: bool,
        segments: tuple[Segment, ...],
    ) -> None:
        self._ask = ask
        self._number = number
        self._is_image = is_image
        self.path = path
        self.segments = segments

    def address_at(self, offset: int) -> Address | None:
        """As :meth:`FileSymbols.address_at` and :meth:`ImageSymbols.address_at`."""
        return Address(offset) if self._is_image else _address_at(self.segments, offset)

    def find(self, address: int) -> tuple[str, int] | None:
        """The function that holds ``address``, and how far into it that is."""
        found: tuple[str, int] | None = self._ask("function", self._number, address)
        return found


class SymbolFiles:
    """What a process that reads files answers to :func:`remote_symbols`: files by number."""

    __slots__ = ("_files",)

    def __init__(self) -> None:
        self._files: list[FileSymbols | ImageSymbols] = []

    def opened(self, path: str) -> tuple[int, bool, tuple[Segment, ...]] | None:
        """Number, whether it is an image of .NET, and segments; None as :func:`open_symbols`."""
        symbols = open_symbols(path)
        if symbols is None:
            return None
        self._files.append(symbols)
        return len(self._files) - 1, isinstance(symbols, ImageSymbols), symbols.segments

    def function_at(self, number: int, address: int) -> tuple[str, int] | None:
        """The function of that file that holds ``address``, and how far into it that is."""
        return self._files[number].find(address)


def remote_symbols(ask: Ask, path: str) -> RemoteSymbols | None:
    """:func:`open_symbols` in the process that ``ask`` asks."""
    opened = ask("symbols", path)
    return None if opened is None else RemoteSymbols(ask, path, *opened)


def _address_at(segments: tuple[Segment, ...], offset: int) -> Address | None:
    for segment in segments:
        if segment.offset <= offset < segment.offset + segment.file_size:
            return Address(offset - segment.offset + segment.address)
    return None


def open_symbols(path: str) -> FileSymbols | ImageSymbols | None:
    """The symbols of the file at ``path``; None where it cannot be read, or has none."""
    try:
        return FileSymbols(Elf(path))
    except DebugInfoError as refused:
        if refused.reason != "not an ELF file":
            return None
    from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram

    try:
        image = DotnetProgram(path)
        return ImageSymbols(image) if image.is_compiled else None
    except DebugInfoError:
        return None


_MOST_FRAMES = 1 << 16  # frames remembered, of all processes
_PROCESSES = 1024
_FRESH = 1.0  # seconds that the maps of a process are believed without a hit that confirms them
_RENEWALS = 16  # of a process's maps, for addresses that they do not have
_EXECUTABLE = 1  # PF_X
_UPROBES = "[uprobes]"  # where the kernel lets a function return to that has a return probe


class Mapping(Record):
    """A part of a process's memory: its range, the file's byte at its start, the file."""

    start: int
    end: int
    offset: int
    path: str
    inode: int


class Frame(Record):
    """One address of a stack; ``function`` is None where no symbol holds it."""

    address: int
    function: str | None
    offset: int
    file: str | None

    def __str__(self) -> str:
        """``handle+0x12 (server)``, or ``[unknown] 0x7f31c0 (libx.so)``."""
        where = "" if self.file is None else f" ({os.path.basename(self.file)})"
        if self.function is None:
            return f"[unknown] {self.address:#x}{where}"
        return f"{self.function}+{self.offset:#x}{where}"


class Stacks:
    """Frames for the stacks of events. ``symbols`` opens the symbols of the file at a path."""

    def __init__(
        self, proc: str = "/proc", symbols: Callable[[str], Symbols | None] = open_symbols
    ) -> None:
        self._proc = proc
        self._open = symbols
        self._kernel = KernelNames(f"{proc}/kallsyms")
        self._maps: dict[int, _Maps] = {}
        self._files: dict[tuple[str, int], Symbols | None] = {}
        self._frames: dict[tuple[int, int], Frame] = {}
        self._paths: dict[str, str] = {}

    def frames(self, event: Event, addresses: Iterable[int]) -> list[Frame]:
        """What the addresses are in the process of ``event``, which has just hit its probe."""
        maps = self._maps_of(event)
        frames = []
        for address in addresses:
            if is_kernel(address):
                frames.append(self._of_kernel(address))
                continue
            frame = self._frames.get((event.pid, address))
            if frame is None:
                frame = self._frame(maps, event.pid, address)
            frames.append(frame)
        return frames

    def learn(self, pid: int) -> None:
        """Read the maps of a process now."""
        self._keep(pid, _Maps(self._read(pid)))

    def name(self, thread: int, address: int) -> str | None:
        """The function at an address of a thread's program; with the distance, where inside.

        For values, which are decoded before their event: the maps may have changed, so
        those of a process that lives are read again after a while.
        """
        if is_kernel(address):
            frame = self._of_kernel(address)
        else:
            maps = self._believed(thread)
            frame = self._frames.get((thread, address)) or self._frame(maps, thread, address)
        if frame.function is None:
            return None
        return f"{frame.function}+{frame.offset:#x}" if frame.offset else frame.function

    def _of_kernel(self, address: int) -> Frame:
        name, offset = self._kernel.find(address) or (None, 0)
        return Frame(address, name, offset, "kernel")

    def _believed(self, process: int) -> _Maps:
        # What nothing but the time since then shows to be still so.
        maps = self._maps.get(process)
        if maps is None or time.monotonic() - maps.read_at > _FRESH:
            fresh = self._read(process)
            if maps is None or fresh:
                maps = _Maps(fresh)
                self._keep(process, maps)
        return maps

    def _maps_of(self, event: Event) -> _Maps:
        if event.plan.of_kernel:
            return self._believed(event.pid)
        maps = self._maps.get(event.pid)
        if maps is None or not maps.explains(event, self._real(event.plan.path)):
            maps = _Maps(self._read(event.pid))
            if not maps.explains(event, self._real(event.plan.path)):
                maps = _Maps(self._by_hit(event))
            self._keep(event.pid, maps)
        return maps

    def _keep(self, pid: int, maps: _Maps) -> None:
        self._forget(pid)
        if len(self._maps) >= _PROCESSES:
            self._forget(next(iter(self._maps)))
        self._maps[pid] = maps

    def _real(self, path: str) -> str:
        if path not in self._paths:
            self._paths[path] = os.path.basename(os.path.realpath(path))
        return self._paths[path]

    def _forget(self, pid: int) -> None:
        if self._maps.pop(pid, None) is not None:
            self._frames = {key: frame for key, frame in self._frames.items() if key[0] != pid}

    def _read(self, pid: int) -> list[Mapping]:
        try:
            return read_maps(pid, self._proc)
        except OSError:  # it has ended
            return []

    def _by_hit(self, event: Event) -> list[Mapping]:
        symbols = self._symbols(event.plan.path, 0)
        if symbols is None:
            return []
        shift = event.address - event.plan.address
        return [
            Mapping(
                segment.address + shift,
                segment.address + shift + segment.memory_size,
                segment.offset,
                event.plan.path,
                0,
            )
            for segment in symbols.segments
            if segment.flags & _EXECUTABLE
        ]

    def _frame(self, maps: _Maps, pid: int, address: int) -> Frame:
        mapping = maps.find(address)
        if mapping is None and maps.renewals < _RENEWALS:
            # A library that was loaded since. Not without end: what follows a broken chain of
            # frames is no code at all.
            fresh = self._read(pid)
            if fresh:
                maps.renew(fresh)
                mapping = maps.find(address)
        frame = self._in_mapping(mapping, pid, address)
        if len(self._frames) >= _MOST_FRAMES:
            self._frames.clear()
        self._frames[pid, address] = frame
        return frame

    def _in_mapping(self, mapping: Mapping | None, pid: int, address: int) -> Frame:
        if mapping is None:
            return Frame(address, None, 0, None)
        if mapping.path == _UPROBES:
            return Frame(address, "[return probe]", address - mapping.start, None)
        if not mapping.path.startswith("/"):
            return Frame(address, None, 0, mapping.path or None)
        symbols = self._symbols(mapping.path, mapping.inode, pid)
        found = None
        if symbols is not None:
            stated = symbols.address_at(address - mapping.start + mapping.offset)
            found = None if stated is None else symbols.find(stated)
        if found is None:
            return Frame(address, None, 0, mapping.path)
        return Frame(address, found[0], found[1], mapping.path)

    def _symbols(self, path: str, inode: int, pid: int | None = None) -> Symbols | None:
        key = (path, inode)
        if key not in self._files:
            plain = path.removesuffix(" (deleted)")
            # In a container the path is one of its own root.
            seen = None if pid is None else self._open(f"{self._proc}/{pid}/root{plain}")
            self._files[key] = seen or (self._open(plain) if _is(plain, inode) else None)
        return self._files[key]


class _Maps:
    """The mappings of a process, in order."""

    __slots__ = ("_mappings", "_starts", "read_at", "renewals")

    def __init__(self, mappings: list[Mapping]) -> None:
        self._mappings = mappings
        self._starts = [mapping.start for mapping in mappings]
        self.read_at = time.monotonic()
        self.renewals = 0

    def renew(self, mappings: list[Mapping]) -> None:
        self._mappings = mappings
        self._starts = [mapping.start for mapping in mappings]
        self.renewals += 1

    def find(self, address: int) -> Mapping | None:
        at = bisect_right(self._starts, address) - 1
        if at < 0 or address >= self._mappings[at].end:
            return None
        return self._mappings[at]

    def explains(self, event: Event, name: str) -> bool:
        """Whether the probed file, of that name, is mapped where the hit was."""
        mapping = self.find(event.address)
        if mapping is None:
            return False
        path = mapping.path.removesuffix(" (deleted)")
        return mapping.inode == 0 or os.path.basename(path) == name


def _is(path: str, inode: int) -> bool:
    # Whether the file out here is the mapped one, where that can be seen: a container has others.
    try:
        return not inode or os.stat(path).st_ino == inode
    except OSError:
        return False


def read_maps(pid: int, proc: str = "/proc") -> list[Mapping]:
    """What process ``pid`` has mapped now; OSError where it has ended, or is another user's."""
    with open(f"{proc}/{pid}/maps", "rb") as file:
        return parse_maps(file.read().decode("utf-8", "surrogateescape"))


def parse_maps(text: str) -> list[Mapping]:
    """The lines of ``/proc/PID/maps`` that can hold code (proc(5))."""
    mappings = []
    for line in text.split("\n"):
        words = line.split(None, 5)
        if len(words) < 5 or "x" not in words[1]:
            continue
        start, _, end = words[0].partition("-")
        mappings.append(
            Mapping(
                int(start, 16),
                int(end, 16),
                int(words[2], 16),
                words[5] if len(words) > 5 else "",
                int(words[4]),
            )
        )
    return mappings


if TYPE_CHECKING:
    Symbols = FileSymbols | ImageSymbols | RemoteSymbols
