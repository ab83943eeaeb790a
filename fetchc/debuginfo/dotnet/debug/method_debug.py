"""Lines, locals and places of variables inside of precompiled methods.

The image says which IL each instruction comes from and where variables are; a portable PDB, where
there is one, which lines the IL comes from and what locals are called.
"""

from __future__ import annotations

from bisect import bisect_right

from fetchc.debuginfo.dotnet.debug.portable_pdb import pdb_of
from fetchc.debuginfo.dotnet.metadata.signatures import SignatureReader
from fetchc.program.entities import Absent, Extent
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.debuginfo.dotnet.debug.portable_pdb import LocalName, PortablePdb
    from fetchc.debuginfo.dotnet.image.native_debug_info import Boundary, VariableRange
    from fetchc.debuginfo.dotnet.image.ready_to_run import ReadyToRun
    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly
    from fetchc.debuginfo.dotnet.metadata.signatures import Signature
    from fetchc.debuginfo.dotnet.methods.methods import Method
    from fetchc.program.entities import Function, Instance, Place, Variable
    from fetchc.program.protocol import CodeMap

    Lines = dict[int, tuple[Address, ...]]

__all__ = ["MethodDebug"]

FAT, FORMAT = 3, 3  # of a method's header; a small one has no locals
UNKNOWN = Absent("FC0401", "the image does not say where it is here")
PROLOGUE = Absent("FC0401", "the method's first instructions are still moving it")


class MethodDebug:
    """Answers for the methods of one assembly; a :class:`~fetchc.program.protocol.CodeMap` too."""

    __slots__ = ("_assembly", "_known", "_method", "_native", "_pdb", "_sought")

    def __init__(
        self, assembly: Assembly, native: ReadyToRun, method: Callable[[Function], Method]
    ) -> None:
        self._assembly = assembly
        self._native = native
        self._method = method
        self._known: dict[int, tuple[list[Boundary], list[VariableRange]]] = {}
        self._pdb: PortablePdb | None = None
        self._sought = False

    @property
    def pdb(self) -> PortablePdb | None:
        """The portable PDB, None where there is none."""
        if not self._sought:
            self._sought = True
            self._pdb = pdb_of(self._assembly.image)
        return self._pdb

    def _told(self, piece: int) -> tuple[list[Boundary], list[VariableRange]]:
        found = self._known.get(piece)
        if found is None:
            info = self._native.debug_info()
            found = self._known[piece] = ([], []) if info is None else info.of(piece)
        return found

    # --- variables

    def place(self, method: Method, number: int, size: int | None, behind: int) -> Place:
        """Where a variable is ``behind`` bytes into the code of its method.

        ``number`` counts parameters from 0, ``this`` with them, then slots of locals.
        """
        boundaries, variables = self._told(method.function)
        begins = _body(boundaries)
        if begins is None or behind < begins:
            return PROLOGUE if begins is not None else UNKNOWN
        for one in variables:
            if one.number == number and one.start <= behind < one.end:
                return one.place(size)
        return UNKNOWN

    def extents(self, method: Method, number: int, size: int | None) -> tuple[Extent, ...]:
        """All places of a variable behind the first instructions, by their addresses."""
        boundaries, variables = self._told(method.function)
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
        # Inner scopes come behind those around them, and hide their names.
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
        boundaries, _ = self._told(method.function)
        before = [one for one in boundaries if one.native <= behind and one.il >= 0]
        return max(before, key=lambda one: one.native).il if before else None

    # --- lines

    def code_map(self) -> CodeMap | None:
        """Itself where there are lines."""
        return None if self.pdb is None else self

    def lines(self, file: str) -> dict[str, Lines]:
        """Of each source file whose path ends in ``file``: where its lines begin in the code."""
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
        """The first statement of a method behind ``address``; None where there is none."""
        method = self._method(function)
        known = sorted(at for _, _, at in self._statements(method.row, method.function))
        at = bisect_right(known, address)
        return known[at] if at < len(known) else None

    def source_line(self, function: Function) -> str | None:
        """``Program.cs:12``, where a method begins; None where nothing says so."""
        if self.pdb is None:
            return None
        for point in self.pdb.points(self._method(function).row):
            if point.document:
                return f"{_short(self.pdb.file(point.document))}:{point.line}"
        return None

    def instances(self, name: str) -> tuple[Instance, ...]:
        """None: what was inlined is not told."""
        return ()

    def variables(self, instance: Instance) -> tuple[Variable, ...]:
        """None: there are no instances."""
        return ()

    def _statements(self, row: int, piece: int) -> list[tuple[str, int, Address]]:
        # File, line and address of each instruction that begins a line, in their order.
        pdb, found = self.pdb, []
        assert pdb is not None
        points = {one.il: one for one in pdb.points(row)}
        boundaries, _ = self._told(piece)
        start, before = self._native.begin(piece), (0, 0)
        for one in sorted(boundaries, key=lambda boundary: boundary.native):
            point = points.get(one.il)
            if point is None or not point.document:
                continue
            place = (point.document, point.line)
            if place != before:
                address = Address(start + one.native)
                found.append((pdb.file(point.document), point.line, address))
            before = place
        return found


def _body(boundaries: list[Boundary]) -> int | None:
    # Where the code of the method's own IL begins, behind what builds its frame.
    return min((one.native for one in boundaries if one.il >= 0), default=None)


def _ends(path: str, wanted: str) -> bool:
    path, wanted = path.replace("\\", "/"), wanted.replace("\\", "/")
    return path == wanted or path.endswith("/" + wanted)


def _short(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]
