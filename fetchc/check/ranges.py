"""``base[low:high]`` with bounds that are known when the program runs: ``buf[0:count]``.

A fetch-arg has a fixed length. A reader gets the first elements and the bounds beside them, and
shows as many as the bounds say.
"""

from __future__ import annotations

from fetchc.check import indices
from fetchc.check.characters import encoding
from fetchc.check.typed import Constant, Dispatched, Either, Part, Ranged
from fetchc.diag.errors import CompileError, reject
from fetchc.diag.model import Label
from fetchc.program.types import (
    ArrayType,
    BoolType,
    CharType,
    DifferenceType,
    EnumType,
    IntType,
    PointerType,
    RangeType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.program.types import Type
    from fetchc.source import Span

__all__ = ["all_of", "ranged"]

_SIZES = (1, 2, 4, 8)


def ranged(
    checker: Checker, base: Typed, low: Typed | int, high: Typed | int, span: Span, bounds: Span
) -> Typed:
    """The elements ``low`` up to, not including, ``high`` of ``base``.

    ``bounds`` is what stands between the brackets. Raises CompileError for what has no elements,
    and for bounds that are no numbers.
    """
    low, high = _number(checker, low, bounds), _number(checker, high, bounds)
    if isinstance(low, int) and isinstance(high, int):
        return indices.elements(checker, base, low, high, span, bounds)
    size = _size(checker, base)
    base = indices.in_bytes(checker, indices.of_library(checker, base, span))
    bound = _bound(checker, base, span, bounds) if size is None else size
    start = low if isinstance(low, int) else 0
    first = indices.element(checker, base, start, span, bounds)
    if isinstance(first, Part) and first.bits is not None:
        raise reject(
            "FC0304",
            f"the elements of `{checker.spell(base.type)}` are single bits, and no range has those",
            span,
            "packed",
            help="name one of them: `e[2]`",
        )
    if isinstance(high, int):
        # What is wrong with a constant is wrong whatever the other one will be.
        indices.element(checker, base, high - 1, span, bounds)
    counted = checker.resolved(base.type)
    text = encoding(checker, first.type) if not isinstance(counted, StringType) else "text"
    made = RangeType(f"{checker.spell(first.type)}[]", None, first.type, text)
    return Ranged(first, start, low, high, bound, checker.program.intern(made), span)


def all_of(checker: Checker, base: Typed, bounds: Span) -> Typed:
    """Where ``base[low:]`` ends: behind its last element.

    Raises CompileError FC0303 where nothing counts the elements.
    """
    from fetchc.check.builtins import length

    try:
        return length(checker, base, base.span)
    except CompileError as refusal:
        if refusal.diagnostics[0].code != "FC0309":
            raise
    raise reject(
        "FC0303",
        f"nothing says where the elements of a `{checker.spell(base.type)}` end",
        bounds,
        "no end",
        secondary=(Label(base.span, f"this is `{checker.spell(base.type)}`"),),
        help="write the number of the element after the last one, as in `[0:4]`",
    )


def _number(checker: Checker, bound: Typed | int, bounds: Span) -> Typed | int:
    if isinstance(bound, int):
        return bound
    if isinstance(bound, Constant):
        return bound.value
    if _is_number(checker, bound):
        return bound
    if isinstance(bound, Either | Dispatched):
        raise reject(
            "FC0303",
            "which number it is, is only known when the program runs",
            bounds,
            "one of two places",
            help="fetch it by itself, and the elements with a number",
        )
    made = checker.resolved(bound.type)
    spelled = checker.spell(bound.type)
    raise reject(
        "FC0303",
        f"a range is bounded by whole numbers, and this is a `{spelled}`",
        bound.span,
        "no number of elements",
        help="follow it to the number: `*e`" if _leads_to_number(checker, made) else None,
    )


def _is_number(checker: Checker, node: Typed) -> bool:
    if isinstance(node, Either | Dispatched):
        return False  # which one it is, a reader picks when it shows it
    made = checker.resolved(node.type)
    return _is_whole(made) or isinstance(made, DifferenceType)


def _is_whole(made: Type) -> bool:
    return isinstance(made, IntType | CharType | EnumType | BoolType) and made.size in _SIZES


def _leads_to_number(checker: Checker, made: Type) -> bool:
    return isinstance(made, PointerType) and _is_whole(checker.resolved(made.target))


def _size(checker: Checker, base: Typed) -> Typed | None:
    """What counts the elements of a class of a C++ library; None of others."""
    made = checker.resolved(base.type)
    if not isinstance(made, StructType) or not made.is_library:
        return None
    from fetchc.check.cpp.library_data import library_class
    from fetchc.check.cpp.library_methods import method

    found = library_class(checker, base.type, base.span)
    if found is None or "size" not in found.known:
        return None
    size = method(checker, base, "size", base.span)
    return size if size is not None and _is_number(checker, size) else None


def _bound(checker: Checker, base: Typed, span: Span, bounds: Span) -> Typed | int | None:
    """The number of elements that there are; None where no type tells."""
    made = checker.resolved(base.type)
    if isinstance(made, PointerType):
        inner = checker.resolved(made.target)
        if isinstance(inner, SequenceType) or checker.site.language.pointer_indexes_array:
            made = inner
    match made:
        case ArrayType(count=0 | 1):
            if indices.has_open_end(checker, base):
                return None
            raise _flexible(checker, base, made, bounds)
        case ArrayType(count=count):
            return count
        case SliceType():
            most = made.members[-1]  # the capacity, where there is one
            return Part(base, most.offset, None, most.type, base.span)
        case StringType():
            return Part(base, made.members[1].offset, None, made.members[1].type, base.span)
        case SequenceType():
            raise reject(
                "FC0304",
                f"a range of a `{checker.spell(base.type)}` has constant bounds",
                span,
                "bounds that vary",
                help="`fetchc trace` shows as many elements as it has without a range",
            )
        case _:
            return None


def _flexible(checker: Checker, base: Typed, made: ArrayType, bounds: Span) -> CompileError:
    # A bound is a bound, and no range of these would vary.
    only = "no elements" if made.count == 0 else "one element"
    return reject(
        "FC0303",
        f"`{checker.spell(base.type)}` has {only}",
        bounds,
        "bounds that vary",
        secondary=(Label(base.span, "an array"),),
        help="if more follow it, count from an address: "
        + ("`(&a[0])[0:n]`" if made.count else "`((T *)&a)[0:n]`"),
    )
