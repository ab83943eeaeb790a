"""Where a variable is at the probe site, by the calling convention and the debug information.

At a function's entry the convention decides, and the debug information is evidence (see
``locations``). Elsewhere only the debug information says it.
"""

from __future__ import annotations

from fetchc.check.locations import (
    confirmed_pieces,
    credible_entry_place,
    has_same_offsets,
    is_clone,
    is_consistent,
    is_coroutine_resume,
    is_unfetchable,
    one_source_warning,
    refuse_contradiction,
)
from fetchc.check.probe_site import Site, has_own_returns
from fetchc.program.entities import (
    Absent,
    Arithmetic,
    AtAddress,
    Constant,
    InMemory,
    InRegister,
    Named,
    Place,
    PointerTo,
    ThreadLocal,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.program.entities import Function, Variable
    from fetchc.source import Span

__all__ = ["kernel_argument", "parameter_by_name", "variable_place"]


def variable_place(site: Site, variable: Variable, span: Span) -> tuple[Place, Diagnostic | None]:
    """The place of ``variable`` and a warning where two sources had to be weighed.

    Raises CompileError FC0407 where they disagree and neither is known to be right, FC0401 where
    its declaration has not run.
    """
    if variable.kind == "global":
        return site.program.place(variable, site.function, site.address), None
    assert site.function is not None
    if site.by_name and variable.kind == "parameter":
        return parameter_by_name(site, site.function, variable, span)
    if site.returns or (site.leaving and not has_own_returns(site)):
        return Absent(
            "no location", "a return probe sees the function's result and globals only"
        ), None
    if site.leaving:
        from fetchc.check.go_results import place_at_return

        return place_at_return(site, site.function, variable, span)
    if variable.kind == "result":
        from fetchc.check.go_variables import has_slot_for_result

        if site.entry or not has_slot_for_result(site, site.function, variable):
            return Absent(
                "at return", "it is a result, which gets its value when the function returns"
            ), None
    if not site.entry:
        if site.language.convention_first and variable.kind != "parameter":
            from fetchc.check.go_variables import place_before_store, require_declared

            require_declared(site, site.function, variable, span)
            captured = place_before_store(site, site.function, variable)
            if captured is not None:
                return captured, None
        from fetchc.check.availability import body_place, stale_warning

        place = body_place(site, site.function, variable)
        return place, stale_warning(site, site.function, variable, place, span)
    if variable.kind != "parameter":
        return _local_at_entry(site, variable), None
    return _parameter_at_entry(site, site.function, variable, span)


def _local_at_entry(site: Site, variable: Variable) -> Place:
    # Only what cannot be a slot of a frame that is not built yet.
    assert site.function is not None
    place = site.program.place(variable, site.function, site.function.address)
    if isinstance(place, AtAddress | ThreadLocal | Constant):
        return place
    if variable.outermost:
        from fetchc.check.go_variables import captured_place

        captured = captured_place(site, site.function, variable)
        if captured is not None:
            return captured
    if isinstance(place, Absent) or _is_passed_on(site, site.function, variable, place):
        return place
    return Absent("no location", "it is a local variable, and no statement has run at the entry")


def _is_called_as_used(function: Function, place: Place) -> bool:
    # Of what is local to its file LLVM takes out what is not used; structures on the stack remain.
    if not function.compiler.drops_unused_parameters or is_clone(function):
        return False
    return function.external or isinstance(place, InMemory)


def _is_passed_on(site: Site, function: Function, variable: Variable, place: Place) -> bool:
    # A parameter of a call that was inlined, whose code begins with the function: it is what the
    # caller passed, still in its register.
    if variable.called != function.address or site.language.convention_first:
        return False
    from fetchc.check.unspecified_abi import argument_registers, registers_of_place

    used = registers_of_place(place)
    return bool(used) and used <= argument_registers(site, function)


def _parameter_at_entry(
    site: Site, function: Function, variable: Variable, span: Span
) -> tuple[Place, Diagnostic | None]:
    if not site.language.promises_convention:
        from fetchc.check.unspecified_abi import entry_place

        return entry_place(site, function, variable), None
    copies = function.compiler.copies_parameters_to_resume
    if is_coroutine_resume(function) and not variable.artificial and copies:
        # It has the parameters of the whole coroutine, and is passed its frame.
        return Absent(
            "no location", "it is in the coroutine's frame, whose address this is passed"
        ), None
    from fetchc.abi import convention_for, entry_places

    parameters = site.program.parameters(function)
    convention = convention_for(site.program, function, span)
    places = entry_places(site.program, convention, function)
    position = next(i for i, one in enumerate(parameters) if one.die == variable.die)
    by_convention = places[position]
    if site.language.convention_first:
        from fetchc.check.go_parameters import go_place

        return go_place(site, function, parameters, places, position, span)
    found = credible_entry_place(site, function, variable)
    unknown = isinstance(by_convention, Absent)
    seen = isinstance(found, InRegister) and found == by_convention
    if not seen and not unknown and _is_called_as_used(function, by_convention):
        from fetchc.check.abi_evidence import passed_place

        by_convention = passed_place(site, function, variable, by_convention)
        if isinstance(by_convention, Absent):
            return by_convention, None
    if isinstance(by_convention, InMemory):
        from fetchc.check.abi_evidence import unwritten_object

        unwritten = unwritten_object(site, function, by_convention)
        if unwritten is not None:
            return unwritten, None
    if function.foreign:
        if found is None:
            return Absent("no location", "the function has a calling convention of its own"), None

        return found, one_source_warning(
            variable, "the function has a calling convention of its own", span
        )
    if found is None:
        if unknown:
            return by_convention, None
        from fetchc.check.abi_evidence import unconfirmed_place

        return unconfirmed_place(site, function, variable, parameters, places, by_convention), None
    private = is_clone(function) or not function.external
    if not unknown and is_consistent(found, by_convention):
        if not private:
            return by_convention, None
        if has_same_offsets(found, by_convention):
            return confirmed_pieces(found, by_convention), None
    if isinstance(found, Constant | PointerTo | Arithmetic):
        # Only a function that nothing else calls always gets the same value.
        return (found if private else by_convention), None

    if unknown:
        return found, one_source_warning(variable, "the convention cannot place its type", span)
    if private:
        note = "the compiler changed how this function is called"
        return found, one_source_warning(variable, note, span)
    if is_unfetchable(site, found) and is_unfetchable(site, by_convention):
        return by_convention, None  # gcc has 32-bit Arm's doubles in two halves of a register
    raise refuse_contradiction(site, function, variable, by_convention, found, span)


def parameter_by_name(
    site: Site, function: Function, variable: Variable, span: Span
) -> tuple[Place, Diagnostic | None]:
    """Where a parameter of ``function``, or a field of the event that it describes, is.

    With a warning as of :func:`variable_place`, which finds its register.
    """
    if site.probe_kind == "eprobe":
        return site.program.place(variable, function, site.address), None
    from fetchc.abi import convention_for

    entry = Site(
        site.program, site.architecture, site.language, function, function.address, True, False
    )
    place, warning = variable_place(entry, variable, span)
    registers = convention_for(site.program, function).integer_registers
    if isinstance(place, InRegister) and place.register in registers:
        place = kernel_argument(site, registers.index(place.register) + 1, len(registers))
    elif not isinstance(place, Absent):
        place = Absent(
            "in pieces", "it is in no register of its own, and the kernel counts registers"
        )
    return place, warning


def kernel_argument(site: Site, number: int, registers: int) -> Place:
    """The place of argument ``number``, by the kernel's name; Absent where it has none."""
    from fetchc.target.machines import table

    if site.architecture.name not in table("kernel/linux")["arguments"]["machines"]:
        why = f"kernels for {site.architecture.name} do not number their arguments"
        return Absent("not for this probe", why)
    # A tracepoint's probe is called with one more in front, which the kernel leaves out.
    if number > registers - (site.means == "tprobe"):
        return Absent("in pieces", "it is on the stack, and the kernel counts registers")
    return Named("argument", f"$arg{number}")
