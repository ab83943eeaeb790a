"""Places of parameters and results, by whatever scheme the convention follows."""

from __future__ import annotations

from fetchc.program.places import Absent, InMemory, InRegister
from fetchc.record import assert_never
from fetchc.target.model import EightbyteRules, GoRules, WordRules
from fetchc.units import ByteOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.program.model import Function
    from fetchc.program.places import Place
    from fetchc.program.protocol import Program
    from fetchc.target.model import Convention
    from fetchc.units import TypeId

__all__ = [
    "argument_place",
    "entry_places",
    "parameter_places",
    "result_place",
    "result_places",
]


def argument_place(convention: Convention, number: int) -> Place:
    """Where the ``number``-th word is that a call passes, counted from 1, registers first."""
    registers = convention.integer_registers
    if number <= len(registers):
        return InRegister(registers[number - 1])
    rules = convention.rules
    # The stack may have room for the words that are in registers, too.
    counted = 0 if isinstance(rules, WordRules) and rules.positions else len(registers)
    slot = (number - 1 - counted) * convention.word_bytes
    return InMemory(convention.stack_pointer, ByteOffset(convention.stack_offset + slot))


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
    receives = bool(variables) and variables[0].artificial and variables[0].name == "this"
    places = parameter_places(program, convention, call.parameters, call.results, receives)
    found: list[Place] = []
    for variable, position in zip(variables, call.positions, strict=True):
        if variable.kind == "result":
            reason = "it is a result, which has its value when the function returns"
            found.append(Absent("FC0410", reason))
        elif isinstance(position, Absent):
            found.append(position)
        else:
            found.append(places[position])
    return tuple(found)


def parameter_places(
    program: Program,
    convention: Convention,
    parameters: Sequence[TypeId],
    results: Sequence[TypeId] = (),
    receives: bool = False,
) -> tuple[Place, ...]:
    """Places at the callee's first instruction of parameters of these types, in order.

    ``results`` are the result types: a result in memory takes a register for its address.
    ``receives``: the first parameter is the object of a method.
    A parameter that occupies nothing (an empty structure) has ``Pieces(())``.
    """
    match convention.rules:
        case EightbyteRules():
            from fetchc.abi import eightbyte

            return eightbyte.parameter_places(program, convention, parameters, results, receives)
        case WordRules():
            from fetchc.abi import words

            return words.parameter_places(program, convention, parameters, results)
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
        case EightbyteRules() | WordRules():
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
    if isinstance(convention.rules, WordRules):
        from fetchc.abi import words

        return words.result_place(program, convention, result)
    from fetchc.abi import eightbyte

    return eightbyte.result_place(program, convention, result)
