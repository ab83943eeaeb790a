"""Variables outside functions, by name.

What a name means often stands apart from where it is: a class declares its static members, a
declaration within a namespace is completed outside of it, and link-time optimisation gives the
place in another unit. Reference: DWARF 5, section 4.1.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.attributes import is_go
from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_abstract_origin,
    DW_AT_const_value,
    DW_AT_declaration,
    DW_AT_location,
    DW_AT_name,
    DW_AT_specification,
    DW_FORM_indirect,
    DW_FORM_ref_addr,
    DW_TAG_inlined_subroutine,
    DW_TAG_lexical_block,
    DW_TAG_member,
    DW_TAG_namespace,
    DW_TAG_subprogram,
    DW_TAG_variable,
)
from fetchc.debuginfo.dwarf.entries.forms import ALTERNATE_REFERENCE_FORMS
from fetchc.debuginfo.dwarf.entries.scopes import (
    answers_to,
    declaration,
    last_part,
    parts,
    qualified_name,
)
from fetchc.debuginfo.dwarf.locations.variables import variable_of
from fetchc.debuginfo.dwarf.names.tags import VARIABLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fetchc.debuginfo.dwarf.entries.abbrev import Declaration
    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.program.model import Variable

__all__ = ["global_variables"]

FUNCTION_SCOPES = frozenset({DW_TAG_subprogram, DW_TAG_lexical_block, DW_TAG_inlined_subroutine})
# References to entries of other units.
ABROAD = frozenset({DW_FORM_ref_addr, DW_FORM_indirect}) | ALTERNATE_REFERENCE_FORMS
_INDEXED = 1 << 20  # bytes of .debug_info: what is smaller is searched in no time


def global_variables(
    info: DebugInfo, name: str, within: Die | None, linked: Callable[[Die, str], bool]
) -> tuple[Variable, ...]:
    """Variables outside functions; those of the unit of ``within`` hide the others.

    Of those that are merely declared the ones that ``linked`` knows a place of.
    """
    home = None if within is None else declaration(info, within)
    found: dict[int, Variable] = {}
    own: dict[int, Variable] = {}
    for spelling in _spellings(info, name, home):
        for die in _candidates(info, spelling, home):
            if die.offset in found or not _is_global(info, die, spelling):
                continue
            placed = _placed(info, die)
            if placed is None:
                continue
            variable = _variable(info, placed)
            found[die.offset] = variable
            if home is not None and die.unit.offset == home.unit.offset:
                own[die.offset] = variable
        if found:
            break
    if not found and "::" in name:
        found = _through_using(info, name)
    if not found:
        found = _declared(info, name, home, linked)
    chosen = own or found
    # One definition may have been reached through several declarations.
    return tuple({variable.die: variable for variable in chosen.values()}.values())


def _variable(info: DebugInfo, die: Die) -> Variable:
    name = qualified_name(info, die)
    if is_go(die.unit):
        from fetchc.debuginfo.dwarf.names.go_names import unescaped

        name = unescaped(name)
    return variable_of(info, die, name, "global")


def _declared(
    info: DebugInfo, name: str, home: Die | None, linked: Callable[[Die, str], bool]
) -> dict[int, Variable]:
    # One declaration is as good as another; C has no more of a name.
    for die in _candidates(info, name, home):
        if die.flag(DW_AT_declaration) and _is_global(info, die, name) and linked(die, name):
            return {die.offset: _variable(info, die)}
    return {}


def _candidates(info: DebugInfo, name: str, home: Die | None) -> Iterator[Die]:
    # Of a split unit its own file alone, where that has one: all others would be opened.
    if home is not None and home.unit.is_split:
        within = home.unit.sections
        own = list(info.find_named(last_part(name), VARIABLES, within=within))
        if any(_is_global(info, die, name) and _placed(info, die) for die in own):
            yield from own
            return
    yield from _named(info, last_part(name))


def _named(info: DebugInfo, name: str) -> Iterator[Die]:
    # By the index of a big file, which is of one file.
    if info.files.section.size >= _INDEXED and not info.files.in_parts:
        known = info.name_index.variables(name)
        if known is not None:
            yield from map(info.die, known)
            return
    yield from info.find_named(name, VARIABLES)


def _through_using(info: DebugInfo, name: str) -> dict[int, Variable]:
    # `ns::x` for `ns::inner::x`, where ns has a using-directive for inner: C++ finds it so. That
    # the directive is there is not asked for; the scopes that are written must be the variable's.
    wanted = parts(name.removeprefix("::"))
    found: dict[int, Variable] = {}
    for die in _named(info, wanted[-1]):
        if not _is_global(info, die, wanted[-1]):
            continue
        around = iter(parts(qualified_name(info, die)))
        placed = _placed(info, die) if all(word in around for word in wanted) else None
        if placed is not None:
            found[die.offset] = _variable(info, placed)
    return found


def _spellings(info: DebugInfo, name: str, home: Die | None) -> Iterator[str]:
    # A Go variable without a package is one of the function's own.
    from fetchc.debuginfo.dwarf.names import go_names

    if "." not in name:
        if home is not None and is_go(home.unit):
            package = go_names.package_of(home.text(DW_AT_name) or "")
            if package:
                yield f"{package}.{name}"
        yield name
        return
    yield from go_names.escaped(name)
    yield from go_names.with_import_path(info, name)


def _is_global(info: DebugInfo, die: Die, name: str) -> bool:
    if not answers_to(info, die, name):
        return False
    return all(scope.tag not in FUNCTION_SCOPES for scope in info.ancestors(die))


def _placed(info: DebugInfo, die: Die) -> Die | None:
    # The entry with the location: this one, or a later one that refers to it as its declaration.
    if _has_place(die):
        return die
    definition = _defined_by(info, die)
    # Declared only: no variable of this file. A static member is merely declared in its class.
    if definition is None and (die.flag(DW_AT_declaration) or die.tag == DW_TAG_member):
        return None
    definition = definition or die
    if _has_place(definition):
        return definition
    # Neither here nor there: optimised away.
    return _instance_elsewhere(info, definition) or definition


def _has_place(die: Die) -> bool:
    return die.has(DW_AT_location) or die.has(DW_AT_const_value)


def _defined_by(info: DebugInfo, die: Die) -> Die | None:
    # The definition of what ``die`` declares, in the same unit.
    scopes = [die.unit.top]
    while scopes:
        for child in info.children(scopes.pop()):
            if child.tag == DW_TAG_namespace:
                scopes.append(child)
            elif child.tag == DW_TAG_variable and child.has(DW_AT_specification):
                declared = info.follow(child, DW_AT_specification)
                if declared is not None and declared.offset == die.offset:
                    return child
    return None


def _instance_elsewhere(info: DebugInfo, die: Die) -> Die | None:
    # GCC's link-time optimisation: the location stands in a unit of the linked program, the
    # rest in the unit of the source. Source: gcc/dwarf2out.cc, dwarf2out_register_external_die.
    for unit in info.units():
        if not any(_refers_abroad(declaration) for _, declaration in unit.table.all()):
            continue
        for child in info.children(unit.top):
            if child.tag == DW_TAG_variable and child.form(DW_AT_abstract_origin) in ABROAD:
                origin = info.follow(child, DW_AT_abstract_origin)
                if origin is not None and origin.offset == die.offset:
                    return child
    return None


def _refers_abroad(declaration: Declaration) -> bool:
    return declaration.tag == DW_TAG_variable and declaration.form(DW_AT_abstract_origin) in ABROAD
