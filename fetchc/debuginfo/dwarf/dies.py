"""Debugging information entries (DIEs); an attribute is decoded when it is read."""

from __future__ import annotations

from bisect import bisect_right

from fetchc.debuginfo.byte_reader import read_uleb
from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf.forms import (
    ADDRESS_INDEX_FORMS,
    BLOCK_FORMS,
    CONSTANT_FORMS,
    DAMAGED,
    SIGNED_FORMS,
    STRING_INDEX_FORMS,
    SUPPLEMENTARY_STRING_FORMS,
)
from fetchc.quantities import Address, DieOffset
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fetchc.debuginfo.dwarf.abbrev import Declaration, Getter
    from fetchc.debuginfo.dwarf.forms import Value
    from fetchc.debuginfo.dwarf.units import Unit

    Shape = tuple[bytes, int, Declaration]

    Around = tuple[int, "Around"] | None

__all__ = [
    "STRIDE",
    "Die",
    "LocationListRef",
    "Marks",
    "ancestors",
    "entries",
    "entry_covering",
    "sibling",
    "skip_subtree",
    "value",
]


class LocationListRef(Record):
    """A location list: ``offset`` in .debug_loc (version <= 4) or .debug_loclists."""

    offset: int


class Die:
    """One entry. Attribute readers give None where the attribute is absent or of another class.

    ``position`` is where the entry starts and ``values_at`` where its first value does, from
    the start of the unit.
    """

    __slots__ = (
        "_forms",
        "_stop",
        "_values",
        "declaration",
        "has_children",
        "offset",
        "position",
        "tag",
        "unit",
        "values_at",
    )

    def __init__(self, unit: Unit, position: int) -> None:
        self.unit = unit
        self.position = position
        self.offset = DieOffset(unit.offset + position)
        try:
            code, self.values_at = read_uleb(unit.data, position)
        except DAMAGED:
            raise unit.error("no entry here: the unit ends", position) from None
        if code == 0:
            raise unit.error("no entry here: it is the end of a list", position)
        declaration = unit.table.decoded.get(code) or unit.table.declaration(code)
        if declaration is None:
            raise unit.error(
                f"abbreviation {code} is not in the table at .debug_abbrev+{unit.abbrev_offset:#x}",
                position,
            )
        self.declaration: Declaration = declaration
        self.tag = declaration.tag
        self.has_children = declaration.has_children
        self._values: list[Value] | None = None
        self._forms = declaration.forms
        self._stop = -1

    def __repr__(self) -> str:
        return f"<Die {self.offset:#x} tag {self.tag:#x}>"

    def __eq__(self, other: object) -> bool:
        """Entries are the same when they are at one place of one DebugInfo."""
        return (
            isinstance(other, Die)
            and self.offset == other.offset
            and self.unit.info is other.unit.info
        )

    def __hash__(self) -> int:
        return hash(self.offset)

    @property
    def stop(self) -> int:
        """Position after the entry's values, where its first child starts if it has any."""
        if self._stop < 0:
            declaration = self.declaration
            if declaration.fixed >= 0:
                self._stop = self.values_at + declaration.fixed
            else:
                try:
                    self._stop = declaration.skip(self.unit.data, self.values_at)
                except DAMAGED as damage:
                    raise self._damaged(damage) from None
            if self._stop > len(self.unit.data):
                raise self.unit.error("the entry runs past the end of its unit", self.position)
        return self._stop

    def _damaged(self, damage: Exception) -> Exception:
        return self.unit.error(f"the entry cannot be read: {damage}", self.position)

    def _decoded(self) -> list[Value]:
        if self._values is not None:
            return self._values
        declaration = self.declaration
        data = self.unit.data
        readers = declaration.encoding.readers
        values: list[Value] = []
        forms = []
        at = self.values_at
        try:
            for _, form, constant in declaration.attributes:
                value: Value
                if form == c.DW_FORM_implicit_const:
                    value = constant
                elif form == c.DW_FORM_indirect:
                    form, value, at = declaration.encoding.indirect(data, at)
                else:
                    value, at = readers[form](data, at)
                values.append(value)
                forms.append(form)
        except DAMAGED as damage:
            raise self._damaged(damage) from None
        self._values = values
        self._stop = at
        if declaration.has_indirect:
            self._forms = tuple(forms)
        return values

    def _get(self, attribute: int) -> tuple[int, Value] | None:
        # Form and raw value.
        place = self.declaration.index.get(attribute)
        if place is None:
            return None
        value = self._decoded()[place]
        return self._forms[place], value

    def has(self, attribute: int) -> bool:
        """Whether the entry has the attribute, whatever its form."""
        return attribute in self.declaration.index

    def form(self, attribute: int) -> int | None:
        """DW_FORM_* of the attribute; of an indirect one, the form that it names."""
        found = self._get(attribute)
        return None if found is None else found[0]

    def attributes(self) -> tuple[tuple[int, int], ...]:
        """Attribute and form of every attribute, in order."""
        self._decoded()
        return tuple(
            [
                (attribute, form)
                for (attribute, _, _), form in zip(
                    self.declaration.attributes, self._forms, strict=True
                )
            ]
        )

    def raw(self, attribute: int) -> Value | None:
        """The value as encoded: a number, offset or index, or the bytes of a block or string."""
        found = self._get(attribute)
        return None if found is None else found[1]

    def string(self, attribute: int) -> str | None:
        """A string; bytes that are not UTF-8 become surrogates (surrogateescape)."""
        found = self.string_bytes(attribute)
        return None if found is None else found.decode("utf-8", "surrogateescape")

    def string_bytes(self, attribute: int) -> bytes | None:
        """A string as the file has it."""
        found = self._get(attribute)
        if found is None:
            return None
        form, value = found
        if isinstance(value, bytes):
            return value if form == c.DW_FORM_string else None
        if form in SUPPLEMENTARY_STRING_FORMS:
            return self.unit.info.files.supplementary.string(self, value)
        if form == c.DW_FORM_strp:
            section = ".debug_str"
        elif form == c.DW_FORM_line_strp:
            section = ".debug_line_str"
        elif form in STRING_INDEX_FORMS:
            value = self.unit.tables.string_offset(value)
            section = ".debug_str"
        else:
            return None
        return self.unit.info.required_section(section, self.unit).cstring(value)

    def constant(self, attribute: int) -> int | None:
        """A constant as its form reads it: data1..16 and udata unsigned, sdata signed.

        An offset (DW_FORM_sec_offset) counts as one, as DWARF 2 and 3 had it.
        """
        found = self._get(attribute)
        if found is None:
            return None
        form, value = found
        if isinstance(value, bytes):
            return None
        return value if form in CONSTANT_FORMS or form == c.DW_FORM_sec_offset else None

    def unsigned(self, attribute: int) -> int | None:
        """A constant that is not negative; None for a negative sdata or implicit_const."""
        value = self.constant(attribute)
        return None if value is None or value < 0 else value

    def signed(self, attribute: int) -> int | None:
        """A constant with data1..16 read as two's complement of their width."""
        value = self.constant(attribute)
        form = self.form(attribute)
        if value is None or form is None or form in SIGNED_FORMS:
            return value
        bits = 8 * self.declaration.encoding.sizes.get(form, 0)
        return value - (1 << bits) if bits and value >> (bits - 1) else value

    def flag(self, attribute: int) -> bool:
        """A flag; False where absent."""
        found = self._get(attribute)
        return (
            found is not None
            and found[0] in (c.DW_FORM_flag, c.DW_FORM_flag_present)
            and found[1] != 0
        )

    def address(self, attribute: int) -> Address | None:
        """A target address, through .debug_addr where the form says so."""
        found = self._get(attribute)
        if found is None:
            return None
        form, value = found
        if isinstance(value, bytes):
            return None
        if form == c.DW_FORM_addr:
            return Address(value)
        return self.unit.tables.address_at(value) if form in ADDRESS_INDEX_FORMS else None

    def block(self, attribute: int) -> bytes | None:
        """Bytes of a block or expression."""
        found = self._get(attribute)
        if found is None or isinstance(found[1], int):
            return None
        return found[1] if found[0] in BLOCK_FORMS else None

    def location(self, attribute: int) -> bytes | LocationListRef | None:
        """A location description: an expression, or where its list is.

        DWARF 2 and 3 write a list's offset as data4 or data8, later versions as sec_offset or
        as an index (loclistx), which is looked up here.
        """
        found = self._get(attribute)
        if found is None:
            return None
        form, value = found
        if isinstance(value, bytes):
            return value if form in BLOCK_FORMS else None
        if form == c.DW_FORM_sec_offset:
            return LocationListRef(value)
        if form == c.DW_FORM_loclistx:
            return LocationListRef(self.unit.tables.list_offset(".debug_loclists", value))
        if form in (c.DW_FORM_data4, c.DW_FORM_data8) and self.unit.version < 4:
            return LocationListRef(value)
        return None


# ------------------------------------------------------------------------------
# Marks: offsets in a unit at which entries start, and what is around them.
#
# A walk needs a start, and entries can only be walked forwards. So walks leave marks on their
# way, and the next one starts at the last before what it looks for.

# Entries that a walk passes between two marks.
STRIDE = 1024


class Marks:
    """The marks of one unit, its top entry the first. Positions count from the unit's start.

    ``steps`` is how many entries walks have passed.
    """

    __slots__ = ("_around", "_last", "_starts", "steps")

    def __init__(self, first: int) -> None:
        self._starts = [first]
        self._around: list[Around] = [None]
        self._last: tuple[int, Around] = first, None
        self.steps = 0

    def before(self, position: int) -> tuple[int, Around]:
        """The last marked entry before ``position`` or at it, else the first of all."""
        last = self._last
        at = max(bisect_right(self._starts, position) - 1, 0)
        start = self._starts[at]
        return last if start < last[0] <= position else (start, self._around[at])

    def function(self, address: int) -> int | None:
        """Where the subprogram that starts at ``address`` is, by the cached marks of the unit.

        -1: no subprogram does; None: nothing is cached.
        """
        return None

    def passed(
        self, starts: list[tuple[int, Around]], last: tuple[int, Around], steps: int
    ) -> None:
        """Take note of a walk: some of the starts that it passed, and where it ended."""
        self._last = last
        self.steps += steps
        for start, around in starts:
            if start > self._starts[-1]:
                self._starts.append(start)
                self._around.append(around)


# ------------------------------------------------------------------------------
# Walking the entries of a unit without decoding them.
#
# Entries stand one after the other; a zero byte ends a list of children. Only two things are
# asked of an entry: where it ends and, if DW_AT_sibling says so, where its subtree does.
# Positions count from the start of the unit.


def declared(unit: Unit, code: int, position: int) -> Declaration:
    """The declaration of a code met at ``position``."""
    found = unit.table.declaration(code)
    if found is None:
        raise unit.error(
            f"abbreviation {code} is not in the table at .debug_abbrev+{unit.abbrev_offset:#x}",
            position,
        )
    return found


def value(unit: Unit, getter: Getter, start: int, values_at: int) -> int | bytes:
    """What a getter of the declaration reads from the entry at ``start``."""
    try:
        return getter(unit.data, values_at)
    except DAMAGED as damage:
        raise unit.error(f"the entry cannot be read: {damage}", start) from None


def sibling(unit: Unit, declaration: Declaration, start: int, values_at: int) -> int | None:
    """Where DW_AT_sibling of the entry at ``start`` points; None where it has none."""
    getter = declaration.sibling
    if getter is None:
        return None
    target = value(unit, getter, start, values_at)
    # Forwards only: a sibling that points back would walk for ever.
    if not isinstance(target, int) or not values_at < target <= len(unit.data):
        raise unit.error(f"DW_AT_sibling points to {target!r}, not after the entry", start)
    return target


def entries(
    unit: Unit, into: frozenset[int] | None = None
) -> Iterator[tuple[int, Declaration, int]]:
    """(start, declaration, first value) of the unit's entries in the order of the file.

    With ``into``, subtrees of other tags are left out where DW_AT_sibling says how.
    """
    data = unit.data
    decoded = unit.table.decoded
    end = len(data)
    at = start = unit.die_offset - unit.offset
    try:
        while at < end:
            start = at
            code = data[at]
            at += 1
            if code == 0:
                continue
            if code > 127:
                code, at = read_uleb(data, at - 1)
            declaration = decoded.get(code) or declared(unit, code, start)
            yield start, declaration, at
            if into is not None and declaration.sibling is not None and declaration.tag not in into:
                at = sibling(unit, declaration, start, at) or end
                continue
            fixed = declaration.fixed
            at = at + fixed if fixed >= 0 else declaration.skip(data, at)
    except DAMAGED as damage:
        raise unit.error(f"the entry cannot be read: {damage}", start) from None
    if at > end:
        raise unit.error("the entry runs past the end of its unit", start)


def skip_subtree(unit: Unit, at: int) -> int:
    """The position after the list of children that starts at ``at``."""
    data = unit.data
    decoded = unit.table.decoded
    depth = 1
    start = at
    try:
        while depth:
            start = at
            code = data[at]
            at += 1
            if code == 0:
                depth -= 1
                continue
            if code > 127:
                code, at = read_uleb(data, at - 1)
            declaration = decoded.get(code) or declared(unit, code, start)
            values = at
            if declaration.has_children:
                if declaration.sibling is not None:
                    at = sibling(unit, declaration, start, values) or 0
                    continue
                depth += 1
            fixed = declaration.fixed
            at = at + fixed if fixed >= 0 else declaration.skip(data, at)
    except DAMAGED as damage:
        raise unit.error(f"the entry cannot be read: {damage}", start) from None
    return at


def entry_covering(unit: Unit, position: int) -> int | None:
    """The start of the entry whose bytes hold ``position``; None for a list's end.

    This is what proves that bytes found by searching are an entry.
    """
    if position < unit.die_offset - unit.offset:
        return None
    start = _walked(unit, position)[0]
    return start if unit.data[start] else None


def ancestors(unit: Unit, position: int) -> list[int]:
    """Starts of the entries around the one at ``position``, the unit's top entry first."""
    start, around = _walked(unit, position)
    if start != position:
        raise unit.error("no entry starts here", position)
    found = []
    while around is not None:
        start, around = around
        found.append(start)
    found.reverse()
    return found


def _walked(unit: Unit, position: int) -> tuple[int, Around]:
    # The start of the entry whose bytes hold the position, and what is around it: from the last
    # mark before it, over subtrees that end before it.
    data = unit.data
    decoded = unit.table.decoded
    marks = unit.marks
    at, around = marks.before(position)
    passed: list[tuple[int, Around]] = []
    steps = 0
    start, outer = at, around
    try:
        while at <= position:
            start, outer = at, around
            code = data[at]
            at += 1
            if code == 0:
                if around is not None:
                    around = around[1]
                continue
            steps += 1
            if steps % STRIDE == 0:
                passed.append((start, around))
            if code > 127:
                code, at = read_uleb(data, at - 1)
            declaration = decoded.get(code) or declared(unit, code, start)
            if declaration.has_children:
                if declaration.sibling is not None:
                    target = sibling(unit, declaration, start, at)
                    if target is not None and target <= position:
                        at = target
                        continue
                around = start, around
            fixed = declaration.fixed
            at = at + fixed if fixed >= 0 else declaration.skip(data, at)
    except DAMAGED as damage:
        raise unit.error(f"the entry cannot be read: {damage}", start) from None
    marks.passed(passed, (start, outer), steps)
    return start, outer


# ------------------------------------------------------------------------------
# Bytes that may be an entry, and the proof that they are one.
#
# Searches run over the raw bytes first, since that goes at the speed of memory, and then prove that
# what was found is an entry: bytes that merely look like one are frequent enough (a lexical block
# has the function's address, too; ``Msg`` ends ``main.Msg``).


def starts_before(data: bytes, at: int, shapes: Iterable[Shape]) -> Iterator[int]:
    """Where an entry would start whose value, at a constant distance, is at ``at``."""
    for code, distance, _ in shapes:
        start = at - distance - len(code)
        if start > 0 and data.startswith(code, start):
            yield start


def is_entry(unit: Unit, start: int) -> bool:
    """Whether an entry starts there: only a walk from the start of an entry can decide.

    That DW_AT_sibling is where the subtree ends proves nothing: bytes before an entry
    may look like the code of another declaration whose last attributes are the same. In
    Debian's libc, dlerror_run and flush_cleanup are such functions.
    """
    return entry_covering(unit, start) == start
