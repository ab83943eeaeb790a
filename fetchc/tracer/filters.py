"""``--filter 'EXPR op CONST'``, as written: the comparisons, or where it is none.

``&&`` binds its comparisons together before ``||`` does, and brackets before both.
"""

from __future__ import annotations

import re

from fetchc.diag.diagnostic import CompileError, Diagnostic, Label, reject
from fetchc.record import Record
from fetchc.source import Span
from fetchc.syntax.tree import LENGTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["All", "AnyOf", "Condition", "Filter", "comparisons", "parse_filter", "replaced"]

DEPTH = 32  # brackets in brackets


class Condition(Record):
    """One comparison: ``expression`` as given or the label of its value, operator, constant.

    A ``word`` is a constant without quotes: the name of an enumerator. Of ``nil`` and ``null`` the
    constant is 0, and None where that is compared with what has no value. ``text`` is the whole
    filter, ``span`` where the comparison stands in it.
    """

    expression: str
    operator: str
    constant: int | float | str | bool | None
    word: bool
    nil: bool
    text: str
    span: Span


class All(Record):
    """Lets pass what all of its parts do."""

    parts: tuple[Filter, ...]


class AnyOf(Record):
    """Lets pass what one of its parts does."""

    parts: tuple[Filter, ...]


Filter = Condition | All | AnyOf


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
# Not `<` and `>`: `std::array<3, int>` is a type.
_UNJOINED = re.compile(
    rf"(?:==|!=|<=|>=|~)\s*(?:{_NUMBER}|{_QUOTED}|'(?:[^'\\]|\\.)'|\w+)\s*(or\b|and\b|[|&,;])"
)
_TOKEN = re.compile(rf"{_QUOTED}|'(?:[^'\\]|\\.)'|(&&|\|\||[()])")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
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
        raise _wrong(text, span, f"there are more than {DEPTH} brackets in brackets")
    first, last = tokens
    return _parsed(text, first.end(1), last.start(1), depth + 1)


def _outside(text: str, start: int, end: int) -> list[re.Match[str]]:
    """What joins, and the brackets that open and close, outside of other brackets."""
    found, depth = [], 0
    opened = start
    for token in _TOKEN.finditer(text, start, end):
        depth -= token[1] == ")"
        if depth < 0:
            raise _wrong(text, Span(*token.span()), "this bracket closes nothing")
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
    found = _COMPARISON.fullmatch(part)
    left = len(part) - len(part.lstrip())
    span = Span(start + left, start + max(len(part.rstrip()), left + 1))
    if found is None:
        what = "this is no comparison of an expression with a constant"
        raise _wrong(text, span, what, _slip(part))
    if unjoined := _UNJOINED.search(found["expression"]):
        at = left + start + unjoined.start(1)
        joint = Span(at, at + len(unjoined[1]))
        raise _wrong(text, joint, f"`{unjoined[1]}` joins nothing", "write `&&` or `||`")
    symbol = found["order"] or found["same"] or found["equal"]
    constant: int | float | str | bool
    word, nil = False, found["word"] in _NIL
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
    return Condition(found["expression"], symbol, constant, word, nil, text, span)


def _slip(part: str) -> str | None:
    # What is written like that in other languages.
    if re.search(r"[=!~]\s*'", part):
        return "a text stands in double quotes"
    if re.search(r"[^=!<>]=[^=]", part):
        return "equality is `==`"
    if re.match(rf"\s*(?:{_NUMBER}|{_QUOTED})\s*[=!<>&]", part):
        return "put the constant behind the operator"
    if re.match(r"\s*(?:!|not\b)", part):
        return "nothing turns a comparison round: write `!=` for `==`, `<=` for `>`"
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
