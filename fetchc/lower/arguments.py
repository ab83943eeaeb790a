"""One argument a value: the fetches of a definition, which people and other tools read.

A lone fetch-arg is a number or a string. A whole definition (``whole``) also has companions, such
as the length of a string, and the members of a structure, one level deep.
"""

from __future__ import annotations

from fetchc.check.typed_tree import Computed, Conditional, Dispatched, Operation
from fetchc.ir.fetch import ELEMENTS, Array, Decode, Fetch, Scalar, Text
from fetchc.lower.fetches import Lowered, Memory, load_word, memory_of, number, pointed, scalar
from fetchc.lower.value_plan import NumberPlan, plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.lower.string_plan import CountedStringPlan

__all__ = ["counted_string", "lower", "pointed_string"]


def lower(checker: Checker, node: Typed, whole: bool) -> tuple[Lowered, ...]:
    """The fetches of ``node``: one, or with ``whole`` also companions and members.

    Raises CompileError where a value cannot be fetched, or (without ``whole``) where
    one fetch-arg cannot hold it.
    """
    if isinstance(node, Operation):
        from fetchc.lower.operation_plan import refuse_operation

        raise refuse_operation(checker, node)
    planned = plan(checker, node)
    if isinstance(planned, NumberPlan):
        if whole and checker.program.go is not None:
            return _named_number(checker, planned)
        return (scalar(checker, planned.node, planned.scalar),)
    if isinstance(planned, Lowered):
        return (planned,)
    if isinstance(planned, Computed | Conditional | Dispatched):
        if whole and isinstance(planned, Computed):
            return _terms(checker, planned)
        from fetchc.lower.argument_refusals import refuse_computed

        raise refuse_computed(checker, planned, lower)
    from fetchc.lower.string_plan import CountedStringPlan, StringPlan

    if isinstance(planned, StringPlan):
        return (pointed_string(checker, planned.node),)
    if isinstance(planned, CountedStringPlan):
        return counted_string(checker, planned, whole)
    from fetchc.lower.aggregate_arguments import aggregate

    return aggregate(checker, planned, whole, lower)


def _named_number(checker: Checker, planned: NumberPlan) -> tuple[Lowered, ...]:
    # A number of Go with what names it: its type's constants, the code of a function value.
    from fetchc.lower.printed_values import code_of_closure, named_scalar

    node = planned.node
    value = scalar(checker, node, named_scalar(checker, node, planned.scalar))
    code = code_of_closure(checker, node)
    if code is None:
        return (value,)
    word = number(checker, code)
    decode = Decode("symbol", word.decode.bits)
    return value, Lowered("code", word.fetch, decode, code.type, companion=True)


def _terms(checker: Checker, node: Computed) -> tuple[Lowered, ...]:
    # The parts of the value, each an argument.
    found: list[Lowered] = []
    counted = [term for term in node.terms if term.times]
    for position, term in enumerate(counted):
        for name, one in zip(term.names, (term.number, term.subtrahend), strict=True):
            if one is not None:
                (word,) = lower(checker, one, whole=False)
                suffix = f"{name.lstrip('_')}{position or ''}"
                found.append(Lowered(suffix, word.fetch, word.decode, one.type))
    return tuple(found)


def pointed_string(checker: Checker, node: Typed, user: bool = False) -> Lowered:
    """The string that the pointer ``node`` leads to, up to its NUL."""
    found = pointed(checker.site, node)
    user = user or found.user
    address = load_word(checker.site, Memory(found.base, found.offset), node.span)
    return Lowered("", Fetch(address, Text(user)), Decode("text"), node.type)


def counted_string(
    checker: Checker, planned: CountedStringPlan, whole: bool
) -> tuple[Lowered, ...]:
    """A counted string: its first bytes with a warning, or all with their number."""
    node, encoding = planned.node, planned.encoding
    if encoding == "text":
        found = pointed(checker.site, planned.first)
    else:
        found = memory_of(checker, planned.first, "a string")
    address = load_word(checker.site, found, node.span)
    if whole:
        from fetchc.lower.string_plan import STRING_BYTES

        length = number(checker, planned.length)
        words = Array(Scalar("x", 64), STRING_BYTES // 8)
        decode = Decode(encoding, 64, count=words.count)
        return (
            Lowered("", Fetch(address, words), decode, node.type),
            Lowered("len", length.fetch, length.decode, planned.length.type, companion=True),
        )
    if encoding == "text":
        checker.warnings.append(_ends_nowhere(checker, planned))
        return (Lowered("", Fetch(address, Text()), Decode("text"), node.type),)
    from fetchc.diag.diagnostic import Diagnostic, Label

    checker.warnings.append(
        Diagnostic(
            "FC0619",
            f"{ELEMENTS} units are fetched, whatever the string's length",
            Label(node.span, f"a `{checker.spell(node.type)}`"),
            notes=("what follows the string in memory is shown too",),
            help="`--format probe` fetches the length as well",
        )
    )
    units = Array(Scalar("x", 16), ELEMENTS)
    return (Lowered("", Fetch(address, units), Decode("utf-16", 16, count=ELEMENTS), node.type),)


def _ends_nowhere(checker: Checker, planned: CountedStringPlan) -> Diagnostic:
    node = planned.node
    in_go = planned.type_name == "string"
    spelled = "Go string" if in_go else f"`{checker.spell(node.type)}`"
    from fetchc.diag.diagnostic import Diagnostic, Label

    return Diagnostic(
        "FC0601",
        f"a {spelled} has no NUL at its end: the string continues to the next one",
        Label(node.span, "a `string`" if in_go else f"a {spelled}"),
        notes=("the kernel shows what follows in memory, `(fault)`, or drops the event",),
        help="`fetchc trace` reads as many bytes as the length says"
        if planned.is_slice
        else "`--format probe` fetches the length and that many bytes",
    )
