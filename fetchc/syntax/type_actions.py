"""Actions of grammar/types.lark: the tree of a type, in the spelling of any of the languages."""

from __future__ import annotations

from fetchc.diag.diagnostic import CompileError, reject
from fetchc.source import Span
from fetchc.syntax.tree import (
    DEPTH,
    ArrayOf,
    ChannelOf,
    Dereference,
    Expression,
    Index,
    MapOf,
    Member,
    Name,
    NamedType,
    PointerTo,
    RowOf,
    SliceOf,
    TypeName,
    number,
    too_deep,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fetchc.syntax.lalr import Token

    Arguments = tuple[tuple[TypeName | int, ...], str]

__all__ = ["TypeBuilder", "as_type", "declared"]


class Suffix:
    """What follows a type in C and C#: a star, a count in brackets, empty brackets, ``?``."""

    __slots__ = ("count", "nullable", "rank", "span")

    def __init__(
        self, count: int | None, span: Span, rank: int = 0, nullable: bool = False
    ) -> None:
        self.count = count  # None without one
        self.rank = rank  # 0 without empty brackets
        self.nullable = nullable
        self.span = span


class TypeBuilder:
    """Builds the tree of a type. :mod:`fetchc.syntax.lalr` calls a method for each action."""

    __slots__ = ("generics", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        # Subscripts that are no numbers: they must turn out to be arguments of a type.
        self.generics: dict[Span, Arguments] = {}

    def list_start(self, children: list[Any], span: Span) -> list[Any]:
        """The first item of a list."""
        return [children[0]]

    def list_more(self, children: list[Any], span: Span) -> list[Any]:
        """A list and its next item."""
        children[0].append(children[1])
        return children[0]  # type: ignore[no-any-return]

    def type_named(self, children: list[Token], span: Span) -> NamedType:
        """An identifier, or a name with a package's path."""
        return NamedType(None, children[0].text, (), "", span)

    def type_dotted(self, children: list[Any], span: Span) -> NamedType:
        """``dns.Msg``: a package's or a namespace's type, or a nested one."""
        outer: NamedType = children[0]
        if outer.arguments:
            raise reject(
                "FC0103", "a type within a generic type is not supported yet", span, "nested in it"
            )
        return NamedType(None, f"{outer.name}.{children[1].text}", (), "", span)

    def type_generic(self, children: list[Any], span: Span) -> NamedType:
        """Go's ``List[int]``."""
        return _with_arguments(children[0], (tuple(children[1]), "["), span)

    def type_template(self, children: list[Any], span: Span) -> NamedType:
        """``List<int>`` of C++ and C#."""
        return _with_arguments(children[0], (tuple(children[1]), "<"), span)

    def integer(self, children: list[Token], span: Span) -> int:
        """The number among a template's arguments."""
        return number(children[0].text, span)

    def type_plain(self, children: list[NamedType], span: Span) -> NamedType:
        """A name alone."""
        return children[0]

    def type_declared(self, children: list[Any], span: Span) -> TypeName:
        """A name, and the stars and counts after it."""
        return declared(children[0], children[1])

    def type_keyword(self, children: list[Any], span: Span) -> TypeName:
        """``struct s``, with or without stars."""
        named: NamedType = children[1]
        own = children[0].span.to(named.span)
        base = NamedType(children[0].text, named.name, named.arguments, named.brackets, own)
        return declared(base, children[2] if len(children) > 2 else [])

    def type_words(self, children: list[Any], span: Span) -> TypeName:
        """``unsigned long``, with or without stars."""
        base = NamedType(None, " ".join(children[0].text.split()), (), "", children[0].span)
        return declared(base, children[1] if len(children) > 1 else [])

    def type_empty(self, children: list[Any], span: Span) -> TypeName:
        """Go's ``interface{}`` and ``struct{}``, as its debug information spells them."""
        name = "".join(children[0].text.split()).replace("{}", " {}")
        base = NamedType(None, name, (), "", children[0].span)
        return declared(base, children[1] if len(children) > 1 else [])

    def type_tuple(self, children: list[Any], span: Span) -> TypeName:
        """C#'s ``(int, string)``: a ``System.ValueTuple``."""
        packed = "".join(self.text[span.start : span.end].split())
        if "chan<-" in packed or "<-chan" in packed:
            raise reject("FC0101", "a tuple of C# holds no channel of Go", span, "in this tuple")
        elements = [self.meant_as_type(one) for one in (children[0], *children[1])]
        base = NamedType(None, "System.ValueTuple", tuple(elements), "<", span)
        return declared(base, children[2] if len(children) > 2 else [])

    def type_pointer(self, children: list[TypeName], span: Span) -> PointerTo:
        """Go's ``*T``."""
        if isinstance(children[0], RowOf):
            raise no_pointer(span)
        return PointerTo(children[0], span)

    def type_slice(self, children: list[Any], span: Span) -> SliceOf:
        """Go's ``[]T``."""
        if rank(children[0]) > 1:
            raise reject("FC0101", "a slice has one dimension", children[0].span, "a comma")
        return SliceOf(children[1], span)

    def type_array(self, children: list[Any], span: Span) -> ArrayOf:
        """Go's ``[4]T``."""
        return ArrayOf(children[1], number(children[0].text, children[0].span), span)

    def type_map(self, children: list[Any], span: Span) -> MapOf:
        """Go's ``map[K]V``."""
        return MapOf(children[1], children[2], span)

    def type_channel(self, children: list[Any], span: Span) -> ChannelOf:
        """Go's ``chan T`` and its one-way forms."""
        return ChannelOf(children[1], "".join(children[0].text.split()), span)

    def tail_pointer(self, children: list[list[Suffix]], span: Span) -> list[Suffix]:
        """A star, or a reference's ampersand, and what follows it, outermost last."""
        first = Suffix(None, Span(span.start, span.start + 1))
        return [first, *(children[0] if children else [])]

    def tail_nullable(self, children: list[list[Suffix]], span: Span) -> list[Suffix]:
        """C#'s ``?`` and what follows it."""
        first = Suffix(None, Span(span.start, span.start + 1), 0, True)
        return [first, *(children[0] if children else [])]

    def tail_rank(self, children: list[Any], span: Span) -> list[Suffix]:
        """``[]`` or ``[,]`` and what follows it."""
        return [
            Suffix(None, children[0].span, rank(children[0])),
            *(children[1] if len(children) > 1 else []),
        ]

    def tail_count(self, children: list[Any], span: Span) -> list[Suffix]:
        """``[4]`` and what follows it."""
        tail = children[1] if len(children) > 1 else []
        end = children[0].span.end if tail else span.end
        return [Suffix(number(children[0].text, children[0].span), Span(span.start, end)), *tail]

    def meant_as_type(self, part: TypeName | Expression) -> TypeName:
        """A part of a tuple, which may look like an expression."""
        if not isinstance(part, Expression):
            return part
        found = as_type(part, self.generics)
        if found is None:
            raise reject(
                "FC0101", "the elements of a tuple type are types", part.span, "not a type"
            )
        return found


def declared(base: TypeName, suffixes: list[Suffix]) -> TypeName:
    """``base`` with stars, then counts, after it, as in a declaration of C."""
    # `?` does not change an array or a class: the lookup of the name ignores it there.
    if suffixes and suffixes[0].nullable:
        if not isinstance(base, RowOf):
            whole = base.span.to(suffixes[0].span)
            base = NamedType(None, "System.Nullable", (base,), "<", whole)
        suffixes = suffixes[1:]
    if len(suffixes) > 1 and suffixes[-1].nullable and suffixes[-2].rank:
        suffixes = suffixes[:-1]
    if wrong := next((suffix for suffix in suffixes if suffix.nullable), None):
        raise reject("FC0101", "`?` comes directly after a type's name", wrong.span, "misplaced")
    stars = [suffix for suffix in suffixes if suffix.count is None and not suffix.rank]
    if suffixes[: len(stars)] != stars:
        raise reject("FC0101", "`*` cannot follow `[N]` in a type", suffixes[-1].span, "misplaced")
    if stars and isinstance(base, RowOf):
        raise no_pointer(stars[0].span)
    if len({suffix.rank > 0 for suffix in suffixes[len(stars) :]}) > 1:
        raise reject(
            "FC0101", "an array of C# has no count in its type", suffixes[-1].span, "misplaced"
        )
    result = base
    for star in stars:
        result = PointerTo(result, base.span.to(star.span))
    for suffix in reversed(suffixes[len(stars) :]):
        # `T [2][3]` is two arrays of three: the last count, or rank, is the innermost array's.
        whole = base.span.to(suffixes[-1].span)
        if suffix.rank:
            result = RowOf(result, suffix.rank, whole)
        elif suffix.count is not None:
            result = ArrayOf(result, suffix.count, whole)
    return result


def no_pointer(star: Span) -> CompileError:
    """The refusal of a pointer to an array of C#."""
    return reject("FC0101", "C# has no pointers to arrays", star, "misplaced")


def rank(brackets: Token) -> int:
    """How many dimensions empty brackets ask for."""
    return brackets.text.count(",") + 1


def _in_rows(inner: TypeName, dimensions: int, span: Span) -> RowOf:
    # `T[][,]` is an array of `T[,]`: the last rank is the innermost array's.
    if isinstance(inner, RowOf):
        return RowOf(_in_rows(inner.element, dimensions, span), inner.rank, span)
    return RowOf(inner, dimensions, span)


def as_type(
    expression: Expression, generics: dict[Span, Arguments], depth: int = 0
) -> TypeName | None:
    """An expression read as a type's name, None where it cannot be one.

    ``generics`` has the arguments of subscripts that are no numbers, by their spans;
    the function removes those that it uses.
    """
    if depth > DEPTH:
        raise too_deep(expression.span)
    match expression:
        case Name(text=text, line=None, span=span):
            return NamedType(None, text, (), "", span)
        case Member(base=base, name=name, arrow=False, span=span):
            outer = as_type(base, generics, depth + 1)
            if isinstance(outer, NamedType) and not outer.arguments:
                return NamedType(None, f"{outer.name}.{name}", (), "", span)
        case Index(base=base, span=span) if span in generics:
            outer = as_type(base, generics, depth + 1)
            if outer is not None and not generics[span][0]:
                return _in_rows(outer, generics.pop(span)[1].count(",") + 1, span)
            if isinstance(outer, NamedType) and not outer.arguments:
                return _with_arguments(outer, generics.pop(span), span)
        case Index(base=base, index=index, further=further, span=span):
            # `List[T]`, where `T` could be a constant.
            outer, inner = as_type(base, generics, depth + 1), []
            for one in (index, *further):
                found = None if isinstance(one, int) else as_type(one, generics, depth + 1)
                if found is None:
                    return None
                inner.append(found)
            if isinstance(outer, NamedType) and not outer.arguments:
                return _with_arguments(outer, (tuple(inner), "["), span)
        case Dereference(operand=operand, span=span):
            target = as_type(operand, generics, depth + 1)
            if target is not None and not isinstance(target, RowOf):
                return PointerTo(target, span)
        case _:
            pass
    return None


def _with_arguments(outer: NamedType, arguments: Arguments, span: Span) -> NamedType:
    if outer.arguments:
        raise reject("FC0101", "a type has one list of type arguments", span, "a second list")
    return NamedType(outer.keyword, outer.name, arguments[0], arguments[1], span)
