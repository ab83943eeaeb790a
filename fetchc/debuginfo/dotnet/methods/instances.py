"""Precompiled code of generic methods: which instantiation each entry of the table is of.

Source: dotnet/runtime, docs/design/coreclr/botr/readytorun-format.md, "Instance entry points".
"""

from __future__ import annotations

from bisect import bisect_right

from fetchc.debuginfo.dotnet.image.ready_to_run import function_index
from fetchc.debuginfo.dotnet.metadata.signatures import SignatureReader
from fetchc.debuginfo.dotnet.metadata.tables import compressed_number
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from mmap import mmap

    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly
    from fetchc.debuginfo.dotnet.metadata.signatures import Signature

__all__ = ["GenericCode", "generic_code"]

# Flags of an entry.
UNBOXING, INSTANTIATING, METHOD_ARGUMENTS = 1, 2, 4
MEMBER_REFERENCE, OWNER, CONTEXT = 0x10, 0x40, 0x80
LONGEST = 4096  # bytes of an entry's signature


class GenericCode(Record):
    """An instantiation: the method's row, its type where that is not plain, type arguments.

    ``function`` is the piece of code. ``unboxing``: a stub that takes a boxed value.
    """

    method: int
    owner: Signature | None
    arguments: tuple[Signature, ...]
    function: int
    unboxing: bool


def generic_code(assembly: Assembly, rows: Collection[int] = ()) -> Iterator[GenericCode]:
    """The instantiations of methods that the assembly itself declares.

    ``rows``: of these methods alone, and then not all entries have to be read.
    """
    native, image = assembly.native, assembly.image
    entries = [] if native is None else native.instances()
    if rows and entries:
        entries = _mentioning(image.data, sorted(entries), rows)
    for start in entries:
        cursor = image.at(start - image.start, "INSTANCE_ENTRYPOINTS")
        data = bytes(cursor.data[start : min(start + LONGEST, cursor.end)])
        reader = SignatureReader(assembly.metadata, data)
        flags = reader.number()
        if flags & CONTEXT:
            reader.number()
        owner = reader.type() if flags & OWNER else None
        method = reader.number()
        if rows and method not in rows:
            continue
        count = reader.number() if flags & METHOD_ARGUMENTS else 0
        arguments = tuple([reader.type() for _ in range(min(count, LONGEST))])
        if flags & (MEMBER_REFERENCE | CONTEXT):
            continue  # a method of another assembly: its rows are not ours
        cursor.skip(reader.at)
        stub = bool(flags & (UNBOXING | INSTANTIATING))
        yield GenericCode(method, owner, arguments, function_index(cursor), stub)


def _mentioning(data: mmap | bytes, entries: list[int], rows: Collection[int]) -> list[int]:
    # The entries that have the number of one of the methods somewhere, as signatures write it.
    # The bytes can stand for something else: who reads them sees it.
    found = set[int]()
    end = min(entries[-1] + LONGEST, len(data))
    for row in rows:
        number = compressed_number(row)
        at = data.find(number, entries[0], end)
        while at >= 0:
            holder = entries[bisect_right(entries, at) - 1]
            if at - holder < LONGEST:
                found.add(holder)
            at = data.find(number, at + 1, end)
    return sorted(found)
