"""Places of parameters and results, by whatever scheme the convention follows."""

from __future__ import annotations

from fetchc.diag.diagnostic import reject
from fetchc.program.entities import Absent, InMemory, InRegister
from fetchc.quantities import ByteOffset
from fetchc.record import assert_never
from fetchc.target.machines import EightbyteRules, GoRules, WordRules, convention, convention_tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from fetchc.program.entities import Function, Place
    from fetchc.program.protocol import Program
    from fetchc.quantities import TypeId
    from fetchc.source import Span
    from fetchc.target.machines import Convention

__all__ = [
    "argument_place",
    "convention_for",
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
    cannot be classified is Absent, and so is every one after it: where it goes decides
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
            reason = "it is a result, which gets its value when the function returns"
            found.append(Absent("at return", reason))
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
            from fetchc.abi import sysv_amd64

            return sysv_amd64.parameter_places(program, convention, parameters, results, receives)
        case WordRules():
            from fetchc.abi import word_conventions

            return word_conventions.parameter_places(program, convention, parameters, results)
        case GoRules():
            from fetchc.abi import go_abi

            return go_abi.signature_places(program, convention, parameters, results)[0]
        case other:
            assert_never(other)


def result_places(
    program: Program,
    convention: Convention,
    parameters: Sequence[TypeId],
    results: Sequence[TypeId],
) -> tuple[Place, ...]:
    """Places of the results when the function has returned (C) or at its RET (Go).

    Go's results on the stack stand after the parameters, hence ``parameters``; the
    stack pointer is then what it was at the entry.
    """
    match convention.rules:
        case EightbyteRules() | WordRules():
            return tuple([result_place(program, convention, result) for result in results])
        case GoRules():
            from fetchc.abi import go_abi

            return go_abi.signature_places(program, convention, parameters, results)[1]
        case other:
            assert_never(other)


def result_place(program: Program, convention: Convention, result: TypeId) -> Place:
    """Place of the only result of a C or C++ function, when it has returned.

    A result that the caller reserved memory for is at the address in the first register.
    """
    if isinstance(convention.rules, WordRules):
        from fetchc.abi import word_conventions

        return word_conventions.result_place(program, convention, result)
    from fetchc.abi import sysv_amd64

    return sysv_amd64.result_place(program, convention, result)


# ------------------------------------------------------------------------------
# Which convention a function follows: by its language, its compiler and its symbol.

# Constants of the tables, built at the first use: each takes longer than a whole expression.
_BUILT: dict[str, Convention] = {}


def convention_for(program: Program, function: Function, span: Span | None = None) -> Convention:
    """The convention of ``function``, the most particular file of ``targets/abi`` that applies.

    Raises CompileError FC0905 where none does (Rust promises none), with the place that asks.
    """
    best: str | None = None
    weight = -1
    for name, raw in convention_tables(program.architecture).items():
        conditions = raw["applies"]
        if _applies(conditions, program, function):
            found = len(conditions)  # each further condition is more particular
            if found > weight:
                best, weight = name, found
    if best is None:
        language = function.language or "this language"
        if language.isdecimal():
            language = f"language {int(language):#x} of DWARF"
        raise reject(
            "FC0905",
            f"no calling convention is known for {language} on {program.architecture}",
            span,
            "" if span is None else "where it puts this",
            help="fetch a register by its name, or probe where the value is in memory",
        )
    if best not in _BUILT:
        _BUILT[best] = convention(best)
    return _BUILT[best]


def _applies(conditions: Mapping[str, Any], program: Program, function: Function) -> bool:
    if function.language not in conditions["languages"]:
        return False
    if not conditions.get("kernels", True) and program.in_kernel:
        return False
    mask, flags = conditions.get("machine_flags", (0, 0))
    if mask and program.machine_flags & mask != flags:
        return False
    compiler = function.compiler
    if conditions.get("compiler", compiler.name) != compiler.name:
        return False
    option = conditions.get("option")
    if option is not None and option not in compiler.options:
        return False
    limit = conditions.get("before_version")
    # A clang without a version counts as a new one: it follows the psABI.
    if limit is not None and (compiler.version is None or compiler.version[0] >= limit):
        return False
    suffix = conditions.get("not_symbol_suffix")
    return suffix is None or not function.symbol.endswith(suffix)
