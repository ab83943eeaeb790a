"""Numbers and sparse arrays of the native format, which ReadyToRun's tables are written in.

Source: dotnet/runtime, docs/design/coreclr/botr/readytorun-format.md, "Native Format".
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.cursor import Cursor

__all__ = ["array_element", "native_number", "signed_number"]

BLOCK = 16  # elements of an array that share a tree
NUMBER_BITS = {1: 7, 2: 14, 3: 21, 4: 28, 5: 32}  # of a number of so many bytes


def native_number(cursor: Cursor) -> int:
    """An unsigned number: how many low bits of its first byte are set says how long it is."""
    first = cursor.u8()
    for size in range(4):
        if not first >> size & 1:
            rest = int.from_bytes(cursor.take(size), "little")
            return first >> size + 1 | rest << 7 - size
    if first & 16:
        raise cursor.error(f"a number that begins with {first:#x}", cursor.offset - 1)
    return cursor.u32()


def signed_number(cursor: Cursor) -> int:
    """The same in two's complement."""
    start = cursor.offset
    value = native_number(cursor)
    bits = NUMBER_BITS[cursor.offset - start]
    return value - (1 << bits) if value >> bits - 1 else value


def array_element(cursor: Cursor, index: int) -> Cursor | None:
    """``cursor``, at the start of a sparse array, moved to an element; None where it has none.

    Every 16 elements share a binary tree over the low four bits of their index.
    """
    head = native_number(cursor)
    count, width = head >> 2, (1, 2, 4, 4)[head & 3]
    if not 0 <= index < count:
        return None
    base = cursor.offset
    cursor.skip(width * (index // BLOCK))
    block = cursor.unsigned(width)
    cursor.offset = base
    cursor.skip(block)
    bit = BLOCK >> 1
    while bit:
        at = cursor.offset
        value = native_number(cursor)
        if index & bit:
            if value & 2:
                cursor.offset = at
                cursor.skip(value >> 2)
                bit >>= 1
                continue
        elif value & 1:
            bit >>= 1
            continue
        return cursor if not value & 3 and value >> 2 == index & BLOCK - 1 else None
    return cursor
