"""What an expression takes for granted: fetched beside the value, or said in a warning."""

from __future__ import annotations

from fetchc.check.builtins import capacity, length
from fetchc.check.dotnet_rules import unchecked_class
from fetchc.check.typed_tree import AssumedClass, AssumedCount, AssumedDynamicType
from fetchc.diag.diagnostic import Diagnostic, Label
from fetchc.ir.fetch import Decode
from fetchc.lower.fetches import Lowered, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import AssumedVariant, Typed

__all__ = ["companions", "counted", "unchecked"]


def counted(checker: Checker, one: AssumedCount) -> Typed:
    """The number of elements that an index takes for granted."""
    count = capacity if one.most else length
    return count(checker, one.holder, one.span)


def companions(checker: Checker) -> tuple[Lowered, ...]:
    """For each assertion of Go the word with the dynamic type, and once the address types count
    from.

    The reader takes the second from the first, and has a value of the type where that is the
    number that the decoding names.
    """
    found = []
    every = [one for one in checker.assumptions if isinstance(one, AssumedDynamicType)]
    for position, one in enumerate(every):
        word = number(checker, one.word)
        decode = Decode("type", 64, enumerators=((one.wanted.name, one.wanted.offset),))
        suffix = f"type{position or ''}"
        found.append(Lowered(suffix, word.fetch, decode, one.word.type, companion=True))
    for one in every[:1]:
        start = number(checker, one.start)
        found.append(Lowered("types", start.fetch, start.decode, one.start.type, companion=True))
    return tuple(found)


def unchecked(checker: Checker, whole: bool) -> list[Diagnostic]:
    """Warnings of what no fetch-arg compares: of Go only where there are no companions."""
    return [
        _uncompared(checker, one) if not isinstance(one, AssumedDynamicType) else _unchecked(one)
        for one in checker.assumptions
        if not isinstance(one, AssumedCount) and not (whole and isinstance(one, AssumedDynamicType))
    ]


def _uncompared(checker: Checker, one: AssumedClass | AssumedVariant) -> Diagnostic:
    if isinstance(one, AssumedClass):
        return unchecked_class(checker, one.wanted, one.span)
    from fetchc.check.rust_rules import unchecked_variant

    return unchecked_variant(checker, one)


def _unchecked(one: AssumedDynamicType) -> Diagnostic:
    return Diagnostic(
        "FC0614",
        f"the dynamic type is not compared with `{one.wanted.name}`",
        Label(one.span, "read as this type, whatever it holds"),
        notes=("a value of another type is read as if it had this type",),
        help="`--format probe` fetches the dynamic type as well",
    )
