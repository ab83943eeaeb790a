"""The plan of a computed value: its operator, and the plans of what it is computed from."""

from __future__ import annotations

from fetchc.check.computed_variables import as_operation
from fetchc.check.conversions import number_of
from fetchc.check.typed_tree import (
    Address,
    Computed,
    Constant,
    Convert,
    FloatConstant,
    Operation,
    Shift,
)
from fetchc.diag.diagnostic import reject
from fetchc.ir.arithmetic import TRUTH, Calculation, Fetched, Number
from fetchc.ir.fetch import Decode, Fetch, Scalar, is_address
from fetchc.lower.fetches import Lowered, plain, pointer
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Assumption, Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.lower.argument_refusals import Lower
    from fetchc.quantities import TypeId
    from fetchc.syntax.tree import Format

    Part = tuple[Calculation | Fetched | float, Number]

__all__ = [
    "Operand",
    "OperationPlan",
    "as_formatted",
    "calculation",
    "operation_plan",
    "refuse_operation",
]


class Operand(Record):
    """An operand: the node of a number, or of another computed value.

    ``assumptions`` have to hold where it is evaluated.
    """

    node: Typed
    number: Number
    assumptions: tuple[Assumption, ...] = ()


class OperationPlan(Record):
    """What an operator gives for its operands: see :class:`fetchc.check.typed_tree.Operation`.

    ``result`` is the number that it gives, ``decode`` what that means.
    """

    operator: str
    operands: tuple[Operand, ...]
    number: Number
    rules: str
    result: Number
    decode: Decode


def operation_plan(checker: Checker, node: Operation, reader: bool) -> OperationPlan:
    """The plan of ``node``; raises CompileError where it gives no number that can be shown."""
    given = node.assumptions or ((),) * len(node.operands)
    operands = []
    for one, assumed in zip(node.operands, given, strict=True):
        one = as_operation(checker, one)
        number = number_of(checker, one)
        assert number is not None
        operands.append(Operand(one, number, assumed))
    result, described = number_of(checker, node), plain(checker, node.type)
    assert result is not None
    assert described is not None
    if reader:
        from fetchc.lower.printed_values import printed_scalar

        described = printed_scalar(checker, node.type, described) or described
    decode = described.decode
    return OperationPlan(node.operator, tuple(operands), node.number, node.rules, result, decode)


def as_formatted(checker: Checker, node: Operation, format: Format) -> OperationPlan:
    """The plan of ``node``, shown as ``format`` says; raises CompileError FC0307."""
    planned = operation_plan(checker, node, reader=True)
    kind, bits = format.base[:1], planned.result.bits
    sized = format.base[1:]
    if format.base == "hex":
        kind, sized = "x", str(bits)
    if format.count is not None or kind not in "usx" or not sized.isdecimal():
        raise reject(
            "FC0307",
            f"`:{format.text}` does not fit a computed number",
            format.span,
            "not for this value",
            help="write u8 to u64, s8 to s64, x8 to x64 or hex",
        )
    number = Number(int(sized), kind == "s")
    decode = Decode("address" if kind == "x" else "integer", number.bits, number.signed)
    operand = Operand(node, planned.result)
    return OperationPlan("convert", (operand,), number, planned.rules, number, decode)


def calculation(
    checker: Checker, node: Typed, format: Format | None, lower: Lower
) -> tuple[Calculation, tuple[Lowered, ...], Decode] | None:
    """What computes ``node``, the fetches that it needs, and what its result means.

    None of what is fetched itself. Raises CompileError FC0308 for what is no number of one fetch.
    """
    fetched: list[Lowered] = []
    node = as_operation(checker, node)
    if isinstance(node, Computed) and format is None and all(one.times for one in node.terms):
        described = plain(checker, node.type)
        assert described is not None
        return _sum(checker, node, fetched, lower), tuple(fetched), described.decode
    if not isinstance(node, Operation):
        return None
    planned = (
        operation_plan(checker, node, reader=False)
        if format is None
        else as_formatted(checker, node, format)
    )
    found = _calculation(checker, planned, fetched, lower)
    if not fetched:
        raise refuse_operation(checker, node)
    return found, tuple(fetched), planned.decode


def _sum(checker: Checker, node: Computed, fetched: list[Lowered], lower: Lower) -> Calculation:
    # The size of a container, as operations on words.
    word = Number(8 * checker.program.word_bytes, True)

    def number(one: Typed) -> tuple[Fetched, Number]:
        return _fetched(checker, one, fetched, lower), number_of(checker, one) or word

    def joined(operator: str, first: Part, second: Part) -> Part:
        result = TRUTH if operator == "==" else word
        return Calculation(operator, (first, second), word, "go", result), result

    total: Part = (node.constant, word)
    for one in node.terms:
        term: Part = number(one.number)
        if one.subtrahend is not None:
            term = joined("-", term, number(one.subtrahend))
        if one.each > 1:
            term = joined("/", term, (one.each, word))
        if one.times != 1:
            term = joined("*", term, (one.times, word))
        total = joined("+", term, total)
    found, _ = joined("==", total, (0, word)) if node.is_zero else total
    assert isinstance(found, Calculation)
    return found


def _fetched(checker: Checker, node: Typed, fetched: list[Lowered], lower: Lower) -> Fetched:
    (found,) = lower(checker, node, False)
    return _added(fetched, found.fetch, found.decode, found.type)


def _added(fetched: list[Lowered], fetch: Fetch, decode: Decode, type: TypeId) -> Fetched:
    fetched.append(Lowered(str(len(fetched) or ""), fetch, decode, type))
    return Fetched(len(fetched) - 1)


def _address(checker: Checker, node: Typed, fetched: list[Lowered]) -> Calculation | None:
    """The address that ``node`` is, as a pointer that is fetched and a constant; None of others."""
    inner = node
    while isinstance(inner, Convert):
        inner = inner.base
    if not isinstance(inner, Address | Shift):
        return None
    value, offset = pointer(checker.site, inner)
    if offset == 0 or is_address(value):
        return None
    word = Number(8 * checker.program.word_bytes, False)
    fetch, decode = Fetch(value, Scalar("x", word.bits)), Decode("pointer", word.bits)
    start = _added(fetched, fetch, decode, node.type)
    return Calculation("+", ((start, word), (offset, word)), word, "c", word)


def _calculation(
    checker: Checker, planned: OperationPlan, fetched: list[Lowered], lower: Lower
) -> Calculation:
    def operand(one: Operand) -> Calculation | Fetched | float:
        checker.assumptions += one.assumptions
        match one.node:
            case Constant(value=value) | FloatConstant(value=value):
                return value
            case Operation() as inner:
                return _calculation(checker, operation_plan(checker, inner, False), fetched, lower)
            case Computed() as inner if all(each.times for each in inner.terms):
                return _sum(checker, inner, fetched, lower)
            case node:
                address = _address(checker, node, fetched)
                return address or _fetched(checker, node, fetched, lower)

    elements = len(planned.operands) - 1 if planned.operator == "[]" else 0
    listed = planned.operands[:2] if elements else planned.operands
    operands = tuple([(operand(one), one.number) for one in listed])
    return Calculation(
        planned.operator, operands, planned.number, planned.rules, planned.result, elements
    )


def refuse_operation(checker: Checker, node: Operation) -> CompileError:
    """FC0308: the kernel computes nothing, so that no fetch-arg is the value."""
    if node.operator == "[]":
        from fetchc.syntax.expression_actions import not_a_number

        return not_a_number(node.operands[0].span)
    what = f"`{node.operator}`"
    help = (
        "`fetchc trace`, `--format bpftrace` and `--format bpf-c` compute it; "
        "a fetch-arg gives each operand"
    )
    if node.operator == "convert":
        spelled = checker.spell(node.type)
        same = "*" + checker.site.language.pointer_cast.format(type=spelled, value="&e")
        what = f"a conversion to `{spelled}`"
        help = f"`fetchc trace` converts it; to read the same bytes, cast the address: `{same}`"
    return reject(
        "FC0308",
        f"a fetch-arg cannot compute {what} of what it loads",
        node.span,
        "computed at run time",
        notes=("the kernel adds constants to pointers and does no other arithmetic",),
        help=help,
    )
