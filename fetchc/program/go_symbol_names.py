"""Names of Go's functions, as its linker writes them."""

from __future__ import annotations

__all__ = [
    "ALIASES",
    "INTEGERS",
    "MOVED",
    "customary_package",
    "package_of",
    "without_tags",
    "without_type_arguments",
]

ALIASES = {
    "byte": "uint8",
    "rune": "int32",
    "any": "interface {}",
    "interface{}": "interface {}",
}
"""What people call types, and the debug information's names."""

INTEGERS = {
    **dict(enumerate(("int", "int8", "int16", "int32", "int64"), start=2)),
    **dict(enumerate(("uint", "uint8", "uint16", "uint32", "uint64", "uintptr"), start=7)),
}
"""Kinds of whole numbers, by the low five bits of DW_AT_go_kind (reflect.Kind)."""

MOVED = {
    f"os.{name}": f"io/fs.{name}" for name in ("DirEntry", "FileInfo", "FileMode", "PathError")
}
"""Types that are of another package than people know them by, from Go 1.16 on (os/types.go)."""


def without_type_arguments(name: str) -> str:
    """``main.(*Stack).Push`` of ``main.(*Stack[go.shape.int]).Push``.

    Type arguments have dots, slashes and brackets of their own: ``Map[go.shape.[]a/b.T]``.
    """
    if "[" not in name:
        return name
    characters = []
    depth = 0
    for character in without_tags(name):
        depth += character == "["
        if depth == 0:
            characters.append(character)
        depth -= character == "]" and depth > 0
    return "".join(characters)


def without_tags(name: str) -> str:
    """The name without the tags of structures' fields, which hold any character."""
    if '"' not in name:
        return name
    import re

    return re.sub(r' "(?:[^"\\]|\\.)*"', "", name)


def package_of(symbol: str) -> str:
    """Import path of a symbol: ``github.com/miekg/dns`` of ``github.com/miekg/dns.(*Msg).Pack``.

    Source: cmd/link names symbols ``path.name``; dots of the path's last element are
    escaped (%2e), so the first dot after the last slash ends the path. Type arguments
    may hold slashes and are cut off first.
    """
    plain = symbol.split("[", 1)[0]
    slash = plain.rfind("/") + 1
    dot = plain.find(".", slash)
    return plain if dot < 0 else plain[:dot]


def customary_package(path: str) -> str:
    """What the package clause says by custom, for units that do not tell.

    ``dns`` of ``github.com/miekg/dns`` and ``example.com/dns/v2``, ``yaml`` of
    ``gopkg.in/yaml.v3``.
    """
    elements = path.split("/")
    if len(elements) > 1 and _is_version(elements[-1]):
        elements.pop()
    return elements[-1].partition(".")[0]


def _is_version(element: str) -> bool:
    # The last element of a module's path from its second version on: v2.
    number = element[1:]
    return element.startswith("v") and number.isascii() and number.isdecimal()
