"""What of a filter the kernel's own event filter can hold, so that fewer events are recorded.

A condition goes to the kernel only where it lets everything pass that
:func:`fetchc.tracer.conditions.accepts` does; that one still has the last word. The kernel compares
the bits of a field: it casts a constant to the field's width, takes a bit field for unsigned,
and finds stale bytes where a load failed (kernel/trace/trace_events_filter.c; a fetch that
fails, kernel/trace/trace_probe_tmpl.h).
"""

from __future__ import annotations

import re

from fetchc.record import assert_never
from fetchc.tracer.filters import All, AnyOf, Condition
from fetchc.tracer.shape import Inside, Leaf, Sized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.tracer.filters import Filter
    from fetchc.tracer.model import Plan

__all__ = ["kernel_filter"]

_PAGE = 4096  # event_filter_write() takes less than a page, of which this is the smallest
_LONGEST = 255  # MAX_FILTER_STR_VAL less its NUL
_NUMBER = re.compile(r"[sux](8|16|32|64)\Z")
_PLAIN = re.compile(r"[ !#-\[\]-~]*\Z")  # no quote, no backslash, nothing beyond ASCII
# Globs of which no kernel reads anything but `*`, at one end or both.
_GLOB = re.compile(r"\*?[ !#-)+->@-Z^-~]*\*?\Z")
_WHOLE = ("integer", "duration", "enum", "pointer", "reference", "char", "bool", "symbol")


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
            return _compared(plan, filter)
        case _:
            assert_never(filter)


def _compared(plan: Plan, condition: Condition) -> str:
    shapes = {wanted.label: wanted.shape for wanted in plan.values}
    shape = shapes.get(condition.expression)
    while isinstance(shape, Inside):
        shape = shape.inner  # whether it is there, the reader tells of those that pass
    if isinstance(shape, Sized) and condition.operator != "!=":
        shape = shape.inner  # a text with a NUL in it differs from what the kernel compares
    if not isinstance(shape, Leaf) or shape.size or shape.offset or shape.shift:
        return ""
    return _term(shape, _stores(plan, shape.field), condition) or ""


def _stores(plan: Plan, field: str) -> str:
    # How the kernel stores the field: all definitions of an event agree.
    for word in plan.definitions[0].split()[2:]:
        name, _, body = word.partition("=")
        if name == field:
            return body.rpartition(":")[2] if ":" in body else ""
    return ""


def _term(leaf: Leaf, store: str, condition: Condition) -> str | None:
    decode, symbol = leaf.decode, condition.operator
    constant = 0 if condition.constant is None else condition.constant
    if decode.count is not None:
        return None
    if decode.kind == "text":
        if store != "string" or decode.limit is not None:
            return None  # the reader cuts the text, the kernel would compare all of it
        return _text(leaf.field, symbol, constant)
    number = _NUMBER.match(store)
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
    return f"{leaf.field} {symbol} {int(constant)}"


def _truth(field: str, symbol: str, constant: object) -> str | None:
    # Any byte but 0 is true.
    if symbol not in ("==", "!=") or constant not in (0, 1):
        return None
    return f"{field} {'!=' if (symbol == '==') == (constant == 1) else '=='} 0"


def _text(field: str, symbol: str, constant: object) -> str | None:
    if not isinstance(constant, str) or len(constant) > _LONGEST:
        return None
    allowed = _GLOB if symbol == "~" else _PLAIN
    return f'{field} {symbol} "{constant}"' if allowed.match(constant) else None
