"""Enumerations in structures whose numbers have the other byte order.

gcc (seen in 12) marks the base types of such members with DW_AT_endianity; enumerations have no
mark, nor has a structure of these alone: it is read as if it had the machine's order.
"""

from __future__ import annotations

from fetchc.diag.diagnostic import reject
from fetchc.program.types import BoolType, CharType, EnumType, IntType, UnknownType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.program.types import Member, StructType
    from fetchc.source import Span

__all__ = ["must_have_own_order"]


def must_have_own_order(checker: Checker, made: StructType, step: Member, span: Span) -> None:
    """Raises CompileError FC0311 for an enumeration beside numbers of the other byte order.

    Arrays of either count as what they are made of.
    """
    kind = checker.innermost(step.type)
    if not isinstance(kind, EnumType) or (kind.size == 1 and step.bits is None):
        return
    for other in made.members:
        beside = checker.innermost(other.type)
        if isinstance(beside, UnknownType | IntType | CharType | BoolType) and beside.foreign_order:
            raise reject(
                "FC0311",
                f"`{step.name}` cannot be fetched: its byte order is not the machine's",
                span,
                "not read",
                notes=(f"so it is of `{other.name}`, and a structure has one for all its numbers",),
                help=f"fetch the bytes of the structure, with the format `:x8[{made.size}]`",
            )
