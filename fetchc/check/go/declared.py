"""Go's variables between the first instruction and the line that declares them.

A variable with one slot for the whole function has bytes of an earlier call there until its
declaration has run, and the debug information says nothing of that but the line. Where the
compiler follows values from instruction to instruction, its list of places knows.

Source: Go 1.15 to 1.27, cmd/compile/internal/dwarfgen/dwarf.go (createSimpleVars: one place,
without a range), ssagen/ssa.go (zeroResults: results are zeroed in front of the first statement).
"""

from __future__ import annotations

from bisect import bisect_right

from fetchc.diag.errors import reject
from fetchc.program.places import FrameRelative, Indirect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Site
    from fetchc.program.model import Function, Variable
    from fetchc.program.places import Place
    from fetchc.source import Span

__all__ = ["has_slot_for_result", "require_declared"]


def has_slot_for_result(site: Site, function: Function, variable: Variable) -> bool:
    """Whether a named result is a variable like others between the entry and the return."""
    if not site.language.convention_first or variable.name.startswith("~"):
        return False
    # Optimised code describes most not at all, and some of Go 1.16 in slots that it does not use.
    return "-N" in function.producer.replace(";", " ").split()


def require_declared(site: Site, function: Function, variable: Variable, span: Span) -> None:
    """Raise CompileError FC0401 where the code of the variable's line has not run at the site."""
    if variable.captured is not None or not variable.line or not _has_one_slot(site, variable):
        return
    code = site.program.code_map()
    known = None if code is None else code.lines_of(function)
    if known is None:
        return
    rows = sorted((start, line) for line, starts in known[1].items() for start in starts)
    row = bisect_right([start for start, _ in rows], site.address) - 1
    if row < 0:
        return
    first, last, here = rows[0][1], max(known[1]), rows[row][1]
    if variable.kind == "result":
        first -= 1  # declared by the function's own line
    # An inlined call's own lines are elsewhere, and so are those of what a closure captured.
    if not first < variable.line <= last or variable.line < here:
        return
    behind = min((line for line in known[1] if line > variable.line), default=None)
    raise reject(
        "FC0401",
        f"`{variable.name.lstrip('&')}` cannot be fetched here: its declaration on line "
        f"{variable.line} has not run yet",
        span,
        f"no value on line {here}",
        help=None if behind is None else f"probe a line behind it: `--at :{behind}`",
    )


def _has_one_slot(site: Site, variable: Variable) -> bool:
    function = site.function
    assert function is not None
    extents = site.program.extents(variable, function)
    if len(extents) != 1 or not _is_slot(extents[0].place):
        return False
    end = function.address + (function.size or 0)
    return extents[0].start <= function.address and end <= extents[0].end


def _is_slot(place: Place) -> bool:
    return isinstance(place, FrameRelative) or (
        isinstance(place, Indirect) and _is_slot(place.pointer)
    )
