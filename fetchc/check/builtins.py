"""``len``, ``cap``, ``sizeof``, ``offsetof`` and ``container_of``."""

from __future__ import annotations

from fetchc.check import members
from fetchc.check.conversions import cast, decayed, type_named
from fetchc.check.members import named_member
from fetchc.check.typed_tree import Constant, Pointee, Shift, Subobject
from fetchc.diag.diagnostic import CompileError, Label, reject
from fetchc.program.types import (
    ArrayType,
    ChannelType,
    ComplexType,
    IntType,
    MapType,
    Member,
    PointerType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
    Window,
)
from fetchc.quantities import ByteOffset, ByteSize
from fetchc.record import assert_never
from fetchc.syntax import tree
from fetchc.syntax.expression_parser import as_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = [
    "call",
    "capacity",
    "container_of",
    "length",
    "offset_of",
    "size_of",
]


def length(checker: Checker, operand: Typed, span: Span) -> Typed:
    """``len(e)``: a constant of arrays, else the word that the run-time keeps."""
    return _count(checker, operand, span, "len")


def capacity(checker: Checker, operand: Typed, span: Span) -> Typed:
    """``cap(e)`` of slices, channels and arrays."""
    return _count(checker, operand, span, "cap")


def _count(checker: Checker, operand: Typed, span: Span, what: str) -> Typed:
    if checker.site.language.dereferences and checker.rules.referent is not None:
        operand = checker.rules.referent(checker, operand)
    resolved = checker.resolved(operand.type)
    if isinstance(resolved, StructType) and what == "len":
        method = checker.rules_for(resolved).method
        counted = None if method is None else method(checker, operand, "size", span)
        if counted is not None:
            return counted
    if isinstance(resolved, PointerType) and isinstance(
        inner := checker.resolved(resolved.target), ArrayType
    ):
        resolved = inner
    if isinstance(resolved, PointerType) and isinstance(
        inner := checker.resolved(resolved.target), SequenceType
    ):
        operand, resolved = Pointee(operand, resolved.target, operand.span), inner
    match resolved:
        case SequenceType(length=size) if what == "len":
            return members.subobject(operand, size, span)
        case ArrayType(count=int(count)):
            return Constant(count, checker.length_type(), span)
        case SliceType(members=(_, size, *_)) | StringType(members=(_, size, *_)) if what == "len":
            return members.subobject(operand, size, span)
        case SliceType(members=(_, _, capacity)) | StringType(members=(_, _, capacity)):
            return members.subobject(operand, capacity, span)
        case StructType(counts=True, value=Member() as number) if what == "len":
            return members.subobject(operand, number, span)
        case SequenceType(window=Window(capacity=Member() as capacity)):
            return members.subobject(operand, capacity, span)
        case MapType() if what == "len":
            return _header_word(checker, operand, 0, span)
        case ChannelType():
            return _header_word(checker, operand, 0 if what == "len" else 1, span)
        case _:
            raise reject(
                "FC0309",
                f"`{checker.spell(operand.type)}` has no `{what}`",
                span,
                f"`{what}` of it",
                secondary=(Label(operand.span, f"this is `{checker.spell(operand.type)}`"),),
                help="it is for slices, strings, arrays, maps and channels"
                if what == "len"
                else "it is for slices, channels and arrays",
                reason="no length",
            )


def _header_word(checker: Checker, operand: Typed, index: int, span: Span) -> Typed:
    # Source: Go 1.15 to 1.27, runtime/map.go hmap.count, internal/runtime/maps Map.used,
    # runtime/chan.go hchan.qcount and dataqsiz: the counts are the header's first words.
    word = checker.program.word_bytes
    count = checker.program.intern(IntType("int", ByteSize(word), True))
    header = Pointee(operand, count, span)
    return Subobject(header, ByteOffset(index * word), None, count, span)


def size_of(checker: Checker, type_id: TypeId, span: Span) -> Constant:
    """``sizeof``, as a constant."""
    size = checker.size(type_id)
    if size is None:
        raise reject("FC0311", f"`{checker.spell(type_id)}` has no size", span, "incomplete type")
    return Constant(size, checker.word(), span)


def offset_of(checker: Checker, holder: TypeId, path: tree.Path, span: Span) -> Constant:
    """``offsetof(type, path)``, as a constant of bytes."""
    start = Constant(0, checker.pointer_to(holder), path.span)
    node: Typed = Pointee(start, holder, path.span)
    for step in path.steps:
        match step:
            case tree.FieldStep(name=name, span=name_span):
                node = members.named_member(checker, node, name, name_span)
            case tree.IndexStep(index=index, span=index_span):
                from fetchc.check.indexing import element_at

                node = element_at(checker, node, index, path.span, index_span)
    return Constant(_offset(node, path), checker.word(), span)


def container_of(
    checker: Checker, operand: Typed, holder: TypeId, path: tree.Path, span: Span
) -> Typed:
    """``container_of(e, type, path)``: from a pointer to a member to the whole object."""
    offset = offset_of(checker, holder, path, span).value
    pointer = decayed(checker, operand)
    if not isinstance(checker.resolved(pointer.type), PointerType):
        raise reject(
            "FC0305",
            f"`{checker.spell(operand.type)}` is not a pointer to a member",
            operand.span,
            "not a pointer",
        )
    return Shift(pointer, ByteOffset(-offset), checker.pointer_to(holder), span)


def _offset(node: Typed, path: tree.Path) -> int:
    total = 0
    while isinstance(node, Subobject):
        if node.bits is not None:
            raise reject("FC0306", "a bit field has no offset in bytes", path.span, "a bit field")
        total += node.offset
        node = node.base
    if isinstance(node, Pointee) and isinstance(node.base, Constant):
        return total
    raise reject(
        "FC0306",
        "the path leaves the object through a pointer",
        path.span,
        "no constant offset",
        help="name a member inside the object itself",
    )


# ------------------------------------------------------------------------------
# What is spelled as a call: operators of types, counts, conversions, methods of libraries.

_HALVES = ("real", "imag")  # Go's; elsewhere a complex number's members have these names, too
_EXTREMES = ("min", "max")
_COUNTS = {"len": length, "cap": capacity}


def call(
    checker: Checker,
    node: tree.Call | tree.MethodCall | tree.SizeOf | tree.OffsetOf | tree.ContainerOf,
) -> Typed:
    """The meaning of ``node``; raises CompileError where code of the program would have to run."""
    match node:
        case tree.SizeOf(operand=operand, span=span):
            return size_of(checker, _type_of(checker, operand), span)
        case tree.OffsetOf(type=wanted, path=path, span=span):
            return offset_of(checker, type_named(checker, wanted), path, span)
        case tree.ContainerOf(operand=operand, type=wanted, path=path, span=span):
            inner = checker.check(operand)
            holder = type_named(checker, wanted)
            return container_of(checker, inner, holder, path, span)
        case tree.Call():
            return _function(checker, node)
        case tree.MethodCall():
            return _method(checker, node)
        case _:
            assert_never(node)


def _type_of(checker: Checker, operand: tree.Expression | tree.TypeName) -> TypeId:
    if isinstance(operand, tree.TypeName):
        return type_named(checker, operand)
    # A name can be a variable or a type; a variable hides a type, as in C.
    try:
        return checker.check(operand).type
    except CompileError as refusal:
        wanted = as_type(operand)
        if wanted is None or refusal.reason != "unknown name":
            raise
        return type_named(checker, wanted)


def _function(checker: Checker, node: tree.Call) -> Typed:
    name, name_span = node.function, node.function_span
    if name.removeprefix("std::") in _EXTREMES and len(node.arguments) > 1:
        from fetchc.check.operators import extreme

        operands = [checker.check(one) for one in node.arguments]
        return extreme(checker, name.removeprefix("std::"), operands, node)
    if len(node.arguments) != 1:
        if name in _COUNTS:
            given = f"given {len(node.arguments)}"
            raise reject("FC0101", f"`{name}` takes one operand", name_span, given)
        raise _no_call(name, name_span)
    (operand,) = node.arguments
    if name in _COUNTS:
        if isinstance(operand, tree.Range) and checker.rules.slice_count is not None:
            number = checker.rules.slice_count(checker, operand, name, node.span)
            if number is not None:
                return number
        counted_by, inner = _COUNTS[name], checker.check(operand)
        return checker.of_each(inner, lambda one: counted_by(checker, one, node.span))
    if name in _HALVES:
        inner = checker.check(operand)
        if isinstance(checker.resolved(inner.type), ComplexType):
            return named_member(checker, inner, name, node.span)
    if "<" in name:
        inner = checker.check(operand)
        return checker.of_each(inner, lambda one: _numbered_part(checker, one, node))
    # Go's conversion: uint32(x).
    try:
        target = type_named(checker, tree.NamedType(None, name, (), "", name_span))
    except CompileError as refusal:
        if refusal.reason != "unknown type":
            raise
        raise _no_call(name, name_span) from None
    return cast(checker, target, checker.check(operand), node.span)


def _numbered_part(checker: Checker, base: Typed, node: tree.Call) -> Typed:
    name, name_span = node.function, node.function_span
    holder = members.follow_pointer(checker, base, base.span)
    rules = checker.rules_for(checker.resolved(holder.type))
    numbered_part = rules.numbered_part or checker.rules.numbered_part
    if numbered_part is None:
        raise _no_call(name, name_span)
    part = name.partition("<")[2].rstrip().removesuffix(">").strip()
    return numbered_part(checker, base, part, node.span, name_span)


def _no_call(name: str, span: Span) -> CompileError:
    # `name(x)`, where `name` is no type that `x` could be converted to.
    from fetchc.check.suggestions import call_meant

    return reject(
        "FC0204",
        f"`{name}` is not a type, and the kernel cannot call a function",
        span,
        "called here",
        notes=(
            "`len`, `cap`, `sizeof`, `offsetof` and `container_of` are computed from the types",
        ),
        help=call_meant(name)
        or "fetch what it would be called with, or what it returned: "
        f"`-f {name} --return '$retval'`",
    )


def _method(checker: Checker, node: tree.MethodCall) -> Typed:
    wanted = as_type(tree.Member(node.base, node.name, False, node.name_span, node.span))
    if wanted is not None and len(node.arguments) == 1:
        try:
            target = type_named(checker, wanted)
        except CompileError as refusal:
            if refusal.reason != "unknown type" or not _is_value(checker, node.base):
                raise
        else:
            return cast(checker, target, checker.check(node.arguments[0]), node.span)
    if node.name == "at" and len(node.arguments) == 1:
        base = checker.check(node.base)
        holder = members.follow_pointer(checker, base, base.span)
        resolved = checker.resolved(holder.type)
        if isinstance(resolved, StructType) and resolved.is_library:
            (given,), container = node.arguments, node.base
            if holder is not base:
                container = tree.Dereference(container, container.span)
            index = given.value if isinstance(given, tree.Integer) else given
            return checker.check(tree.Index(container, index, given.span, node.span))
    if not node.arguments and node.name in checker.site.language.counting:
        count = _COUNTS[checker.site.language.counting[node.name]]
        base = checker.check(node.base)
        return checker.of_each(base, lambda one: count(checker, one, node.span))
    if not node.arguments:
        base = checker.check(node.base)
        return checker.of_each(base, lambda one: _of_library(checker, one, node))
    raise _code(node)


def _is_value(checker: Checker, node: tree.Expression) -> bool:
    try:
        checker.check(node)
    except CompileError:
        return False
    return True


def _of_library(checker: Checker, base: Typed, node: tree.MethodCall) -> Typed:
    holder = members.follow_pointer(checker, base, base.span)
    method = checker.rules_for(checker.resolved(holder.type)).method
    found = None if method is None else method(checker, base, node.name, node.name_span)
    if found is None:
        raise _code(node)
    return found


def _code(node: tree.MethodCall) -> CompileError:
    return reject(
        "FC0308",
        f"`.{node.name}()` is code of the program, which a fetch-arg cannot run",
        node.name_span,
        "a method",
        help="name the member that has the value: `fetchc types` lists them",
    )
