"""Events with a copy of the thread's stack: records of perf, one buffer per CPU.

A sample of perf has the very record that a tracefs instance would have, the registers of the thread
and bytes of its stack, all of one moment: so all events of a session with such stacks come from
here, and no stack can go to another event. Where the program has many threads, or the kernel fails
to copy, samples are lost and counted, as in tracefs.

Sources: perf_event_open(2); include/uapi/linux/perf_event.h and kernel/events/core.c of Linux 6.18.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import platform
import resource  # noqa: F401 - for allow_more_files
import select
import struct
import time
from bisect import bisect_right
from collections import deque
from operator import itemgetter

from fetchc.diag.diagnostic import CompileError
from fetchc.privileges import allow_more_files
from fetchc.record import Record
from fetchc.target.machines import architecture, architecture_key, by_name, spread, table
from fetchc.tracer.events import Mapping, MappingChange
from fetchc.tracer.ring_buffer import Records
from fetchc.tracer.trace_instance import all_threads, check_namespace
from fetchc.tracer.tracefs import refused
from fetchc.tracer.unwind import StackCopy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from fetchc.diag.diagnostic import TracerError
    from fetchc.target.machines import Architecture
    from fetchc.tracer.events import Sample

__all__ = ["PerfRing", "SampledMachine", "sampled_machines"]


class SampledMachine(Record):
    """A machine whose programs can be sampled here: its ``registers`` are (place among those of a
    sample, DWARF number). ``code_segment`` is that of its programs; None: any other one.
    """

    machine: Architecture
    code_segment: int | None
    registers: tuple[tuple[int, int], ...]
    program_counter: int


def sampled_machines() -> dict[int, SampledMachine]:
    """By the number that samples have for it (``abi``); empty on machines without such a table."""
    found = {}
    try:
        own = architecture_key(platform.machine())
    except CompileError:
        return {}
    tables = {name: table(f"arch/{name}").get("perf") for name in dict.fromkeys((own, "i386"))}
    mine = tables[own]
    if mine is None:
        return {}
    places = {bit: at for at, bit in enumerate(sorted(_bits(mine["registers"])))}
    for name, raw in tables.items():
        if raw is None:
            continue
        machine = architecture(name)
        numbers = by_name(machine.registers)
        registers = [(places[at], numbers[each]) for at, each in _bits(raw["registers"]).items()]
        found[raw["abi"]] = SampledMachine(
            machine, raw.get("code_segment"), tuple(registers), numbers["ip"]
        )
    return found


def _bits(raw: dict[str, str]) -> dict[int, str]:
    pairs = [zip(spread([bits]), spread([names]), strict=True) for bits, names in raw.items()]
    return {int(bit): name for each in pairs for bit, name in each}


# struct perf_event_attr up to `reserved_2` (PERF_ATTR_SIZE_VER5), and the flags of its bit field.
_ATTRIBUTES = struct.Struct("<IIQQQQQIIQQQQIiQIHH")
_TRACEPOINT, _SOFTWARE, _DUMMY = 2, 1, 9  # types; config of an event that never happens
_DISABLED, _INHERIT, _WATERMARK, _USE_CLOCK = 1 << 0, 1 << 1, 1 << 14, 1 << 25
# mmap, comm, task, sample_id_all, mmap2, comm_exec: records of what changes the code of processes.
_CHANGES = 1 << 8 | 1 << 9 | 1 << 13 | 1 << 18 | 1 << 23 | 1 << 24
_TID, _TIME, _ID, _CPU, _RAW = 1 << 1, 1 << 2, 1 << 6, 1 << 7, 1 << 10
_REGISTERS, _STACK = 1 << 12, 1 << 13
_SAMPLED = _TID | _TIME | _ID | _CPU | _RAW | _REGISTERS | _STACK
_NUMBERS = {"x86_64": 298}  # of the system call perf_event_open: arch/x86/entry/syscalls
_CLOSE_ON_EXEC = 1 << 3
_ENABLE, _DISABLE, _SET_OUTPUT, _SET_FILTER = 0x2400, 0x2401, 0x2405, 0x40082406
_HEAD, _TAIL, _DATA = 1024, 1032, 1040  # in struct perf_event_mmap_page
_RECORD = struct.Struct("<IHH")
_LOST, _COMM, _FORK, _SAMPLE, _MMAP = 2, 3, 7, 9, 10
_EXEC = 1 << 13  # of the record's `misc`: PERF_RECORD_MISC_COMM_EXEC
# PERF_RECORD_MMAP2: pid, tid, address, length, offset in the file, device, inode, its generation,
# protection, flags; then the path. PERF_RECORD_FORK: pid, its parent's, tid, its parent's, time.
_MMAP_BODY, _FORK_BODY = struct.Struct("<IIQQQIIQQII"), struct.Struct("<IIIIQ")
_ANONYMOUS = b"//anon"
_COMM_BODY = struct.Struct("<II")  # of PERF_RECORD_COMM: pid, tid
_IDENTITY = struct.Struct("<IIQQII")  # what ends all but samples: pid, tid, time, id, cpu
_LOST_BODY = struct.Struct("<QQ")
# The sample up to the raw record's length: pid, tid, time, id, cpu, reserved, size.
_START = struct.Struct("<IIQQIII")
_CPU_PLACE = 24  # of the CPU in it
_WORD = struct.Struct("<Q")
_SETTLE = 10_000_000  # nanoseconds, as in tracefs
_NEVER = 1 << 64
_POLL = 0.05  # seconds: a few records wake nobody
_TOTAL_BYTES = 128 << 20  # of buffers
_CPU_BYTES = (1 << 20, 64 << 20)
_UNPRIVILEGED_BYTES = 512 << 10  # what everybody may lock: kernel.perf_event_mlock_kb
_HELD = 256 << 20  # bytes that were read and nobody has taken; more waits in the buffers
_PART = 128  # samples
_time = itemgetter(0)


class _Buffer:
    """The mapped buffer of one CPU, whose events all write into it."""

    def __init__(self, cpu: int, owner: int, size: int) -> None:
        self.cpu = cpu
        self.owner = owner
        page = mmap.PAGESIZE
        self._map = mmap.mmap(owner, page + size, mmap.MAP_SHARED)
        (start,) = _WORD.unpack_from(self._map, _DATA)
        self._start, self._size = start or page, size

    def take(self) -> bytes:
        """The records since the last call, whole ones."""
        (head,) = _WORD.unpack_from(self._map, _HEAD)
        (tail,) = _WORD.unpack_from(self._map, _TAIL)
        if head == tail:
            return b""
        first, last = tail % self._size, head % self._size
        start = self._start
        if first < last:
            data = self._map[start + first : start + last]
        else:
            data = self._map[start + first : start + self._size] + self._map[start : start + last]
        _WORD.pack_into(self._map, _TAIL, head)
        return data

    def close(self) -> None:
        self._map.close()
        os.close(self.owner)


class PerfRing:
    """What :class:`~fetchc.tracer.ring_buffer.Ring` is for tracefs, with stacks in the samples.

    ``stack_bytes`` is how much of each stack is copied. Events are added by the number of their
    event in tracefs. Entering is :meth:`open`; raises TracerError FC0709 where perf is not allowed.
    """

    def __init__(self, stack_bytes: int, machines: dict[int, SampledMachine]) -> None:
        self._stack_bytes = -(-stack_bytes // 8) * 8
        self._machines = machines
        self._mask = 0
        own = table(f"arch/{architecture_key(platform.machine())}")["perf"]["registers"]
        for bit in _bits(own):
            self._mask |= 1 << bit
        self._count = self._mask.bit_count()
        self._values = struct.Struct(f"<{self._count}Q")
        self._buffers: list[_Buffer] = []
        self._events: list[tuple[int, str | None]] = []
        self._threads: list[int] | None = None
        self._open: list[int] = []
        self._poll = select.poll()
        self._pending: list[Sample] = []
        self._held = 0
        self._last: dict[Hashable, tuple[int, bytes]] = {}
        self._told_lost = 0
        self._sampled = 0
        self._ended = False
        self._pending_changes: list[MappingChange] = []
        self.changes: deque[MappingChange] = deque()
        """Mappings of all processes in the order of time, by which code gets names."""

        self.more = False

    def open(
        self, cpus: Sequence[int], buffer_kib: int | None, process: int = -1, at_once: bool = False
    ) -> None:
        """Make the buffers of these CPUs: of all processes, or of one.

        ``at_once``: the first record already ends :meth:`wait`.
        """
        least, most = _CPU_BYTES
        wanted = (
            (buffer_kib << 10) if buffer_kib else max(least, min(most, _TOTAL_BYTES // len(cpus)))
        )
        size = 1 << (max(wanted, least) - 1).bit_length()
        try:
            try:
                self._make_buffers(cpus, size, process, at_once)
            except PermissionError:
                self.close()
                self._make_buffers(cpus, _UNPRIVILEGED_BYTES, process, at_once)
        except OSError as error:
            raise self._refused(error) from error
        for buffer in self._buffers:
            self._poll.register(buffer.owner, select.POLLIN)

    def _make_buffers(self, cpus: Sequence[int], size: int, process: int, at_once: bool) -> None:
        for cpu in cpus:
            flags = _WATERMARK | _USE_CLOCK | _CHANGES
            try:
                watermark = 1 if at_once else size // 4
                owner = self._opened(_SOFTWARE, _DUMMY, flags, process, cpu, watermark)
            except OSError as error:
                if error.errno == errno.ENODEV:  # it is not running
                    continue
                raise
            try:
                buffer = _Buffer(cpu, owner, size)
            except OSError:
                os.close(owner)
                raise
            self._buffers.append(buffer)

    def _refused(self, error: OSError) -> TracerError:
        name = errno.errorcode.get(error.errno or 0, "")
        note = f"perf_event_open: {os.strerror(error.errno or 0)} ({name})"
        help = "`--stack=fp` takes stacks without perf, by frame pointers"
        return refused("FC0709", "the kernel does not copy stacks", notes=(note,), help=help)

    def only(self, processes: Iterable[int]) -> None:
        """Sample these processes, their threads, and the children they will have; no others."""
        check_namespace(wanted := sorted(set(processes)))
        self._threads = wanted

    def add(self, event: int, filter: str | None, enabled: bool) -> None:
        """Sample the event of that number, if its kernel ``filter`` lets it pass."""
        if self._threads is None:
            self._add(event, filter, -1, enabled)
            return
        for process in self._threads:
            # Where a thread has inherited the event, its samples come twice, and the second is
            # dropped.
            for threads in all_threads(process):
                for thread in threads:
                    self._add(event, filter, thread, enabled)

    def _add(self, event: int, filter: str | None, thread: int, enabled: bool) -> None:
        for buffer in self._buffers:
            flags = _USE_CLOCK | (0 if enabled else _DISABLED) | (0 if thread < 0 else _INHERIT)
            try:
                file = self._opened(_TRACEPOINT, event, flags, thread, buffer.cpu, 0)
            except OSError as error:
                if error.errno == errno.ESRCH and thread >= 0:
                    return  # the thread has ended
                raise self._refused(error) from error
            self._open.append(file)
            try:
                fcntl.ioctl(file, _SET_OUTPUT, buffer.owner)
                if filter is not None:
                    _filter(file, filter)
            except OSError as error:
                raise self._refused(error) from error

    def _opened(
        self,
        kind: int,
        config: int,
        flags: int,
        thread: int,
        cpu: int,
        watermark: int,
        breakpoint: tuple[int, int, int] = (0, 0, 0),
    ) -> int:
        # ``breakpoint``: its type, address and length.
        attributes = _ATTRIBUTES.pack(
            kind, _ATTRIBUTES.size, config, 1, _SAMPLED, 0, flags, watermark, *breakpoint, 0,
            self._mask, self._stack_bytes, time.CLOCK_MONOTONIC, 0, 0, 0, 0,
        )  # fmt: skip
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        number = _NUMBERS[platform.machine()]
        while True:
            file: int = libc.syscall(number, attributes, thread, cpu, -1, _CLOSE_ON_EXEC)
            if file >= 0:
                return file
            error = ctypes.get_errno()
            if error != errno.EMFILE or not allow_more_files():
                raise OSError(error, os.strerror(error))

    def enable(self) -> None:
        """Let everything be sampled that was added."""
        self._ended = False
        for file in self._open:
            fcntl.ioctl(file, _ENABLE)

    def disable(self) -> None:
        """Sample nothing any more; what was can still be read."""
        for file in self._open:
            fcntl.ioctl(file, _DISABLE)
        self._ended = True

    def wait(self, seconds: float) -> None:
        """Return when there is much to read, at the latest after ``seconds``, or 50 ms."""
        if self._pending:
            time.sleep(min(seconds, _SETTLE / 1e9))
        else:
            self._poll.poll(min(seconds, _POLL) * 1000)

    def read(self, ended: bool = False) -> list[list[Records]]:
        """As :meth:`~fetchc.tracer.ring_buffer.Ring.read`; buffers are always emptied.

        Each part is short: who works on it has the buffers emptied before the next one.
        """
        limit = _NEVER if ended else time.monotonic_ns() - _SETTLE
        self._held = 0  # what is there is taken now
        self.collect()
        self._pending.sort(key=_time)
        settled = bisect_right(self._pending, limit, key=_time)
        ready, self._pending = self._pending[:settled], self._pending[settled:]
        if self._pending_changes:
            self._pending_changes.sort(key=_changed)
            settled = bisect_right(self._pending_changes, limit, key=_changed)
            self.changes += self._pending_changes[:settled]
            del self._pending_changes[:settled]
        parts = range(0, len(ready), _PART)
        return [[Records.of(ready[first : first + _PART])] for first in parts]

    def collect(self) -> None:
        """Empty the buffers, which fill up while a batch of samples is worked on."""
        if self._held > _HELD:
            return
        for buffer in self._buffers:
            data = buffer.take()
            self._held += len(data)
            self._samples(data)

    def _samples(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            kind, misc, size = _RECORD.unpack_from(data, at)
            if size < _RECORD.size:
                raise refused("FC0716", "perf's records cannot be read: one without a size")
            if kind == _SAMPLE:
                sample = self._sample(data[at : at + size])
                if sample is not None:
                    self._pending.append(sample)
            elif kind == _LOST:
                self._told_lost += _LOST_BODY.unpack_from(data, at + _RECORD.size)[1]
            elif kind in (_MMAP, _FORK) or (kind == _COMM and misc & _EXEC):
                change = _change(kind, data[at + _RECORD.size : at + size])
                if change is not None:
                    self._pending_changes.append(change)
            at += size

    def _sample(self, record: bytes) -> Sample | None:
        process, thread, time_, identity, cpu, _, size = _START.unpack_from(record, _RECORD.size)
        raw = _RECORD.size + _START.size
        at = raw + size
        self._sampled += 1

        # On the same CPU: on another one it is another hit, of an event with another number.
        own = _RECORD.size + _CPU_PLACE
        if self._threads is not None and self._is_second(thread, identity, record[own:]):
            return None
        (abi,) = _WORD.unpack_from(record, at)
        at += _WORD.size
        sampled = self._machines.get(abi)
        if sampled is None:  # of a kernel's thread, which has no stack of a program
            return time_, cpu, record[: raw + size], raw, raw + size, ()
        values = self._values.unpack_from(record, at)
        at += self._values.size
        (room,) = _WORD.unpack_from(record, at)
        at += _WORD.size
        copied = _WORD.unpack_from(record, at + room)[0] if room else 0
        registers = {number: values[place] for place, number in sampled.registers}
        copy = StackCopy(
            process, time_, abi, sampled.machine.word_bytes, registers,
            registers[sampled.machine.stack_pointer], record[at : at + min(copied, room)], room,
        )  # fmt: skip
        return time_, cpu, record[: raw + size], raw, raw + size, copy

    def _is_second(self, source: Hashable, identity: int, content: bytes) -> bool:
        # Of a thread that was found and has inherited the event: the same hit by the other one.
        last = self._last.get(source)
        if last is not None and last[0] != identity and last[1] == content:
            return True
        self._last[source] = identity, content
        return False

    @property
    def lost(self) -> int:
        """Hits without a sample, when nothing is sampled any more: the kernel counts both.

        The buffers were full, or the kernel throttled the events. Until then those records that the
        kernel has told of, changes of mappings among them.
        """
        counted = self._counted() if self._ended else None
        if counted is None:
            return self._told_lost
        self._held = 0
        self.collect()  # what nobody has read is not lost
        return max(counted - self._sampled, 0)

    def _counted(self) -> int | None:
        # All hits of the events, sampled or not; None where no event is left to ask.
        counts = [_WORD.unpack(os.read(file, _WORD.size))[0] for file in self._open]
        return sum(counts) if counts else None

    def close(self) -> None:
        """Let everything go; what is in the buffers is lost."""
        while self._open:
            os.close(self._open.pop())
        while self._buffers:
            self._buffers.pop().close()


def _filter(file: int, text: str) -> None:
    # Python's ioctl copies its argument, which has a string instead of where one is.
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ioctl(file, _SET_FILTER, ctypes.create_string_buffer(text.encode())):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _change(kind: int, body: bytes) -> MappingChange | None:
    _, _, moment, *_ = _IDENTITY.unpack_from(body, len(body) - _IDENTITY.size)
    if kind == _FORK:
        process, parent, *_ = _FORK_BODY.unpack_from(body)
        # A new thread changes nothing.
        return None if process == parent else MappingChange(moment, process, parent)
    if kind == _COMM:
        return MappingChange(moment, _COMM_BODY.unpack_from(body)[0])
    process, _, start, size, offset, _, _, inode, *_ = _MMAP_BODY.unpack_from(body)
    path = body[_MMAP_BODY.size : len(body) - _IDENTITY.size].partition(b"\0")[0]
    shown = "" if path == _ANONYMOUS else path.decode("utf-8", "surrogateescape")
    mapping = Mapping(start, start + size, offset, shown, inode)
    return MappingChange(moment, process, None, mapping)


def _changed(change: MappingChange) -> int:
    return change.time
