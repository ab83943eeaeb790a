"""What Go's run-time tables prove of a signature: that no parameter is missing from it.

The debug information leaves out parameters without a name up to 1.21. The tables have the bytes
of a call, and since 1.17 the shapes of its parameters (:mod:`fetchc.abi.go_stream`).
"""

from __future__ import annotations

from fetchc.abi.go import Assignment, Shapes
from fetchc.abi.go_stream import at_its_position, equal, least_bytes, parse, shapes
from fetchc.abi.layout import UnclassifiedError, round_up
from fetchc.abi.signature import passed
from fetchc.program.places import Absent, InMemory, InRegister, Pieces
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.abi.go_stream import Shape
    from fetchc.program.model import Function
    from fetchc.program.protocol import Program
    from fetchc.target.model import Convention
    from fetchc.units import DwarfRegister, TypeId

__all__ = [
    "CallLayout",
    "call_layout",
    "told_at_its_position",
    "told_in_full",
    "told_one_by_one",
]


class CallLayout(Record):
    """How a call's parameters lie: ``sizes`` and ``alignments`` of each, in order.

    ``total`` is what the run-time counts as bytes of the call: parameters and results on the
    stack, and room to spill the register parameters. ``unused`` of them belong to nothing.
    ``integers_left`` and ``floats_left`` are registers that no parameter takes.
    """

    sizes: tuple[int, ...]
    alignments: tuple[int, ...]
    total: int
    unused: int
    integers_left: int
    floats_left: int


def call_layout(program: Program, convention: Convention, function: Function) -> CallLayout | None:
    """How a Go function's parameters lie, by its declaration; None where a type is not known."""
    variables = program.parameters(function)
    call = passed(program, convention, function, variables)
    if any(isinstance(position, Absent) for position in call.positions):
        return None
    layout = _layout(program, convention, call.parameters, call.results)
    if layout is None:
        return None
    # Of the parameters that are declared, without a generic function's dictionary.
    own = [
        position
        for position, variable in zip(call.positions, variables, strict=True)
        if variable.kind != "result" and isinstance(position, int)
    ]
    return CallLayout(
        tuple([layout.sizes[position] for position in own]),
        tuple([layout.alignments[position] for position in own]),
        layout.total,
        layout.unused,
        layout.integers_left,
        layout.floats_left,
    )


def _layout(
    program: Program,
    convention: Convention,
    parameters: Sequence[TypeId],
    results: Sequence[TypeId],
) -> CallLayout | None:
    # By the types of all that is passed. Source: Go, src/cmd/compile/internal/abi/abiutils.go
    # (ABIAnalyze, ArgWidth).
    word, of_types = convention.word_bytes, Shapes(program, convention)
    try:
        known = [of_types.shape(parameter, 0) for parameter in parameters]
    except UnclassifiedError:
        return None
    assignment = Assignment(convention, of_types)
    places = assignment.places(parameters, convention.integer_registers, convention.float_registers)
    spilled = 0
    taken: list[DwarfRegister] = []
    for shape, place in zip(known, places, strict=True):
        if isinstance(place, InMemory) or shape.size == 0:
            continue
        spilled = round_up(spilled, shape.alignment) + shape.size
        inside = [p.place for p in place.pieces] if isinstance(place, Pieces) else [place]
        taken += [one.register for one in inside if isinstance(one, InRegister)]
    assignment.stack = round_up(assignment.stack, word)
    before = assignment.stack
    assignment.places(
        results, convention.result_integer_registers, convention.result_float_registers
    )
    if assignment.stopped is not None:
        return None
    total = round_up(assignment.stack, word) + round_up(spilled, word)
    used = sum(shape.size for shape in known) + assignment.stack - before
    floats = sum(register in convention.float_registers for register in taken)
    return CallLayout(
        tuple([shape.size for shape in known]),
        tuple([shape.alignment for shape in known]),
        total,
        total - used,
        len(convention.integer_registers) - (len(taken) - floats),
        len(convention.float_registers) - floats,
    )


def _told(program: Program, function: Function) -> tuple[tuple[Shape, ...], bool] | None:
    # As `parse` has them; None where the tables say nothing of the function.
    stream = program.argument_stream(function)
    return None if stream is None else parse(stream)


def told_at_its_position(
    program: Program, convention: Convention, function: Function, position: int
) -> bool | None:
    """Whether Go's run-time tables prove that no parameter is missing up to that one.

    ``position`` is an index of ``program.parameters(function)``. The tables of Go 1.17 on list
    the parameters without a name too, which the debug information leaves out up to 1.21. None
    where they do not tell of all parameters.
    """
    told = _told(program, function)
    if told is None or not told[1]:
        return None
    call = passed(program, convention, function, program.parameters(function))
    index = call.positions[position]
    listed = shapes(program, call.parameters)
    if listed is None or not isinstance(index, int):
        return False
    if "[" in function.symbol:
        # Of generic functions the first is left out: the dictionary, or since 1.20 the receiver.
        last = len(listed) - 2
        whole = len(told[0]) == last + 1
        return whole and (last < 0 or at_its_position(told[0], listed[1:], last))
    return at_its_position(told[0], listed, index)


def told_one_by_one(
    program: Program, convention: Convention, function: Function, position: int, hidden: int
) -> bool:
    """Whether Go's run-time tables list the parameters one by one up to that position.

    Of a call that they do not tell of in full, but whose parameters are known to take no more
    than ``hidden`` bytes beyond those listed: none that is told of may be so small.
    """
    told = _told(program, function)
    call = passed(program, convention, function, program.parameters(function))
    index = call.positions[position]
    listed = shapes(program, call.parameters)
    if told is None or listed is None or not isinstance(index, int) or "[" in function.symbol:
        return False
    first, same = told[0][: index + 1], listed[: index + 1]
    if len(first) != len(same) or not all(map(equal, first, same)):
        return False
    return all(least_bytes(shape) > hidden for shape in first)


def told_in_full(program: Program, convention: Convention, function: Function) -> bool:
    """Whether Go's run-time tables prove that every parameter is listed, none behind the last."""
    told = _told(program, function)
    variables = program.parameters(function)
    listed = sum(variable.kind != "result" for variable in variables)
    if told is None or not told[1] or "[" in function.symbol:
        return False
    if len(told[0]) != listed:
        return False
    return not listed or bool(told_at_its_position(program, convention, function, listed - 1))
