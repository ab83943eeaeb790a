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
    from fetchc.program.model import Function, Variable
    from fetchc.source import Span

__all__ = ["is_clone", "variable_place"]

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
    evidence = _evidence(site, function, variable)
    unknown = isinstance(by_convention, Absent)
    if evidence is None:
        if unknown:
            return by_convention, None
        return _unconfirmed(site, function, parameters, places, by_convention), None
    if not unknown and _same(evidence, by_convention):
        return by_convention, None
    if unknown:
        return evidence, _settled(variable, "the convention cannot place its type", span)
    if site.language.stack_check:
        return _go_disagreement(site, function, variable, by_convention, evidence, span)
    if is_clone(function) or not function.external:
        note = "the compiler changed how this function is called"
        return evidence, _settled(variable, note, span)
    raise reject(
        "FC0407",
        f"`{variable.name}` is said to be in two places at `{function.name}`",
        span,
        "which one is right cannot be known",
        notes=(
            f"by the calling convention: {_words(site, by_convention)}",
            f"by the debug information: {_words(site, evidence)}",
        ),
        help="fetch the one you trust by its register: `%di`, `$arg1`",
    )


def _convention_places(site: Site, function: Function) -> tuple[Place, ...]:
    from fetchc.abi import convention_for, entry_places

    return entry_places(site.program, convention_for(site.program, function), function)


def _evidence(site: Site, function: Function, variable: Variable) -> Place | None:
    """What the debug information says at the first instruction, if it can be believed there.

    Believed: registers and register pieces, and the caller's part of the frame
    (at or above the CFA). Not believed: slots of the callee's own frame, anything
    measured from a frame base register, nothing.
    """
    place = site.program.place(variable, function, function.address)
    match place:
        case InRegister():
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


def _same(evidence: Place, by_convention: Place) -> bool:
    # The evidence may know less (a dead piece), never something else. Compilers describe
    # padding as pieces of its own and repeat pieces (Go 1.16 to 1.21), so sizes and
    # offsets of pieces prove nothing, their order does.
    expected = iter(_flat(by_convention))
    return all(place in expected for place in _flat(evidence))


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
    if function.external and not is_clone(function) and not site.language.stack_check:
        return by_convention
    if is_clone(function):
        return Absent("FC0401", "this clone of the function was changed and does not take it")
    for parameter, place in zip(parameters, places, strict=False):
        if parameter.kind != "parameter" or isinstance(place, Absent):
            continue
        evidence = _evidence(site, function, parameter)
        if evidence is not None and not _same(evidence, place):
            if site.language.stack_check and _go_lists_blanks(function):
                continue
            return Absent(
                "FC0407",
                f"`{parameter.name}` shows that the compiler changed how the function is "
                f"called, and nothing says where this one is",
            )
    return by_convention


def _go_lists_blanks(function: Function) -> bool:
    # From Go 1.22 on every parameter has an entry, unnamed ones as ~pN: the convention
    # cannot shift, and where the debug information differs it is wrong (cmd/compile
    # describes a parameter that the first block overwrites by its new place).
    from fetchc.abi import go_version

    version = go_version(function.producer)
    return version is not None and version >= (1, 22)


def _go_disagreement(
    site: Site,
    function: Function,
    variable: Variable,
    by_convention: Place,
    evidence: Place,
    span: Span,
) -> tuple[Place, Diagnostic | None]:
    if _go_lists_blanks(function):
        note = "the debug information names a place that the function overwrites at once"
        return by_convention, _settled(variable, note, span)
    if isinstance(evidence, InMemory):
        from fetchc.abi import convention_for

        if convention_for(site.program, function).integer_registers:
            # Go 1.17 says "on the stack" of parameters that arrive in registers.
            note = "the debug information of this Go version names the spill slot"
            return by_convention, _settled(variable, note, span)
        note = "an unnamed parameter before it is missing from the debug information"
        return evidence, _settled(variable, note, span)
    raise reject(
        "FC0407",
        f"`{variable.name}` is said to be in two places at `{function.name}`",
        span,
        "which one is right cannot be known",
        notes=(
            f"by the calling convention: {_words(site, by_convention)}",
            f"by the debug information: {_words(site, evidence)}",
            "this Go version leaves unnamed parameters out of the debug information",
        ),
        help="fetch the one you trust by its register: `%ax`, `$arg1`",
    )


def _settled(variable: Variable, note: str, span: Span) -> Diagnostic:
    from fetchc.diag.model import Label

    return Diagnostic(
        "FC0602",
        f"the place of `{variable.name}` comes from one source only",
        Label(span, "two sources disagree"),
        notes=(note,),
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
