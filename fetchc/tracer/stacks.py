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
from collections import deque

from fetchc.diag.diagnostic import DebugInfoError
from fetchc.record import Record
from fetchc.tracer.events import WRITE, Mapping
from fetchc.tracer.kallsyms import KernelNames, is_kernel
from fetchc.tracer.symbol_files import KEEPS_FRAME_POINTER, open_symbols

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fetchc.debuginfo.dwarf.call_frames import Row
    from fetchc.quantities import Address
    from fetchc.target.machines import Architecture
    from fetchc.tracer.events import Event, MappingChange
    from fetchc.tracer.perf_ring import SampledMachine
    from fetchc.tracer.symbol_files import Symbols
    from fetchc.tracer.unwind import Rule, StackCopy

__all__ = ["DELETED", "Frame", "Stacks", "parse_maps", "read_maps"]

# Mappings whose code was made at run time: of no file, or of one that only has a descriptor.
_MADE = ("[anon", "/memfd:", "/dev/zero")
_MOST_FRAMES = 1 << 16  # frames remembered, of all processes
_PROCESSES = 1024
_FRESH = 1.0  # seconds that the maps of a process are believed without a hit that confirms them
_RENEWALS = 16  # of a process's maps, for addresses that they do not have
_EXECUTABLE = 1  # PF_X
NO_TABLES = "no unwind information"
_RETURNS = "a return probe has replaced the return address"
_RULES = 1 << 16  # that are remembered
# Where the kernel lets a function return to that has a return probe, and after that, in slots of
# so many bytes, runs instructions that have a probe. Source: arch/x86/include/asm/uprobes.h,
# UPROBE_XOL_SLOT_BYTES; kernel/events/uprobes.c, __create_xol_area.
_UPROBES, _UPROBE_SLOT = "[uprobes]", 128


class Frame(Record):
    """One address of a stack; ``function`` is None where no symbol holds it.

    ``line`` is that of the source, ``file.c:17``, where it was asked for. An ``inlined`` function
    has no frame of its own: it is in that of the next. ``not_unwound`` says why the caller is not
    known, where it is not and there should be one.
    """

    address: int
    function: str | None
    offset: int
    file: str | None
    line: str | None = None
    inlined: bool = False
    not_unwound: str | None = None

    def __str__(self) -> str:
        """``handle+0x12 (server)``, or ``[unknown] 0x7f31c0 (libx.so)``."""
        where = "" if self.file is None else f" ({os.path.basename(self.file)})"
        where += "" if self.line is None else f" at {self.line}"
        if self.function is None:
            return f"[unknown] {self.address:#x}{where}"
        if self.inlined:
            return f"{self.function} [inlined]{where}"
        return f"{self.function}+{self.offset:#x}{where}"


class Stacks:
    """Frames for the stacks of events. ``symbols`` opens the symbols of the file at a path.

    ``frame_pointers``: code without tables is taken to keep the frame pointer, whatever file it is
    of.
    """

    def __init__(
        self,
        proc: str = "/proc",
        symbols: Callable[[str], Symbols | None] = open_symbols,
        frame_pointers: bool = False,
    ) -> None:
        self._proc = proc
        self._open = symbols
        self._without_tables = KEEPS_FRAME_POINTER if frame_pointers else NO_TABLES
        self._kernel = KernelNames(f"{proc}/kallsyms")
        self._maps: dict[int, _Maps] = {}
        self._files: dict[tuple[str, int], Symbols | None] = {}
        self._perf_maps: dict[int, Symbols] = {}
        self._frames: dict[tuple[int, int], Frame] = {}
        self._inlined: dict[tuple[int, int], tuple[Frame, ...]] = {}
        self._rules: dict[tuple[str, int, int], Rule | str] = {}
        self._named: set[int] = set()  # processes that frames are remembered of
        self._paths: dict[str, str] = {}
        self._machines: dict[int, SampledMachine] | None = None
        self.changes: deque[MappingChange] = deque()
        """Of the mappings of processes, in the order of time; taken when a later hit comes."""

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

    def unwound(self, event: Event, copy: StackCopy, with_lines: bool = False) -> list[Frame]:
        """The frames of the copy of the stack that came with ``event``, by the tables of its files.

        The last one says why there is none after it, unless the thread begins with it.
        ``with_lines``: with lines of the source, and the functions that were inlined.
        """
        from fetchc.tracer.unwind import unwound

        if self._machines is None:
            from fetchc.tracer.perf_ring import sampled_machines

            self._machines = sampled_machines()
        self.catch_up(copy.time)
        sampled = self._machines[copy.abi]
        machine, pid = sampled.machine, event.pid
        maps = self._maps_of(event)
        place = copy.registers[sampled.program_counter]
        # A return probe is hit after the call that has returned.
        is_call = event.plan.kind == "return" and not event.plan.of_kernel
        # Before its first instruction, and at its return, a function has no frame of its own.
        at_entry = event.plan.kind in ("entry", "return-site") and not event.plan.of_kernel

        def rule_at(address: int, called: bool) -> Rule | str:
            if at_entry and address == place:
                return self._rule(maps, pid, address, machine, True)
            key = -address if called else address
            rule = maps.rules.get(key)
            if rule is None:
                if called and self._is_trampoline(maps, pid, address):
                    rule = _RETURNS
                else:
                    rule = self._rule(maps, pid, address - called, machine, False)
                if len(maps.rules) >= _RULES:
                    maps.rules.clear()
                maps.rules[key] = rule
            return rule

        found, why = unwound(copy, rule_at, machine.stack_pointer, place, is_call)
        frames: list[Frame] = []
        behind = event.plan.kind == WRITE  # the processor stops after the instruction
        for number, (address, is_return) in enumerate(found):
            called = is_return or (behind and not number)
            frame = self._frame_of(maps, pid, address, called)
            if with_lines:
                frames += self._with_lines(maps, pid, frame, called)
            else:
                frames.append(frame)
        if why is not None:
            last = frames[-1]
            if last.file is not None and why.startswith(NO_TABLES):
                why = f"{NO_TABLES} in {os.path.basename(last.file)}"
            frames[-1] = last.replaced(not_unwound=why)
        return frames

    def before(self, event: Event, address: int) -> Frame:
        """The function, and the line of its source, of the instruction before ``address``.

        A function that was inlined there is the one. An instruction with a uprobe runs in a slot of
        the kernel's, ``[uprobe]``.
        """
        maps = self._maps_of(event)
        if is_kernel(address):
            return self._of_kernel(address)
        if self._is_trampoline(maps, event.pid, address):
            return Frame(address, "[uprobe]", 0, None)
        return self._with_lines(
            maps, event.pid, self._frame_of(maps, event.pid, address, True), True
        )[0]

    def catch_up(self, time: int | None) -> None:
        """Take the changes of mappings up to a time of the trace; None: all that there are."""
        while self.changes and (time is None or self.changes[0].time <= time):
            self._apply(self.changes.popleft())

    def _apply(self, change: MappingChange) -> None:
        pid, mapping = change.process, change.mapping
        if mapping is not None:
            maps = self._maps.get(pid)
            if maps is not None:  # those of other processes are read when they hit a probe
                maps.insert(mapping)
                self._forget_frames(pid)
        elif change.parent is None:
            self._keep(pid, _Maps([]))
        elif change.parent in self._maps:
            self._keep(pid, self._maps[change.parent].copy())
        else:
            self._forget(pid)  # of an earlier process of that number

    def _rule(
        self, maps: _Maps, pid: int, address: int, machine: Architecture, at_entry: bool
    ) -> Rule | str:
        mapping = self._mapping(maps, pid, address)
        if mapping is None:
            return "no code is mapped there"
        if _is_made(mapping):
            symbols = None if at_entry else self._perf_map(pid)
            row = KEEPS_FRAME_POINTER if symbols is None else symbols.unwind_row(address)
            return _arranged(row, machine, at_entry)
        if not mapping.path.startswith("/"):
            return NO_TABLES
        placed = self._in_file(mapping, pid, address)
        if placed is None:
            return "the file cannot be read"
        symbols, stated = placed
        key = (mapping.path, mapping.inode, -1 - stated if at_entry else stated)
        rule = self._rules.get(key)
        if rule is None:
            try:
                row = symbols.unwind_row(stated)
            except DebugInfoError as refused:  # too costly: the trace goes on
                row = f"its unwind information cannot be read: {refused.reason}"
            row = self._without_tables if row == NO_TABLES else row
            rule = _arranged(row, machine, at_entry)
            if len(self._rules) >= _RULES:
                self._rules.clear()
            self._rules[key] = rule
        return rule

    def _is_trampoline(self, maps: _Maps, pid: int, address: int) -> bool:
        mapping = self._mapping(maps, pid, address)
        return mapping is not None and mapping.path == _UPROBES

    def _frame_of(self, maps: _Maps, pid: int, address: int, called: bool) -> Frame:
        # A return address may be after the end of the function that calls.
        if not called or self._is_trampoline(maps, pid, address):
            return self._frames.get((pid, address)) or self._frame(maps, pid, address)
        frame = self._frames.get((pid, -address))
        if frame is None:
            inside = self._frame(maps, pid, address - 1)
            frame = inside.replaced(address=address, offset=inside.offset + 1)
            if (pid, address - 1) in self._frames:
                self._frames[pid, -address] = frame
        return frame

    def _with_lines(
        self, maps: _Maps, pid: int, frame: Frame, called: bool
    ) -> tuple[Frame, ...] | list[Frame]:
        key = (pid, frame.address - called)
        found = self._inlined.get(key)
        if found is None:
            found = self._inlined[key] = self._lined(maps, pid, frame, key[1])
            if len(self._inlined) > _MOST_FRAMES:
                self._inlined.clear()
        return found

    def _lined(self, maps: _Maps, pid: int, frame: Frame, address: int) -> tuple[Frame, ...]:
        mapping = maps.find(address)
        if mapping is None or not mapping.path.startswith("/"):
            return (frame,)
        placed = self._in_file(mapping, pid, address)
        lines = () if placed is None else placed[0].lines(placed[1])
        if not lines:
            return (frame,)
        inlined = [
            Frame(frame.address, name, 0, frame.file, line, inlined=True)
            for name, line in lines[:-1]
        ]
        return (*inlined, frame.replaced(line=lines[-1][1]))

    def learn(self, pid: int) -> None:
        """Read the maps of a process now."""
        self._keep(pid, _Maps(self._read(pid)))

    def read_images(self, pid: int) -> None:
        """Read the names of precompiled code of .NET now, which takes a second for the biggest."""
        for mapping in self._believed(pid).mappings:
            if mapping.path.endswith(".dll"):
                self._in_mapping(mapping, pid, mapping.start)

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
        maps = self._maps.get(event.pid)
        made = maps is not None and maps.is_made(event.address)
        # Such a hit does not say where a file is mapped.
        if event.plan.of_kernel or event.plan.kind == WRITE or made:
            return self._believed(event.pid)
        if maps is None or not maps.explains(event, self._real(event.plan.path)):
            maps = _Maps(self._read(event.pid))
            if not maps.explains(event, self._real(event.plan.path)):
                maps = _Maps(self._by_hit(event))
            self._keep(event.pid, maps)
        else:
            self._maps[event.pid] = self._maps.pop(event.pid)  # used last: forgotten last
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
        self._perf_maps.pop(pid, None)
        if self._maps.pop(pid, None) is not None:
            self._forget_frames(pid)

    def _forget_frames(self, pid: int) -> None:
        if pid in self._named:
            self._named.discard(pid)
            self._frames = {key: frame for key, frame in self._frames.items() if key[0] != pid}
            self._inlined = {key: each for key, each in self._inlined.items() if key[0] != pid}

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

    def _mapping(self, maps: _Maps, pid: int, address: int) -> Mapping | None:
        mapping = maps.find(address)
        if mapping is None and maps.renewals < _RENEWALS:
            # A library that was loaded since. Not without end: what follows a broken chain of
            # frames is no code at all.
            fresh = self._read(pid)
            if fresh:
                maps.renew(fresh)
                mapping = maps.find(address)
        return mapping

    def _frame(self, maps: _Maps, pid: int, address: int) -> Frame:
        mapping = self._mapping(maps, pid, address)
        if mapping is not None and _is_made(mapping):
            symbols = self._perf_map(pid)
            compiled = None if symbols is None else symbols.find(address)
            if compiled is not None:  # not remembered: other code can take its place
                return Frame(address, compiled[0], compiled[1], None)
            return Frame(address, None, 0, mapping.path or None)
        frame = self._in_mapping(mapping, pid, address)
        if len(self._frames) >= _MOST_FRAMES:
            self._frames.clear()
        self._frames[pid, address] = frame
        self._named.add(pid)
        return frame

    def _perf_map(self, pid: int) -> Symbols | None:
        symbols = self._perf_maps.get(pid)
        if symbols is None:
            from fetchc.debuginfo.running_process import map_path

            symbols = self._open(map_path(pid, self._proc))
            if symbols is not None:
                self._perf_maps[pid] = symbols
        return symbols

    def _in_mapping(self, mapping: Mapping | None, pid: int, address: int) -> Frame:
        if mapping is None:
            return Frame(address, None, 0, None)
        if mapping.path == _UPROBES:
            inside = address - mapping.start
            name = "[return probe]" if inside < _UPROBE_SLOT else "[uprobe]"
            return Frame(address, name, inside, None)
        if not mapping.path.startswith("/"):
            return Frame(address, None, 0, mapping.path or None)
        placed = self._in_file(mapping, pid, address)
        found = None if placed is None else placed[0].find(placed[1])
        if found is None:
            return Frame(address, None, 0, mapping.path)
        return Frame(address, found[0], found[1], mapping.path)

    def _in_file(self, mapping: Mapping, pid: int, address: int) -> tuple[Symbols, Address] | None:
        # The symbols of a mapping's file, and the address that they have for one of the process.
        symbols = self._symbols(mapping.path, mapping.inode, pid)
        if symbols is None:
            return None
        stated = symbols.address_at(address - mapping.start + mapping.offset)
        return None if stated is None else (symbols, stated)

    def _symbols(self, path: str, inode: int, pid: int | None = None) -> Symbols | None:
        key = (path, inode)
        if key not in self._files:
            plain = path.removesuffix(DELETED)
            # In a container the path is one of its own root.
            seen = None if pid is None else self._open(f"{self._proc}/{pid}/root{plain}")
            self._files[key] = seen or (self._open(plain) if _is(plain, inode) else None)
        return self._files[key]


def _arranged(row: Row | str, machine: Architecture, at_entry: bool) -> Rule | str:
    # A row for the walk, or the row of code that has none; in words, why there is no rule.
    from fetchc.tracer.unwind import Rule

    guessed = False
    if isinstance(row, str):
        from fetchc.debuginfo.unwind_tables import entry_row, frame_pointer_row

        if at_entry:
            row = entry_row(machine)
        elif row == KEEPS_FRAME_POINTER:
            row, guessed = frame_pointer_row(machine), True
    try:
        return row if isinstance(row, str) else Rule(row, guessed)
    except ValueError as wrong:
        return str(wrong)


class _Maps:
    """The mappings of a process, in order."""

    __slots__ = ("_starts", "mappings", "read_at", "renewals", "rules")

    def __init__(self, mappings: list[Mapping]) -> None:
        self.mappings = mappings
        self._starts = [mapping.start for mapping in mappings]
        self.read_at = time.monotonic()
        self.renewals = 0
        self.rules: dict[int, Rule | str] = {}
        """Of its code by address; that of a return address by the negative one."""

    def renew(self, mappings: list[Mapping]) -> None:
        self.rules = {}
        self.mappings = mappings
        self._starts = [mapping.start for mapping in mappings]
        self.renewals += 1

    def insert(self, mapping: Mapping) -> None:
        """Map something, in place of what was there."""
        start, end = mapping.start, mapping.end
        self.rules = {}
        kept = [mapping]
        for one in self.mappings:
            if one.start < start:
                kept.append(one.replaced(end=min(one.end, start)))
            if one.end > end:
                moved = max(end - one.start, 0)
                kept.append(one.replaced(start=one.start + moved, offset=one.offset + moved))
        self.mappings = sorted(kept, key=lambda one: one.start)
        self._starts = [one.start for one in self.mappings]

    def copy(self) -> _Maps:
        return _Maps(self.mappings)

    def find(self, address: int) -> Mapping | None:
        at = bisect_right(self._starts, address) - 1
        if at < 0 or address >= self.mappings[at].end:
            return None
        return self.mappings[at]

    def explains(self, event: Event, name: str) -> bool:
        """Whether the probed file, of that name, is mapped where the hit was."""
        mapping = self.find(event.address)
        if mapping is None:
            return False
        path = mapping.path.removesuffix(DELETED)
        return mapping.inode == 0 or _is_made(mapping) or os.path.basename(path) == name

    def is_made(self, address: int) -> bool:
        """Whether the code at an address was made at run time."""
        mapping = self.find(address)
        return mapping is not None and _is_made(mapping)


def _is_made(mapping: Mapping) -> bool:
    return not mapping.path or mapping.path.startswith(_MADE)


def _is(path: str, inode: int) -> bool:
    # Whether the file out here is the mapped one, where that can be seen: a container has others.
    try:
        return not inode or os.stat(path).st_ino == inode
    except OSError:
        return False


DELETED = " (deleted)"
"""What the kernel writes after the path of a file that is no longer there (proc(5))."""


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
