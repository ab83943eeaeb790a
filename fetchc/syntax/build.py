"""Actions of grammar/expression.lark: the tree of one expression.

The grammar takes a little more than the language where one token of look-ahead cannot
tell a type from a value (``(*a.b)`` before a cast, ``[int]`` behind a generic type). What
is neither is refused here.
"""

from __future__ import annotations

from fetchc.diag.errors import reject
from fetchc.source import Span
from fetchc.syntax.build_argument import ArgumentActions
from fetchc.syntax.build_trailers import TrailerActions, called, not_a_number, values
from fetchc.syntax.build_types import TypeActions, as_type, declared
from fetchc.syntax.numbers import constant, number
from fetchc.syntax.tree import (
    AddressOf,
    Binary,
    Call,
    Cast,
    ContainerOf,
    Dereference,
    Expression,
    FieldStep,
    IndexStep,
    Integer,
    Name,
    NamedType,
    Negate,
    OffsetOf,
    Path,
    PointerTo,
    Register,
    RowOf,
    SizeOf,
    Special,
    TypeName,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fetchc.syntax.build_trailers import Trailer
    from fetchc.syntax.build_types import Arguments
    from fetchc.syntax.driver import Token

__all__ = ["Builder"]


class Parens:
    """An expression in parentheses: a value, or the type of a cast."""

    __slots__ = ("inner", "span")

    def __init__(self, inner: Expression, span: Span) -> None:
        self.inner = inner
        self.span = span


class Chain:
    """A primary and what follows it, not yet put together."""

    __slots__ = ("head", "start", "trailers")

    def __init__(self, head: Expression | Parens, start: int) -> None:
        self.head = head
        self.start = start
        self.trailers: list[Trailer] = []

    def fold(self) -> Expression:
        """All of it as one value."""
        return self.follow(self.head.inner if isinstance(self.head, Parens) else self.head)

    def follow(self, base: Expression) -> Expression:
        """``base`` with the trailers behind it."""
        for trailer in self.trailers:
            base = trailer(base, self.start)
        return base


class Head:
    """The type of a cast; ``tight`` where it is spelled as Go does and binds like a call."""

    __slots__ = ("span", "tight", "type")

    def __init__(self, type: TypeName, tight: bool, span: Span) -> None:
        self.type = type
        self.tight = tight
        self.span = span


class Builder(ArgumentActions, TypeActions, TrailerActions):
    """Makes the tree of one text; see :mod:`fetchc.syntax.driver` for how it is called."""

    __slots__ = ("generics",)

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.generics: dict[Span, Arguments] = {}

    # --- operators ------------------------------------------------------------------------

    def add(self, parts: list[Expression], span: Span) -> Binary:
        """``a + b``."""
        return Binary("+", parts[0], parts[1], span)

    def subtract(self, parts: list[Expression], span: Span) -> Binary:
        """``a - b``."""
        return Binary("-", parts[0], parts[1], span)

    def multiply(self, parts: list[Expression], span: Span) -> Binary:
        """``a * b``."""
        return Binary("*", parts[0], parts[1], span)

    def divide(self, parts: list[Expression], span: Span) -> Binary:
        """``a / b``."""
        return Binary("/", parts[0], parts[1], span)

    def dereference(self, parts: list[Expression], span: Span) -> Dereference:
        """``*e``."""
        return Dereference(parts[0], span)

    def address_of(self, parts: list[Expression], span: Span) -> AddressOf:
        """``&e``."""
        return AddressOf(parts[0], span)

    def negate(self, parts: list[Expression], span: Span) -> Negate:
        """``-e``."""
        return Negate(parts[0], span)

    # --- casts ----------------------------------------------------------------------------

    def parens(self, parts: list[Expression], span: Span) -> Parens:
        """``(e)``, before it is known what for."""
        return Parens(parts[0], span)

    def head_type(self, parts: list[TypeName], span: Span) -> Head:
        """``(struct s *)``, ``([]byte)``: what no value looks like."""
        return Head(parts[0], not isinstance(_innermost(parts[0]), NamedType), span)

    def cast_as(self, parts: list[Any], span: Span) -> Cast:
        """``e as T``."""
        return Cast(parts[2], parts[0], span)

    def head_pointers(self, parts: list[Any], span: Span) -> Head:
        """``(T *)``."""
        return Head(self.pointers_type(parts, span), False, span)

    def head_word(self, parts: list[Token], span: Span) -> Head:
        """``(char)``."""
        words = [w for w in parts[0].text[1:-1].split() if w not in ("const", "volatile")]
        return Head(NamedType(None, words[0], (), "", span), False, span)

    def cast(self, parts: list[Any], span: Span) -> Expression:
        """``(T)-e``, ``(T)(U)e``."""
        return self._cast(self._head(parts[0]), parts[1], span)

    def cast_chain(self, parts: list[Any], span: Span) -> Expression:
        """``(T)e.f``: C casts the member, Go takes the member of what it converted."""
        head, chain = self._head(parts[0]), parts[1]
        if head.tight and isinstance(chain.head, Parens):
            inner = self._cast(head, chain.head.inner, head.span.to(chain.head.span))
            chain.start = span.start
            return chain.follow(inner)  # type: ignore[no-any-return]
        return self._cast(head, chain.fold(), span)

    def _cast(self, head: Head, operand: Expression, span: Span) -> Expression:
        # With `T &` the object that is cast.
        written = self.text[head.span.start : head.span.end].removesuffix(")").rstrip()
        if isinstance(head.type, PointerTo) and written.endswith("&"):
            return Dereference(Cast(head.type, AddressOf(operand, operand.span), span), span)
        return Cast(head.type, operand, span)

    def named_cast(self, parts: list[Any], span: Span) -> Expression:
        """``static_cast<T *>(e)`` and its kin; with ``T &`` the object that is cast."""
        word, wanted, operand = parts
        if word.text.startswith("dynamic"):
            raise reject(
                "FC0308",
                "`dynamic_cast` asks the object what it is: no fetch-arg can run that code",
                word.span,
                "code of the program",
                help="write `static_cast` where you know what the object is",
            )
        reinterprets = word.text.startswith("reinterpret")
        opening = self.text.index("<", word.span.end)
        closing = self.text.rindex(">", opening, operand.span.start)
        if isinstance(wanted, PointerTo) and self.text[opening:closing].rstrip().endswith("&"):
            address = AddressOf(operand, operand.span)
            return Dereference(Cast(wanted, address, span, reinterprets), span)
        return Cast(wanted, operand, span, reinterprets)

    def _head(self, part: Head | Parens) -> Head:
        if isinstance(part, Head):
            return part
        type = as_type(part.inner, self.generics)
        if type is None:
            raise reject(
                "FC0101",
                "expected an operator between these two values",
                part.span,
                "not a type either",
            )
        plain = isinstance(type, NamedType) and type.brackets != "[" and "." not in type.name
        return Head(type, not plain and not isinstance(type, RowOf), part.span)

    # --- values ---------------------------------------------------------------------------

    def chain_start(self, parts: list[Any], span: Span) -> Chain:
        """A primary."""
        return Chain(parts[0], span.start)

    def chain_more(self, parts: list[Any], span: Span) -> Chain:
        """A primary and one more thing behind it."""
        chain: Chain = parts[0]
        chain.trailers.append(parts[1])
        return chain

    def value(self, parts: list[Chain], span: Span) -> Expression:
        """A chain that is no cast's operand."""
        return parts[0].fold()

    def name(self, parts: list[Token], span: Span) -> Name:
        """An identifier."""
        return Name(parts[0].text, None, span)

    def name_line(self, parts: list[Token], span: Span) -> Name:
        """``n@12``."""
        return Name(parts[0].text, int(parts[1].text[1:]), span)

    def path_name(self, parts: list[Token], span: Span) -> Name:
        """``github.com/miekg/dns.ErrId``."""
        return Name(parts[0].text, None, span)

    def integer_value(self, parts: list[Token], span: Span) -> Integer:
        """A number."""
        return Integer(number(parts[0].text, span), span)

    def special(self, parts: list[Token], span: Span) -> Special:
        """``$retval``."""
        return Special(parts[0].text[1:], span)

    def register(self, parts: list[Token], span: Span) -> Register:
        """``%ax``."""
        return Register(parts[0].text[1:], span)

    def call_empty(self, parts: list[Token], span: Span) -> Call:
        """``f()``."""
        return self.call([parts[0], []], span)

    def call(self, parts: list[Any], span: Span) -> Call:
        """``len(e)``."""
        name, name_span = called(parts[0])
        return Call(name, values(name, parts[1]), name_span, span)

    def size_of(self, parts: list[Any], span: Span) -> SizeOf:
        """``sizeof(e or T)``."""
        operand = parts[1]
        if isinstance(operand, Expression) and any(
            operand.span.start <= generic.start and generic.end <= operand.span.end
            for generic in self.generics
        ):
            operand = as_type(operand, self.generics) or operand
        return SizeOf(operand, span)

    def convert_to_slice(self, parts: list[Any], span: Span) -> Chain:
        """Go's ``[]byte(x)``."""
        wanted, operand = self.converted_slice(parts, span)
        return Chain(Cast(wanted, operand, span), span.start)

    def converted(self, parts: list[Any], span: Span) -> tuple[TypeName, Expression]:
        """``byte(x)``, ``pkg.T(x)`` behind brackets: the type and what is converted to it."""
        name, name_span = called(parts[-2])
        (operand,) = values(name, parts[-1:])
        package = parts[0] if len(parts) > 2 else None
        whole = name if package is None else f"{package.name}.{name}"
        start = (package or parts[0]).span.start
        return NamedType(None, whole, (), "", Span(start, name_span.end)), operand

    def converted_slice(self, parts: list[Any], span: Span) -> tuple[TypeName, Expression]:
        """``[]byte(x)`` behind brackets."""
        wanted, operand = parts[1]
        return self.type_slice([parts[0], wanted], parts[0].span.to(wanted.span)), operand

    def converted_pointer(self, parts: list[Any], span: Span) -> tuple[TypeName, Expression]:
        """``*T(x)`` behind brackets."""
        wanted, operand = parts[0]
        return self.type_pointer([wanted], Span(span.start, wanted.span.end)), operand

    def offset_of(self, parts: list[Any], span: Span) -> OffsetOf:
        """``offsetof(T, path)``."""
        return OffsetOf(parts[1], parts[2], span)

    def container_of(self, parts: list[Any], span: Span) -> ContainerOf:
        """``container_of(e, T, path)``."""
        return ContainerOf(parts[1], parts[2], parts[3], span)

    def pointers_type(self, parts: list[Any], span: Span) -> TypeName:
        """``T *`` where an expression could stand."""
        base = as_type(parts[0], self.generics)
        if base is None:
            at = Span(parts[1][-1].span.end, parts[1][-1].span.end + 1)
            raise reject("FC0101", "expected a value after `*`", at, "a value is missing")
        return declared(base, parts[1])

    def meant_as_type(self, part: TypeName | Expression) -> TypeName:
        """A part of a tuple, which may look like an expression."""
        if not isinstance(part, Expression):
            return part
        found = as_type(part, self.generics)
        if found is None:
            raise reject("FC0101", "the parts of a tuple are types", part.span, "not a type")
        return found

    # --- paths ----------------------------------------------------------------------------

    def path_start(self, parts: list[Token], span: Span) -> Path:
        """The first member of a path."""
        return Path((FieldStep(parts[0].text, span),), span)

    def path_field(self, parts: list[Any], span: Span) -> Path:
        """``path.name``."""
        return Path((*parts[0].steps, FieldStep(parts[1].text, parts[1].span)), span)

    def path_index(self, parts: list[Any], span: Span) -> Path:
        """``path[4]``."""
        index = constant(parts[1])
        if index is None:
            raise not_a_number(parts[1].span)
        return Path((*parts[0].steps, IndexStep(index, parts[1].span)), span)


def _innermost(type: TypeName) -> TypeName:
    while isinstance(type, PointerTo | RowOf):
        type = type.target if isinstance(type, PointerTo) else type.element
    return type
