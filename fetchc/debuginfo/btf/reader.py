"""The BTF container: a header, a table of types, a table of names; one object or a split one.

Type ids count from 1 in the order of the table, and types have different lengths, so opening
walks the table once and notes where each begins. Everything else is read when asked for, and
nothing is copied: a kernel has 5 MB of it.
Source: Documentation/bpf/btf.rst and include/uapi/linux/btf.h of Linux.
"""

from __future__ import annotations

import sys
from array import array

from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from mmap import mmap
    from typing import Literal

    from fetchc.debuginfo.elf.headers import Buffer

    Words = array[int] | memoryview[int]

__all__ = ["KINDS", "Btf", "Entry"]

MAGIC = 0xEB9F
WORD = 4
COMMON = 3  # words in front of each type: name, info, size or type

# Kind number -> (name, words behind the common ones, words a member). A kind that is not here has
# an unknown length, so nothing behind it can be found.
KINDS = {
    1: ("INT", 1, 0),
    2: ("PTR", 0, 0),
    3: ("ARRAY", 3, 0),
    4: ("STRUCT", 0, 3),
    5: ("UNION", 0, 3),
    6: ("ENUM", 0, 2),
    7: ("FWD", 0, 0),
    8: ("TYPEDEF", 0, 0),
    9: ("VOLATILE", 0, 0),
    10: ("CONST", 0, 0),
    11: ("RESTRICT", 0, 0),
    12: ("FUNC", 0, 0),
    13: ("FUNC_PROTO", 0, 2),
    14: ("VAR", 1, 0),
    15: ("DATASEC", 0, 3),
    16: ("FLOAT", 0, 0),
    17: ("DECL_TAG", 1, 0),
    18: ("TYPE_TAG", 0, 0),
    19: ("ENUM64", 0, 3),
}
_LISTS = {name: each for name, _, each in KINDS.values() if name in ("ENUM", "ENUM64")}
_NAMES = ("VOID", *(name for name, _, _ in KINDS.values()))


class Entry:
    """One type as the table has it. ``count`` is vlen, ``flag`` kind_flag, ``value`` size or type.

    ``words`` are those behind the common ones. ``name`` is an offset among the names.
    """

    __slots__ = ("count", "flag", "kind", "name", "value", "words")

    def __init__(
        self, kind: str, name: int, count: int, flag: bool, value: int, words: Words
    ) -> None:
        self.kind = kind
        self.name = name
        self.count = count
        self.flag = flag
        self.value = value
        self.words = words


class Btf:
    """The types of one object; those of a module's continue behind its ``base``'s.

    ``path`` is for messages. Raises DebugInfoError FC0902 where ``data`` is no BTF, FC0904 where
    it is broken, FC0905 for a kind of type that is not known.
    """

    __slots__ = (
        "_base", "_data", "_first", "_names", "_names_first", "_order", "_types", "_words",
        "little_endian", "path", "starts",
    )  # fmt: skip

    def __init__(
        self,
        path: str,
        data: Buffer | mmap,
        base: Btf | None = None,
        starts: Words | None = None,
    ) -> None:
        self.path = path
        self._base = base
        little = bytes(data[:2]) == MAGIC.to_bytes(2, "little")
        if not little and bytes(data[:2]) != MAGIC.to_bytes(2, "big"):
            raise DebugInfoError("FC0902", path, "it does not begin as BTF does")
        order: Literal["little", "big"] = "little" if little else "big"
        self.little_endian = little

        def word(at: int) -> int:
            return int.from_bytes(data[at : at + WORD], order)

        header = word(4)
        if len(data) < 24 or header < 24:
            raise self._broken(4, f"the header has {min(header, len(data))} bytes, not 24")
        if data[2] != 1:
            what = f"version {data[2]} of BTF, not 1"
            raise DebugInfoError("FC0905", path, what, ".BTF", 2)
        at, size = header + word(8), word(12)
        names, length = header + word(16), word(20)
        if at + size > len(data) or size % WORD or at % WORD:
            raise self._broken(8, f"{size} bytes of types at {at:#x} do not fit the file")
        if names + length > len(data) or not length or data[names + length - 1]:
            raise self._broken(16, f"{length} bytes of names at {names:#x} do not fit or end")
        self._order = order
        # What can be searched: a view cannot.
        self._data = bytes(data) if isinstance(data, memoryview) else data
        self._types, self._names = range(at, at + size), range(names, names + length)
        self._words: Words = memoryview(self._data)[at : at + size].cast("I")
        if order != sys.byteorder:
            self._words = array("I", self._words)
            self._words.byteswap()
        self._first: int = 1 if base is None else base.end
        self._names_first: int = 0 if base is None else base._names_first + len(base._names)
        # Where each type begins, in words; known to who has opened it before.
        self.starts: Words = self._walk() if starts is None else starts

    def _broken(self, offset: int, what: str) -> DebugInfoError:
        return DebugInfoError("FC0904", self.path, what, ".BTF", offset)

    def _walk(self) -> array[int]:
        # The one loop over all types: 126,000 in 30 ms, so it stays free of calls.
        words, starts, at = self._words, array("I"), 0
        fixed = [KINDS[kind][1] + COMMON if kind in KINDS else 0 for kind in range(32)]
        each = [KINDS[kind][2] if kind in KINDS else 0 for kind in range(32)]
        append, end = starts.append, len(words)
        try:
            while at < end:
                append(at)
                info = words[at + 1]
                kind = info >> 24 & 31
                length = fixed[kind] + each[kind] * (info & 0xFFFF)
                if not length:
                    what = f"a type of kind {kind}, whose length is not known"
                    raise DebugInfoError("FC0905", self.path, what, ".BTF types", at * WORD)
                at += length
        except IndexError:
            at = end + 1
        if at != end:
            raise self._broken(starts[-1] * WORD, "the last type runs past the end of the types")
        return starts

    @property
    def end(self) -> int:
        """The first id that names no type."""
        return self._first + len(self.starts)

    def entry(self, number: int) -> Entry:
        """The type of that id; raises DebugInfoError FC0904 where there is none."""
        home = self
        while number < home._first and home._base is not None:
            home = home._base
        if not home._first <= number < home.end:
            raise self._broken(0, f"there is no type {number}")
        index = number - home._first
        at = home.starts[index]
        stop = home.starts[index + 1] if index + 1 < len(home.starts) else len(home._words)
        info = home._words[at + 1]
        return Entry(
            _NAMES[info >> 24 & 31],
            home._words[at],
            info & 0xFFFF,
            bool(info >> 31),
            home._words[at + 2],
            home._words[at + COMMON : stop],
        )

    def kind(self, number: int) -> str:
        """The kind of a type: ``INT``, ``STRUCT``, ...; ``VOID`` for 0."""
        return self.entry(number).kind if number else "VOID"

    def text(self, offset: int) -> str:
        """The name at ``offset`` among the names of this object and its base."""
        home = self
        while offset < home._names_first and home._base is not None:
            home = home._base
        within = offset - home._names_first
        if not 0 <= within < len(home._names):
            raise self._broken(0, f"there is no name at {offset:#x}")
        at = home._names[within]
        end = home._data.find(b"\0", at)  # the last byte is a NUL
        return home._data[at:end].decode("utf-8", "surrogateescape")

    def named(self, name: str, kinds: tuple[str, ...]) -> list[int]:
        """Ids of the types of that name and of those kinds, the base's first."""
        found = [] if self._base is None else self._base.named(name, kinds)
        for offset in self._offsets(name):
            found += [one for one in self._using(offset) if self.kind(one) in kinds]
        return sorted(found)

    def enumerations_with(self, name: str) -> list[int]:
        """Ids of the enumerations that have an enumerator of that name, the base's first."""
        found = [] if self._base is None else self._base.enumerations_with(name)
        for offset in self._offsets(name):
            found += self._listing(offset)
        return sorted(found)

    def _listing(self, name: int) -> Iterator[int]:
        # Enumerations in whose lists a word is the name's offset, a word of a value left out.
        from bisect import bisect_right

        first, end = self._types.start, self._types.stop
        key = name.to_bytes(WORD, self._order)
        at = self._data.find(key, first, end)
        while at >= 0:
            index, rest = divmod(at - first, WORD)
            if not rest:
                position = bisect_right(self.starts, index) - 1
                kind = self.kind(self._first + position)
                behind = index - self.starts[position] - COMMON
                if kind in _LISTS and behind >= 0 and not behind % _LISTS[kind]:
                    yield self._first + position
            at = self._data.find(key, at + 1, end)

    def _offsets(self, name: str) -> list[int]:
        # Where the names of this object and its base have it.
        key = b"\0" + name.encode("utf-8", "surrogateescape") + b"\0"
        wanted = []
        home: Btf | None = self
        while home is not None:  # a split object may use the names of its base
            first, end = home._names.start, home._names.stop
            at = home._data.find(key, first, end)
            while at >= 0:
                wanted.append(home._names_first + at - first + 1)
                at = home._data.find(key, at + 1, end)
            home = home._base
        return wanted

    def _using(self, name: int) -> Iterator[int]:
        # The name's bytes in the table; a hit counts where a type begins.
        from bisect import bisect_left

        starts = self.starts
        first, end = self._types.start, self._types.stop
        key = name.to_bytes(WORD, self._order)
        # A zero at the end makes the search twice as long; in a short key it has to be there.
        key = key[:3] if key[2] and not key[3] else key
        at = self._data.find(key, first, end)
        while at >= 0:
            index, rest = divmod(at - first, WORD)
            if not rest:
                position = bisect_left(starts, index)
                begins = position < len(starts) and starts[position] == index
                if begins and self._words[index] == name:
                    yield self._first + position
            at = self._data.find(key, at + 1, end)

    def all_named(self, kinds: tuple[str, ...]) -> Iterator[tuple[int, str]]:
        """Id and name of every named type of those kinds, this object's own."""
        numbers = {number for number, known in KINDS.items() if known[0] in kinds}
        words = self._words
        for index, at in enumerate(self.starts):
            if words[at + 1] >> 24 & 31 in numbers and words[at]:
                yield self._first + index, self.text(words[at])
