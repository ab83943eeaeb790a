"""Demangles Rust's symbols, legacy and v0, to the names in the source.

``_ZN3app3run17h0123456789abcdefE`` (legacy) and ``_RNvCs1234_3app3run`` (v0) are ``app::run``,
without hashes and crate numbers. A v0 name is a tree in prefix order. Source: RFC 2603;
https://doc.rust-lang.org/rustc/symbol-mangling/v0.html; rustc_symbol_mangling/src/legacy.rs.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["V0", "Malformed", "is_rust", "rust_name"]

_PATH = re.compile(r"\w+::")  # a type that a method is named after without brackets
_BASIC = {
    "a": "i8", "b": "bool", "c": "char", "d": "f64", "e": "str", "f": "f32", "h": "u8",
    "i": "isize", "j": "usize", "l": "i32", "m": "u32", "n": "i128", "o": "u128", "p": "_",
    "s": "i16", "t": "u16", "u": "()", "v": "...", "x": "i64", "y": "u64", "z": "!",
}  # fmt: skip
_POINTERS = {"R": "&", "Q": "&mut ", "P": "*const ", "O": "*mut "}
_PATH_TAGS = frozenset("CMXYNI")  # all of `path` but `B`, which may refer to any type
_LENGTH = re.compile(r"[0-9]{1,6}")
_NUMBER = re.compile(r"([0-9A-Za-z]{0,40})_")  # a hash has 11 digits
_IDENTIFIER = re.compile(rf"(?:s{_NUMBER.pattern})?(u?)({_LENGTH.pattern})_?")
_DEEPEST = 128  # parts in each other; only a hostile name has more
_LONGEST = 1 << 16  # characters that are written; references back make more of a few


class Malformed(Exception):
    """The name is none, or not read: it is shown as it is."""


def _matched(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str]:
    found = pattern.match(text, at)
    if found is None:
        raise Malformed
    return found


def _base_62(digits: str) -> int:
    if not digits:
        return 0
    number = 0
    for digit in digits:
        value = int(digit) if digit.isdecimal() else ord(digit) - (87 if digit >= "a" else 29)
        number = number * 62 + value
    return number + 1


def _decoded(name: str) -> str:
    # Punycode, with `_` for its `-`.
    head, mark, tail = name.rpartition("_")
    return f"{head}{'-' if mark else ''}{tail}".encode().decode("punycode")


class V0:
    """A reader of one name of the v0 scheme."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._written = 0
        self._paths: dict[tuple[int, bool], str] = {}  # by where they begin

    def name(self) -> str:
        """The whole name; Malformed, ValueError or IndexError where it is none."""
        return self._path(in_value=True)

    def _next(self) -> str:
        character = self._text[self._at]
        self._at += 1
        return character

    def _take(self, character: str) -> bool:
        if not self._text.startswith(character, self._at):
            return False
        self._at += 1
        return True

    def _number(self) -> int:
        # Base 62, ended by `_`: nothing is 0, `0` is 1.
        digits = _matched(_NUMBER, self._text, self._at)
        self._at = digits.end()
        return _base_62(digits[1])

    def _identifier(self) -> tuple[str, str | None]:
        # The name, and the digits that tell it from others of that name, if any.
        found = _matched(_IDENTIFIER, self._text, self._at)
        ordinal, encoded, size = found.groups()
        begin = found.end()
        self._at = end = begin + int(size)
        name = self._text[begin:end]
        if end > len(self._text):
            raise Malformed
        return _decoded(name) if encoded else name, ordinal

    def _plain(self) -> str:
        # An identifier without a disambiguator (`s`).
        if self._take("s"):
            raise Malformed
        return self._identifier()[0]

    def _again(self, read: Callable[[], str], in_value: bool = False) -> str:
        # What was written before, by its place.
        where = self._number()
        known = self._paths.get((where, in_value))
        if known is not None:
            return known
        if where >= self._at - 1:
            raise Malformed
        back, self._at = self._at, where
        found = read()
        self._at = back
        return found

    def _enter(self) -> None:
        # A part in another one: they have an end, and so has what references back make of them.
        self._depth += 1
        if self._depth > _DEEPEST or self._written > _LONGEST:
            raise Malformed

    def _leave(self, found: str) -> str:
        self._written += len(found)
        self._depth -= 1
        return found

    def _path(self, in_value: bool = False) -> str:
        self._enter()
        begin = self._at
        tag = self._text[begin]
        self._at = begin + 1
        if tag == "N":
            found = self._nested(self._next(), in_value)
        elif tag == "C":
            found = self._identifier()[0]
        elif tag == "B":
            found = self._again(lambda: self._path(in_value), in_value)
        else:
            found = self._path_of(tag, in_value)
        self._paths[begin, in_value] = found
        return self._leave(found)

    def _path_of(self, tag: str, in_value: bool) -> str:
        match tag:
            case "M":
                self._implementation()
                name = self._type()
                return name if _PATH.match(name) else f"<{name}>"
            case "X":
                self._implementation()
                return self._of_trait()
            case "Y":
                return self._of_trait()
            case "I":
                path = self._path(in_value)
                arguments = ", ".join(self._until_end(self._argument))
                return f"{path}{'::' if in_value else ''}<{arguments}>"
            case _:
                raise Malformed

    def _implementation(self) -> None:
        if self._take("s"):
            self._number()
        self._path()

    def _of_trait(self) -> str:
        name = self._type()
        return f"<{name} as {self._path()}>"

    def _nested(self, space: str, in_value: bool) -> str:
        path = self._path(in_value)
        name, ordinal = self._identifier()
        if space.isupper():
            kind = {"C": "closure", "S": "shim"}.get(space, space)
            number = 0 if ordinal is None else _base_62(ordinal) + 1
            return f"{path}::{{{kind}{':' if name else ''}{name}#{number}}}"
        return f"{path}::{name}" if name else path

    def _until_end(self, read: Callable[[], str]) -> list[str]:
        found: list[str] = []
        while not self._take("E"):
            found.append(read())
            if len(found) > _LONGEST:
                raise Malformed
        return found

    def _argument(self) -> str:
        if self._take("L"):
            self._number()
            return "'_"
        return self._constant() if self._take("K") else self._type()

    def _type(self) -> str:
        tag = self._text[self._at]
        if tag in _PATH_TAGS:
            return self._path()
        self._at += 1
        basic = _BASIC.get(tag)
        if basic is not None:
            return basic
        self._enter()
        if tag == "B":
            return self._leave(self._again(self._type))
        return self._leave(self._type_of(tag))

    def _type_of(self, tag: str) -> str:
        if tag in _POINTERS:
            if tag in "RQ" and self._take("L"):
                self._number()
            return _POINTERS[tag] + self._type()
        match tag:
            case "A":
                element = self._type()
                return f"[{element}; {self._constant()}]"
            case "S":
                return f"[{self._type()}]"
            case "T":
                parts = self._until_end(self._type)
                return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
            case "F":
                return self._function()
            case "D":
                return self._dynamic()
            case _:
                raise Malformed

    def _binder(self) -> None:
        if self._take("G"):
            self._number()

    def _function(self) -> str:
        self._binder()
        unsafe = "unsafe " * self._take("U")
        convention = ""
        if self._take("K"):
            name = "C" if self._take("C") else self._plain().replace("_", "-")
            convention = f'extern "{name}" '
        parameters = ", ".join(self._until_end(self._type))
        result = self._type()
        return f"{unsafe}{convention}fn({parameters}){'' if result == '()' else f' -> {result}'}"

    def _dynamic(self) -> str:
        self._binder()
        bounds = " + ".join(self._until_end(self._trait))
        if not self._take("L"):
            raise Malformed
        self._number()
        return f"dyn {bounds}"

    def _trait(self) -> str:
        path = self._path()
        bindings = []
        while self._take("p"):
            name = self._plain()
            bindings.append(f"{name} = {self._type()}")
        if not bindings:
            return path
        inside = ", ".join(bindings)
        return f"{path[:-1]}, {inside}>" if path.endswith(">") else f"{path}<{inside}>"

    def _constant(self) -> str:
        self._enter()
        return self._leave(self._constant_of())

    def _constant_of(self) -> str:
        if self._take("p"):
            return "_"
        if self._take("B"):
            return self._again(self._constant)
        kind = self._type()
        negative = self._take("n")
        start = self._at
        while self._next() != "_":
            pass
        number = int(self._text[start : self._at - 1] or "0", 16)
        if kind == "bool":
            return str(bool(number)).lower()
        if kind == "char":
            return repr(chr(number))
        return f"-{number}" if negative else str(number)


_LEGACY = re.compile(r"_ZN.*17h[0-9a-f]{16}E")

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
