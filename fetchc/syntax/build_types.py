"""Actions of grammar/types.lark: type names, in any of the languages' spellings."""

from __future__ import annotations

from fetchc.diag.errors import CompileError, reject
from fetchc.source import Span
from fetchc.syntax.limits import DEPTH, too_deep
from fetchc.syntax.numbers import number
from fetchc.syntax.tree import (
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
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fetchc.syntax.driver import Token

    # Arguments in the brackets of a generic type, and which brackets they were.
    Arguments = tuple[tuple[TypeName | int, ...], str]

__all__ = ["TypeActions", "as_type", "declared", "rank"]


class Suffix:
    """What stands behind a type in C and C#: a star, a count in brackets, brackets alone, ``?``."""

    __slots__ = ("count", "nullable", "rank", "span")

    def __init__(
        self, count: int | None, span: Span, rank: int = 0, nullable: bool = False
    ) -> None:
        self.count = count  # None without one
        self.rank = rank  # 0 without empty brackets
        self.nullable = nullable
        self.span = span


class TypeActions:
    """The part of the builder that makes types; see :mod:`fetchc.syntax.driver`."""

    __slots__ = ()

    def list_start(self, parts: list[Any], span: Span) -> list[Any]:
        """The first item of a list."""
        return [parts[0]]

    def list_more(self, parts: list[Any], span: Span) -> list[Any]:
        """A list and its next item."""
        parts[0].append(parts[1])
        return parts[0]  # type: ignore[no-any-return]

    def type_named(self, parts: list[Token], span: Span) -> NamedType:
        """An identifier, or a name with a package's path."""
        return NamedType(None, parts[0].text, (), "", span)

    def type_dotted(self, parts: list[Any], span: Span) -> NamedType:
        """``dns.Msg``: a package's or a namespace's type, or a nested one."""
        outer: NamedType = parts[0]
        if outer.arguments:
            raise reject(
                "FC0103", "a type within a generic type is not supported yet", span, "nested in it"
            )
        return NamedType(None, f"{outer.name}.{parts[1].text}", (), "", span)

    def type_generic(self, parts: list[Any], span: Span) -> NamedType:
        """Go's ``List[int]``."""
        return _with_arguments(parts[0], (tuple(parts[1]), "["), span)

    def type_template(self, parts: list[Any], span: Span) -> NamedType:
        """``List<int>`` of C++ and C#."""
        return _with_arguments(parts[0], (tuple(parts[1]), "<"), span)

    def integer(self, parts: list[Token], span: Span) -> int:
        """The number among a template's arguments."""
        return number(parts[0].text, span)

    def type_plain(self, parts: list[NamedType], span: Span) -> NamedType:
        """A name with nothing behind it."""
        return parts[0]

    def type_declared(self, parts: list[Any], span: Span) -> TypeName:
        """A name, and stars and counts behind it."""
        return declared(parts[0], parts[1])

    def type_keyword(self, parts: list[Any], span: Span) -> TypeName:
        """``struct s``, with or without stars."""
        named: NamedType = parts[1]
        own = parts[0].span.to(named.span)
        base = NamedType(parts[0].text, named.name, named.arguments, named.brackets, own)
        return declared(base, parts[2] if len(parts) > 2 else [])

    def type_words(self, parts: list[Any], span: Span) -> TypeName:
        """``unsigned long``, with or without stars."""
        base = NamedType(None, " ".join(parts[0].text.split()), (), "", parts[0].span)
        return declared(base, parts[1] if len(parts) > 1 else [])

    def type_empty(self, parts: list[Any], span: Span) -> TypeName:
        """Go's ``interface{}`` and ``struct{}``, as its debug information spells them."""
        name = "".join(parts[0].text.split()).replace("{}", " {}")
        base = NamedType(None, name, (), "", parts[0].span)
        return declared(base, parts[1] if len(parts) > 1 else [])

    def type_tuple(self, parts: list[Any], span: Span) -> TypeName:
        """C#'s ``(int, string)``: a ``System.ValueTuple``."""
        elements = [self.meant_as_type(one) for one in (parts[0], *parts[1])]
        base = NamedType(None, "System.ValueTuple", tuple(elements), "<", span)
        return declared(base, parts[2] if len(parts) > 2 else [])

    def meant_as_type(self, part: TypeName | Expression) -> TypeName:
        """A part of a tuple. Raises CompileError FC0101 for what is no type."""
        raise NotImplementedError

    def type_pointer(self, parts: list[TypeName], span: Span) -> PointerTo:
        """Go's ``*T``."""
        if isinstance(parts[0], RowOf):
            raise no_pointer(span)
        return PointerTo(parts[0], span)

    def type_slice(self, parts: list[Any], span: Span) -> SliceOf:
        """Go's ``[]T``."""
        if rank(parts[0]) > 1:
            raise reject("FC0101", "a slice has one dimension", parts[0].span, "a comma")
        return SliceOf(parts[1], span)

    def type_array(self, parts: list[Any], span: Span) -> ArrayOf:
        """Go's ``[4]T``."""
        return ArrayOf(parts[1], number(parts[0].text, parts[0].span), span)

    def type_map(self, parts: list[Any], span: Span) -> MapOf:
        """Go's ``map[K]V``."""
        return MapOf(parts[1], parts[2], span)

    def type_channel(self, parts: list[Any], span: Span) -> ChannelOf:
        """Go's ``chan T`` and its one-way forms."""
        return ChannelOf(parts[1], "".join(parts[0].text.split()), span)

    def tail_pointer(self, parts: list[list[Suffix]], span: Span) -> list[Suffix]:
        """A star, or a reference's ampersand, and what follows it, outermost last."""
        first = Suffix(None, Span(span.start, span.start + 1))
        return [first, *(parts[0] if parts else [])]

    def tail_nullable(self, parts: list[list[Suffix]], span: Span) -> list[Suffix]:
        """C#'s ``?`` and what follows it."""
        first = Suffix(None, Span(span.start, span.start + 1), 0, True)
        return [first, *(parts[0] if parts else [])]

    def tail_rank(self, parts: list[Any], span: Span) -> list[Suffix]:
        """``[]`` or ``[,]`` and what follows it."""
        return [Suffix(None, parts[0].span, rank(parts[0])), *(parts[1] if len(parts) > 1 else [])]

    def tail_count(self, parts: list[Any], span: Span) -> list[Suffix]:
        """``[4]`` and what follows it."""
        tail = parts[1] if len(parts) > 1 else []
        end = parts[0].span.end if tail else span.end
        return [Suffix(number(parts[0].text, parts[0].span), Span(span.start, end)), *tail]


def declared(base: TypeName, suffixes: list[Suffix]) -> TypeName:
    """``base`` with stars, then counts, behind it, as a declaration in C has them."""
    # Of an array a `?` says nothing about the type. Nor of a class: who looks names up knows.
    if suffixes and suffixes[0].nullable:
        if not isinstance(base, RowOf):
            whole = base.span.to(suffixes[0].span)
            base = NamedType(None, "System.Nullable", (base,), "<", whole)
        suffixes = suffixes[1:]
    if len(suffixes) > 1 and suffixes[-1].nullable and suffixes[-2].rank:
        suffixes = suffixes[:-1]
    if wrong := next((suffix for suffix in suffixes if suffix.nullable), None):
        raise reject("FC0101", "`?` stands behind a type's name", wrong.span, "misplaced")
    stars = [suffix for suffix in suffixes if suffix.count is None and not suffix.rank]
    if suffixes[: len(stars)] != stars:
        raise reject(
            "FC0101", "a star behind a count is not a type", suffixes[-1].span, "misplaced"
        )
    if stars and isinstance(base, RowOf):
        raise no_pointer(stars[0].span)
    if len({suffix.rank > 0 for suffix in suffixes[len(stars) :]}) > 1:
        raise reject("FC0101", "rows of C# have no counts", suffixes[-1].span, "misplaced")
    result = base
    for star in stars:
        result = PointerTo(result, base.span.to(star.span))
    for suffix in reversed(suffixes[len(stars) :]):
        # `T [2][3]` is two arrays of three: the last count, or rank, is the innermost array's. No
        # text but all of it is the outermost's.
        whole = base.span.to(suffixes[-1].span)
        if suffix.rank:
            result = RowOf(result, suffix.rank, whole)
        elif suffix.count is not None:
            result = ArrayOf(result, suffix.count, whole)
    return result


def no_pointer(star: Span) -> CompileError:
    """The refusal of a pointer to what C# alone has."""
    return reject("FC0101", "no pointer leads to rows of C#", star, "misplaced")


def rank(brackets: Token) -> int:
    """How many dimensions empty brackets ask for."""
    return brackets.text.count(",") + 1


def _in_rows(inner: TypeName, dimensions: int, span: Span) -> RowOf:
    # `T[][,]` are rows of `T[,]`: what is written last is the innermost.
    if isinstance(inner, RowOf):
        return RowOf(_in_rows(inner.element, dimensions, span), inner.rank, span)
    return RowOf(inner, dimensions, span)


def as_type(
    expression: Expression, generics: dict[Span, Arguments], depth: int = 0
) -> TypeName | None:
    """An expression read as a type's name, None where it cannot be one.

    ``generics`` has the arguments of subscripts that were no numbers, by their spans:
    those used here are taken out.
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
        raise reject("FC0101", "a type has one list of arguments", span, "a second list")
    return NamedType(outer.keyword, outer.name, arguments[0], arguments[1], span)
