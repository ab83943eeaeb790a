"""Numbers, sparse arrays and hash tables of the native format: ReadyToRun's tables are in it.

Source: dotnet/runtime, docs/design/coreclr/botr/readytorun-format.md, "Native Format".
"""

from __future__ import annotations

from struct import Struct, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.byte_reader import Cursor

__all__ = ["array_element", "array_elements", "native_number", "signed_number", "table_entries"]

BLOCK = 16  # elements of an array that share a tree
FOUR_BYTES = Struct("<i").unpack_from
NUMBER_BITS = (0, 7, 14, 21, 28, 32)  # of a number of so many bytes


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


def signed_number(data: bytes, at: int) -> tuple[int, int]:
    """The same in two's complement, and its bytes; of one that is broken off any number."""
    first = data[at]
    size = next((size for size in range(1, 5) if not first >> size - 1 & 1), 5)
    if size < 5:
        value = int.from_bytes(data[at : at + size], "little") >> size
    else:
        value = int.from_bytes(data[at + 1 : at + 5], "little")
    bits = NUMBER_BITS[size]
    return value - (1 << bits) if value >> bits - 1 else value, size


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


def array_elements(cursor: Cursor) -> Iterator[tuple[int, Cursor]]:
    """All elements of a sparse array by their index; ``cursor`` stands at each in turn."""
    head = native_number(cursor)
    count, width = head >> 2, (1, 2, 4, 4)[head & 3]
    base = cursor.offset
    for first in range(0, count, BLOCK):
        cursor.offset = base
        cursor.skip(width * (first // BLOCK))
        block = cursor.unsigned(width)
        cursor.offset = base
        cursor.skip(block)
        # Branches still to be taken: their offset, the bit they are told by, the index so far.
        left = [(cursor.offset, BLOCK >> 1, 0)]
        while left:
            at, bit, index = left.pop()
            cursor.offset = at
            while bit:
                value = native_number(cursor)
                if not value & 3:  # a branch of one element, or of none
                    index = value >> 2 if value >> 2 & -2 * bit == index else BLOCK
                    break
                if value & 2:
                    left.append((at + (value >> 2), bit >> 1, index | bit))
                if not value & 1:
                    index = BLOCK
                    break
                at, bit = cursor.offset, bit >> 1
            if index < BLOCK and first + index < count:
                yield first + index, cursor


def table_entries(cursor: Cursor) -> list[int]:
    """Where the entries of a hash table are, whatever their hash; ``cursor`` is at its start.

    An entry is the low byte of its hash and its distance from there.
    """
    head = cursor.u8()
    width = (1, 2, 4, 4)[head & 3]
    base = cursor.offset
    buckets = 1 << (head >> 2)
    if (buckets + 1) * width > cursor.remaining():
        raise cursor.error(f"{buckets} buckets")
    letter = {1: "B", 2: "H", 4: "I"}[width]
    bounds = list(unpack(f"<{buckets + 1}{letter}", cursor.take(width * (buckets + 1))))
    if bounds != sorted(bounds) or bounds[-1] > cursor.end - base:
        raise cursor.error("buckets that are not in order", base)  # each byte is read once
    data, found = bytes(cursor.data[base : base + bounds[-1]]), []
    at, end = bounds[0], bounds[-1]
    # Buckets lie one behind the other. Tens of thousands of entries: most of them are a byte and
    # a number of three bytes, and four bytes are read at once.
    last = end - 4
    while at < end:
        word = FOUR_BYTES(data, at)[0] if at <= last else 0
        if word & 0x700 == 0x300:
            found.append(base + at + 1 + (word >> 11))
            at += 4
            continue
        at += 1
        value, size = signed_number(data, at) if at < end else (0, 1)
        if at + size > end or data[at] & 31 == 31:
            raise cursor.error("an entry that is broken off", base + at)
        found.append(base + at + value)
        at += size
    return found
