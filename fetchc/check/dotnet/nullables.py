"""The value of a ``Nullable<T>``, which it has or has not."""

from __future__ import annotations

from fetchc.check import members
from fetchc.check.typed import Present
from fetchc.program.types import Member, Variant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.program.types import StructType
    from fetchc.source import Span

__all__ = ["take_for_granted"]


def take_for_granted(
    checker: Checker, holder: Typed, made: StructType, asked: Member, span: Span
) -> None:
    """Note that ``holder`` has to have a value where that is ``asked``, for whoever can compare."""
    if len(made.members) != 2 or asked != made.members[1]:  # a hostile library may have others
        return
    present, value = made.members
    none = Member("", present.type, present.offset)
    variants = (Variant(none, 0), Variant(value, 1))
    tag = members.part(holder, present, span)
    one = Present(tag, variants, value.name, holder.type, ".HasValue", span)
    checker.assertions.append(one)
