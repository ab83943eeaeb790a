"""Names with their namespaces and classes, as the source writes them.

Go's names are whole already and C has no scopes, so only the other languages pay for
looking at the entries around one. Reference: DWARF 5, sections 3.2.2 and 3.4.
"""

from __future__ import annotations

from fetchc.ceilings import SCOPES as DEEPEST
from fetchc.debuginfo.dwarf.constants import (
    DW_AT_enum_class,
    DW_AT_export_symbols,
    DW_AT_name,
    DW_AT_signature,
    DW_AT_specification,
    DW_TAG_class_type,
    DW_TAG_enumeration_type,
    DW_TAG_GNU_template_parameter_pack,
    DW_TAG_GNU_template_template_param,
    DW_TAG_namespace,
    DW_TAG_structure_type,
    DW_TAG_template_type_param,
    DW_TAG_template_value_param,
    DW_TAG_union_type,
)
from fetchc.debuginfo.dwarf.languages import has_namespaces, is_cpp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import Die

    Instance = Callable[[Die], str]

__all__ = [
    "PARAMETERS",
    "UNNAMED_NAMESPACE",
    "answers_to",
    "declaration",
    "last_part",
    "own_name",
    "parts",
    "qualified_name",
    "scope_names",
]

CLASSES = frozenset({DW_TAG_structure_type, DW_TAG_class_type, DW_TAG_union_type})
SCOPES = CLASSES | {DW_TAG_namespace, DW_TAG_enumeration_type}
# clang puts them before all that a class has.
PARAMETERS = frozenset(
    {
        DW_TAG_template_type_param,
        DW_TAG_template_value_param,
        DW_TAG_GNU_template_template_param,
        DW_TAG_GNU_template_parameter_pack,
    }
)
UNNAMED_NAMESPACE = "(anonymous namespace)"  # as demanglers write it
OPENING, CLOSING = "<([{", ">)]}"


def qualified_name(info: DebugInfo, die: Die) -> str:
    """``ns::S`` for C++ and its like, else DW_AT_name; empty for an entry without a name."""
    name = own_name(info, declaration(info, die)) or ""
    if not name or not has_namespaces(die.unit):
        return name
    return "::".join([*scope_names(info, die), name])


def own_name(info: DebugInfo, die: Die, instance: Instance | None = None) -> str | None:
    """The name alone; that of a template's instance with its arguments. None without a name.

    ``instance`` is what spells one where its name has no arguments.
    """
    name = die.string(DW_AT_name)
    if name is None or die.tag not in CLASSES or name.endswith(">") or not is_cpp(die.unit):
        return name
    first = next(iter(info.children(die)), None)
    if first is None or first.tag not in PARAMETERS:
        return name
    if instance is not None:
        return instance(die)
    return info.instance_name(die)


def scope_names(info: DebugInfo, die: Die, instance: Instance | None = None) -> list[str]:
    """The namespaces and classes around the entry's declaration, outermost first.

    ``instance`` as in :func:`own_name`.
    """
    return [scope for scope, _ in _scopes(info, declaration(info, die), instance)]


def answers_to(info: DebugInfo, die: Die, name: str, whole: bool = False) -> bool:
    """Whether ``name`` is the entry's: whole, plain, or with transparent namespaces left out.

    ``whole``: not plain, if the entry is in a namespace or class that is not transparent.
    """
    wanted = parts(name)
    declared = declaration(info, die)
    own = own_name(info, declared)
    if own == name and not whole:
        return True
    if own is None or own != wanted[-1]:
        return False
    if not has_namespaces(die.unit):
        return own == name
    left = wanted[:-1]
    for scope, transparent in reversed(_scopes(info, declared)):
        if left and _is_scope(scope, left[-1]):
            left.pop()
        elif not transparent:
            return False
    return not left


def _is_scope(scope: str, wanted: str) -> bool:
    # A template's arguments are spelled as people and other compilers spell them, too.
    if scope == wanted or not (scope.endswith(">") and wanted.endswith(">")):
        return scope == wanted
    from fetchc.program.cpp_names import is_instance

    return is_instance(scope, wanted) == 2


def parts(name: str) -> list[str]:
    """``a::b<c::d>::e`` in three: ``::`` within brackets parts nothing."""
    found, depth, start = [], 0, 0
    for position, character in enumerate(name):
        if character in OPENING:
            depth += 1
        elif character in CLOSING:
            depth -= 1
        elif character == ":" and depth <= 0 and position > start and name[position - 1] == ":":
            found.append(name[start : position - 1])
            start = position + 1
    return [*found, name[start:]]


def last_part(name: str) -> str:
    """The name without the scopes before it."""
    return parts(name)[-1]


def declaration(info: DebugInfo, die: Die) -> Die:
    """Where the entry was first said to exist: the end of its origins and specifications.

    A definition outside its scope refers to the declaration within, which has the name.
    """
    return [die, *info.origins(die)][-1]


def _scopes(info: DebugInfo, die: Die, instance: Instance | None = None) -> list[tuple[str, bool]]:
    # Outermost first, with whether a name may leave the scope out: unnamed and inline namespaces,
    # enumerations that are not scoped.
    found: list[tuple[str, bool]] = []
    around = list(info.ancestors(die))
    if len(around) > DEEPEST:
        what = f"more than {DEEPEST:,} scopes within each other"
        raise die.unit.error(what, die.position, "FC0905")
    seen = set()
    while around:
        scope = around.pop()
        if scope.tag not in SCOPES:
            continue
        if scope.offset not in seen and scope.has(DW_AT_signature):
            # A class of a type unit: here are the members it needs, there its scopes.
            seen.add(scope.offset)
            scope = info.follow(scope, DW_AT_signature) or scope
            around = list(info.ancestors(scope))
        if scope.offset not in seen and scope.has(DW_AT_specification):
            seen.add(scope.offset)
            scope = declaration(info, scope)
            around = list(info.ancestors(scope))
        name = own_name(info, scope, instance)
        if name is not None:
            open_enum = scope.tag == DW_TAG_enumeration_type and not scope.flag(DW_AT_enum_class)
            found.append((name, open_enum or scope.flag(DW_AT_export_symbols)))
        elif scope.tag == DW_TAG_namespace:
            found.append((UNNAMED_NAMESPACE, True))
    found.reverse()
    return found
