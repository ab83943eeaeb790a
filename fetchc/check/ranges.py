"""``base[low:high]`` with bounds that are known when the program runs: ``buf[0:count]``.

A fetch-arg has a fixed length. A reader gets the first elements and the bounds beside them, and
shows as many as the bounds say.
"""

from __future__ import annotations

from fetchc.check import indices
from fetchc.check.characters import encoding
from fetchc.check.check import check
from fetchc.check.conversions import wrapped
from fetchc.check.typed import Constant, Dispatched, Either, Held, Part, Ranged
from fetchc.diag.diagnostic import CompileError, Label, reject
from fetchc.program.entities import Constant as KnownPlace
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
from fetchc.syntax import tree
from fetchc.syntax.expression_actions import not_a_number
from fetchc.syntax.tree import apply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.program.types import Type
    from fetchc.source import Span

__all__ = ["all_of", "folded", "folded_range", "ranged"]

_SIZES = (1, 2, 4, 8)


def folded(checker: Checker, node: tree.Index | tree.Range) -> tree.Index | tree.Range:
    """``node`` with numbers for the constants between its brackets: ``a[LIMIT]``, ``a[0:LIMIT]``.

    Raises CompileError FC0101 for an index that is none.
    """
    if isinstance(node, tree.Range):
        return folded_range(checker, node, node.room is not None)
    found = [_folded(checker, one, True) for one in (node.index, *node.further)]
    numbers = [one for one in found if isinstance(one, int)]
    if len(numbers) == len(found):
        return tree.Index(node.base, numbers[0], node.index_span, node.span, tuple(numbers[1:]))
    check(checker, node.base)  # what is wrong with it comes first
    for one in found:
        if isinstance(one, tree.Name | tree.Member):
            check(checker, one)  # a name that nothing has
    raise not_a_number(node.index_span)


def folded_range(checker: Checker, node: tree.Range, variables: bool) -> tree.Range:
    """:func:`folded`, of a range: a bound that is no constant stays as it is.

    ``variables``: so does one that is a variable of a constant value, if not set. By that a range
    of characters is a text, and not their numbers.
    """
    low = _folded(checker, node.low, variables)
    high, room = (
        None if bound is None else _folded(checker, bound, variables)
        for bound in (node.high, node.room)
    )
    return tree.Range(node.base, low, high, node.range_span, node.span, room)


def _folded(
    checker: Checker, bound: tree.Expression | int, variables: bool
) -> tree.Expression | int:
    if isinstance(bound, int):
        return bound
    warned, taken = len(checker.warnings), len(checker.assertions)
    try:
        value = _value(checker, bound, variables)
    except CompileError:
        value = None  # it is refused where it is used
    if value is None:
        del checker.warnings[warned:], checker.assertions[taken:]
    return bound if value is None else value


def _value(checker: Checker, bound: tree.Expression, variables: bool) -> int | None:
    if variables and isinstance(bound, tree.Negate):
        inner = _value(checker, bound.operand, variables)
        return None if inner is None else -inner
    if variables and isinstance(bound, tree.Binary):
        left = _value(checker, bound.left, variables)
        right = _value(checker, bound.right, variables)
        if left is None or right is None:
            return None
        return apply(bound.operator, left, right)
    found = check(checker, bound)
    made = checker.resolved(found.type)
    if not isinstance(made, IntType | CharType | EnumType | BoolType):
        return None
    if isinstance(found, Constant):
        return found.value
    if variables and isinstance(found, Held) and isinstance(found.place, KnownPlace):
        return wrapped(found.place.value, made)
    return None


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
