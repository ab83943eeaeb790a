"""ECMA-335 metadata: the streams of an assembly, its tables row by row, its heaps.

Nothing is read before it is asked for, but the headers that say where rows begin. Rows count
from 1, as tokens do. Source: ECMA-335, partition II, section 24.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from fetchc.debuginfo.byte_reader import number_at, read_compressed, record_layout
from fetchc.debuginfo.dotnet.portable_executable import NotSupported
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from mmap import mmap
    from struct import Struct

    from fetchc.debuginfo.dotnet.portable_executable import Pe

__all__ = ["CODED", "TABLES", "Metadata", "Token", "metadata_of"]

# ------------------------------------------------------------------------------
# The tables of .NET metadata: which columns each has, and what its coded columns point at.
#
# Columns: ``2`` and ``4`` are numbers of that many bytes, ``S`` a name, ``G`` a GUID, ``B`` a
# blob, ``@T`` a row of table T, any other word a coded index. Source: ECMA-335, partition II,
# sections 22 and 24.2.6; the last eight are of the portable PDB format (dotnet/runtime,
# PortablePdb-Metadata.md).

TABLES = {
    0x00: ("Module", "2 S G G G"),
    0x01: ("TypeRef", "ResolutionScope S S"),
    0x02: ("TypeDef", "4 S S TypeDefOrRef @Field @MethodDef"),
    0x03: ("FieldPtr", "@Field"),
    0x04: ("Field", "2 S B"),
    0x05: ("MethodPtr", "@MethodDef"),
    0x06: ("MethodDef", "4 2 2 S B @Param"),
    0x07: ("ParamPtr", "@Param"),
    0x08: ("Param", "2 2 S"),
    0x09: ("InterfaceImpl", "@TypeDef TypeDefOrRef"),
    0x0A: ("MemberRef", "MemberRefParent S B"),
    0x0B: ("Constant", "2 HasConstant B"),
    0x0C: ("CustomAttribute", "HasCustomAttribute CustomAttributeType B"),
    0x0D: ("FieldMarshal", "HasFieldMarshal B"),
    0x0E: ("DeclSecurity", "2 HasDeclSecurity B"),
    0x0F: ("ClassLayout", "2 4 @TypeDef"),
    0x10: ("FieldLayout", "4 @Field"),
    0x11: ("StandAloneSig", "B"),
    0x12: ("EventMap", "@TypeDef @Event"),
    0x13: ("EventPtr", "@Event"),
    0x14: ("Event", "2 S TypeDefOrRef"),
    0x15: ("PropertyMap", "@TypeDef @Property"),
    0x16: ("PropertyPtr", "@Property"),
    0x17: ("Property", "2 S B"),
    0x18: ("MethodSemantics", "2 @MethodDef HasSemantics"),
    0x19: ("MethodImpl", "@TypeDef MethodDefOrRef MethodDefOrRef"),
    0x1A: ("ModuleRef", "S"),
    0x1B: ("TypeSpec", "B"),
    0x1C: ("ImplMap", "2 MemberForwarded S @ModuleRef"),
    0x1D: ("FieldRVA", "4 @Field"),
    0x1E: ("EncLog", "4 4"),
    0x1F: ("EncMap", "4"),
    0x20: ("Assembly", "4 2 2 2 2 4 B S S"),
    0x21: ("AssemblyProcessor", "4"),
    0x22: ("AssemblyOS", "4 4 4"),
    0x23: ("AssemblyRef", "2 2 2 2 4 B S S B"),
    0x24: ("AssemblyRefProcessor", "4 @AssemblyRef"),
    0x25: ("AssemblyRefOS", "4 4 4 @AssemblyRef"),
    0x26: ("File", "4 S B"),
    0x27: ("ExportedType", "4 4 S S Implementation"),
    0x28: ("ManifestResource", "4 4 S Implementation"),
    0x29: ("NestedClass", "@TypeDef @TypeDef"),
    0x2A: ("GenericParam", "2 2 TypeOrMethodDef S"),
    0x2B: ("MethodSpec", "MethodDefOrRef B"),
    0x2C: ("GenericParamConstraint", "@GenericParam TypeDefOrRef"),
    0x30: ("Document", "B G B G"),
    0x31: ("MethodDebugInformation", "@Document B"),
    0x32: ("LocalScope", "@MethodDef @ImportScope @LocalVariable @LocalConstant 4 4"),
    0x33: ("LocalVariable", "2 2 S"),
    0x34: ("LocalConstant", "S B"),
    0x35: ("ImportScope", "@ImportScope B"),
    0x36: ("StateMachineMethod", "@MethodDef @MethodDef"),
    0x37: ("CustomDebugInformation", "HasCustomDebugInformation G B"),
}

_ATTRIBUTED = (
    "MethodDef Field TypeRef TypeDef Param InterfaceImpl MemberRef Module DeclSecurity Property "
    "Event StandAloneSig ModuleRef TypeSpec Assembly AssemblyRef File ExportedType "
    "ManifestResource GenericParam GenericParamConstraint MethodSpec"
)

# Name -> bits of the tag, tables by tag; `-` is a tag that is not used.
CODED = {
    name: (bits, tuple(tables.split()))
    for name, bits, tables in (
        ("TypeDefOrRef", 2, "TypeDef TypeRef TypeSpec"),
        ("HasConstant", 2, "Field Param Property"),
        ("HasCustomAttribute", 5, _ATTRIBUTED),
        ("HasFieldMarshal", 1, "Field Param"),
        ("HasDeclSecurity", 2, "TypeDef MethodDef Assembly"),
        ("MemberRefParent", 3, "TypeDef TypeRef ModuleRef MethodDef TypeSpec"),
        ("HasSemantics", 1, "Event Property"),
        ("MethodDefOrRef", 1, "MethodDef MemberRef"),
        ("MemberForwarded", 1, "Field MethodDef"),
        ("Implementation", 2, "File AssemblyRef ExportedType"),
        ("CustomAttributeType", 3, "- - MethodDef MemberRef -"),
        ("ResolutionScope", 2, "Module ModuleRef AssemblyRef TypeRef"),
        ("TypeOrMethodDef", 1, "TypeDef MethodDef"),
        (
            "HasCustomDebugInformation",
            5,
            f"{_ATTRIBUTED} Document LocalScope LocalVariable LocalConstant ImportScope",
        ),
    )
}


SIGNATURE = b"BSJB"
WIDE_STRINGS, WIDE_GUIDS, WIDE_BLOBS, EXTRA_DATA = 1, 2, 4, 0x40
MOST_STREAMS = 16
INDIRECT = ("FieldPtr", "MethodPtr", "ParamPtr")  # of images that were edited while running
LONGEST_NAME = 1 << 16  # bytes; no name of a real assembly comes near


class Token(Record):
    """A row of a table: ``number`` counts from 1, 0 is none."""

    table: str
    number: int


class _Table:
    __slots__ = ("columns", "count", "layout", "start")

    def __init__(self, start: int, layout: Struct, columns: tuple[str, ...], count: int) -> None:
        self.start = start
        self.layout = layout
        self.columns = columns
        self.count = count


_SEARCHES = 64  # of sorted tables, row by row; then the column that is searched is read once


class Metadata:
    """The metadata that begins at ``root`` of ``data`` and has ``size`` bytes.

    ``path`` is for messages. Raises DebugInfoError FC0904 where it is broken.
    """

    __slots__ = (
        "_blobs", "_columns", "_data", "_guids", "_searches", "_strings", "_tables", "path",
        "pdb_id", "version",
    )  # fmt: skip

    def __init__(self, path: str, data: mmap | bytes, root: int, size: int) -> None:
        self.path = path
        self._data = data
        self._columns: dict[tuple[str, int], list[int]] = {}
        self._searches = 0
        if bytes(data[root : root + 4]) != SIGNATURE:
            raise self._broken(0, "it does not begin with BSJB")
        streams = self._streams(root, size)
        self._strings = streams.get("#Strings", (root, 0))
        self._blobs = streams.get("#Blob", (root, 0))
        self._guids = streams.get("#GUID", (root, 0))
        self.pdb_id, outside = self._pdb(*streams.get("#Pdb", (root, 0)))
        start, length = streams.get("#~") or streams.get("#-") or (root, 0)
        if not length:
            raise self._broken(0, "it has no tables")
        self._tables = self._layouts(start, length, outside)
        for table in INDIRECT:
            if self.count(table):
                what = f"uncompressed metadata with the table {table}"
                raise NotSupported("FC0905", path, what, "metadata")

    def _broken(self, offset: int, what: str) -> DebugInfoError:
        return DebugInfoError("FC0904", self.path, what, "metadata", offset)

    def _number(self, at: int, size: int) -> int:
        try:
            return number_at(self._data, at, size, True)
        except IndexError:
            raise self._broken(at, "truncated") from None

    def _streams(self, root: int, size: int) -> dict[str, tuple[int, int]]:
        length = self._number(root + 12, 4)
        at = root + 16 + length
        self.version = bytes(self._data[root + 16 : at]).rstrip(b"\0").decode("utf-8", "replace")
        count = self._number(at + 2, 2)
        if count > MOST_STREAMS:
            raise self._broken(at - root, f"{count} streams")
        at += 4
        found = {}
        for _ in range(count):
            start, length = self._number(at, 4), self._number(at + 4, 4)
            name = bytes(self._data[at + 8 : at + 40]).partition(b"\0")[0]
            if start + length > size or root + start + length > len(self._data):
                raise self._broken(at - root, f"stream {name!r} runs past the end")
            found[name.decode("utf-8", "replace")] = (root + start, length)
            at += 8 + (len(name) // 4 + 1) * 4
        return found

    def _pdb(self, start: int, size: int) -> tuple[bytes, dict[str, int]]:
        # Of debug information apart from its assembly: which build it is of, and how many rows the
        # tables of that have, by which columns that point there are narrow or wide.
        if not size:
            return b"", {}
        present, at, counts = self._number(start + 24, 8), start + 32, {}
        for number in range(64):
            if present >> number & 1:
                if number not in TABLES:
                    raise self._broken(at, f"a table of the unknown kind {number:#x}")
                counts[TABLES[number][0]] = self._number(at, 4)
                at += 4
        return bytes(self._data[start : start + 20]), counts

    def _layouts(self, start: int, length: int, outside: dict[str, int]) -> dict[str, _Table]:
        heaps, present = self._number(start + 6, 1), self._number(start + 8, 8)
        at, counts = start + 24, {}
        for number in range(64):
            if present >> number & 1:
                if number not in TABLES:
                    raise self._broken(at, f"a table of the unknown kind {number:#x}")
                counts[number] = self._number(at, 4)
                at += 4
        if heaps & EXTRA_DATA:
            at += 4
        rows = outside | {TABLES[number][0]: count for number, count in counts.items()}
        found = {}
        for number, count in counts.items():
            name, spelled = TABLES[number]
            columns = tuple(spelled.split())
            widths = [_width(column, heaps, rows) for column in columns]
            layout = record_layout(True, "".join({2: "H", 4: "I"}[width] for width in widths))
            found[name] = _Table(at, layout, columns, count)
            at += layout.size * count
        if at > start + length:
            raise self._broken(at, "the tables run past the end of their stream")
        return found

    def count(self, table: str) -> int:
        """How many rows a table has."""
        found = self._tables.get(table)
        return 0 if found is None else found.count

    def row(self, table: str, number: int) -> tuple[int, ...]:
        """The columns of a row; raises DebugInfoError FC0904 where there is none."""
        found = self._tables.get(table)
        if found is None or not 0 < number <= found.count:
            raise self._broken(0, f"there is no row {number} of {table}")
        return found.layout.unpack_from(self._data, found.start + (number - 1) * found.layout.size)

    def rows(self, table: str) -> Iterator[tuple[int, ...]]:
        """All rows of a table, in order."""
        found = self._tables.get(table)
        if found is None:
            return iter(())
        end = found.start + found.layout.size * found.count
        return found.layout.iter_unpack(memoryview(self._data)[found.start : end])

    def rows_of(self, table: str, column: int, owner: int) -> Iterator[tuple[int, ...]]:
        """The rows of a table that is sorted by ``column`` where that is ``owner``."""
        low = self._search(bisect_left, table, column, owner) + 1
        while low <= self.count(table) and (found := self.row(table, low))[column] == owner:
            yield found
            low += 1

    def _column(self, table: str, column: int) -> list[int]:
        # One column of all rows: a listing searches it for each row.
        found = self._columns.get((table, column))
        if found is None:
            found = [row[column] for row in self.rows(table)]
            self._columns[table, column] = found
        return found

    def last_below(self, table: str, column: int, number: int) -> int:
        """The last row whose ``column``, which sorts it, is at most ``number``; else 1."""
        return max(self._search(bisect_right, table, column, number), 1)

    def _search(self, bisect: Callable[..., int], table: str, column: int, number: int) -> int:
        # How many rows are in front of where ``bisect`` would put the number.
        self._searches += 1
        if self._searches > _SEARCHES:
            return bisect(self._column(table, column), number)
        rows = range(1, self.count(table) + 1)
        return bisect(rows, number, key=lambda row: self.row(table, row)[column])

    def span(self, table: str, number: int, column: int, into: str) -> range:
        """The rows of ``into`` that belong to a row: from its column up to the next row's."""
        first = self.row(table, number)[column]
        last = self.count(into) + 1
        if number < self.count(table):
            last = min(last, self.row(table, number + 1)[column])
        return range(first, last)

    def text(self, offset: int) -> str:
        """A name."""
        start, size = self._strings
        if not 0 <= offset < max(size, 1):
            raise self._broken(offset, "a name outside of the names")
        at = start + offset
        taken = bytes(self._data[at : min(at + 64, start + size)])
        if b"\0" not in taken:
            taken = bytes(self._data[at : min(at + LONGEST_NAME, start + size)])
        return taken.partition(b"\0")[0].decode("utf-8", "surrogateescape")

    def names_at(self, beginning: str, then: bytes = b"\0") -> set[int]:
        """Offsets of the names that begin so and go on with one of the bytes ``then``."""
        start, size = self._strings
        wanted, found = beginning.encode("utf-8", "surrogateescape"), set[int]()
        if not wanted:
            return found  # nothing is called so; a mapped file finds it without end
        for last in then:
            whole = wanted + bytes((last,))
            at = self._data.find(whole, start, start + size)
            while at >= 0:
                found.add(at - start)
                at = self._data.find(whole, at + 1, start + size)
        return found

    def blob(self, offset: int) -> bytes:
        """A blob, without its length."""
        start, size = self._blobs
        if not 0 <= offset < size:
            raise self._broken(offset, "a blob outside of the blobs")
        head = bytes(self._data[start + offset : start + min(offset + 4, size)])
        length, used = read_compressed(head, 0)
        if used > len(head) or offset + used + length > size:
            raise self._broken(offset, "a blob that runs past the end")
        at = start + offset + used
        return bytes(self._data[at : at + length])

    def guid(self, number: int) -> bytes:
        """The 16 bytes of a unique number; they count from 1."""
        start, size = self._guids
        if not 0 < number <= size // 16:
            raise self._broken(number, "a unique number outside of those there are")
        return bytes(self._data[start + number * 16 - 16 : start + number * 16])

    def coded(self, kind: str, value: int) -> Token:
        """What a coded index points at."""
        bits, tables = CODED[kind]
        tag = value & (1 << bits) - 1
        if tag >= len(tables) or tables[tag] == "-":
            raise self._broken(0, f"a {kind} index with the tag {tag}")
        return Token(tables[tag], value >> bits)


def _width(column: str, heaps: int, rows: dict[str, int]) -> int:
    if column in "24":
        return int(column)
    if column in "SGB":
        wide = {"S": WIDE_STRINGS, "G": WIDE_GUIDS, "B": WIDE_BLOBS}[column]
        return 4 if heaps & wide else 2
    if column[0] == "@":
        return 4 if rows.get(column[1:], 0) > 0xFFFF else 2
    bits, tables = CODED[column]
    return 4 if max(rows.get(table, 0) for table in tables) >= 1 << (16 - bits) else 2


def metadata_of(image: Pe) -> Metadata:
    """The metadata of a .NET image; raises DebugInfoError FC0902 where it has none."""
    found = image.cli
    if found is None:
        raise DebugInfoError("FC0902", image.path, "a portable executable without .NET metadata")
    header = image.cursor(found[0], "CLI header")
    header.skip(8)
    address, size = header.u32(), header.u32()
    at = image.cursor(address, "metadata", size).offset
    return Metadata(image.path, image.data, at, size)
