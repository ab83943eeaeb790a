"""Where a variable is behind the entry, by the debug information alone: what it says too early.

A slot of the frame is named for the whole function: also where the first instructions have not
written it yet, and where the frame does not stand any more.
"""

from __future__ import annotations

from fetchc.abi import convention_for, entry_places
from fetchc.check.evidence import (
    is_clone,
    is_untracked,
    optimised_by_gcc,
    unoptimised_by_gcc,
)
from fetchc.program.entities import (
    Absent,
    FrameRelative,
    Indirect,
    InMemory,
    Pieces,
    Place,
    PointerTo,
)
from fetchc.quantities import ByteOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Site
    from fetchc.program.entities import Function, Variable
    from fetchc.quantities import Address

__all__ = ["body_place"]


def body_place(site: Site, function: Function, variable: Variable) -> Place:
    """The place of a local or a parameter at a site within the function; Absent where too early."""
    place = _described_place(site, function, variable)
    if site.language.convention_first:
        from fetchc.check.go.parts import arranged

        place = arranged(site, function, variable, place)
    return _standing(site, function, place)


def _described_place(site: Site, function: Function, variable: Variable) -> Place:
    slot = _only_slot(site, variable) if variable.kind == "parameter" else None
    if slot is not None and site.language.promises_convention and "clang" in function.producer:
        left_out = _left_out(site, function, variable)
        if left_out is not None:
            return left_out
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
    if is_untracked(site, function, variable):
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


def _left_out(site: Site, function: Function, variable: Variable) -> Absent | None:
    # A slot in the caller's part of the stack, which clang names for the whole function, also
    # where nothing of it is used and calls of the same file leave it as it is.
    from fetchc.check.unconfirmed import passed

    if is_clone(function):
        return None
    convention = convention_for(site.program, function)
    places = entry_places(site.program, convention, function)
    parameters = site.program.parameters(function)
    for parameter, place in zip(parameters, places, strict=True):
        if parameter.die == variable.die and isinstance(place, InMemory):
            found = passed(site, function, variable, place)
            return found if isinstance(found, Absent) else None
    return None


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
    if _only_slot(site, variable) is None or unoptimised_by_gcc(function):
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
    convention = convention_for(site.program, function)
    places = entry_places(site.program, convention, function)
    offset = slot.offset + site.architecture.entry_stack_bytes
    passed = InMemory(site.architecture.stack_pointer, ByteOffset(offset))
    parameters = site.program.parameters(function)
    there = next(
        place
        for parameter, place in zip(parameters, places, strict=True)
        if parameter.die == variable.die
    )
    # Where the convention does not know either, the debug information is all there is.
    return isinstance(there, Absent) or there == passed
