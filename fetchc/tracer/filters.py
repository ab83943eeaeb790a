"""``--filter 'EXPR op CONST'``: read, applied to events, and what of it the kernel can take.

The reader's answer is the one that counts. The kernel's own filter only spares it events:
:func:`fetchc.tracer.kernelfilter.kernel_filter` never drops what :func:`accepts` lets pass.
"""

from __future__ import annotations

import operator
import re

from fetchc.diag.errors import CompileError, reject
from fetchc.diag.model import Diagnostic, Label
from fetchc.ir.decode import Decode
from fetchc.record import Record
from fetchc.source import Span
from fetchc.syntax.globs import glob_pattern
from fetchc.syntax.limits import LENGTH
from fetchc.tracer.shape import (
    Between,
    Bytes,
    Called,
    Choice,
    Difference,
    Either,
    Inside,
    Kept,
    Leaf,
    Noted,
    OfVariant,
    Ranged,
    Reckoned,
    Referred,
    Spelled,
    Sum,
)
from fetchc.tracer.values.kinds import Character, CutText, SymbolName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.tracer.model import Value
    from fetchc.tracer.shape import Shape

    Test = Callable[[Value], bool]

__all__ = ["Condition", "accepts", "parse_filter", "unfit"]


class Condition(Record):
    """One comparison: ``expression`` as given, the operator, the constant.

    A ``word`` is a constant without quotes: the name of an enumerator. ``text`` is the whole
    filter, ``span`` where the comparison stands in it.
    """

    expression: str
    operator: str
    constant: int | float | str | bool
    word: bool
    text: str
    span: Span


# The last operator in front of a constant is the comparison's; `->` is none, and `&` and the
# orders take numbers alone, so that `r->colour` is not a comparison with `colour`.
_NUMBER = r"[+-]?(?:0[xX][0-9a-fA-F]+|[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)"
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_COMPARISON = re.compile(
    r"\s*(?P<expression>.*?\S)\s*"
    rf"(?:(?P<order>==|!=|<=|>=|<|(?<!-)>|&)\s*(?P<number>{_NUMBER}|'(?:[^'\\]|\\.)')"
    rf"|(?P<same>==|!=|~)\s*(?P<quoted>{_QUOTED})"
    r"|(?P<equal>==|!=)\s*(?P<word>[^\W\d][\w.:]*))\s*",
    re.DOTALL,
)
_AND = re.compile(rf"{_QUOTED}|'(?:[^'\\]|\\.)'|(&&|\|\|)")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", '"': '"', "'": "'", "\\": "\\"}
_WORDS: dict[str, int | bool] = {
    "true": True, "false": False, "nil": 0, "NULL": 0, "nullptr": 0, "null": 0,
}  # fmt: skip
_COMPARE: dict[str, Callable[[object, object], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,  # type: ignore[dict-item]
    "<=": operator.le,  # type: ignore[dict-item]
    ">": operator.gt,  # type: ignore[dict-item]
    ">=": operator.ge,  # type: ignore[dict-item]
}


def parse_filter(text: str) -> tuple[Condition, ...]:
    """The comparisons of a filter, all of which have to hold: ``n > 3 && name ~ "a*"``.

    Raises CompileError FC0751 with the place, or FC0102.
    """
    if len(text) > LENGTH:
        what = f"the filter has {len(text)} characters, more than {LENGTH}"
        raise reject("FC0102", what, Span(LENGTH, len(text)), "too long")
    conditions = []
    start = 0
    for found in [*_AND.finditer(text), None]:
        if found is not None and found[1] is None:
            continue
        end = len(text) if found is None else found.start(1)
        if found is not None and found[1] == "||":
            raise _wrong(
                text, Span(end, end + 2), "only `&&` joins comparisons", "two traces can do it"
            )
        conditions.append(_condition(text, start, end))
        start = end + 2
    return tuple(conditions)


def _condition(text: str, start: int, end: int) -> Condition:
    part = text[start:end]
    found = _COMPARISON.fullmatch(part)
    left = len(part) - len(part.lstrip())
    span = Span(start + left, start + max(len(part.rstrip()), left + 1))
    if found is None:
        what = "this is no comparison of an expression with a constant"
        raise _wrong(text, span, what, _slip(part))
    symbol = found["order"] or found["same"] or found["equal"]
    constant: int | float | str | bool
    word = False
    if found["quoted"] is not None:
        constant = _unquoted(found["quoted"], text, span)
    elif found["word"] is not None:
        word = found["word"] not in _WORDS
        if re.fullmatch(f"{_NUMBER}|{_QUOTED}", found["expression"]):
            raise _wrong(text, span, "a constant comes first", _slip(part))
        constant = _WORDS.get(found["word"], found["word"])
    elif found["number"].startswith("'"):
        constant = _unquoted(found["number"], text, span)
        if symbol not in ("==", "!="):
            raise _wrong(text, span, "a character is compared with `==` and `!=` alone")
    else:
        constant = _number(found["number"])
        if symbol == "&" and (isinstance(constant, float) or constant < 0):
            raise _wrong(text, span, "`&` takes a whole number that is not negative")
    return Condition(found["expression"], symbol, constant, word, text, span)


def _slip(part: str) -> str | None:
    # What is written like that in other languages.
    if re.search(r"[=!~]\s*'", part):
        return "a text stands in double quotes"
    if re.search(r"[^=!<>]=[^=]", part):
        return "equality is `==`"
    if re.match(rf"\s*(?:{_NUMBER}|{_QUOTED})\s*[=!<>&]", part):
        return "put the constant behind the operator"
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
        if what.startswith("x"):
            byte = int(what[1:], 16)
            return bytes([byte]).decode("utf-8", "surrogateescape")
        if what not in _ESCAPES:
            raise _wrong(text, span, f"there is no escape `\\{what}`")
        return _ESCAPES[what]

    return _ESCAPE.sub(replaced, quoted[1:-1])


def _wrong(text: str, span: Span, what: str, help: str | None = None) -> CompileError:
    return CompileError(
        (
            Diagnostic(
                "FC0751",
                f"the filter does not parse: {what}",
                Label(span, "no comparison"),
                notes=("numbers take `==` `!=` `<` `<=` `>` `>=` `&`, texts `==` `!=` `~`",),
                help=help or 'write `EXPR op CONST`: `len(s) > 8`, `r->name ~ "a*"`',
            ),
        )
    )


def unfit(condition: Condition, shape: Shape) -> Diagnostic | None:
    """FC0752 where the constant can never be such a value, so that no event would pass."""
    while isinstance(shape, Referred | OfVariant | Inside | Kept):
        shape = shape.inner
    if isinstance(shape, Ranged):
        shape = shape.elements
    if isinstance(shape, Bytes | Noted | Spelled) or (
        isinstance(shape, Leaf) and shape.decode.kind == "text"
    ):
        if isinstance(shape, Leaf) and shape.decode.count is not None:
            return _misfit(condition, "a list compares with no constant")
        if not isinstance(condition.constant, str) or condition.word:
            return _misfit(condition, "the value is a text", 'compare it with a text: `== "a"`')
        return None
    if isinstance(shape, Called | Choice):
        problems = [unfit(condition, one) for _, one in shape.cases]
        return None if None in problems else problems[0]
    if isinstance(shape, Either):
        problems = [unfit(condition, one) for one in (shape.at_none, shape.other)]
        return None if None in problems else problems[0]
    if isinstance(shape, Reckoned):
        return _unfit_number(condition, Decode("bool" if shape.is_none else "integer", 64))
    if isinstance(shape, Difference):
        shape = shape.minuend
    if isinstance(shape, Sum):
        return _unfit_number(condition, shape.decode)
    if isinstance(shape, Between):
        return _unfit_number(condition, Decode("integer", 64))
    if not isinstance(shape, Leaf) or shape.decode.count is not None:
        return _misfit(condition, "a list or structure compares with no constant")
    return _unfit_number(condition, shape.decode)


def _unfit_number(condition: Condition, decode: Decode) -> Diagnostic | None:
    constant, symbol = condition.constant, condition.operator
    text = isinstance(constant, str)
    if decode.kind == "enum" and text:
        known = [name for name, _ in decode.enumerators]
        if symbol == "~" or constant in known:
            return None
        listed = ", ".join(f"`{name}`" for name in known[:12])
        return _misfit(condition, f"there is no enumerator `{constant}`", f"one of {listed}")
    if decode.kind == "char" and text and len(str(constant)) == 1 and symbol != "~":
        return None
    if text and decode.kind != "symbol":
        return _misfit(condition, "the value is a number", "compare it with a number: `== 1`")
    if decode.kind == "symbol" and not text and (constant != 0 or symbol not in ("==", "!=")):
        return _misfit(condition, "the value is a function", "compare its name, or with `nil`")
    if symbol == "&" and decode.kind == "float":
        return _misfit(condition, "the value is a floating-point number", "compare it by `<`")
    return None


def _misfit(condition: Condition, what: str, help: str | None = None) -> Diagnostic:
    return Diagnostic(
        "FC0752",
        f"`{condition.expression}` cannot be compared like that: {what}",
        Label(condition.span, "never true"),
        help=help or "filter by a member or an element of it",
    )


def accepts(condition: Condition) -> Test:
    """The comparison as a function of a value; never true of one that could not be read."""
    constant = condition.constant
    if isinstance(constant, str):
        return _of_text(condition.operator, constant)
    if condition.operator == "&":
        mask = int(constant)
        return lambda value: isinstance(bits := _plain(value), int) and bits & mask != 0
    compare = _COMPARE[condition.operator]

    def number(value: Value) -> bool:
        value = _plain(value)
        if isinstance(value, SymbolName):
            value = _unnumbered(value)
        return isinstance(value, (int, float)) and compare(value, constant)

    return number


def _plain(value: Value) -> Value:
    # The number that an enum and a character have beside what is read of them.
    if isinstance(value, Character):
        return value.number
    return value.get("value") if isinstance(value, dict) else value


def _unnumbered(name: SymbolName) -> float:
    # Infinities and what is no number have their names, as functions have: their addresses
    # are compared with nil alone.
    try:
        return float(name)
    except ValueError:
        return float("nan")


def _of_text(symbol: str, constant: str) -> Test:
    if symbol == "~":
        match, open_ended = glob_pattern(constant).fullmatch, constant.endswith("*")

        def matches(value: Value) -> bool:
            if isinstance(value, CutText) and not open_ended:
                return False  # its end was not read
            text = _text(value)
            return text is not None and match(text) is not None

        return matches
    equal = symbol == "=="
    code = ord(constant) if len(constant) == 1 else None

    def same(value: Value) -> bool:
        if isinstance(value, int):
            return (value == code) == equal  # a character as its number
        if isinstance(value, CutText):
            return not equal and _differs(value, constant)
        text = _text(value)
        # An enum whose value has no name is none of those that have one.
        return (text == constant) == equal if text is not None else not equal and _named(value)

    return same


def _differs(beginning: CutText, constant: str) -> bool:
    # Whether the whole text is another one: not known of one that may go on as the constant does.
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
