"""Functions that read of an entry what tells its type from others, one for each declaration.

Compilers give nearly all types values of fixed size, with at most a string among them: one call
that unpacks them all reads such an entry.
"""

from __future__ import annotations

from struct import Struct

from fetchc.debuginfo.dwarf.entries import constants as c
from fetchc.debuginfo.dwarf.entries.die import Die
from fetchc.debuginfo.dwarf.entries.forms import STRING_INDEX_FORMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.debuginfo.dwarf.entries.abbrev import Declaration
    from fetchc.debuginfo.dwarf.entries.units import Unit

    # An offset in .debug_str, or the bytes themselves.
    Name = int | bytes
    # (unit, its data, start, first value) -> position behind the values, name, and size and line
    # as one number.
    Read = Callable[[Unit, bytes, int, int], tuple[int, Name | None, int]]
    # (unit, its data, start, first value) -> name.
    ReadName = Callable[[Unit, bytes, int, int], Name | None]
    # (data of a unit, first value) -> where the next sibling is said to be.
    Hop = Callable[[bytes, int], tuple[int]]

__all__ = ["hopper", "name_reader", "named", "reader"]

_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
_WANTED = (c.DW_AT_name, c.DW_AT_byte_size, c.DW_AT_decl_line)
_CONSTANTS = frozenset({c.DW_FORM_data1, c.DW_FORM_data2, c.DW_FORM_data4, c.DW_FORM_data8})


def reader(declaration: Declaration) -> Read:
    """How entries of the declaration are read."""
    return _unpacked(declaration) or _decoded


def named(declaration: Declaration) -> Read:
    """How entries of the declaration are read of which the name alone is of interest.

    Variables have places, whose size varies.
    """
    form, getter = declaration.form(c.DW_AT_name), declaration.getter(c.DW_AT_name)
    if getter is None or form not in (c.DW_FORM_strp, c.DW_FORM_string):
        return _decoded

    def read(unit: Unit, data: bytes, start: int, at: int) -> tuple[int, Name | None, int]:
        fixed = declaration.fixed
        behind = at + fixed if fixed >= 0 else declaration.skip(data, at)
        return behind, getter(data, at), 0

    return read


def name_reader(declaration: Declaration) -> ReadName:
    """How names of entries of the declaration are read: one string is read as the same always."""
    form, getter = declaration.form(c.DW_AT_name), declaration.getter(c.DW_AT_name)
    if form is None or getter is None:
        return lambda unit, data, start, at: None
    if form in (c.DW_FORM_strp, c.DW_FORM_string):
        return lambda unit, data, start, at: getter(data, at)
    if form in STRING_INDEX_FORMS:
        return lambda unit, data, start, at: unit.tables.string_offset(int(getter(data, at)))
    return lambda unit, data, start, at: Die(unit, start).text_bytes(c.DW_AT_name)


def hopper(declaration: Declaration) -> Hop | None:
    """How DW_AT_sibling of entries of the declaration is read; None where they have none."""
    getter = declaration.sibling
    if getter is None:
        return None
    distance = declaration.offset_of(c.DW_AT_sibling)
    size = declaration.encoding.sizes.get(declaration.form(c.DW_AT_sibling) or 0)
    if distance is not None and size in _CODES:
        order = "<" if declaration.encoding.little else ">"
        return Struct(f"{order}{distance}x{_CODES[size]}").unpack_from

    def read(data: bytes, at: int) -> tuple[int]:
        target = getter(data, at)
        return (target if isinstance(target, int) else -1,)

    return read


def _unpacked(declaration: Declaration) -> Read | None:
    # None where values have no fixed size, or a form is not one of the usual.
    sizes = declaration.encoding.sizes
    order = "<" if declaration.encoding.little else ">"
    layouts, inline = [order], False
    fields: dict[int, int] = {}  # attribute -> its place among the unpacked values
    constants: dict[int, int] = {}
    for attribute, form, constant in declaration.attributes:
        wanted = attribute in _WANTED and attribute not in fields
        if form == c.DW_FORM_implicit_const:
            if wanted:
                constants[attribute] = constant
        elif attribute == c.DW_AT_name and form == c.DW_FORM_string and not inline:
            inline = True
            layouts.append(order)
        elif form not in sizes:
            return None
        elif not wanted:
            layouts[-1] += f"{sizes[form]}x"
        elif sizes[form] not in _CODES or not _usual(attribute, form):
            return None
        else:
            layouts[-1] += _CODES[sizes[form]]
            fields[attribute] = len(fields)
    if declaration.form(c.DW_AT_name) is None:
        return _decoded
    others = [constants.get(each, 0) for each in _WANTED if each not in fields]
    for attribute in _WANTED:
        fields.setdefault(attribute, len(fields))
    name, size, line = [fields[attribute] for attribute in _WANTED]
    if inline:
        return _with_string(layouts, tuple(others), size, line)
    indexed = declaration.form(c.DW_AT_name) in STRING_INDEX_FORMS
    return _with_offset(layouts[0], tuple(others), indexed, name, size, line)


def _usual(attribute: int, form: int) -> bool:
    if attribute == c.DW_AT_name:
        return form == c.DW_FORM_strp or form in STRING_INDEX_FORMS
    return form in _CONSTANTS


def _with_offset(
    layout: str, others: tuple[int, ...], indexed: bool, name: int, size: int, line: int
) -> Read:
    values = Struct(layout)
    unpack, length = values.unpack_from, values.size

    def read(unit: Unit, data: bytes, start: int, at: int) -> tuple[int, Name | None, int]:
        found = unpack(data, at) + others
        named = unit.tables.string_offset(found[name]) if indexed else found[name]
        return at + length, named, found[size] << 32 | found[line]

    return read


def _with_string(layouts: list[str], others: tuple[int, ...], size: int, line: int) -> Read:
    # The name stands among the values, with a length of its own.
    before, after = Struct(layouts[0]), Struct(layouts[1])
    distance = before.size

    def read(unit: Unit, data: bytes, start: int, at: int) -> tuple[int, Name | None, int]:
        begin = at + distance
        end = data.index(0, begin)
        found = before.unpack_from(data, at) + after.unpack_from(data, end + 1) + others
        return end + 1 + after.size, data[begin:end], found[size] << 32 | found[line]

    return read


def _decoded(unit: Unit, data: bytes, start: int, at: int) -> tuple[int, Name | None, int]:
    die = Die(unit, start)
    name = die.text_bytes(c.DW_AT_name)
    size, line = die.unsigned(c.DW_AT_byte_size), die.unsigned(c.DW_AT_decl_line)
    return die.stop, name, (size or 0) << 32 | (line or 0)
