"""Parameters, results, locals and globals.

A function's entry with code often stands apart from the one that was declared: the
concrete copy leaves out parameters it does not use, the abstract one has no places. Here
they are put together: names, types and order of the abstract, places of the concrete.
Reference: DWARF 5, sections 3.3.8 (instances), 3.4 (blocks), 4.1 (variables).
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.attributes import is_go
from fetchc.debuginfo.dwarf.constants import (
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
from fetchc.debuginfo.dwarf.scopes import (
    answers_to,
    declaration,
    last_part,
    parts,
    qualified_name,
)
from fetchc.debuginfo.dwarf.types import VOID
from fetchc.program.model import Variable
from fetchc.units import Address, TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.abbrev import Declaration
    from fetchc.debuginfo.dwarf.die import Die
    from fetchc.debuginfo.dwarf.info import DebugInfo

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
# Parameters of C++ constructors and destructors that only some of the copies take: the
# abstract entry lists them, the copy that has one says so. Source: gcc/cp/class.cc,
# maybe_retrofit_in_chrg.
ONLY_IN_COPIES = frozenset({"__in_chrg", "__vtt_parm"})
# References to entries of other units.
ABROAD = frozenset({DW_FORM_ref_addr, DW_FORM_indirect})
INNER = frozenset({DW_TAG_lexical_block, DW_TAG_inlined_subroutine})


def parameters(info: DebugInfo, die: Die) -> tuple[Variable, ...]:
    """Of the function with that concrete entry: parameters, then Go's results, as declared."""
    go = is_go(declaration(info, die).unit)
    found = [
        _variable(info, entry, _parameter_kind(entry, info, go), go)
        for entry in _merged(info, die, _formal)
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
    for entry in _merged(info, scope, _plain_variable if whole else _any_variable):
        passed = called if entry.tag == DW_TAG_formal_parameter else None
        yield _variable(info, entry, LOCAL, go, go and whole, passed)


def global_variables(info: DebugInfo, name: str, within: Die | None) -> tuple[Variable, ...]:
    """Variables outside functions; those of the unit of ``within`` hide the others."""
    home = None if within is None else declaration(info, within)
    found: dict[int, Variable] = {}
    own: dict[int, Variable] = {}
    for spelling in _spellings(info, name, home):
        for die in info.find_named(last_part(spelling), GLOBAL_TAGS):
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
    chosen = own or found
    # One definition may have been reached through several declarations.
    return tuple({variable.die: variable for variable in chosen.values()}.values())


def _through_using(info: DebugInfo, name: str) -> dict[int, Variable]:
    # `ns::x` for `ns::inner::x`, where ns has a using-directive for inner: C++ finds it so. That
    # the directive is there is not asked for; the scopes that are written must be the variable's.
    wanted = parts(name.removeprefix("::"))
    found: dict[int, Variable] = {}
    for die in info.find_named(wanted[-1], GLOBAL_TAGS):
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


if TYPE_CHECKING:
    from collections.abc import Callable

    Listing = Callable[[DebugInfo, Die], Iterator[Die]]


def _merged(info: DebugInfo, die: Die, listing: Listing) -> list[Die]:
    """What ``die`` and its origins list, each once: the origin's order, the concrete entry.

    What only the concrete one lists (Go's results, at times) comes last.
    """
    own = list(listing(info, die))
    known = {origin: entry for entry in own for origin in _origins(info, entry)}
    for template in _templates(info, die):
        declared = list(listing(info, template))
        if declared:
            merged = [
                known.get(entry.offset, entry)
                for entry in declared
                if entry.offset in known or entry.text(DW_AT_name) not in ONLY_IN_COPIES
            ]
            there = {entry.offset for entry in merged}
            return merged + [entry for entry in own if entry.offset not in there]
    return own


def _templates(info: DebugInfo, die: Die) -> list[Die]:
    # The entries that ``die`` is an instance of, the best list first: the furthest abstract
    # origin names its own parameters, the declaration of a member function often does not.
    abstract: list[Die] = []
    declared: list[Die] = []
    seen = {die.offset}
    current = die
    while True:
        further = info.follow(current, DW_AT_abstract_origin)
        kind = abstract
        if further is None:
            further, kind = info.follow(current, DW_AT_specification), declared
        if further is None or further.offset in seen:
            break
        seen.add(further.offset)
        kind.append(further)
        current = further
    own = [] if abstract else [die]
    return [*reversed(abstract), *own, *declared]


def _origins(info: DebugInfo, die: Die) -> Iterator[int]:
    seen: set[int] = set()
    current: Die | None = die
    while current is not None and current.offset not in seen:
        seen.add(current.offset)
        yield current.offset
        current = info.follow(current, DW_AT_abstract_origin)


def _variable(
    info: DebugInfo,
    die: Die,
    kind: str,
    go: bool,
    closure: bool = False,
    called: Address | None = None,
) -> Variable:
    name = ""
    named = info.inherited(die, DW_AT_name)
    if named is not None:
        name = named.text(DW_AT_name) or ""
        if kind == GLOBAL:
            name = qualified_name(info, die)
    if go and kind == GLOBAL:
        from fetchc.debuginfo.dwarf.go_names import unescaped

        name = unescaped(name)
    typed = info.inherited(die, DW_AT_type)
    target = None if typed is None else info.follow(typed, DW_AT_type)
    lined = info.inherited(die, DW_AT_decl_line)
    artificial = info.inherited(die, DW_AT_artificial)
    captured = info.inherited(die, DW_AT_go_closure_offset) if closure else None
    return Variable(
        name,
        VOID if target is None else TypeId(target.offset),
        kind,
        die.offset,
        0 if lined is None else lined.unsigned(DW_AT_decl_line) or 0,
        (artificial is not None and artificial.flag(DW_AT_artificial)) or (go and name == ".dict"),
        None if captured is None else captured.unsigned(DW_AT_go_closure_offset),
        called,
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
    from fetchc.debuginfo.dwarf import go_names

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
