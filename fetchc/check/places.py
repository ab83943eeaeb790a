"""Where a variable is at the probe site: the convention's word against the debug information's.

At entry the convention decides and the debug information is evidence: unoptimised
C puts parameters into slots that are not stored yet, clang measures stack parameters
from a stack pointer that has not moved yet, Go's compiler describes some parameters
wrongly in every version. Away from the entry only the debug information knows.
"""

from __future__ import annotations

from fetchc.check.evidence import (
    confirmed,
    disagreement,
    evidence,
    exact,
    goes_on,
    is_clone,
    same,
    settled,
)
from fetchc.program.places import (
    Absent,
    AtAddress,
    Constant,
    FrameRelative,
    Indirect,
    InMemory,
    InRegister,
    Pieces,
    Place,
    PointerTo,
)
from fetchc.units import ByteOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Site
    from fetchc.diag.model import Diagnostic
    from fetchc.program.model import Function, Variable
    from fetchc.source import Span
    from fetchc.units import Address

__all__ = ["follows_convention", "optimised_by_gcc", "variable_place"]


def variable_place(site: Site, variable: Variable, span: Span) -> tuple[Place, Diagnostic | None]:
    """The place of ``variable`` and a warning where two sources had to be weighed.

    Raises CompileError FC0407 where they disagree and neither is known to be right, FC0401 where
    its declaration has not run.
    """
    if variable.kind == "global":
        return site.program.place(variable, site.function, site.address), None
    assert site.function is not None
    if site.by_name and variable.kind == "parameter":
        from fetchc.check.kernel_arguments import parameter_by_name

        return parameter_by_name(site, site.function, variable, span)
    if site.returns:
        return Absent("FC0401", "a return probe sees the function's result and globals only"), None
    if site.leaving:
        from fetchc.check.go.results import place_at_return

        return place_at_return(site, site.function, variable, span)
    if variable.kind == "result":
        from fetchc.check.go.declared import has_slot_for_result

        if site.entry or not has_slot_for_result(site, site.function, variable):
            return Absent(
                "FC0410", "it is a result, which has its value when the function returns"
            ), None
    if not site.entry:
        if site.language.convention_first and variable.kind != "parameter":
            from fetchc.check.go.declared import require_declared

            require_declared(site, site.function, variable, span)
        return _standing(site, site.function, _body_place(site, variable)), None
    if variable.kind != "parameter":
        return _local_at_entry(site, variable), None
    return _parameter_at_entry(site, site.function, variable, span)


def _body_place(site: Site, variable: Variable) -> Place:
    function = site.function
    assert function is not None
    slot = _only_slot(site, variable) if variable.kind == "parameter" else None
    above = isinstance(slot, FrameRelative) and slot.offset >= 0
    if above and _is_passed_there(site, function, variable, slot):
        return site.program.place(variable, function, site.address)
    above = above and not site.architecture.callee_slots
    if above and site.language.convention_first:
        # Go 1.27 gives unused register parameters the room that a spill would take.
        return Absent("FC0401", "its room on the stack is set aside and never written")
    if above and (is_clone(function) or not function.external):
        # The compiler changed what is passed where, not what is the caller's part of the stack.
        return site.program.place(variable, function, site.address)
    if slot is None and variable.called is not None:
        early = _stored_by_call(site, function, variable, variable.called)
        if early is not None:
            return early
    if _is_untracked(site, function, variable):
        return Absent("FC0401", "gcc does not say where in the function its two halves are")
    if slot is not None:
        body = site.program.body_address(function)
        if site.address < body:
            return Absent(
                "FC0401",
                f"its stack slot is written by the function's first instructions, up to "
                f"+{body - function.address:#x}",
            )
        if optimised_by_gcc(function):
            # The slot is written somewhere in the first blocks, and nothing says where: of
            # 157 such parameters at the second line row 14 were not yet stored (GCC 12).
            return Absent(
                "FC0401", "it is in a stack slot, and nothing says from which instruction on"
            )
    return site.program.place(variable, function, site.address)


def _standing(site: Site, function: Function, place: Place) -> Place:
    """``place``, if the frame that it may be a part of stands at the site."""
    if not _is_in_frame(place) or site.program.frame_stands(function, site.address):
        return place
    body = site.program.body_address(function) - function.address
    if site.address < function.address + body:
        return Absent("FC0401", f"the frame is built by the instructions up to +{body:#x}")
    return Absent("FC0401", "the function's frame is being taken down")


def _is_in_frame(place: Place) -> bool:
    match place:
        case InMemory():
            return True
        case Indirect(pointer=inner) | PointerTo(target=inner):
            return _is_in_frame(inner)
        case Pieces(pieces=pieces):
            return any(_is_in_frame(piece.place) for piece in pieces)
        case _:
            return False


def _only_slot(site: Site, variable: Variable) -> Place | None:
    """The one memory slot that a parameter is said to have in the whole function, if any.

    Where it is of the function's own frame it cannot be true of the first instruction, so
    it says nothing of the next ones either.
    """
    assert site.function is not None
    extents = site.program.extents(variable, site.function)
    places = {extent.place for extent in extents}
    if len(places) != 1 or all(extent.start > site.function.address for extent in extents):
        return None
    place = places.pop()
    return place if isinstance(place, InMemory | FrameRelative) else None


def _stored_by_call(
    site: Site, function: Function, variable: Variable, called: Address
) -> Absent | None:
    # A parameter of an inlined call that has one slot all over. gcc -O0 stores it in front of the
    # call's code, clang with the call's first instructions.
    if _only_slot(site, variable) is None or _is_unoptimised_by_gcc(function):
        return None
    if optimised_by_gcc(function):
        return Absent("FC0401", "it is in a stack slot, and nothing says from which instruction on")
    lines = site.program.code_map()
    behind = None if lines is None else lines.statement_behind(function, called)
    if behind is None or site.address < behind:
        return Absent(
            "FC0401", "its stack slot is written by the inlined call's first instructions"
        )
    return None


def _is_passed_there(
    site: Site, function: Function, variable: Variable, slot: Place | None
) -> bool:
    if not isinstance(slot, FrameRelative):
        return False
    if not site.language.promises_convention:
        return True  # the debug information is all there is
    places = _convention_places(site, function)
    offset = slot.offset + site.architecture.entry_stack_bytes
    passed = InMemory(site.architecture.stack_pointer, ByteOffset(offset))
    position = _position(site.program.parameters(function), variable)
    # Where the convention does not know either, the debug information is all there is.
    return isinstance(places[position], Absent) or places[position] == passed


def optimised_by_gcc(function: Function) -> bool:
    """Whether gcc made the code, and not for debugging: it records its options, the last counts."""
    return function.producer.startswith("GNU ") and not _is_unoptimised_by_gcc(function)


def _is_unoptimised_by_gcc(function: Function) -> bool:
    levels = [word for word in function.producer.split() if word.startswith("-O")]
    return function.producer.startswith("GNU ") and (not levels or levels[-1] == "-O0")


def _local_at_entry(site: Site, variable: Variable) -> Place:
    # Only what cannot be a slot of a frame that is not built yet.
    assert site.function is not None
    place = site.program.place(variable, site.function, site.function.address)
    if isinstance(place, AtAddress | Constant):
        return place
    if variable.outermost:
        from fetchc.check.go.captured import captured_place

        captured = captured_place(site, site.function, variable)
        if captured is not None:
            return captured
    if isinstance(place, Absent):
        return place
    return Absent("FC0401", "it is a local variable, and no statement has run at the entry")


def _parameter_at_entry(
    site: Site, function: Function, variable: Variable, span: Span
) -> tuple[Place, Diagnostic | None]:
    if not site.language.promises_convention:
        from fetchc.check.unpromised import entry_place

        return entry_place(site, function, variable), None
    if goes_on(function) and not variable.artificial and "clang" in function.producer:
        # It has the parameters of the whole coroutine, and is passed its frame.
        return Absent(
            "FC0401", "it is in the coroutine's frame, which is what this is passed"
        ), None
    parameters = site.program.parameters(function)
    places = _convention_places(site, function, span)
    position = _position(parameters, variable)
    by_convention = places[position]
    if site.language.convention_first:
        from fetchc.check.go.places import go_place

        return go_place(site, function, parameters, places, position, span)
    found = _believed(site, function, variable)
    unknown = isinstance(by_convention, Absent)
    if function.foreign:
        if found is None:
            return Absent("FC0401", "the function is called by a convention of its own"), None
        return found, settled(variable, "the function is called by a convention of its own", span)
    if found is None:
        if unknown:
            return by_convention, None
        return _unconfirmed(site, function, variable, parameters, places, by_convention), None
    private = is_clone(function) or not function.external
    if not unknown and same(found, by_convention):
        if not private:
            return by_convention, None
        if exact(found, by_convention):
            return confirmed(found, by_convention), None
    if isinstance(found, Constant | PointerTo):
        # Only a function that is called from nowhere else is known to get one value.
        return (found if private else by_convention), None
    if unknown:
        return found, settled(variable, "the convention cannot place its type", span)
    if private:
        note = "the compiler changed how this function is called"
        return found, settled(variable, note, span)
    if _is_unfetchable(site, found) and _is_unfetchable(site, by_convention):
        return by_convention, None  # gcc has 32-bit Arm's doubles in two halves of a register
    raise disagreement(site, function, variable, by_convention, found, span)


def _is_unfetchable(site: Site, place: Place) -> bool:
    if isinstance(place, Pieces):
        return all(_is_unfetchable(site, piece.place) for piece in place.pieces)
    return isinstance(place, InRegister) and place.register in site.architecture.unfetchable


def _believed(site: Site, function: Function, variable: Variable) -> Place | None:
    # The evidence for a parameter, if the compiler has followed what becomes of it.
    found = evidence(site, function, variable)
    if isinstance(found, Pieces) and _is_untracked(site, function, variable):
        return None
    return found


def _is_untracked(site: Site, function: Function, variable: Variable) -> bool:
    # A number in two registers: gcc 12 describes those that it chose for the two halves, which the
    # first instructions fill (often the other way round) and later ones overwrite, as if they
    # had them all over the function.
    if not optimised_by_gcc(function):
        return False
    place = site.program.place(variable, function, site.address)
    if not isinstance(place, Pieces) or len(place.pieces) < 2:
        return False
    if not all(isinstance(piece.place, InRegister) for piece in place.pieces):
        return False
    end = function.address + (function.size or 0)
    extents = site.program.extents(variable, function)
    return any(one.start <= function.address and end <= one.end for one in extents)


def _position(parameters: tuple[Variable, ...], variable: Variable) -> int:
    return next(i for i, parameter in enumerate(parameters) if parameter.die == variable.die)


def _convention_places(
    site: Site, function: Function, span: Span | None = None
) -> tuple[Place, ...]:
    from fetchc.abi import convention_for, entry_places

    return entry_places(site.program, convention_for(site.program, function, span), function)


def _unconfirmed(
    site: Site,
    function: Function,
    variable: Variable,
    parameters: tuple[Variable, ...],
    places: tuple[Place, ...],
    by_convention: Place,
) -> Place:
    # No evidence for this parameter. Where another one proves that the convention does
    # not hold for this function, nothing is known of this one.
    if is_clone(function):
        return Absent("FC0401", "this clone of the function was changed and does not take it")
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
        found = _believed(site, function, parameter)
        if found is None or isinstance(place, Absent) or same(found, place):
            continue
        if place == Pieces(()):
            continue  # an empty class, of which g++ has a slot that is another one's
        if function.external:
            if isinstance(found, Constant | PointerTo):
                continue
            if _is_unfetchable(site, found) and _is_unfetchable(site, place):
                continue
        return parameter
    return None


def follows_convention(site: Site, function: Function) -> bool:
    """Whether nothing tells that ``function`` is called by another convention than most."""
    if function.foreign:
        return False
    if not function.external or is_clone(function):
        return True  # what tells of one parameter there tells of no other convention
    places = _convention_places(site, function)
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
    from fetchc.abi import convention_for
    from fetchc.target.model import WordRules

    rules = convention_for(site.program, function).rules
    return isinstance(rules, WordRules) and rules.regparm and optimised_by_gcc(function)


def _is_nowhere(site: Site, function: Function, variable: Variable) -> bool:
    # Or in pieces that are computed, which tells of no register that the caller filled.
    place = site.program.place(variable, function, function.address)
    return isinstance(place, Absent | Pieces)
