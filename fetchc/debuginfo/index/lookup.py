"""When the index of a file's types, variables and functions is made, and where it is kept.

A listing of types reads all units anyway. A single name is searched for in the bytes of a file
first, which takes less time than an index does; whoever searches a big file a second time, in the
same process or the next one, gets the index. So does who looks for a name that ends many others
there (``x``): each of them would be searched for, or all entries walked over.
"""

from __future__ import annotations

import sys
from itertools import islice

from fetchc.debuginfo.cache import KeptFile
from fetchc.debuginfo.dwarf.entries.constants import DW_TAG_subprogram
from fetchc.debuginfo.dwarf.names.tags import VARIABLES
from fetchc.debuginfo.elf.headers import Image
from fetchc.debuginfo.index.columns import InMemory
from fetchc.debuginfo.index.functions import KNOWN_ALL, KNOWN_NONE
from fetchc.debuginfo.index.table import IndexTable, encoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.index.gdb import GdbNames
    from fetchc.debuginfo.index.standard import StandardNames
    from fetchc.quantities import DieOffset

    Answer = TypeVar("Answer")

__all__ = ["NameIndex"]

_BIG = 16 << 20  # bytes of .debug_info: to search so many for a name takes 0.1 s and more
_WORTH_KEEPING = 1 << 20  # bytes of .debug_info: to read so many takes 50 ms
_FEW_PLACES = 4  # of a string, for each of which all of .debug_info is searched
_SUFFIX = ".names"
_FUNCTIONS = frozenset({DW_TAG_subprogram})


class NameIndex:
    """The index of a program whose debug information is in one file, made when it is worth it."""

    __slots__ = (
        "_asked", "_asked_given", "_file", "_info", "_looked", "_own", "_table",
    )  # fmt: skip

    def __init__(self, info: DebugInfo) -> None:
        self._info = info
        self._table: IndexTable | None = None
        self._file: KeptFile | None = None
        self._looked = False
        self._asked: set[bytes] = set()  # names, until there is an index
        self._own: StandardNames | GdbNames | None = None
        self._asked_given = False

    def named(self, name: str, tags: frozenset[int]) -> list[DieOffset] | None:
        """Definitions of that plain name; None where there is no index.

        Of equal definitions it may have one only, and none within functions.
        """
        key = _key(name)
        if key is None:
            return None
        if self._known() is None:
            given = self._given()
            if given is not None and name.isascii():  # other letters have cases of their own
                found = given.named(key, tags)
                return [each for each in found if not self._in_function(each)]
            if not self._is_worth_it(key):
                return None
        return self._asked_for(lambda table: table.named(key, tags))

    def variables(self, name: str) -> list[DieOffset] | None:
        """Variables of that plain name outside functions; None where there is no index.

        A variable that is declared apart from its definition goes by the declaration; of those
        that are nowhere defined the index has the first of each scope.
        """
        key = _key(name)
        if key is None or (self._known() is None and not self._is_worth_it(key)):
            return None
        found = self._asked_for(lambda table: table.named(key, VARIABLES))
        return found if self._table is not None and self._table.has_variables else None

    def functions(self, name: str) -> list[tuple[DieOffset, int]] | None:
        """Entries of functions of that plain name that are no mere declarations, and their kinds.

        None where there is no index, or others of that name may be missing. Those that stand within
        functions may be: one outside goes before them.
        """
        key = _key(name)
        if key is None or (self._known() is None and not self._is_worth_it(key)):
            return None
        found = self._asked_for(lambda table: table.functions(key))
        assert self._table is not None
        known = self._table.functions_known
        return found if known == KNOWN_ALL or (found and known != KNOWN_NONE) else None

    def with_code(self, name: str) -> list[DieOffset]:
        """Functions of that plain or linkage name which a compiler's index leads to: all or none.

        gdb's does not lead to all: a linker that makes it has some units' names alone.
        """
        key, given = _key(name), self._given()
        if key is None or given is None or not name.isascii():
            return []
        from fetchc.debuginfo.index.standard import StandardNames

        return given.named(key, _FUNCTIONS) if isinstance(given, StandardNames) else []

    def _asked_for(self, question: Callable[[IndexTable], list[Answer]]) -> list[Answer]:
        try:
            return question(self._known() or self._made())
        except _Damaged:
            return question(self._made())

    def _is_worth_it(self, name: bytes) -> bool:
        if self._info.files.section.size < _BIG:
            return False
        # One question may ask for its name several times.
        self._asked.add(name)
        return len(self._asked) > 1 or self._seen_before() or self._is_dear(name)

    def _is_dear(self, name: bytes) -> bool:
        strings = self._info.elf.open_section(".debug_str")
        places = iter(()) if strings is None else strings.find_all(name + b"\0")
        return next(islice(places, _FEW_PLACES, None), None) is not None

    def _given(self) -> StandardNames | GdbNames | None:
        # What a compiler, a linker or gdb left in the file.
        if not self._asked_given:
            self._asked_given = True
            if self._info.elf.open_section(".debug_names") is not None:
                from fetchc.debuginfo.index.standard import standard_names

                self._own = standard_names(self._info)
            elif self._info.elf.open_section(".gdb_index") is not None:
                from fetchc.debuginfo.index.gdb import gdb_names

                self._own = gdb_names(self._info)
        return self._own

    def _in_function(self, offset: DieOffset) -> bool:
        around = self._info.ancestors(self._info.die(offset))
        return any(die.tag == DW_TAG_subprogram for die in around)

    def names(self) -> list[str]:
        """All names of types outside functions."""
        return self._asked_for(lambda table: list(table.names(self._info.elf.debug_path)))

    def _known(self) -> IndexTable | None:
        if self._looked:
            return self._table
        self._looked = True
        folder = Image.cache_folder
        if folder and self._info.files.section.size >= _WORTH_KEEPING:
            image = self._info.elf.debug_image
            key = f"names 4 {sys.byteorder} {image.identity()}"
            self._file = file = KeptFile(folder, image.build_id(), key, _SUFFIX)
            try:
                self._table = IndexTable(_Kept(file)) if file.have else None
            except _Damaged:
                return None
        return self._table

    def _seen_before(self) -> bool:
        if self._file is None:
            return False
        if not self._file.again:
            self._file.mark()
        return self._file.again

    def _made(self) -> IndexTable:
        info = self._info
        if Image.processes:
            from fetchc.debuginfo.index.processes import spread

            found = spread(info, Image.progress)
        else:
            from fetchc.debuginfo.index.scan import scan

            found = scan(info, Image.progress)
        data = encoded(found, _strings(info))
        if self._file is not None:
            self._file.write(data)
        self._table = IndexTable(InMemory(data))
        return self._table


def _key(name: str) -> bytes | None:
    # None of a text that no bytes of a file stand for.
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return None


def _strings(info: DebugInfo) -> Callable[[int], bytes]:
    # Of an offset in .debug_str, in a copy of it: 100,000 strings and more are asked for.
    section = info.elf.open_section(".debug_str")
    content = b"" if section is None else section.bytes_between(0, section.size)

    def string(offset: int) -> bytes:
        end = content.find(b"\0", offset)
        if end >= 0:
            return content[offset:end]
        return info.required_section(".debug_str", next(info.units())).cstring(offset)

    return string


class _Damaged(Exception):
    pass


class _Kept:
    # What is read of a kept index.
    def __init__(self, file: KeptFile) -> None:
        self._file = file

    def part(self, start: int, end: int) -> memoryview:
        found = self._file.part(start, end)
        if found is None:
            raise _Damaged
        return found
