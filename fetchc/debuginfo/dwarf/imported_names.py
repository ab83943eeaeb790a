"""What a name of C++ means by using-directives, using-declarations and namespace aliases.

DWARF has a using-directive as DW_TAG_imported_module, a using-declaration as
DW_TAG_imported_declaration, and a namespace alias as one that has a name. They are in the
namespace whose members see them, in each unit again. Those within blocks are no concern of this
module. References: DWARF 5, sections 3.2.3 and 3.2.4; C++17, [namespace.qual], [namespace.udir].
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.constants import (
    DW_AT_export_symbols,
    DW_AT_import,
    DW_AT_name,
    DW_TAG_imported_declaration,
    DW_TAG_imported_module,
    DW_TAG_namespace,
)
from fetchc.debuginfo.dwarf.qualified_names import declaration, own_name, parts, qualified_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import Die
    from fetchc.debuginfo.dwarf.units import Unit

    Scope = tuple[str, ...]
    Names = list[list[str]]

__all__ = ["imported_names"]

_IMPORTS = frozenset({DW_TAG_imported_declaration, DW_TAG_imported_module})
_DEEPEST = 16  # namespaces that name each other; only a hostile file has more


def imported_names(info: DebugInfo, unit: Unit, name: str) -> list[list[str]]:
    """The qualified names that ``name`` can mean in ``unit`` by what its namespaces import.

    Those of the first list that have a meaning hide those of later ones; several of one list that
    have one are ambiguous. ``name`` is whole itself: ``al::x``, ``ns::x``, ``x`` of the file.
    """
    if not any(True for _ in unit.table.tagged(_IMPORTS)):
        return []
    return _Namespaces(info, unit).named((), parts(name), frozenset(), 0)


class _Namespaces:
    # The namespaces of one unit, by their whole names; each is read when it is asked for.

    def __init__(self, info: DebugInfo, unit: Unit) -> None:
        self._info = info
        self._unit = unit
        self._children: dict[Scope, list[Die]] = {}

    def named(self, scope: Scope, left: list[str], seen: frozenset[Scope], depth: int) -> Names:
        if depth > _DEEPEST or scope in seen:
            return []
        head, rest = left[0], left[1:]
        found: list[list[str]] = []
        if not rest and depth:
            found.append(["::".join((*scope, head))])
        children = self._within(scope)
        declared = [one for one in children if one.tag == DW_TAG_imported_declaration]
        whole = [name for one in declared if (name := self._import(one, head)) is not None]
        if not rest and whole:
            found.append(whole)
        inner = [(*scope, head), *[tuple(parts(name)) for name in whole]]
        for target in inner if rest else ():
            found += self.named(target, rest, seen, depth + 1)
        # What a scope's own names do not answer, those that it imports as a whole do, all alike.
        below = seen | {scope}
        ways = [self.named(used, left, below, depth + 1) for used in self._used(scope)]
        for level in range(max(map(len, ways), default=0)):
            found.append([one for way in ways for names in way[level : level + 1] for one in names])
        return found

    def _import(self, die: Die, name: str) -> str | None:
        # What a declaration imports as ``name``; None where it imports another name.
        own = die.string(DW_AT_name)
        if own is not None and own != name:
            return None
        target = self._info.follow(die, DW_AT_import)
        if target is None:
            return None
        if own is None and own_name(self._info, declaration(self._info, target)) != name:
            return None
        return qualified_name(self._info, target)

    def _used(self, scope: Scope) -> list[Scope]:
        found = []
        for one in self._within(scope):
            if one.tag == DW_TAG_imported_module:
                target = self._info.follow(one, DW_AT_import)
                if target is not None and target.tag == DW_TAG_namespace:
                    found.append(tuple(parts(qualified_name(self._info, target))))
        return found

    def _within(self, scope: Scope) -> list[Die]:
        # The imports and namespaces in a scope. Inline and unnamed namespaces are seen through.
        children = self._children.get(scope)
        if children is None:
            opened = list(self._opened(scope))
            children = [one for die in opened for one in self._info.children(die)]
            if not scope:
                children = list(self._info.at_top(self._unit))
            children = [
                one for one in children if one.tag in _IMPORTS or one.tag == DW_TAG_namespace
            ]
            waiting = [one for one in children if self._is_transparent(one)]
            while waiting:
                inside = [one for one in self._info.children(waiting.pop()) if one.tag in _IMPORTS]
                children += inside
            self._children[scope] = children
        return children

    def _opened(self, scope: Scope) -> Iterator[Die]:
        # A namespace may be opened several times.
        for die in self._within(scope[:-1]) if scope else ():
            if die.tag == DW_TAG_namespace and die.string(DW_AT_name) == scope[-1]:
                yield die

    def _is_transparent(self, die: Die) -> bool:
        if die.tag != DW_TAG_namespace:
            return False
        return die.string(DW_AT_name) is None or die.flag(DW_AT_export_symbols)
