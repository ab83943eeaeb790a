"""The plan of a computed value: its operator, and the plans of what it is computed from."""

from __future__ import annotations

from fetchc.check.conversions import number_of
from fetchc.check.typed_tree import Operation
from fetchc.diag.diagnostic import reject
from fetchc.ir.arithmetic import Number
from fetchc.ir.fetch import Decode
from fetchc.lower.fetches import plain
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Assumption, Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.syntax.tree import Format

__all__ = ["Operand", "OperationPlan", "as_formatted", "operation_plan", "refuse_operation"]


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


def refuse_operation(checker: Checker, node: Operation) -> CompileError:
    """FC0308: the kernel computes nothing, so that no fetch-arg is the value."""
    if node.operator == "[]":
        from fetchc.syntax.expression_actions import not_a_number

        return not_a_number(node.operands[0].span)
    what, help = f"`{node.operator}`", "`fetchc trace` computes it; a fetch-arg gives each operand"
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
