"""From a typed tree to the plan of its value: what it consists of, decided once per type.

A plan names the typed nodes that a value is read from; where their bytes are, :mod:`.fetches` says.
What is done with it is a policy's: :mod:`.arguments` writes one argument a member, the tracer
fetches blocks and guards them. A policy asks no type: it matches the plan, and has :func:`plan`
plan the nodes in it, one level at a time, since types refer to each other.
"""

from __future__ import annotations

from fetchc.check.typed_tree import Computed, Conditional, Dispatched, Operation, Special
from fetchc.lower.fetches import bit_field_of, is_string_pointer, plain, special
from fetchc.program.types import (
    ArrayType,
    ChannelType,
    MapType,
    PointerType,
    SequenceType,
    StringType,
    StructType,
)
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.lower.aggregate_plan import AggregatePlan, EntryCountPlan
    from fetchc.lower.fetches import Lowered, Plain
    from fetchc.lower.operation_plan import OperationPlan
    from fetchc.lower.printed_values import PrintedPlan
    from fetchc.lower.string_plan import CountedStringPlan, StringPlan


__all__ = [
    "NumberPlan",
    "is_array",
    "plan",
]


class NumberPlan(Record):
    """A number, an enumerator, an address: what ``scalar`` describes."""

    node: Typed
    scalar: Plain


def plan(checker: Checker, node: Typed, reader: bool = False) -> Plan:
    """The plan of the value ``node``; raises CompileError where its type has no value.

    ``reader``: what is fetched is decoded by a program that can cut, compute and print it. Only
    then are a container its elements, and a time of Go a string.
    """
    if isinstance(node, Special) and (given := special(checker, node)) is not None:
        return given
    if isinstance(node, Computed | Conditional | Dispatched):
        return node
    if isinstance(node, Operation):
        from fetchc.lower.operation_plan import operation_plan

        return operation_plan(checker, node, reader)
    if reader:
        from fetchc.check.computed_variables import as_operation

        if (computed := as_operation(checker, node)) is not node:
            return plan(checker, computed, reader)
    resolved = checker.resolved(node.type)
    if isinstance(resolved, StructType):
        if reader and resolved.is_library:
            from fetchc.lower.aggregate_plan import library_object

            if (found := library_object(checker, node, resolved)) is not None:
                return found
            from fetchc.lower.printed_values import length_of_time

            if (time := length_of_time(checker, node, resolved)) is not None:
                return NumberPlan(*time)
        reader_value = checker.rules_for(resolved).reader_value
        if reader_value is not None:
            node = reader_value(checker, node)
            if isinstance(node, Computed | Conditional | Dispatched):
                return node
            resolved = checker.resolved(node.type)
    scalar = plain(checker, node.type)
    if reader:
        from fetchc.lower.printed_values import printed, printed_scalar

        if (form := printed(checker, node, resolved, scalar)) is not None:
            return form
        scalar = printed_scalar(checker, node.type, scalar)
    if scalar is not None and (
        not isinstance(resolved, PointerType | MapType | ChannelType)
        or bit_field_of(node) is not None
    ):
        return NumberPlan(node, scalar)
    if is_string_pointer(checker, resolved):
        from fetchc.lower.string_plan import StringPlan

        return StringPlan(node)
    if isinstance(resolved, PointerType | SequenceType | StringType):
        from fetchc.lower.string_plan import counted_string_plan, utf_16_plan

        if isinstance(resolved, StringType):
            return counted_string_plan(checker, node, resolved)
        if (string := utf_16_plan(checker, node)) is not None:
            return string
    if isinstance(resolved, MapType | ChannelType):
        from fetchc.lower.aggregate_plan import entry_count

        return entry_count(checker, node)
    if scalar is not None:
        if reader and isinstance(resolved, PointerType):
            from fetchc.lower.aggregate_plan import pointer

            if (target := pointer(checker, node, resolved, scalar)) is not None:
                return target
        return NumberPlan(node, scalar)
    from fetchc.lower.aggregate_plan import aggregate

    return aggregate(checker, node, resolved)


def is_array(checker: Checker, node: Typed) -> bool:
    """Whether ``node`` is an array in itself."""
    return isinstance(checker.resolved(node.type), ArrayType)


if TYPE_CHECKING:
    Plan = (
        Computed | Conditional | Dispatched | Lowered | NumberPlan | StringPlan
        | CountedStringPlan | EntryCountPlan | AggregatePlan | PrintedPlan | OperationPlan
    )  # fmt: skip
