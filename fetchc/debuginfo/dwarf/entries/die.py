"""A debugging information entry, decoded when an attribute is asked for."""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries import constants as c
from fetchc.debuginfo.dwarf.entries.forms import (
    ADDRESS_INDEX_FORMS,
    ALTERNATE_STRING_FORMS,
    BLOCK_FORMS,
    CONSTANT_FORMS,
    DAMAGED,
    SIGNED_FORMS,
    STRING_INDEX_FORMS,
    read_uleb,
)
from fetchc.quantities import Address, DieOffset
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.entries.abbrev import Declaration
    from fetchc.debuginfo.dwarf.entries.forms import Value
    from fetchc.debuginfo.dwarf.entries.units import Unit

__all__ = ["Die", "LocationListRef"]


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
        declaration = unit.table.known.get(code) or unit.table.declaration(code)
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
        """Position behind the entry's values, where its first child starts if it has any."""
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
        """The value as it stands: a number, offset or index, or the bytes of a block or string."""
        found = self._get(attribute)
        return None if found is None else found[1]

    def text(self, attribute: int) -> str | None:
        """A string; bytes that are not UTF-8 become surrogates (surrogateescape)."""
        found = self.text_bytes(attribute)
        return None if found is None else found.decode("utf-8", "surrogateescape")

    def text_bytes(self, attribute: int) -> bytes | None:
        """A string as the file has it."""
        found = self._get(attribute)
        if found is None:
            return None
        form, value = found
        if isinstance(value, bytes):
            return value if form == c.DW_FORM_string else None
        if form in ALTERNATE_STRING_FORMS:
            return self.unit.info.files.alternate.string(self, value)
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
