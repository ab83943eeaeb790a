"""Values in a form that people write: decimals, points in time, GUIDs, integers of two words.

Each form is made of the numbers of its members, which have other names in other versions.
Sources: dotnet/runtime, src/libraries/System.Private.CoreLib/src/System (Decimal.cs, DateTime.cs,
DateTimeOffset.cs, TimeSpan.cs, DateOnly.cs, TimeOnly.cs, Guid.cs), of which ECMA-335 says nothing;
Rust, library/core/src/time.rs (Duration, its Debug) and library/std/src/time.rs (SystemTime).
"""

from __future__ import annotations

from datetime import date
from struct import pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Numbers = Mapping[str, int]

__all__ = ["NOTATIONS"]

_SECOND = 10**7  # ticks, of 100 ns
_NANOSECONDS = 10**9  # of a second
_EPOCH = date(1970, 1, 1).toordinal() - 1  # days behind the first of January of the year 1
_DAY = 86400 * _SECOND
_MOST_DAYS = date.max.toordinal()
_TICKS = (1 << 62) - 1  # the two bits above are the kind
_UTC = 1
_SIGN, _MOST_SCALE = 1 << 31, 28


def _decimal(parts: Numbers) -> str | None:
    # In 96 bits a whole number, in the flags its sign and how many of its digits are decimals.
    flags, high = parts.get("flags", parts.get("_flags")), parts.get("hi", parts.get("_hi32"))
    low = parts.get("_lo64")
    if low is None and "lo" in parts and "mid" in parts:
        low = (parts["mid"] & 0xFFFFFFFF) << 32 | parts["lo"] & 0xFFFFFFFF
    if flags is None or high is None or low is None:
        return None
    scale = flags >> 16 & 0xFF
    if scale > _MOST_SCALE or flags & ~(_SIGN | 0xFF0000) & 0xFFFFFFFF:
        return None
    digits = str((high & 0xFFFFFFFF) << 64 | low & (1 << 64) - 1).rjust(scale + 1, "0")
    whole = len(digits) - scale
    sign = "-" if flags & _SIGN else ""
    return sign + digits[:whole] + ("." + digits[whole:] if scale else "")


def _clock(ticks: int) -> str:
    seconds, rest = divmod(ticks, _SECOND)
    fraction = f".{rest:07}" if rest else ""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"


def _day(number: int) -> str | None:
    # Day 0 is the first of January of the year 1.
    return date.fromordinal(number + 1).isoformat() if 0 <= number < _MOST_DAYS else None


def _moment(ticks: int) -> str | None:
    days, rest = divmod(ticks, _DAY)
    day = _day(days)
    return None if day is None else f"{day}T{_clock(rest)}"


def _date_time(parts: Numbers) -> str | None:
    data = parts["_dateData"] & (1 << 64) - 1
    made = _moment(data & _TICKS)
    return None if made is None else made + "Z" * (data >> 62 == _UTC)


def _date_time_offset(parts: Numbers) -> str | None:
    # The time is that of Greenwich, the offset is in minutes.
    minutes = parts["_offsetMinutes"]
    made = _moment((parts["_dateData"] & _TICKS) + minutes * 60 * _SECOND)
    if made is None or abs(minutes) > 14 * 60:
        return None
    return f"{made}{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def _time_span(parts: Numbers) -> str:
    ticks = parts["_ticks"]
    days, rest = divmod(abs(ticks), _DAY)
    return ("-" if ticks < 0 else "") + (f"{days}." if days else "") + _clock(rest)


def _date(parts: Numbers) -> str | None:
    return _day(parts["_dayNumber"])


def _time(parts: Numbers) -> str | None:
    ticks = parts["_ticks"]
    return _clock(ticks) if 0 <= ticks < _DAY else None


def _guid(parts: Numbers) -> str:
    last = bytes([parts[f"_{letter}"] & 0xFF for letter in "defghijk"])
    first = pack(">IHH", parts["_a"] & 0xFFFFFFFF, parts["_b"] & 0xFFFF, parts["_c"] & 0xFFFF)
    text = (first + last).hex()
    return "-".join([text[:8], text[8:12], text[12:16], text[16:20], text[20:]])


def _duration(parts: Numbers) -> str | None:
    # In the unit in which it is 1 or more, as Rust writes it.
    seconds, nanoseconds = parts["secs"] & (1 << 64) - 1, parts.get("nanos", parts.get("__0"))
    if nanoseconds is None or not 0 <= nanoseconds < _NANOSECONDS:
        return None
    number = seconds * _NANOSECONDS + nanoseconds
    units = (("s", _NANOSECONDS), ("ms", 10**6), ("µs", 10**3), ("ns", 1))
    unit, each = next((one for one in units if number >= one[1]), units[-1])
    whole, rest = divmod(number, each)
    digits = str(rest).rjust(len(str(each)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}{unit}" if rest else f"{whole}{unit}"


def _unix_time(parts: Numbers) -> str | None:
    seconds, nanoseconds = parts["tv_sec"], parts.get("tv_nsec", parts.get("__0"))
    if nanoseconds is None or not 0 <= nanoseconds < _NANOSECONDS:
        return None
    days, rest = divmod(seconds, 86400)
    day = _day(days + _EPOCH)
    if day is None:
        return None
    fraction = f".{nanoseconds:09}" if nanoseconds else ""
    return f"{day}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}{fraction}Z"


def _wide_integer(parts: Numbers) -> str:
    # An integer of 16 bytes by its words; the upper one has the sign.
    return str(parts["high"] << 64 | parts["low"] & (1 << 64) - 1)


NOTATIONS: dict[str, Callable[[Numbers], str | None]] = {
    "date": _date,
    "date-time": _date_time,
    "date-time-offset": _date_time_offset,
    "decimal": _decimal,
    "duration": _duration,
    "guid": _guid,
    "time": _time,
    "time-span": _time_span,
    "unix-time": _unix_time,
    "wide integer": _wide_integer,
}
"""By the name of the form, what makes it of a value's members; None of numbers that are none."""
