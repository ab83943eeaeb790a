"""Abbreviation tables: which attributes an entry has, in which forms.

A table is split only as far as the codes asked for, and only declarations asked for are
decoded. Compilers write one table for each unit but the same declarations again and again
(8,717 distinct ones in the 2,352 tables of a kernel), so these are cached by their bytes.
Source: DWARF 5, section 7.5.3.
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import MAX_LEB128, read_sleb, read_uleb, skip_leb
from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf.forms import (
    LOCAL_REFERENCE_FORMS,
    Encoding,
    fixed_size,
    interpreted,
    skipper,
)
from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fetchc.debuginfo.dwarf.forms import Skipper
    from fetchc.debuginfo.elf.headers import Section

    Getter = Callable[[bytes, int], int | bytes]

__all__ = ["AbbrevTable", "Declaration", "DeclarationCache"]

_CHUNK = 1024  # bytes of a table read first; tables of large C units have a few thousand
_MOST = 1 << 16  # declarations cached
_GENERATE_AFTER = 12  # exec costs as much as about this many interpreted skips


class Declaration:
    """An abbreviation: the attributes and forms of the entries with its code.

    ``attributes`` are (attribute, form, value of DW_FORM_implicit_const). ``fixed`` is the
    size of all values together, -1 where that varies; then ``skip`` finds the end. ``index``
    is the place of each attribute in ``attributes``.
    """

    __slots__ = (
        "_getters",
        "_used",
        "attributes",
        "encoding",
        "fixed",
        "forms",
        "has_children",
        "has_indirect",
        "index",
        "sibling",
        "skip",
        "tag",
    )

    def __init__(
        self,
        tag: int,
        has_children: bool,
        attributes: tuple[tuple[int, int, int], ...],
        encoding: Encoding,
    ) -> None:
        self.tag = tag
        self.has_children = has_children
        self.attributes = attributes
        self.encoding = encoding
        self.forms = tuple([form for _, form, _ in attributes])
        self.has_indirect = c.DW_FORM_indirect in self.forms
        self.index: dict[int, int] = {}
        for at, (attribute, _, _) in enumerate(attributes):
            self.index.setdefault(attribute, at)
        size = fixed_size(self.forms, encoding)
        self.fixed = -1 if size is None else size
        self.skip: Skipper = self._skip_slowly
        self._used = 0
        self._getters: dict[int, Getter | None] = {}
        # Where the next sibling is, from the start of the unit: None without that attribute.
        self.sibling: Getter | None = None
        place = self.index.get(c.DW_AT_sibling)
        if has_children and place is not None and self.forms[place] in LOCAL_REFERENCE_FORMS:
            self.sibling = self._getter(place)

    def _skip_slowly(self, data: bytes, at: int) -> int:
        self._used += 1
        if self._used > _GENERATE_AFTER:
            self.skip = skipper(self.forms, self.encoding)
            return self.skip(data, at)
        return interpreted(self.forms, self.encoding)(data, at)

    def form(self, attribute: int) -> int | None:
        """The form of an attribute as declared, None where entries have none."""
        place = self.index.get(attribute)
        return None if place is None else self.forms[place]

    def offset_of(self, attribute: int) -> int | None:
        """Distance of the value from the first value, None where absent or not constant."""
        place = self.index.get(attribute)
        return None if place is None else fixed_size(self.forms[:place], self.encoding)

    def position_of(self, attribute: int, data: bytes, at: int) -> int:
        """Where the value of an attribute that entries have starts, ``at`` the first value.

        After the form that DW_FORM_indirect puts first.
        """
        place = self.index[attribute]
        start = interpreted(self.forms[:place], self.encoding)(data, at)
        if self.forms[place] == c.DW_FORM_indirect:
            return read_uleb(data, start)[1]
        return start

    def getter(self, attribute: int) -> Getter | None:
        """A function (data, position of the first value) -> raw value; None where absent."""
        if attribute not in self._getters:
            place = self.index.get(attribute)
            self._getters[attribute] = None if place is None else self._getter(place)
        return self._getters[attribute]

    def _getter(self, place: int) -> Getter:
        form, constant = self.attributes[place][1:]
        encoding = self.encoding
        if form == c.DW_FORM_implicit_const:
            return lambda _data, _at: constant
        before = fixed_size(self.forms[:place], encoding)
        if form == c.DW_FORM_indirect:
            prefix = interpreted(self.forms[:place], encoding)
            return lambda data, at: encoding.indirect(data, prefix(data, at))[1]
        size = encoding.sizes.get(form)
        number = encoding.numbers.get(size) if size else None
        if before is not None and number is not None:
            unpack = number.unpack_from

            def at_distance(data: bytes, at: int) -> int:
                value: int = unpack(data, at + before)[0]
                return value

            return at_distance
        reader = encoding.readers[form]
        if before is not None:
            return lambda data, at: reader(data, at + before)[0]
        skip = skipper(self.forms[:place], encoding)
        return lambda data, at: reader(data, skip(data, at))[0]


class DeclarationCache:
    """Declarations by their bytes and encoding, shared by the tables of a file."""

    __slots__ = ("_declarations",)

    def __init__(self) -> None:
        self._declarations: dict[tuple[bytes, tuple[int, int, int, bool]], Declaration] = {}

    def declaration(self, raw: bytes, encoding: Encoding) -> Declaration:
        """The declaration of these bytes; ValueError where a form is unknown."""
        key = (raw, encoding.key)
        found = self._declarations.get(key)
        if found is None:
            if len(self._declarations) >= _MOST:
                self._declarations.clear()
            tag, at = read_uleb(raw, 0)
            attributes = tuple(_attributes(raw, at + 1, encoding)[0])
            found = self._declarations[key] = Declaration(tag, raw[at] != 0, attributes, encoding)
        return found


def _attributes(data: bytes, at: int, encoding: Encoding) -> tuple[list[tuple[int, int, int]], int]:
    # Attribute, form and constant up to the two zeros that end them, and the position after.
    attributes: list[tuple[int, int, int]] = []
    while True:
        attribute, at = read_uleb(data, at)
        form, at = read_uleb(data, at)
        constant = 0
        if form == c.DW_FORM_implicit_const:
            constant, at = read_sleb(data, at)
        elif form == 0 and attribute == 0:
            return attributes, at
        elif form != c.DW_FORM_indirect and form not in encoding.readers:
            raise ValueError(f"unknown form {form:#x}")
        attributes.append((attribute, form, constant))


class AbbrevTable:
    """The table at one offset of .debug_abbrev, for units of one encoding.

    ``decoded`` maps the codes asked for so far; ask ``declaration`` for the others.
    """

    __slots__ = (
        "_at",
        "_cache",
        "_data",
        "_encoding",
        "_ended",
        "_places",
        "_section",
        "decoded",
        "offset",
    )

    def __init__(
        self, section: Section, offset: int, encoding: Encoding, cache: DeclarationCache
    ) -> None:
        self.offset = offset
        self.decoded: dict[int, Declaration] = {}
        # Of each code: its offset in _data, and where its declaration begins and ends.
        self._places: dict[int, tuple[int, int, int]] = {}
        self._section = section
        self._encoding = encoding
        self._cache = cache
        self._at = 0  # in _data, which starts at ``offset``
        self._ended = False
        if offset >= section.size:
            raise section.error("abbreviation table outside the section", offset)
        self._data = section.bytes_between(offset, min(offset + _CHUNK, section.size))

    def declaration(self, code: int) -> Declaration | None:
        """The declaration of a code, None where the table has none."""
        found = self.decoded.get(code)
        if found is not None:
            return found
        place = self._places.get(code)
        while place is None:
            if self._ended:
                return None
            self._next()
            place = self._places.get(code)
        at, start, end = place
        try:
            found = self._cache.declaration(self._data[start:end], self._encoding)
        except (IndexError, ValueError) as odd:
            raise self._unreadable(code, at, odd) from None
        self.decoded[code] = found
        return found

    def all(self) -> Iterator[tuple[int, Declaration]]:
        """Every code with its declaration."""
        return self._declarations(None)

    def tagged(self, tags: frozenset[int]) -> Iterator[tuple[int, Declaration]]:
        """Every code with its declaration, of those tags; the others are not decoded."""
        return self._declarations(tags)

    def _declarations(self, tags: frozenset[int] | None) -> Iterator[tuple[int, Declaration]]:
        while not self._ended:
            self._next()
        for code, (_, start, _) in self._places.items():
            if tags is None or read_uleb(self._data, start)[0] in tags:
                found = self.declaration(code)
                assert found is not None
                yield code, found

    def _next(self) -> None:
        # Find where the next declaration ends.
        while True:
            try:
                return self._split()
            except IndexError:
                available = self.offset + len(self._data)
                if available >= self._section.size:
                    where = self.offset + self._at
                    raise self._section.error("truncated abbreviation", where) from None
                wanted = min(self.offset + 4 * len(self._data), self._section.size)
                self._data = self._section.bytes_between(self.offset, wanted)
            except ValueError as odd:  # a number that does not end
                where = self.offset + self._at
                raise self._section.error(f"malformed abbreviation: {odd}", where) from None

    def _split(self) -> None:
        code, start = read_uleb(self._data, self._at)
        if code == 0:
            self._ended = True
            self._data = self._data[: self._at]
            return
        end = self._end(code, start)
        self._places.setdefault(code, (self._at, start, end))
        self._at = end

    def _end(self, code: int, start: int) -> int:
        """Where the declaration at ``start`` ends; IndexError where the data does."""
        data = self._data
        at = skip_leb(data, start)
        if at - start > MAX_LEB128:  # the tag, which _those reads of every declaration
            raise ValueError("LEB128 number too long")
        # After tag and children come pairs of numbers that are not 0, up to two zeros: the
        # first two zeros, unless the first of them is a constant (DW_FORM_implicit_const) or
        # belongs to a number written longer than it is. Only then three zeros can stand there.
        end = data.find(b"\0\0", at + 1) + 2
        if end < 2:
            raise IndexError
        if end < len(data):
            if data[end]:
                return end
        elif self.offset + end < self._section.size:
            raise IndexError
        try:
            return _attributes(data, at + 1, self._encoding)[1]
        except ValueError as odd:
            raise self._unreadable(code, self._at, odd) from None

    def _unreadable(self, code: int, at: int, odd: Exception) -> DebugInfoError:
        # A form that is not in the standards: nothing after it can be read.
        return DebugInfoError(
            "FC0905",
            self._section.path,
            f"abbreviation {code} cannot be read: {odd}",
            self._section.name,
            self.offset + at,
        )
