"""The tree of one argument, as the text spells it.

Nothing is looked up here: whether ``main.counter`` is a variable of a package or a
member of a local called ``main`` is the checker's question. Every node ends in the
span of the text it came from, in characters. :mod:`fetchc.syntax.unparse` gives
the canonical text back. The syntax itself is ``grammar/expression.lark``.
"""

from __future__ import annotations

from fetchc.diag.diagnostic import reject
from fetchc.record import Record
from fetchc.source import Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.diag.diagnostic import CompileError

__all__ = [
    "BRACKETS",
    "DEPTH",
    "LENGTH",
    "AddressOf",
    "Argument",
    "ArrayOf",
    "Assertion",
    "Binary",
    "Call",
    "Cast",
    "ChannelOf",
    "ContainerOf",
    "Dereference",
    "Expression",
    "FieldStep",
    "FloatNumber",
    "Format",
    "Index",
    "IndexStep",
    "Integer",
    "MapOf",
    "Member",
    "MethodCall",
    "Name",
    "NamedType",
    "Negate",
    "OffsetOf",
    "Path",
    "Point",
    "PointerTo",
    "Range",
    "Register",
    "RowOf",
    "SizeOf",
    "SliceOf",
    "Special",
    "StringLiteral",
    "Ternary",
    "TypeName",
    "Unary",
    "apply",
    "constant",
    "depth_exceeds",
    "grouped_otherwise",
    "number",
    "shown",
    "too_deep",
]

# --- types, in the spelling of C, C++, C# or Go -------------------------------------------


class NamedType(Record):
    """``struct s``, ``unsigned long``, ``dns.Msg``, ``std::vector<int>``, ``main.List[int]``.

    ``keyword`` is ``struct``, ``union``, ``enum``, ``class`` or None. ``name`` has one
    blank between words, no ``const`` and its like, and is otherwise as written
    (``long unsigned`` stays so); Go's ``interface{}`` is ``interface {}``.
    ``arguments`` are those of a template or a generic type, and not part of ``name``;
    an int among them is a template's number.
    ``brackets`` is ``<`` or ``[``, or empty where there are no arguments.
    """

    keyword: str | None
    name: str
    arguments: tuple[TypeName | int, ...]
    brackets: str
    span: Span


class PointerTo(Record):
    """``T *`` in C, ``*T`` in Go. A C++ reference, ``T &``, is one too."""

    target: TypeName
    span: Span


class ArrayOf(Record):
    """``T [4]`` in C, ``[4]T`` in Go."""

    element: TypeName
    count: int
    span: Span


class SliceOf(Record):
    """Go's ``[]T``."""

    element: TypeName
    span: Span


class RowOf(Record):
    """C#'s ``T[]``, and with a ``rank`` of 2 ``T[,]``."""

    element: TypeName
    rank: int
    span: Span


class MapOf(Record):
    """Go's ``map[K]V``."""

    key: TypeName
    value: TypeName
    span: Span


class ChannelOf(Record):
    """Go's ``chan T``; ``direction`` is ``chan``, ``<-chan`` or ``chan<-``."""

    element: TypeName
    direction: str
    span: Span


TypeName = NamedType | PointerTo | ArrayOf | SliceOf | RowOf | MapOf | ChannelOf


# --- paths of offsetof and container_of ---------------------------------------------------


class FieldStep(Record):
    """A member's name within a path; ``span`` is the name alone."""

    name: str
    span: Span


class IndexStep(Record):
    """A constant index within a path; ``span`` is the number alone."""

    index: int
    span: Span


class Path(Record):
    """``a.b[2].c``: at least one step, the first one a field."""

    steps: tuple[FieldStep | IndexStep, ...]
    span: Span


# --- expressions --------------------------------------------------------------------------


class Name(Record):
    """An identifier, or a name that only a package path or ``::`` can spell.

    ``r``, ``ns::var``, ``github.com/miekg/dns.ErrId``. A path with a slash ends after
    the first dot after its last slash, what follows are members: the checker joins
    them again where a package's last element has a dot of its own. ``line`` picks one
    of several variables by the line of its declaration, ``n@12``.
    """

    text: str
    line: int | None
    span: Span


class Special(Record):
    """``$retval``, ``$ret0``, ``$arg1``, ``$stack``, ``$stack3``, ``$comm``, ``$goid``, ...

    ``name`` has no dollar. The parser takes any name; the checker knows which exist.
    """

    name: str
    span: Span


VARIABLE_GROUPS = {
    "$args": ("parameter", "argument"),
    "$locals": ("local", "captured"),
    "$results": ("result",),
}
"""What stands for several variables, in place of an expression: those of these kinds."""


class Register(Record):
    """``%ax``; ``name`` has no percent sign."""

    name: str
    span: Span


class Integer(Record):
    """A number; never negative, ``-1`` is a :class:`Negate`.

    ``suffix`` is what gives it a type, in small letters: ``3UL``, ``3i64``. ``is_decimal``: it is
    written so, or below 2**31, where the base does not matter for its type in C.
    """

    value: int
    span: Span
    suffix: str = ""
    is_decimal: bool = True


class FloatNumber(Record):
    """``2.0``, ``1e9``; never negative. ``suffix``: ``f``, ``f32``, ``f64`` or empty."""

    value: float
    span: Span
    suffix: str = ""


class StringLiteral(Record):
    """``"text"``, the key of a map: its bytes."""

    value: bytes
    span: Span


class Member(Record):
    """``base.name`` or ``base->name``, which mean the same; ``arrow`` is for the text only."""

    base: Expression
    name: str
    arrow: bool
    name_span: Span
    span: Span


class Index(Record):
    """``base[index]``; ``index_span`` is the text between the brackets.

    ``further`` are the other indices of ``base[1, 2]``. What is no number may be the name of
    a constant, or the argument of a generic type (``sizeof(List[int])``).
    """

    base: Expression
    index: int | Expression
    index_span: Span
    span: Span
    further: tuple[int | Expression, ...] = ()


class Range(Record):
    """``base[low:high]``, the elements from ``low`` up to but not with ``high``, as in Go.

    ``[:high]`` has ``low`` 0, ``[low:]`` has no ``high``: it ends with the elements. A bound that
    is no constant is known when the program runs. ``room`` is where the capacity ends, the third
    number of Go's ``[low:high:room]``.
    ``range_span`` is the text between the brackets.
    """

    base: Expression
    low: int | Expression
    high: int | Expression | None
    range_span: Span
    span: Span
    room: int | Expression | None = None


class Assertion(Record):
    """``base.(Type)``: an interface's data as that type."""

    base: Expression
    type: TypeName
    span: Span


class MethodCall(Record):
    """``base.name(arguments)``: ``v.size()``, or Go's conversion ``dns.Msg(x)``."""

    base: Expression
    name: str
    arguments: tuple[Expression, ...]
    name_span: Span
    span: Span


class Call(Record):
    """``len(e)``, ``cap(e)``, or Go's conversion ``uint32(x)``; any function name parses.

    ``type`` is the second operand of ``list(head, struct s, member)``, which can be nothing else.
    """

    function: str
    arguments: tuple[Expression, ...]
    function_span: Span
    span: Span
    type: TypeName | None = None


class SizeOf(Record):
    """``sizeof(e)`` or ``sizeof(T)``.

    A type that could be an expression (``sizeof(msg)``, ``sizeof(dns.Msg)``) is parsed as
    one; :func:`fetchc.syntax.expression_parser.as_type` reads such an expression as a type.
    """

    operand: Expression | TypeName
    span: Span


class OffsetOf(Record):
    """``offsetof(type, path)``."""

    type: TypeName
    path: Path
    span: Span


class ContainerOf(Record):
    """``container_of(e, type, path)``."""

    operand: Expression
    type: TypeName
    path: Path
    span: Span


class Dereference(Record):
    """``*e``."""

    operand: Expression
    span: Span


class AddressOf(Record):
    """``&e``."""

    operand: Expression
    span: Span


class Negate(Record):
    """``-e``."""

    operand: Expression
    span: Span


class Unary(Record):
    """``!e``, and ``~e``, which Go and Rust write as ``^e`` and ``!e``: ``operator`` is ``!`` or
    ``~``.
    """

    operator: str
    operand: Expression
    span: Span


class Cast(Record):
    """``(Type)e``, C#'s ``e as Type``, or Go's ``(*dns.Msg)(e)``, which binds like a call.

    ``reinterprets``: it is C++'s ``reinterpret_cast``, which moves no address.
    """

    type: TypeName
    operand: Expression
    span: Span
    reinterprets: bool = False


class Binary(Record):
    """``left operator right``; ``operator`` is one of ``+ - * / % << >> & | ^ &^``, ``== != < <=
    > >=``, ``&& ||``. ``operator_span`` is the operator alone.
    """

    operator: str
    left: Expression
    right: Expression
    span: Span
    operator_span: Span


class Ternary(Record):
    """``condition ? if_true : if_false``."""

    condition: Expression
    if_true: Expression
    if_false: Expression
    span: Span


Expression = (
    Name
    | Special
    | Register
    | Integer
    | FloatNumber
    | StringLiteral
    | Member
    | Index
    | Range
    | Assertion
    | MethodCall
    | Call
    | SizeOf
    | OffsetOf
    | ContainerOf
    | Dereference
    | AddressOf
    | Negate
    | Unary
    | Cast
    | Binary
    | Ternary
)


# --- the whole argument -------------------------------------------------------------------


class Format(Record):
    """``:u8``, ``:string``, ``:x32[4]``: how the value is to be fetched and shown.

    ``base`` is one of ``u8 .. u64 s8 .. s64 x8 .. x64 char string ustring symbol hex``;
    ``count`` is the number in brackets. ``text`` is canonical, without the colon.
    """

    text: str
    base: str
    count: int | None
    span: Span


class Point(Record):
    """Where to probe: what follows ``@``, or the value of ``--at``.

    ========================= ====================================
    ``main.f``                function
    ``main.f+0x10``, ``+4``   function (or None) and offset, bytes from its first one
    ``main.f:17``, ``:17``    function (or None) and line
    ``main.go:17``            file and line
    ``main.f%return``         function (or None) and returns
    ``f%body``, ``%inline``   function (or None) and part
    ``0x401234``              address, as the file states it
    ========================= ====================================

    A name with a known source suffix before ``:LINE`` is a file (``main.c:12``).
    """

    function: str | None
    offset: int | None
    line: int | None
    file: str | None
    returns: bool
    address: int | None
    span: Span
    part: str = ""


class Argument(Record):
    """``[NAME '='] expression [':' format] ['@' point]``."""

    name: str | None
    expression: Expression
    format: Format | None
    point: Point | None
    span: Span


# ------------------------------------------------------------------------------
# How long and how deep an argument may be.
#
# The kernel takes far less (62 characters of a fetch-arg's body, some tens of dereferences), but
# that is said of the compiled text. These bounds keep every pass that walks a tree by recursion
# safe.

LENGTH = 4096  # characters of one argument
BRACKETS = 200  # brackets open at once
_SHOWN = 60  # characters of the text repeated in a message
DEPTH = 200  # nodes of a tree from its root to a leaf


def too_deep(span: Span) -> CompileError:
    """The refusal of a tree that is deeper than :data:`DEPTH`."""
    return reject("FC0102", f"more than {DEPTH} operations within each other", span, "too deep")


def depth_exceeds(root: Record, limit: int = DEPTH) -> bool:
    """Whether a tree is deeper than ``limit``; walks level by level, without recursion."""
    level = [root]
    for _ in range(limit):
        level = [child for node in level for child in children(node)]
        if not level:
            return False
    return True


def children(node: Record) -> list[Record]:
    """The parts of a node that are nodes themselves, in the order of its fields."""
    found: list[Record] = []
    fields: tuple[str, ...] = type(node).__match_args__
    for field in fields:
        value = getattr(node, field)
        if isinstance(value, Record) and not isinstance(value, Span):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(item for item in value if isinstance(item, Record))
    return found


def shown(text: str) -> str:
    """A piece of the text as a message has it: of bounded length, and safe to print."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in text[:_SHOWN])
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


# ------------------------------------------------------------------------------
# Numbers: as C, Go and C# write them, and constant arithmetic on them.

_WORD_BITS = 64  # of the widest register that a fetch-arg knows

_FORM = r"(?:0[xX](?P<x>[0-9a-fA-F]+)|0[bB](?P<b>[01]+)|0[oO]?(?P<o>[0-7]+)|(?P<d>[0-9]+))"
_SUFFIX = r"(?P<suffix>[uU]?[lL]{0,2}|[lL]{1,2}[uU]|_*[iu](?:8|16|32|64|size))"
_BASES = {"x": 16, "b": 2, "o": 8, "d": 10}


def number(text: str, span: Span) -> int:
    """The value of a number as written; raises CompileError FC0101."""
    return integer(text, span).value


def integer(text: str, span: Span) -> Integer:
    """A number as written; raises CompileError FC0101."""
    if len(text) < 16 and text.isascii() and text.isdecimal() and (text[0] != "0" or text == "0"):
        return Integer(int(text), span)
    import re

    found = re.fullmatch(_FORM + _SUFFIX, text)
    if found is None or (found["d"] and len(found["d"]) > 1 and text[0] == "0"):
        help = "write it as `10`, `0x1f`, `0b101` or `017` (octal)"
        if re.fullmatch("[0-9]+(ns|us|ms|s|m|h)", text):
            help = "a length of time is a number without a unit: nanoseconds in Go"
        raise reject("FC0101", f"`{shown(text)}` is not a number", span, "not a number", help=help)
    form = next(one for one in _BASES if found[one] is not None)
    value = int(found[form], _BASES[form])
    if value >= 1 << _WORD_BITS:
        raise reject("FC0101", f"`{shown(text)}` needs more than 64 bits", span, "too big")
    return Integer(value, span, found["suffix"].lower().lstrip("_"), form == "d" or value < 1 << 31)


def constant(expression: Expression, depth: int = 0) -> int | None:
    """The value of an expression of numbers alone, None for any other or a division by zero.

    Raises CompileError FC0102 where it is too deep to look. Division truncates towards
    zero, as in every language fetchc reads.
    """
    if depth > DEPTH:
        raise too_deep(expression.span)
    match expression:
        case Integer(value=value):
            return value
        case Negate(operand=operand):
            inner = constant(operand, depth + 1)
            return None if inner is None else -inner
        case Binary(operator=operator, left=left, right=right):
            a, b = constant(left, depth + 1), constant(right, depth + 1)
            if a is None or b is None:
                return None
            return apply(operator, a, b)
        case _:
            return None


def apply(operator: str, a: int, b: int) -> int | None:
    """Arithmetic of two constants, None for a division by zero and for operators of truth.

    Constants have no width: nothing is cut. A shift is by 0 to 63 bits.
    """
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "&":
            return a & b
        case "|":
            return a | b
        case "^":
            return a ^ b
        case "&^":
            return a & ~b
        case "<<" | ">>" if 0 <= b < _WORD_BITS:
            return a << b if operator == "<<" else a >> b
        case "/" | "%" if b != 0:
            quotient = abs(a) // abs(b) if (a < 0) == (b < 0) else -(abs(a) // abs(b))
            return quotient if operator == "/" else a - quotient * b
        case _:
            return None


_SHIFTS = frozenset(("<<", ">>"))
_BITS = frozenset(("&", "|", "^", "&^")) | _SHIFTS
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_TRUTH = frozenset(("&&", "||"))


def grouped_otherwise(outer: str, inner: str) -> bool:
    """Whether languages group ``outer`` and an operand with ``inner`` differently."""
    # Operators of bits bind looser than comparisons in C, tighter in Go and Rust; each of them is
    # at another place among the operators of arithmetic.
    # Source: C17 6.5; Go specification, "Operator precedence"; The Rust Reference, "Expressions".
    both = {outer, inner}
    if outer == inner or not both & _BITS or both & _TRUTH:
        return False
    return (outer, inner) != ("|", "&") and not (both & _SHIFTS and both & _COMPARISONS)
