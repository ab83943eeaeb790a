"""Where a variable is at the probe site: the convention's word against the debug information's.

At entry the convention decides and the debug information is evidence: unoptimised
C puts parameters into slots that are not stored yet, clang measures stack parameters
from a stack pointer that has not moved yet, Go's compiler describes some parameters
wrongly in every version. Away from the entry only the debug information knows.
"""

from __future__ import annotations

from fetchc.diag.errors import reject
from fetchc.diag.model import Diagnostic
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
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Site
    from fetchc.diag.errors import CompileError
    from fetchc.program.model import Function, Variable
    from fetchc.source import Span

__all__ = ["disagreement", "evidence", "is_clone", "same", "settled", "variable_place"]

# Suffixes of functions whose signature GCC or LLVM may have changed.
# Source: GCC, gcc/ipa-*.cc (clone_function_name); LLVM ArgumentPromotion keeps the name.
_CLONES = (".isra.", ".constprop.", ".part.", ".cold", ".llvm.")


def is_clone(function: Function) -> bool:
    """Whether the symbol says that the compiler changed a copy of the function."""
    return any(mark in function.symbol for mark in _CLONES)


def variable_place(site: Site, variable: Variable, span: Span) -> tuple[Place, Diagnostic | None]:
    """The place of ``variable`` and a warning where two sources had to be weighed.

    Raises CompileError FC0407 where they disagree and neither is known to be right.
    """
    if variable.kind == "global":
        return site.program.place(variable, site.function, site.address), None
    assert site.function is not None
    if site.returns:
        return Absent("FC0401", "a return probe sees the function's result and globals only"), None
    if variable.kind == "result":
        return _result_place(site, variable), None
    if not site.entry:
        return _body_place(site, variable), None
    if variable.kind != "parameter":
        return _local_at_entry(site, variable), None
    return _parameter_at_entry(site, site.function, variable, span)


def _result_place(site: Site, variable: Variable) -> Place:
    return Absent(
        "FC0410", f"`{variable.name}` is a result: it has its value when the function returns"
    )


def _body_place(site: Site, variable: Variable) -> Place:
    assert site.function is not None
    place = site.program.place(variable, site.function, site.address)
    body = site.program.body_address(site.function)
    if _is_slot(site, place) and site.address < body:
        return Absent(
            "FC0401",
            f"its stack slot is written by the function's first instructions, up to "
            f"+{body - site.function.address:#x}",
        )
    return place


def _is_slot(site: Site, place: Place) -> bool:
    # A slot of the frame, for the whole scope: unoptimised code.
    return isinstance(place, InMemory | FrameRelative)


def _local_at_entry(site: Site, variable: Variable) -> Place:
    # Only what cannot be a slot of a frame that is not built yet.
    assert site.function is not None
    place = site.program.place(variable, site.function, site.function.address)
    if isinstance(place, AtAddress | Constant | Absent):
        return place
    return Absent("FC0401", "it is a local variable, and no statement has run at the entry")


def _parameter_at_entry(
    site: Site, function: Function, variable: Variable, span: Span
) -> tuple[Place, Diagnostic | None]:
    parameters = site.program.parameters(function)
    places = _convention_places(site, function)
    position = next(i for i, p in enumerate(parameters) if p.die == variable.die)
    by_convention = places[position]
    if site.language.convention_first:
        from fetchc.check.go_places import go_place

        return go_place(site, function, parameters, places, position, span)
    found = evidence(site, function, variable)
    unknown = isinstance(by_convention, Absent)
    if found is None:
        if unknown:
            return by_convention, None
        return _unconfirmed(site, function, parameters, places, by_convention), None
    if not unknown and same(found, by_convention):
        return by_convention, None
    if isinstance(found, Constant):
        # Only a function that is called from nowhere else is known to get one value.
        private = is_clone(function) or not function.external
        return (found if private else by_convention), None
    if unknown:
        return found, settled(variable, "the convention cannot place its type", span)
    if is_clone(function) or not function.external:
        note = "the compiler changed how this function is called"
        return found, settled(variable, note, span)
    raise disagreement(site, function, variable, by_convention, found, span)


def _convention_places(site: Site, function: Function) -> tuple[Place, ...]:
    from fetchc.abi import convention_for, entry_places

    return entry_places(site.program, convention_for(site.program, function), function)


def evidence(site: Site, function: Function, variable: Variable) -> Place | None:
    """What the debug information says at the first instruction, if it can be believed there.

    Believed: registers and register pieces, constants, and the caller's part of the frame
    (at or above the CFA). Not believed: slots of the callee's own frame, anything
    measured from a frame base register, nothing.
    """
    place = site.program.place(variable, function, function.address)
    match place:
        case InRegister() | Constant():
            return place
        case Pieces(pieces=pieces):
            found = [p for p in pieces if not isinstance(p.place, Absent)]
            if found and all(isinstance(p.place, InRegister) for p in found):
                return place
            return None
        case InMemory(register=register, offset=offset):
            if register != site.architecture.stack_pointer:
                return None
            above = offset >= site.architecture.entry_stack_bytes
            return place if above and site.program.frame_base_is_cfa(function) else None
        case _:
            return None


def same(found: Place, by_convention: Place) -> bool:
    """Whether the evidence agrees: it may know less (a dead piece), never something else.

    Compilers describe padding as pieces of its own and repeat pieces (Go 1.16 to 1.21), so
    sizes and offsets of pieces prove nothing, their order does.
    """
    expected = iter(_flat(by_convention))
    return all(place in expected for place in _flat(found))


def _flat(place: Place) -> list[Place]:
    match place:
        case Pieces(pieces=pieces):
            flat = [_flat(p.place)[0] for p in pieces if not isinstance(p.place, Absent)]
            return list(dict.fromkeys(flat))
        case Indirect(pointer=InRegister(register=register), offset=offset):
            return [InMemory(register, offset)]
        case _:
            return [place]


def _unconfirmed(
    site: Site,
    function: Function,
    parameters: tuple[Variable, ...],
    places: tuple[Place, ...],
    by_convention: Place,
) -> Place:
    # No evidence for this parameter. Where another one proves that the convention does
    # not hold for this function, nothing is known of this one.
    if is_clone(function):
        return Absent("FC0401", "this clone of the function was changed and does not take it")
    if function.external:
        return by_convention
    for parameter, place in zip(parameters, places, strict=True):
        found = evidence(site, function, parameter)
        if found is not None and not isinstance(place, Absent) and not same(found, place):
            return Absent(
                "FC0407",
                f"`{parameter.name}` shows that the compiler changed how the function is "
                f"called, and nothing says where this one is",
            )
    return by_convention


def settled(variable: Variable, note: str, span: Span) -> Diagnostic:
    """The warning that two sources disagreed and one was taken."""
    from fetchc.diag.model import Label

    return Diagnostic(
        "FC0602",
        f"the place of `{variable.name}` comes from one source only",
        Label(span, "two sources disagree"),
        notes=(note,),
    )


def disagreement(
    site: Site,
    function: Function,
    variable: Variable,
    by_convention: Place,
    found: Place | None,
    span: Span,
    why: str | None = None,
) -> CompileError:
    """The refusal of a parameter whose place nobody knows for sure."""
    notes = [f"by the calling convention: {_words(site, by_convention)}"]
    if found is not None:
        notes.append(f"by the debug information: {_words(site, found)}")
    if why is not None:
        notes.append(why)
    return reject(
        "FC0407",
        f"where `{variable.name}` is at the entry of `{function.name}` is not certain",
        span,
        "two sources disagree" if found is not None else "one source, and it may be wrong",
        notes=tuple(notes),
        help="fetch the one you trust by its register or slot: `$arg1`, `$stack1`",
    )


def _words(site: Site, place: Place) -> str:
    shown = site.architecture.shown
    match place:
        case InRegister(register=register):
            return f"in {shown(register)}"
        case InMemory(register=register, offset=offset):
            return f"in memory at {offset:+d}({shown(register)})"
        case Pieces(pieces=pieces):
            return ", ".join(_words(site, piece.place) for piece in pieces) or "nowhere"
        case Absent(reason=reason):
            return f"nowhere: {reason}"
        case _:
            return "elsewhere"
