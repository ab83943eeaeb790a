"""What a fetched value is to whoever reads the event, in words."""

from __future__ import annotations

from fetchc.ir.fetch import Array, Bits, Char, Scalar, Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.ir.fetch import Decode, Store

__all__ = ["outcome"]

_SHOWN = 6  # enumerators
_PRINTED = {"u": "in decimal, unsigned", "s": "in decimal, signed", "x": "in hexadecimal"}


def outcome(store: Store, decode: Decode | None) -> str:
    """``a signed number of 32 bits``; by the kernel's own type where there is no ``decode``."""
    if decode is None:
        return _stored(store)
    many = "" if decode.count is None else f"{decode.count} times "
    match decode.kind:
        case "text" | "bytes" if isinstance(store, Array) and isinstance(store.element, Scalar):
            size = store.count * store.element.bits // 8
            return f"{size} bytes, the start of a text that ends at its length"
        case "text" | "bytes":
            limit = "" if decode.limit is None else f", of {decode.limit} bytes at most"
            return f"{many}a text up to its NUL{limit}"
        case "integer" | "char":
            sign = "a signed" if decode.signed else "an unsigned"
            return f"{many}{sign} number of {decode.bits} bits"
        case "float":
            return f"{many}a floating-point number, by its {decode.bits} bits"
        case "enum":
            names = [f"{name} ({value})" for name, value in decode.enumerators[:_SHOWN]]
            more = ["..."] if len(decode.enumerators) > _SHOWN else []
            return f"{many}an enumerator: {', '.join(names + more)}"
        case "bool":
            return f"{many}a truth value, 0 or 1"
        case "symbol":
            return f"{many}the address of a function"
        case _:
            return f"{many}an address"


def _stored(store: Store) -> str:
    match store:
        case Array(element, count):
            return f"{count} times {_stored(element)}"
        case Text():
            return "a text up to its NUL"
        case Scalar(kind, bits):
            return f"a number of {bits} bits, printed {_PRINTED[kind]}"
        case Char():
            return "a byte, printed as a character"
        case Bits(width, offset, container):
            return (
                f"{width} bits, from bit {offset} of {container} on, printed in decimal, unsigned"
            )
        case _:
            return "a word, printed in hexadecimal"
