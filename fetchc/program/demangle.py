"""Demangles the symbols of C++ and Rust to the names that users write.

``_ZN3ns1S1fEi`` is ``ns::S::f(int)``. The C++ runtime of the machine does it
(``__cxa_demangle``), which nearly every machine has; where there is none, names stay as they
are. Source: Itanium C++ ABI, 5.1 (names), chapter 3.4 (the function).
"""

from __future__ import annotations

from fetchc.ceilings import MANGLED as MANGLED_BYTES
from fetchc.ceilings import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from ctypes import CDLL

__all__ = [
    "MANGLED",
    "demangled",
    "has_runtime",
    "is_mangled",
    "readable",
]

_LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1", "libc++.so.1")
# The second on machines whose C names have an underscore, the third of Rust.
MANGLED = ("_Z", "__Z", "_R")
_RUST_PATHS = "BCIMNXY"  # what is after `_R` in a name of Rust: RFC 2603, `path`
_DIGITS = 4  # of the length of a name
_found: list[Callable[[str], str | None]] = []  # looked for once


def is_mangled(symbol: str) -> bool:
    """Whether the symbol is one of C++ or Rust."""
    return symbol.startswith(MANGLED)


def demangled(symbol: str) -> str | None:
    """The name with its parameters; None for a symbol that is not of C++ or Rust, or malformed.

    A mark that a compiler adds at the end stays: ``f(int) [clone .constprop.0]``.
    """
    if not is_mangled(symbol) or "\0" in symbol or len(symbol) > MANGLED_BYTES:
        return None
    if symbol.startswith("_R") and symbol[2:3] not in _RUST_PATHS:
        return None  # `_RAISE`; the reader of Rust's names is slow to import
    if symbol.startswith("_R") or "17h" in symbol:
        from fetchc.program.demangle_rust import is_rust, rust_name

        if is_rust(symbol):
            return rust_name(symbol)
    if symbol.startswith("_R"):
        return None
    return _runtime()(symbol)


def readable(symbol: str) -> str:
    """The name that :func:`demangled` finds in a symbol, else the symbol itself."""
    return demangled(symbol) or symbol


def _unconstrained(symbol: str) -> str:
    """The symbol without the concepts of its parameters: ``ITk3Numi`` is ``Ii``, ``<int>``.

    clang 18 and later write them, the runtime of gcc before 14 does not know them. A concept with
    scopes or arguments would be counted among the substitutions: it stays, and the symbol too.
    """
    first, *others = symbol.split("Tk")
    for other in others:
        name = other.removeprefix("St")
        digits = name[: len(name) - len(name.lstrip("0123456789"))]
        if not 0 < len(digits) <= _DIGITS or len(name) <= (end := len(digits) + int(digits)):
            return symbol
        if name[end] == "I":
            return symbol
        first += name[end:]
    return first


def has_runtime() -> bool:
    """Whether the machine has a library that demangles names of C++."""
    return _runtime() is not _nothing


def _nothing(symbol: str) -> str | None:
    return None


def _runtime() -> Callable[[str], str | None]:
    if not _found:
        _found.append(_search())
    return _found[0]


def _search() -> Callable[[str], str | None]:
    from ctypes import CDLL

    guard()  # a name of a few letters can repeat itself in gigabytes
    for name in _LIBRARIES:
        try:
            return _of_library(CDLL(name), CDLL(None))
        except (OSError, AttributeError):  # no such library, or one without the function
            continue
    return _nothing


def _of_library(library: CDLL, libc: CDLL) -> Callable[[str], str | None]:
    from ctypes import byref, c_char_p, c_int, c_void_p, string_at

    demangle, free = library.__cxa_demangle, libc.free
    demangle.argtypes = [c_char_p, c_void_p, c_void_p, c_void_p]
    demangle.restype = c_void_p
    free.argtypes = [c_void_p]

    def read(symbol: str) -> str | None:
        status = c_int()
        demangled = demangle(symbol.encode("utf-8", "surrogateescape"), None, None, byref(status))
        if not demangled or status.value:
            plain = _unconstrained(symbol)
            return None if plain == symbol else read(plain)
        text = string_at(demangled).decode("utf-8", "surrogateescape")
        free(demangled)
        return text

    return read
