"""The headers of one mapped ELF file, of either class and byte order.

Source: System V gABI, chapters 4 and 5 (file, section and program headers, notes).
"""

from __future__ import annotations

import mmap
import os
from mmap import MADV_DONTNEED, PAGESIZE

from fetchc.ceilings import holes
from fetchc.debuginfo.byte_reader import Cursor, decode_number, record_layout
from fetchc.debuginfo.environment import DEFAULT
from fetchc.debuginfo.safe_open import file_identity, open_regular
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address, ByteSize, FileOffset
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from struct import Struct
    from typing import TypeVar

    from fetchc.debuginfo.elf.compressed import Inflater, Inflation
    from fetchc.debuginfo.elf.elf_file import Elf
    from fetchc.debuginfo.environment import Environment

    Buffer = bytes | memoryview
    Made = TypeVar("Made")

__all__ = [
    "SHT_NOBITS",
    "Image",
    "OtherFormat",
    "Section",
    "SectionHeader",
    "Segment",
    "ThreadBlock",
    "UnreadableFile",
    "architecture_of",
    "build_id_in",
    "loaded_module",
]

# ------------------------------------------------------------------------------
# One section of a file, inflated as far as it is read.
#
# Inflating is 60 to 90 % of a cold query on a compressed file, and most questions end inside one
# unit, so a section gives its first bytes without inflating the rest.

_STRING_GUESS = 256  # bytes looked at first for a string's end


class Section:
    """Content of a section; ``size`` is of the decompressed bytes.

    A plain section is a window on the mapped file and copies only what is asked for. A
    compressed one has an ``inflater``, which keeps what it has inflated so far.
    """

    __slots__ = ("_available", "_base", "_inflater", "_map", "little", "name", "path", "size")

    def __init__(
        self,
        path: str,
        name: str,
        little: bool,
        mapped: mmap.mmap,
        base: int,
        size: int,
        inflater: Inflater | None = None,
    ) -> None:
        self.path = path
        self.name = name
        self.little = little
        self.size = size
        self._map = mapped
        self._base = base
        self._inflater = inflater
        self._available: Buffer = b""

    def upto(self, limit: int | None = None) -> Buffer:
        """At least the first ``limit`` bytes (all if None), or fewer where the section ends."""
        wanted = self.size if limit is None or limit > self.size else limit
        have = len(self._available)
        if have >= wanted:
            return self._available
        if self._inflater is None:
            self._available = memoryview(self._map)[self._base : self._base + self.size]
        else:
            self._available = self._inflater.upto(wanted)
        return self._available

    def reaching(self, start: int, end: int) -> Buffer:
        """At least the first ``end`` bytes, for one who reads from ``start`` on alone."""
        return self.upto(end) if self._inflater is None else self._inflater.reaching(start, end)

    def bytes_between(self, start: int, end: int) -> bytes:
        """A copy of [start, end); FC0904 where that is outside the section."""
        if not 0 <= start <= end <= self.size:
            raise self.error(f"bytes {start:#x} to {end:#x} are outside the section", start)
        if self._inflater is None:
            return self._map[self._base + start : self._base + end]
        return bytes(self._inflater.view(start, end))

    def unsigned(self, offset: int, size: int) -> int:
        """The unsigned number of ``size`` bytes at ``offset``; FC0904 where that is outside."""
        raw = self.bytes_between(offset, offset + size)
        return decode_number(raw, self.little)

    def find_all(self, needle: bytes) -> Iterator[int]:
        """Offsets of every occurrence of ``needle``, overlapping ones too, in order."""
        if not needle:
            return
        at = -1
        while True:
            at = self._find(needle, at + 1, self.size)
            if at < 0:
                return
            yield at

    def _find(self, needle: bytes, start: int, end: int) -> int:
        if self._inflater is not None:
            return self._inflater.find(needle, start, end)
        at = self._map.find(needle, self._base + start, self._base + end)
        return at - self._base if at >= 0 else at

    def window(self, offset: int, size: int) -> Section:
        """``size`` bytes from ``offset`` as a section of their own; FC0904 where outside."""
        if offset + size > self.size:
            raise self.error(f"a part of {size} bytes runs past the end", offset)
        inner = None if self._inflater is None else _InflaterWindow(self._inflater, offset)
        start = self._base + offset
        return Section(self.path, self.name, self.little, self._map, start, size, inner)

    def cstring(self, offset: int) -> bytes:
        """The NUL-terminated string at ``offset``, without its NUL."""
        if not 0 <= offset < self.size:
            raise self.error("string outside the section", offset)
        # How far to inflate is unknown; a plain section is searched at once.
        guess = self.size if self._inflater is None else _STRING_GUESS
        stop = offset
        while True:
            start, stop = stop, min(offset + guess, self.size)
            end = self._find(b"\0", start, stop)
            if end >= 0:
                return self.bytes_between(offset, end)
            if stop == self.size:
                raise self.error("string without an end", offset)
            guess *= 4

    def release(self) -> None:
        """Give back the memory of a plain section's pages; they are read again when needed."""
        if self._inflater is None:
            start = self._base & -PAGESIZE
            self._map.madvise(MADV_DONTNEED, start, self._base + self.size - start)

    def cursor(self, offset: int, end: int | None = None) -> Cursor:
        """A cursor at ``offset`` that inflates as it reads, up to ``end`` or the section's end."""
        stop = self.size if end is None else min(end, self.size)
        return Cursor(self.path, self.name, self._available, offset, stop, self.little, self)

    def error(self, what: str, offset: int | None = None) -> DebugInfoError:
        """A located FC0904 for ``raise``."""
        return DebugInfoError("FC0904", self.path, what, self.name, offset)


class _InflaterWindow:
    """An inflater of what another one gives from ``offset`` on."""

    __slots__ = ("_offset", "_whole")

    def __init__(self, whole: Inflater, offset: int) -> None:
        self._whole = whole
        self._offset = offset

    def upto(self, size: int) -> memoryview:
        """At least the first ``size`` bytes."""
        return self._whole.upto(self._offset + size)[self._offset :]

    def view(self, start: int, end: int) -> memoryview:
        """The bytes from ``start`` to ``end``."""
        return self._whole.view(self._offset + start, self._offset + end)

    def reaching(self, start: int, end: int) -> memoryview:
        """At least the first ``end`` bytes, for one who reads from ``start`` on alone."""
        return self._whole.reaching(self._offset + start, self._offset + end)[self._offset :]

    def find(self, needle: bytes, start: int, end: int) -> int:
        """Where ``needle`` is between ``start`` and ``end``; -1 if nowhere."""
        found = self._whole.find(needle, self._offset + start, self._offset + end)
        return found - self._offset if found >= 0 else found


_PT_LOAD, _PT_NOTE, _PT_TLS = 1, 4, 7
SHT_NOBITS = 8
_SHF_COMPRESSED = 0x800
_PN_XNUM = 0xFFFF  # e_phnum: the number is in sh_info of section 0
_SHN_XINDEX = 0xFFFF  # e_shstrndx: the number is in sh_link of section 0
_NT_GNU_BUILD_ID = 3

# After e_ident: type machine version entry phoff shoff flags ehsize phentsize phnum shentsize
# shnum shstrndx.
_HEADER = {1: "HHIIIIIHHHHHH", 2: "HHIQQQIHHHHHH"}
# name type flags addr offset size link info addralign entsize
_SECTION = {1: "10I", 2: "IIQQQQIIQQ"}
# 32 bits: type offset vaddr paddr filesz memsz flags align; 64: type flags offset ...
_SEGMENT = {1: "8I", 2: "IIQQQQQQ"}


class Segment(Record):
    """A PT_LOAD: bytes of the file that are mapped at an address. ``flags``: PF_R 4, W 2, X 1."""

    offset: FileOffset
    address: Address
    file_size: ByteSize
    memory_size: ByteSize
    flags: int


class ThreadBlock(Record):
    """A PT_TLS: what each thread has a copy of, ``size`` bytes in memory."""

    address: Address
    size: ByteSize
    alignment: int


class SectionHeader(Record):
    """The fields of a section header that somebody reads."""

    name: str
    kind: int
    flags: int
    address: Address
    offset: FileOffset
    size: ByteSize
    link: int


class UnreadableFile(DebugInfoError):
    """The file cannot be opened or mapped."""


class OtherFormat(DebugInfoError):
    """The file is not ELF; another reader may take it."""


class Image:
    """One file: what its headers say, and its sections by name.

    ``headers`` are in the order of the file. A ``.zdebug_x`` section is found as ``.debug_x``.
    A file that is inside of another comes as its ``content``, and ``path`` is what errors call it.
    A path below ``root`` is resolved in there (:mod:`fetchc.debuginfo.safe_open`).
    """

    __slots__ = (
        "_by_name",
        "_inflation",
        "_notes",
        "_opened",
        "bits64",
        "entry",
        "environment",
        "flags",
        "headers",
        "kind",
        "little",
        "machine",
        "map",
        "path",
        "segments",
        "status",
        "thread_block",
    )

    def __init__(
        self,
        path: str,
        content: bytes | None = None,
        root: str = "",
        environment: Environment = DEFAULT,
    ) -> None:
        self.path = path
        self.environment = environment
        self.status: os.stat_result | None = None  # None of what is inside of another file
        if content is None:
            self.map, self.status = _map(path, root)
        else:
            self.map = mmap.mmap(-1, max(len(content), 1))
            self.map.write(content)
        head = self.map[:16]
        if len(head) < 16 or head[:4] != b"\x7fELF":
            raise OtherFormat("FC0902", path, "not an ELF file", reason="not an ELF file")
        if self.status is not None and (what := holes(self.status)):
            raise DebugInfoError("FC0905", path, what, help="name a file without holes")
        width, order = head[4], head[5]
        if width not in (1, 2) or order not in (1, 2):
            raise self._error(f"unknown ELF class {width} or byte order {order}")
        self.bits64 = width == 2
        self.little = order == 1
        header = self._struct(_HEADER[width])
        if len(self.map) < 16 + header.size:
            raise self._error("truncated ELF header")
        fields = header.unpack_from(self.map, 16)
        self.kind: int = fields[0]
        self.machine: int = fields[1]
        self.entry = Address(fields[3])
        phoff, shoff = fields[4:6]
        self.flags: int = fields[6]
        phsize, phnum, shsize, shnum, strndx = fields[8:13]
        # A file with more than 65,280 sections or segments keeps the numbers in section 0.
        first = self._section_headers(shoff, shsize, 1)[0] if shoff else (0,) * 10
        shnum = shnum or first[5]
        phnum = first[7] if phnum == _PN_XNUM else phnum
        strndx = first[6] if strndx == _SHN_XINDEX else strndx
        self.headers = self._named(self._section_headers(shoff, shsize, shnum), strndx)
        self._by_name: dict[str, SectionHeader] = {}
        for found in self.headers:
            name = found.name
            if name.startswith(".zdebug_"):
                name = "." + name[2:]
            self._by_name.setdefault(name, found)
        self._opened: dict[str, Section | None] = {}
        self._inflation: Inflation | None = None
        self.thread_block: ThreadBlock | None = None
        self.segments, self._notes = self._program_headers(phoff, phsize, phnum)

    def _error(self, what: str, offset: int | None = None) -> DebugInfoError:
        section = None if offset is None else "ELF headers"
        return DebugInfoError("FC0904", self.path, what, section, offset)

    def _struct(self, layout: str) -> Struct:
        return record_layout(self.little, layout)

    def _table(self, offset: int, entry: int, count: int, layout: str) -> list[tuple[int, ...]]:
        record = self._struct(layout)
        if count and (entry < record.size or offset + entry * count > len(self.map)):
            raise self._error(f"header table of {count} entries runs past the end", offset)
        return [record.unpack_from(self.map, offset + i * entry) for i in range(count)]

    def _section_headers(self, offset: int, entry: int, count: int) -> list[tuple[int, ...]]:
        if not offset:
            return []
        return self._table(offset, entry, count, _SECTION[2 if self.bits64 else 1])

    def _named(self, table: list[tuple[int, ...]], names: int) -> tuple[SectionHeader, ...]:
        if not table:
            return ()
        if names >= len(table):
            raise self._error(f"section name table {names} does not exist")
        base, size = table[names][4], table[names][5]
        strings = self.map[base : base + size] if table[names][1] != SHT_NOBITS else b""
        headers = []
        for name, kind, flags, address, offset, length, link, _, _, _ in table:
            end = strings.find(b"\0", name)
            if end < 0:
                raise self._error(f"section name {name:#x} is outside the name table")
            text = strings[name:end].decode("utf-8", "surrogateescape")
            headers.append(
                SectionHeader(
                    text,
                    kind,
                    flags,
                    Address(address),
                    FileOffset(offset),
                    ByteSize(length),
                    link,
                )
            )
        return tuple(headers)

    def _program_headers(
        self, offset: int, entry: int, count: int
    ) -> tuple[tuple[Segment, ...], tuple[tuple[int, int, int], ...]]:
        loads, notes = [], []
        for fields in self._table(offset, entry, count, _SEGMENT[2 if self.bits64 else 1]):
            if self.bits64:
                kind, flags, at, address, _, in_file, in_memory, alignment = fields
            else:
                kind, at, address, _, in_file, in_memory, flags, alignment = fields
            if kind == _PT_LOAD:
                loads.append(
                    Segment(
                        FileOffset(at),
                        Address(address),
                        ByteSize(in_file),
                        ByteSize(in_memory),
                        flags,
                    )
                )
            elif kind == _PT_NOTE:
                notes.append((at, in_file, alignment))
            elif kind == _PT_TLS:
                self.thread_block = ThreadBlock(Address(address), ByteSize(in_memory), alignment)
        return tuple(loads), tuple(notes)

    def header(self, name: str) -> SectionHeader | None:
        """The first section header of that name."""
        return self._by_name.get(name)

    def open_section(self, name: str) -> Section | None:
        """The section of that name; None when absent or without bytes in the file."""
        if name not in self._opened:
            header = self._by_name.get(name)
            missing = header is None or header.kind == SHT_NOBITS
            self._opened[name] = None if header is None or missing else self.content(header)
        return self._opened[name]

    def window(self, name: str, offset: int, size: int) -> Section:
        """Bytes of the file that no section header need name, as if they were a section."""
        return Section(self.path, name, self.little, self.map, offset, size)

    def content(self, header: SectionHeader) -> Section:
        """The bytes of one section, decompressed as they are read."""
        start, size = header.offset, int(header.size)
        if start + size > len(self.map):
            raise DebugInfoError(
                "FC0904", self.path, "the section runs past the end of the file", header.name
            )
        inflater: Inflater | None = None
        if header.flags & _SHF_COMPRESSED or header.name.startswith(".zdebug_"):
            from fetchc.debuginfo.elf.compressed import inflated

            size, inflater = inflated(self, header)
        return Section(self.path, header.name, self.little, self.map, start, size, inflater)

    @property
    def inflation(self) -> Inflation:
        """What all of its compressed sections may come to."""
        if self._inflation is None:
            from fetchc.debuginfo.elf.compressed import Inflation

            self._inflation = Inflation(self.path, len(self.map))
        return self._inflation

    def identity(self) -> str:
        """The :func:`~fetchc.debuginfo.safe_open.file_identity` of the file that is mapped."""
        assert self.status is not None
        return file_identity(self.status)

    def build_id(self) -> str | None:
        """NT_GNU_BUILD_ID in lower-case hex, from its section, else from the PT_NOTE segments."""
        section = self._by_name.get(".note.gnu.build-id")
        areas = list(self._notes)
        if section is not None and section.kind != SHT_NOBITS:
            areas.insert(0, (section.offset, section.size, 4))
        for offset, size, alignment in areas:
            end = min(offset + size, len(self.map))
            found = build_id_in(self.map, self.little, offset, end, 8 if alignment == 8 else 4)
            if found:
                return found
        return None


def build_id_in(
    notes: bytes | mmap.mmap, little: bool, at: int, end: int, alignment: int = 4
) -> str | None:
    """NT_GNU_BUILD_ID of the notes from ``at`` to ``end``, in lower-case hex; None without one."""
    note = record_layout(little, "III")
    while at + note.size <= end:
        name_size, content_size, kind = note.unpack_from(notes, at)
        name = at + note.size
        content = name + _aligned(name_size, alignment)
        if content + content_size > end:
            return None  # not a list of notes, whatever the header says
        if kind == _NT_GNU_BUILD_ID and notes[name : name + name_size] == b"GNU\0":
            return notes[content : content + content_size].hex()
        at = content + _aligned(content_size, alignment)
    return None


def _aligned(size: int, alignment: int) -> int:
    return (size + alignment - 1) & -alignment


def _map(path: str, root: str) -> tuple[mmap.mmap, os.stat_result]:
    try:
        handle, status = _with_room(lambda: open_regular(path, root))
    except OSError as refused:
        raise UnreadableFile.of(path, refused) from None
    except ValueError as refused:
        raise UnreadableFile("FC0901", path, f"cannot be read: {refused}") from None
    try:
        if status.st_size == 0:
            raise OtherFormat(
                "FC0902", path, "not an ELF file: it is empty", reason="not an ELF file"
            )
        try:
            return _with_room(lambda: _shared(handle)), status  # a mapping has a handle, too
        except OSError as refused:
            raise UnreadableFile.of(path, refused) from None
    finally:
        os.close(handle)


def _shared(handle: int) -> mmap.mmap:
    # A private mapping has the breakpoints of any tracer of the file (uprobes, valid_vma). The
    # kernel gives its own BTF in no other way (btf_sysfs_vmlinux_mmap, from 6.16 on).
    try:
        return mmap.mmap(handle, 0, mmap.MAP_SHARED, mmap.PROT_READ)
    except PermissionError:
        return mmap.mmap(handle, 0, mmap.MAP_PRIVATE, mmap.PROT_READ)


def _with_room(make: Callable[[], Made]) -> Made:
    # Programs that nobody uses any more are cycles: their files stay open, and mapped, until these
    # are found.
    try:
        return make()
    except OSError as refused:
        import errno
        import gc

        if refused.errno not in (errno.EMFILE, errno.ENOMEM):
            raise
        gc.collect()
        return make()


# ------------------------------------------------------------------------------
# Which machine a program is for.
#
# Source: https://www.sco.com/developers/gabi/latest/ch4.eheader.html and the psABIs.

# e_machine -> key of targets/arch; (key of 64-bit files, key of 32-bit files).
ARCHITECTURES = {
    3: ("", "i386"),
    8: ("mips64", "mips"),
    21: ("ppc64le", ""),
    22: ("s390x", "s390"),
    40: ("", "arm"),
    62: ("x86_64", "x32"),
    183: ("aarch64", "aarch64_ilp32"),
    243: ("riscv64", "riscv32"),
    258: ("loongarch64", ""),
}
RELOCATABLE = 1  # ET_REL
_CORE = 4  # ET_CORE


def architecture_of(elf: Elf) -> str:
    """The machine's key of ``targets/arch``; DebugInfoError FC0905 where none can be.

    A file that is not linked is no program: its addresses are not final. Nor is a core dump.
    """
    if elf.kind == _CORE:
        help = "name the program that it was dumped from: `file` shows it"
        raise DebugInfoError(
            "FC0905", elf.path, "a core dump, which has no code to probe", help=help
        )
    if elf.kind == RELOCATABLE:
        raise DebugInfoError(
            "FC0905",
            elf.path,
            "an object file or kernel module, whose addresses are not final",
            help=loaded_module(elf.path) or "name the program or library that it is linked into",
        )
    wide, narrow = ARCHITECTURES.get(elf.machine, ("", ""))
    key = wide if elf.word_bytes == 8 else narrow
    if key == "ppc64le" and not elf.little_endian:
        key = "ppc64"
    if not key:
        what = f"programs for machine {elf.machine} of the ELF registry are not read"
        raise DebugInfoError("FC0905", elf.path, what)
    return key


def loaded_module(path: str) -> str | None:
    """What to name in place of a kernel module's file, as it is or compressed; None of others."""
    import re

    found = re.search(r"([\w-]+)\.ko(\.(xz|gz|zst))?\Z", path)
    if found is None:
        return None
    return (
        f"name the module in a kernel that has loaded it: `-x kernel:{found[1].replace('-', '_')}`"
    )
