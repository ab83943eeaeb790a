"""Where a Go parameter is at the entry: the convention, once its signature is known whole.

Go never changes how a function is called, so the convention is right for every parameter
that the debug information lists in full. Up to Go 1.21 it leaves out parameters without
a name, and each one shifts those behind it; from 1.22 on they are there (``~p0``).

What the debug information says of places is weaker: up to 1.16 a value that is used in
part is described at the address of that part, 1.17 names spill slots that are not
written, later versions name the place that the first block moves a parameter to. So what
proves that none is missing is, in this order: the name of a result without a name (up to 1.16),
the run-time's table of arguments (1.17 on, up to ten numbers), its size of all arguments, a
parameter that is in all its registers.
"""

from __future__ import annotations

from fetchc.abi import convention_for, go_version
from fetchc.check.evidence import evidence, same
from fetchc.check.go.order import NOT_IN_ORDER, out_of_order
from fetchc.check.place_words import disagreement, settled
from fetchc.program.places import Absent, InMemory, InRegister, Pieces
from fetchc.program.types import ArrayType, BoolType, FloatType, IntType, PointerType
from fetchc.target.model import GoRules
from fetchc.units import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.abi.go_evidence import CallLayout
    from fetchc.check.site import Site
    from fetchc.diag.model import Diagnostic
    from fetchc.program.model import Function, Variable
    from fetchc.program.places import Place
    from fetchc.source import Span
    from fetchc.units import DwarfRegister

__all__ = ["go_place", "loses_registers", "lost_by"]

_NOTHING = Pieces(())  # of no bytes
_LISTS_UNNAMED = (1, 22)


def go_place(
    site: Site,
    function: Function,
    parameters: tuple[Variable, ...],
    places: tuple[Place, ...],
    position: int,
    span: Span,
) -> tuple[Place, Diagnostic | None]:
    """The place of ``parameters[position]`` and a warning where sources disagree, or calls lose it.

    Raises CompileError FC0407 where a parameter without a name may be missing before it, or the
    order of the parameters is not the source's.
    """
    place, warning = _settled(site, function, parameters, places, position, span)
    in_registers = isinstance(place, InRegister | Pieces) and place != _NOTHING
    if in_registers and loses_registers(site, function):
        from fetchc.check.go.growth import lost_by_growth

        warning = lost_by_growth(site, function, parameters[position].name, span)
    return place, warning


def loses_registers(site: Site, function: Function) -> bool:
    """Whether a call that has to let its stack grow first loses its parameters in registers."""
    return lost_by(site, function) is not None


def lost_by(site: Site, function: Function) -> tuple[DwarfRegister, Address] | None:
    """What a call has that lost its parameters in registers: in a register an address of its own.

    None of a function that keeps them, or never lets its stack grow.
    """
    from fetchc.code.stack_check import behind_bare_call, growth_start

    rules = convention_for(site.program, function).rules
    check = rules.stack_check if isinstance(rules, GoRules) else None
    if check is None or check.growth is None:
        return None
    start = growth_start(site.program.code(function.address, 128), check)
    address = Address(function.address + start)
    behind = behind_bare_call(site.program.code(address, 32), check.growth) if start else 0
    return (check.growth.resumed, Address(address + behind)) if behind else None


def _settled(
    site: Site,
    function: Function,
    parameters: tuple[Variable, ...],
    places: tuple[Place, ...],
    position: int,
    span: Span,
) -> tuple[Place, Diagnostic | None]:
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
    if out_of_order(site, function, parameters, places):
        if isinstance(found, InMemory) and _is_told_whole(site, variable):
            return found, None
        raise disagreement(site, function, variable, by_convention, found, span, NOT_IN_ORDER)
    if _is_listed_in_full(site, function, parameters, places, position):
        return by_convention, None
    if (
        isinstance(by_convention, InMemory)
        and not convention_for(site.program, function).integer_registers
        and found is not None
        and _is_told_whole(site, variable)
    ):
        if same(found, by_convention):
            return by_convention, None
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


def _is_told_whole(site: Site, variable: Variable) -> bool:
    # Its address is the address of all of it: a number, or an array, which the compiler keeps
    # together from two elements on. Source: Go 1.15, cmd/compile/internal/gc/ssa.go (canSSAType).
    from fetchc.check.site import Checker

    checker = Checker(site)
    made = checker.resolved(variable.type)
    if isinstance(made, ArrayType):
        if made.count != 1:
            return bool(made.count)
        made = checker.resolved(made.element)
    return isinstance(made, IntType | BoolType | FloatType | PointerType)


def _is_listed_in_full(
    site: Site,
    function: Function,
    parameters: tuple[Variable, ...],
    places: tuple[Place, ...],
    position: int,
) -> bool:
    # Whether nothing that shifts parameters[position] can be missing from the list.
    from fetchc.abi.go_evidence import call_layout, told_at_its_position, told_one_by_one
    from fetchc.check.go.signature import counted_by_results

    counted = counted_by_results(site.program, function, parameters)
    if counted:
        return True
    program, place = site.program, places[position]
    convention = convention_for(program, function)
    registers = bool(convention.integer_registers)
    told = told_at_its_position(program, convention, function, position) if registers else None
    if told is not None:
        return told
    layout = call_layout(program, convention, function)
    if layout is not None and layout.total == program.argument_bytes(function):
        if layout.unused == 0:
            return True
        if registers and told_one_by_one(program, convention, function, position, layout.unused):
            return True
        if isinstance(place, InMemory):
            if not registers:
                return _is_tight(layout, place.offset, position, convention.word_bytes)
            # What is missing may be in the bytes that belong to nothing, and take registers: too
            # few to drive a listed parameter out of them. On the stack it would take whole words.
            few = layout.unused <= layout.integers_left and layout.unused // 4 <= layout.floats_left
            if few and layout.alignments[position] == convention.word_bytes:
                return True
    return registers and _is_shown_by_registers(site, function, parameters, places, position)


def _is_tight(layout: CallLayout, start: int, position: int, word: int) -> bool:
    # Bytes that belong to nothing, from here to the next value that begins a word: were they
    # enough to shift this one, something missing before it would leave the size as it is.
    unused, end = 0, start + layout.sizes[position]
    for index in range(position + 1, len(layout.sizes)):
        alignment = layout.alignments[index]
        unused += -end % alignment
        if alignment == word:
            return unused < layout.alignments[position]
        end += -end % alignment + layout.sizes[index]
    return unused + -end % word < layout.alignments[position]


def _is_shown_by_registers(
    site: Site,
    function: Function,
    parameters: tuple[Variable, ...],
    places: tuple[Place, ...],
    position: int,
) -> bool:
    # Wholly where the convention puts it, by the debug information: it, or one behind it with
    # nothing but single registers between, for one that is missing would have shifted all.
    whole_numbers = convention_for(site.program, function).integer_registers
    for parameter, place in zip(parameters[position:], places[position:], strict=True):
        if not isinstance(place, InRegister | Pieces):
            return False
        found = evidence(site, function, parameter)
        if found is not None and same(found, place) and same(place, found):
            return True
        if not isinstance(place, InRegister) or place.register not in whole_numbers:
            return False
    return False
