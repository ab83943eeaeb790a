"""The headers of one mapped ELF file, of either class and byte order.

Source: System V gABI, chapters 4 and 5 (file, section and program headers, notes).
"""

from __future__ import annotations

import mmap
import os
from stat import S_ISDIR, S_ISREG
from struct import Struct

from fetchc.debuginfo.elf.sections import Section
from fetchc.diag.errors import DebugInfoError
from fetchc.record import Record
from fetchc.units import Address, ByteSize, FileOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.debuginfo.elf.inflate import Inflater, StreamInflater

__all__ = ["Image", "SectionHeader", "Segment"]

_PT_LOAD, _PT_NOTE = 1, 4
_SHT_NOBITS = 8
_SHF_COMPRESSED = 0x800
_PN_XNUM = 0xFFFF  # e_phnum: the number is in sh_info of section 0
_SHN_XINDEX = 0xFFFF  # e_shstrndx: the number is in sh_link of section 0
_NT_GNU_BUILD_ID = 3
_ZLIB, _ZSTD = 1, 2  # ch_type
_WORTH_KEEPING = 1 << 17  # LEAST of fetchc.debuginfo.kept.sections: else it is not even imported

# After e_ident: type machine version entry phoff shoff flags ehsize phentsize phnum shentsize
# shnum shstrndx.
_HEADER = {1: "HHIIIIIHHHHHH", 2: "HHIQQQIHHHHHH"}
# name type flags addr offset size link info addralign entsize
_SECTION = {1: "10I", 2: "IIQQQQIIQQ"}
# 32 bits: type offset vaddr paddr filesz memsz flags align; 64: type flags offset ...
_SEGMENT = {1: "8I", 2: "IIQQQQQQ"}
_COMPRESSION = {1: "III", 2: "IIQQ"}  # type, (reserved,) size, addralign


class Segment(Record):
    """A PT_LOAD: bytes of the file that are mapped at an address. ``flags``: PF_R 4, W 2, X 1."""

    offset: FileOffset
    address: Address
    file_size: ByteSize
    memory_size: ByteSize
    flags: int


class SectionHeader(Record):
    """The fields of a section header that somebody reads."""

    name: str
    kind: int
    flags: int
    address: Address
    offset: FileOffset
    size: ByteSize
    link: int
    entry_size: ByteSize


class Image:
    """One file: what its headers say, and its sections by name.

    ``headers`` are in the order of the file. A ``.zdebug_x`` section is found as ``.debug_x``.
    A file that is inside of another comes as its ``content``, and ``path`` is what errors call it.
    """

    # Where what is dear is kept between runs; empty: nowhere. Of the whole process: the
    # command line sets it, a library does not write to a user's folders.
    cache_folder = ""
    # Who is told of what takes long, set in the same place.
    say: Callable[[str], None] | None = None
    # And of how much of it is done: bytes read, bytes in all.
    progress: Callable[[int, int], None] | None = None

    __slots__ = (
        "_by_name",
        "_notes",
        "_opened",
        "_status",
        "bits64",
        "entry",
        "flags",
        "headers",
        "kind",
        "little",
        "machine",
        "map",
        "path",
        "segments",
    )

    def __init__(self, path: str, content: bytes | None = None) -> None:
        self.path = path
        self._status: os.stat_result | None = None
        if content is None:
            self.map, self._status = _map(path)
        else:
            self.map = mmap.mmap(-1, max(len(content), 1))
            self.map.write(content)
        head = self.map[:16]
        if len(head) < 16 or head[:4] != b"\x7fELF":
            raise DebugInfoError("FC0902", path, "not an ELF file")
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
        self.segments, self._notes = self._program_headers(phoff, phsize, phnum)

    def _error(self, what: str, offset: int | None = None) -> DebugInfoError:
        section = None if offset is None else "ELF headers"
        return DebugInfoError("FC0904", self.path, what, section, offset)

    def _struct(self, layout: str) -> Struct:
        return Struct(("<" if self.little else ">") + layout)

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
        strings = self.map[base : base + size] if table[names][1] != _SHT_NOBITS else b""
        headers = []
        for name, kind, flags, address, offset, length, link, _, _, entry in table:
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
                    ByteSize(entry),
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
        return tuple(loads), tuple(notes)

    def header(self, name: str) -> SectionHeader | None:
        """The first section header of that name."""
        return self._by_name.get(name)

    def open_section(self, name: str) -> Section | None:
        """The section of that name; None when absent or without bytes in the file."""
        if name not in self._opened:
            header = self._by_name.get(name)
            missing = header is None or header.kind == _SHT_NOBITS
            self._opened[name] = None if header is None or missing else self.content(header)
        return self._opened[name]

    def window(self, name: str, offset: int, size: int) -> Section:
        """Bytes of the file that no section header need name, as if they were a section."""
        return Section(self.path, name, self.little, self.map, offset, size)

    def content(self, header: SectionHeader) -> Section:
        """The bytes of one section, decompressed as they are read."""
        start, size = header.offset, header.size
        end = start + size
        if end > len(self.map):
            raise DebugInfoError(
                "FC0904", self.path, "the section runs past the end of the file", header.name
            )
        inflater: Inflater | None = None
        inflated = int(size)
        if header.name.startswith(".zdebug_"):
            if size < 12 or self.map[start : start + 4] != b"ZLIB":
                raise DebugInfoError("FC0904", self.path, "no ZLIB header", header.name)
            from fetchc.debuginfo.elf.inflate import ZlibInflater

            inflated = int.from_bytes(self.map[start + 4 : start + 12], "big")
            found = ZlibInflater(self.path, header.name, self.map, start + 12, end, inflated)
            inflater = self._kept(header, inflated, lambda: found)
        elif header.flags & _SHF_COMPRESSED:
            inflated, inflater = self._compressed(header)
        return Section(self.path, header.name, self.little, self.map, start, inflated, inflater)

    def _compressed(self, header: SectionHeader) -> tuple[int, Inflater]:
        from fetchc.debuginfo.elf.inflate import ZlibInflater

        layout = self._struct(_COMPRESSION[2 if self.bits64 else 1])
        if header.size < layout.size:
            raise DebugInfoError("FC0904", self.path, "no compression header", header.name)
        fields = layout.unpack_from(self.map, header.offset)
        method, size = fields[0], fields[-2]
        start, end = header.offset + layout.size, header.offset + header.size
        if method == _ZLIB:
            found = ZlibInflater(self.path, header.name, self.map, start, end, size)
            return size, self._kept(header, size, lambda: found)
        if method == _ZSTD:
            from fetchc.debuginfo.elf.zstd import ZstdInflater

            packed = self.path, header.name, self.map, start, end
            return size, self._kept(header, size, lambda: ZstdInflater(*packed, size))
        raise DebugInfoError(
            "FC0905", self.path, f"compressed by an unknown method ({method})", header.name
        )

    def _kept(
        self, header: SectionHeader, size: int, made: Callable[[], StreamInflater]
    ) -> Inflater:
        if not self.cache_folder or size < _WORTH_KEEPING or self._status is None:
            return made()
        from fetchc.debuginfo.kept.sections import KeptSection

        # A stream of zlib ends in the checksum of what it inflates to.
        end = header.offset + header.size
        which = f"{header.name} {self.identity()} {header.offset} {header.size} {size}"
        key = f"{which} {self.map[end - 4 : end].hex()}"
        return KeptSection(self.cache_folder, self.build_id(), key, made)

    def identity(self) -> str:
        """What tells the very file from all others, and from itself before it was changed.

        A build-id and a checksum can be written into another one, the time of its last change
        cannot.
        """
        status = self._status
        assert status is not None
        where = f"{status.st_dev} {status.st_ino} {status.st_size}"
        return f"{where} {status.st_mtime_ns} {status.st_ctime_ns}"

    def build_id(self) -> str | None:
        """NT_GNU_BUILD_ID in lower-case hex, from its section, else from the PT_NOTE segments."""
        section = self._by_name.get(".note.gnu.build-id")
        areas = list(self._notes)
        if section is not None and section.kind != _SHT_NOBITS:
            areas.insert(0, (section.offset, section.size, 4))
        for offset, size, alignment in areas:
            found = self._build_id_in(offset, size, 8 if alignment == 8 else 4)
            if found:
                return found
        return None

    def _build_id_in(self, offset: int, size: int, alignment: int) -> str | None:
        end = min(offset + size, len(self.map))
        note = self._struct("III")
        while offset + note.size <= end:
            name_size, content_size, kind = note.unpack_from(self.map, offset)
            name = offset + note.size
            content = name + _aligned(name_size, alignment)
            if content + content_size > end:
                return None  # not a list of notes, whatever the header says
            if kind == _NT_GNU_BUILD_ID and self.map[name : name + name_size] == b"GNU\0":
                return self.map[content : content + content_size].hex()
            offset = content + _aligned(content_size, alignment)
        return None


def _aligned(size: int, alignment: int) -> int:
    return (size + alignment - 1) & -alignment


def _map(path: str) -> tuple[mmap.mmap, os.stat_result]:
    # O_NONBLOCK: opening a named pipe must not wait for a writer.
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as refused:
        what = refused.strerror if isinstance(refused, OSError) else str(refused)
        raise DebugInfoError("FC0901", path, f"cannot be read: {what}") from None
    try:
        status = os.fstat(handle)
        if S_ISDIR(status.st_mode):
            raise DebugInfoError("FC0901", path, "cannot be read: it is a directory")
        if not S_ISREG(status.st_mode):
            raise DebugInfoError("FC0901", path, "cannot be read: it is not a regular file")
        if status.st_size == 0:
            raise DebugInfoError("FC0902", path, "not an ELF file: it is empty")
        try:
            return mmap.mmap(handle, 0, prot=mmap.PROT_READ), status
        except OSError as refused:
            raise DebugInfoError("FC0901", path, f"cannot be read: {refused.strerror}") from None
    finally:
        os.close(handle)
