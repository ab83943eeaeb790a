"""Actions of grammar/expression.lark: what stands behind a value, members and subscripts."""

from __future__ import annotations

from fetchc.diag.errors import reject
from fetchc.source import Span
from fetchc.syntax.build_types import as_type
from fetchc.syntax.limits import shown
from fetchc.syntax.numbers import constant, number
from fetchc.syntax.tree import Assertion, Expression, Index, Member, MethodCall, Range

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fetchc.diag.errors import CompileError
    from fetchc.syntax.build_types import Arguments
    from fetchc.syntax.driver import Token
    from fetchc.syntax.tree import TypeName

    Trailer = Callable[[Expression, int], Expression]  # of the base and where it starts

__all__ = ["TrailerActions", "called", "not_a_number", "values"]


class TrailerActions:
    """The part of the builder for what follows a value: each action makes a function of that."""

    __slots__ = ()

    generics: dict[Span, Arguments]
    """Subscripts that were no numbers: they must turn out to be types' arguments."""

    def member_dot(self, parts: list[Token], span: Span) -> Trailer:
        """``.name``."""
        return self._member(parts[0], False)

    def member_number(self, parts: list[Token], span: Span) -> Trailer:
        """``.0`` of a tuple: Rust's debug information calls it ``__0``."""
        token = parts[0]
        name, end = f"__{number(token.text, token.span)}", token.span.end
        return lambda base, start: Member(base, name, False, token.span, Span(start, end))

    def member_arrow(self, parts: list[Token], span: Span) -> Trailer:
        """``->name``."""
        return self._member(parts[0], True)

    def _member(self, token: Token, arrow: bool) -> Trailer:
        end = token.span.end
        return lambda base, start: Member(base, token.text, arrow, token.span, Span(start, end))

    def method_empty(self, parts: list[Token], span: Span) -> Trailer:
        """``.size()``."""
        return self.method([parts[0], []], span)

    def method(self, parts: list[Any], span: Span) -> Trailer:
        """``.at(1)``, and Go's conversion ``dns.Msg(x)``."""
        name, name_span = called(parts[0])
        given = values(name, parts[1])
        return lambda base, start: MethodCall(base, name, given, name_span, Span(start, span.end))

    def assertion(self, parts: list[TypeName], span: Span) -> Trailer:
        """``.(T)``."""
        return lambda base, start: Assertion(base, parts[0], Span(start, span.end))

    def subscript(self, parts: list[list[Any]], span: Span) -> Trailer:
        """``[4]``, or the arguments of a generic type."""
        items = parts[0]
        if not all(isinstance(item, Expression) for item in items) or self._has_type(items):
            return self._generic(items, "[", span)
        inside = items[0].span.to(items[-1].span)
        first, *further = [_bound(item) for item in items]
        return lambda base, start: Index(base, first, inside, Span(start, span.end), tuple(further))

    def _has_type(self, items: list[Expression]) -> bool:
        # Whether a part of them can only be a type, `a[List[*int]]`.
        inside = items[0].span.to(items[-1].span)
        return any(inside.start <= one.start and one.end <= inside.end for one in self.generics)

    def subscript_empty(self, parts: list[Token], span: Span) -> Trailer:
        """``[]`` behind the name of a type."""
        brackets = "".join(parts[0].text.split())

        def trailer(base: Expression, start: int) -> Expression:
            whole = Span(start, span.end)
            self.generics[whole] = ((), brackets)
            return Index(base, 0, span, whole)

        return trailer

    def template(self, parts: list[list[Any]], span: Span) -> Trailer:
        """``<int>``."""
        return self._generic(parts[0], "<", span)

    def _generic(self, items: list[Any], brackets: str, span: Span) -> Trailer:
        types = []
        for item in items:
            type = as_type(item, self.generics) if isinstance(item, Expression) else item
            if type is None:
                raise not_a_number(item.span)
            types.append(type)

        def trailer(base: Expression, start: int) -> Expression:
            # Stands for the type until as_type() or finish() comes by.
            whole = Span(start, span.end)
            self.generics[whole] = (tuple(types), brackets)
            return Index(base, 0, span, whole)

        return trailer

    def range(self, parts: list[Expression], span: Span) -> Trailer:
        """``[low:high]``."""
        return self._range(_bound(parts[0]), _bound(parts[1]), span)

    def range_from_start(self, parts: list[Expression], span: Span) -> Trailer:
        """``[:high]``."""
        return self._range(0, _bound(parts[0]), span)

    def range_no_end(self, parts: list[Expression], span: Span) -> Trailer:
        """``[low:]``."""
        return self._range(_bound(parts[0]), None, span)

    def range_whole(self, parts: list[Expression], span: Span) -> Trailer:
        """``[:]``."""
        return self._range(0, None, span)

    def range_full(self, parts: list[Expression], span: Span) -> Trailer:
        """Go's ``[low:high:room]``."""
        *low, high, room = [_bound(part) for part in parts]
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
        """Refuse what was neither a value nor a type."""
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
    """What is called, by the token of a call, which has the parenthesis and blanks before it."""
    name = token.text.removesuffix("(").rstrip()
    return name, Span(token.span.start, token.span.start + len(name))


def _bound(expression: Expression) -> int | Expression:
    value = constant(expression)
    return expression if value is None else value


def not_a_number(span: Span) -> CompileError:
    """The refusal of an index that varies, and of a type that is none."""
    return reject(
        "FC0101",
        "an index must be a number",
        span,
        "not a number",
        notes=("fetch-args are fixed when the probe is set: no index can vary",),
        help="write a number, or a range: `[0:4]`; `fetchc trace` shows lists whole",
    )
