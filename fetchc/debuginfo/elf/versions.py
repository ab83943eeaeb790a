"""Versions of the symbols that a library exports: `memcpy@GLIBC_2.2.5`, `memcpy@@GLIBC_2.14`.

Source: Linux Standard Base 5.0, Core, chapter 10.7 (symbol versioning). .gnu.version has a number
for each symbol of .dynsym, its highest bit set where programs are not linked to that version any
more; .gnu.version_d has the versions' names.
"""

from __future__ import annotations

from fetchc.debuginfo.elf.symbols import symbol_table
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.elf.image import Image
    from fetchc.debuginfo.elf.sections import Section

__all__ = ["versions"]

_HIDDEN = 0x8000
_MOST = 4096  # versions of a library


def versions(image: Image) -> dict[tuple[str, Address], str]:
    """What stands behind each name in .dynsym, by name and address: ``@V1`` or ``@@V2``."""
    table, numbers = symbol_table(image, ".dynsym"), image.open_section(".gnu.version")
    defined = image.open_section(".gnu.version_d")
    if table is None or numbers is None or defined is None:
        return {}
    names = _names(defined, table.names)
    found: dict[tuple[str, Address], str] = {}
    listed = numbers.cursor(0)
    for (name, value, *_), _ in zip(table.entries(), range(numbers.size // 2), strict=False):
        number = listed.unsigned(2)
        version = names.get(number & ~_HIDDEN)
        if version is not None:
            text = table.names.cstring(name).decode("utf-8", "surrogateescape")
            found[text, Address(value)] = ("@" if number & _HIDDEN else "@@") + version
    return found


def _names(defined: Section, strings: Section) -> dict[int, str]:
    # The first one is the file itself, with the flag VER_FLG_BASE.
    names: dict[int, str] = {}
    at = 0
    for _ in range(_MOST):
        cursor = defined.cursor(at)
        _, flags, number, _ = (cursor.unsigned(2) for _ in range(4))
        _, first, following = (cursor.unsigned(4) for _ in range(3))
        if not flags & 1:
            name = strings.cstring(defined.cursor(at + first).unsigned(4))
            names[number] = name.decode("utf-8", "surrogateescape")
        if not following:
            return names
        at += following
    raise defined.error(f"more than {_MOST} versions")
