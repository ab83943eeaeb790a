"""Values as their language prints them: points in time, durations, addresses, identifiers.

Source: Go, src/time/time.go (Time, Duration.String), src/net/ip.go (IP.String),
src/net/netip/netip.go (Addr.String); RFC 3339, RFC 5952, RFC 9562.
"""

from __future__ import annotations

from fetchc.tracer.values.kinds import CutList, CutText, SymbolName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fetchc.tracer.model import Value

    Faults = list[str]
    Make = Callable[[bytes, Faults], Value]
    Parts = Mapping[str, Value]

__all__ = ["SPELLINGS", "duration", "spelled"]

_SECOND = 10**9  # nanoseconds
_MONOTONIC = 1 << 63  # of wall: seconds are in it, and ext is another clock's
_SINCE_1885 = (1884 * 365 + 1884 // 4 - 1884 // 100 + 1884 // 400) * 86400  # seconds from year 1


def spelled(
    parts: Sequence[tuple[str, Make]], beside: Sequence[tuple[str, Make]], form: str, path: str
) -> Make:
    """A value in its form; its parts where they are none of it, and one fault for all of them.

    ``beside`` is what the form takes of other places.
    """
    written = SPELLINGS[form]

    def make(data: bytes, faults: Faults) -> Value:
        before = len(faults)
        found = {name: one(data, faults) for name, one in parts}
        others = {name: one(data, faults) for name, one in beside}
        if len(faults) > before:
            faults[before:] = [path]
            return None
        text = written(found | others)
        if text is not None:
            return SymbolName(text)
        return found if len(found) > 1 else next(iter(found.values()))

    return make


def duration(nanoseconds: int) -> str:
    """As Go writes it: ``1h0m2.5s``, ``1.5ms``, ``0s``."""
    number, sign = abs(nanoseconds), "-" * (nanoseconds < 0)
    if not number:
        return "0s"
    if number < _SECOND:
        unit, each = next(one for one in _UNITS if number >= one[1])
        return f"{sign}{_decimal(number, each)}{unit}"
    minutes, rest = divmod(number, 60 * _SECOND)
    hours, minutes = divmod(minutes, 60)
    before = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{before}{_decimal(rest, _SECOND)}s"


_UNITS = (("ms", 10**6), ("µs", 10**3), ("ns", 1))


def _decimal(number: int, each: int) -> str:
    whole, rest = divmod(number, each)
    digits = str(rest).rjust(len(str(each)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}" if rest else str(whole)


def _time(parts: Parts) -> str | None:
    # In UTC, as RFC 3339 has it: what the location would make of it is not looked at.
    wall, ext = parts["wall"], parts["ext"]
    if not isinstance(wall, int) or not isinstance(ext, int):
        return None
    nanoseconds = wall & (1 << 30) - 1
    seconds = _SINCE_1885 + (wall >> 30 & (1 << 33) - 1) if wall & _MONOTONIC else ext
    days, rest = divmod(seconds, 86400)
    from datetime import date

    if nanoseconds >= _SECOND or not 0 <= days < date.max.toordinal():
        return None
    day = date.fromordinal(days + 1).isoformat()
    second = _decimal(rest % 60 * _SECOND + nanoseconds, _SECOND)
    padded = "0" * (rest % 60 < 10) + second
    return f"{day}T{rest // 3600:02}:{rest // 60 % 60:02}:{padded}Z"


def _ip(parts: Parts) -> str | None:
    held = parts["bytes"]
    if not isinstance(held, list) or isinstance(held, CutList):
        return None
    octets = bytes([one for one in held if isinstance(one, int)])
    if len(octets) == 16 and octets.startswith(_MAPPED):
        octets = octets[12:]
    if len(octets) == 4:
        return _four(octets)
    return _six(octets) if len(octets) == 16 else None


_MAPPED = bytes(10) + b"\xff\xff"  # an address of four bytes in one of sixteen


def _addr(parts: Parts) -> str | None:
    kind = _kind(parts)
    if kind is None:
        return None
    if not kind:
        return "invalid IP"
    high, low = parts["hi"], parts["lo"]
    if not isinstance(high, int) or not isinstance(low, int):
        return None
    octets = (high << 64 | low).to_bytes(16, "big")
    if kind == "4":
        return _four(octets[12:])
    text = "::ffff:" + _four(octets[12:]) if octets.startswith(_MAPPED) else _six(octets)
    zone = parts.get("zone")
    return f"{text}%{zone}" if zone else text


def _kind(parts: Parts) -> str | None:
    # "4", "6", "" of no address; None where it cannot be told.
    if "z" in parts:
        pointer = parts["z"]
        if not pointer:
            return ""
        return "4" if pointer == parts["z4"] else "6" if pointer == parts["z6noz"] else None
    if isinstance(parts["zone"], CutText):
        return None
    six = parts["six"]
    return "" if six is None else "6" if six else "4"


def _four(octets: bytes) -> str:
    return ".".join([str(one) for one in octets])


def _six(octets: bytes) -> str:
    """As RFC 5952 has it: without the longest row of two zeros or more, the first of several."""
    groups = [octets[at] << 8 | octets[at + 1] for at in range(0, 16, 2)]
    start, length = 0, 1
    for first in range(8):
        last = first
        while last < 8 and not groups[last]:
            last += 1
        if last - first > length:
            start, length = first, last - first
    shown = [f"{one:x}" for one in groups]
    if length < 2:
        return ":".join(shown)
    return ":".join(shown[:start]) + "::" + ":".join(shown[start + length :])


def _uuid(parts: Parts) -> str | None:
    held = parts["bytes"]
    if not isinstance(held, list) or len(held) != 16:
        return None
    text = bytes([one for one in held if isinstance(one, int)]).hex()
    return "-".join([text[:8], text[8:12], text[12:16], text[16:20], text[20:]])


SPELLINGS: dict[str, Callable[[Parts], str | None]] = {
    "addr": _addr,
    "ip": _ip,
    "time": _time,
    "uuid": _uuid,
}
"""By the name of the form, what makes it of a value's parts; None of parts that are none."""
