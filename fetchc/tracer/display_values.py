"""Values with a display form of their own; to a program, and in JSON, each is a plain value."""

from __future__ import annotations

from struct import pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from fetchc.tracer.events import Value

    Numbers = Mapping[str, int]
    Faults = list[str]
    Make = Callable[[bytes, Faults], Value]
    Parts = Mapping[str, Value]

__all__ = [
    "NOTATIONS",
    "SPELLINGS",
    "Character",
    "CodeAddress",
    "CutList",
    "CutString",
    "CutStructure",
    "EntryCount",
    "Enumerator",
    "FloatQuantity",
    "Hexadecimal",
    "Nanoseconds",
    "NoAddress",
    "Quantity",
    "ReturnAddress",
    "SymbolName",
    "Tuple",
    "Variant",
    "WalkedList",
    "duration",
    "escaped",
    "printed",
    "spelled",
    "what_is_cut",
]


class Hexadecimal(int):
    """A number that people read in hexadecimal: an address."""

    __slots__ = ()


class NoAddress(Hexadecimal):
    """The bits of a pointer that can lead nowhere: garbage, poison, an error number."""

    __slots__ = ()


class CodeAddress(Hexadecimal):
    """The address of a function that has no name (yet)."""

    __slots__ = ()


class ReturnAddress(CodeAddress):
    """The address after a call, in a function that has no name (yet)."""

    __slots__ = ()


class Nanoseconds(int):
    """A length of time, which people read in the unit in which it is 1 or more."""

    __slots__ = ()


class Quantity(int):
    """A number of a ``unit``, such as ``ms``."""

    unit: str

    def __new__(cls, number: int, unit: str) -> Quantity:
        """The number, and what people read for it."""
        created = super().__new__(cls, number)
        created.unit = unit
        return created


class FloatQuantity(float):
    """A floating-point number of a ``unit``."""

    unit: str

    def __new__(cls, number: float, unit: str) -> FloatQuantity:
        """The number, and what people read for it."""
        created = super().__new__(cls, number)
        created.unit = unit
        return created


class EntryCount(int):
    """The number of entries of a map, or of a channel with ``room`` for so many."""

    room: int | None
    is_nil: bool

    def __new__(cls, number: int, room: int | None = None, is_nil: bool = False) -> EntryCount:
        """The number, and what people read beside it."""
        created = super().__new__(cls, number)
        created.room, created.is_nil = room, is_nil
        return created


class SymbolName(str):
    """The name of the object at an address, shown without quotes."""

    __slots__ = ()


class Character(str):
    """One character; ``number`` is its code, as signed as its type."""

    number: int

    def __new__(cls, text: str, number: int) -> Character:
        """The text that people read, and the code."""
        created = super().__new__(cls, text)
        created.number = number
        return created


class Enumerator(dict[str, "Value"]):
    """``{"name": ..., "value": ...}`` of an enumeration; the name is None for other numbers."""

    __slots__ = ()


class Tuple(list["Value"]):
    """The parts of a tuple, which people write in parentheses."""

    __slots__ = ()


class Variant(dict[str, "Value"]):
    """A variant of an enum by its name, with the list or the object of its fields.

    ``single``: what it has is no list of fields but its one field.
    """

    single: bool

    def __init__(self, name: str, fields: Value, single: bool) -> None:
        super().__init__({name: fields})
        self.single = single


class CutString(str):
    """The beginning of a string; ``length`` is that of all of it in bytes, None if unknown."""

    length: int | None

    def __new__(cls, text: str, length: int | None) -> CutString:
        """The text that is left, and the length of the whole one."""
        created = super().__new__(cls, text)
        created.length = length
        return created


class CutStructure(dict[str, "Value"]):
    """A structure without the members ``left``, which no probe fetches."""

    left: tuple[str, ...]

    def __init__(self, members: dict[str, Value], left: tuple[str, ...]) -> None:
        super().__init__(members)
        self.left = left


class Unavailable(dict[str, "Value"]):
    """A variable that cannot be fetched at the probe: the reason, under ``unavailable``."""

    def __init__(self, reason: str) -> None:
        super().__init__(unavailable=reason)


class CutList(list["Value"]):
    """The first elements of a list; ``length`` is the number of all.

    ``last``: the last ones, as of a stack, whose newest element is behind all others.
    """

    length: int
    last: bool

    def __init__(self, values: list[Value], length: int, last: bool = False) -> None:
        super().__init__(values)
        self.length = length
        self.last = last


class WalkedList(CutList):
    """The first elements of a container that was walked.

    There are ``length`` of them in all or, if not ``ended``, at least so many. ``changed``: it was
    another one after the walk, so that elements may be missing or twice.
    """

    ended: bool
    changed: bool

    def __init__(self, values: list[Value], length: int, ended: bool, changed: bool) -> None:
        super().__init__(values, length)
        self.ended = ended
        self.changed = changed


# ------------------------------------------------------------------------------
# Values of .NET and Rust as people write them: decimals, times, GUIDs, integers of two words.
#
# Each form is built from the numbers of its members, which have other names in other versions.
# Sources: dotnet/runtime, src/libraries/System.Private.CoreLib/src/System (Decimal.cs,
# DateTime.cs, DateTimeOffset.cs, TimeSpan.cs, DateOnly.cs, TimeOnly.cs, Guid.cs);
# ECMA-335 says nothing of these. Rust, library/core/src/time.rs (Duration, its Debug) and
# library/std/src/time.rs (SystemTime).

_SECOND = 10**7  # ticks, of 100 ns
_NANOSECONDS = 10**9  # of a second
_EPOCH = 719162  # days from the first of January of the year 1 to that of 1970
_DAY = 86400 * _SECOND
_MOST_DAYS = 3652059  # up to the end of the year 9999
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
    from datetime import date  # most traces show none

    return date.fromordinal(number + 1).isoformat() if 0 <= number < _MOST_DAYS else None


def _moment(ticks: int) -> str | None:
    days, rest = divmod(ticks, _DAY)
    day = _day(days)
    return None if day is None else f"{day}T{_clock(rest)}"


def _date_time(parts: Numbers) -> str | None:
    data = parts["_dateData"] & (1 << 64) - 1
    moment = _moment(data & _TICKS)
    return None if moment is None else moment + "Z" * (data >> 62 == _UTC)


def _date_time_offset(parts: Numbers) -> str | None:
    # The time is that of Greenwich, the offset is in minutes.
    minutes = parts["_offsetMinutes"]
    moment = _moment((parts["_dateData"] & _TICKS) + minutes * 60 * _SECOND)
    if moment is None or abs(minutes) > 14 * 60:
        return None
    return f"{moment}{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


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


def _x87_extended(parts: Numbers) -> str | None:
    # Source: Intel SDM 1, 4.2.2: the highest bit of the mantissa is in it.
    mantissa, upper = parts["low"] & (1 << 64) - 1, parts["high"] & 0xFFFF
    exponent = upper & 0x7FFF
    if exponent and not mantissa >> 63:
        return None  # since the 80387 no number
    return _float_text(upper >> 15, mantissa, exponent, 64)


def _binary128(parts: Numbers) -> str:
    # Source: IEEE 754-2008, 3.4: the highest bit of the mantissa is not stored.
    low, high = (parts[name] & (1 << 64) - 1 for name in ("low", "high"))
    exponent = high >> 48 & 0x7FFF
    mantissa = (high & (1 << 48) - 1) << 64 | low
    return _float_text(high >> 63, mantissa | bool(exponent) << 112, exponent, 113)


def _float_text(negative: int, mantissa: int, exponent: int, bits: int) -> str:
    # The fewest digits that are this number and no other of `bits` bits, as Python writes a float.
    from decimal import Context, Decimal
    from fractions import Fraction

    sign = "-" if negative else ""
    if exponent == 0x7FFF:
        return f"{sign}Infinity" if mantissa == 1 << bits - 1 else "NaN"
    if not mantissa:
        return f"{sign}0.0"
    unit = Fraction(2) ** (max(exponent, 1) - 0x3FFF - (bits - 1))
    value = mantissa * unit
    finer = 2 if mantissa == 1 << bits - 1 else 1  # below a power of two they are closer
    digits, found = 0, Decimal(0)
    while round(Fraction(found) / unit * finer) != mantissa * finer:
        digits += 1
        found = Context(digits).divide(Decimal(value.numerator), Decimal(value.denominator))
    if not -5 < found.adjusted() < 16:
        return f"{sign}{found:e}"
    text = f"{found:f}"
    return f"{sign}{text}" if "." in text else f"{sign}{text}.0"


NOTATIONS: dict[str, Callable[[Numbers], str | None]] = {
    "binary128": _binary128,
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
    "x87 extended": _x87_extended,
}
"""By the name of the form, what makes it of a value's members; None of numbers that are none."""


# ------------------------------------------------------------------------------
# Values as Go prints them: times, durations, IP addresses, UUIDs.
#
# Source: Go, src/time/time.go (Time, Duration.String), src/net/ip.go (IP.String),
# src/net/netip/netip.go (Addr.String); RFC 3339, RFC 5952, RFC 9562.

_SECOND_NS = 10**9  # nanoseconds
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
    if number < _SECOND_NS:
        unit, each = next(one for one in _UNITS if number >= one[1])
        return f"{sign}{_spelled_decimal(number, each)}{unit}"
    minutes, rest = divmod(number, 60 * _SECOND_NS)
    hours, minutes = divmod(minutes, 60)
    before = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{before}{_spelled_decimal(rest, _SECOND_NS)}s"


_UNITS = (("ms", 10**6), ("µs", 10**3), ("ns", 1))


def _spelled_decimal(number: int, each: int) -> str:
    whole, rest = divmod(number, each)
    digits = str(rest).rjust(len(str(each)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}" if rest else str(whole)


def _spelled_time(parts: Parts) -> str | None:
    # In UTC, as RFC 3339 has it: what the location would make of it is not looked at.
    wall, ext = parts["wall"], parts["ext"]
    if not isinstance(wall, int) or not isinstance(ext, int):
        return None
    nanoseconds = wall & (1 << 30) - 1
    seconds = _SINCE_1885 + (wall >> 30 & (1 << 33) - 1) if wall & _MONOTONIC else ext
    days, rest = divmod(seconds, 86400)
    from datetime import date

    if nanoseconds >= _SECOND_NS or not 0 <= days < date.max.toordinal():
        return None
    day = date.fromordinal(days + 1).isoformat()
    second = _spelled_decimal(rest % 60 * _SECOND_NS + nanoseconds, _SECOND_NS)
    padded = "0" * (rest % 60 < 10) + second
    return f"{day}T{rest // 3600:02}:{rest // 60 % 60:02}:{padded}Z"


def _ip(parts: Parts) -> str | None:
    content = parts["bytes"]
    if not isinstance(content, list) or isinstance(content, CutList):
        return None
    octets = bytes([one for one in content if isinstance(one, int)])
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
    # "4", "6", "" of no address; None where it is not known.
    if "z" in parts:
        pointer = parts["z"]
        if not pointer:
            return ""
        if pointer in (parts["z4"], parts["z6noz"]):
            return "4" if pointer == parts["z4"] else "6"
        zone = parts.get("zone")
        return "6" if isinstance(zone, str) and not isinstance(zone, CutString) else None
    if isinstance(parts["zone"], CutString):
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
    content = parts["bytes"]
    if not isinstance(content, list) or len(content) != 16:
        return None
    text = bytes([one for one in content if isinstance(one, int)]).hex()
    return "-".join([text[:8], text[8:12], text[12:16], text[16:20], text[20:]])


SPELLINGS: dict[str, Callable[[Parts], str | None]] = {
    "addr": _addr,
    "ip": _ip,
    "time": _spelled_time,
    "uuid": _uuid,
}
"""By the name of the form, what makes it of a value's parts; None of parts that are none."""


# ------------------------------------------------------------------------------
# Values as one line, whatever the traced memory holds, and safe on a terminal.

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
_MORE = "…"


def printed(value: Value, faults: Container[str] | None = None, path: str = "") -> str:
    """``value`` on one line; ``path`` is what ``faults`` call it.

    Texts are in double quotes, with ``…`` after what was cut; lists are ``[1, 2]``, tuples
    ``(1, 2)``, structures ``{x=1, y=2}`` (``{x=1, …}`` without some of their members), variants
    ``Some(3)`` and ``Circle{r=2}``, enumerators their names, lengths of time ``1.5s``, maps and
    channels of Go ``map[2]``, ``chan 1/4`` and ``nil map``. Addresses
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
        case Quantity(unit=unit):
            return f"{value:d}{unit}"
        case FloatQuantity(unit=unit):
            return f"{float(value)!r}{unit}"
        case EntryCount(room=room):
            if value.is_nil:
                return "nil map" if room is None else "nil chan"
            return f"map[{value:d}]" if room is None else f"chan {value:d}/{room}"
        case int():
            return str(value)
        case float():
            return repr(value)
        case SymbolName():
            return escaped(value)
        case str():
            return f'"{escaped(value)}"' + _MORE * isinstance(value, CutString)
        case Tuple():
            each = enumerate(value)
            shown = [printed(one, faults, f"{path}[{index}]") for index, one in each]
            return f"({', '.join(shown)}{',' * (len(shown) == 1)})"
        case list():
            each = enumerate(value)
            shown = [printed(one, faults, f"{path}[{index}]") for index, one in each]
            if isinstance(value, CutList):
                more = what_is_cut(value)
                shown = [more, *shown] if value.last else [*shown, more]
            return f"[{', '.join(shown)}]"
        case Enumerator():
            name = value["name"]
            return escaped(name) if isinstance(name, str) else str(value["value"])
        case Variant():
            ((name, payload),) = value.items()
            inside = printed(payload, faults, f"{path}.{name}")
            return escaped(name) + (f"({inside})" if value.single or payload is None else inside)
        case Unavailable():
            return f"(not available: {value['unavailable']})"
        case dict():
            members = [
                f"{escaped(name)}={printed(one, faults, f'{path}.{name}')}"
                for name, one in value.items()
            ]
            return f"{{{', '.join(members + [_MORE] * isinstance(value, CutStructure))}}}"


def what_is_cut(value: CutList) -> str:
    """What stands for the elements of a list that are not in it."""
    if not isinstance(value, WalkedList):
        return _MORE
    changed = "(changed meanwhile)" if value.changed else ""
    if value.ended and len(value) >= value.length:
        return changed
    return f"{_MORE}(of {value.length}{'' if value.ended else ' or more'}){changed}"


def escaped(text: str) -> str:
    r"""``text`` without quotes: what is no printable character is written as C writes it.

    ``\xNN`` is a byte that is no part of UTF-8; ``\u202e`` and the like are control characters,
    those that turn the direction of text round, and what has no meaning yet.
    """
    if text.isprintable() and "\\" not in text and '"' not in text:
        return text
    return "".join([_character(one) for one in text])


def _character(character: str) -> str:
    escape = _ESCAPES.get(character)
    if escape is not None:
        return escape
    if character.isprintable():
        return character
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:  # a byte, preserved by the error handler surrogateescape
        return f"\\x{number - 0xDC00:02x}"
    if number < 0x80:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
