"""Parameters, results, locals and globals.

A function's entry with code often stands apart from the one that was declared: the
concrete copy leaves out parameters it does not use, the abstract one has no places. Here
they are put together: names, types and order of the abstract, places of the concrete.
Reference: DWARF 5, sections 3.3.8 (instances), 3.4 (blocks), 4.1 (variables).
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.attributes import is_go
from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_abstract_origin,
    DW_AT_artificial,
    DW_AT_const_value,
    DW_AT_decl_line,
    DW_AT_declaration,
    DW_AT_entry_pc,
    DW_AT_go_closure_offset,
    DW_AT_location,
    DW_AT_low_pc,
    DW_AT_name,
    DW_AT_ranges,
    DW_AT_specification,
    DW_AT_type,
    DW_AT_variable_parameter,
    DW_FORM_indirect,
    DW_FORM_ref_addr,
    DW_TAG_formal_parameter,
    DW_TAG_GNU_formal_parameter_pack,
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
from fetchc.debuginfo.dwarf.names.instances import merged
from fetchc.debuginfo.dwarf.types.table import VOID
from fetchc.program.model import Variable
from fetchc.units import Address, TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fetchc.debuginfo.dwarf.entries.abbrev import Declaration
    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo

__all__ = [
    "called_at",
    "global_variables",
    "locals_around",
    "locals_at",
    "parameters",
    "result",
]

PARAMETER, RESULT, LOCAL, GLOBAL = "parameter", "result", "local", "global"
# DW_TAG_member with DW_AT_external: a static member of a class up to DWARF 4.
GLOBAL_TAGS = frozenset({DW_TAG_variable, DW_TAG_member})
FUNCTION_SCOPES = frozenset({DW_TAG_subprogram, DW_TAG_lexical_block, DW_TAG_inlined_subroutine})
# References to entries of other units.
ABROAD = frozenset({DW_FORM_ref_addr, DW_FORM_indirect}) | ALTERNATE_REFERENCE_FORMS
_INDEXED = 1 << 20  # bytes of .debug_info: what is smaller is searched in no time
INNER = frozenset({DW_TAG_lexical_block, DW_TAG_inlined_subroutine})


def parameters(info: DebugInfo, die: Die) -> tuple[Variable, ...]:
    """Of the function with that concrete entry: parameters, then Go's results, as declared."""
    go = is_go(declaration(info, die).unit)
    found = [
        _variable(info, entry, _parameter_kind(entry, info, go), go)
        for entry in merged(info, die, _formal)
    ]
    if go:
        found = _without_copies(found)
        found.sort(key=lambda variable: variable.kind == RESULT)  # stable
    return tuple(found)


def result(info: DebugInfo, die: Die) -> TypeId | None:
    """Type of what the function returns; None for void, and for Go, which has variables."""
    if is_go(declaration(info, die).unit):
        return None
    holder = info.inherited(die, DW_AT_type)
    target = None if holder is None else info.follow(holder, DW_AT_type)
    return None if target is None else TypeId(target.offset)


def locals_at(info: DebugInfo, die: Die, address: Address) -> tuple[Variable, ...]:
    """Variables of the blocks and inlined calls around ``address``, innermost first.

    The function's own parameters are not among them.
    """
    go = is_go(declaration(info, die).unit)
    scopes: list[tuple[int, Die]] = [(0, die)]
    waiting: list[tuple[int, Iterator[Die]]] = [(0, iter(info.children(die)))]
    while waiting:
        depth, children = waiting[-1]
        child = next(children, None)
        if child is None:
            waiting.pop()
        elif child.tag in INNER and _covers(info, child, address):
            scopes.append((depth + 1, child))
            waiting.append((depth + 1, iter(info.children(child))))
    found: list[Variable] = []
    # Deepest first; of two beside each other, in the order of the file.
    for depth, scope in sorted(scopes, key=lambda entry: -entry[0]):
        found.extend(_of_scope(info, scope, go, depth == 0))
    return tuple(found)


def locals_around(info: DebugInfo, function: Die, call: Die) -> tuple[Variable, ...]:
    """What the inlined ``call`` declares itself, then the blocks and calls around it, innermost
    first. Parameters of ``function``, the one with the code, are not among them.
    """
    go = is_go(declaration(info, function).unit)
    around = [die for die in info.ancestors(call) if die.offset >= function.offset]
    found: list[Variable] = []
    for scope in (call, *reversed(around)):
        found.extend(_of_scope(info, scope, go, scope.offset == function.offset))
    return tuple(found)


def called_at(info: DebugInfo, call: Die) -> Address | None:
    """Where the code of an inlined call is entered; None where it has no code.

    DW_AT_entry_pc is an address, from DWARF 5 on also a distance from the code's start; without
    it the first address is it. Source: DWARF 5, section 2.18.
    """
    ranges = info.ranges(call) if call.has(DW_AT_low_pc) or call.has(DW_AT_ranges) else ()
    if not ranges:
        return None
    address = call.address(DW_AT_entry_pc)
    return (
        Address(ranges[0][0] + (call.constant(DW_AT_entry_pc) or 0)) if address is None else address
    )


def _of_scope(info: DebugInfo, scope: Die, go: bool, whole: bool) -> Iterator[Variable]:
    # What is captured is of the function itself (``whole``): an inlined closure has none.
    called = called_at(info, scope) if scope.tag == DW_TAG_inlined_subroutine else None
    for entry in merged(info, scope, _plain_variable if whole else _any_variable):
        passed = called if entry.tag == DW_TAG_formal_parameter else None
        yield _variable(info, entry, LOCAL, go, go and whole, passed)


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
            variable = _variable(info, placed, GLOBAL, is_go(die.unit))
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


def _declared(
    info: DebugInfo, name: str, home: Die | None, linked: Callable[[Die, str], bool]
) -> dict[int, Variable]:
    # One declaration is as good as another; C has no more of a name.
    for die in _candidates(info, name, home):
        if die.flag(DW_AT_declaration) and _is_global(info, die, name) and linked(die, name):
            return {die.offset: _variable(info, die, GLOBAL, go=False)}
    return {}


def _candidates(info: DebugInfo, name: str, home: Die | None) -> Iterator[Die]:
    # Of a split unit its own file alone, where that has one: all others would be opened.
    if home is not None and home.unit.is_split:
        within = home.unit.sections
        own = list(info.find_named(last_part(name), GLOBAL_TAGS, within=within))
        if any(_is_global(info, die, name) and _placed(info, die) for die in own):
            yield from own
            return
    yield from _named(info, last_part(name))


def _named(info: DebugInfo, name: str) -> Iterator[Die]:
    # By the index of a big file, which is of one file.
    if info.section.size >= _INDEXED and not info.in_parts:
        known = info.name_index.variables(name)
        if known is not None:
            yield from map(info.die, known)
            return
    yield from info.find_named(name, GLOBAL_TAGS)


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
            found[die.offset] = _variable(info, placed, GLOBAL, is_go(die.unit))
    return found


def _formal(info: DebugInfo, die: Die) -> Iterator[Die]:
    # Parameters; those of a C++ pack stand within an entry for the pack.
    for child in info.children(die):
        if child.tag == DW_TAG_formal_parameter:
            yield child
        elif child.tag == DW_TAG_GNU_formal_parameter_pack:
            for inner in info.children(child):
                if inner.tag == DW_TAG_formal_parameter:
                    yield inner


def _plain_variable(info: DebugInfo, die: Die) -> Iterator[Die]:
    return (child for child in info.children(die) if child.tag == DW_TAG_variable)


def _any_variable(info: DebugInfo, die: Die) -> Iterator[Die]:
    # The parameters of an inlined call are variables of the function around it.
    yield from _plain_variable(info, die)
    yield from _formal(info, die)


def _variable(
    info: DebugInfo,
    die: Die,
    kind: str,
    go: bool,
    outermost: bool = False,
    called: Address | None = None,
) -> Variable:
    name = ""
    named = info.inherited(die, DW_AT_name)
    if named is not None:
        name = named.text(DW_AT_name) or ""
        if kind == GLOBAL:
            name = qualified_name(info, die)
    if go and kind == GLOBAL:
        from fetchc.debuginfo.dwarf.names.go_names import unescaped

        name = unescaped(name)
    typed = info.inherited(die, DW_AT_type)
    target = None if typed is None else info.follow(typed, DW_AT_type)
    lined = info.inherited(die, DW_AT_decl_line)
    artificial = info.inherited(die, DW_AT_artificial)
    captured = info.inherited(die, DW_AT_go_closure_offset) if outermost else None
    return Variable(
        name,
        VOID if target is None else TypeId(target.offset),
        kind,
        die.offset,
        0 if lined is None else lined.unsigned(DW_AT_decl_line) or 0,
        (artificial is not None and artificial.flag(DW_AT_artificial)) or (go and name == ".dict"),
        None if captured is None else captured.unsigned(DW_AT_go_closure_offset),
        called,
        outermost,
    )


def _parameter_kind(die: Die, info: DebugInfo, go: bool) -> str:
    # DW_AT_variable_parameter means "passed by reference and written to"; Go marks results so.
    marked = info.inherited(die, DW_AT_variable_parameter) if go else None
    if marked is not None and marked.flag(DW_AT_variable_parameter):
        return RESULT
    return PARAMETER


def _without_copies(found: list[Variable]) -> list[Variable]:
    # Go 1.18 to 1.26 list some results twice (`~r0` with the same name and type).
    seen: set[tuple[str, TypeId]] = set()
    kept = []
    for variable in found:
        key = (variable.name, variable.type)
        if variable.kind == RESULT and variable.name not in ("", "_"):
            if key in seen:
                continue
            seen.add(key)
        kept.append(variable)
    return kept


def _covers(info: DebugInfo, die: Die, address: Address) -> bool:
    # A block without any code of its own only holds declarations: it is as wide as what it is in.
    if not die.has(DW_AT_low_pc) and not die.has(DW_AT_ranges):
        return die.tag == DW_TAG_lexical_block
    return any(start <= address < end for start, end in info.ranges(die))


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
