"""Members that the debug information has where they cannot be: bit fields that look like none.

LLVM (seen in 14) describes a packed bit field that is as wide as its type, ``short b : 16``, as a
member on a byte boundary, wherever it is. Then it overlaps the bit field before it or, where an
unnamed one lies between them, leaves a hole behind it that nothing accounts for.

Source: DwarfUnit::constructMemberDIE of LLVM ("Size != FieldSize").
"""

from __future__ import annotations

from fetchc.diag.diagnostic import reject
from fetchc.program.types import BoolType, CharType, EnumType, IntType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.diag.diagnostic import CompileError
    from fetchc.program.types import Member, StructType
    from fetchc.source import Span

__all__ = ["must_not_be_contradicted"]


def must_not_be_contradicted(checker: Checker, made: StructType, step: Member, span: Span) -> None:
    """Raises CompileError FC0904 for ``step``, a plain member beside bit fields that may be one."""
    scalar = isinstance(checker.resolved(step.type), IntType | CharType | BoolType | EnumType)
    size = checker.size(step.type) if scalar else None
    if not size:
        return
    start, end = 8 * step.offset, 8 * (step.offset + size)
    following, follower = 8 * (made.size or 0), "end"
    for other in made.members:
        if other.bits is None:
            begins = 8 * other.offset
        else:
            begins = other.bits.offset
            if begins < end and start < begins + other.bits.width:
                what = f"overlap the bit field `{other.name}`"
                raise _contradicted(step.name, what, made.size, span)
        if end <= begins < following:
            following, follower = begins, "member" if other.bits is None else "bit field"
    function = checker.site.function
    if function is not None and function.producer.startswith("GNU "):
        return
    packed = step.offset % size or (made.size or 0) % size
    rounded = -(-(step.offset + size) // (made.alignment or 1)) * (made.alignment or 1)
    if follower == "end" and 8 * rounded == following:
        return  # the padding that its declared alignment asks for
    if packed and (end < following <= end + 8 or (follower == "bit field" and end < following)):
        raise _contradicted(step.name, "stop short of what follows it", made.size, span)


def _contradicted(name: str, what: str, size: int | None, span: Span) -> CompileError:
    return reject(
        "FC0904",
        f"the debug information has `{name}` {what}",
        span,
        "its place is not certain",
        notes=("clang writes this of a packed bit field that is as wide as its type",),
        help=f"fetch the bytes of the structure, with the format `:x8[{size}]`",
    )
