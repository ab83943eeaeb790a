"""The languages, by the key that debug information gives a function."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.lang.base import Language

__all__ = ["language"]


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
