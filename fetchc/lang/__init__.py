"""The languages, by the key that debug information gives a function."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.lang.base import Language
    from fetchc.program.entities import Function

__all__ = ["language", "language_at", "language_by_symbol"]


def language(key: str) -> Language:
    """Rules of the language ``key``; what has no record of its own is read as C."""
    if key == "go":
        from fetchc.lang.go_language import GO

        return GO
    if key == "gccgo":
        from fetchc.lang.gccgo_language import GCCGO

        return GCCGO
    if key == "dotnet":
        from fetchc.lang.dotnet_language import DOTNET

        return DOTNET
    if key == "rust":
        from fetchc.lang.rust_language import RUST

        return RUST
    from fetchc.lang.c_language import CPLUSPLUS, OTHER, C

    return {"c": C, "c++": CPLUSPLUS}.get(key, OTHER)


def language_at(function: Function | None) -> Language:
    """Rules of the code of ``function``; those of C without a function."""
    return language("c" if function is None else function.language)


def language_by_symbol(function: Function) -> Language:
    """Rules of ``function``; without debug information by its symbol: C++ has ``_Z``."""
    key = function.language
    return language("c++" if not key and function.symbol.startswith("_Z") else key)
