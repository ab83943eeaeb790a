"""A condition of a filter: which values it can be asked of, and which pass.

The reader's answer is the one that counts. The kernel's own filter only spares it events:
:func:`fetchc.tracer.kernelfilter.kernel_filter` never drops what :func:`accepts` lets pass.
"""

from __future__ import annotations

import operator

from fetchc.diag.diagnostic import Diagnostic, Label
from fetchc.ir.fetch import Decode
from fetchc.syntax.globs import glob_pattern
from fetchc.tracer.shape import (
    Asserted,
    Between,
    Bytes,
    Called,
    Choice,
    Difference,
    Dispatched,
    Either,
    Inside,
    Kept,
    Leaf,
    Members,
    Noted,
    OfType,
    OfVariant,
    Ranged,
    Reckoned,
    Referred,
    Sized,
    Spelled,
    Sum,
    TypeName,
    Worded,
)
from fetchc.tracer.values.dynamic import NIL
from fetchc.tracer.values.kinds import Character, CutText, SymbolName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.tracer.filters import Condition
    from fetchc.tracer.model import Value
    from fetchc.tracer.shape import Shape

    Test = Callable[[Value], bool]

__all__ = ["accepts", "of_nothing", "unfit", "within"]

_ASSERTED = "compare what is in it, of one type: `e.(*T).x == 1`"
_COMPARE: dict[str, Callable[[object, object], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,  # type: ignore[dict-item]
    "<=": operator.le,  # type: ignore[dict-item]
    ">": operator.gt,  # type: ignore[dict-item]
    ">=": operator.ge,  # type: ignore[dict-item]
}


def within(shape: Shape) -> Shape:
    """The shape of the value itself, behind all that has to hold for there to be one."""
    while isinstance(shape, Referred | OfVariant | Inside | Kept | OfType | Asserted | Sized):
        shape = shape.inner
    return shape


def of_nothing(condition: Condition, shape: Shape) -> Condition:
    """The condition; one that asks for null of what has no value then (references of .NET, what
    a Nullable holds, texts behind references and pointers) with None for its constant.
    """
    while isinstance(shape, OfVariant | Inside | Kept | OfType | Asserted | Sized):
        shape = shape.inner
    reference = isinstance(shape, Leaf) and (shape.decode.kind == "reference" or _pointed(shape))
    held = isinstance(shape, Referred) and condition.nil
    if not _asks_for_nil(condition) or not (reference or held):
        return condition
    from fetchc.tracer.filters import Condition

    one = condition
    return Condition(one.expression, one.operator, None, False, True, one.text, one.span)


def _pointed(leaf: Leaf) -> bool:
    # A text by a pointer, of which the last guard tells whether it is NULL; not one in an array.
    text = leaf.decode.kind == "text" and leaf.decode.count is None
    return text and any(guard.empty for guard in leaf.guards[-1:])


def unfit(condition: Condition, shape: Shape) -> Diagnostic | None:
    """FC0752 where the constant can never be such a value, so that no event would pass."""
    if condition.constant is None:
        return None
    shape = within(shape)
    if isinstance(shape, Ranged):
        shape = shape.elements
    if isinstance(shape, Bytes | Noted | Spelled) or (
        isinstance(shape, Leaf) and shape.decode.kind == "text"
    ):
        if isinstance(shape, Leaf) and shape.decode.count is not None:
            return _misfit(condition, "a list compares with no constant")
        if not isinstance(condition.constant, str) or condition.word:
            return _misfit(condition, "the value is a text", _for_text(condition))
        return None
    if isinstance(shape, Called | Choice | Dispatched):
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
    if isinstance(shape, Worded):
        shape = shape.plain
    if isinstance(shape, Members) and any(isinstance(one, TypeName) for _, one in shape.members):
        what = "an interface compares with `nil` alone"
        return None if _asks_for_nil(condition) else _misfit(condition, what, _ASSERTED)
    if not isinstance(shape, Leaf) or shape.decode.count is not None:
        return _misfit(condition, "a list or structure compares with no constant")
    return _unfit_number(condition, shape.decode)


def _for_text(condition: Condition) -> str:
    if _asks_for_nil(condition):
        return 'compare it with the empty text: `== ""`'
    written = condition.constant if condition.word else "a"
    return f'compare it with a text: `== "{written}"`'


def _asks_for_nil(condition: Condition) -> bool:
    nil = condition.constant == 0 and condition.constant is not False
    return nil and condition.operator in ("==", "!=")


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
