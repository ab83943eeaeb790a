"""Global variables, and static ones of files, functions and classes, by name.

The declaration of a name is often apart from its place: a class declares its static members, a
declaration within a namespace is completed outside of it, and link-time optimization gives the
place in another unit. Reference: DWARF 5, section 4.1.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.constants import (
    VARIABLES,
    DW_AT_const_value,
    DW_AT_declaration,
    DW_AT_location,
    DW_AT_name,
    DW_TAG_enumerator,
    DW_TAG_inlined_subroutine,
    DW_TAG_lexical_block,
    DW_TAG_subprogram,
)
from fetchc.debuginfo.dwarf.languages import has_namespaces, is_go, is_rust
from fetchc.debuginfo.dwarf.qualified_names import (
    answers_to,
    declaration,
    last_part,
    parts,
    qualified_name,
)
from fetchc.debuginfo.dwarf.variable_definitions import placed
from fetchc.debuginfo.dwarf.variables import place_at, variable_of
from fetchc.program.entities import Absent
from fetchc.quantities import Address, TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import Die
    from fetchc.debuginfo.dwarf.units import Unit
    from fetchc.program.entities import Variable

__all__ = [
    "enumerators",
    "global_variables",
]

# ------------------------------------------------------------------------------
# Enumerators by name, as values of their enumeration.
#
# The name of one is visible in the scope around its enumeration, too, unless that is a scoped one.
# References: DWARF 5, section 5.7; C++17, [dcl.enum].

_ENUMERATORS = frozenset({DW_TAG_enumerator})


def enumerators(info: DebugInfo, name: str, within: Die | None) -> tuple[tuple[int, TypeId], ...]:
    """The values of enumerators of the whole name ``name``, each with its enumeration.

    Those of the unit of ``within`` hide the others. An enumeration within a function is visible in
    that function alone.
    """
    home = None if within is None else declaration(info, within)
    plain = name.removeprefix("::")
    found = _named(info, plain, home)
    if not found and home is not None and has_namespaces(home.unit):
        from fetchc.debuginfo.dwarf.imported_names import imported_names

        for names in imported_names(info, home.unit, plain):
            found = [one for each in names for one in _named(info, each, home)]
            if found:
                break
    return tuple({value: (value, holder) for value, holder in found}.values())


def _named(info: DebugInfo, name: str, home: Die | None) -> list[tuple[int, TypeId]]:
    found, own = [], []
    for die in info.find_named(last_part(name), _ENUMERATORS):
        value = die.constant(DW_AT_const_value)
        around = info.ancestors(die)
        if value is None or not around or not answers_to(info, die, name, whole=True):
            continue
        functions = [one for one in around if one.tag == DW_TAG_subprogram]
        if functions and (home is None or functions[-1].offset != home.offset):
            continue
        found.append((value, TypeId(around[-1].offset)))
        if home is not None and die.unit.offset == home.unit.offset:
            own.append(found[-1])
    return own or found


FUNCTION_SCOPES = frozenset({DW_TAG_subprogram, DW_TAG_lexical_block, DW_TAG_inlined_subroutine})
_ADDRESSES = frozenset({b"\x03", b"\xa1", b"\xfb"})  # DW_OP_addr, _addrx, _GNU_addr_index
_INDEXED = 1 << 20  # bytes of .debug_info: what is smaller is searched in no time


def global_variables(
    info: DebugInfo,
    name: str,
    within: Die | None,
    linked: Callable[[Die, str], bool],
    loosely: bool = False,
) -> tuple[Variable, ...]:
    """Variables outside functions; those of the unit of ``within`` hide the others.

    Of those that are merely declared the ones that ``linked`` knows a place of. ``f::x`` is also
    the static variable of a function, ``'file.c'::x`` that of a file. ``loosely``: scopes may be
    left out of ``name`` that no directive of the unit leaves out.
    """
    home = None if within is None else declaration(info, within)
    if name.startswith("'"):
        return _of_file(info, name, home)
    if name.startswith("::"):
        name = name.removeprefix("::")
        found = _of_name(info, name, home, whole=True)
        if not found and home is not None and has_namespaces(home.unit):
            found = _imported(info, name, home)
        return _once(found or _declared(info, name, home, linked, whole=True))
    if loosely:
        return _once(_with_scopes_left_out(info, name))
    found = {}
    for spellings in _spellings(info, name, home):
        for spelling in spellings:
            found |= _of_name(info, spelling, home) or _constants(info, spelling, home)
        if found:
            break
    if not found and home is not None and has_namespaces(home.unit):
        found = _imported(info, name, home)
    if not found and home is not None and is_rust(home.unit):
        found = _of_thread_local_macro(info, name)
    if not found and "::" in name:
        found = _of_function(info, name, None)
    return _once(found or _declared(info, name, home, linked))


def _once(found: dict[int, Variable]) -> tuple[Variable, ...]:
    # One definition may have been reached through several declarations.
    return tuple({variable.die: variable for variable in found.values()}.values())


def _of_name(
    info: DebugInfo, name: str, home: Die | None, whole: bool = False
) -> dict[int, Variable]:
    """The variables of that name, by their entries: the unit's own, else those of all units.

    Those whose ``whole`` name it is hide those of other namespaces and classes.
    """
    found: dict[int, tuple[Die, Variable]] = {}
    for die in _candidates(info, name, home):
        if die.offset in found or not _is_global(info, die, name, whole):
            continue
        at = placed(info, die)
        if at is not None:
            found[die.offset] = die, _variable(info, at)
    if len(found) > 1 and not whole:
        exact = {at: one for at, one in found.items() if answers_to(info, one[0], name, True)}
        found = exact or found
    if home is not None:
        own = {at: one for at, one in found.items() if one[0].unit.offset == home.unit.offset}
        found = own or found
    return {at: variable for at, (_, variable) in found.items()}


def _imported(info: DebugInfo, name: str, home: Die) -> dict[int, Variable]:
    from fetchc.debuginfo.dwarf.imported_names import imported_names

    for names in imported_names(info, home.unit, name):
        found: dict[int, Variable] = {}
        for one in names:
            found.update(_of_name(info, one, home, whole=True))
        if found:
            return found
    return {}


def _of_function(info: DebugInfo, name: str, unit: Unit | None) -> dict[int, Variable]:
    """Static variables of a function: ``f::counter``, ``ns::C::f::counter``."""
    *scope, plain = parts(name)
    function = "::".join(scope)
    found: dict[int, Variable] = {}
    for die in _variables_named(info, plain):
        around = [one for one in info.ancestors(die) if one.tag in FUNCTION_SCOPES]
        if not around or (unit is not None and die.unit.offset != unit.offset):
            continue
        named = [one for one in around if one.tag != DW_TAG_lexical_block]
        if named and answers_to(info, named[-1], function) and _is_static(info, die):
            found[die.offset] = variable_of(info, die, f"{function}::{plain}", "global")
    return found


def _is_static(info: DebugInfo, die: Die) -> bool:
    # A static variable is at an address of the file.
    block = die.block(DW_AT_location)
    return block is not None and block[:1] in _ADDRESSES


_OF_MACRO = ("__RUST_STD_INTERNAL_VAL", "__KEY", "VAL")


def _of_thread_local_macro(info: DebugInfo, name: str) -> dict[int, Variable]:
    """What `thread_local!` of Rust declares by that name: a variable in closures of a constant.

    Of two such closures one is used. Source: library/std/src/sys/thread_local of rustc 1.95;
    `__getit` is of those before 1.83.
    """
    wanted = parts(name)
    found: dict[int, Variable] = {}
    for die in [one for own in _OF_MACRO for one in _variables_named(info, own)]:
        *path, _ = parts(qualified_name(info, die))
        while path and path[-1].startswith(("{", "__getit")):
            path.pop()
        if path[-len(wanted) :] == wanted and not isinstance(
            place_at(info, die, None, Address(0)), Absent
        ):
            found[die.offset] = variable_of(info, die, "::".join(path), "global")
    return found


def _of_file(info: DebugInfo, name: str, home: Die | None) -> tuple[Variable, ...]:
    """``'file.c'::x``, and ``'file.c'::f::x``: of the units of the source files of that name."""
    file, _, plain = name[1:].partition("'::")
    found: dict[int, Variable] = {}
    for die in _variables_named(info, last_part(plain)):
        if _is_of_file(die.unit, file) and _is_global(info, die, plain):
            at = placed(info, die)
            if at is not None:
                found[die.offset] = _variable(info, at)
    for unit in info.units() if not found and "::" in plain else ():
        if _is_of_file(unit, file):
            found.update(_of_function(info, plain, unit))
    return _once(found)


def _is_of_file(unit: Unit, file: str) -> bool:
    name = unit.top.string(DW_AT_name) or ""
    return name == file or name.endswith(f"/{file}")


def _variable(info: DebugInfo, die: Die) -> Variable:
    name = qualified_name(info, die)
    if is_go(die.unit):
        from fetchc.debuginfo.dwarf.go_name_lookup import unescaped

        name = unescaped(name)
    return variable_of(info, die, name, "global")


def _constants(info: DebugInfo, name: str, home: Die | None) -> dict[int, Variable]:
    # Of Go, whole numbers; without a package no program has one.
    if "." not in name or (home is not None and not is_go(home.unit)):
        return {}
    from fetchc.debuginfo.dwarf.go_name_lookup import constants_named

    return {die.offset: _variable(info, die) for die in constants_named(info, name)}


def _declared(
    info: DebugInfo,
    name: str,
    home: Die | None,
    linked: Callable[[Die, str], bool],
    whole: bool = False,
) -> dict[int, Variable]:
    # One declaration is as good as another; C has no more of a name.
    for die in _candidates(info, name, home):
        if not die.flag(DW_AT_declaration) or not _is_global(info, die, name, whole):
            continue
        if linked(die, name):
            return {die.offset: _variable(info, die)}
    return {}


def _candidates(info: DebugInfo, name: str, home: Die | None) -> Iterator[Die]:
    # Of a split unit its own file alone, where that has one: all others would be opened.
    if home is not None and home.unit.is_split:
        within = home.unit.sections
        own = list(info.find_named(last_part(name), VARIABLES, within=within))
        if any(_is_global(info, die, name) and placed(info, die) for die in own):
            yield from own
            return
    yield from _variables_named(info, last_part(name))


def _variables_named(info: DebugInfo, name: str) -> Iterator[Die]:
    # By the index of a big file, which is of one file.
    if info.files.section.size >= _INDEXED and not info.files.in_several_files:
        indexed = info.name_index.variables(name)
        if indexed is not None:
            yield from map(info.die, indexed)
            return
    yield from info.find_named(name, VARIABLES)


def _with_scopes_left_out(info: DebugInfo, name: str) -> dict[int, Variable]:
    # `ns::x` for `ns::inner::x`: a directive of another unit may have said so. The scopes that are
    # written must be the variable's.
    wanted = parts(name)
    found: dict[int, Variable] = {}
    for die in _variables_named(info, wanted[-1]):
        if not _is_global(info, die, wanted[-1]):
            continue
        around = iter(parts(qualified_name(info, die)))
        found_at = placed(info, die) if all(word in around for word in wanted) else None
        if found_at is not None:
            found[die.offset] = _variable(info, found_at)
    return found


def _spellings(info: DebugInfo, name: str, home: Die | None) -> Iterator[tuple[str, ...]]:
    # Those of one tuple are equally good. A Go variable without a package is one of the function's
    # own package, and so is one of a package that is called as that one is.
    from fetchc.debuginfo.dwarf import go_name_lookup

    called, dot, rest = name.partition(".")
    go = home is not None and is_go(home.unit)
    if not dot:
        if home is not None and go:
            package = go_name_lookup.package_of(home.string(DW_AT_name) or "")
            if package:
                yield (f"{package}.{name}",)
        yield (name,)
        return
    own = go_name_lookup.own_package(info, home, called) if go else ""
    if own:
        yield (f"{own}.{rest}",)
    for spelling in go_name_lookup.escaped(name):
        yield (spelling,)
    yield tuple(go_name_lookup.with_import_path(info, name))


def _is_global(info: DebugInfo, die: Die, name: str, whole: bool = False) -> bool:
    if not answers_to(info, die, name, whole):
        return False
    return all(scope.tag not in FUNCTION_SCOPES for scope in info.ancestors(die))
