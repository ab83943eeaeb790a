"""The name index as bytes: types and variables by name, then functions by name.

After the header come, of types and variables: the names in their order, and the first row of
each; DieOffset, scope and tag of each row; the scope around each scope, and the names of scopes.
Then of functions: the names in their order, the first row of each, and the rows, each a DieOffset
and the kind of entry as one number.
"""

from __future__ import annotations

from array import array
from itertools import accumulate, pairwise
from struct import Struct

from fetchc.ceilings import HELP, joined_names
from fetchc.debuginfo.byte_reader import read_uleb
from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf import dies
from fetchc.debuginfo.dwarf.constants import KEYWORDS, VARIABLES
from fetchc.debuginfo.dwarf.dies import Die
from fetchc.debuginfo.dwarf.forms import LOCAL_REFERENCE_FORMS, STRING_INDEX_FORMS
from fetchc.debuginfo.dwarf.languages import is_go, language_key
from fetchc.debuginfo.dwarf.qualified_names import declaration as first_declaration
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Literal, Protocol

    from fetchc.debuginfo.dwarf.abbrev import Declaration, Getter
    from fetchc.debuginfo.dwarf.name_index_scan import Hop, Name, Read, ReadName
    from fetchc.debuginfo.dwarf.units import Unit

    Code = Literal["Q", "I", "i", "H", "B"]

    class Source(Protocol):
        """Bytes that are read where they are needed."""

        def view(self, start: int, end: int) -> memoryview:
            """The bytes from ``start`` to ``end``."""

    Entry = tuple[int, int, Declaration]
    Plan = tuple[int, Read | None, bool, Hop | None, Declaration]
    First = tuple[ReadName, int, Declaration | None]
    Key = tuple[int, *tuple[object, ...]] | int
    Row = tuple[Name, int, int, int, bool]
    Found = tuple[dict[Key, Row], list[tuple[int, Name]], dict[Name, list[int]], bool, int]

__all__ = [
    "ALL_FUNCTIONS",
    "CODE",
    "INLINED",
    "KIND_BITS",
    "NOWHERE",
    "NO_FUNCTIONS",
    "OUTER_FUNCTIONS",
    "Column",
    "Functions",
    "InMemory",
    "IndexTable",
    "Scan",
    "Texts",
    "column",
    "encoded",
    "function_coverage",
    "texts",
]

# ------------------------------------------------------------------------------
# Columns of numbers, and strings in order: as bytes, and read where they are mapped.
#
# Numbers have this machine's byte order; what follows a column starts at a multiple of eight.


class InMemory:
    """A source that is in memory alone."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)

    def view(self, start: int, end: int) -> memoryview:
        """The bytes from ``start`` to ``end``."""
        return self._data[start:end]


class Column:
    """``count`` numbers of one size from ``at`` on; ``end`` is where the next thing starts."""

    __slots__ = ("_at", "_code", "_source", "_width", "count", "end")

    def __init__(self, source: Source, at: int, code: Code, count: int) -> None:
        self._source = source
        self._at = at
        self._code: Code = code
        self._width = array(code).itemsize
        self.count = count
        self.end: int = at + _padded(self._width * count)

    def between(self, first: int, end: int) -> memoryview[int]:
        """The numbers from ``first`` to ``end``."""
        start = self._at
        return self._source.view(start + self._width * first, start + self._width * end).cast(
            self._code
        )

    def all(self) -> memoryview[int]:
        """All of them."""
        return self.between(0, self.count)


class Texts:
    """``count`` strings one after the other, before them where each starts."""

    __slots__ = ("_at", "_source", "_starts", "count", "end")

    def __init__(self, source: Source, at: int, count: int) -> None:
        self._source = source
        self._starts = Column(source, at, "I", count + 1)
        self._at: int = self._starts.end
        self.count = count
        self.end: int = self._at + _padded(self._starts.between(count, count + 1)[0])

    def text(self, number: int) -> bytes:
        """One of them."""
        start, end = self._starts.between(number, number + 2)
        return bytes(self._source.view(self._at + start, self._at + end))

    def all(self) -> list[bytes]:
        """All of them."""
        starts = self._starts.all().tolist()
        pool = bytes(self._source.view(self._at, self._at + starts[-1]))
        return [pool[start:end] for start, end in pairwise(starts)]

    def find(self, text: bytes) -> int:
        """The number of ``text``, -1 where it is missing, of strings that are sorted."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self.text(middle) < text:
                low = middle + 1
            else:
                high = middle
        return low if low < self.count and self.text(low) == text else -1


def column(code: Code, numbers: Iterable[int]) -> bytes:
    """The bytes of a :class:`Column`."""
    raw = array(code, numbers).tobytes()
    return raw.ljust(_padded(len(raw)), b"\0")


def texts(listed: Sequence[bytes]) -> bytes:
    """The bytes of :class:`Texts`."""
    pool = b"".join(listed)
    return column("I", accumulate(map(len, listed), initial=0)) + pool.ljust(
        _padded(len(pool)), b"\0"
    )


def _padded(size: int) -> int:
    return (size + 7) & -8


KIND_BITS = 3  # of a function's row, below its DieOffset
# Names of types and variables, their rows, scopes, whether all variables are there; names of
# functions, their rows, which functions may be missing.
_HEADER = Struct("=7Q")
_OF_C = 0x8000  # no tag has this bit: DW_TAG_hi_user is 0xffff, but compilers use no such for types
_SCOPED = "::"


class IndexTable:
    """Types, variables and functions by name.

    ``has_variables``: all of them outside functions; ``function_coverage`` is of
    :class:`~fetchc.debuginfo.dwarf.name_index_format.Scan`.
    """

    def __init__(self, source: Source) -> None:
        header = _HEADER.unpack(source.view(0, _HEADER.size))
        names, rows, scopes, whole, function_names, functions, coverage = header
        self.has_variables = bool(whole)
        self.function_coverage: int = coverage
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
    strings: dict[int, bytes] = {}

    def text(name: Name) -> bytes:
        if isinstance(name, bytes):
            return name
        if name not in strings:
            strings[name] = string(name)
        return strings[name]

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
        _HEADER.pack(*header, len(function_names), count, found.function_coverage),
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


# ------------------------------------------------------------------------------
# Entries of functions by name: those with code, and their abstract origins.
#
# A name is at a function's first declaration, so that the name of a copy, or of a method,
# is behind one or two references. All entries but mere declarations have rows: a function that
# was inlined has one in each unit whose code has calls of it.

# Kinds: it has code of its own; its body was put into callers (DW_AT_inline). Neither: the abstract
# origin of a constructor's copies, or a declaration in C whose symbol has another name.
CODE, INLINED = 1, 2
# What an index knows of a unit's functions: too little, all but those that stand within others, or
# all that such a language has. What gcc makes of a function within a function is not among them.
NO_FUNCTIONS, OUTER_FUNCTIONS, ALL_FUNCTIONS = range(3)
_CODE = frozenset({c.DW_AT_low_pc, c.DW_AT_ranges, c.DW_AT_entry_pc})
_LINKAGE = frozenset({c.DW_AT_linkage_name, c.DW_AT_MIPS_linkage_name})
_MOST = 8  # references to a name; compilers use two


def function_coverage(unit: Unit, of_c: bool) -> int:
    """How much an index has of the functions of such a unit."""
    if of_c or is_go(unit):
        return ALL_FUNCTIONS
    key = language_key(unit)
    if key == "asm":
        return ALL_FUNCTIONS
    return OUTER_FUNCTIONS if key in ("c++", "rust") else NO_FUNCTIONS


def is_defined(declaration: Declaration, of_c: bool) -> bool:
    """Whether subprograms of that declaration have rows.

    A mere declaration leads to code where its linkage name is a symbol of another name; in C++
    all have one, and the definition has a row.
    """
    has = declaration.index
    return c.DW_AT_declaration not in has or (of_c and not _LINKAGE.isdisjoint(has))


class Functions:
    """How names of functions are found, by the declarations of their entries."""

    def __init__(self) -> None:
        self.rows: dict[Name, list[int]] = {}
        self._kinds: dict[Declaration, int] = {}
        self._getters: dict[Declaration, tuple[Getter | None, Getter | None]] = {}

    def add(self, unit: Unit, entries: list[Entry]) -> None:
        """Take note of those entries of a unit."""
        kinds, rows, base = self._kinds, self.rows, unit.offset
        names: dict[int, Name | None] = {}  # by where the entry is
        for start, at, declaration in entries:
            kind = kinds.get(declaration)
            if kind is None:
                kind = kinds[declaration] = _kind(declaration)
            name = self._name(unit, start, at, declaration, names)
            if name is not None:
                rows.setdefault(name, []).append(base + start << KIND_BITS | kind)

    def _name(
        self,
        unit: Unit,
        start: int,
        at: int,
        declaration: Declaration,
        names: dict[int, Name | None],
    ) -> Name | None:
        passed: list[int] = []
        while start not in names:
            getters = self._getters.get(declaration)
            if getters is None:
                getters = self._getters[declaration] = _getters(declaration)
            plain, reference = getters
            if plain is not None:
                names[start] = dies.value(unit, plain, start, at)
            elif reference is None or len(passed) == _MOST:
                names[start] = _read(unit, start)
            else:
                passed.append(start)
                target = dies.value(unit, reference, start, at)
                if not isinstance(target, int) or not 0 < target < len(unit.data):
                    raise unit.error(f"a function refers to {target!r}, outside its unit", start)
                start = target
                if start not in names:
                    code, at = read_uleb(unit.data, start)
                    declaration = dies.declared(unit, code, start)
        name = names[start]
        names.update(dict.fromkeys(passed, name))
        return name


def _kind(declaration: Declaration) -> int:
    has = declaration.index
    return CODE * (not _CODE.isdisjoint(has)) | INLINED * (c.DW_AT_inline in has)


def _getters(declaration: Declaration) -> tuple[Getter | None, Getter | None]:
    # Of the name, and of the reference to the entry that has it; None where it is not so simple.
    form = declaration.form(c.DW_AT_name)
    if form is not None:
        return declaration.getter(c.DW_AT_name) if form in _PLAIN else None, None
    for attribute in (c.DW_AT_specification, c.DW_AT_abstract_origin):
        form = declaration.form(attribute)
        if form is not None:
            return None, declaration.getter(attribute) if form in LOCAL_REFERENCE_FORMS else None
    return None, None


def _read(unit: Unit, start: int) -> Name | None:
    die = Die(unit, start)
    if die.form(c.DW_AT_name) in STRING_INDEX_FORMS:
        index = die.raw(c.DW_AT_name)
        return unit.tables.string_offset(index) if isinstance(index, int) else None
    return first_declaration(unit.info, die).string_bytes(c.DW_AT_name)


_PLAIN = frozenset({c.DW_FORM_strp, c.DW_FORM_string})


# ------------------------------------------------------------------------------
# What a pass over units found, and how that of several passes is put together.

NOWHERE = -1  # scope of an entry that is in none


class Scan:
    """What a pass found: rows of (name, DieOffset, tag, scope, of C), and scopes.

    A name is its bytes, or an offset in .debug_str. A scope is (the scope around it, its name) by
    its place in ``scopes``; ``of C`` says that `struct s` and `s` are two names there. ``whole``:
    no variables are in scopes that were stepped over. ``functions`` are places and kinds of their
    entries by name, of which units the index has ``function_coverage``.
    """

    def __init__(self) -> None:
        self.seen: dict[Key, Row] = {}
        self.scopes: dict[tuple[int, Name], int] = {}
        self.plans: dict[tuple[Declaration, bool], Plan] = {}
        self.firsts: dict[Declaration, First] = {}
        self.whole = True
        self.gathered = Functions()
        self.function_coverage = ALL_FUNCTIONS

    @property
    def rows(self) -> Iterable[Row]:
        """The rows of types and variables."""
        return self.seen.values()

    @property
    def functions(self) -> dict[Name, list[int]]:
        """Rows of functions by name."""
        return self.gathered.rows

    def scope(self, around: int, name: Name) -> int:
        """The number of the scope of that name."""
        return self.scopes.setdefault((around, name), len(self.scopes))

    def found(self) -> Found:
        """All that is found, of numbers, strings and what holds them: marshal takes it."""
        rows = self.gathered.rows
        return self.seen, list(self.scopes), rows, self.whole, self.function_coverage

    def add(self, found: Found) -> None:
        """Add what another pass found in later units."""
        seen, scopes, functions, whole, function_coverage = found
        number = {NOWHERE: NOWHERE}  # here, of each scope there
        for at, (around, name) in enumerate(scopes):
            number[at] = self.scope(number[around], name)
        for key, (name, offset, tag, scope, of_c) in seen.items():
            if isinstance(key, tuple):
                key = number[key[0]], *key[1:]
            self.seen.setdefault(key, (name, offset, tag, number[scope], of_c))
        for name, places in functions.items():
            self.gathered.rows.setdefault(name, []).extend(places)
        self.whole = self.whole and whole
        self.function_coverage = min(self.function_coverage, function_coverage)
