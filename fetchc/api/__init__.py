"""The library's face: open a file, take a probe point, compile expressions.

Reading is lazy, and there is no global state. A Program and what comes of it may be used from
several threads: one lock a Program lets one of them read at a time.
"""

from __future__ import annotations

from fetchc.diag.diagnostic import reject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LONGEST_NAME", "expect", "expect_all", "given"]

LONGEST_NAME = 1 << 14  # characters of a name, a glob or a point that somebody gives
_SHOWN = 40  # of them in a message


def expect(value: object, wanted: type | tuple[type, ...], what: str) -> None:
    """Raise TypeError where ``value`` is no ``wanted``; ``what`` says what it has to be."""
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is int):
        raise TypeError(f"{what}, not of type {type(value).__name__}")


def expect_all(values: Iterable[object], wanted: type | tuple[type, ...], what: str) -> None:
    """The same for each of several ``values``; a string is not taken for its characters."""
    if isinstance(values, str | bytes) or not hasattr(type(values), "__iter__"):
        raise TypeError(f"{what} are a list, not of type {type(values).__name__}")
    for value in values:
        expect(value, wanted, f"each of {what} is {_words(wanted)}")


def _words(wanted: type | tuple[type, ...]) -> str:
    named = wanted if isinstance(wanted, tuple) else (wanted,)
    return " or ".join({str: "a string", int: "a number"}.get(one, one.__name__) for one in named)


def given(text: object, what: str, most: int | None = LONGEST_NAME) -> None:
    """Refuse what is no string that can be asked for: FC0101, or FC0102 where it is too long.

    ``what`` is what it is given as: ``a glob``. ``most`` is None where the parser has a bound.
    Raises TypeError for what is no string.
    """
    if not isinstance(text, str):
        raise TypeError(f"{what} is a string, not of type {type(text).__name__}")
    if most is None:
        return
    if len(text) > most:
        begin = f"`{text[:_SHOWN]}…` has {len(text):,}"
        raise reject("FC0102", f"{what} has at most {most:,} characters: {begin}")
    if not text.isascii():
        try:
            text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as half:
            raise reject("FC0101", f"half a character in {what}, at {half.start}") from None
