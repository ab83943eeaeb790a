"""Where a Go function's results are at its return instructions.

The convention puts them there: into registers, or into the caller's frame after the
parameters, where a parameter that the debug information leaves out (without a name, up to Go
1.21) shifts them. The stack pointer is again what it was at the entry, except for what the return
instruction itself takes off. What the debug information says of results is of no use there: with
registers it names no place (all versions), and where it names one (programs built with ``-N``),
the frame is no longer valid.
"""

from __future__ import annotations

from fetchc.abi import convention_for, entry_places, result_places
from fetchc.check.go_parameters import NOT_IN_ORDER, is_out_of_order, lists_every_parameter
from fetchc.check.locations import describe_place, is_consistent
from fetchc.check.typed_tree import Located
from fetchc.diag.diagnostic import reject
from fetchc.lang import language
from fetchc.program.entities import Absent, FrameRelative, InMemory
from fetchc.quantities import ByteOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.probe_site import Site
    from fetchc.check.typed_tree import Typed
    from fetchc.diag.diagnostic import CompileError, Diagnostic
    from fetchc.program.entities import Function, Place, Variable
    from fetchc.source import Span

__all__ = ["place_at_return", "result_by_number"]

_LISTS_UNNAMED = (1, 22)
# Of results that it optimizes, Go 1.17 lists those in memory alone: golang/go, issue 46845.
_LISTS_NO_REGISTERS = (1, 17)


def place_at_return(
    site: Site, function: Function, variable: Variable, span: Span
) -> tuple[Place, Diagnostic | None]:
    """The place of a result, or of a parameter, at a return instruction."""
    if variable.kind == "result":
        return _result_place(site, function, variable, span), None
    if variable.kind == "parameter":
        return _parameter_at_return(site, function, variable), None
    return Absent("no location", "its frame is no longer valid when the function returns"), None


def result_by_number(checker: Checker, name: str, number: int | None, span: Span) -> Typed:
    """``$ret0``, ``$ret1``: a result by its position; ``$retval`` where there is one only."""
    site = checker.site
    function = site.function
    assert function is not None
    if function.die is None or not language(function.language).goroutines:
        raise reject(
            "FC0903",
            f"the results of `{function.name}` are not known: it has no Go debug information",
            span,
            "no known result",
            help="use registers with a format or a type: `%ax:x64`, `(error)(%bx)`",
        )
    results = [one for one in site.program.parameters(function) if one.kind == "result"]
    if not results or _leaves_out(function):
        raise _no_results(function, span)
    if number is None and len(results) > 1:
        raise reject(
            "FC0208",
            f"`{function.name}` returns {len(results)} values",
            span,
            "which one is meant",
            notes=(_listed(checker, results),),
            help="number them: `$ret0`",
        )
    if number is not None and number >= len(results):
        raise reject(
            "FC0401",
            f"`{function.name}` returns {len(results)} values, there is no `${name}`",
            span,
            "no such result",
            notes=(_listed(checker, results),),
            help=f"the last one is `$ret{len(results) - 1}`",
        )
    result = results[number or 0]
    place = _result_place(site, function, result, span)
    if isinstance(place, Absent):
        what = f"`${name}` cannot be fetched: {place.reason}"
        raise reject(place.code, what, span, "no location", reason=place.kind)
    return Located(place, f"${name}", result.type, span)


def _listed(checker: Checker, results: list[Variable]) -> str:
    shown = [
        f"`$ret{index}` {'' if result.name.startswith('~') else result.name + ' '}"
        f"{checker.spell(result.type)}"
        for index, result in enumerate(results)
    ]
    return f"they are {', '.join(shown)}"


def _leaves_out(function: Function) -> bool:
    compiler = function.compiler
    registers = compiler.go_version == _LISTS_NO_REGISTERS and "regabi" in compiler.options
    return registers and compiler.optimized is True


def _no_results(function: Function, span: Span) -> CompileError:
    leaves_out = _leaves_out(function)
    return reject(
        "FC0401",
        f"the debug information does not list the results of `{function.name}`",
        span,
        "no known result",
        notes=("Go 1.17 lists those in registers in unoptimized code alone",) if leaves_out else (),
        help="build it by Go 1.18 or later, or with `-gcflags=-N`" if leaves_out else None,
    )


def _result_place(site: Site, function: Function, variable: Variable, span: Span) -> Place:
    from fetchc.abi.signature import passed

    program = site.program
    convention = convention_for(program, function)
    variables = program.parameters(function)
    call = passed(program, convention, function, variables)
    places = result_places(program, convention, call.parameters, call.results)
    results = [one.die for one in variables if one.kind == "result"]
    place = places[results.index(variable.die)]
    leaves_out = _leaves_out(function)
    if leaves_out and not isinstance(place, InMemory):
        raise _no_results(function, span)
    if not isinstance(place, InMemory):
        return place  # in registers, which no parameter shifts
    here = _below(site, function, place)
    version = function.compiler.go_version
    if version is None or version >= _LISTS_UNNAMED:
        return here
    if is_out_of_order(site, function, variables, _all_places(site, function, places)):
        raise _uncertain(site, function, variable, here, NOT_IN_ORDER, span)
    found = _slot(site, function, variable)
    # What is missing shifts a result up, and a part of it is above its beginning: both agree
    # by chance nowhere.
    if found is not None and is_consistent(found, place):
        return here
    if not leaves_out and lists_every_parameter(site, function):
        return here
    missing = (
        f"Go {version[0]}.{version[1]} leaves parameters without a name out of the debug "
        f"information, and each one shifts the results after it"
    )
    raise _uncertain(site, function, variable, here, missing, span)


def _below(site: Site, function: Function, place: InMemory) -> Place:
    # On 32-bit Arm a function returns and takes its frame off by one instruction, not yet run here.
    from fetchc.code.disassembly import taken_off

    code = site.program.code(function.address, function.size or 0)
    taken = taken_off(code, site.address - function.address, site.architecture.name)
    if taken is None:
        return Absent("no location", "the return instruction does not say how large its frame is")
    return InMemory(place.register, ByteOffset(place.offset + taken))


def _all_places(site: Site, function: Function, results: tuple[Place, ...]) -> tuple[Place, ...]:
    # Of parameters and results as they are listed, those of results after the call.
    entry = entry_places(site.program, convention_for(site.program, function), function)
    behind = iter(results)
    variables = site.program.parameters(function)
    return tuple(
        [
            next(behind) if variable.kind == "result" else place
            for variable, place in zip(variables, entry, strict=True)
        ]
    )


def _uncertain(
    site: Site,
    function: Function,
    variable: Variable,
    place: Place,
    why: str,
    span: Span,
) -> CompileError:
    return reject(
        "FC0407",
        f"where `{function.name}` returns {_name(variable)} is not certain",
        span,
        "one source, and it may be wrong",
        notes=(
            f"by the calling convention: {describe_place(site, place)}",
            why,
        ),
        help="fetch it from the stack, if you trust it: `$stack1`",
        reason="contradicted",
    )


def _name(result: Variable) -> str:
    return "a result without a name" if result.name.startswith("~") else f"`{result.name}`"


def _slot(site: Site, function: Function, variable: Variable) -> Place | None:
    # A slot of the caller's frame, at one place in the whole function: the result's own.
    slots = {
        extent.place
        for extent in site.program.extents(variable, function)
        if isinstance(extent.place, FrameRelative)
    }
    if len(slots) != 1:
        return None
    (slot,) = slots
    if slot.offset < 0:
        return None
    machine = site.architecture
    return InMemory(machine.stack_pointer, ByteOffset(slot.offset + machine.entry_stack_bytes))


def _parameter_at_return(site: Site, function: Function, variable: Variable) -> Place:
    # Optimized code keeps a parameter as long as it is used. Code built with -N gives it a slot
    # in the caller's frame, from the prologue to the end.
    if function.compiler.optimized is not False:
        return Absent("no location", "a parameter need not be live until the function returns")
    place = site.program.place(variable, function, site.address)
    stack = site.architecture.stack_pointer
    if isinstance(place, InMemory) and place.register == stack and place.offset > 0:
        return place
    return Absent("no location", "its frame is no longer valid when the function returns")
