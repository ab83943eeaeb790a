"""The index as bytes: types and variables by name, then functions by name.

Behind the header come, of types and variables: the names in their order, and the first row of
each; DieOffset, scope and tag of each row; the scope around each scope, and the names of scopes.
Then of functions: the names in their order, the first row of each, and the rows, each a DieOffset
and the kind of entry as one number.
"""

from __future__ import annotations

from itertools import accumulate
from struct import Struct

from fetchc.ceilings import HELP, joined_names
from fetchc.debuginfo.dwarf.names.tags import KEYWORDS, VARIABLES
from fetchc.debuginfo.index.columns import Column, Texts, column, texts
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fetchc.debuginfo.index.columns import Source
    from fetchc.debuginfo.index.found import Scan
    from fetchc.debuginfo.index.reading import Name

__all__ = ["KIND_BITS", "IndexTable", "encoded"]

KIND_BITS = 3  # of a function's row, below its DieOffset
# Names of types and variables, their rows, scopes, whether all variables are there; names of
# functions, their rows, what is known of functions that are missing.
_HEADER = Struct("=7Q")
_OF_C = 0x8000  # no tag has this bit: DW_TAG_hi_user is 0xffff, but compilers use no such for types
_SCOPED = "::"


class IndexTable:
    """Types, variables and functions by name.

    ``has_variables``: all of them outside functions; ``functions_known`` is of
    :class:`~fetchc.debuginfo.index.found.Scan`.
    """

    def __init__(self, source: Source) -> None:
        header = _HEADER.unpack(source.part(0, _HEADER.size))
        names, rows, scopes, whole, function_names, functions, known = header
        self.has_variables = bool(whole)
        self.functions_known: int = known
        self._names = Texts(source, _HEADER.size, names)
        self._firsts = Column(source, self._names.end, "I", names + 1)
        self._offsets = Column(source, self._firsts.end, "Q", rows)
        self._scopes = Column(source, self._offsets.end, "i", rows)
        self._tags = Column(source, self._scopes.end, "H", rows)
        self._around = Column(source, self._tags.end, "i", scopes)
        self._scope_names = Texts(source, self._around.end, scopes)
        self._functions = Texts(source, self._scope_names.end, function_names)
        self._function_firsts = Column(source, self._functions.end, "I", function_names + 1)
        self._function_rows = Column(source, self._function_firsts.end, "Q", functions)

    def named(self, name: bytes, tags: frozenset[int]) -> list[DieOffset]:
        """Where definitions of that name without its scopes are, of those tags."""
        at = self._names.find(name)
        if at < 0:
            return []
        first, end = self._firsts.between(at, at + 2)
        found = zip(self._offsets.between(first, end), self._tags.between(first, end), strict=True)
        return [DieOffset(offset) for offset, tag in found if tag & ~_OF_C in tags]

    def functions(self, name: bytes) -> list[tuple[DieOffset, int]]:
        """Entries of functions of that name without its scopes, in the file's order: and kinds."""
        at = self._functions.find(name)
        if at < 0:
            return []
        rows = self._function_rows.between(*self._function_firsts.between(at, at + 2))
        return [(DieOffset(row >> KIND_BITS), row & (1 << KIND_BITS) - 1) for row in rows]

    def names(self, path: str) -> Iterator[str]:
        """All names of types with scopes and keywords, each once, as people write them.

        FC0905, with the ``path`` of the file, where they take more room than a question has.
        """
        firsts, scopes, tags = self._firsts.all(), self._scopes.all(), self._tags.all()
        left = joined_names()
        around = self._spelled(path, left)
        for at, raw in enumerate(self._names.all()):
            name = raw.decode("utf-8", "surrogateescape")
            rows = [
                row
                for row in range(firsts[at], firsts[at + 1])
                if tags[row] & ~_OF_C not in VARIABLES
            ]
            left -= sum([len(around[scopes[row]]) + len(name) for row in rows])
            if left < 0:
                raise _too_long(path)
            yield from {around[scopes[row]] + _keyword(tags[row]) + name: None for row in rows}

    def _spelled(self, path: str, left: int) -> dict[int, str]:
        # `a::b::` of each scope; those around another come first.
        found = {-1: ""}
        both = zip(self._around.all(), self._scope_names.all(), strict=True)
        for at, (around, name) in enumerate(both):
            one = found[at] = found[around] + name.decode("utf-8", "surrogateescape") + _SCOPED
            left -= len(one)
            if left < 0:
                raise _too_long(path)
        return found


def _too_long(path: str) -> DebugInfoError:
    what = f"names of types in their scopes have more than {joined_names() >> 20:,} MB together"
    return DebugInfoError("FC0905", path, what, ".debug_info", help=HELP)


def encoded(found: Scan, string: Callable[[int], bytes]) -> bytes:
    """The index of what a pass found; ``string`` gives that of an offset in .debug_str."""
    known: dict[int, bytes] = {}

    def text(name: Name) -> bytes:
        if isinstance(name, bytes):
            return name
        if name not in known:
            known[name] = string(name)
        return known[name]

    rows = sorted([(text(row[0]), *row[1:]) for row in found.rows])
    names: dict[bytes, int] = {}  # how many rows each has
    for row in rows:
        names[row[0]] = names.get(row[0], 0) + 1
    functions: dict[bytes, list[int]] = {}
    for function, places in found.functions.items():
        key = text(function)
        # One name may be both an offset and bytes.
        functions[key] = sorted([*functions[key], *places]) if key in functions else places
    function_names = sorted(functions)
    function_rows = [functions[name] for name in function_names]
    count = sum(map(len, function_rows))
    header = (len(names), len(rows), len(found.scopes), found.whole)
    parts = (
        _HEADER.pack(*header, len(function_names), count, found.functions_known),
        texts(list(names)),
        column("I", accumulate(names.values(), initial=0)),
        column("Q", [row[1] for row in rows]),
        column("i", [row[3] for row in rows]),
        column("H", [row[2] | _OF_C * row[4] for row in rows]),
        column("i", [around for around, _ in found.scopes]),
        texts([text(name) for _, name in found.scopes]),
        texts(function_names),
        column("I", accumulate(map(len, function_rows), initial=0)),
        column("Q", [place for places in function_rows for place in places]),
    )
    return b"".join(parts)


def _keyword(tag: int) -> str:
    return f"{KEYWORDS[tag & ~_OF_C]} " if tag & _OF_C and tag & ~_OF_C in KEYWORDS else ""
