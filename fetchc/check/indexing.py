"""``base[3]`` and ``base[1:4]`` of arrays, pointers, slices and strings."""

from __future__ import annotations

from fetchc.check.conversions import encoding
from fetchc.check.typed_tree import AssumedCount, Convert, Pointee, Shift, Subobject
from fetchc.diag.diagnostic import Label, reject
from fetchc.program.types import (
    ArrayType,
    ChannelType,
    CharType,
    IntType,
    MapType,
    PointerType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
    UnknownType,
    VoidType,
)
from fetchc.quantities import ByteOffset, ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = [
    "as_byte_pointer",
    "assume_count",
    "data_pointer",
    "element_at",
    "element_storage",
    "elements",
    "first_element",
    "has_keys",
    "has_open_end",
    "range_encoding",
    "referent",
]

_SLICE_WITH_CAPACITY = 3  # members: the pointer, the length, the capacity


def element_at(checker: Checker, base: Typed, index: int, span: Span, index_span: Span) -> Typed:
    """The element ``index`` of ``base``."""
    resolved = checker.resolved(base.type)
    if isinstance(resolved, StructType):
        packed_element = checker.rules_for(resolved).packed_element
        if packed_element is not None:
            bit = packed_element(checker, base, index, span, index_span)
            if bit is not None:
                return bit
    base = element_storage(checker, base, span)
    if index == 0:
        row = _first_row(checker, base)
        if row is not None:
            return Pointee(base, row, span)
    start, type_id, each = first_element(checker, base, span)
    _bounds(checker, base, index, index + 1, index_span)
    return _moved(checker, start, type_id, index * each, type_id, span)


def _first_row(checker: Checker, base: Typed) -> TypeId | None:
    # `rows[0]` of `int (*rows)[m]` is where `rows` leads, however long a row is.
    resolved = checker.resolved(base.type)
    if not isinstance(resolved, PointerType) or checker.site.language.pointer_indexes_array:
        return None
    row = checker.resolved(resolved.target)
    counted_off = not isinstance(row, ArrayType) or checker.size(resolved.target) is not None
    return None if counted_off else resolved.target


def elements(
    checker: Checker, base: Typed, low: int, high: int, span: Span, index_span: Span
) -> Typed:
    """The elements ``low`` up to, not including, ``high``: an array of them."""
    if high <= low:
        raise reject(
            "FC0303",
            f"the range [{low}:{high}] is empty",
            index_span,
            "no element in it",
            help="write `[low:high]` with high above low; high itself is not in the range",
        )
    base = as_byte_pointer(checker, element_storage(checker, base, span))
    if checker.site.language.references or checker.site.language.dereferences:
        from fetchc.check.array_dimensions import grid, refuse_window

        if (found := grid(checker, base)) is not None and found[1].window is not None:
            raise refuse_window(found[1], span)
    start, type_id, each = first_element(checker, base, span)
    _bounds(checker, base, low, high, index_span)
    inner, text = checker.resolved(type_id), range_encoding(checker, base, type_id)
    if isinstance(inner, CharType):
        # A fetch-arg has them as numbers: its text would end where a NUL is, not at ``high``.
        type_id = checker.program.intern(IntType(inner.name, inner.size, inner.signed))
    wanted = checker.array_of(type_id, high - low, each, text)
    return _moved(checker, start, type_id, low * each, wanted, span)


def range_encoding(checker: Checker, base: Typed, element: TypeId) -> str:
    """How a range of elements of ``base`` makes a string; empty where they are no characters."""
    if isinstance(checker.resolved(base.type), StringType):
        return "text"
    return encoding(checker, element)


def assume_count(checker: Checker, base: Typed, least: int, span: Span, most: bool = False) -> None:
    """Have a reader check that ``base`` has ``least`` elements; with ``most`` room for them.

    Where its type counts them: the program itself reads nothing after the last one.
    """
    resolved = checker.resolved(base.type)
    if isinstance(resolved, StructType):
        assume_count = checker.rules_for(resolved).assume_count
        if assume_count is not None:
            assume_count(checker, base, least, span)
    storage = element_storage(checker, base, span)
    resolved = checker.resolved(storage.type)
    if isinstance(resolved, PointerType):
        resolved = checker.resolved(resolved.target)
        counted = isinstance(resolved, SequenceType)
    else:
        counted = isinstance(resolved, SliceType | StringType | SequenceType)
    if counted:
        most = (
            most
            and isinstance(resolved, SliceType)
            and len(resolved.members) == _SLICE_WITH_CAPACITY
        )
        checker.assumptions.append(AssumedCount(storage, least, most, span))


def referent(checker: Checker, base: Typed) -> Typed:
    """What a reference leads to, in a language that follows them; of others the value itself."""
    follow = checker.rules.referent if checker.site.language.dereferences else None
    return base if follow is None else follow(checker, base)


def has_keys(checker: Checker, base: Typed) -> bool:
    """Whether entries of ``base`` are looked up by a key: a map or a set."""
    found = checker.rules_for(checker.resolved(base.type)).has_keys
    return found is not None and found(checker, base)


def element_storage(checker: Checker, base: Typed, span: Span) -> Typed:
    """What ``base`` has its elements in: a vector's pointer, what a reference of Rust leads to."""
    base = referent(checker, base)
    resolved = checker.resolved(base.type)
    if not isinstance(resolved, StructType):
        return base
    elements = checker.rules_for(resolved).elements
    return base if elements is None else elements(checker, base, span) or base


def as_byte_pointer(checker: Checker, base: Typed) -> Typed:
    """``base``, or where it is a ``void *`` a pointer to bytes, as GNU C counts."""
    resolved = checker.resolved(base.type)
    if isinstance(resolved, PointerType) and isinstance(
        checker.resolved(resolved.target), VoidType
    ):
        byte = CharType("unsigned char", ByteSize(1), False)
        wanted = checker.pointer_to(checker.program.intern(byte))
        return Convert(base, wanted, base.span)
    return base


def data_pointer(
    checker: Checker, base: Typed, resolved: StringType | SliceType
) -> Subobject | Shift:
    """Where a string or slice begins, with the type of its elements' pointer."""
    data = resolved.members[0]
    found = Subobject(base, data.offset, None, data.type, base.span)
    return Shift(found, ByteOffset(resolved.lead), data.type, base.span) if resolved.lead else found


def first_element(checker: Checker, base: Typed, span: Span) -> tuple[Typed, TypeId, int]:
    """Where the elements of ``base`` begin: a pointer or an array object; their type and size."""
    resolved = checker.resolved(base.type)
    start: Typed = base
    match resolved:
        case ArrayType(element=type_id):
            pass
        case SequenceType():
            return _of_sequence(checker, base, resolved, span)
        case PointerType(target=target):
            inner = checker.resolved(target)
            if isinstance(inner, SequenceType):
                return _of_sequence(checker, Pointee(base, target, base.span), inner, span)
            one = isinstance(inner, StructType) and (resolved.reference or inner.kind == "class")
            if checker.site.language.references and one:
                raise _cannot(checker, base, span)
            if checker.site.language.pointer_indexes_array and isinstance(inner, ArrayType):
                start, type_id = Pointee(base, target, base.span), inner.element
            else:
                type_id = target
        case SliceType(element=type_id):
            start = data_pointer(checker, base, resolved)
        case StringType():
            start = data_pointer(checker, base, resolved)
            type_id = checker.program.intern(IntType("uint8", ByteSize(1), False))
        case _:
            raise _cannot(checker, base, span)
    return start, type_id, _counted_off(checker, base, type_id, span)


def _of_sequence(
    checker: Checker, holder: Typed, resolved: SequenceType, span: Span
) -> tuple[Typed, TypeId, int]:
    # Its elements are in it, behind a pointer, or in another one that a reference leads to.
    inner = Subobject(holder, resolved.elements.offset, None, resolved.elements.type, holder.span)
    kind = checker.resolved(inner.type)
    if isinstance(kind, PointerType) and kind.reference:
        return inner, kind.target, _counted_off(checker, inner, kind.target, span)
    return first_element(checker, inner, span)


def _counted_off(checker: Checker, base: Typed, type_id: TypeId, span: Span) -> int:
    each = checker.size(type_id)
    if each is None:
        help = "cast the pointer to the type that it points to: `((struct s *)p)[0]`"
        row = checker.resolved(type_id)
        if isinstance(row, ArrayType) and checker.size(row.element) is not None:
            # `int grid[n][m]`: how long a row is, is known when the program runs.
            help = "count from the first row: `(*e)[7]` is `e[1][2]` where rows have 5 elements"
        raise reject(
            "FC0311",
            f"`{checker.spell(type_id)}` has no size, its elements cannot be indexed",
            base.span,
            f"this is `{checker.spell(base.type)}`",
            help=help,
        )
    return each


def _moved(
    checker: Checker, start: Typed, each: TypeId, offset: int, wanted: TypeId, span: Span
) -> Typed:
    if isinstance(checker.resolved(start.type), ArrayType):
        return Subobject(start, ByteOffset(offset), None, wanted, span)
    shifted = Shift(start, ByteOffset(offset), checker.pointer_to(each), span)
    return Pointee(shifted, wanted, span)


def _bounds(checker: Checker, base: Typed, low: int, high: int, span: Span) -> None:
    resolved = checker.resolved(base.type)
    if isinstance(resolved, PointerType):
        inner = checker.resolved(resolved.target)
        counted = isinstance(inner, SequenceType)
        if counted or checker.site.language.pointer_indexes_array:
            resolved = inner
    if not isinstance(resolved, ArrayType | SliceType | StringType | SequenceType):
        return
    if low < 0:
        raise reject(
            "FC0303",
            f"the index {low} is before the first element",
            span,
            "below zero",
            secondary=(Label(base.span, f"this is `{checker.spell(base.type)}`"),),
            help="a negative index is for pointers only",
        )
    if isinstance(resolved, ArrayType) and resolved.count is not None and high > resolved.count:
        if has_open_end(checker, base):
            return
        last = (
            "it has no elements"
            if resolved.count == 0
            else f"its last index is {resolved.count - 1}"
        )
        raise reject(
            "FC0303",
            f"the index {high - 1} is outside of `{checker.spell(base.type)}`",
            span,
            last,
            help="to read past a fixed bound on purpose, go through a pointer: `(&a[0])[N]`"
            if resolved.count
            else None,
        )


def has_open_end(checker: Checker, base: Typed) -> bool:
    """Whether ``base`` is an array ``[0]`` or ``[1]`` that ends an object behind a pointer.

    These are older spellings of a flexible array. Source: GCC manual, "Zero Length"; the
    program's variables themselves have the size that their type says.
    """
    resolved = checker.resolved(base.type)
    if not isinstance(resolved, ArrayType) or resolved.count is None or resolved.count > 1:
        return False
    if not checker.site.language.open_arrays or resolved.vector or not isinstance(base, Subobject):
        return False
    while isinstance(base, Subobject):
        holder = checker.resolved(base.base.type)
        if not isinstance(holder, StructType):
            return False
        end = base.offset + (checker.size(base.type) or 0)
        ends = [one.offset + (checker.size(one.type) or 0) for one in holder.members]
        if holder.kind != "union" and max(ends, default=0) > end:
            return False
        base = base.base
    return isinstance(base, Pointee)


def _cannot(checker: Checker, base: Typed, span: Span) -> CompileError:
    resolved = checker.resolved(base.type)
    spelled = checker.spell(base.type)
    reason = f"`{spelled}` cannot be indexed"
    hint = "only arrays, pointers, slices and strings can"
    if isinstance(resolved, MapType):
        reason = f"`{spelled}` is a map: a key lookup runs code, which a fetch-arg cannot do"
        hint = "fetch its number of entries: `len(m)`"
    if isinstance(resolved, ChannelType):
        hint = "its buffer can: `c.buf[0]`, in a trace the next to receive: `c.buf[c.recvx]`"
    index_help = checker.rules_for(resolved).index_help
    if index_help is not None:
        hint = index_help(checker, base, span) or hint
    if isinstance(resolved, UnknownType):
        reason += f": {resolved.reason}"
        hint = "cast its address to a known type: `((int *)&e)[1]`"
    return reject(
        "FC0304",
        reason,
        span,
        "indexed here",
        secondary=(Label(base.span, f"this is `{spelled}`"),) if base.span != span else (),
        help=hint,
    )
