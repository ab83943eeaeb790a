"""Entries that stand apart: of an abstract instance and of its concrete copies.

A copy leaves out what it has no use for and has the places; the abstract instance has all names,
in their order. Reference: DWARF 5, section 3.3.8.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_abstract_origin,
    DW_AT_decl_line,
    DW_AT_name,
    DW_AT_specification,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo

    Listing = Callable[[DebugInfo, Die], Iterator[Die]]

__all__ = ["merged"]

# Parameters of C++ constructors and destructors that only some of the copies take: the
# abstract entry lists them, the copy that has one says so. Source: gcc/cp/class.cc,
# maybe_retrofit_in_chrg.
ONLY_IN_COPIES = frozenset({"__in_chrg", "__vtt_parm"})


def merged(info: DebugInfo, die: Die, listing: Listing) -> list[Die]:
    """What ``die`` and its origins list, each once: the origin's order, the concrete entry.

    What only the concrete one lists (Go's results, at times) comes last.
    """
    own = list(listing(info, die))
    known = {origin: entry for entry in own for origin in _origins(info, entry)}
    for template in _templates(info, die):
        declared = list(listing(info, template))
        if declared:
            known |= _elsewhere(info, own, declared, known)
            merged = [
                known.get(entry.offset, entry)
                for entry in declared
                if entry.offset in known or entry.text(DW_AT_name) not in ONLY_IN_COPIES
            ]
            there = {entry.offset for entry in merged}
            return merged + [entry for entry in own if entry.offset not in there]
    return own


def _elsewhere(
    info: DebugInfo, own: list[Die], declared: list[Die], known: dict[int, Die]
) -> dict[int, Die]:
    # GCC's link-time optimisation merges an inline function that several units have from one
    # header, and lets the variables of a call refer to another unit's than the call itself.
    # They are the same by their name and line.
    named = {entry.offset for entry in declared}
    strange = [entry for entry in own if not any(at in named for at in _origins(info, entry))]
    if not strange:
        return {}
    same: dict[int, Die] = {}
    for entry in declared:
        if entry.offset in known or not entry.has(DW_AT_name):
            continue
        for candidate in strange:
            if _declared(info, candidate) == _declared(info, entry):
                same[entry.offset] = candidate
                strange.remove(candidate)
                break
    return same


def _declared(info: DebugInfo, die: Die) -> tuple[str | None, int | None]:
    named, lined = info.inherited(die, DW_AT_name), info.inherited(die, DW_AT_decl_line)
    return (
        None if named is None else named.text(DW_AT_name),
        None if lined is None else lined.unsigned(DW_AT_decl_line),
    )


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
