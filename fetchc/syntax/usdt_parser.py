"""Read the arguments of static probes: grammar/usdt.lark.

The tree keeps names as they are written: the machine tells what they mean.
"""

from __future__ import annotations

from fetchc.record import Record
from fetchc.syntax import usdt_tables
from fetchc.syntax.lalr import Token, Unexpected, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.source import Span

__all__ = [
    "Immediate",
    "Operand",
    "Refused",
    "Spelled",
    "StaticArgument",
    "Stored",
    "Sum",
    "read_argument",
    "split_arguments",
]


class Sum(Record):
    """``limit+8``: a number, and the symbol that it is added to; empty where there is none."""

    symbol: str
    number: int


class Spelled(Record):
    """A register with its mark (``%edi``), or a number or name alone (``w0``, ``5``, ``limit``)."""

    text: str
    marked: bool
    sum: Sum


class Immediate(Record):
    """``$5``, ``#5``: a number, or the address of a symbol."""

    value: Sum


class Stored(Record):
    """``8(%rbp)``, ``[sp, 16]``: memory at a register plus a number, of a symbol for ``%rip``."""

    base: str
    offset: Sum


class Refused(Record):
    """An operand that no fetch can follow; ``why`` completes "because ..."."""

    why: str


Operand = Spelled | Immediate | Stored | Refused


class StaticArgument(Record):
    """``size`` in bytes; ``floating`` numbers have no sign of their own."""

    size: int
    signed: bool
    floating: bool
    operand: Operand


def split_arguments(text: str) -> tuple[str, ...]:
    """The arguments of one probe, each as it is written; blanks inside of brackets stay."""
    import re

    return tuple(re.split(r"\s+(?=-?[0-9]+f?@)", text.strip())) if text.strip() else ()


def read_argument(text: str) -> StaticArgument:
    """The tree of one argument; raises ValueError, with what is wrong, where it has none."""
    try:
        made: StaticArgument = run(usdt_tables, "argument", text, _Builder())
    except Unexpected as problem:
        what = problem.token.text
        raise ValueError(f"`{what}` is not valid there" if what else "it ends too early") from None
    return made


class _Builder:
    """Makes a :class:`StaticArgument`; see :mod:`fetchc.syntax.lalr` for how it is called."""

    __slots__ = ()

    def argument(self, children: list[object], span: Span) -> StaticArgument:
        """``-4@%edi``."""
        size, operand = children
        text = _text(size)[:-1]
        number = text.removesuffix("f")
        assert isinstance(operand, Spelled | Immediate | Stored | Refused)
        return StaticArgument(abs(int(number)), number.startswith("-"), text.endswith("f"), operand)

    def register(self, children: list[object], span: Span) -> Spelled:
        """``%edi``."""
        return Spelled(_text(children[0])[1:], True, Sum("", 0))

    def immediate(self, children: list[object], span: Span) -> Immediate:
        """``$5``."""
        return Immediate(_sum(children[0]))

    def bare(self, children: list[object], span: Span) -> Spelled:
        """``w0``, ``5``, ``limit+8``."""
        value = _sum(children[0])
        return Spelled(value.symbol if not value.number else "", False, value)

    def memory(self, children: list[object], span: Span) -> Stored:
        """``8(%rbp)``."""
        return Stored(str(children[1]), _sum(children[0]))

    def memory_at(self, children: list[object], span: Span) -> Stored:
        """``(%rbp)``, ``[sp]``."""
        return Stored(str(children[0]), Sum("", 0))

    def memory_displaced(self, children: list[object], span: Span) -> Operand:
        """``[sp, 16]``, ``[x0, x1]``."""
        offset = _sum(children[1])
        if offset.symbol:
            return _scaled()
        return Stored(str(children[0]), offset)

    def indexed(self, children: list[object], span: Span) -> Refused:
        """``8(%rax,%rcx,4)``, ``3,9``."""
        return _scaled()

    def segment(self, children: list[object], span: Span) -> Refused:
        """``%fs:16``."""
        return Refused("it is relative to a segment register, which is not saved for a probe")

    def linked(self, children: list[object], span: Span) -> Refused:
        """``[x2, #:lo12:limit]``, ``%lo(limit)(a5)``."""
        return Refused(
            "its address is part of a symbol's plus a register, and and a fetch-arg cannot add them"
        )

    def base(self, children: list[object], span: Span) -> str:
        """A register in brackets; a number is one of ppc's."""
        return _text(children[0])

    def first(self, children: list[object], span: Span) -> Sum:
        """A term."""
        return _sum(children[0])

    def first_signed(self, children: list[object], span: Span) -> Sum:
        """``-8``."""
        return _added(Sum("", 0), children[0], children[1])

    def further(self, children: list[object], span: Span) -> Sum:
        """``limit+8``."""
        return _added(_sum(children[0]), children[1], children[2])

    def integer(self, children: list[object], span: Span) -> Sum:
        """A number in C's spelling."""
        return Sum("", _number(_text(children[0])))

    def name(self, children: list[object], span: Span) -> Sum:
        """A symbol, or a register without a mark."""
        return Sum(_text(children[0]), 0)


def _scaled() -> Refused:
    return Refused("its address is the sum of two registers, and a fetch adds constants only")


def _text(token: object) -> str:

    assert isinstance(token, Token)
    return token.text


def _sum(value: object) -> Sum:
    assert isinstance(value, Sum)
    return value


def _added(left: Sum, sign: object, right: object) -> Sum:
    term = _sum(right)
    if _text(sign) == "-":
        if term.symbol:
            raise ValueError(f"the symbol `{term.symbol}` is subtracted")
        return Sum(left.symbol, left.number - term.number)
    if left.symbol and term.symbol:
        raise ValueError(f"the symbols `{left.symbol}` and `{term.symbol}` are added")
    return Sum(left.symbol or term.symbol, left.number + term.number)


def _number(text: str) -> int:
    # As the assembler writes it: decimal or hexadecimal.
    try:
        value = int(text, 16 if text[:2] in ("0x", "0X") else 10)
    except ValueError:
        raise ValueError(f"`{text}` is not a number") from None
    if value >= 1 << 64:
        raise ValueError(f"`{text}` has more than 64 bits")
    return value
