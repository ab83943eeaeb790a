"""What is spelled as a call: operators of types, counts, conversions, methods of libraries."""

from __future__ import annotations

from fetchc.check import builtins
from fetchc.check.check import check, of_each
from fetchc.check.conversions import cast
from fetchc.check.members import member
from fetchc.check.typenames import type_named
from fetchc.diag.diagnostic import CompileError, reject
from fetchc.program.types import ComplexType
from fetchc.record import assert_never
from fetchc.syntax import tree
from fetchc.syntax.expression_parser import as_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = ["call"]

_HALVES = ("real", "imag")  # Go's; elsewhere a complex number's members have these names, too
_COUNTS = {"len": builtins.length, "cap": builtins.capacity}


def call(
    checker: Checker,
    node: tree.Call | tree.MethodCall | tree.SizeOf | tree.OffsetOf | tree.ContainerOf,
) -> Typed:
    """The meaning of ``node``; raises CompileError where code of the program would have to run."""
    match node:
        case tree.SizeOf(operand=operand, span=span):
            return builtins.size_of(checker, _type_of(checker, operand), span)
        case tree.OffsetOf(type=wanted, path=path, span=span):
            return builtins.offset_of(checker, type_named(checker, wanted), path, span)
        case tree.ContainerOf(operand=operand, type=wanted, path=path, span=span):
            inner = check(checker, operand)
            holder = type_named(checker, wanted)
            return builtins.container_of(checker, inner, holder, path, span)
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
        return check(checker, operand).type
    except CompileError as refusal:
        wanted = as_type(operand)
        if wanted is None or refusal.diagnostics[0].code not in ("FC0201", "FC0903"):
            raise
        return type_named(checker, wanted)


def _function(checker: Checker, node: tree.Call) -> Typed:
    name, name_span = node.function, node.function_span
    if len(node.arguments) != 1:
        if name in _COUNTS:
            given = f"given {len(node.arguments)}"
            raise reject("FC0101", f"`{name}` takes one operand", name_span, given)
        raise _no_call(name, name_span)
    (operand,) = node.arguments
    if name in _COUNTS:
        if checker.site.language.slices and isinstance(operand, tree.Range):
            from fetchc.check.slices import counted

            number = counted(checker, operand, name, node.span)
            if number is not None:
                return number
        counted_by, inner = _COUNTS[name], check(checker, operand)
        return of_each(checker, inner, lambda one: counted_by(checker, one, node.span))
    if name in _HALVES:
        inner = check(checker, operand)
        if isinstance(checker.resolved(inner.type), ComplexType):
            return member(checker, inner, name, node.span)
    if "<" in name:
        from fetchc.check.cpp.library_methods import gotten

        part = name.partition("<")[2].rstrip().removesuffix(">").strip()
        inner = check(checker, operand)
        return of_each(checker, inner, lambda one: gotten(checker, one, part, node.span, name_span))
    # Go's conversion: uint32(x).
    try:
        target = type_named(checker, tree.NamedType(None, name, (), "", name_span))
    except CompileError as refusal:
        if refusal.diagnostics[0].code != "FC0204":
            raise
        raise _no_call(name, name_span) from None
    return cast(checker, target, check(checker, operand), node.span)


def _no_call(name: str, span: Span) -> CompileError:
    # `name(x)`, where `name` is no type that `x` could be converted to.
    from fetchc.check.habits import call_meant

    return reject(
        "FC0204",
        f"`{name}` is no type, and the kernel can call no function",
        span,
        "called here",
        notes=(
            "`len`, `cap`, `sizeof`, `offsetof` and `container_of` are reckoned from the types",
        ),
        help=call_meant(name)
        or "fetch what it would be called with, or what it returned: "
        f"`-f {name} --return '$retval'`",
    )


def _method(checker: Checker, node: tree.MethodCall) -> Typed:
    wanted = as_type(tree.Member(node.base, node.name, False, node.name_span, node.span))
    if wanted is not None and len(node.arguments) == 1:
        target = type_named(checker, wanted)
        return cast(checker, target, check(checker, node.arguments[0]), node.span)
    if not node.arguments and node.name in checker.site.language.counting:
        count = _COUNTS[checker.site.language.counting[node.name]]
        base = check(checker, node.base)
        return of_each(checker, base, lambda one: count(checker, one, node.span))
    if not node.arguments:
        base = check(checker, node.base)
        return of_each(checker, base, lambda one: _of_library(checker, one, node))
    raise _code(node)


def _of_library(checker: Checker, base: Typed, node: tree.MethodCall) -> Typed:
    from fetchc.check.cpp.library_methods import method

    found = method(checker, base, node.name, node.name_span)
    if found is None:
        raise _code(node)
    return found


def _code(node: tree.MethodCall) -> CompileError:
    return reject(
        "FC0308",
        f"`.{node.name}()` is code of the program, which no fetch-arg can run",
        node.name_span,
        "a method",
        help="name the member that holds it: list them with `fetchc types`",
    )
