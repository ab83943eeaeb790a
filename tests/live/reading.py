"""What a reader makes of the kernel's text, by the library's ``Decode``; for tests only.

The kernel prints numbers in decimal or hex, lists in braces, strings in double quotes. A counted
text comes as a list of words in the target's byte order (little-endian here), to be cut at the
length that its companion argument tells.
"""

from __future__ import annotations

import re
import struct

from fetchc.ir.fetch import Decode
from tests.support.programs import Value

__all__ = ["Unreadable", "read", "same"]


class Unreadable(AssertionError):
    """The kernel's text is not what the argument's decoding asks for."""


def read(printed: str, decode: Decode, length: int | None = None) -> Value:
    """The value of one argument; ``length`` is that of its companion, if it has one."""
    if decode.kind == "text":
        return _text(printed, decode, length)
    if printed.startswith("{"):
        numbers = _numbers(printed)
        if len(numbers) != decode.count:
            raise Unreadable(f"{len(numbers)} elements, {decode.count} expected: {printed}")
        return [_one(number, decode) for number in numbers]
    return _one(_number(printed), decode)


def _text(printed: str, decode: Decode, length: int | None) -> str:
    if printed.startswith("{"):
        assert decode.bits is not None
        data = b"".join(one.to_bytes(decode.bits // 8, "little") for one in _numbers(printed))
        if length is None or length > len(data):
            raise Unreadable(f"{len(data)} bytes fetched, the length is {length}")
        return data[:length].decode()
    if len(printed) < 2 or printed[0] != '"' or printed[-1] != '"':
        raise Unreadable(f"not a text: {printed}")
    text = printed[1:-1]
    # A C array holds its count of characters at most, and no NUL if it holds that many.
    return text if decode.limit is None else text[: decode.limit]


def _one(number: int, decode: Decode) -> Value:
    if decode.bits is not None:
        number &= (1 << decode.bits) - 1
        if decode.signed and number >> (decode.bits - 1):
            number -= 1 << decode.bits
    match decode.kind:
        case "bool":
            if number not in (0, 1):
                raise Unreadable(f"a bool of {number}")
            return bool(number)
        case "enum":
            names = [name for name, value in decode.enumerators if value == number]
            return {"name": names[0] if names else None, "value": number}
        case "float":
            code = {32: ("<I", "<f"), 64: ("<Q", "<d")}[decode.bits or 0]
            value: float = struct.unpack(code[1], struct.pack(code[0], number))[0]
            return value
        case "integer" | "char" | "pointer" | "address" | "symbol":
            return number
        case other:
            raise Unreadable(f"no reading for the kind {other!r}")


def _numbers(printed: str) -> list[int]:
    if not re.fullmatch(r"\{[^{}]*\}", printed):
        raise Unreadable(f"not a list: {printed}")
    return [_number(one) for one in printed[1:-1].split(",")]


def _number(printed: str) -> int:
    character = re.fullmatch(r"'(.)'", printed, re.DOTALL)
    if character:
        return ord(character[1])
    try:
        return int(printed, 16 if printed.startswith("0x") else 10)
    except ValueError:
        raise Unreadable(f"not a number: {printed}") from None


def same(got: Value, expected: Value, decode: Decode) -> bool:
    """Whether a value read is the one that the program printed.

    Numbers of different Python types are different values, except that programs print a
    whole-numbered float without a point. A float of 32 bits is compared as such: programs print
    the shortest decimal that stands for it.
    """
    if isinstance(got, dict) and isinstance(expected, int):
        got = got.get("value")  # Go prints no names of its constants
    if decode.kind == "float" and isinstance(expected, int) and not isinstance(expected, bool):
        expected = float(expected)
    if decode.kind == "float" and decode.bits == 32 and isinstance(expected, float):
        expected = struct.unpack("<f", struct.pack("<f", expected))[0]
    return type(got) is type(expected) and got == expected
