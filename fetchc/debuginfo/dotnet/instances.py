"""Precompiled code of generic methods: which instantiation each entry of the table is of.

Source: dotnet/runtime, docs/design/coreclr/botr/readytorun-format.md, "Instance entry points".
"""

from __future__ import annotations

from fetchc.debuginfo.dotnet.ready_to_run import function_index
from fetchc.debuginfo.dotnet.signatures import SignatureReader
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dotnet.assembly import Assembly
    from fetchc.debuginfo.dotnet.signatures import Signature

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


def generic_code(assembly: Assembly) -> Iterator[GenericCode]:
    """All instantiations of methods that the assembly itself declares."""
    if assembly.native is None:
        return
    for cursor in assembly.native.instances():
        start = cursor.offset
        data = bytes(cursor.data[start : min(start + LONGEST, cursor.end)])
        reader = SignatureReader(assembly.metadata, data)
        flags = reader.number()
        if flags & CONTEXT:
            reader.number()
        owner = reader.type() if flags & OWNER else None
        method = reader.number()
        count = reader.number() if flags & METHOD_ARGUMENTS else 0
        arguments = tuple([reader.type() for _ in range(min(count, LONGEST))])
        if flags & (MEMBER_REFERENCE | CONTEXT):
            continue  # a method of another assembly: its rows are not ours
        cursor.skip(reader.at)
        stub = bool(flags & (UNBOXING | INSTANTIATING))
        yield GenericCode(method, owner, arguments, function_index(cursor), stub)
