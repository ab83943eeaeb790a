"""Single-file programs: images of .NET behind the ELF file that starts them.

The host has the manifest's offset in front of a signature of 32 bytes. Source: dotnet/runtime,
src/native/corehost/bundle/ (header.h, manifest.h) and
Microsoft.NET.HostModel/Bundle/Manifest.cs; read from bundles of .NET 8, 9 and 10 (version 6).
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import Cursor
from fetchc.debuginfo.dotnet.image.pe import Pe, map_file
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import mmap

__all__ = ["ASSEMBLY", "Bundle", "Entry", "bundle_of"]

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

    __slots__ = ("data", "entries", "path")

    def __init__(self, path: str, data: mmap.mmap | bytes, header: int) -> None:
        self.path = path
        self.data = data
        cursor = Cursor(path, "bundle manifest", memoryview(data), min(header, len(data)))
        major, _, count = cursor.u32(), cursor.u32(), cursor.u32()
        if major < OLDEST_IN_PLACE:
            raise DebugInfoError(
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
            raise DebugInfoError(
                "FC0905",
                self.path,
                f"`{entry.name}` is compressed in it, and no probe can be set on what is unpacked",
                help="publish it with `-p:EnableCompressionInSingleFile=false`",
            )
        return Pe(self.path, self.data, entry.offset, entry.size)

    def names(self) -> list[str]:
        """The names of its images, without ``.dll``."""
        listed = [entry for entry in self.entries.values() if entry.kind == ASSEMBLY]
        return sorted(entry.name.removesuffix(".dll") for entry in listed)


def bundle_of(path: str) -> Bundle | None:
    """The bundle that a file is; None where it is none."""
    data = map_file(path)
    at = data.find(SIGNATURE)
    if at < 8:
        return None
    header = int.from_bytes(data[at - 8 : at], "little")
    return Bundle(path, data, header) if header else None


def _entry(cursor: Cursor, major: int) -> Entry:
    offset, size = cursor.u64(), cursor.u64()
    packed = cursor.u64() if major >= WITH_COMPRESSION else 0
    kind, name = cursor.u8(), _text(cursor)
    if offset + (packed or size) > cursor.end:
        raise cursor.error(f"the file `{name}` runs past the end")
    return Entry(name, offset, size, bool(packed), kind)


def _text(cursor: Cursor) -> str:
    return cursor.take(cursor.uleb()).decode("utf-8", "replace")
