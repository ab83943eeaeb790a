"""Abbreviation tables: which attributes an entry has, in which forms.

A table is decoded only as far as the codes asked for. Compilers write one table for each
unit but the same declarations again and again (8,717 distinct ones in the 2,352 tables of
a kernel), so declarations are kept by their bytes.
Source: DWARF 5, section 7.5.3.
"""

from __future__ import annotations

import re

from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf.forms import LOCAL_REFERENCE_FORMS, Encoding, read_sleb, read_uleb
from fetchc.debuginfo.dwarf.skip import fixed_size, interpreted, skipper
from fetchc.diag.errors import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fetchc.debuginfo.dwarf.skip import Skipper
    from fetchc.debuginfo.sections import Section

    Getter = Callable[[bytes, int], int | bytes]

__all__ = ["AbbrevTable", "Declaration", "DeclarationCache"]

# The bytes of a declaration behind its code: tag, children, pairs of attribute and form (with
# a third number for DW_FORM_implicit_const, 0x21), and two zeros. Possessive throughout, so
# that garbage is refused in linear time.
_LEB = rb"[\x80-\xff]*+[\x00-\x7f]"
_DECLARATION = re.compile(
    _LEB
    + rb"[\x00-\xff](?:(?!\x00\x00)"
    + _LEB
    + rb"(?>\x21"
    + _LEB
    + rb"|(?!\x21)"
    + _LEB
    + rb"))*+\x00\x00"
)
_CHUNK = 1024  # bytes of a table read first; tables of large C units have a few thousand
_MOST = 1 << 16  # declarations kept
_GENERATE_AFTER = 12  # exec costs as much as about this many interpreted skips


class Declaration:
    """What entries of one abbreviation code look like.

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

        Behind the form that DW_FORM_indirect puts in front.
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

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, tuple[int, int, int, bool]], Declaration] = {}

    def decoded(self, raw: bytes, encoding: Encoding) -> Declaration:
        """The declaration of these bytes; ValueError where a form is unknown."""
        key = (raw, encoding.key)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            found = self._known[key] = _decoded(raw, encoding)
        return found


def _decoded(raw: bytes, encoding: Encoding) -> Declaration:
    tag, at = read_uleb(raw, 0)
    has_children = raw[at] != 0
    at += 1
    attributes = []
    end = len(raw) - 2
    while at < end:
        attribute, at = read_uleb(raw, at)
        form, at = read_uleb(raw, at)
        constant = 0
        if form == c.DW_FORM_implicit_const:
            constant, at = read_sleb(raw, at)
        elif form != c.DW_FORM_indirect and form not in encoding.readers:
            raise ValueError(f"unknown form {form:#x}")
        attributes.append((attribute, form, constant))
    return Declaration(tag, has_children, tuple(attributes), encoding)


class AbbrevTable:
    """The table at one offset of .debug_abbrev, for units of one encoding.

    ``known`` maps the codes decoded so far; ask ``declaration`` for the others.
    """

    __slots__ = ("_at", "_cache", "_data", "_encoding", "_ended", "_section", "known", "offset")

    def __init__(
        self, section: Section, offset: int, encoding: Encoding, cache: DeclarationCache
    ) -> None:
        self.offset = offset
        self.known: dict[int, Declaration] = {}
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
        while not self._ended and code not in self.known:
            self._decode_next()
        return self.known.get(code)

    def all(self) -> Iterator[tuple[int, Declaration]]:
        """Every code with its declaration."""
        while not self._ended:
            self._decode_next()
        return iter(self.known.items())

    def _decode_next(self) -> None:
        data, at = self._data, self._at
        while True:
            match = None
            try:
                code, start = read_uleb(data, at)
            except (IndexError, ValueError):
                code = -1
            else:
                if code == 0:
                    self._ended = True
                    self._data = b""
                    return
                match = _DECLARATION.match(data, start)
            if match is not None:
                break
            available = self.offset + len(data)
            if available >= self._section.size:
                raise self._section.error("truncated abbreviation", self.offset + at)
            end = min(self.offset + 4 * len(data), self._section.size)
            data = self._data = self._section.bytes_between(self.offset, end)
        try:
            declaration = self._cache.decoded(match.group(), self._encoding)
        except (IndexError, ValueError) as odd:
            # A form that is not in the standards: nothing after it can be read.
            raise DebugInfoError(
                "FC0905",
                self._section.path,
                f"abbreviation {code} cannot be read: {odd}",
                self._section.name,
                self.offset + at,
            ) from None
        self.known.setdefault(code, declaration)
        self._at = match.end()
