"""From the tree of an expression to the typed tree: every node by its kind."""

from __future__ import annotations

from fetchc.check import members, scope
from fetchc.check.probe_site import SiteTypes
from fetchc.check.typed_tree import Address, Conditional, Pointee
from fetchc.diag.diagnostic import CompileError, Label, reject
from fetchc.program.types import (
    ChannelType,
    FunctionType,
    InterfaceType,
    MapType,
    PointerType,
    StructType,
    VoidType,
)
from fetchc.record import assert_never
from fetchc.syntax import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.check.probe_site import Site
    from fetchc.check.type_rules import TypeRules
    from fetchc.check.typed_tree import Assumption, Typed
    from fetchc.check.walks import Walked
    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.program.entities import Variable
    from fetchc.program.types import Type
    from fetchc.source import Span

__all__ = ["Checker"]

WORDS = frozenset(("true", "false", "nil", "NULL", "nullptr", "null"))
"""Constants of the languages that no debug information names."""


class Checker(SiteTypes):
    """The state of checking one expression at one site: warnings and assumptions so far.

    Every function that checks a part of the expression gets the checker, and calls it for the
    subexpressions.
    """

    __slots__ = ("_rules", "assumptions", "index", "walk", "warnings")

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._rules: TypeRules | None = None
        self.warnings: list[Diagnostic] = []
        self.assumptions: list[Assumption] = []  # as they are met
        self.walk: Walked | None = None  # what the expression is an element of
        self.index: Span | None = None  # one by which an address is computed

    def check(self, node: tree.Expression) -> Typed:
        """The meaning of ``node`` at the checker's site.

        A C++ reference is the object it refers to. Raises CompileError with the smallest
        span that shows the problem.
        """
        typed = _check(self, node)
        resolved = self.resolved(typed.type)
        if isinstance(resolved, PointerType) and resolved.reference:
            target = resolved.target
            return self.of_each(typed, lambda one: Pointee(one, target, typed.span))
        return typed

    @property
    def rules(self) -> TypeRules:
        """The rules of the site's language, read when first asked for: most expressions need none.

        What all languages share comes first, wherever that is the same.
        """
        if self._rules is None:
            key = self.site.language.type_rules
            self._rules = type_rules("kernel" if self.program.in_kernel and not key else key)
        return self._rules

    def rules_for(self, resolved: Type) -> TypeRules:
        """The rules for values of a type: those of the one language that has such types.

        They hold at sites of other languages of the program, too. Of types that several languages
        have, the rules of the site's language.
        """
        match resolved:
            case StructType():
                if resolved.value is not None or resolved.variants:
                    return type_rules("rust")
                return type_rules("c++") if resolved.is_library else self.rules
            case InterfaceType() | ChannelType() | MapType():
                return type_rules("go")
            case _:
                return self.rules

    def of_each(self, base: Typed, make: Callable[[Typed], Typed]) -> Typed:
        """What ``make`` makes of ``base``; of one of several objects, of each of them."""
        return self.of_both(base, make) if isinstance(base, Conditional) else make(base)

    def of_both(self, node: Conditional, make: Callable[[Typed], Typed]) -> Conditional:
        """``node`` with what ``make`` makes of each of the objects that it can be.

        What ``make`` assumes of one of them has to hold only where that one is the object.
        """
        results, given = [], []
        for one, before in zip((node.if_zero, node.if_nonzero), node.assumptions, strict=True):
            mark = len(self.assumptions)
            results.append(self.of_each(one, make))
            given.append((*before, *self.assumptions[mark:]))
            del self.assumptions[mark:]
        (first, other), span = results, results[0].span
        together = (given[0], given[1])
        return Conditional(node.number, first, other, first.type, span, node.adjacent, together)


def type_rules(key: str) -> TypeRules:
    """The record of the language that calls its rules ``key``; C's, which has none, for no key."""
    match key:
        case "c++":
            from fetchc.check.cpp_rules import CPP

            return CPP
        case "go":
            from fetchc.check.go_rules import GO

            return GO
        case "rust":
            from fetchc.check.rust_rules import RUST

            return RUST
        case "dotnet":
            from fetchc.check.dotnet_rules import DOTNET

            return DOTNET
        case "kernel":
            from fetchc.check.kernel_rules import KERNEL

            return KERNEL
        case _:
            from fetchc.check.type_rules import NO_RULES

            return NO_RULES


def _check(checker: Checker, node: tree.Expression) -> Typed:
    match node:
        case tree.Name(text=text, line=line, span=span):
            return _name(checker, text, line, span)
        case tree.Member():
            return _member(checker, node)
        case tree.Index() | tree.Range():
            return _index(checker, node)
        case tree.Integer():
            from fetchc.check.literals import literal

            return literal(checker, node)
        case tree.StringLiteral(span=span):
            raise reject("FC0101", "a string is the key of a map", span, "a string")
        case tree.Register(name=name, span=span):
            from fetchc.check.special_names import register

            return register(checker, name, span)
        case tree.Special(name=name, span=span):
            from fetchc.check.special_names import special

            return special(checker, name, span)
        case tree.Dereference(operand=operand, span=span):
            return checker.of_each(
                checker.check(operand), lambda one: _dereference(checker, one, span)
            )
        case tree.AddressOf(operand=operand, span=span):
            inner = checker.check(operand)
            return Address(inner, checker.pointer_to(inner.type), span)
        case tree.Cast():
            return _cast(checker, node)
        case tree.FloatNumber() | tree.Negate() | tree.Unary() | tree.Binary() | tree.Ternary():
            from fetchc.check.operators import operation

            return operation(checker, node)
        case tree.Call(function="list", arguments=(_, *_)):
            from fetchc.check.walks import listed

            return listed(checker, node)
        case tree.Call() | tree.MethodCall() | tree.SizeOf() | tree.OffsetOf() | tree.ContainerOf():
            from fetchc.check.builtins import call

            return call(checker, node)
        case tree.Assertion(base=base, type=wanted, span=span):
            return _assertion(checker, base, wanted, span)
        case _:
            assert_never(node)


def _name(checker: Checker, text: str, line: int | None, span: Span) -> Typed:
    variable = scope.find_local(checker, text, line, span)
    # What a lambda of gcc captured is in its object; the variables of that name are no others.
    if variable is None or (variable.artificial and variable.kind == "local"):
        inherent = _of_receiver(checker, text, span) if line is None else None
        if inherent is not None:
            return inherent
    if variable is not None:
        return scope.variable_object(checker, variable, span)
    if text.startswith("~") and line is None:  # only Go has such names: `~r0` is `~ r0`
        operand = tree.Name(text[1:], None, span.replaced(start=span.start + 1))
        return checker.check(tree.Unary("~", operand, span))
    found = scope.find_outside(checker, text, line, span) or _property(checker, text, span)
    if found is None and line is None and text in WORDS:
        from fetchc.check.operators import word

        return word(checker, text, span)
    if found is None:
        from fetchc.check.unknown_names import refuse_name

        raise refuse_name(checker, text, span)
    return found


def _of_receiver(checker: Checker, name: str, span: Span) -> Typed | None:
    # Inside a C++ method the members of its class need no this->.
    this = scope.receiver(checker)
    if this is None:
        return None
    try:
        pointer = scope.variable_object(checker, this, span)
    except CompileError:
        found = _without_receiver(checker, this, name, span)
        if found is None and _is_of_object(checker, this, name, span):
            raise
        return found
    holder = members.follow_pointer(checker, pointer, span)
    path = members.find(checker, holder.type, name, span)
    if path is None:
        implicit = checker.rules.implicit_member
        return None if implicit is None else implicit(checker, this, holder, name, span)
    return members.follow_path(checker, holder, path, span)


def _without_receiver(checker: Checker, this: Variable, name: str, span: Span) -> Typed | None:
    # What all objects of the class share, where the object itself cannot be fetched.
    resolved, static_member = _class_of(checker, this), checker.rules.static_member
    if resolved is None or not resolved.name or static_member is None:
        return None
    return static_member(checker, f"{resolved.name}::{name}", span)


def _is_of_object(checker: Checker, this: Variable, name: str, span: Span) -> bool:
    # Whether the name may be a member of the object, or of what a lambda captured.
    resolved, may_be_member = checker.resolved(this.type), checker.rules.may_be_member
    if not isinstance(resolved, PointerType) or this.name != "this" or may_be_member is None:
        return True
    return may_be_member(checker, checker.bare(resolved.target), name, span)


def _class_of(checker: Checker, this: Variable) -> StructType | None:
    pointer = checker.resolved(this.type)
    resolved = checker.resolved(pointer.target) if isinstance(pointer, PointerType) else None
    return resolved if isinstance(resolved, StructType) else None


def _property(checker: Checker, name: str, span: Span) -> Typed | None:
    # Inside a method of .NET the properties of its class need no this, either.
    this = scope.receiver(checker)
    accessor = None if this is None else checker.rules.accessor
    if this is None or accessor is None:
        return None
    holder = members.follow_pointer(checker, scope.variable_object(checker, this, span), span)
    path = accessor(checker, holder, name, span)
    return None if path is None else members.follow_path(checker, holder, path, span)


def _member(checker: Checker, node: tree.Member) -> Typed:
    qualified = _qualified(checker, node)
    if qualified is not None:
        return qualified
    return checker.of_each(checker.check(node.base), lambda base: _member_of(checker, base, node))


def _member_of(checker: Checker, base: Typed, node: tree.Member) -> Typed:
    found = members.own_member(checker, base, node.name, node.name_span)
    if found is None and checker.rules.class_member is not None:
        found = checker.rules.class_member(checker, base, node.name, node.span, node.name_span)
    return found or members.other_member(checker, base, node.name, node.name_span)


def _qualified(checker: Checker, node: tree.Member) -> Typed | None:
    # pkg.Var, Namespace.Type.Enumerator: a dotted name whose first part is no variable here.
    # The longest prefix that is one wins at its own node, since members are checked from the
    # outside in.
    words = [node.name]
    base = node.base
    while isinstance(base, tree.Member):
        words.append(base.name)
        base = base.base
    if not isinstance(base, tree.Name) or base.line is not None:
        return None
    # Local names first: a search outside functions can read the whole file.
    if scope.find_local(checker, base.text, None, base.span) is not None:
        return None
    if _of_receiver(checker, base.text, base.span) is not None:
        return None
    if scope.find_global(checker, base.text, None, base.span) is not None:
        return None
    whole = ".".join([base.text, *reversed(words)])
    variable = scope.find_global(checker, whole, None, node.span)
    if variable is None:
        return scope.enumerator(checker, whole, node.span)
    return scope.variable_object(checker, variable, node.span)


def _index(checker: Checker, node: tree.Index | tree.Range) -> Typed:
    if isinstance(node, tree.Index) and isinstance(node.index, tree.StringLiteral):
        from fetchc.check.walks import looked_up

        base = checker.check(node.base)
        return looked_up(checker, base, node.index.value, node.span, node.index_span)
    if _named(node):
        from fetchc.check.array_ranges import fold_bounds

        node = fold_bounds(checker, node)
        if isinstance(node, tree.Index) and not isinstance(node.index, int):
            from fetchc.check.varying_index import element

            return element(checker, node, node.index)
    cuts = isinstance(node, tree.Range) or isinstance(node.base, tree.Range)
    if cuts and checker.rules.slice is not None:
        cut = checker.rules.slice(checker, node)
        if cut is not None:
            return cut
    return checker.of_each(checker.check(node.base), lambda base: _index_of(checker, base, node))


def _named(node: tree.Index | tree.Range) -> bool:
    # Whether something between the brackets is not a number yet.
    if isinstance(node, tree.Index):
        return not (isinstance(node.index, int) and all(isinstance(n, int) for n in node.further))
    return any(isinstance(one, tree.Expression) for one in (node.low, node.high, node.room))


def _index_of(checker: Checker, base: Typed, node: tree.Index | tree.Range) -> Typed:
    from fetchc.check import indexing

    rules = checker.site.language
    if isinstance(node, tree.Index):
        assert isinstance(node.index, int)
        if node.further or rules.references or rules.dereferences:
            from fetchc.check.array_dimensions import grid

            within = indexing.element_storage(checker, base, base.span)
            if node.further or grid(checker, within) is not None:
                from fetchc.check.array_ranges import grid_element

                return grid_element(checker, base, node)
        within, found = indexing.referent(checker, base), None
        resolved = checker.resolved(within.type)
        keyed = rules.references or isinstance(resolved, StructType | MapType)
        if keyed and indexing.has_keys(checker, within):
            from fetchc.check.walks import looked_up

            return looked_up(checker, base, node.index, node.span, node.index_span)
        if isinstance(resolved, StructType):
            block_element = checker.rules_for(resolved).block_element
            if block_element is not None:
                found = block_element(checker, base, node.index, node.span, node.index_span)
        if found is None:
            found = indexing.element_at(checker, base, node.index, node.span, node.index_span)
        indexing.assume_count(checker, base, node.index + 1, node.span)
        return found
    if node.room is not None:
        at = node.range_span
        help = "write `a[0:4]` for the elements from 0 up to 3"
        raise reject("FC0101", "a range has two numbers", at, "too many", help=help)
    refers = rules.dereferences or rules.references
    if refers or isinstance(checker.resolved(base.type), StructType | MapType):
        from fetchc.check.walks import entries

        if (element := entries(checker, base, node)) is not None:
            return element
    low, high = node.low, node.high
    if isinstance(low, int) and isinstance(high, int):
        found = indexing.elements(checker, base, low, high, node.span, node.range_span)
        indexing.assume_count(checker, base, high, node.span, most=True)
        return found
    from fetchc.check.array_ranges import element_range, end_of_elements

    first = low if isinstance(low, int) else checker.check(low)
    end: Typed | int
    if high is None:
        end = end_of_elements(checker, base, node.range_span)
    else:
        end = high if isinstance(high, int) else checker.check(high)
    return element_range(checker, base, first, end, node.span, node.range_span)


def _dereference(checker: Checker, operand: Typed, span: Span) -> Typed:
    from fetchc.check.conversions import decayed

    pointer = decayed(checker, operand)
    resolved = checker.resolved(pointer.type)
    if isinstance(resolved, StructType):
        dereference = checker.rules_for(resolved).dereference
        found = None if dereference is None else dereference(checker, pointer, span)
        if found is not None:
            return found
    label = Label(operand.span, f"this is `{checker.spell(operand.type)}`")
    if not isinstance(resolved, PointerType):
        word = checker.size(operand.type) == checker.program.word_bytes
        help = "cast it, if it holds an address: `*(unsigned long *)e`" if word else None
        if isinstance(resolved, StructType):
            help = "it is the object itself: leave the `*` out"
        raise reject(
            "FC0305",
            f"`{checker.spell(operand.type)}` is not a pointer",
            span,
            "dereferenced here",
            secondary=(label,),
            help=help,
        )
    target = checker.resolved(resolved.target)
    if isinstance(target, FunctionType):
        raise reject(
            "FC0310",
            "a function is not a value that can be fetched",
            span,
            "this is a function",
            secondary=(label,),
            help="fetch the pointer to it: leave the `*` out",
        )
    if isinstance(target, VoidType):
        raise reject(
            "FC0311",
            "the type that a `void *` points to is not known",
            span,
            "dereferenced here",
            secondary=(label,),
            help="cast it first: `*(int *)e`",
        )
    return Pointee(pointer, resolved.target, span)


def _cast(checker: Checker, node: tree.Cast) -> Typed:
    from fetchc.check.conversions import cast, type_named

    operand = checker.check(node.operand)
    if isinstance(node.type, tree.SliceOf) and checker.rules.refuse_cast is not None:
        checker.rules.refuse_cast(checker, node.type, operand, node.span)
    wanted, along = type_named(checker, node.type), not node.reinterprets
    return checker.of_each(operand, lambda one: cast(checker, wanted, one, node.span, along))


def _assertion(checker: Checker, base: tree.Expression, wanted: tree.TypeName, span: Span) -> Typed:
    from fetchc.check.conversions import type_named

    operand, target = checker.check(base), type_named(checker, wanted)
    resolved = checker.resolved(operand.type)
    assertion = checker.rules_for(resolved).assertion
    if assertion is None or not isinstance(resolved, InterfaceType):
        spelled = checker.spell(operand.type)
        raise reject(
            "FC0313",
            f"`{spelled}` is not an interface",
            span,
            "type assertion",
            secondary=(Label(operand.span, f"this is `{spelled}`"),),
        )
    return assertion(checker, operand, target, span)
