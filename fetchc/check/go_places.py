"""Where a Go parameter is at the entry: the convention, once its signature is known whole.

Go never changes how a function is called, so the convention is right for every parameter
that the debug information lists in full. Up to Go 1.21 it leaves out parameters without
a name, and each one shifts those behind it; from 1.22 on they are there (``~p0``).

What the debug information says of places is weaker: up to 1.16 a value that is used in
part is described at the address of that part, 1.17 names spill slots that are not
written, later versions name the place that the first block moves a parameter to.
"""

from __future__ import annotations

from fetchc.check.evidence import disagreement, evidence, same, settled
from fetchc.program.places import Absent, InMemory, InRegister, Pieces
from fetchc.program.types import BoolType, FloatType, IntType, PointerType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Site
    from fetchc.diag.model import Diagnostic
    from fetchc.program.model import Function, Variable
    from fetchc.program.places import Place
    from fetchc.source import Span

__all__ = ["go_place"]

_LISTS_UNNAMED = (1, 22)


def go_place(
    site: Site,
    function: Function,
    parameters: tuple[Variable, ...],
    places: tuple[Place, ...],
    position: int,
    span: Span,
) -> tuple[Place, Diagnostic | None]:
    """The place of ``parameters[position]`` and a warning where sources disagree.

    Raises CompileError FC0407 where a parameter without a name may be missing before it.
    """
    from fetchc.abi import convention_for, go_version

    variable, by_convention = parameters[position], places[position]
    if isinstance(by_convention, Absent):
        return by_convention, None
    version = go_version(function.producer)
    if version is None or version >= _LISTS_UNNAMED:
        found = evidence(site, function, variable)
        if not isinstance(found, InRegister | Pieces) or same(found, by_convention):
            return by_convention, None
        note = "the debug information names a place that the function moves it to at once"
        return by_convention, settled(variable, note, span)
    found = evidence(site, function, variable)
    if convention_for(site.program, function).integer_registers:
        if _confirmed_by_registers(site, function, parameters, places, position):
            return by_convention, None
    else:
        if _confirmed_by_size(site, function):
            return by_convention, None
        if found is not None and _is_number(site, variable):
            note = "a parameter without a name is missing from the debug information"
            return found, settled(variable, note, span)
    raise disagreement(
        site,
        function,
        variable,
        by_convention,
        found,
        span,
        f"Go {version[0]}.{version[1]} leaves parameters without a name out of the debug "
        f"information, and each one shifts those behind it",
    )


def _is_number(site: Site, variable: Variable) -> bool:
    # A value that cannot be used in part: its address is the address of all of it.
    from fetchc.check.site import Checker

    made = Checker(site).resolved(variable.type)
    return isinstance(made, IntType | BoolType | FloatType | PointerType)


def _confirmed_by_size(site: Site, function: Function) -> bool:
    # With the stack convention Go's own table says how many bytes a call takes.
    from fetchc.abi import argument_bytes, convention_for

    known = site.program.argument_bytes(function)
    convention = convention_for(site.program, function)
    return known is not None and known == argument_bytes(site.program, convention, function)


def _confirmed_by_registers(
    site: Site,
    function: Function,
    parameters: tuple[Variable, ...],
    places: tuple[Place, ...],
    position: int,
) -> bool:
    # A parameter at or behind this one that is wholly where the convention puts it shows
    # that nothing is missing before: a missing one would have shifted it.
    for parameter, place in zip(parameters[position:], places[position:], strict=True):
        if isinstance(place, InMemory | Absent):
            continue
        found = evidence(site, function, parameter)
        if found is not None and same(found, place) and same(place, found):
            return True
    return False
