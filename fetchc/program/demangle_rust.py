"""The names that Rust's compiler makes of functions, as people write them.

``_ZN3app3run17h0123456789abcdefE`` and ``_RNvCs1234_3app3run`` are ``app::run``. Hashes and the
numbers of crates are left out. Source: rustc, compiler/rustc_symbol_mangling/src/legacy.rs.
"""

from __future__ import annotations

import re

from fetchc.program.demangle_rust_v0 import V0, Malformed

__all__ = ["is_rust", "rust_name"]

_LEGACY = re.compile(r"_ZN.*17h[0-9a-f]{16}E")
_LENGTH = re.compile(r"[0-9]{1,6}")
_ESCAPES = {"LT": "<", "GT": ">", "RF": "&", "BP": "*", "SP": "@", "LP": "(", "RP": ")", "C": ","}
_ESCAPED = re.compile(r"\$(?:([A-Z]+)|u([0-9a-f]{1,6}))\$")


def is_rust(symbol: str) -> bool:
    """Whether a symbol is one of Rust, by what it begins and ends with."""
    return (symbol.startswith("_R") and symbol[2:3].isalpha()) or (
        symbol.startswith("_ZN") and _LEGACY.match(symbol) is not None
    )


def rust_name(symbol: str) -> str | None:
    """The name with its path; None of what cannot be read."""
    try:
        if symbol.startswith("_R"):
            return V0(symbol[2:].partition(".")[0]).name()
        return _legacy(symbol)
    except (Malformed, ValueError, IndexError, OverflowError):
        return None


def _legacy(symbol: str) -> str:
    at, parts = 3, []
    while (digits := _LENGTH.match(symbol, at)) is not None:
        end = digits.end() + int(digits[0])
        if end > len(symbol):
            raise Malformed
        parts.append(_unescaped(symbol[digits.end() : end]))
        at = end
    if not symbol.startswith("E", at) or len(parts) < 2:
        raise Malformed
    return "::".join(parts[:-1])


def _unescaped(part: str) -> str:
    part = part.removeprefix("_") if part.startswith("_$") else part
    part = part.replace("..", "::")
    return _ESCAPED.sub(
        lambda found: _ESCAPES.get(found[1], found[0]) if found[1] else chr(int(found[2], 16)), part
    )
