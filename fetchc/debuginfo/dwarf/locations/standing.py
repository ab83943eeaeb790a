"""Whether a function's frame stands at an address, as its debug information takes for granted."""

from __future__ import annotations

from fetchc.debuginfo.dwarf.locations.frame import cfa_at
from fetchc.program.entities import Absent, FrameRelative

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.debuginfo.elf.elf_file import Elf
    from fetchc.program.entities import Function, Place
    from fetchc.quantities import Address

__all__ = ["stands"]


def stands(
    elf: Elf,
    base: Place | None,
    body_address: Callable[[], Address],
    function: Function,
    address: Address,
) -> bool:
    """Whether ``base``, what DW_AT_frame_base describes, is the function's own at ``address``.

    A base that is a register (LLVM's) is the caller's in front of the body of the function, and
    again where the frame is taken down: there the call-frame information has another rule than in
    the body. Where it has none, the body's beginning counts. Where the body begins is read out of
    the whole line table: only bases that are registers have it asked for.
    """
    if base is None or isinstance(base, FrameRelative):
        return True
    start, body = function.address, body_address()
    if start <= address < body:
        return False
    rule = cfa_at(elf, body, start)
    return isinstance(rule, Absent) or cfa_at(elf, address, start) == rule
