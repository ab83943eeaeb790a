"""Values that the reader computes from others: the results of operators."""

from __future__ import annotations

from fetchc.ir.arithmetic import LAZY, RULES, converted, evaluate
from fetchc.tracer.display_values import Character, SymbolName
from fetchc.tracer.number_values import float_value, meaning
from fetchc.tracer.value_shapes import OperandShape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fetchc.tracer.events import Value
    from fetchc.tracer.structure_values import Faults, Make
    from fetchc.tracer.value_shapes import OperationShape, Shape

    Compute = Callable[[bytes, Faults], "float | None"]

__all__ = ["operation"]


def operation(
    shape: OperationShape,
    maker: Callable[[Shape], Make],
    path: str,
    pointer: Callable[[int], Value],
) -> Make:
    """The value of an operator. A fault: an operand that could not be read, no result."""
    compute = _number(shape, maker)
    shown = _shown(shape, pointer)

    def make(data: bytes, faults: Faults) -> Value:
        before = len(faults)
        number = compute(data, faults)
        if number is None:
            faults[before:] = [path]
            return None
        return shown(number)

    return make


def _shown(shape: OperationShape, pointer: Callable[[int], Value]) -> Callable[[float], Value]:
    result, decode = shape.result, shape.decode
    if decode.kind == "float":
        return lambda number: float_value(float(number), result.bits == 32)
    if result.bits == 1:
        return bool
    _, then = meaning(decode, result.bits // 8, 0, pointer)
    if then is None:
        return int
    return lambda number: then(int(number))


def _number(shape: OperationShape, maker: Callable[[Shape], Make]) -> Compute:
    """A function from a record to the number, None for a fault."""
    rules, number, operator = RULES[shape.rules], shape.number, shape.operator
    operands = [_operand(one, maker) for one in shape.operands]
    if operator in LAZY:
        lazy = _lazy(operator, operands)
        return lambda data, faults: _as(lazy(data, faults), shape)

    def compute(data: bytes, faults: Faults) -> float | None:
        values = []
        for one in operands:
            value = one(data, faults)
            if value is None:
                return None
            values.append(value)
        return evaluate(operator, number, values, rules)

    return compute


def _as(value: float | None, shape: OperationShape) -> float | None:
    return None if value is None else converted(value, shape.number, RULES[shape.rules])


def _lazy(operator: str, operands: Sequence[Compute]) -> Compute:
    if operator == "?:":
        condition, if_true, if_false = operands

        def chosen(data: bytes, faults: Faults) -> float | None:
            truth = condition(data, faults)
            if truth is None:
                return None
            return if_true(data, faults) if truth != 0 else if_false(data, faults)

        return chosen
    if operator == "[]":
        index, *elements = operands

        def selected(data: bytes, faults: Faults) -> float | None:
            found = index(data, faults)
            if found is None or not 0 <= found < len(elements):
                return None
            return elements[int(found)](data, faults)

        return selected
    first, second = operands
    decided = operator == "||"

    def joined(data: bytes, faults: Faults) -> float | None:
        truth = first(data, faults)
        if truth is None or (truth != 0) == decided:
            return truth
        return second(data, faults)

    return joined


def _operand(operand: OperandShape, maker: Callable[[Shape], Make]) -> Compute:
    from fetchc.tracer.value_shapes import OperationShape

    value = operand.value
    if isinstance(value, int | float):
        return lambda data, faults: value
    if isinstance(value, OperationShape):
        return _number(value, maker)
    make, own, rules = maker(value), operand.number, RULES["c"]

    def compute(data: bytes, faults: Faults) -> float | None:
        number = _plain(make(data, faults))
        # One of 32 bits was read with the fewest digits: 0.1 is another number of 64 bits.
        return None if number is None else converted(number, own, rules)

    return compute


def _plain(value: Value) -> float | None:
    # The number that a value is: of a character its code, of an enumerator its number.
    if isinstance(value, dict):
        value = value.get("value")
    if isinstance(value, Character):
        return value.number
    if isinstance(value, SymbolName):
        try:
            return float(value)  # NaN, Infinity
        except ValueError:
            return None
    return value if isinstance(value, int | float) else None
