"""Whether Go lists parameters and results in the order of the source, which decides their places.

Up to 1.16 they are sorted by their place on the stack. On machines with a link register the
compiler counts the slot of the return address for those alone that are in memory as a whole (an
array of two elements, a large structure), so these may be listed behind their neighbours. Source:
Go 1.15, cmd/compile/internal/gc/pgen.go (createDwarfVars), cmd/internal/dwarf/dwarf.go
(varsByScopeAndOffset); 1.17 sorts by declaration (dwarfgen.sortDeclsAndVars). Read on arm64.
"""

from __future__ import annotations

from fetchc.abi import go_version
from fetchc.check.evidence import evidence
from fetchc.program.entities import FrameRelative, InMemory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Site
    from fetchc.program.entities import Function, Place, Variable

__all__ = ["NOT_IN_ORDER", "out_of_order"]

NOT_IN_ORDER = (
    "Go up to 1.16 does not list the parameters of this function in their order, which decides "
    "where each of them is"
)
_BY_DECLARATION = (1, 17)


def out_of_order(
    site: Site, function: Function, variables: tuple[Variable, ...], places: tuple[Place, ...]
) -> bool:
    """Whether one of the ``variables`` is told to be below its place by the order listed.

    A parameter that the list leaves out shifts those behind it up, never down; and what is listed
    too late is the only thing that can be told of a place too low.
    """
    version = go_version(function.producer)
    if version is None or version >= _BY_DECLARATION or site.architecture.entry_stack_bytes:
        return False
    for variable, place in zip(variables, places, strict=True):
        told = _told(site, function, variable)
        if told is not None and isinstance(place, InMemory) and told < place.offset:
            return True
    return False


def _told(site: Site, function: Function, variable: Variable) -> int | None:
    # From the stack pointer at the entry, which is the CFA: the call pushes nothing.
    if variable.kind != "result":
        found = evidence(site, function, variable)
        return found.offset if isinstance(found, InMemory) else None
    slots = [
        extent.place.offset
        for extent in site.program.extents(variable, function)
        if isinstance(extent.place, FrameRelative) and extent.place.offset >= 0
    ]
    return min(slots, default=None)
