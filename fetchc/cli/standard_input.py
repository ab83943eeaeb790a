"""The lines of standard input, for operands that are ``-``."""

from __future__ import annotations

import sys

from fetchc.diag.errors import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["given_lines"]


def given_lines() -> Iterator[str]:
    """Each line without what ends it, and without those that say nothing.

    Bytes that are no UTF-8 are lone surrogates. Raises DebugInfoError FC0901 where it cannot be
    read: it is closed, or a folder.
    """
    if sys.stdin is None:
        raise DebugInfoError("FC0901", "-", "cannot be read: standard input is closed")
    try:
        for raw in sys.stdin.buffer:
            line = raw.decode("utf-8", "surrogateescape").rstrip("\r\n")
            if line.strip():
                yield line
    except OSError as refused:
        raise DebugInfoError("FC0901", "-", f"cannot be read: {refused.strerror}") from None
