"""What a type assertion takes for granted, fetched beside the value."""

from __future__ import annotations

from fetchc.diag.model import Diagnostic, Label
from fetchc.ir.decode import Decode
from fetchc.lower.model import Lowered
from fetchc.lower.scalars import scalar
from fetchc.lower.store import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Asserted, Typed

__all__ = ["companions", "unchecked"]


def companions(checker: Checker) -> tuple[Lowered, ...]:
    """For each assertion the word with the dynamic type, and once the address types count from.

    The reader takes the second from the first, and has a value of the type where that is the
    number that the decoding names.
    """
    found = []
    for number, one in enumerate(checker.assertions):
        word = _word(checker, one.word)
        decode = Decode("type", 64, enumerators=((one.wanted.name, one.wanted.offset),))
        suffix = f"type{number or ''}"
        found.append(Lowered(suffix, word.fetch, decode, one.word.type, companion=True))
    for one in checker.assertions[:1]:
        start = _word(checker, one.start)
        found.append(Lowered("types", start.fetch, start.decode, one.start.type, companion=True))
    return tuple(found)


def _word(checker: Checker, node: Typed) -> Lowered:
    made = plain(checker, node.type)
    assert made is not None
    return scalar(checker, node, made)


def unchecked(one: Asserted) -> Diagnostic:
    """The warning that a bare fetch-arg reads a value of any type as the one asserted."""
    return Diagnostic(
        "FC0614",
        f"nothing compares the dynamic type with `{one.wanted.name}`",
        Label(one.span, "read so whatever it holds"),
        notes=("a value of another type is read as if it were of this one",),
        help="`--format probe` fetches the dynamic type as well",
    )
