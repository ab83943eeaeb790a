"""Reads the headers of a portable executable, and maps its addresses to file offsets.

Source: ECMA-335, partition II, section 25; the PE format of Microsoft. ReadyToRun images for
Linux align sections to 0x200 in memory and push each up by another multiple of 0x10000, so the
distance of address and file offset is a section's own.
"""

from __future__ import annotations

import mmap
import os

from fetchc.ceilings import holes
from fetchc.debuginfo.byte_reader import Cursor, decode_number
from fetchc.debuginfo.safe_open import file_identity, open_regular
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address, ByteSize, FileOffset
from fetchc.record import Record

__all__ = [
    "ASSEMBLY",
    "Bundle",
    "Entry",
    "NotSupported",
    "Pe",
    "PeSection",
    "bundle_of",
    "map_file",
]

WIDE = 0x20B  # magic of the optional header of PE32+
DIRECTORIES = 16
MOST_UNSIZED = 1 << 20  # bytes of a file that states no size
CLI = 14  # data directory of the CLI header
SECTION_BYTES = 40
# The machine is XOR-ed with a tag of the operating system where native code is for that.
# Source: dotnet/runtime, docs/design/coreclr/botr/readytorun-format.md.
SYSTEMS = {0: "windows", 0x7B79: "linux", 0x4644: "apple", 0xADC4: "freebsd", 0x1993: "netbsd"}
MACHINES = {0x8664: "x86_64", 0xAA64: "aarch64", 0x14C: "i386", 0x1C4: "arm"}


class NotSupported(DebugInfoError):
    """The file is well-formed, and uses a feature that is not supported (FC0905)."""


class PeSection(Record):
    """A section: bytes of the file that are mapped at an address relative to the image."""

    name: str
    address: Address
    memory_size: ByteSize
    offset: FileOffset
    file_size: ByteSize


def map_file(path: str) -> tuple[mmap.mmap | bytes, str]:
    """The bytes of a file, and what tells it from all others; raises DebugInfoError FC0901."""
    try:
        handle, status = open_regular(path)
        with os.fdopen(handle, "rb") as file:
            if what := holes(status):
                raise DebugInfoError("FC0905", path, what, help="name a file without holes")
            if not status.st_size:
                return file.read(MOST_UNSIZED), ""  # of /proc
            found = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            return found, file_identity(status)
    except OSError as refused:
        raise DebugInfoError.of(path, refused) from None


class Pe:
    """A mapped PE file, or one inside a bundle: ``start`` is where it begins in the file.

    ``machine`` is a key of targets/arch or empty, ``system`` whom its native code is for;
    ``identity`` is that of the file.
    Raises DebugInfoError FC0902 where the bytes are none, FC0904 where they are broken.
    """

    __slots__ = (
        "data", "directories", "identity", "machine", "path", "sections", "size", "start",
        "system", "view",
    )  # fmt: skip

    def __init__(
        self,
        path: str,
        data: mmap.mmap | bytes,
        start: int = 0,
        size: int | None = None,
        identity: str = "",
    ) -> None:
        self.path = path
        self.identity = identity
        self.data = data
        self.view = memoryview(data)
        self.start = start
        self.size = len(data) - start if size is None else size
        if bytes(data[start : start + 2]) != b"MZ":
            raise DebugInfoError("FC0902", path, "not a portable executable")
        header = self.at(self._number(0x3C, 4), "PE header")
        if header.take(4) != b"PE\0\0":
            raise DebugInfoError("FC0902", path, "not a portable executable")
        machine, count = header.u16(), header.u16()
        header.skip(12)
        optional = header.u16()
        header.skip(2)
        first = header.offset + optional
        wide = header.u16() == WIDE
        header.skip((112 if wide else 96) - 6)
        listed = min(header.u32(), DIRECTORIES)
        self.directories = tuple(
            [(Address(header.u32()), ByteSize(header.u32())) for _ in range(listed)]
        )
        self.sections = self._sections(first - start, count)
        self.machine, self.system = "", ""
        for tag, system in SYSTEMS.items():
            if machine ^ tag in MACHINES:
                self.machine, self.system = MACHINES[machine ^ tag], system

    def _number(self, offset: int, size: int) -> int:
        return self.at(offset, "DOS header").unsigned(size)

    def _sections(self, offset: int, count: int) -> tuple[PeSection, ...]:
        cursor = self.at(offset, "PE sections")
        found = []
        for _ in range(count):
            name = cursor.take(8).rstrip(b"\0").decode("utf-8", "replace")
            memory, address, size, where = (cursor.u32() for _ in range(4))
            cursor.skip(SECTION_BYTES - 24)
            found.append(
                PeSection(
                    name, Address(address), ByteSize(memory), FileOffset(where), ByteSize(size)
                )
            )
        return tuple(found)

    def at(self, offset: int, what: str, size: int | None = None) -> Cursor:
        """A cursor at ``offset`` of the image; ``what`` names the place in messages."""
        end = self.start + self.size
        begin = self.start + offset
        if begin > end or offset < 0 or (size is not None and begin + size > end):
            raise DebugInfoError("FC0904", self.path, "past the end of the image", what, offset)
        return Cursor(self.path, what, self.view, begin, end if size is None else begin + size)

    def offset(self, address: int) -> FileOffset:
        """Where the byte at a relative address is in the image; FC0904 where nothing is."""
        for section in self.sections:
            behind = address - section.address
            if 0 <= behind < section.file_size:
                return FileOffset(section.offset + behind)
        what = f"no section has bytes of the file at {address:#x}"
        raise DebugInfoError("FC0904", self.path, what, "PE sections")

    def address(self, offset: int) -> Address:
        """The relative address of a byte of the image; FC0904 where it is mapped nowhere."""
        for section in self.sections:
            behind = offset - section.offset
            if 0 <= behind < section.file_size:
                return Address(section.address + behind)
        raise DebugInfoError("FC0904", self.path, f"{offset:#x} is in no section", "PE sections")

    def cursor(self, address: int, what: str, size: int | None = None) -> Cursor:
        """A cursor at a relative address."""
        return self.at(self.offset(address), what, size)

    @property
    def cli(self) -> tuple[Address, ByteSize] | None:
        """Address and size of the CLI header; None where the file is no .NET image."""
        if len(self.directories) <= CLI or not self.directories[CLI][1]:
            return None
        return self.directories[CLI]


# ------------------------------------------------------------------------------
# Single-file programs: images of .NET after the ELF file that starts them.
#
# The host has the manifest's offset before a signature of 32 bytes. Source: dotnet/runtime,
# src/native/corehost/bundle/ (header.h, manifest.h) and
# Microsoft.NET.HostModel/Bundle/Manifest.cs; read from bundles of .NET 8, 9 and 10 (version 6).

# SHA-256 of ".net core bundle".
SIGNATURE = bytes.fromhex("8b1202b96a612038727b930214d7a03213f5b9e6efae3318ee3b2dce24b36aae")
OLDEST_IN_PLACE = 2  # .NET 5; those of .NET Core 3 are unpacked to a folder when they start
WITH_COMPRESSION = 6
MOST_ENTRIES = 10_000
ASSEMBLY = 1


class Entry(Record):
    """A file of a bundle; ``compressed``: it is unpacked to memory that has no file."""

    name: str
    offset: int
    size: int
    compressed: bool
    kind: int


class Bundle:
    """The manifest of a bundle: its files by name."""

    __slots__ = ("data", "entries", "identity", "path")

    def __init__(self, path: str, data: mmap.mmap | bytes, header: int, identity: str = "") -> None:
        self.path = path
        self.identity = identity
        self.data = data
        cursor = Cursor(path, "bundle manifest", memoryview(data), min(header, len(data)))
        major, _, count = cursor.u32(), cursor.u32(), cursor.u32()
        if major < OLDEST_IN_PLACE:
            raise NotSupported(
                "FC0905",
                path,
                "a bundle of .NET Core 3 is unpacked when it starts",
                help="name the unpacked image, under ~/.net or DOTNET_BUNDLE_EXTRACT_BASE_DIR",
            )
        if count > MOST_ENTRIES:
            raise cursor.error(f"{count} files")
        _text(cursor)  # the bundle's id
        cursor.skip(40)  # places of deps.json and runtimeconfig.json, flags
        self.entries = {
            entry.name: entry for entry in (_entry(cursor, major) for _ in range(count))
        }

    def assembly(self, name: str) -> Entry | None:
        """The image of that name, with or without ``.dll``; None where there is none."""
        for entry in self.entries.values():
            if entry.kind == ASSEMBLY and name in (entry.name, entry.name.removesuffix(".dll")):
                return entry
        return None

    def image(self, entry: Entry) -> Pe:
        """The headers of an image; raises DebugInfoError FC0905 where it is compressed."""
        if entry.compressed:
            raise NotSupported(
                "FC0905",
                self.path,
                f"`{entry.name}` is compressed in it, and no probe can be set on what is unpacked",
                help="publish it with `-p:EnableCompressionInSingleFile=false`",
            )
        return Pe(self.path, self.data, entry.offset, entry.size, self.identity)

    def names(self) -> list[str]:
        """The names of its images, without ``.dll``."""
        listed = [entry for entry in self.entries.values() if entry.kind == ASSEMBLY]
        return sorted(entry.name.removesuffix(".dll") for entry in listed)


def bundle_of(path: str) -> Bundle | None:
    """The bundle that a file is; None where it is none."""
    data, identity = map_file(path)
    at = data.find(SIGNATURE)
    if at < 8:
        return None
    header = decode_number(data[at - 8 : at], True)
    return Bundle(path, data, header, identity) if header else None


def _entry(cursor: Cursor, major: int) -> Entry:
    offset, size = cursor.u64(), cursor.u64()
    packed = cursor.u64() if major >= WITH_COMPRESSION else 0
    kind, name = cursor.u8(), _text(cursor)
    if offset + (packed or size) > cursor.end:
        raise cursor.error(f"the file `{name}` runs past the end")
    return Entry(name, offset, size, bool(packed), kind)


def _text(cursor: Cursor) -> str:
    return cursor.take(cursor.uleb()).decode("utf-8", "replace")
