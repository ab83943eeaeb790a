"""The library's face: open a file, take a probe point, compile expressions.

Reading is lazy, and there is no global state. A Program and what comes of it may be used from
several threads: one lock a Program lets one of them read at a time.
"""

from __future__ import annotations

from fetchc.diag.diagnostic import reject

__all__ = ["LONGEST_NAME", "given"]

LONGEST_NAME = 1 << 14  # characters of a name, a glob or a point that somebody gives
_SHOWN = 40  # of them in a message


def given(text: object, what: str, most: int | None = LONGEST_NAME) -> None:
    """Refuse what is no string that can be asked for: FC0101, or FC0102 where it is too long.

    ``what`` is what it is given as: ``a glob``. ``most`` is None where the parser has a bound.
    """
    if not isinstance(text, str):
        raise reject("FC0101", f"{what} is a string, not of type {type(text).__name__}")
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
