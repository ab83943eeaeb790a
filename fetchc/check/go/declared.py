"""Go's variables between the first instruction and the line that declares them.

A variable with one slot for the whole function has bytes of an earlier call there until its
declaration has run, and the debug information says nothing of that but the line. Where the
compiler follows values from instruction to instruction, its list of places knows.

Source: Go 1.15 to 1.27, cmd/compile/internal/dwarfgen/dwarf.go (createSimpleVars: one place,
without a range), ssagen/ssa.go (zeroResults: results are zeroed in front of the first statement).
"""

from __future__ import annotations

from bisect import bisect_right

from fetchc.diag.diagnostic import reject
from fetchc.program.entities import Absent, FrameRelative, Indirect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Site
    from fetchc.program.entities import Function, Place, Variable
    from fetchc.quantities import Address
    from fetchc.source import Span

__all__ = ["has_slot_for_result", "in_scope", "require_declared"]


def has_slot_for_result(site: Site, function: Function, variable: Variable) -> bool:
    """Whether a named result is a variable like others between the entry and the return."""
    if not site.language.convention_first or variable.name.startswith("~"):
        return False
    # Optimised code describes most not at all, and some of Go 1.16 in slots that it does not use.
    return "-N" in function.producer.replace(";", " ").split()


def in_scope(site: Site, function: Function, known: list[Variable]) -> Variable:
    """Which of the variables of one name, those first that hide later ones, the name means here.

    A block has its variables from its beginning on, the language only behind their declarations.
    The cell of a parameter that escapes to the heap (``&x``) is made by the first line.
    """
    if not (site.entry or site.leaving):
        rows = _rows(site, function)
        here = _line_at(rows, site.address)
        for variable in known:
            if here is None or not _is_pending(site, rows, here, variable, known):
                return variable
    return known[0]


def _is_pending(
    site: Site,
    rows: list[tuple[Address, int]],
    here: int,
    variable: Variable,
    known: list[Variable],
) -> bool:
    assert site.function is not None
    if variable.kind != "local" or not variable.line or here > variable.line:
        return False
    passed = any(one.kind != "local" and one.line == variable.line for one in known)
    if not passed and not rows[0][1] < variable.line <= max(line for _, line in rows):
        return False  # an inlined call's own lines are elsewhere
    if variable.name.startswith("&"):
        return True  # where it is says nothing of what is in it
    place = site.program.place(variable, site.function, site.address)
    return isinstance(place, Absent) or _has_one_slot(site, variable)


def require_declared(site: Site, function: Function, variable: Variable, span: Span) -> None:
    """Raise CompileError FC0401 where the code of the variable's line has not run at the site."""
    if variable.captured is not None or not variable.line or not _has_one_slot(site, variable):
        return
    rows = _rows(site, function)
    here = _line_at(rows, site.address)
    if here is None:
        return
    first, last = rows[0][1], max(line for _, line in rows)
    if variable.kind == "result":
        first -= 1  # declared by the function's own line
    # An inlined call's own lines are elsewhere, and so are those of what a closure captured.
    if not first < variable.line <= last or variable.line < here:
        return
    behind = min((line for _, line in rows if line > variable.line), default=None)
    raise reject(
        "FC0401",
        f"`{variable.name.lstrip('&')}` cannot be fetched here: its declaration on line "
        f"{variable.line} has not run yet",
        span,
        f"no value on line {here}",
        help=None if behind is None else f"probe a line behind it: `--at :{behind}`",
    )


def _rows(site: Site, function: Function) -> list[tuple[Address, int]]:
    # Where each visit of a line begins, by address.
    code = site.program.code_map()
    known = None if code is None else code.lines_of(function)
    lines = {} if known is None else known[1]
    return sorted((start, line) for line, starts in lines.items() for start in starts)


def _line_at(rows: list[tuple[Address, int]], address: Address) -> int | None:
    row = bisect_right([start for start, _ in rows], address) - 1
    return None if row < 0 else rows[row][1]


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
