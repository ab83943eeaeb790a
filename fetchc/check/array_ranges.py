"""``base[low:high]`` with bounds that are known when the program runs: ``buf[0:count]``.

A fetch-arg has a fixed length. A reader gets the first elements and the bounds beside them, and
shows as many as the bounds say.
"""

from __future__ import annotations

from fetchc.check import indexing
from fetchc.check.array_dimensions import grid
from fetchc.check.conversions import wrapped
from fetchc.check.locations import optimized_by_gcc
from fetchc.check.typed_tree import (
    Computed,
    Conditional,
    Constant,
    Dispatched,
    Located,
    Ranged,
    Subobject,
    Term,
)
from fetchc.diag.diagnostic import CompileError, Label, reject
from fetchc.program.entities import (
    AtAddress,
    AtSymbol,
    Indirect,
    InMemory,
    InRegister,
    PointerTo,
    is_on_entry,
)
from fetchc.program.entities import Constant as KnownPlace
from fetchc.program.types import (
    ArrayType,
    BoolType,
    CellType,
    CharType,
    EnumType,
    IntType,
    PointerType,
    RangeType,
    SequenceType,
    SliceType,
    StringType,
)
from fetchc.quantities import ByteOffset, ByteSize
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
    "element_range",
    "end_of_elements",
    "fold_bounds",
    "fold_range",
    "grid_element",
    "has_variable_length",
    "whole_array",
]

_SIZES = (1, 2, 4, 8)


def fold_bounds(checker: Checker, node: tree.Index | tree.Range) -> tree.Index | tree.Range:
    """``node`` with numbers for the constants between its brackets: ``a[LIMIT]``, ``a[0:LIMIT]``.

    An index that is none stays as it is; raises CompileError FC0101 for one of several.
    """
    if isinstance(node, tree.Range):
        return fold_range(checker, node, node.room is not None)
    found = [_folded(checker, one, True) for one in (node.index, *node.further)]
    numbers = [one for one in found if isinstance(one, int)]
    if len(numbers) == len(found):
        return tree.Index(node.base, numbers[0], node.index_span, node.span, tuple(numbers[1:]))
    if not node.further:
        return node
    checker.check(node.base)  # what is wrong with it comes first
    for one in found:
        if isinstance(one, tree.Name | tree.Member):
            checker.check(one)  # a name that nothing has
    raise not_a_number(node.index_span)


def fold_range(checker: Checker, node: tree.Range, variables: bool) -> tree.Range:
    """:func:`fold_bounds`, of a range: a bound that is no constant stays as it is.

    ``variables``: so does one that is a variable of a constant value, if not set. By that a range
    of characters is a string, and not their numbers.
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
    warned, taken = len(checker.warnings), len(checker.assumptions)
    try:
        value = _value(checker, bound, variables)
    except CompileError:
        value = None  # it is refused where it is used
    if value is None:
        del checker.warnings[warned:], checker.assumptions[taken:]
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
    resolved = checker.resolved(found.type)
    if not isinstance(resolved, IntType | CharType | EnumType | BoolType):
        return None
    if isinstance(found, Constant):
        return found.value
    if variables and isinstance(found, Located) and isinstance(found.place, KnownPlace):
        return wrapped(found.place.value, resolved)
    return None


def element_range(
    checker: Checker, base: Typed, low: Typed | int, high: Typed | int, span: Span, bounds: Span
) -> Typed:
    """The elements ``low`` up to, not including, ``high`` of ``base``.

    ``bounds`` is the text between the brackets. Raises CompileError for what has no elements,
    and for bounds that are no numbers.
    """
    low, high = _number(checker, low, bounds), _number(checker, high, bounds)
    if isinstance(low, int) and isinstance(high, int):
        return indexing.elements(checker, base, low, high, span, bounds)
    size = _size(checker, base)
    base = indexing.as_byte_pointer(checker, indexing.element_storage(checker, base, span))
    bound = _bound(checker, base, span, bounds) if size is None else size
    start = low if isinstance(low, int) else 0
    first = indexing.element_at(checker, base, start, span, bounds)
    if isinstance(first, Subobject) and first.bits is not None:
        raise reject(
            "FC0304",
            f"a range cannot fetch the elements of `{checker.spell(base.type)}`: single bits",
            span,
            "packed",
            help="fetch one of them: `e[2]`",
        )
    if isinstance(high, int):
        # What is wrong with a constant is wrong whatever the other one will be.
        indexing.element_at(checker, base, high - 1, span, bounds)
    text = indexing.range_encoding(checker, base, first.type)
    range_type = RangeType(f"{checker.spell(first.type)}[]", None, first.type, text)
    return Ranged(first, start, low, high, bound, checker.program.intern(range_type), span)


def end_of_elements(checker: Checker, base: Typed, bounds: Span) -> Typed:
    """Where ``base[low:]`` ends: after its last element.

    Raises CompileError FC0303 where nothing counts the elements.
    """
    from fetchc.check.builtins import length
    from fetchc.check.walks import leads_to_container

    try:
        return length(checker, base, base.span)
    except CompileError as refusal:
        if refusal.reason != "no length":
            raise
    help = "the pointer leads to a container: `(*p)[:]`"
    if not leads_to_container(checker, base):
        indexing.element_at(checker, base, 0, base.span, bounds)  # what has elements at all
        help = "write the number of the element after the last one, as in `[0:4]`"
    raise reject(
        "FC0303",
        f"the number of elements of a `{checker.spell(base.type)}` is not known",
        bounds,
        "no end",
        secondary=(Label(base.span, f"this is `{checker.spell(base.type)}`"),),
        help=help,
    )


def _number(checker: Checker, bound: Typed | int, bounds: Span) -> Typed | int:
    if isinstance(bound, int):
        return bound
    if isinstance(bound, Constant):
        return bound.value
    if _is_number(checker, bound):
        return bound
    if isinstance(bound, Conditional | Dispatched):
        raise reject(
            "FC0303",
            "the index is only known at run time",
            bounds,
            "one of two places",
            help="fetch the number separately, and use a constant in the range",
        )
    resolved = checker.resolved(bound.type)
    spelled = checker.spell(bound.type)
    raise reject(
        "FC0303",
        f"the bounds of a range are integers, and this is a `{spelled}`",
        bound.span,
        "not a whole number",
        help="dereference it: `*e`" if _leads_to_number(checker, resolved) else None,
    )


def _is_number(checker: Checker, node: Typed) -> bool:
    if isinstance(node, Conditional | Dispatched):
        return False  # which one it is, a reader picks when it shows it
    return _is_whole(checker.resolved(node.type))


def _is_whole(resolved: Type) -> bool:
    return (
        isinstance(resolved, IntType | CharType | EnumType | BoolType) and resolved.size in _SIZES
    )


def _leads_to_number(checker: Checker, resolved: Type) -> bool:
    return isinstance(resolved, PointerType) and _is_whole(checker.resolved(resolved.target))


def _size(checker: Checker, base: Typed) -> Typed | None:
    """What counts the elements of a class of a C++ library; None of others."""
    container_size = checker.rules_for(checker.resolved(base.type)).container_size
    size = None if container_size is None else container_size(checker, base)
    return size if size is not None and _is_number(checker, size) else None


def _bound(checker: Checker, base: Typed, span: Span, bounds: Span) -> Typed | int | None:
    """The number of elements that there are; None where no type says it."""
    resolved = checker.resolved(base.type)
    if isinstance(resolved, PointerType):
        inner = checker.resolved(resolved.target)
        if isinstance(inner, SequenceType) or checker.site.language.pointer_indexes_array:
            resolved = inner
    match resolved:
        case ArrayType(count=0 | 1):
            if indexing.has_open_end(checker, base):
                return None
            raise _flexible(checker, base, resolved, bounds)
        case ArrayType(count=count):
            return count
        case SliceType():
            most = resolved.members[-1]  # the capacity, where there is one
            return Subobject(base, most.offset, None, most.type, base.span)
        case StringType():
            return Subobject(
                base, resolved.members[1].offset, None, resolved.members[1].type, base.span
            )
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


def _flexible(checker: Checker, base: Typed, resolved: ArrayType, bounds: Span) -> CompileError:
    # A bound is a bound, and no range of these would vary.
    only = "no elements" if resolved.count == 0 else "one element"
    return reject(
        "FC0303",
        f"`{checker.spell(base.type)}` has {only}",
        bounds,
        "bounds that vary",
        secondary=(Label(base.span, "an array"),),
        help="if more follow it, count from an address: "
        + ("`(&a[0])[0:n]`" if resolved.count else "`((T *)&a)[0:n]`"),
    )


# ------------------------------------------------------------------------------
# Elements of arrays of several dimensions, ``a[1, 2]``, and of parts of arrays.


def grid_element(checker: Checker, base: Typed, node: tree.Index) -> Typed:
    """``base[1, 2]``; raises CompileError FC0304 where ``base`` has not as many dimensions."""
    wanted = tuple(index for index in (node.index, *node.further) if isinstance(index, int))
    found = grid(checker, indexing.element_storage(checker, base, base.span))
    rank = 1 if found is None else len(found[1].dimensions) or 1
    if found is None or rank != len(wanted):
        raise reject(
            "FC0304",
            f"`{checker.spell(base.type)}` takes {_many(rank)}, not {len(wanted)}",
            node.index_span,
            f"{len(wanted)} given",
            secondary=(Label(base.span, f"this is `{checker.spell(base.type)}`"),),
            help="for an array of arrays, write `a[1][2]`" if found is None else None,
        )
    if min(wanted) < 0:
        raise reject(
            "FC0303",
            f"the index {min(wanted)} is before the first element",
            node.index_span,
            "below zero",
        )
    holder, resolved = found
    if resolved.window is None and not any(wanted[:-1]):
        return indexing.element_at(checker, holder, wanted[-1], node.span, node.index_span)
    element = indexing.element_at(checker, holder, 0, node.span, node.index_span).type
    name, size = checker.spell(element), checker.size(element)
    type_id = checker.program.intern(CellType(name, size, resolved, wanted))
    return Subobject(holder, ByteOffset(0), None, type_id, node.span)


def _many(count: int) -> str:
    return "1 index" if count == 1 else f"{count} indices"


# ------------------------------------------------------------------------------
# Variable-length arrays as a whole: the range of as many elements as the program gave them.


def has_variable_length(node: Typed) -> bool:
    """Whether ``node``, an array without a count, is a whole local variable.

    Arrays at the end of structures and declarations of globals have no count, either.
    """
    place = node.place if isinstance(node, Located) else None
    while isinstance(place, Indirect):
        place = place.pointer
    return place is not None and not isinstance(place, AtAddress | AtSymbol)


def whole_array(checker: Checker, node: Typed) -> Ranged | None:
    """``a[0:n]`` of the array ``node`` that has ``n`` elements at the site; None of all others."""
    resolved, site = checker.resolved(node.type), checker.site
    if not isinstance(resolved, ArrayType) or resolved.count is not None or site.function is None:
        return None
    if site.function.die is None or checker.size(resolved.element) is None:
        return None
    found = site.program.array_length(checker.bare(node.type), site.function, site.address)
    if found is None or is_on_entry(found[0]) or not site.program.little_endian:
        return None
    place, more = found
    if isinstance(place, InMemory) and not _is_written(site, site.function):
        return None
    # Its type is 8 bytes wide, and the place often one of the 4 that it comes from (clang 14 with
    # -O1, a spilled `n`). No stack has room for 2^32 elements. Of none the upper bound is -1.
    word = checker.program.intern(IntType("int", ByteSize(4), True))
    if isinstance(place, PointerTo) and isinstance(place.target, InMemory):
        # gcc says `n - 1` of a register as an address computes: DW_OP_breg, DW_OP_stack_value.
        more += place.target.offset + place.offset
        place = InRegister(place.target.register)
    number: Typed = Located(place, "", word, node.span)
    if more:
        number = Computed((Term(number, None, 1, 1),), more, False, word, node.span)
    first = indexing.element_at(checker, node, 0, node.span, node.span)
    name = f"{checker.spell(resolved.element)}[]"
    element = checker.resolved(resolved.element)
    is_text = isinstance(element, CharType) and element.name in ("char", "char8_t")
    encoding = "text" if is_text else ""
    type_id = checker.program.intern(RangeType(name, None, resolved.element, encoding))
    return Ranged(first, 0, 0, number, None, type_id, node.span)


def _is_written(site: Site, function: Function) -> bool:
    # gcc -O0 computes the lengths in the types of parameters in statements of its own, in front
    # of the first one of the body: those have lines up to that of the opening brace.
    if optimized_by_gcc(function):
        return True  # location lists say from where on the locations are valid
    code = site.program.code_map()
    described = None if code is None else code.lines_of(function)
    if described is None:
        return False
    lines = described[1]
    opening = max([line for line, starts in lines.items() if function.address in starts], default=0)
    body = [start for line, starts in lines.items() if line > opening for start in starts]
    return site.address >= min(body, default=site.address + 1)
