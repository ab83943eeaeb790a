"""Portable PDBs: which line the IL of a method comes from, and the names of its locals.

Source: dotnet/runtime, docs/design/specs/PortablePdb-Metadata.md and PE-COFF.md (the entries of
the debug directory).
"""

from __future__ import annotations

import os
import zlib

from fetchc.debuginfo.dotnet.image.pe import map_file
from fetchc.debuginfo.dotnet.metadata.tables import Metadata, compressed
from fetchc.debuginfo.safe_open import is_regular
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.image.pe import Pe

__all__ = ["LocalName", "PortablePdb", "SequencePoint", "pdb_of"]

DEBUG_DIRECTORY, ENTRY_BYTES, MOST_ENTRIES = 6, 28, 32
CODEVIEW, EMBEDDED = 2, 17
HIDDEN_LINE = 0xFEEFEE  # of compiler-made code
HIDDEN_VARIABLE = 1
LARGEST = 1 << 28  # bytes of an embedded PDB
MOST_POINTS = 1 << 16


class SequencePoint(Record):
    """The IL from ``il`` on comes from a line of the document of that row; 0 where from none."""

    il: int
    document: int
    line: int


class LocalName(Record):
    """The name of the local in slot ``slot``, for the IL from ``start`` up to ``end``."""

    slot: int
    name: str
    start: int
    end: int


class PortablePdb:
    """The debug information of one assembly; raises DebugInfoError FC0904 where it is broken."""

    __slots__ = ("_files", "_metadata")

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._files: dict[int, str] = {}

    def file(self, document: int) -> str:
        """The path of a document, as the compiler was given it."""
        found = self._files.get(document)
        if found is None:
            name = self._metadata.blob(self._metadata.row("Document", document)[0])
            separator, at, parts = name[:1].strip(b"\0"), 1, []
            while at < len(name):
                part, at = compressed(name, at)
                parts.append(self._metadata.blob(part) if part else b"")
            found = separator.join(parts).decode("utf-8", "surrogateescape")
            self._files[document] = found
        return found

    def methods(self) -> range:
        """Rows of the methods that something may be known of."""
        return range(1, self._metadata.count("MethodDebugInformation") + 1)

    def documents(self, method: int) -> int:
        """The row of the document that all of a method is in; 0 where there are several."""
        return self._metadata.row("MethodDebugInformation", method)[0]

    def points(self, method: int) -> list[SequencePoint]:
        """Where lines begin in a method's IL, in order."""
        if not 0 < method <= self._metadata.count("MethodDebugInformation"):
            return []
        document, blob = self._metadata.row("MethodDebugInformation", method)
        return _points(self._metadata, self._metadata.blob(blob), document) if blob else []

    def locals(self, method: int) -> list[LocalName]:
        """The locals of a method that have names, in the order of their scopes."""
        metadata, found = self._metadata, []
        first = 1
        low, high = 1, metadata.count("LocalScope") + 1
        while low < high:  # scopes are sorted by their method
            middle = (low + high) // 2
            if metadata.row("LocalScope", middle)[0] < method:
                low = middle + 1
            else:
                high = middle
        for first in range(low, metadata.count("LocalScope") + 1):
            row = metadata.row("LocalScope", first)
            if row[0] != method:
                break
            for each in metadata.span("LocalScope", first, 2, "LocalVariable"):
                attributes, slot, name = metadata.row("LocalVariable", each)
                if not attributes & HIDDEN_VARIABLE:
                    start, size = row[4], row[5]
                    found.append(LocalName(slot, metadata.text(name), start, start + size))
        return found


def _points(metadata: Metadata, blob: bytes, document: int) -> list[SequencePoint]:
    def broken(what: str) -> DebugInfoError:
        return DebugInfoError("FC0904", metadata.path, what, "sequence points")

    at = 0

    def number(signed: bool = False) -> int:
        nonlocal at
        start = at
        value, at = compressed(blob, at)
        if at > len(blob):
            raise broken("sequence points that break off")
        if not signed:
            return value
        # Rotated: the sign is the lowest bit.
        bits = {1: 6, 2: 13, 4: 28}[at - start]
        return (value >> 1) - (1 << bits) if value & 1 else value >> 1

    number()  # the signature of the locals
    if not document:
        document = number()
    found: list[SequencePoint] = []
    il, line, column, seen = 0, 0, 0, False
    while at < len(blob):
        step = number()
        if found and not step:
            document = number()
            continue
        il = il + step
        lines = number()
        columns = number(signed=lines > 0)
        if not lines and not columns:
            found.append(SequencePoint(il, 0, HIDDEN_LINE))
        elif not seen:
            line, column, seen = number(), number(), True
            found.append(SequencePoint(il, document, line))
        else:
            line, column = line + number(signed=True), column + number(signed=True)
            found.append(SequencePoint(il, document, line))
        if len(found) > MOST_POINTS:
            raise broken("too many sequence points")
    return found


def pdb_of(image: Pe) -> PortablePdb | None:
    """What is in an image, or of the same build beside it (``app.pdb``); None where neither is."""
    wanted, embedded = b"", None
    if len(image.directories) > DEBUG_DIRECTORY and image.directories[DEBUG_DIRECTORY][1]:
        address, size = image.directories[DEBUG_DIRECTORY]
        cursor = image.cursor(address, "debug directory", size)
        for _ in range(min(size // ENTRY_BYTES, MOST_ENTRIES)):
            cursor.skip(12)
            kind, length, _, at = (cursor.u32() for _ in range(4))
            if kind == CODEVIEW:
                entry = image.at(at, "CodeView entry", length)
                if entry.take(4) == b"RSDS":
                    wanted = entry.take(16)
            elif kind == EMBEDDED:
                embedded = (at, length)
    if embedded is not None:
        data = _inflated(image, *embedded)
        return PortablePdb(Metadata(image.path, data, 0, len(data)))
    beside = os.path.splitext(image.path)[0] + ".pdb"
    if not wanted or not is_regular(beside):
        return None
    data = map_file(beside)[:LARGEST]
    if not data.startswith(b"BSJB"):
        return None  # the older format of Windows
    metadata = Metadata(beside, data, 0, len(data))
    return PortablePdb(metadata) if metadata.pdb_id[:16] == wanted else None


def _inflated(image: Pe, at: int, length: int) -> bytes:
    entry = image.at(at, "embedded PDB", length)
    if entry.take(4) != b"MPDB":
        raise entry.error("no embedded PDB")
    size = entry.u32()
    if size > LARGEST:
        raise entry.error(f"an embedded PDB of {size} bytes")
    try:
        data = zlib.decompressobj(-15).decompress(entry.take(length - 8), size)
    except zlib.error:
        raise entry.error("an embedded PDB that does not inflate") from None
    if len(data) != size:
        raise entry.error(f"an embedded PDB of {len(data)} bytes, not {size}")
    return data
