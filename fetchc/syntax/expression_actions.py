"""Actions of grammar/expression.lark: the tree of one argument.

The grammar accepts a little more than the language where one token of look-ahead cannot
tell a type from a value (``(*a.b)`` before a cast, ``[int]`` after a generic type). What
is neither is refused here.
"""

from __future__ import annotations

from fetchc.diag.diagnostic import CompileError, reject
from fetchc.source import Span
from fetchc.syntax.tree import (
    AddressOf,
    Argument,
    Assertion,
    Binary,
    Call,
    Cast,
    ContainerOf,
    Dereference,
    Expression,
    FieldStep,
    FloatNumber,
    Format,
    Index,
    IndexStep,
    Integer,
    Member,
    MethodCall,
    Name,
    NamedType,
    Negate,
    OffsetOf,
    Path,
    PointerTo,
    Range,
    Register,
    RowOf,
    SizeOf,
    Special,
    StringLiteral,
    Ternary,
    TypeName,
    Unary,
    constant,
    grouped_otherwise,
    integer,
    number,
    shown,
)
from fetchc.syntax.type_actions import TypeBuilder, as_type, declared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fetchc.syntax.lalr import Token

    Trailer = Callable[[Expression, int], Expression]  # of the base and where it starts

__all__ = [
    "Builder",
    "not_a_number",
]

FORMATS = frozenset(
    [f"{kind}{bits}" for kind in "usx" for bits in (8, 16, 32, 64)]
    + ["char", "string", "ustring", "symbol", "symstr", "%pd", "%pD", "hex"]
    + ["u16be", "u32be", "u64be"]
)


class Parens:
    """An expression in parentheses: a value, or the type of a cast."""

    __slots__ = ("inner", "span")

    def __init__(self, inner: Expression, span: Span) -> None:
        self.inner = inner
        self.span = span


class Chain:
    """A primary and the trailers after it, not yet folded."""

    __slots__ = ("head", "start", "trailers")

    def __init__(self, head: Expression | Parens, start: int) -> None:
        self.head = head
        self.start = start
        self.trailers: list[Trailer] = []

    def fold(self) -> Expression:
        """All of it as one value."""
        return self.follow(self.head.inner if isinstance(self.head, Parens) else self.head)

    def follow(self, base: Expression) -> Expression:
        """``base`` with the trailers applied to it."""
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


# Characters that are written with a backslash. Source: C11, 6.4.4.4; Go and Rust have less.
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13} | {
    mark: ord(mark) for mark in "\\'\""
}


class Builder(TypeBuilder):
    """Builds the tree of one string. :mod:`fetchc.syntax.lalr` calls a method for each action."""

    __slots__ = ()

    # --- around the expression of an argument -----------------------------------------------

    def argument(self, children: list[Argument], span: Span) -> Argument:
        """An argument without a name."""
        return children[0]

    def named_argument(self, children: list[Any], span: Span) -> Argument:
        """``NAME = ...``."""
        token, body = children
        # The kernel accepts ASCII letters, digits and `_`.
        # Source: Linux, kernel/trace/trace.h, is_good_name().
        if not (token.text.isascii() and token.text.isidentifier()):
            raise reject(
                "FC0207",
                f"`{shown(token.text)}` cannot be an argument's name",
                token.span,
                "not an identifier",
                help="use ASCII letters, digits and `_`, and no digit at the start",
            )
        return Argument(token.text, body.expression, body.format, body.point, span)

    def body(self, children: list[Expression], span: Span) -> Argument:
        """An expression alone."""
        return Argument(None, children[0], None, None, span)

    def body_format(self, children: list[Any], span: Span) -> Argument:
        """``expression : format``."""
        return Argument(None, children[0], children[1], None, span)

    def body_point(self, children: list[Any], span: Span) -> Argument:
        """``expression @ point``."""
        from fetchc.syntax.point_parser import point_after_sign  # has tables of its own

        point = point_after_sign(self.text, children[1].span.start)
        return Argument(None, children[0], None, point, Span(span.start, point.span.end))

    def body_format_point(self, children: list[Any], span: Span) -> Argument:
        """``expression : format @ point``."""
        from fetchc.syntax.point_parser import point_after_sign

        point = point_after_sign(self.text, children[2].span.start)
        return Argument(None, children[0], children[1], point, Span(span.start, point.span.end))

    def format(self, children: list[Token], span: Span) -> Format:
        """A format's name."""
        name = children[0].text
        if name not in FORMATS:
            from fetchc.syntax.syntax_errors import kernel_format

            meant = kernel_format(name)
            raise reject(
                "FC0101",
                f"`{shown(name)}` is not a format",
                span,
                "unknown format",
                notes=("formats are u8 to u64, s8 to s64, x8 to x64, char, string, ustring, "
                       "symbol, symstr, %pd, %pD and hex, most with a count: `u8[4]`; in a trace "
                       "u16be to u64be",),
                help=None if meant is None else f"write `{meant}`",
            )  # fmt: skip
        return Format(name, name, None, span)

    def format_array(self, children: list[Any], span: Span) -> Format:
        """A format and a count."""
        base = self.format(children[:1], children[0].span)
        count = constant(children[1])
        if count is None or count < 0:
            raise reject(
                "FC0101", "a format's count must be a number", children[1].span, "the count"
            )
        return Format(f"{base.text}[{count}]", base.base, count, span)

    # --- operators ------------------------------------------------------------------------

    def add(self, children: list[Expression], span: Span) -> Binary:
        """``a + b``."""
        return self._joined("+", children, span)

    def subtract(self, children: list[Expression], span: Span) -> Binary:
        """``a - b``."""
        return self._joined("-", children, span)

    def multiply(self, children: list[Expression], span: Span) -> Binary:
        """``a * b``."""
        return self._joined("*", children, span)

    def divide(self, children: list[Expression], span: Span) -> Binary:
        """``a / b``."""
        return self._joined("/", children, span)

    def shift_right(self, children: list[Expression], span: Span) -> Binary:
        """``a >> b``."""
        return self._joined(">>", children, span)

    def less(self, children: list[Expression], span: Span) -> Binary:
        """``a < b``."""
        return self._joined("<", children, span)

    def greater(self, children: list[Expression], span: Span) -> Binary:
        """``a > b``."""
        return self._joined(">", children, span)

    def bits_and(self, children: list[Expression], span: Span) -> Binary:
        """``a & b``."""
        return self._joined("&", children, span)

    def bits_but(self, children: list[Expression], span: Span) -> Binary:
        """``a ^ b``."""
        return self._joined("^", children, span)

    def bits_or(self, children: list[Expression], span: Span) -> Binary:
        """``a | b``."""
        return self._joined("|", children, span)

    def binary(self, children: list[Any], span: Span) -> Binary:
        """``a && b``: an operator that is a token with a name."""
        left, operator, right = children
        return self._joined(operator.text, [left, right], span)

    def _joined(self, operator: str, operands: list[Expression], span: Span) -> Binary:
        left, right = operands
        at = self.text.index(operator, self._after(left, span))
        own = Span(at, at + len(operator))
        # The span of an operand is without its parentheses.
        bare = []
        if left.span.start == span.start:
            bare.append(left)
        if right.span.end == span.end:
            bare.append(right)
        for one in bare:
            if isinstance(one, Binary) and grouped_otherwise(operator, one.operator):
                what = f"`{operator}` beside `{one.operator}` groups differently in C and in Go"
                help = "write parentheses around what is computed first"
                raise reject("FC0101", what, own, "in which order", help=help)
        return Binary(operator, left, right, span, own)

    def _after(self, operand: Expression, span: Span) -> int:
        # Where the parentheses around the first operand of ``span`` end.
        end = operand.span.end
        for _ in range(self.text.count("(", span.start, operand.span.start)):
            closing = self.text.find(")", end, span.end)
            if closing < 0 or self.text[end:closing].strip():
                break
            end = closing + 1
        return end

    def conditional(self, children: list[Expression], span: Span) -> Ternary:
        """``a ? b : c``."""
        return Ternary(children[0], children[1], children[2], span)

    def dereference(self, children: list[Expression], span: Span) -> Dereference:
        """``*e``."""
        return Dereference(children[0], span)

    def address_of(self, children: list[Expression], span: Span) -> AddressOf:
        """``&e``."""
        return AddressOf(children[0], span)

    def negate(self, children: list[Expression], span: Span) -> Negate:
        """``-e``."""
        return Negate(children[0], span)

    def not_true(self, children: list[Expression], span: Span) -> Unary:
        """``!e``."""
        return Unary("!", children[0], span)

    def complement(self, children: list[Expression], span: Span) -> Unary:
        """``~e``."""
        return Unary("~", children[0], span)

    # --- casts ----------------------------------------------------------------------------

    def parens(self, children: list[Expression], span: Span) -> Parens:
        """``(e)``: a value, or the type of a cast."""
        return Parens(children[0], span)

    def head_type(self, children: list[TypeName], span: Span) -> Head:
        """``(struct s *)``, ``([]byte)``: what can only be a type."""
        return Head(children[0], not isinstance(_innermost(children[0]), NamedType), span)

    def cast_as(self, children: list[Any], span: Span) -> Cast:
        """``e as T``."""
        return Cast(children[2], children[0], span)

    def head_pointers(self, children: list[Any], span: Span) -> Head:
        """``(T *)``."""
        return Head(self.pointers_type(children, span), False, span)

    def head_word(self, children: list[Token], span: Span) -> Head:
        """``(char)``."""
        words = [w for w in children[0].text[1:-1].split() if w not in ("const", "volatile")]
        return Head(NamedType(None, words[0], (), "", span), False, span)

    def cast(self, children: list[Any], span: Span) -> Expression:
        """``(T)-e``, ``(T)(U)e``."""
        return self._cast(self._head(children[0]), children[1], span)

    def cast_chain(self, children: list[Any], span: Span) -> Expression:
        """``(T)e.f``: C casts the member, Go takes the member of what it converted."""
        head, chain = self._head(children[0]), children[1]
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

    def named_cast(self, children: list[Any], span: Span) -> Expression:
        """``static_cast<T *>(e)`` and its kin; with ``T &`` the object that is cast."""
        word, wanted, operand = children
        if word.text.startswith("dynamic"):
            raise reject(
                "FC0308",
                "`dynamic_cast` runs code of the program, which a fetch-arg cannot",
                word.span,
                "code of the program",
                help="write `static_cast<T *>(e)` if you know the type of the object",
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
                "neither an operand nor a type",
            )
        plain = isinstance(type, NamedType) and type.brackets != "[" and "." not in type.name
        return Head(type, not plain and not isinstance(type, RowOf), part.span)

    # --- values ---------------------------------------------------------------------------

    def chain_start(self, children: list[Any], span: Span) -> Chain:
        """A primary."""
        return Chain(children[0], span.start)

    def chain_more(self, children: list[Any], span: Span) -> Chain:
        """A primary and one more trailer."""
        chain: Chain = children[0]
        chain.trailers.append(children[1])
        return chain

    def value(self, children: list[Chain], span: Span) -> Expression:
        """A chain that is no cast's operand."""
        return children[0].fold()

    def name(self, children: list[Token], span: Span) -> Name:
        """An identifier."""
        return Name(children[0].text, None, span)

    def name_line(self, children: list[Token], span: Span) -> Name:
        """``n@12``."""
        return Name(children[0].text, int(children[1].text[1:]), span)

    def path_name(self, children: list[Token], span: Span) -> Name:
        """``github.com/miekg/dns.ErrId``."""
        return Name(children[0].text, None, span)

    def integer_value(self, children: list[Token], span: Span) -> Integer:
        """A number."""
        return integer(children[0].text, span)

    def character_value(self, children: list[Token], span: Span) -> Integer:
        """``'G'``, ``'\\n'``, ``'\\x1b'``, ``'\\0'``: a number that all languages agree on."""
        text = children[0].text[1:-1]
        code = _code(text, span)
        if code > 0x7F:
            what = f"the number of `{shown(text)}` depends on the language"
            help = f"write the number: `{code}`"
            raise reject("FC0101", what, span, "beyond ASCII", help=help)
        return Integer(code, span)

    def number_value(self, children: list[Token], span: Span) -> FloatNumber:
        """A number with a fraction or an exponent."""
        digits, f, width = children[0].text.lower().partition("f")
        value = float(digits)
        if value == float("inf"):
            raise reject("FC0101", f"`{shown(children[0].text)}` is too large", span, "too large")
        return FloatNumber(value, span, f + width)

    def special(self, children: list[Token], span: Span) -> Special:
        """``$retval``."""
        return Special(children[0].text[1:], span)

    def register(self, children: list[Token], span: Span) -> Register:
        """``%ax``."""
        return Register(children[0].text[1:], span)

    def call_empty(self, children: list[Token], span: Span) -> Call:
        """``f()``."""
        return self.call([children[0], []], span)

    def call(self, children: list[Any], span: Span) -> Call:
        """``len(e)``."""
        name, name_span = called(children[0])
        operands, wanted = list(children[1]), None
        if name == "list" and len(operands) > 2 and not isinstance(operands[1], Expression):
            wanted = operands.pop(1)
        return Call(name, values(name, operands), name_span, span, wanted)

    def size_of(self, children: list[Any], span: Span) -> SizeOf:
        """``sizeof(e or T)``."""
        operand = children[1]
        if isinstance(operand, Expression) and any(
            operand.span.start <= generic.start and generic.end <= operand.span.end
            for generic in self.generics
        ):
            operand = as_type(operand, self.generics) or operand
        return SizeOf(operand, span)

    def convert_to_slice(self, children: list[Any], span: Span) -> Chain:
        """Go's ``[]byte(x)``."""
        wanted, operand = self.converted_slice(children, span)
        return Chain(Cast(wanted, operand, span), span.start)

    def converted(self, children: list[Any], span: Span) -> tuple[TypeName, Expression]:
        """``byte(x)``, ``pkg.T(x)`` after brackets: the type and what is converted to it."""
        name, name_span = called(children[-2])
        (operand,) = values(name, children[-1:])
        package = children[0] if len(children) > 2 else None
        whole = name if package is None else f"{package.name}.{name}"
        start = (package or children[0]).span.start
        return NamedType(None, whole, (), "", Span(start, name_span.end)), operand

    def converted_slice(self, children: list[Any], span: Span) -> tuple[TypeName, Expression]:
        """``[]byte(x)`` after brackets."""
        wanted, operand = children[1]
        return self.type_slice([children[0], wanted], children[0].span.to(wanted.span)), operand

    def converted_pointer(self, children: list[Any], span: Span) -> tuple[TypeName, Expression]:
        """``*T(x)`` after brackets."""
        wanted, operand = children[0]
        return self.type_pointer([wanted], Span(span.start, wanted.span.end)), operand

    def offset_of(self, children: list[Any], span: Span) -> OffsetOf:
        """``offsetof(T, path)``."""
        return OffsetOf(children[1], children[2], span)

    def container_of(self, children: list[Any], span: Span) -> ContainerOf:
        """``container_of(e, T, path)``."""
        return ContainerOf(children[1], children[2], children[3], span)

    def pointers_type(self, children: list[Any], span: Span) -> TypeName:
        """``T *`` where an expression could stand."""
        base = as_type(children[0], self.generics)
        if base is None:
            at = Span(children[1][-1].span.end, children[1][-1].span.end + 1)
            raise reject("FC0101", "expected a value after `*`", at, "a value is missing")
        return declared(base, children[1])

    # --- paths ----------------------------------------------------------------------------

    def path_start(self, children: list[Token], span: Span) -> Path:
        """The first member of a path."""
        return Path((FieldStep(children[0].text, span),), span)

    def path_field(self, children: list[Any], span: Span) -> Path:
        """``path.name``."""
        return Path((*children[0].steps, FieldStep(children[1].text, children[1].span)), span)

    def path_index(self, children: list[Any], span: Span) -> Path:
        """``path[4]``."""
        index = constant(children[1])
        if index is None:
            raise not_a_number(children[1].span)
        return Path((*children[0].steps, IndexStep(index, children[1].span)), span)

    # --- after a value: each action makes a function of that value -----------------------------

    def member_dot(self, children: list[Token], span: Span) -> Trailer:
        """``.name``."""
        return self._member(children[0], False)

    def member_number(self, children: list[Token], span: Span) -> Trailer:
        """``.0`` of a tuple: Rust's debug information calls it ``__0``."""
        token = children[0]
        name, end = f"__{number(token.text, token.span)}", token.span.end
        return lambda base, start: Member(base, name, False, token.span, Span(start, end))

    def member_arrow(self, children: list[Token], span: Span) -> Trailer:
        """``->name``."""
        return self._member(children[0], True)

    def _member(self, token: Token, arrow: bool) -> Trailer:
        end = token.span.end
        return lambda base, start: Member(base, token.text, arrow, token.span, Span(start, end))

    def method_empty(self, children: list[Token], span: Span) -> Trailer:
        """``.size()``."""
        return self.method([children[0], []], span)

    def method(self, children: list[Any], span: Span) -> Trailer:
        """``.at(1)``, and Go's conversion ``dns.Msg(x)``."""
        name, name_span = called(children[0])
        given = values(name, children[1])
        return lambda base, start: MethodCall(base, name, given, name_span, Span(start, span.end))

    def assertion(self, children: list[TypeName], span: Span) -> Trailer:
        """``.(T)``."""
        return lambda base, start: Assertion(base, children[0], Span(start, span.end))

    def subscript(self, children: list[list[Any]], span: Span) -> Trailer:
        """``[4]``, or the arguments of a generic type."""
        items = children[0]
        if not all(isinstance(item, Expression) for item in items) or self._has_type(items):
            return self._generic(items, "[", span)
        inside = items[0].span.to(items[-1].span)
        first, *further = [_bound(item) for item in items]
        return lambda base, start: Index(base, first, inside, Span(start, span.end), tuple(further))

    def _has_type(self, items: list[Expression]) -> bool:
        # Whether a part of them can only be a type, `a[List[*int]]`.
        inside = items[0].span.to(items[-1].span)
        return any(inside.start <= one.start and one.end <= inside.end for one in self.generics)

    def subscript_string(self, children: list[Token], span: Span) -> Trailer:
        """``["key"]``, with the escapes of C."""
        import re  # few expressions have one

        (token,) = children
        at, found = token.span, bytearray()
        for one in re.findall(_STRING_PARTS, token.text[1:-1]):
            if one[0] == "\\":
                found.append(_code(one, at) & 0xFF)
            else:
                found += one.encode("utf-8", "surrogateescape")
        key = StringLiteral(bytes(found), at)
        return lambda base, start: Index(base, key, at, Span(start, span.end))

    def subscript_empty(self, children: list[Token], span: Span) -> Trailer:
        """``[]`` after the name of a type."""
        brackets = "".join(children[0].text.split())

        def trailer(base: Expression, start: int) -> Expression:
            whole = Span(start, span.end)
            self.generics[whole] = ((), brackets)
            return Index(base, 0, span, whole)

        return trailer

    def template(self, children: list[list[Any]], span: Span) -> Trailer:
        """``<int>``."""
        return self._generic(children[0], "<", span)

    def _generic(self, items: list[Any], brackets: str, span: Span) -> Trailer:
        types = []
        for item in items:
            type = as_type(item, self.generics) if isinstance(item, Expression) else item
            if type is None:
                raise not_a_number(item.span)
            types.append(type)

        def trailer(base: Expression, start: int) -> Expression:
            # A placeholder of the type for as_type() and finish().
            whole = Span(start, span.end)
            self.generics[whole] = (tuple(types), brackets)
            return Index(base, 0, span, whole)

        return trailer

    def range(self, children: list[Expression], span: Span) -> Trailer:
        """``[low:high]``."""
        return self._range(_bound(children[0]), _bound(children[1]), span)

    def range_from_start(self, children: list[Expression], span: Span) -> Trailer:
        """``[:high]``."""
        return self._range(0, _bound(children[0]), span)

    def range_no_end(self, children: list[Expression], span: Span) -> Trailer:
        """``[low:]``."""
        return self._range(_bound(children[0]), None, span)

    def range_whole(self, children: list[Expression], span: Span) -> Trailer:
        """``[:]``."""
        return self._range(0, None, span)

    def range_full(self, children: list[Expression], span: Span) -> Trailer:
        """Go's ``[low:high:room]``."""
        *low, high, room = [_bound(part) for part in children]
        return self._range(low[0] if low else 0, high, span, room)

    def _range(
        self,
        low: int | Expression,
        high: int | Expression | None,
        span: Span,
        room: int | Expression | None = None,
    ) -> Trailer:
        inside = Span(span.start + 1, span.end - 1)
        return lambda base, start: Range(base, low, high, inside, Span(start, span.end), room)

    def finish(self) -> None:
        """Refuse subscripts that are neither an index nor a type's arguments."""
        for span, (arguments, brackets) in self.generics.items():
            if not arguments:
                at = Span(span.end - len(brackets), span.end)
                raise reject("FC0101", "an index is missing in the brackets", at, "no number")
            first = arguments[0]
            inside = Span(first.span.start, span.end - 1) if not isinstance(first, int) else span
            if brackets == "<":
                raise reject(
                    "FC0101",
                    "`<` begins a template's arguments, which only a type has",
                    span,
                    "not a type here",
                )
            raise not_a_number(inside)


def _innermost(type: TypeName) -> TypeName:
    while isinstance(type, PointerTo | RowOf):
        type = type.target if isinstance(type, PointerTo) else type.element
    return type


_STRING_PARTS = r"\\x[0-9a-fA-F]{2}|\\[0-7]{1,3}|\\.|[^\\]+"


def _code(text: str, span: Span) -> int:
    # The number of a character, which may be written with a backslash.
    escape = text[1:]
    if text[0] != "\\":
        return ord(text)
    if escape in _ESCAPES:
        return _ESCAPES[escape]
    if escape[0] == "x" and len(escape) == 3:
        return int(escape[1:], 16)
    if len(escape) <= 3 and set(escape) <= set("01234567"):
        return int(escape, 8)
    raise reject("FC0101", f"there is no escape `{shown(text)}`", span, "no character")


def values(function: str, operands: list[Any]) -> tuple[Expression, ...]:
    """The operands of a call, all of which must be values."""
    for operand in operands:
        if not isinstance(operand, Expression):
            raise reject(
                "FC0101",
                f"`{shown(function)}` takes a value, not a type",
                operand.span,
                "a type",
            )
    return tuple(operands)


def called(token: Token) -> tuple[str, Span]:
    """The name in the token of a call, which ends with blanks and the parenthesis."""
    name = token.text.removesuffix("(").rstrip()
    return name, Span(token.span.start, token.span.start + len(name))


def _bound(expression: Expression) -> int | Expression:
    value = constant(expression)
    return expression if value is None else value


def not_a_number(span: Span) -> CompileError:
    """The refusal of an index that is no constant."""
    return reject(
        "FC0101",
        "an index must be a number",
        span,
        "not a number",
        notes=(
            "a fetch-arg is fixed when the probe is set: its indices cannot vary",
            "`fetchc trace` takes one index that varies between brackets: `codes[n]`",
        ),
        help="write a number, or a range: `[0:4]`; `fetchc trace` shows whole lists",
    )
