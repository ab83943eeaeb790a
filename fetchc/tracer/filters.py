"""``--filter 'EXPR op CONST'``, as written: the comparisons, or where it is none."""

from __future__ import annotations

import re

from fetchc.diag.errors import CompileError, reject
from fetchc.diag.model import Diagnostic, Label
from fetchc.record import Record
from fetchc.source import Span
from fetchc.syntax.limits import LENGTH

__all__ = ["Condition", "parse_filter"]


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
