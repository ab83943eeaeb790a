"""Where a probe can be set within a range of a function's addresses."""

from __future__ import annotations

from fetchc.diag.diagnostic import CompileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.check.site import Site
    from fetchc.program.entities import Extent, Function
    from fetchc.quantities import Address

__all__ = ["start_within"]


def start_within(site: Site, function: Function, extent: Extent) -> int | None:
    """Bytes from ``function`` to the first instruction that starts in ``extent``, behind the entry.

    GCC begins what holds behind a call one byte before the next instruction, so that the return
    address less one finds it: in the middle of the call. None where no instruction starts there,
    or where nobody can tell.
    """
    program = site.program
    end = function.address + (function.size or 0)
    if program.in_kernel or not function.address <= extent.start < end:
        return None
    from fetchc.code.disassembly import instruction_starts

    code = program.code(function.address, end - function.address)
    try:
        return _first(instruction_starts(code, function.address, program.architecture), extent)
    except CompileError:
        return None  # a hint less: the disassembler is missing, or there are bytes that are no code


def _first(starts: Iterator[Address], extent: Extent) -> int | None:
    begin = next(starts, None)
    if begin is None:
        return None  # no bytes of the file are there
    for start in starts:
        if start >= extent.start:
            return start - begin if start < extent.end else None
    return None
