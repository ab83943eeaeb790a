"""Where source lines, and the bodies of functions that were inlined, are in the code.

Source: DWARF 5, sections 6.2.2 (statements), 3.3.8.2 (inlined instances), 2.18 (where a
stretch of code is entered).
"""

from __future__ import annotations

from os.path import normpath

from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_call_file,
    DW_AT_call_line,
    DW_AT_decl_file,
    DW_AT_stmt_list,
    DW_TAG_subprogram,
)
from fetchc.debuginfo.dwarf.entries.scopes import qualified_name
from fetchc.debuginfo.dwarf.lines.header import file_name, file_names
from fetchc.debuginfo.dwarf.lines.rows import raw_rows, rows
from fetchc.debuginfo.dwarf.locations.variables import called_at, locals_around, parameters
from fetchc.debuginfo.dwarf.names import functions
from fetchc.debuginfo.dwarf.names.inlined import inlined_calls
from fetchc.program.entities import Instance
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.dwarf.lines.rows import RawRow
    from fetchc.debuginfo.elf.elf_file import Elf
    from fetchc.program.entities import Function, Variable

    Lines = dict[int, tuple[Address, ...]]

__all__ = ["CodeMap"]


class CodeMap:
    """Implements :class:`~fetchc.program.protocol.CodeMap` for one file."""

    __slots__ = ("_elf", "_info")

    def __init__(self, elf: Elf, info: DebugInfo) -> None:
        self._elf = elf
        self._info = info

    def lines(self, file: str) -> dict[str, Lines]:
        """Of each source file whose path ends in ``file``: where its lines begin in the code."""
        wanted = _words(file)
        found: dict[str, dict[int, dict[Address, None]]] = {}
        seen = set()
        for unit in self._info.units():
            table = unit.skeleton.top.raw(DW_AT_stmt_list)
            if table is None or table in seen:
                continue
            seen.add(table)
            names = {
                index: normpath(path)
                for index, path in file_names(self._info, unit).items()
                if _words(path)[-len(wanted) :] == wanted
            }
            if names:
                self._gather(raw_rows(self._info, unit), names, found)
        return {path: _sorted(lines) for path, lines in found.items()}

    def lines_of(self, function: Function) -> tuple[str, Lines] | None:
        """The file that ``function`` is in, and where its lines begin in its own code.

        None where the debug information has neither.
        """
        if function.die is None:
            return None
        die = self._info.die(function.die)
        filed = self._info.inherited(die, DW_AT_decl_file)
        index = None if filed is None else filed.unsigned(DW_AT_decl_file)
        if filed is None or index is None:
            return None
        path = file_name(self._info, filed.unit, index)
        if path is None:
            return None
        names = {
            index: normpath(path)
            for index, other in file_names(self._info, die.unit).items()
            if normpath(other) == normpath(path)
        }
        ranges = self._info.ranges(die)
        own = (
            row
            for row in raw_rows(self._info, die.unit)
            if row[5] or any(start <= row[0] < end for start, end in ranges)
        )
        found: dict[str, dict[int, dict[Address, None]]] = {}
        self._gather(own, names, found)
        return normpath(path), _sorted(found.get(normpath(path), {}))

    def _gather(
        self,
        rows: Iterable[RawRow],
        names: dict[int, str],
        found: dict[str, dict[int, dict[Address, None]]],
    ) -> None:
        # Rows of one line in a row are one visit of it; line 0 is nobody's and ends none.
        path: str | None = None
        last, visited = 0, False  # the line of the last row, and whether its visit has begun
        for address, file, number, is_stmt, _, end in rows:
            if file not in names or end:
                if number or end:
                    path = None
                continue
            if not number:
                continue
            if number != last or path != names[file]:
                path, last, visited = names[file], number, False
            if is_stmt and not visited:
                visited = True
                if self._elf.is_code(Address(address)):
                    found.setdefault(path, {}).setdefault(number, {})[Address(address)] = None

    def statement_behind(self, function: Function, address: Address) -> Address | None:
        """The first statement of ``function`` behind ``address``; None where there is none."""
        if function.die is None:
            return None
        die = self._info.die(function.die)
        ranges = [(low, high) for low, high in self._info.ranges(die) if low <= address < high]
        behind = [
            row.address
            for row in rows(self._info, die.unit)
            if row.is_stmt
            and not row.end_sequence
            and row.address > address
            and any(low <= row.address < high for low, high in ranges)
        ]
        return min(behind, default=None)

    def instances(self, name: str) -> tuple[Instance, ...]:
        """Every inlined copy of the functions of that name, by address."""
        found = {}
        for die in inlined_calls(self._info, name):
            address = called_at(self._info, die)
            if address is None or not self._elf.is_code(address):
                continue
            around = [one for one in self._info.ancestors(die) if one.tag == DW_TAG_subprogram]
            holder = (
                functions.holding(self._elf, self._info, around[-1], address) if around else None
            )
            if holder is not None:
                called = qualified_name(self._info, die)
                found[die.offset] = Instance(called, holder, address, die.offset, self._call(die))
        return tuple(sorted(found.values(), key=lambda one: (one.address, one.die)))

    def variables(self, instance: Instance) -> tuple[Variable, ...]:
        """What the inlined call's code sees: its parameters, its locals, what is around it."""
        assert instance.function.die is not None
        function = self._info.die(instance.function.die)
        own = self._info.die(instance.die)
        return (*locals_around(self._info, function, own), *parameters(self._info, function))

    def _call(self, die: Die) -> str | None:
        number, index = die.unsigned(DW_AT_call_line), die.unsigned(DW_AT_call_file)
        path = None if index is None else file_name(self._info, die.unit, index)
        return None if not number or path is None else f"{path.rpartition('/')[2]}:{number}"


def _words(path: str) -> list[str]:
    return [word for word in normpath(path).split("/") if word]


def _sorted(lines: dict[int, dict[Address, None]]) -> Lines:
    return {number: tuple(sorted(addresses)) for number, addresses in sorted(lines.items())}
