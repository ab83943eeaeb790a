"""Values as text for people: one line whatever the traced memory holds, and safe on a terminal."""

from __future__ import annotations

from fetchc.tracer.values.kinds import (
    CutList,
    CutStructure,
    CutText,
    Enumerator,
    Hexadecimal,
    Nanoseconds,
    NoAddress,
    SymbolName,
    Tuple,
    Variant,
)
from fetchc.tracer.values.spellings import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from fetchc.tracer.model import Value

__all__ = ["escaped", "printed"]

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
_MORE = "…"


def printed(value: Value, faults: Container[str] | None = None, path: str = "") -> str:
    """``value`` on one line; ``path`` is what ``faults`` call it.

    Texts are in double quotes, with ``…`` behind what was cut; lists are ``[1, 2]``, tuples
    ``(1, 2)``, structures ``{x=1, y=2}`` (``{x=1, …}`` without some of their members), variants
    ``Some(3)`` and ``Circle{r=2}``, enumerators their names, lengths of time ``1.5s``. Addresses
    are hexadecimal, ``0x5a5a5a5a5a5a5a5a (no address)`` where no memory can be; ``(fault)`` is what
    could not be read. What is missing for no fault is ``null``; without ``faults`` all that is
    missing is one.
    """
    match value:
        case None:
            return "(fault)" if faults is None or path in faults else "null"
        case bool():
            return "true" if value else "false"
        case NoAddress():
            return f"{int(value):#x} (no address)"
        case Hexadecimal():
            return f"{int(value):#x}"
        case Nanoseconds():
            return duration(value)
        case int():
            return str(value)
        case float():
            return repr(value)
        case SymbolName():
            return escaped(value)
        case str():
            return f'"{escaped(value)}"' + _MORE * isinstance(value, CutText)
        case Tuple():
            each = enumerate(value)
            shown = [printed(one, faults, f"{path}[{index}]") for index, one in each]
            return f"({', '.join(shown)}{',' * (len(shown) == 1)})"
        case list():
            each = enumerate(value)
            shown = [printed(one, faults, f"{path}[{index}]") for index, one in each]
            if isinstance(value, CutList):
                shown = [_MORE, *shown] if value.last else [*shown, _MORE]
            return f"[{', '.join(shown)}]"
        case Enumerator():
            name = value["name"]
            return escaped(name) if isinstance(name, str) else str(value["value"])
        case Variant():
            ((name, held),) = value.items()
            inside = printed(held, faults, f"{path}.{name}")
            return escaped(name) + (f"({inside})" if value.single or held is None else inside)
        case dict():
            members = [
                f"{escaped(name)}={printed(one, faults, f'{path}.{name}')}"
                for name, one in value.items()
            ]
            return f"{{{', '.join(members + [_MORE] * isinstance(value, CutStructure))}}}"


def escaped(text: str) -> str:
    r"""``text`` without quotes: what is no printable character is written as C writes it.

    ``\xNN`` is a byte that is no part of UTF-8; ``\u202e`` and the like are control characters,
    those that turn the direction of text round, and what has no meaning yet.
    """
    if text.isprintable() and "\\" not in text and '"' not in text:
        return text
    return "".join([_character(one) for one in text])


def _character(character: str) -> str:
    known = _ESCAPES.get(character)
    if known is not None:
        return known
    if character.isprintable():
        return character
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:  # a byte, kept by the error handler surrogateescape
        return f"\\x{number - 0xDC00:02x}"
    if number < 0x80:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
