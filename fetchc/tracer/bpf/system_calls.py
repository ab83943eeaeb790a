"""bpf(2), perf_event_open(2) and membarrier(2), by ctypes: maps, programs, what attaches them.

All that is made here ends with its file descriptor: nothing stays behind, however the process ends.
Sources: bpf(2), perf_event_open(2), membarrier(2), include/uapi/linux/bpf.h and perf_event.h; the
layouts were measured on Linux 6.18. The kernel takes an ``attr`` that is shorter than its own.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import resource
import struct
from contextlib import suppress
from threading import Thread

from fetchc.privileges import allow_more_files, held_capabilities

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fetchc.emit.bpf_steps import Code
    from fetchc.target.bpf_rules import BpfMachine

__all__ = [
    "Attachment",
    "Bpf",
    "PinnedLinks",
    "ProgramRefused",
    "close_links",
    "lift_memory_limit",
    "missing_capabilities",
]

_MAP_CREATE, _UPDATE, _LOOK_UP_BATCH = 0, 2, 24
_PROG_LOAD, _OBJ_PIN, _BTF_LOAD, _LINK_CREATE = 5, 6, 18, 28
_OBJ_GET_INFO_BY_FD, _RAW_TRACEPOINT_OPEN = 15, 17
_BTF_GET_FD_BY_ID, _BTF_GET_NEXT_ID = 19, 23
# Byte offsets in struct bpf_prog_info and struct bpf_link_info (of a kprobe): 64 bits each.
_RECURSION_MISSES, _KPROBE_MISSED = 208, 48
# BPF_PROG_TYPE_*
_KINDS = {
    "probe": 2,
    "tracepoint": 5,
    "perf_event": 7,
    "raw_tracepoint": 17,
    "entry": 26,
    "return": 26,
}
_EXPECTED = {"entry": 24, "return": 25}  # BPF_TRACE_FENTRY, BPF_TRACE_FEXIT
_PERF_EVENT, _UPROBE_MULTI = 41, 48  # BPF_PERF_EVENT, BPF_TRACE_UPROBE_MULTI
_SLEEPABLE = 1 << 4  # BPF_F_SLEEPABLE
_SHARED = 1 << 10  # BPF_F_MMAPABLE, from 5.5 on
_RETURN = 1  # BPF_F_UPROBE_MULTI_RETURN; config of a probe's event
_LICENSE = b"GPL"  # reading memory of programs is for programs under it
_LOG_BYTES = 1 << 24, 1 << 28  # the second where the end of the log is not in the first
_LOG_END = 1 << 16  # bytes of it that are looked at
_MODULE_NAME_BYTES = 64  # MODULE_NAME_LEN is 56 on machines of 64 bits
_NOT_OF_VERIFIER = (errno.EPERM, errno.ENOSYS, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
_ENABLE, _SET_BPF = 0x2400, 0x40042408  # PERF_EVENT_IOC_*
_EVENT_BYTES = 136  # PERF_ATTR_SIZE_VER8
_CLOSE_ON_EXEC = 8  # PERF_FLAG_FD_CLOEXEC
_TRACEPOINT_EVENT = 2  # PERF_TYPE_TRACEPOINT
_REFERENCE_SHIFT = 32  # of a semaphore's file offset in config
_BTF_MAGIC, _INT, _FUNC, _FUNC_PROTO = 0xEB9F, 1, 12, 13  # Documentation/bpf/btf.rst
_FIRST_FUNCTION = 3  # the number of the first function among those types
_STATISTICS = ("processed ", "verification time", "stack depth", "mark_precise")
_GLOBAL_EXPEDITED = 1 << 1  # MEMBARRIER_CMD_GLOBAL_EXPEDITED: a barrier of the caller, too
_CLOSED_TOGETHER = 128
_BATCH = 2048  # entries that are read at once: more than a bucket of a hash map has
# fsopen(2), fsconfig(2), fsmount(2): the same on all machines, include/uapi/asm-generic/unistd.h.
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
_CREATE = 6  # FSCONFIG_CMD_CREATE
_CLOEXEC = 1  # FSOPEN_CLOEXEC, FSMOUNT_CLOEXEC
_IN_FOLDER = 1 << 14  # BPF_F_PATH_FD, from 6.5 on
_UNIT = "/sys/bus/event_source/devices/{}/type"


class Attachment:
    """One probed point: the offset in the file, the cookie, the offset of a semaphore or 0."""

    __slots__ = ("cookie", "offset", "reference")

    def __init__(self, offset: int, cookie: int, reference: int) -> None:
        self.offset = offset
        self.cookie = cookie
        self.reference = reference


class ProgramRefused(Exception):
    """The verifier refuses a program: in its last words, ``said``, at ``instruction`` if known.

    ``error`` is the refusal, and ``log`` is empty where its end did not fit.
    """

    def __init__(self, error: OSError, log: Sequence[str]) -> None:
        # After them are statistics. A line about an instruction begins with its number.
        lines = [line for line in log if line and not line.startswith(_STATISTICS)]
        self.said = lines[-1] if lines else os.strerror(error.errno or 0)
        numbers = [line.partition(":")[0] for line in lines]
        listed = [int(number) for number in numbers if number.isdecimal()]
        if not listed:  # before it follows the program: unreachable insn 7
            listed = [int(number) for number in re.findall(r"\binsn (\d+)", self.said)]
        self.instruction = listed[-1] if listed else None
        super().__init__(self.said)


class Bpf:
    """The system calls of a machine. File descriptors are the caller's to close.

    Each method raises OSError as the kernel refuses.
    """

    def __init__(self, machine: BpfMachine) -> None:
        self._machine = machine
        self._system_call = ctypes.CDLL(None, use_errno=True).syscall
        self._system_call.restype = ctypes.c_long

    def _call(self, number: int, *arguments: object) -> int:
        while True:
            result: int = self._system_call(ctypes.c_long(number), *arguments)
            if result >= 0:
                return result
            failed = ctypes.get_errno()
            if failed != errno.EMFILE or not allow_more_files():
                raise OSError(failed, os.strerror(failed))

    def _bpf(self, command: int, attributes: bytes) -> int:
        return self._bpf_in(command, ctypes.create_string_buffer(attributes, len(attributes)))

    def _bpf_in(self, command: int, attributes: ctypes.Array[ctypes.c_char]) -> int:
        # The kernel may write there, too.
        size = ctypes.c_uint(len(attributes))
        return self._call(self._machine.bpf, ctypes.c_int(command), attributes, size)

    def barrier(self) -> None:
        """Order the loads and stores of this thread before the call with those after it."""
        if self._machine.membarrier is not None:
            nothing = ctypes.c_int(0)
            self._call(self._machine.membarrier, ctypes.c_int(_GLOBAL_EXPEDITED), nothing, nothing)

    # -- maps

    def map(self, kind: int, key: int, value: int, entries: int, shared: bool = False) -> int:
        """A new map; ``key`` and ``value`` are sizes in bytes (0 for a ring buffer).

        ``shared``: an array that this process can map as memory.
        """
        flags = _SHARED if shared else 0
        made = struct.pack("=IIIIIII16s", kind, key, value, entries, flags, 0, 0, b"fetchc")
        return self._bpf(_MAP_CREATE, made)

    def entries(self, file: int, key: int, value: int) -> Iterator[tuple[bytes, bytes]]:
        """All keys and values of a hash map from which nothing is deleted; sizes are in bytes.

        By BPF_MAP_LOOKUP_BATCH, from Linux 5.6 on: one by one they take 5 us each.
        """
        keys, values = [ctypes.create_string_buffer(size * _BATCH) for size in (key, value)]
        bucket = ctypes.c_uint()  # at which the next batch begins
        start, places = 0, [ctypes.addressof(one) for one in (bucket, keys, values)]
        more = True
        while more:
            asked = struct.pack("=4QIIQQ", start, *places, _BATCH, file, 0, 0)
            batch = ctypes.create_string_buffer(asked, len(asked))
            try:
                self._bpf_in(_LOOK_UP_BATCH, batch)
            except OSError as end:
                if end.errno != errno.ENOENT:
                    raise
                more = False
            (count,) = struct.unpack_from("=I", batch, 32)
            found = keys.raw, values.raw
            for at in range(count):
                yield found[0][key * at : key * (at + 1)], found[1][value * at : value * (at + 1)]
            start = places[0]

    def update(self, file: int, key: bytes, value: bytes) -> None:
        """Set the value of ``key``."""
        named, given = [ctypes.create_string_buffer(one, len(one)) for one in (key, value)]
        places = ctypes.addressof(named), ctypes.addressof(given)
        self._bpf(_UPDATE, struct.pack("=IxxxxQQQ", file, *places, 0))

    # -- programs

    def load(
        self,
        code: Code,
        *,
        sleepable: bool = False,
        multi: bool = False,
        kind: str = "probe",
        function: int = 0,
        module: str = "",
    ) -> int:
        """A program for probes, or for a ``tracepoint``, a ``raw_tracepoint``, a ``perf_event``.

        Or for the ``entry`` or the ``return`` of the function with that number in the BTF of the
        kernel, or of its ``module``. ``multi``: it is attached to many at once. Raises
        ProgramRefused where the verifier refuses it, with its reason.
        """
        flags = _SLEEPABLE if sleepable else 0
        expected = _UPROBE_MULTI if multi else _EXPECTED.get(kind, 0)
        types = self._module_types(module) if module else None
        attached = struct.pack("=II", function, types or 0) if function else b""
        try:
            return self._load(_KINDS[kind], code, flags, expected, attached, None)
        except OSError as refused:
            if refused.errno in _NOT_OF_VERIFIER:
                raise
            said: list[str] = []
            for size in _LOG_BYTES:  # again, for the reason
                log = ctypes.create_string_buffer(size)
                try:
                    return self._load(_KINDS[kind], code, flags, expected, attached, log)
                except OSError as again:
                    said = log.value[-_LOG_END:].decode("utf-8", "replace").splitlines()
                    # From Linux 6.4 on the room has the end of a log that is longer.
                    if again.errno != errno.ENOSPC or _has_its_end(said):
                        break
                    said = []
            raise ProgramRefused(refused, said) from None
        finally:
            if types is not None:
                os.close(types)

    def _module_types(self, module: str) -> int:
        # Its BTF, among all that the kernel has: their names are in struct bpf_btf_info.
        number = 0
        while True:
            following = ctypes.create_string_buffer(struct.pack("=III", number, 0, 0), 12)
            self._bpf_in(_BTF_GET_NEXT_ID, following)  # ENOENT after the last one
            number = struct.unpack_from("=I", following, 4)[0]
            try:
                types = self._bpf(_BTF_GET_FD_BY_ID, struct.pack("=I", number))
            except OSError as error:
                if error.errno != errno.ENOENT:  # that of a program, which has just gone
                    raise
                continue
            found = False
            try:
                found = self._name_of_types(types) == (module, True)
            finally:
                if not found:
                    os.close(types)
            if found:
                return types

    def _name_of_types(self, types: int) -> tuple[str, bool]:
        # And whether it is the kernel's, as those of its modules are.
        name, place = ctypes.create_string_buffer(_MODULE_NAME_BYTES), ctypes.addressof
        info = struct.pack("=QIIQII", 0, 0, 0, place(name), len(name), 0)
        held = ctypes.create_string_buffer(info, len(info))
        self._bpf(_OBJ_GET_INFO_BY_FD, struct.pack("=IIQ", types, len(info), place(held)))
        return os.fsdecode(name.value), bool(struct.unpack_from("=I", held, len(info) - 4)[0])

    def _load(
        self,
        kind: int,
        code: Code,
        flags: int,
        expected: int,
        attached: bytes,
        log: ctypes.Array[ctypes.c_char] | None,
    ) -> int:
        raw = code.bytes()
        instructions = ctypes.create_string_buffer(raw, len(raw))
        license = ctypes.create_string_buffer(_LICENSE)
        place = ctypes.addressof
        attributes = struct.pack(
            "=IIQQIIQII16sII",
            kind,
            len(raw) // 8,
            place(instructions),
            place(license),
            0 if log is None else 1,
            0 if log is None else len(log),
            0 if log is None else place(log),
            0,
            flags,
            b"fetchc",
            0,
            expected,
        )
        if not code.functions:
            if attached:
                attributes += bytes(36) + attached
            return self._bpf(_PROG_LOAD, attributes)
        firsts = (0, *code.functions)
        types = self._functions(len(firsts))
        infos = [
            struct.pack("=II", first, number)
            for number, first in enumerate(firsts, _FIRST_FUNCTION)
        ]
        listed = ctypes.create_string_buffer(b"".join(infos), 8 * len(infos))
        try:
            attributes += struct.pack("=IIQI", types, 8, place(listed), len(infos))
            if attached:
                attributes += bytes(16) + attached
            return self._bpf(_PROG_LOAD, attributes)
        finally:
            os.close(types)

    def _functions(self, count: int) -> int:
        # Types of functions of one number each, which the kernel wants to know of those it calls.
        strings = b"\0number\0function\0"
        types = struct.pack("=IIII", 1, _INT << 24, 8, 1 << 24 | 64)  # signed, of 64 bits
        types += struct.pack("=IIIII", 0, _FUNC_PROTO << 24 | 1, 1, 1, 1)
        types += count * struct.pack("=III", 8, _FUNC << 24, 2)  # static
        sizes = 0, len(types), len(types), len(strings)
        raw = struct.pack("=HBBI4I", _BTF_MAGIC, 1, 0, 24, *sizes) + types + strings
        buffer = ctypes.create_string_buffer(raw, len(raw))
        return self._bpf(_BTF_LOAD, struct.pack("=QQII", ctypes.addressof(buffer), 0, len(raw), 0))

    # -- what attaches programs

    def run_at(self, event: int, program: int) -> None:
        """Have an event of perf run the program at each hit; it makes samples only where that
        returns something else than 0.
        """
        fcntl.ioctl(event, _SET_BPF, program)

    def attach_many(
        self, program: int, path: str, points: Sequence[Attachment], returning: bool
    ) -> list[int]:
        """One link for all points of a file."""
        count = len(points)
        numbers = ctypes.c_uint64 * count
        name = ctypes.create_string_buffer(os.fsencode(path))
        offsets = numbers(*[one.offset for one in points])
        cookies = numbers(*[one.cookie for one in points])
        references = numbers(*[one.reference for one in points])
        counted = any(one.reference for one in points)
        place = ctypes.addressof
        attributes = struct.pack(
            "=IIIIQQQQIII4x",
            program,
            0,
            _UPROBE_MULTI,
            0,
            place(name),
            place(offsets),
            place(references) if counted else 0,
            place(cookies),
            count,
            _RETURN if returning else 0,
            0,
        )
        return [self._bpf(_LINK_CREATE, attributes)]

    def folder(self) -> int:
        """The root of a new bpf file system, which is mounted nowhere and ends with the file."""
        number = ctypes.c_uint(_CLOEXEC)
        opened = self._call(_FSOPEN, ctypes.c_char_p(b"bpf"), number)
        try:
            nothing = ctypes.c_void_p(None)
            command, value = ctypes.c_uint(_CREATE), ctypes.c_int(0)
            self._call(_FSCONFIG, ctypes.c_int(opened), command, nothing, nothing, value)
            return self._call(_FSMOUNT, ctypes.c_int(opened), number, ctypes.c_uint(0))
        finally:
            os.close(opened)

    def pin(self, file: int, folder: int, name: str) -> None:
        """Have what ``file`` is of live as long as that name in a :meth:`folder`."""
        place = ctypes.create_string_buffer(name.encode("ascii"))
        asked = struct.pack("=QIIi4x", ctypes.addressof(place), file, _IN_FOLDER, folder)
        self._bpf(_OBJ_PIN, asked)

    def attach(
        self, program: int, path: str, point: Attachment, returning: bool, with_cookie: bool
    ) -> list[int]:
        """An event of perf for one point, which runs the program; by a link if with a cookie."""
        config = point.reference << _REFERENCE_SHIFT | (_RETURN if returning else 0)
        event = self._probe("uprobe", config, path, point.offset)
        return self._run_by(event, program, point.cookie, with_cookie)

    def attach_kprobe(
        self, program: int, function: str, offset: int, returning: bool, with_link: bool
    ) -> list[int]:
        """An event of perf for an instruction of the kernel, or for the returns of a function.

        ``with_link``: the first is a link, of which :meth:`missed_hits` knows.
        """
        event = self._probe("kprobe", _RETURN if returning else 0, function, offset)
        return self._run_by(event, program, 0, with_link)

    def missed_runs(self, program: int) -> int:
        """How often a program was not run, as one ran already; 0 before Linux 5.12, too."""
        return self._number_in(program, _RECURSION_MISSES)

    def missed_hits(self, link: int) -> int:
        """How many hits a kernel probe has missed, from Linux 6.7 on."""
        return self._number_in(link, _KPROBE_MISSED)

    def _number_in(self, file: int, offset: int) -> int:
        # An older kernel knows a shorter structure, and leaves the rest at 0.
        info = ctypes.create_string_buffer(offset + 8)
        asked = struct.pack("=IIQ", file, len(info), ctypes.addressof(info))
        self._bpf(_OBJ_GET_INFO_BY_FD, asked)
        return int(struct.unpack_from("=Q", info, offset)[0])

    def _probe(self, unit: str, config: int, name: str, offset: int) -> int:
        with open(_UNIT.format(unit), encoding="ascii") as file:
            kind = int(file.read())
        place = ctypes.create_string_buffer(os.fsencode(name))
        event = bytearray(_EVENT_BYTES)
        struct.pack_into("=IIQ", event, 0, kind, _EVENT_BYTES, config)
        struct.pack_into("=QQ", event, 56, ctypes.addressof(place), offset)
        return self._event(bytes(event))

    def attach_raw_tracepoint(self, program: int, name: str) -> list[int]:
        """A link for the tracepoint of that name, without its record.

        It is let go of at once: an event of perf waits for RCU, some 80 ms each.
        """
        place = ctypes.create_string_buffer(os.fsencode(name))
        return [self._open(program, ctypes.addressof(place))]

    def attach_function(self, program: int) -> list[int]:
        """A link for the function that the program was loaded for."""
        return [self._open(program, 0)]

    def _open(self, program: int, name: int) -> int:
        return self._bpf(_RAW_TRACEPOINT_OPEN, struct.pack("=QI4x", name, program))

    def attach_tracepoint(self, program: int, number: int) -> list[int]:
        """An event of perf for the tracepoint of that number in tracefs."""
        event = struct.pack("=IIQ", _TRACEPOINT_EVENT, _EVENT_BYTES, number)
        return self._run_by(self._event(event.ljust(_EVENT_BYTES, b"\0")), program, 0, False)

    def _event(self, attributes: bytes) -> int:
        # Of all processes; the processor is named, and the event is of all of them even so.
        buffer = ctypes.create_string_buffer(attributes, len(attributes))
        process, processor, group = ctypes.c_int(-1), ctypes.c_int(0), ctypes.c_int(-1)
        flags = ctypes.c_ulong(_CLOSE_ON_EXEC)
        number = self._machine.perf_event_open
        return self._call(number, buffer, process, processor, group, flags)

    def _run_by(self, event: int, program: int, cookie: int, with_cookie: bool) -> list[int]:
        opened = [event]
        try:
            if with_cookie:
                link = struct.pack("=IIIIQ", program, event, _PERF_EVENT, 0, cookie)
                opened.insert(0, self._bpf(_LINK_CREATE, link))
            else:
                fcntl.ioctl(event, _SET_BPF, program)
            fcntl.ioctl(event, _ENABLE, 0)
        except OSError:
            for file in opened:
                os.close(file)
            raise
        return opened


def _has_its_end(log: Sequence[str]) -> bool:
    # Whether a verifier's log ends as all that get to their end: with statistics.
    return any(line.startswith(_STATISTICS[0]) for line in log[-4:])


def close_links(links: list[int]) -> None:
    """Close links, and empty the list.

    Each waits until no processor runs its program any more, some 70 ms. Those that are closed at
    the same time wait together: 194 took 14 s one by one, and 0.1 s so.
    """

    def close() -> None:
        with suppress(IndexError):
            while True:
                os.close(links.pop())

    others = [Thread(target=close) for _ in range(min(len(links), _CLOSED_TOGETHER) - 1)]
    with suppress(RuntimeError):  # where there can be no more threads
        for one in others:
            one.start()
    close()
    for one in others:
        if one.ident is not None:
            one.join()


class PinnedLinks:
    """Links that end side by side where this process is killed.

    The kernel closes the files of a killed process one by one, and waits for each link: it held on
    to 194 of them for 13 s. Links with a name in a file system wait for the end of that, which is a
    work of its own for each of them.
    """

    def __init__(self, bpf: Bpf) -> None:
        self._bpf = bpf
        self._folder: int | None = None
        self._names: list[str] = []

    def add(self, links: Sequence[int]) -> None:
        """Pin links, as far as this process may: a mount takes CAP_SYS_ADMIN."""
        with suppress(OSError):
            if self._folder is None:
                self._folder = self._bpf.folder()
            for link in links:
                name = str(len(self._names))
                self._bpf.pin(link, self._folder, name)
                self._names.append(name)

    def close(self) -> None:
        """Remove the names: the links end with their files again. Can be called twice."""
        if self._folder is None:
            return
        for name in self._names:
            os.unlink(name, dir_fd=self._folder)
        os.close(self._folder)
        self._folder, self._names = None, []


def lift_memory_limit() -> None:
    """For kernels before 5.11, which count maps and programs for RLIMIT_MEMLOCK.

    Without CAP_SYS_RESOURCE the limit stays, and the kernel refuses what is beyond it.
    """
    infinite = resource.RLIM_INFINITY
    with suppress(ValueError):
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (infinite, infinite))


def missing_capabilities(wanted: Sequence[str]) -> tuple[str, ...]:
    """Those of ``wanted`` that this process does not have; CAP_SYS_ADMIN stands for all."""
    held = held_capabilities()
    if "SYS_ADMIN" in held:
        return ()
    return tuple([name for name in wanted if name.removeprefix("CAP_") not in held])
