"""Names of types of a program whose debug information is in several files: no index has them."""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.attributes import has_namespaces, is_c_family
from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_declaration,
    DW_AT_signature,
    DW_AT_specification,
    DW_TAG_namespace,
)
from fetchc.debuginfo.dwarf.entries.scopes import UNNAMED_NAMESPACE, own_name, qualified_name
from fetchc.debuginfo.dwarf.names.tags import KEYWORDS, NAMED, NESTING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.dwarf.entries.units import Unit

__all__ = ["names_in_parts"]


def names_in_parts(info: DebugInfo) -> Iterator[str]:
    """Names of the types that stand outside functions, each once; opens all files."""
    seen = set()
    for unit in info.all_units():
        for name in _of_unit(info, unit):
            if name not in seen:
                seen.add(name)
                yield name


def _of_unit(info: DebugInfo, unit: Unit) -> Iterator[str]:
    nested = has_namespaces(unit)
    keywords = is_c_family(unit) and not nested
    waiting: list[tuple[str, Iterator[Die]]] = [("", iter(info.children(unit.top)))]
    while waiting:
        scope, children = waiting[-1]
        die = next(children, None)
        if die is None:
            waiting.pop()
            continue
        # A class of a type unit is listed there, not where it is stood in for.
        if die.has(DW_AT_signature) or (die.tag not in NAMED and die.tag != DW_TAG_namespace):
            continue
        name = own_name(info, die) or ""
        if die.tag == DW_TAG_namespace:
            name = name or UNNAMED_NAMESPACE
        if not name:
            continue
        whole = qualified_name(info, die) if die.has(DW_AT_specification) else scope + name
        if die.has_children and die.tag in NESTING and nested:
            waiting.append((whole + "::", iter(info.children(die))))
        if die.tag == DW_TAG_namespace or die.flag(DW_AT_declaration):
            continue
        yield f"{KEYWORDS[die.tag]} {whole}" if keywords and die.tag in KEYWORDS else whole
