"""The refusal of values in registers that the kernel does not save for a probe."""

from __future__ import annotations

from fetchc.diag.diagnostic import reject
from fetchc.program.entities import Absent, AtAddress, FrameRelative, Indirect, InMemory, Pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.probe_site import Site
    from fetchc.diag.diagnostic import CompileError
    from fetchc.program.entities import Function, Place
    from fetchc.quantities import DwarfRegister
    from fetchc.source import Span

__all__ = ["unsaved"]

_NOTE = "the kernel saves the general registers for a probe, no vector or x87 ones"


def unsaved(site: Site, register: DwarfRegister, span: Span, name: str) -> CompileError:
    """FC0402, with where in the function the variable ``name`` (may be empty) is in memory."""
    notes = [_NOTE]
    help = "probe where the value is in memory: `fetchc variables FUNCTION --at +N`"
    if site.returns or site.leaving:
        help = "probe where the caller has stored it: `--at FILE:LINE` of what is behind the call"
    elif site.entry and site.function is not None and name:
        point = _in_memory(site, site.function, name)
        if point is None:
            notes.append("the debug information has it in memory nowhere in the function")
            help = "probe a function that stores it, or is passed its address"
        else:
            help = f"probe where it is in memory: `--at {point}`"
    return reject(
        "FC0402",
        f"the value is in {site.architecture.shown(register)}",
        span,
        "no probe can read it",
        notes=tuple(notes),
        help=help,
    )


def _in_memory(site: Site, function: Function, name: str) -> str | None:
    from fetchc.check.availability import start_within
    from fetchc.check.locations import optimised_by_gcc

    for variable in site.program.parameters(function):
        if variable.name != name:
            continue
        for extent in site.program.extents(variable, function):
            if not _is_memory(extent.place):
                continue
            if not optimised_by_gcc(function):
                # LLVM states slots from before the instructions on that fill them.
                if extent.start < site.program.body_address(function) < extent.end:
                    return "body"
            elif extent.start > function.address:
                start = start_within(site, function, extent)
                if start is not None:
                    return f"+{start:#x}"
    return None


def _is_memory(place: Place) -> bool:
    if isinstance(place, Pieces):
        found = [one.place for one in place.pieces if not isinstance(one.place, Absent)]
        return bool(found) and all(_is_memory(one) for one in found)
    return isinstance(place, InMemory | FrameRelative | Indirect | AtAddress)
