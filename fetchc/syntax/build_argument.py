"""Actions of grammar/expression.lark: what stands around the expression of an argument."""

from __future__ import annotations

from fetchc.diag.errors import reject
from fetchc.source import Span
from fetchc.syntax.limits import shown
from fetchc.syntax.numbers import constant
from fetchc.syntax.tree import Argument, Expression, Format

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fetchc.syntax.driver import Token

__all__ = ["FORMATS", "ArgumentActions"]

FORMATS = frozenset(
    [f"{kind}{bits}" for kind in "usx" for bits in (8, 16, 32, 64)]
    + ["char", "string", "ustring", "symbol", "symstr", "%pd", "%pD", "hex"]
    + ["u16be", "u32be", "u64be"]
)


class ArgumentActions:
    """The part of the builder for names, formats and points; see :mod:`fetchc.syntax.driver`."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def argument(self, parts: list[Argument], span: Span) -> Argument:
        """An argument without a name."""
        return parts[0]

    def named_argument(self, parts: list[Any], span: Span) -> Argument:
        """``NAME = ...``."""
        token, body = parts
        # What the kernel takes: letters, digits and `_`, all ASCII.
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

    def body(self, parts: list[Expression], span: Span) -> Argument:
        """An expression alone."""
        return Argument(None, parts[0], None, None, span)

    def body_format(self, parts: list[Any], span: Span) -> Argument:
        """``expression : format``."""
        return Argument(None, parts[0], parts[1], None, span)

    def body_point(self, parts: list[Any], span: Span) -> Argument:
        """``expression @ point``."""
        from fetchc.syntax.points import point_behind  # has tables of its own

        point = point_behind(self.text, parts[1].span.start)
        return Argument(None, parts[0], None, point, Span(span.start, point.span.end))

    def body_format_point(self, parts: list[Any], span: Span) -> Argument:
        """``expression : format @ point``."""
        from fetchc.syntax.points import point_behind

        point = point_behind(self.text, parts[2].span.start)
        return Argument(None, parts[0], parts[1], point, Span(span.start, point.span.end))

    def format(self, parts: list[Token], span: Span) -> Format:
        """A format's name."""
        name = parts[0].text
        if name not in FORMATS:
            from fetchc.syntax.format_words import format_meant

            meant = format_meant(name)
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

    def format_array(self, parts: list[Any], span: Span) -> Format:
        """A format and a count."""
        base = self.format(parts[:1], parts[0].span)
        count = constant(parts[1])
        if count is None or count < 0:
            raise reject("FC0101", "a format's count must be a number", parts[1].span, "the count")
        return Format(f"{base.text}[{count}]", base.base, count, span)
