"""Records of an event, packed as the kernel packs them, for the tests of their readers."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from fetchc.tracer.decode import reader
from fetchc.tracer.events import EventValue, Field, Format, Plan, Sample
from fetchc.tracer.trace_instance import Processes
from fetchc.tracer.value_shapes import Shape

Mapped = Callable[[int, int], bool | None]
Symbol = Callable[[int, int], str | None]

__all__ = ["COMM", "NEAR", "THREAD", "Nobody", "format_of", "read", "record", "sample"]

THREAD = 4711
NEAR = 0x7F00_0000_1000  # an address as programs have them
COMM = "fetchc_comm"
_HEADER = 16
_SIZES = {"B": 1, "H": 2, "I": 4, "Q": 8, "b": 1, "h": 2, "i": 4, "q": 8}


def format_of(fields: Sequence[tuple[str, str]]) -> Format:
    """A format of fields, each a letter of ``struct``, ``64s`` for bytes, ``text``, ``text3``."""
    made = []
    offset = _HEADER
    for name, code in fields:
        if code.startswith("text"):
            count = int(code[4:]) if code[4:] else None
            made.append(Field(name, offset, 4, False, count, True))
            offset += 4 * (count or 1)
        elif code.endswith("s"):
            made.append(Field(name, offset, 1, False, int(code[:-1]), False))
            offset += int(code[:-1])
        else:
            made.append(Field(name, offset, _SIZES[code], code.islower(), None, False))
            offset += _SIZES[code]
    return Format(1, "ev", tuple(made))


def record(fields: Sequence[tuple[str, str]], values: Sequence[object]) -> bytes:
    """A record; a string is its bytes, None where the kernel could not read it at all."""
    fixed = struct.pack("=HBBiQ", 1, 0, 0, THREAD, 0x401000)
    end = _HEADER
    for _, code in fields:
        end += 4 * int(code[4:] or 1) if code.startswith("text") else struct.calcsize("=" + code)
    area = b""
    for (_, code), value in zip(fields, values, strict=True):
        if not code.startswith("text"):
            fixed += struct.pack("=" + code, value)
            continue
        for one in value if isinstance(value, list) else [value]:
            assert one is None or isinstance(one, bytes)
            text = b"" if one is None else one + b"\0"
            fixed += struct.pack("=I", len(text) << 16 | end + len(area))
            area += text
    return fixed + area


def sample(data: bytes, nanoseconds: int = 5) -> Sample:
    """The record ``data``, within a page that has something else around it."""
    return nanoseconds, 0, b"\xa5" * 20 + data + b"\x5a" * 40, 20, 20 + len(data), ()


class Nobody(Processes):
    """Every thread is its own process, of which no memory can be looked at."""

    def __init__(self) -> None:
        self.visible = False

    def known(self, thread: int, nanoseconds: int) -> tuple[int, int]:
        return thread, nanoseconds + 1


def read(
    shape: Shape,
    fields: Sequence[tuple[str, str]],
    values: Sequence[object],
    mapped: Mapped | None = None,
    symbol: Symbol | None = None,
) -> tuple[object, tuple[str, ...]]:
    """The value of ``shape``, called ``v``, in a record; and the faults."""
    plan = Plan("g", "ev", "/bin/x", "f", "entry", 0, ("",), (EventValue("v", shape),))
    made = reader(plan, format_of(fields), mapped, symbol)
    args, faults = made(record(fields, values))
    return args["v"], faults
