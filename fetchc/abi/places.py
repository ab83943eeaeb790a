"""Places of parameters and results, by whatever scheme the convention follows."""

from __future__ import annotations

from fetchc.program.places import Absent
from fetchc.record import assert_never
from fetchc.target.model import EightbyteRules, GoRules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.program.model import Function, Program
    from fetchc.program.places import Place
    from fetchc.target.model import Convention
    from fetchc.units import TypeId

__all__ = ["argument_bytes", "entry_places", "parameter_places", "result_place", "result_places"]


def entry_places(program: Program, convention: Convention, function: Function) -> tuple[Place, ...]:
    """One place for each of ``program.parameters(function)``, valid at its first instruction.

    Hidden parameters (the address of a result in memory, Go's dictionary of a generic
    function) are counted in. A result of Go is Absent (FC0410) here. A parameter that
    cannot be classified is Absent, and so is every one behind it: where it goes decides
    where they go.
    """
    from fetchc.abi.signature import passed

    variables = program.parameters(function)
    call = passed(program, convention, function, variables)
    places = parameter_places(program, convention, call.parameters, call.results)
    found: list[Place] = []
    for variable, position in zip(variables, call.positions, strict=True):
        if variable.kind == "result":
            reason = f"`{variable.name}` is a result: it has its value when the function returns"
            found.append(Absent("FC0410", reason))
        elif isinstance(position, Absent):
            found.append(position)
        else:
            found.append(places[position])
    return tuple(found)


def argument_bytes(program: Program, convention: Convention, function: Function) -> int:
    """Bytes on the stack of a Go function's parameters and results, by its declaration."""
    from fetchc.abi import go
    from fetchc.abi.signature import passed

    call = passed(program, convention, function, program.parameters(function))
    return go.argument_bytes(program, convention, call.parameters, call.results)


def parameter_places(
    program: Program,
    convention: Convention,
    parameters: Sequence[TypeId],
    results: Sequence[TypeId] = (),
) -> tuple[Place, ...]:
    """Places at the callee's first instruction of parameters of these types, in order.

    ``results`` are the result types: a result in memory takes a register for its address.
    A parameter that occupies nothing (an empty structure) has ``Pieces(())``.
    """
    match convention.rules:
        case EightbyteRules():
            from fetchc.abi import eightbyte

            return eightbyte.parameter_places(program, convention, parameters, results)
        case GoRules():
            from fetchc.abi import go

            return go.signature_places(program, convention, parameters, results)[0]
        case other:
            assert_never(other)


def result_places(
    program: Program,
    convention: Convention,
    parameters: Sequence[TypeId],
    results: Sequence[TypeId],
) -> tuple[Place, ...]:
    """Places of the results when the function has returned (C) or at its RET (Go).

    Go's results on the stack stand behind the parameters, hence ``parameters``; the
    stack pointer is then what it was at the entry.
    """
    match convention.rules:
        case EightbyteRules():
            return tuple([result_place(program, convention, result) for result in results])
        case GoRules():
            from fetchc.abi import go

            return go.signature_places(program, convention, parameters, results)[1]
        case other:
            assert_never(other)


def result_place(program: Program, convention: Convention, result: TypeId) -> Place:
    """Place of the only result of a C or C++ function, when it has returned.

    A result that the caller reserved memory for is at the address in the first register.
    """
    from fetchc.abi import eightbyte

    return eightbyte.result_place(program, convention, result)
