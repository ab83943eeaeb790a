"""``base[low:high]`` with bounds that are known when the program runs: ``buf[0:count]``.

A fetch-arg has a fixed length. A reader gets the first elements and the bounds beside them, and
shows as many as the bounds say.
"""

from __future__ import annotations

from fetchc.check import builtins, indexing
from fetchc.check.conversions import encoding, wrapped
from fetchc.check.locations import optimised_by_gcc
from fetchc.check.typed_tree import (
    Computed,
    Constant,
    Dispatched,
    Either,
    Follow,
    Held,
    Part,
    Ranged,
    Term,
)
from fetchc.diag.diagnostic import CompileError, Label, reject
from fetchc.program.entities import Constant as KnownPlace
from fetchc.program.entities import InMemory, is_on_entry
from fetchc.program.types import (
    ArrayType,
    BoolType,
    CellType,
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
from fetchc.quantities import ByteOffset, ByteSize
from fetchc.record import Record
from fetchc.syntax import tree
from fetchc.syntax.expression_actions import not_a_number
from fetchc.syntax.tree import apply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.probe_site import Site
    from fetchc.check.typed_tree import Typed
    from fetchc.program.entities import Function
    from fetchc.program.types import Type
    from fetchc.source import Span

__all__ = [
    "all_of",
    "cell",
    "counted",
    "folded",
    "folded_range",
    "grid",
    "in_full",
    "of_slice",
    "of_window",
    "ranged",
    "refused",
]

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
    checker.check(node.base)  # what is wrong with it comes first
    for one in found:
        if isinstance(one, tree.Name | tree.Member):
            checker.check(one)  # a name that nothing has
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
    found = checker.check(bound)
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
        return indexing.elements(checker, base, low, high, span, bounds)
    size = _size(checker, base)
    base = indexing.in_bytes(checker, indexing.of_library(checker, base, span))
    bound = _bound(checker, base, span, bounds) if size is None else size
    start = low if isinstance(low, int) else 0
    first = indexing.element_at(checker, base, start, span, bounds)
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
        indexing.element_at(checker, base, high - 1, span, bounds)
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
    from fetchc.check.cpp_library import library_class
    from fetchc.check.cpp_library_methods import method

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
            if indexing.has_open_end(checker, base):
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


# ------------------------------------------------------------------------------
# Slices of slices: ``s[1:3][0:4]``, ``cap(s[:2])``, ``s[2:][1]``.
#
# A slice expression of Go has its own length, and room up to the end of what it is cut of. With
# constant bounds it is what one cut of the innermost operand is, so that is what is fetched; that
# each cut is one that the program could make is for the reader to see to. Source: Go
# specification, "Slice expressions", "Length and capacity".


class _Cut(Record):
    """The elements ``low`` up to, not including, ``high`` of ``base``; None: up to its length.

    ``room`` is where the capacity ends; None: where that of ``base`` does.
    """

    base: Typed
    low: int
    high: int | None
    room: int | None = None


def of_slice(checker: Checker, node: tree.Index | tree.Range) -> Typed | None:
    """What ``node`` is: a part of a slice, or an element of one; None where bounds vary."""
    if isinstance(node, tree.Index):
        assert isinstance(node.base, tree.Range)
        cut = _cut(checker, node.base)
        return None if cut is None else _element(checker, cut, node)
    cut = _cut(checker, node, node.room is not None)
    if cut is not None:
        return _elements(checker, cut, node)
    inner = _cut(checker, node.base) if isinstance(node.base, tree.Range) else None
    if inner is None:
        return None
    if inner.room is not None:
        raise _not_full(node)
    low = _slice_bound(checker, node.low, inner.low)
    high = inner.high if node.high is None else _slice_bound(checker, node.high, inner.low)
    if high is None:
        high = all_of(checker, inner.base, node.range_span)
    return ranged(checker, inner.base, low, high, node.span, node.range_span)


def counted(checker: Checker, node: tree.Range, what: str, span: Span) -> Typed | None:
    """``len`` or ``cap`` of a slice of constant bounds; None where they vary."""
    cut = _cut(checker, node)
    if cut is None:
        return None
    if what == "len" and cut.high is not None:
        return Constant(cut.high - cut.low, checker.word(signed=True), span)
    if what == "cap" and cut.room is not None:
        return Constant(cut.room - cut.low, checker.word(signed=True), span)
    count = builtins.length if what == "len" else builtins.capacity
    return _slice_moved(count(checker, cut.base, span), -cut.low)


def _cut(checker: Checker, node: tree.Range, variables: bool = True) -> _Cut | None:
    # ``variables``: as of folded_range.
    node = folded_range(checker, node, variables)
    low, high, room = node.low, node.high, node.room
    if not isinstance(low, int) or not isinstance(high, int | None):
        if room is not None:
            raise _not_full(node)
        return None
    if not isinstance(room, int | None):
        raise _not_full(node)
    if isinstance(node.base, tree.Range):
        outer = _cut(checker, node.base)
        if outer is None:
            return None
    else:
        outer = _Cut(checker.check(node.base), 0, None)
    base = outer.base
    if low < 0:
        indexing.element_at(checker, base, low, node.span, node.range_span)
    end = outer.high if high is None else outer.low + high
    is_text = isinstance(checker.resolved(base.type), StringType)
    past = is_text and outer.high is not None and end is not None and end > outer.high
    if past or (end is not None and end < outer.low + low):
        raise _outside(node, outer, end if past else None)
    most = outer.room if room is None else outer.low + room
    if most is not None:
        if is_text or end is None or end > most or (outer.room is not None and most > outer.room):
            raise _no_room(node, is_text)
        _take_for_granted(checker, base, 0, most, node.span)
    if last := most or end:  # of an array, whose room is known
        at = indexing.in_bytes(checker, base)
        indexing.element_at(checker, at, last - 1, node.span, node.range_span)
    _take_for_granted(checker, base, outer.low + low, end, node.span)
    return _Cut(base, outer.low + low, end, most)


def _take_for_granted(checker: Checker, base: Typed, low: int, end: int | None, span: Span) -> None:
    # Up to its length where that is the end; else it may be any part of the room that there is.
    if end is None and low:
        indexing.take_for_granted(checker, base, low, span)
    elif end:
        indexing.take_for_granted(checker, base, end, span, most=True)


def _elements(checker: Checker, cut: _Cut, node: tree.Range) -> Typed:
    if cut.high is not None:
        return indexing.elements(checker, cut.base, cut.low, cut.high, node.span, node.range_span)
    made = checker.resolved(cut.base.type)
    if cut.low == 0 and isinstance(made, SliceType | StringType):
        return cut.base
    end = all_of(checker, cut.base, node.range_span)
    return ranged(checker, cut.base, cut.low, end, node.span, node.range_span)


def _element(checker: Checker, cut: _Cut, node: tree.Index) -> Typed:
    index = node.index
    assert isinstance(index, int)
    if cut.high is not None and index >= cut.high - cut.low:
        raise reject(
            "FC0303",
            f"the index {index} is behind the last element of the range",
            node.index_span,
            f"it has {cut.high - cut.low}",
            help=f"index what it is cut of: `e[{cut.low + index}]`",
        )
    at = cut.low + index if index >= 0 else index
    found = indexing.element_at(checker, cut.base, at, node.span, node.index_span)
    if cut.high is None:
        indexing.take_for_granted(checker, cut.base, at + 1, node.span)
    return found


def _slice_bound(checker: Checker, bound: tree.Expression | int, by: int) -> Typed | int:
    return bound + by if isinstance(bound, int) else _slice_moved(checker.check(bound), by)


def _slice_moved(number: Typed, by: int) -> Typed:
    # ``number`` and a constant, which a reader adds.
    if isinstance(number, Constant):
        return Constant(number.value + by, number.type, number.span)
    if by == 0:
        return number
    return Computed((Term(number, None, 1, 1),), by, False, number.type, number.span)


def _not_full(node: tree.Range) -> CompileError:
    return reject(
        "FC0303",
        "a slice whose capacity is cut takes constants",
        node.range_span,
        "a number that varies",
        help="write `[low:high]`: the elements are the same",
    )


def _no_room(node: tree.Range, is_text: bool) -> CompileError:
    return reject(
        "FC0303",
        "a string has no capacity to cut" if is_text else "the range ends behind its capacity",
        node.range_span,
        "no such range",
        help="write `[low:high]`" if is_text else "write `[low:high:max]`, the largest number last",
    )


def _outside(node: tree.Range, outer: _Cut, end: int | None) -> CompileError:
    if end is None:
        return reject(
            "FC0303",
            "the end of the range is in front of its start",
            node.range_span,
            "no such range",
            help="write `[low:high]` with high above low; high itself is not in the range",
        )
    return reject(
        "FC0303",
        "a part of a string ends with it, and has no room behind",
        node.range_span,
        "behind its end",
        help=f"cut it once: `s[{outer.low}:{end}]`",
    )


# ------------------------------------------------------------------------------
# Elements of arrays of several dimensions (.NET), ``a[1, 2]``, and of parts of arrays (Rust too).
#
# How far apart rows are is in the array itself. A fetch-arg does not multiply: it has the
# elements of the first row, and a reader that gets the lengths beside the elements has the
# others. Nor does it add the index at which a part (a segment, a memory, a queue) begins.


def grid(checker: Checker, base: Typed) -> tuple[Typed, SequenceType] | None:
    """The array of several dimensions, or the part of one, that ``base`` is or refers to."""
    base = indexing.of_library(checker, base, base.span)
    made = checker.resolved(base.type)
    if isinstance(made, PointerType):
        base = Follow(base, made.target, base.span)
        made = checker.resolved(base.type)
    if isinstance(made, SequenceType) and (made.dimensions or made.window):
        return base, made
    return None


def cell(checker: Checker, base: Typed, node: tree.Index) -> Typed:
    """``base[1, 2]``; raises CompileError FC0304 where ``base`` has not as many dimensions."""
    wanted = tuple(index for index in (node.index, *node.further) if isinstance(index, int))
    found = grid(checker, base)
    rank = 1 if found is None else len(found[1].dimensions) or 1
    if found is None or rank != len(wanted):
        raise reject(
            "FC0304",
            f"`{checker.spell(base.type)}` takes {_many(rank)}, not {len(wanted)}",
            node.index_span,
            f"{len(wanted)} given",
            secondary=(Label(base.span, f"this is `{checker.spell(base.type)}`"),),
            help="of arrays in arrays write `a[1][2]`" if found is None else None,
        )
    if min(wanted) < 0:
        raise reject(
            "FC0303",
            f"the index {min(wanted)} is before the first element",
            node.index_span,
            "below zero",
        )
    holder, made = found
    if made.window is None and not any(wanted[:-1]):
        return indexing.element_at(checker, holder, wanted[-1], node.span, node.index_span)
    element = indexing.element_at(checker, holder, 0, node.span, node.index_span).type
    name, size = checker.spell(element), checker.size(element)
    type_id = checker.program.intern(CellType(name, size, made, wanted))
    return Part(holder, ByteOffset(0), None, type_id, node.span)


def _many(count: int) -> str:
    return "1 index" if count == 1 else f"{count} indices"


def refused(node: Typed, made: CellType) -> CompileError:
    """The refusal of an element that no single fetch-arg reaches."""
    if made.array.window is not None:
        return of_window(made.array, node.span)
    first = ", ".join(["0"] * (len(made.indices) - 1) + [str(made.indices[-1])])
    return reject(
        "FC0304",
        "where the row of an array of several dimensions begins takes a multiplication",
        node.span,
        "no fetch-arg multiplies",
        notes=("how long the rows are is in the array, and known when the program runs",),
        help=f"count on from the first row (`[{first}]` is in it), or let `fetchc trace` read it",
    )


def of_window(made: SequenceType, span: Span) -> CompileError:
    """The refusal of elements whose place a fetch-arg would have to count from an index."""
    assert made.window is not None
    start = made.window.start.name
    items = made.elements.name
    if made.window.backwards:
        return reject(
            "FC0304",
            f"the first element of `{made.name}` is the last one of an array",
            span,
            "no fetch-arg subtracts",
            notes=(f"which one that is, is known when the program runs (`.{start}`)",),
            help=f"count from the bottom (`.{items}[0]`), or let `fetchc trace` read it",
        )
    return reject(
        "FC0304",
        f"the elements of `{made.name}` begin at the index `{start}` of an array",
        span,
        "no fetch-arg adds",
        notes=(f"which index that is, is known when the program runs (`.{start}`)",),
        help=f"count from the array's own start (`.{items}[0]`), or let `fetchc trace` read it"
        if not made.window.of_any
        else "let `fetchc trace` read it",
    )


# ------------------------------------------------------------------------------
# Variable-length arrays as a whole: the range of as many elements as the program has made them.


def in_full(checker: Checker, node: Typed) -> Ranged | None:
    """``a[0:n]`` of the array ``node`` that has ``n`` elements at the site; None of all others."""
    made, site = checker.resolved(node.type), checker.site
    if not isinstance(made, ArrayType) or made.count is not None or site.function is None:
        return None
    if site.function.die is None or checker.size(made.element) is None:
        return None
    found = site.program.array_length(checker.bare(node.type), site.function, site.address)
    if found is None or is_on_entry(found[0]) or not site.program.little_endian:
        return None
    place, more = found
    if isinstance(place, InMemory) and not _is_written(site, site.function):
        return None
    # Its type is 8 bytes wide, and the place often one of the 4 that it was made of (clang 14 with
    # -O1, a spilled `n`). No stack has room for 2^32 elements. Of none the upper bound is -1.
    word = checker.program.intern(IntType("int", ByteSize(4), True))
    number: Typed = Held(place, "", word, node.span)
    if more:
        number = Computed((Term(number, None, 1, 1),), more, False, word, node.span)
    first = indexing.element_at(checker, node, 0, node.span, node.span)
    name = f"{checker.spell(made.element)}[]"
    element = checker.resolved(made.element)
    is_text = isinstance(element, CharType) and element.name in ("char", "char8_t")
    encoding = "text" if is_text else ""
    type_id = checker.program.intern(RangeType(name, None, made.element, encoding))
    return Ranged(first, 0, 0, number, None, type_id, node.span)


def _is_written(site: Site, function: Function) -> bool:
    # gcc -O0 reckons the lengths that types of parameters have in statements of its own, in front
    # of the first one of the body: those have lines up to that of the opening brace.
    if optimised_by_gcc(function):
        return True  # lists tell from where on the places hold
    code = site.program.code_map()
    told = None if code is None else code.lines_of(function)
    if told is None:
        return False
    lines = told[1]
    opening = max([line for line, starts in lines.items() if function.address in starts], default=0)
    body = [start for line, starts in lines.items() if line > opening for start in starts]
    return site.address >= min(body, default=site.address + 1)
