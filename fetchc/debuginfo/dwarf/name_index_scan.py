"""Builds the name index: one pass over all units for types, global variables and functions.

In a kernel, 15 million entries describe 35,000 types, each again and again: every C file that
includes a header has its own. So the pass steps over what is inside functions, and takes of equal
definitions the first. Equal are those of one name, scope, tag, size and line whose first two
members have the same names: one is too few, as Redis 8 shows, and to read all takes long. Of
variables all definitions have rows, by their declaration where that is separate, and of those that
are merely declared the first of each scope, with linkage and without. Of functions see
:mod:`fetchc.debuginfo.dwarf.name_index_format`. Entries are read by functions generated for each
declaration, as in :mod:`fetchc.debuginfo.dwarf.forms`.
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import read_uleb, record_layout
from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf import dies
from fetchc.debuginfo.dwarf.constants import NAMED, NESTING, TAGGED, VARIABLES
from fetchc.debuginfo.dwarf.dies import Die
from fetchc.debuginfo.dwarf.forms import DAMAGED, STRING_INDEX_FORMS
from fetchc.debuginfo.dwarf.languages import has_namespaces, is_c_family
from fetchc.debuginfo.dwarf.name_index_format import NOWHERE, Scan, function_coverage, is_defined
from fetchc.debuginfo.dwarf.qualified_names import (
    PARAMETERS,
    UNNAMED_NAMESPACE,
    own_name,
    scope_names,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from struct import Struct

    from fetchc.debuginfo.dwarf.abbrev import Declaration
    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.name_index_format import Entry, First, Key, Plan
    from fetchc.debuginfo.dwarf.units import Unit
    from fetchc.diag.diagnostic import DebugInfoError

    Name = int | bytes
    Read = Callable[[Unit, bytes, int, int], tuple[int, Name | None, int]]
    ReadName = Callable[[Unit, bytes, int, int], Name | None]
    Hop = Callable[[bytes, int], tuple[int]]

__all__ = ["hopper", "name_reader", "named", "read_units", "reader", "scan"]

# ------------------------------------------------------------------------------
# Functions that read of an entry what tells its type from others, one for each declaration.
#
# Compilers give nearly all types values of fixed size, with at most a string among them: one call
# that unpacks them all reads such an entry.

_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
_WANTED = (c.DW_AT_name, c.DW_AT_byte_size, c.DW_AT_decl_line)
_CONSTANTS = frozenset({c.DW_FORM_data1, c.DW_FORM_data2, c.DW_FORM_data4, c.DW_FORM_data8})


def reader(declaration: Declaration) -> Read:
    """How entries of the declaration are read."""
    return _unpacked(declaration) or _decoded


def named(declaration: Declaration) -> Read:
    """The reader of entries of the declaration, for their names alone.

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
    return lambda unit, data, start, at: Die(unit, start).string_bytes(c.DW_AT_name)


def hopper(declaration: Declaration) -> Hop | None:
    """How DW_AT_sibling of entries of the declaration is read; None where they have none."""
    getter = declaration.sibling
    if getter is None:
        return None
    distance = declaration.offset_of(c.DW_AT_sibling)
    size = declaration.encoding.sizes.get(declaration.form(c.DW_AT_sibling) or 0)
    if distance is not None and size in _CODES:
        little = declaration.encoding.little
        return record_layout(little, f"{distance}x{_CODES[size]}").unpack_from

    def read(data: bytes, at: int) -> tuple[int]:
        target = getter(data, at)
        return (target if isinstance(target, int) else -1,)

    return read


def _unpacked(declaration: Declaration) -> Read | None:
    # None where values have no fixed size, or a form is not one of the usual.
    sizes = declaration.encoding.sizes
    little = declaration.encoding.little
    fields_of, inline = [""], False  # before and after a name that is among the values
    fields: dict[int, int] = {}  # attribute -> its place among the unpacked values
    constants: dict[int, int] = {}
    for attribute, form, constant in declaration.attributes:
        wanted = attribute in _WANTED and attribute not in fields
        if form == c.DW_FORM_implicit_const:
            if wanted:
                constants[attribute] = constant
        elif attribute == c.DW_AT_name and form == c.DW_FORM_string and not inline:
            inline = True
            fields_of.append("")
        elif form not in sizes:
            return None
        elif not wanted:
            fields_of[-1] += f"{sizes[form]}x"
        elif sizes[form] not in _CODES or not _usual(attribute, form):
            return None
        else:
            fields_of[-1] += _CODES[sizes[form]]
            fields[attribute] = len(fields)
    if declaration.form(c.DW_AT_name) is None:
        return _decoded
    others = [constants.get(each, 0) for each in _WANTED if each not in fields]
    for attribute in _WANTED:
        fields.setdefault(attribute, len(fields))
    name, size, line = [fields[attribute] for attribute in _WANTED]
    if inline:
        before, after = [record_layout(little, each) for each in fields_of]
        return _with_string(before, after, tuple(others), size, line)
    indexed = declaration.form(c.DW_AT_name) in STRING_INDEX_FORMS
    return _with_offset(
        record_layout(little, fields_of[0]), tuple(others), indexed, name, size, line
    )


def _usual(attribute: int, form: int) -> bool:
    if attribute == c.DW_AT_name:
        return form == c.DW_FORM_strp or form in STRING_INDEX_FORMS
    return form in _CONSTANTS


def _with_offset(
    values: Struct, others: tuple[int, ...], indexed: bool, name: int, size: int, line: int
) -> Read:
    unpack, length = values.unpack_from, values.size

    def read(unit: Unit, data: bytes, start: int, at: int) -> tuple[int, Name | None, int]:
        found = unpack(data, at) + others
        named = unit.tables.string_offset(found[name]) if indexed else found[name]
        return at + length, named, found[size] << 32 | found[line]

    return read


def _with_string(
    before: Struct, after: Struct, others: tuple[int, ...], size: int, line: int
) -> Read:
    # The name is among the values, with a length of its own.
    distance = before.size

    def read(unit: Unit, data: bytes, start: int, at: int) -> tuple[int, Name | None, int]:
        begin = at + distance
        end = data.index(0, begin)
        found = before.unpack_from(data, at) + after.unpack_from(data, end + 1) + others
        return end + 1 + after.size, data[begin:end], found[size] << 32 | found[line]

    return read


def _decoded(unit: Unit, data: bytes, start: int, at: int) -> tuple[int, Name | None, int]:
    die = Die(unit, start)
    name = die.string_bytes(c.DW_AT_name)
    size, line = die.unsigned(c.DW_AT_byte_size), die.unsigned(c.DW_AT_decl_line)
    return die.stop, name, (size or 0) << 32 | (line or 0)


_RELEASE = 8 << 20  # bytes read until their pages are given back, and progress is reported
_PLACED = frozenset({c.DW_AT_location, c.DW_AT_const_value})
_STATIC = (c.DW_AT_external, c.DW_AT_declaration, c.DW_AT_const_value)
# Scopes of other languages, which the pass steps over.
_STRANGE = frozenset({c.DW_TAG_module, c.DW_TAG_common_block, c.DW_TAG_interface_type})
_FIRST_MATTERS = TAGGED


def scan(info: DebugInfo, progress: Callable[[int, int], None] | None) -> Scan:
    """Read all units; ``progress`` gets the bytes done and the bytes in all.

    Raises DebugInfoError FC0904 where an entry cannot be read.
    """
    found = Scan()
    total = sum(section.size for section, _ in info.files.sections())
    tell = progress or (lambda done, total: None)
    read_units(info.units(), found, lambda done: tell(done, total))
    tell(total, total)
    return found


def read_units(units: Iterable[Unit], found: Scan, tell: Callable[[int], None]) -> None:
    """Add what those units have to ``found``; ``tell`` gets the DieOffset that is reached.

    Raises DebugInfoError FC0904 where an entry cannot be read.
    """
    released = 0
    for unit in units:
        _unit(unit, found)
        if unit.end - released > _RELEASE:
            unit.section.release()
            released = unit.end
            tell(unit.end)


def _unit(unit: Unit, found: Scan) -> None:
    # The one loop over entries: in a kernel it turns four million times, so it calls little.
    data, seen = unit.data, found.seen
    length = len(data)
    plans: dict[int, Plan] = {}
    firsts: dict[int, First] = {}
    functions: list[Entry] = []
    nested = has_namespaces(unit)
    of_c = is_c_family(unit) and not nested
    whole = unit.compiler.instance_names_are_whole
    found.function_coverage = min(found.function_coverage, function_coverage(unit, of_c))
    top = unit.top
    if not top.has_children:
        return
    if unit.language is None:
        found.whole = False  # it may have namespaces or not
    at, scope = top.stop, NOWHERE
    around: list[int] = []
    start = at
    try:
        while True:
            start = at
            code = data[at]
            at += 1
            if code == 0:
                if not around:
                    break
                scope = around.pop()
                continue
            if code > 127:
                code, at = read_uleb(data, start)
            plan = plans.get(code)
            if plan is None:
                plan = plans[code] = _plan(unit, found, code, start, of_c)
            tag, read, defines, hop, declaration = plan
            if read is None:
                if defines:
                    functions.append((start, at, declaration))
                if hop is not None:
                    (target,) = hop(data, at)
                    # Forwards only: a sibling that points back would walk for ever.
                    if not at < target <= length:
                        raise _astray(unit, target, start)
                    at = target
                elif declaration.has_children:
                    at = _behind(unit, declaration, data, at)
                else:
                    fixed = declaration.fixed
                    at = at + fixed if fixed >= 0 else declaration.skip(data, at)
                continue
            behind, name, detail = read(unit, data, start, at)
            if tag in VARIABLES:
                _variable(unit, found, start, name, scope, declaration)
            elif name is None:
                name = UNNAMED_NAMESPACE.encode()
            within = scope
            if defines and name is not None:
                if c.DW_AT_specification in declaration.index:
                    within = _declared(unit, found, start)
                first = second = None
                if declaration.has_children and tag in _FIRST_MATTERS and data[behind]:
                    code, at_first = data[behind], behind + 1
                    if code > 127:
                        code, at_first = read_uleb(data, behind)
                    read_first = firsts.get(code) or _first(unit, found, firsts, code, behind)
                    name_of, kind, leaf = read_first
                    first = name_of(unit, data, behind, at_first)
                    if leaf is not None:
                        fixed = leaf.fixed
                        next_at = at_first + fixed if fixed >= 0 else leaf.skip(data, at_first)
                        code, at_first = data[next_at], next_at + 1
                        if code > 127:
                            code, at_first = read_uleb(data, next_at)
                        if code:
                            read_first = firsts.get(code) or _first(
                                unit, found, firsts, code, next_at
                            )
                            second = read_first[0](unit, data, next_at, at_first)
                    if kind in PARAMETERS and not whole:
                        name = _with_arguments(unit, start) or name
                key = (within, name, detail, tag, first, second, of_c)
                if key not in seen:
                    seen[key] = name, unit.offset + start, tag, within, of_c
            if not declaration.has_children:
                at = behind
            elif nested and tag in NESTING and name is not None:
                around.append(scope)
                scope = found.scope(within, name)
                at = behind
            elif hop is not None:
                (target,) = hop(data, at)
                if not at < target <= length:
                    raise _astray(unit, target, start)
                at = target
            else:
                at = dies.skip_subtree(unit, behind)
        found.gathered.add(unit, functions)
    except DAMAGED as damage:
        raise unit.error(f"the entry cannot be read: {damage}", start) from None


def _variable(
    unit: Unit, found: Scan, start: int, name: Name | None, scope: int, declaration: Declaration
) -> None:
    offset, has = unit.offset + start, declaration.index
    key: Key
    if c.DW_AT_specification in has:
        declared = unit.info.follow(Die(unit, start), c.DW_AT_specification)
        if declared is None:
            return
        name, offset, key = declared.string_bytes(c.DW_AT_name), declared.offset, declared.offset
    elif c.DW_AT_declaration in has and not _PLACED & has.keys():
        # Only what is external can be linked to something.
        key = scope, name, c.DW_AT_external in has
    else:
        key = offset
    if name is not None and key not in found.seen:
        found.seen[key] = name, offset, declaration.tag, scope, False


def _declared(unit: Unit, found: Scan, start: int) -> int:
    # The scope of a class that is defined apart from where it is declared, as in a type unit.
    scope = NOWHERE
    for name in scope_names(unit.info, Die(unit, start)):
        scope = found.scope(scope, name.encode("utf-8", "surrogateescape"))
    return scope


def _plan(unit: Unit, found: Scan, code: int, start: int, of_c: bool) -> Plan:
    declaration = dies.declared(unit, code, start)
    plan = found.plans.get((declaration, of_c))
    if plan is None:
        tag = declaration.tag
        has = declaration.index
        read = None
        if (c.DW_AT_name in has and tag in NAMED) or tag == c.DW_TAG_namespace:
            read = reader(declaration)
        elif tag == c.DW_TAG_variable or (tag == c.DW_TAG_member and _is_static(has)):
            read = named(declaration)
        elif tag in _STRANGE:
            found.whole = False
        if tag == c.DW_TAG_subprogram:
            defines = is_defined(declaration, of_c)
        else:
            defines = read is not None and tag in NAMED and c.DW_AT_declaration not in has
        plan = tag, read, defines, hopper(declaration), declaration
        found.plans[declaration, of_c] = plan
    return plan


def _is_static(has: dict[int, int]) -> bool:
    return any(attribute in has for attribute in _STATIC)


def _astray(unit: Unit, target: int, start: int) -> DebugInfoError:
    return unit.error(f"DW_AT_sibling points to {target!r}, not after the entry", start)


def _behind(unit: Unit, declaration: Declaration, data: bytes, at: int) -> int:
    # After the children of an entry that does not say where its sibling is.
    values = at + declaration.fixed if declaration.fixed >= 0 else declaration.skip(data, at)
    return dies.skip_subtree(unit, values)


def _with_arguments(unit: Unit, start: int) -> bytes | None:
    # An instance of a template, whose name may lack the arguments.
    name = own_name(unit.info, Die(unit, start))
    return None if name is None else name.encode("utf-8", "surrogateescape")


def _first(unit: Unit, found: Scan, firsts: dict[int, First], code: int, start: int) -> First:
    declaration = dies.declared(unit, code, start)
    first = found.firsts.get(declaration)
    if first is None:
        leaf = None if declaration.has_children else declaration
        first = found.firsts[declaration] = name_reader(declaration), declaration.tag, leaf
    firsts[code] = first
    return first
