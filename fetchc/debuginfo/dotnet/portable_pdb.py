"""Portable PDBs: which line the IL of a method comes from, and the names of its locals.

Source: dotnet/runtime, docs/design/specs/PortablePdb-Metadata.md and PE-COFF.md (the entries of
the debug directory).
"""

from __future__ import annotations

import os
import zlib
from bisect import bisect_right

from fetchc.debuginfo.byte_reader import read_compressed
from fetchc.debuginfo.dotnet.dotnet_types import static_fields, static_place
from fetchc.debuginfo.dotnet.jit_code import JitCode
from fetchc.debuginfo.dotnet.metadata_signatures import SignatureReader
from fetchc.debuginfo.dotnet.metadata_tables import Metadata
from fetchc.debuginfo.dotnet.method_code import CONTEXT_PARAMETER
from fetchc.debuginfo.dotnet.portable_executable import map_file
from fetchc.debuginfo.dotnet.ready_to_run import Boundary, ReadyToRun
from fetchc.debuginfo.safe_open import is_regular
from fetchc.debuginfo.without_dwarf import WithoutDwarf
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import Absent, Extent, Variable
from fetchc.program.types import PointerType, SequenceType, StructType
from fetchc.quantities import Address, DieOffset
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.debuginfo.dotnet.assemblies import Assembly
    from fetchc.debuginfo.dotnet.dotnet_types import DotnetTypes
    from fetchc.debuginfo.dotnet.metadata_signatures import Signature
    from fetchc.debuginfo.dotnet.method_code import Method
    from fetchc.debuginfo.dotnet.portable_executable import Pe
    from fetchc.debuginfo.dotnet.ready_to_run import VariableRange
    from fetchc.program.entities import Function, Instance, Place
    from fetchc.program.protocol import CodeMap

    Lines = dict[int, tuple[Address, ...]]

__all__ = ["LocalName", "MethodDebug", "Placed", "PortablePdb", "SequencePoint", "pdb_of"]

DEBUG_DIRECTORY, ENTRY_BYTES, MOST_ENTRIES = 6, 28, 32
CODEVIEW, EMBEDDED = 2, 17
HIDDEN_LINE = 0xFEEFEE  # of generated code
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
                part, at = read_compressed(name, at)
                parts.append(self._metadata.blob(part) if part else b"")
            found = separator.join(parts).decode("utf-8", "surrogateescape")
            self._files[document] = found
        return found

    def methods(self) -> range:
        """Rows of the methods that may have debug information."""
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
        value, at = read_compressed(blob, at)
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
    """The PDB in an image, or the one of the same build beside it (``app.pdb``); None without."""
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
    data = map_file(beside)[0][:LARGEST]
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


# ------------------------------------------------------------------------------
# Lines, locals and places of variables inside of precompiled methods.
#
# The image says which IL each instruction comes from and where variables are; a portable PDB,
# where there is one, which lines the IL comes from and what locals are called.

FAT, FORMAT = 3, 3  # of a method's header; a small one has no locals
UNKNOWN = Absent("no location", "the image does not say where it is here")
PROLOGUE = Absent("no location", "the method's first instructions are still moving it")


class MethodDebug:
    """Answers for the methods of one assembly; a :class:`~fetchc.program.protocol.CodeMap` too."""

    __slots__ = ("_assembly", "_method", "_native", "_of_pieces", "_pdb", "_sought")

    def __init__(
        self,
        assembly: Assembly,
        native: ReadyToRun | JitCode,
        method: Callable[[Function], Method],
    ) -> None:
        self._assembly = assembly
        self._native = native
        self._method = method
        self._of_pieces: dict[int, tuple[list[Boundary], list[VariableRange]]] = {}
        self._pdb: PortablePdb | None = None
        self._sought = False

    @property
    def pdb(self) -> PortablePdb | None:
        """The portable PDB, None where there is none."""
        if not self._sought:
            self._sought = True
            self._pdb = pdb_of(self._assembly.image)
        return self._pdb

    def _debug_info_of(self, piece: int) -> tuple[list[Boundary], list[VariableRange]]:
        found = self._of_pieces.get(piece)
        if found is None:
            native = self._native
            info = native.debug_info() if isinstance(native, ReadyToRun) else None
            found = self._of_pieces[piece] = ([], []) if info is None else info.of(piece)
        return found

    # --- variables

    def place(self, method: Method, number: int, size: int | None, behind: int) -> Place:
        """Where a variable is ``behind`` bytes into the code of its method.

        ``number`` counts parameters from 0, ``this`` with them, then slots of locals.
        """
        boundaries, variables = self._debug_info_of(method.function)
        begins = _body(boundaries)
        if begins is None or behind < begins:
            return PROLOGUE if begins is not None else UNKNOWN
        for one in variables:
            if one.number == number and one.start <= behind < one.end:
                return one.place(size)
        return UNKNOWN

    def extents(self, method: Method, number: int, size: int | None) -> tuple[Extent, ...]:
        """All places of a variable after the first instructions, by their addresses."""
        boundaries, variables = self._debug_info_of(method.function)
        start, begins = self._native.begin(method.function), _body(boundaries)
        if begins is None:
            return ()
        return tuple(
            [
                Extent(
                    Address(start + max(one.start, begins)),
                    Address(start + one.end),
                    one.place(size),
                )
                for one in variables
                if one.number == number and one.end > max(one.start, begins)
            ]
        )

    def locals(self, method: Method, behind: int) -> list[LocalName]:
        """The named locals whose scope holds an instruction; at the first one all of them."""
        if self.pdb is None:
            return []
        named = self.pdb.locals(method.row)
        if behind:
            il = self._il(method, behind)
            named = [one for one in named if il is not None and one.start <= il < one.end]
        # Inner scopes come after those around them, and hide their names.
        return list({one.name: one for one in named}.values())

    def local_types(self, method: Method) -> tuple[Signature, ...]:
        """The types of a method's locals by slot."""
        metadata, image = self._assembly.metadata, self._assembly.image
        address = metadata.row("MethodDef", method.row)[0]
        if not address:
            return ()
        header = image.cursor(address, "method header")
        if header.u8() & FORMAT != FAT:
            return ()
        header.skip(7)
        token = header.u32() & 0xFFFFFF
        if not token:
            return ()
        blob = metadata.blob(metadata.row("StandAloneSig", token)[0])
        return SignatureReader(metadata, blob).locals()

    def _il(self, method: Method, behind: int) -> int | None:
        boundaries, _ = self._debug_info_of(method.function)
        before = [one for one in boundaries if one.native <= behind and one.il >= 0]
        return max(before, key=lambda one: one.native).il if before else None

    # --- lines

    def code_map(self) -> CodeMap | None:
        """This object where there is a PDB; else None."""
        return None if self.pdb is None else self

    def lines(self, file: str) -> dict[str, Lines]:
        """By source file whose path ends in ``file``: the addresses at which each line begins."""
        pdb, found = self.pdb, dict[str, dict[int, set[Address]]]()
        assert pdb is not None
        for row in pdb.methods():
            document = pdb.documents(row)
            if document and not _ends(pdb.file(document), file):
                continue
            piece = self._native.entry(row)
            if piece is None:
                continue
            for path, line, address in self._statements(row, piece):
                if _ends(path, file):
                    found.setdefault(path, {}).setdefault(line, set()).add(address)
        return {
            path: {line: tuple(sorted(each)) for line, each in lines.items()}
            for path, lines in found.items()
        }

    def lines_of(self, function: Function) -> tuple[str, Lines] | None:
        """The file that a method is in, and where its lines begin in its own code."""
        method = self._method(function)
        statements = self._statements(method.row, method.function)
        if not statements:
            return None
        found: dict[int, tuple[Address, ...]] = {}
        for path, line, address in statements:
            if path == statements[0][0]:
                found[line] = (*found.get(line, ()), address)
        return statements[0][0], found

    def statement_behind(self, function: Function, address: Address) -> Address | None:
        """The first statement of a method after ``address``; None where there is none."""
        method = self._method(function)
        addresses = sorted(at for _, _, at in self._statements(method.row, method.function))
        at = bisect_right(addresses, address)
        return addresses[at] if at < len(addresses) else None

    def source_line(self, function: Function) -> str | None:
        """``Program.cs:12``, where a method begins; None where the file does not say so."""
        if self.pdb is None:
            return None
        for point in self.pdb.points(self._method(function).row):
            if point.document:
                return f"{_short(self.pdb.file(point.document))}:{point.line}"
        return None

    def instances(self, name: str) -> tuple[Instance, ...]:
        """None: the format does not describe inlined calls."""
        return ()

    def variables(self, instance: Instance) -> tuple[Variable, ...]:
        """None: there are no instances."""
        return ()

    def _statements(self, row: int, piece: int) -> list[tuple[str, int, Address]]:
        # File, line and address of each instruction that begins a line, in their order.
        pdb, found = self.pdb, []
        assert pdb is not None
        points = {one.il: one for one in pdb.points(row) if one.document}
        boundaries, _ = self._debug_info_of(piece)
        if not boundaries and points:  # as of run-time code: it begins with the first line
            boundaries = [Boundary(0, min(points))]
        start, before = self._native.begin(piece), (0, 0)
        for one in sorted(boundaries, key=lambda boundary: boundary.native):
            point = points.get(one.il)
            if point is None:
                continue
            place = (point.document, point.line)
            if place != before:
                address = Address(start + one.native)
                found.append((pdb.file(point.document), point.line, address))
            before = place
        return found


def _body(boundaries: list[Boundary]) -> int | None:
    # Where the code of the method's own IL begins, after what builds its frame.
    return min((one.native for one in boundaries if one.il >= 0), default=None)


def _ends(path: str, wanted: str) -> bool:
    path, wanted = path.replace("\\", "/"), wanted.replace("\\", "/")
    return path == wanted or path.endswith("/" + wanted)


def _short(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


# ------------------------------------------------------------------------------
# Variables inside of precompiled methods, as answers of a Program.
#
# At a method's first instruction its parameters are where the calling convention puts them;
# after it the image's own debug information says where variables are.

STATIC = 1 << 96  # in the number of a variable: it is a static field, by its row


class Placed(WithoutDwarf):
    """A base of the Program of an assembly, which has its methods, types and parameters."""

    __slots__ = ("_assembly", "_described")

    _assembly: Assembly
    _described: MethodDebug | None

    if TYPE_CHECKING:

        @property
        def _types(self) -> DotnetTypes: ...

        def _method(self, function: Function) -> Method: ...

        def _arguments(self, method: Method) -> tuple[tuple[int, ...], tuple[int, ...]]: ...

        def parameters(self, function: Function) -> tuple[Variable, ...]:
            """Those of the method."""

    @property
    def _debug(self) -> MethodDebug | None:
        native = self._assembly.native
        if self._described is None and isinstance(native, ReadyToRun | JitCode):
            self._described = MethodDebug(self._assembly, native, self._method)
        return self._described

    def variables(self, function: Function, address: Address) -> tuple[Variable, ...]:
        """The parameters, and locals that a PDB beside the image or inside has names of."""
        parameters, debug = self.parameters(function), self._debug
        if debug is None or function.die is None:
            return parameters
        method, found = self._method(function), []
        arguments = self._arguments(method)
        named = debug.locals(method, address - function.address)
        kinds = debug.local_types(method) if named else ()
        for one in named:
            if one.slot < len(kinds):
                kind = self._types.closed.close(self._assembly, kinds[one.slot], *arguments)
                at = DieOffset(function.die << 16 | len(parameters) + one.slot)
                found.append(Variable(one.name, self._types.variable(kind), "local", at, 0))
        return (*found, *parameters)

    def global_variables(
        self, name: str, function: Function | None, loosely: bool = False
    ) -> tuple[Variable, ...]:
        """Static fields and constants: ``Type.Field``, inside of a type's methods ``Field``."""
        owner = self._method(function).owner if function is not None and function.die else 0
        found = []
        for row, field in static_fields(self._assembly, name, owner):
            if self._assembly.type_parameters(row):
                continue  # each instantiation has its own
            kind = self._types.closed.close(self._assembly, self._assembly.field_type(field))
            at = DieOffset(STATIC | field)
            found.append(Variable(name, self._types.variable(kind), "global", at, 0))
        return tuple(found)

    def place(self, variable: Variable, function: Function | None, address: Address) -> Place:
        """Where the image says so; at the first instruction the calling convention does."""
        if variable.die & STATIC:
            return static_place(self._assembly, variable.die & ~STATIC)
        if self._debug is None or function is None:
            what = "without a PDB, its location after the method's first instruction is not known"
            return Absent("no location", what)
        if address == function.address:
            return Absent(
                "no location", "it is a local variable, and no statement has run at the entry"
            )
        number, size = self._number(variable, function), self._bytes(variable)
        behind = address - function.address
        return self._debug.place(self._method(function), number, size, behind)

    def extents(self, variable: Variable, function: Function | None) -> tuple[Extent, ...]:
        """Where the image says that a variable is, after the method's first instructions."""
        if self._debug is None or function is None or variable.die & STATIC:
            return ()
        number, size = self._number(variable, function), self._bytes(variable)
        return self._debug.extents(self._method(function), number, size)

    def _number(self, variable: Variable, function: Function) -> int:
        # As the image counts: parameters that are declared, then locals; hidden ones do not count.
        at = variable.die & 0xFFFF
        hidden = [one.name for one in self.parameters(function)[: at + 1]].count(CONTEXT_PARAMETER)
        return -1 if variable.name == CONTEXT_PARAMETER else at - hidden

    def _bytes(self, variable: Variable) -> int | None:
        resolved = self._types.type(variable.type)
        return resolved.size if isinstance(resolved, StructType | SequenceType | PointerType) else 8

    def code_map(self) -> CodeMap | None:
        """The lines of a PDB; None without one."""
        return None if self._debug is None else self._debug.code_map()

    def source_line(self, function: Function) -> str | None:
        """``Program.cs:12``, where a PDB says so."""
        return None if self._debug is None else self._debug.source_line(function)
