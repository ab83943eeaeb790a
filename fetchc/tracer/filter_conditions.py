"""``--filter``: its parser, its test of values, and the kernel's event filter.

``&&`` binds its comparisons together before ``||`` does, and brackets before both.
"""

from __future__ import annotations

import operator
import re

from fetchc.diag.diagnostic import CompileError, Diagnostic, Label, reject
from fetchc.ir.fetch import Decode
from fetchc.record import Record, assert_never
from fetchc.source import Span
from fetchc.syntax import tree
from fetchc.syntax.expression_parser import parse_argument
from fetchc.syntax.globs import glob_pattern
from fetchc.syntax.tree import LENGTH
from fetchc.tracer.display_values import Character, CutString, EntryCount, SymbolName
from fetchc.tracer.structure_values import NIL
from fetchc.tracer.value_shapes import (
    BoundsCheckShape,
    CallerShape,
    CastShape,
    ChoiceShape,
    ComputedShape,
    ConditionalShape,
    DifferenceShape,
    ElementCountShape,
    EntryCountShape,
    FormattedShape,
    GrowthCheckShape,
    InterfaceShape,
    Leaf,
    NotationShape,
    OperationShape,
    OptionalShape,
    RangeShape,
    SizedStringShape,
    StringShape,
    StructShape,
    SumShape,
    TypeAssertionShape,
    TypeNameShape,
    TypeSwitchShape,
    VariantCheckShape,
    WalkShape,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.tracer.events import Plan, Value
    from fetchc.tracer.value_shapes import Shape

    Test = Callable[[Value], bool]

__all__ = [
    "All",
    "AnyOf",
    "Comparison",
    "Condition",
    "Filter",
    "accepts",
    "as_truth",
    "comparison",
    "comparisons",
    "in_filter",
    "kernel_filter",
    "mismatch",
    "parse_filter",
    "replaced",
    "value_shape",
    "with_null",
]

DEPTH = 32  # brackets in brackets


class Condition(Record):
    """One comparison: ``expression`` as given or the label of its value, operator, constant.

    A ``word`` is a constant without quotes: the name of an enumerator. Of ``nil`` and ``null`` the
    constant is 0, and None where that is compared with what has no value. ``text`` is the whole
    filter, ``span`` the position of the comparison in it. ``truth``: an expression alone, which
    passes where it is not 0.
    """

    expression: str
    operator: str
    constant: int | float | str | bool | None
    word: bool
    nil: bool
    text: str
    span: Span
    truth: bool = False


class All(Record):
    """Lets pass what all of its parts do."""

    parts: tuple[Filter, ...]


class AnyOf(Record):
    """Lets pass what one of its parts does."""

    parts: tuple[Filter, ...]


Filter = Condition | All | AnyOf


# The last operator before a constant is the comparison's; `->` is none, and `&` and the
# orders take numbers alone, so that `r->colour` is not a comparison with `colour`.
_NUMBER = r"[+-]?(?:0[xX][0-9a-fA-F]+|[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)"
_QUOTED = r'"(?:[^"\\]|\\.)*"'
# Compiled when a filter is read: most traces have none.
_COMPARISON = (
    r"(?s)\s*(?P<expression>.*?\S)\s*"
    rf"(?:(?P<order>==|!=|<=|>=|<|(?<!-)>|&)\s*(?P<number>{_NUMBER}|'(?:[^'\\]|\\.)')"
    rf"|(?P<same>==|!=|~)\s*(?P<quoted>{_QUOTED})"
    r"|(?P<equal>==|!=)\s*(?P<word>[^\W\d][\w.:]*))\s*"
)
# Not `<` and `>`: `std::array<3, int>` is a type.
_UNJOINED = (
    rf"(?:==|!=|<=|>=|~)\s*(?:{_NUMBER}|{_QUOTED}|'(?:[^'\\]|\\.)'|\w+)\s*(or\b|and\b|[|&,;])"
    rf"|(?<!-)[<>]\s*{_NUMBER}\s+(or\b|and\b)"
)
_BITS = rf"[^&](&\s*{_NUMBER})\Z"
_INSTEAD = {
    "=~": 'write `~`, which compares with a pattern: `name ~ "a*"`',
    "!~": "no operator refuses a pattern: write `!=` and one string",
    "===": "write `==`",
    "!==": "write `!=`",
}
_TOKEN = rf"{_QUOTED}|'(?:[^'\\]|\\.)'|(&&|\|\||[()])"
_ESCAPE = r"(?s)\\(x[0-9a-fA-F]{2}|.)"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", '"': '"', "'": "'", "\\": "\\"}
_NIL = ("nil", "NULL", "nullptr", "null")
_WORDS: dict[str, int | bool] = {"true": True, "false": False, **dict.fromkeys(_NIL, 0)}


def comparisons(filter: Filter) -> list[Condition]:
    """All comparisons in a filter, in their order."""
    if isinstance(filter, Condition):
        return [filter]
    return [each for part in filter.parts for each in comparisons(part)]


def replaced(filter: Filter, by: Callable[[Condition], Condition]) -> Filter:
    """The same filter of other comparisons."""
    if isinstance(filter, Condition):
        return by(filter)
    return type(filter)(tuple([replaced(part, by) for part in filter.parts]))


def in_filter(
    filter: Filter, expression: str, diagnostics: tuple[Diagnostic, ...]
) -> tuple[str, tuple[Diagnostic, ...]]:
    """The text of the filter that ``expression`` is in, and its diagnostics with places in that.

    Places in the expression alone are moved to where it is. An expression of no filter stays.
    """
    for one in comparisons(filter):
        if one.expression == expression:
            by = one.span.start  # a comparison begins with its expression
            return one.text, tuple([_moved(each, by) for each in diagnostics])
    return expression, diagnostics


def _moved(diagnostic: Diagnostic, by: int) -> Diagnostic:
    def label(one: Label) -> Label:
        return Label(Span(one.span.start + by, one.span.end + by), one.text)

    primary = None if diagnostic.primary is None else label(diagnostic.primary)
    help = diagnostic.help
    if help is not None and "--filter" in help:  # of what is a comparison, within one
        help = "join comparisons with `&&` or `||`"
    return diagnostic.replaced(
        primary=primary, secondary=tuple([label(one) for one in diagnostic.secondary]), help=help
    )


def parse_filter(text: str) -> Filter:
    """What a filter lets pass: ``n > 3 && (name ~ "a*" || name == "b")``.

    Raises CompileError FC0751 with the place, or FC0102.
    """
    if len(text) > LENGTH:
        what = f"the filter has {len(text)} characters, more than {LENGTH}"
        raise reject("FC0102", what, Span(LENGTH, len(text)), "too long")
    return _parsed(text, 0, len(text), 0)


def _parsed(text: str, start: int, end: int, depth: int) -> Filter:
    tokens = _outside(text, start, end)
    for symbol, joined in (("||", AnyOf), ("&&", All)):
        places = [found.start(1) for found in tokens if found[1] == symbol]
        if places:
            starts = [start, *[place + 2 for place in places]]
            parts = zip(starts, [*places, end], strict=True)
            return joined(tuple([_parsed(text, *part, depth) for part in parts]))
    # A comparison ends in a constant: what a bracket ends is comparisons, if one begins it.
    inner = text[start:end].strip()
    if not (inner.endswith(")") and inner.startswith("(") and len(tokens) == 2):
        return _condition(text, start, end)
    if depth == DEPTH:
        span = Span(start, end)
        raise _wrong(text, span, f"brackets are nested more than {DEPTH} deep")
    first, last = tokens
    return _parsed(text, first.end(1), last.start(1), depth + 1)


def _outside(text: str, start: int, end: int) -> list[re.Match[str]]:
    """What joins, and the brackets that open and close, outside of other brackets."""
    found, depth = [], 0
    opened = start
    for token in re.compile(_TOKEN).finditer(text, start, end):
        depth -= token[1] == ")"
        if depth < 0:
            raise _wrong(text, Span(*token.span()), "this bracket has no opening bracket")
        if token[1] is not None and depth == 0:
            found.append(token)
        if token[1] == "(":
            opened = token.start() if depth == 0 else opened
            depth += 1
    if depth:
        raise _wrong(text, Span(opened, opened + 1), "this bracket is not closed")
    return found


def _condition(text: str, start: int, end: int) -> Condition:
    part = text[start:end]
    found = re.fullmatch(_COMPARISON, part)
    left = len(part) - len(part.lstrip())
    span = Span(start + left, start + max(len(part.rstrip()), left + 1))
    if found is not None:
        _refuse_operator(text, start, found)
    if found is None or _is_whole_expression(found):
        return _alone(text, span, _slip(part))
    symbol = found["order"] or found["same"] or found["equal"]
    if unjoined := re.search(_UNJOINED, found["expression"]):
        at = left + start + unjoined.start(unjoined.lastindex or 0)
        word = unjoined[unjoined.lastindex or 0]
        joint = Span(at, at + len(word))
        raise _wrong(text, joint, f"`{word}` does not join comparisons", "write `&&` or `||`")
    constant: int | float | str | bool
    word, nil = False, found["word"] in _NIL
    if found["quoted"] is not None:
        constant = _unquoted(found["quoted"], text, span)
    elif found["word"] is not None:
        word = found["word"] not in _WORDS
        if re.fullmatch(_QUOTED, found["expression"]):
            raise _wrong(text, span, "a constant comes first", _slip(part))
        constant = _WORDS.get(found["word"], found["word"])
    elif found["number"].startswith("'"):
        constant = _unquoted(found["number"], text, span)
        if symbol not in ("==", "!="):
            raise _wrong(text, span, "compare a character with `==` or `!=` only")
    else:
        constant = _number(found["number"])
        if symbol == "&" and (isinstance(constant, float) or constant < 0):
            raise _wrong(text, span, "`&` takes an integer that is not negative")
    return Condition(found["expression"], symbol, constant, word, nil, text, span)


def _alone(text: str, span: Span, slip: str | None) -> Condition:
    """A condition that is an expression: ``ok``, ``!r.ok``, ``a > b``, ``a - b == 2``."""
    part = text[span.start : span.end]
    try:
        argument = parse_argument(part)
    except CompileError as refused:
        if slip is not None or not part.strip() or '"' in part:
            what = "this does not compare an expression with a constant"
            raise _wrong(text, span, what, slip) from None
        (problem, *_) = refused.diagnostics
        at = span if problem.primary is None else _shifted(problem.primary.span, span.start)
        raise _wrong(text, at, problem.message, problem.help) from None
    if argument.name is not None or argument.format is not None or argument.point is not None:
        raise _wrong(text, span, "this is no condition", slip)
    if tree.constant(argument.expression) is not None:
        raise _wrong(text, span, "this is a constant")
    return Condition(part, "!=", 0, False, False, text, span, truth=True)


def _shifted(span: Span, by: int) -> Span:
    return Span(span.start + by, span.end + by)


def as_truth(condition: Condition) -> Condition:
    """A comparison with a name as an expression: the name of a variable, and not an enumerator."""
    span = condition.span
    return _alone(condition.text, span, None)


def _is_whole_expression(found: re.Match[str]) -> bool:
    # `a == b > 3` compares `a` with what `b > 3` is: the operators of the expression bind looser
    # than the last one, or one language has them so.
    symbol = found["order"] or found["same"] or found["equal"]
    if found["quoted"] is not None or symbol == "~" or (found["number"] or "").startswith("'"):
        return False
    try:
        left = parse_argument(found["expression"].strip()).expression
    except CompileError:
        return False  # it is refused where it is compiled
    if left.span.start > 0 and found["expression"].startswith("("):
        return False
    if isinstance(left, tree.Ternary | tree.Integer):
        return True
    return isinstance(left, tree.Binary) and (
        left.operator not in ("+", "-", "*", "/", "%") or symbol == "&"
    )


def _refuse_operator(text: str, start: int, found: re.Match[str]) -> None:
    # FC0751 for operators that other languages have: `=~`, `!~`, `===`, and for bits compared.
    symbol = found["order"] or found["same"] or found["equal"]
    end = found.end("expression")
    longer = found["expression"][-1] + symbol
    if longer in _INSTEAD and found.string.startswith(symbol, end):
        span = Span(start + end - 1, start + end + len(symbol))
        raise _wrong(text, span, f"there is no operator `{longer}`", _INSTEAD[longer])
    if bits := re.search(_BITS, found["expression"]):
        span = Span(start + found.start("expression") + bits.start(1), start + end)
        what = f"`&` is a comparison itself, which `{symbol}` does not compare again"
        help = (
            f"write parentheses: `({found['expression']}) {symbol} …`; or `{found['expression']}`"
        )
        help += ", which passes where one of these bits is set"
        raise _wrong(text, span, what, help)


def _slip(part: str) -> str | None:
    # What is written like that in other languages.
    if re.search(r"[=!~]\s*'", part):
        return "a string is in double quotes"
    if "=~" in part:
        return 'to match a pattern write `~`: `name ~ "a*"`'
    if re.search(r"[^=!<>]=[^=]", part):
        return "equality is `==`"
    if re.match(rf"\s*(?:{_NUMBER}|{_QUOTED})\s*[=!<>&]", part):
        return "put the constant after the operator"
    if re.match(r"\s*not\b", part):
        return "write `!` before it"
    if re.search(r"\sin\s*[({\[]", part):
        return "write each of them: `n == 1 || n == 2`"
    return None


def _number(text: str) -> int | float:
    digits = text.lstrip("+-").lower()
    sign = -1 if text.startswith("-") else 1
    if digits.startswith("0x"):
        return sign * int(digits, 16)
    if digits.isdecimal():
        # A leading zero is octal in the languages traced here, and decimal to the eye.
        return sign * int(digits, 8 if re.fullmatch("0[0-7]+", digits) else 10)
    return sign * float(digits)


def _unquoted(quoted: str, text: str, span: Span) -> str:
    def replaced(found: re.Match[str]) -> str:
        what = found[1]
        if what == "x":
            raise _wrong(text, span, "`\\x` needs two hexadecimal digits")
        if what.startswith("x"):
            byte = int(what[1:], 16)
            return bytes([byte]).decode("utf-8", "surrogateescape")
        if what not in _ESCAPES:
            raise _wrong(text, span, f"there is no escape `\\{what}`")
        return _ESCAPES[what]

    return re.sub(_ESCAPE, replaced, quoted[1:-1])


def _wrong(text: str, span: Span, what: str, help: str | None = None) -> CompileError:
    return CompileError(
        (
            Diagnostic(
                "FC0751",
                f"the filter does not parse: {what}",
                Label(span, "not a comparison"),
                notes=("numbers take `==` `!=` `<` `<=` `>` `>=` `&`, strings `==` `!=` `~`",),
                help=help or 'write `EXPR op CONST`: `len(s) > 8`, `r->name ~ "a*"`',
            ),
        )
    )


# ------------------------------------------------------------------------------
# A condition of a filter: the values it can compare, and which pass.
#
# The reader's answer is the one that counts. The kernel's own filter only spares it events:
# :func:`fetchc.tracer.filter_conditions.kernel_filter` never drops what :func:`accepts` lets pass.

_ASSERTED = "compare what is in it, of one type: `e.(*T).x == 1`"
_COMPARE: dict[str, Callable[[object, object], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,  # type: ignore[dict-item]
    "<=": operator.le,  # type: ignore[dict-item]
    ">": operator.gt,  # type: ignore[dict-item]
    ">=": operator.ge,  # type: ignore[dict-item]
}


def value_shape(shape: Shape) -> Shape:
    """The shape of the value itself, without the checks around it."""
    if isinstance(shape, WalkShape) and shape.single:
        shape = shape.inner
    while isinstance(
        shape,
        OptionalShape
        | VariantCheckShape
        | BoundsCheckShape
        | GrowthCheckShape
        | CastShape
        | TypeAssertionShape
        | SizedStringShape
        | EntryCountShape,
    ):
        shape = shape.inner
    return shape


def with_null(condition: Condition, shape: Shape) -> Condition:
    """The condition; one that asks for null of what has no value then (references of .NET, what
    a Nullable holds, strings behind references and pointers) with None for its constant.
    """
    while isinstance(
        shape,
        VariantCheckShape
        | BoundsCheckShape
        | GrowthCheckShape
        | CastShape
        | TypeAssertionShape
        | SizedStringShape,
    ):
        shape = shape.inner
    reference = isinstance(shape, Leaf) and (shape.decode.kind == "reference" or _pointed(shape))
    optional = isinstance(shape, OptionalShape) and condition.nil
    if not _asks_for_nil(condition) or not (reference or optional):
        return condition

    one = condition
    return Condition(one.expression, one.operator, None, False, True, one.text, one.span)


def _pointed(leaf: Leaf) -> bool:
    # A string by a pointer: the last guard says whether that is NULL; not one in an array.
    text = leaf.decode.kind == "text" and leaf.decode.count is None
    return text and any(guard.empty for guard in leaf.guards[-1:])


def mismatch(condition: Condition, shape: Shape) -> Diagnostic | None:
    """FC0752 where the constant can never be such a value, so that no event would pass."""
    if condition.constant is None:
        return None
    shape = value_shape(shape)
    if condition.truth and not _has_truth(shape):
        return Diagnostic(
            "FC0752",
            f"`{condition.expression}` alone is no condition: it is no number and no truth value",
            Label(condition.span, "neither true nor false"),
            help='compare it: `== "abc"`, `!= nil`',
        )
    if isinstance(shape, RangeShape):
        shape = shape.elements
    if isinstance(shape, StringShape | NotationShape | FormattedShape) or (
        isinstance(shape, Leaf) and shape.decode.kind == "text"
    ):
        if isinstance(shape, Leaf) and shape.decode.count is not None:
            return _misfit(condition, "it is a list")
        if not isinstance(condition.constant, str) or condition.word:
            return _misfit(condition, "the value is a string", _for_text(condition))
        return None
    if isinstance(shape, CallerShape | ChoiceShape | TypeSwitchShape):
        problems = [mismatch(condition, one) for _, one in shape.cases]
        return None if None in problems else problems[0]
    if isinstance(shape, ConditionalShape):
        problems = [mismatch(condition, one) for one in (shape.at_none, shape.other)]
        return None if None in problems else problems[0]
    if isinstance(shape, ComputedShape | ElementCountShape):
        of_truth = isinstance(shape, ComputedShape) and shape.is_none
        return _unfit_number(condition, Decode("bool" if of_truth else "integer", 64))
    if isinstance(shape, DifferenceShape):
        shape = shape.minuend
    if isinstance(shape, SumShape | OperationShape):
        return _unfit_number(condition, shape.decode)
    if isinstance(shape, InterfaceShape):
        shape = shape.plain
    if isinstance(shape, StructShape) and any(
        isinstance(one, TypeNameShape) for _, one in shape.members
    ):
        what = "an interface is compared with `nil` only"
        return None if _asks_for_nil(condition) else _misfit(condition, what, _ASSERTED)
    if not isinstance(shape, Leaf) or shape.decode.count is not None:
        return _misfit(condition, "it is a list or a structure")
    return _unfit_number(condition, shape.decode)


def _has_truth(shape: Shape) -> bool:
    match shape:
        case Leaf(decode=decode):
            return decode.kind not in ("text", "symbol") and decode.count is None
        case CallerShape(cases=cases) | ChoiceShape(cases=cases) | TypeSwitchShape(cases=cases):
            return all(_has_truth(value_shape(one)) for _, one in cases)
        case ConditionalShape(at_none=first, other=second):
            return _has_truth(value_shape(first)) and _has_truth(value_shape(second))
        case _:
            computed = SumShape | OperationShape | DifferenceShape | ElementCountShape
            return isinstance(shape, computed | ComputedShape)


def _for_text(condition: Condition) -> str:
    if _asks_for_nil(condition):
        return 'compare it with the empty string: `== ""`'
    written = condition.constant if condition.word else "a"
    return f'compare it with a string: `== "{written}"`'


def _asks_for_nil(condition: Condition) -> bool:
    nil = condition.constant == 0 and condition.constant is not False
    return nil and condition.operator in ("==", "!=")


def _unfit_number(condition: Condition, decode: Decode) -> Diagnostic | None:
    constant, symbol = condition.constant, condition.operator
    text = isinstance(constant, str)
    if decode.kind == "enum" and text:
        names = [name for name, _ in decode.enumerators]
        if symbol == "~" or constant in names:
            return None
        listed = ", ".join(f"`{name}`" for name in names[:12])
        return _misfit(condition, f"there is no enumerator `{constant}`", f"one of {listed}")
    if decode.kind == "char" and text and len(str(constant)) == 1 and symbol != "~":
        return None
    if text and decode.kind != "symbol":
        what = "the value is a number"
        if condition.word:
            what += f", and nothing here is called `{condition.constant}`"
        return _misfit(condition, what, f"compare it with a number: `{condition.expression} == 1`")
    if decode.kind == "symbol" and not text and (constant != 0 or symbol not in ("==", "!=")):
        return _misfit(condition, "the value is a function", "compare its name, or with `nil`")
    sized = (decode.kind in ("integer", "enum", "pointer") and decode.bits) or 0
    never = sized and not decode.signed and (sized >= 32 or symbol in ("==", "<", "<="))
    if never and isinstance(constant, int) and constant < 0:
        help = f"write the number that it shows: `{constant % (1 << sized)}`"
        return _misfit(condition, "the value is unsigned", help)
    if symbol == "&" and decode.kind == "float":
        return _misfit(condition, "the value is a floating-point number", "compare it by `<`")
    return None


def _shown(condition: Condition) -> str:
    # The constant as a filter has it.
    constant = condition.constant
    if condition.nil:
        return "nil"
    if isinstance(constant, bool):
        return str(constant).lower()
    return f'"{constant}"' if isinstance(constant, str) and not condition.word else str(constant)


def _misfit(condition: Condition, what: str, help: str | None = None) -> Diagnostic:
    return Diagnostic(
        "FC0752",
        f"`{condition.expression}` cannot be compared with `{_shown(condition)}`: {what}",
        Label(condition.span, "no event would pass"),
        help=help or "filter by a member or an element of it",
    )


def accepts(condition: Condition) -> Test:
    """The comparison as a function of a value that could be read."""
    constant = condition.constant
    if constant is None:
        wanted = condition.operator == "=="
        return lambda value: (value is None) == wanted
    if isinstance(constant, str):
        return _of_text(condition.operator, constant)
    if condition.operator == "&":
        mask = int(constant)
        return lambda value: isinstance(bits := _plain(value), int) and bits & mask != 0
    compare = _COMPARE[condition.operator]

    def number(value: Value) -> bool:
        if constant == 0 and isinstance(value, dict) and "data" in value:
            value = _interface(value)
        if condition.nil and isinstance(value, EntryCount):
            value = int(not value.is_nil)
        value = _plain(value)
        if isinstance(value, SymbolName):
            value = _unnumbered(value)
        return isinstance(value, (int, float)) and compare(value, constant)

    return number


def _interface(value: dict[str, Value]) -> Value:
    # As a number: 0 is nil. None where its type could not be read.
    dynamic = value.get("type")
    return None if dynamic is None else int(dynamic != NIL)


def _plain(value: Value) -> Value:
    # The number that an enum and a character have beside what is read of them.
    if isinstance(value, Character):
        return value.number
    return value.get("value") if isinstance(value, dict) else value


def _unnumbered(name: SymbolName) -> float:
    # Infinities and what is not a number have their names, as functions have: their addresses
    # are compared with nil alone.
    try:
        return float(name)
    except ValueError:
        return float("nan")


def _of_text(symbol: str, constant: str) -> Test:
    if symbol == "~":
        match, open_ended = glob_pattern(constant).fullmatch, constant.endswith("*")

        def matches(value: Value) -> bool:
            if isinstance(value, CutString) and not open_ended:
                return False  # its end was not read
            text = _text(value)
            return text is not None and match(text) is not None

        return matches
    equal = symbol == "=="
    code = ord(constant) if len(constant) == 1 else None

    def same(value: Value) -> bool:
        if isinstance(value, int):
            return (value == code) == equal  # a character as its number
        if isinstance(value, CutString):
            return not equal and _differs(value, constant)
        text = _text(value)
        # An enum whose value has no name is none of those that have one.
        return (text == constant) == equal if text is not None else not equal and _named(value)

    return same


def _differs(beginning: CutString, constant: str) -> bool:
    # Whether the whole text is another one: False where it may continue as the constant does.
    # It has no encoding with more units than UTF-8.
    most = len(constant.encode("utf-8", "surrogatepass"))
    longer = beginning.length is not None and beginning.length > most
    return longer or not constant.startswith(beginning)


def _named(value: Value) -> bool:
    return isinstance(value, dict) and value.get("name", "") is None


def _text(value: Value) -> str | None:
    if isinstance(value, dict):
        value = value.get("name")
    return value if isinstance(value, str) else None


# ------------------------------------------------------------------------------
# The part of a filter that the kernel's event filter can test, to record fewer events.
#
# A condition goes to the kernel only where it lets everything pass that
# :func:`fetchc.tracer.filter_conditions.accepts` does; that one still has the last word. The kernel
# compares the bits of a field: it casts a constant to the field's width, takes a bit field for
# unsigned, and finds stale bytes where a load failed (kernel/trace/trace_events_filter.c; a fetch
# that fails, kernel/trace/trace_probe_tmpl.h).

_PAGE = 4096  # event_filter_write() takes less than a page; this is the smallest page
_LONGEST = 255  # MAX_FILTER_STR_VAL less its NUL
_KERNEL_NUMBER = r"[sux](8|16|32|64)\Z"
_PLAIN = r"[ !#-\[\]-~]*\Z"  # no quote, no backslash, nothing beyond ASCII
# Globs: no kernel reads anything but `*`, at one end or both.
_GLOB = r"\*?[ !#-)+->@-Z^-~]*\*?\Z"
_WHOLE = ("integer", "duration", "enum", "pointer", "reference", "char", "bool", "symbol")


class Comparison(Record):
    """A field of a record compared with a constant, a number or the text of ASCII in ``"``."""

    field: str
    operator: str
    constant: int | str

    @property
    def text(self) -> str:
        """As the kernel reads it."""
        quote = '"' if isinstance(self.constant, str) else ""
        return f"{self.field} {self.operator} {quote}{self.constant}{quote}"


def kernel_filter(plan: Plan, filter: Filter) -> str:
    """The text for the event's ``filter`` file, empty where the kernel can take nothing.

    The expressions of ``filter`` are the labels of their values.
    """
    return _joined(plan, All((filter,)))


def _joined(plan: Plan, every: All) -> str:
    # What the kernel cannot take of it is left out, and what is left lets more pass.
    text = ""
    for part in every.parts:
        term = _part(plan, part)
        if term and len(f"{text} && {term}".encode()) < _PAGE:
            text = f"{text} && {term}" if text else term
    return text


def _part(plan: Plan, filter: Filter) -> str:
    match filter:
        case All():
            return _joined(plan, filter)
        case AnyOf(parts=parts):
            terms = [_part(plan, part) for part in parts]
            return f"({' || '.join(f'({term})' for term in terms)})" if all(terms) else ""
        case Condition():
            compared = comparison(plan, filter)
            return "" if compared is None else compared.text
        case _:
            assert_never(filter)


def comparison(plan: Plan, condition: Condition) -> Comparison | None:
    """The condition as one of a field as it is stored; None where there is no such."""
    shapes = {wanted.label: wanted.shape for wanted in plan.values}
    shape = shapes.get(condition.expression)
    while isinstance(shape, BoundsCheckShape):
        shape = shape.inner  # the reader says whether it is there, for those that pass
    if isinstance(shape, EntryCountShape):
        shape = shape.reference if condition.nil else shape.inner
    if isinstance(shape, SizedStringShape) and condition.operator != "!=":
        shape = shape.inner  # a string with a NUL in it differs from what the kernel compares
    if not isinstance(shape, Leaf) or shape.size or shape.offset or shape.shift:
        return None
    return _term(shape, _stores(plan, shape.field), condition)


def _stores(plan: Plan, field: str) -> str:
    # How the kernel stores the field: all definitions of an event agree.
    for word in plan.definitions[0].split()[2:]:
        name, _, body = word.partition("=")
        if name == field:
            return body.rpartition(":")[2] if ":" in body else ""
    return ""


def _term(leaf: Leaf, store: str, condition: Condition) -> Comparison | None:
    decode, symbol = leaf.decode, condition.operator
    constant = 0 if condition.constant is None else condition.constant
    if decode.count is not None:
        return None
    if decode.kind == "text":
        if store != "string" or decode.limit is not None:
            return None  # the reader cuts the text, the kernel would compare all of it
        return _kernel_text(leaf.field, symbol, constant)
    number = re.match(_KERNEL_NUMBER, store)
    if number is None or decode.kind not in _WHOLE:
        return None
    bits = int(number[1])
    if decode.kind == "bool":
        return _truth(leaf.field, symbol, constant)
    if isinstance(constant, str):
        named = dict(decode.enumerators)
        if decode.kind == "enum" and symbol in ("==", "!=") and constant in named:
            constant = named[constant]
        elif decode.kind == "char" and len(constant) == 1 and symbol in ("==", "!="):
            constant = ord(constant)
        else:
            return None
    if isinstance(constant, float) or (decode.bits is not None and decode.bits != bits):
        return None
    if decode.signed != store.startswith("s"):
        return None
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if decode.signed else (0, 1 << bits)
    if not low <= constant < high:
        return None
    return Comparison(leaf.field, symbol, int(constant))


def _truth(field: str, symbol: str, constant: object) -> Comparison | None:
    # Any byte but 0 is true.
    if symbol not in ("==", "!=") or constant not in (0, 1):
        return None
    return Comparison(field, "!=" if (symbol == "==") == (constant == 1) else "==", 0)


def _kernel_text(field: str, symbol: str, constant: object) -> Comparison | None:
    if not isinstance(constant, str) or len(constant) > _LONGEST:
        return None
    allowed = _GLOB if symbol == "~" else _PLAIN
    return Comparison(field, symbol, constant) if re.match(allowed, constant) else None
