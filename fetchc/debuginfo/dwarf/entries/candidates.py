"""Bytes that may be an entry, and the proof that they are one.

Searches run over the raw bytes first, since that goes at the speed of memory, and then prove that
what was found is an entry: bytes that merely look like one are frequent enough (a lexical block
has the function's address, too; ``Msg`` ends ``main.Msg``).
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fetchc.debuginfo.dwarf.entries.abbrev import Declaration
    from fetchc.debuginfo.dwarf.entries.units import Unit

    # The bytes of a code, the distance of the value searched for, what the code declares.
    Shape = tuple[bytes, int, Declaration]

__all__ = ["code_bytes", "is_entry", "starts_before"]


def code_bytes(code: int) -> bytes:
    """The shortest ULEB128, which is what every producer writes for abbreviation codes."""
    out = bytearray()
    while code > 0x7F:
        out.append(code & 0x7F | 0x80)
        code >>= 7
    out.append(code)
    return bytes(out)


def starts_before(data: bytes, at: int, shapes: Iterable[Shape]) -> Iterator[int]:
    """Where an entry would start whose value, at a constant distance, is at ``at``."""
    for code, distance, _ in shapes:
        start = at - distance - len(code)
        if start > 0 and data.startswith(code, start):
            yield start


def is_entry(unit: Unit, start: int) -> bool:
    """Whether an entry starts there: only a walk from a known start can tell.

    That DW_AT_sibling is where the subtree ends proves nothing: bytes in front of an entry
    may look like the code of another declaration whose last attributes are the same. In
    Debian's libc, dlerror_run and flush_cleanup are such functions.
    """
    return walk.covering(unit, start) == start
