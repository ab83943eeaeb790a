"""Parameters that no evidence confirms, and whether a function follows the convention at all."""

from __future__ import annotations

from fetchc.abi import convention_for, entry_places
from fetchc.check.evidence import believed, is_clone, is_unfetchable, optimised_by_gcc, same
from fetchc.program.places import Absent, Constant, Pieces, Place, PointerTo
from fetchc.target.model import WordRules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Site
    from fetchc.program.model import Function, Variable

__all__ = ["follows_convention", "unconfirmed"]


def unconfirmed(
    site: Site,
    function: Function,
    variable: Variable,
    parameters: tuple[Variable, ...],
    places: tuple[Place, ...],
    by_convention: Place,
) -> Place:
    """The place ``by_convention`` of a parameter for which there is no evidence, or Absent.

    Where another parameter proves that the convention does not hold for this function, nothing is
    known of this one.
    """
    if is_clone(function):
        return Absent(
            "FC0401", "this clone of the function was changed, and nothing says that it takes it"
        )
    if function.external and "clang" in function.producer:
        extents = site.program.extents(variable, function)
        if all(isinstance(one.place, Absent) for one in extents):
            # LLVM's calls in the same file do not pass what such a function does not use.
            # Source: removeDeadArgumentsFromCallers, DeadArgumentElimination.cpp.
            return Absent(
                "FC0401", "nothing tells that the function uses it, and callers may not pass it"
            )
        return _described_whole(function, parameters, by_convention)
    if not function.external and _is_of_no_convention(site, function):
        return Absent("FC0401", "gcc passes it in a register of its choice, as it is a local call")
    if (
        not function.external
        and "clang" in function.producer
        and any(_is_nowhere(site, function, p) for p in parameters)
    ):
        # LLVM drops parameters that a local function does not use, and keeps its name: others
        # move up, and so what no evidence confirms may be anywhere.
        # Source: llvm/lib/Transforms/IPO/DeadArgumentElimination.cpp.
        return Absent("FC0401", "the function is local to its file and may no longer take it")
    other = _elsewhere(site, function, parameters, places)
    if other is not None:
        return Absent(
            "FC0407",
            f"`{other.name}` shows that the function is called in a way of its own, and "
            f"nothing says where this one is",
        )
    if "clang" in function.producer:
        return _described_whole(function, parameters, by_convention)
    return by_convention


def _elsewhere(
    site: Site, function: Function, parameters: tuple[Variable, ...], places: tuple[Place, ...]
) -> Variable | None:
    """A parameter that is not where the convention has it: gcc does not tell of `ms_abi`."""
    for parameter, place in zip(parameters, places, strict=True):
        found = believed(site, function, parameter)
        if found is None or isinstance(place, Absent) or same(found, place):
            continue
        if place == Pieces(()):
            continue  # an empty class, of which g++ has a slot that is another one's
        if function.external:
            if isinstance(found, Constant | PointerTo):
                continue
            if is_unfetchable(site, found) and is_unfetchable(site, place):
                continue
        return parameter
    return None


def follows_convention(site: Site, function: Function) -> bool:
    """Whether nothing tells that ``function`` is called by another convention than most."""
    if function.foreign:
        return False
    if not function.external or is_clone(function):
        return True  # what tells of one parameter there tells of no other convention
    places = entry_places(site.program, convention_for(site.program, function), function)
    return _elsewhere(site, function, site.program.parameters(function), places) is None


def _described_whole(
    function: Function, parameters: tuple[Variable, ...], by_convention: Place
) -> Place:
    from fetchc.lang.cpp_functions import parameter_count

    passed = parameter_count(function.symbol)
    if passed is not None and passed > sum(not one.artificial for one in parameters):
        # Without optimisation clang does not describe a parameter that is passed by the address
        # of a copy and not used, beside a structure on the stack (measured: clang 14).
        return Absent(
            "FC0407",
            "the debug information leaves out a parameter of the function, and each one shifts "
            "those behind it",
        )
    return by_convention


def _is_of_no_convention(site: Site, function: Function) -> bool:
    rules = convention_for(site.program, function).rules
    return isinstance(rules, WordRules) and rules.regparm and optimised_by_gcc(function)


def _is_nowhere(site: Site, function: Function, variable: Variable) -> bool:
    # Or in pieces that are computed, which tells of no register that the caller filled.
    place = site.program.place(variable, function, function.address)
    return isinstance(place, Absent | Pieces)
