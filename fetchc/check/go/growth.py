"""What a Go call loses when it has to let its stack grow first.

The code that lets the stack grow, or passes the goroutine's turn on, enters the function anew. It
keeps all registers with arguments, or none where the function uses no argument at all. The debug
information has such parameters in their registers as if nothing happened.

There is no better place to probe: what stands in front of the check runs twice in such a call, and
what stands behind it finds the registers overwritten.
"""

from __future__ import annotations

from fetchc.diag.diagnostic import Diagnostic, Label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Site
    from fetchc.program.entities import Function
    from fetchc.source import Span

__all__ = ["lost_by_growth"]


def lost_by_growth(site: Site, function: Function, name: str, span: Span) -> Diagnostic:
    """The warning that ``name``, in registers at the entry, is not there in some calls."""
    note = f"`{function.name}` uses none of its parameters in registers, and Go keeps none of them"
    if site.address == function.address:
        advice = "such a call hits again, with the same `$goid`: the first of the hits has it"
    else:
        advice = "`--at +0` counts such a call twice, the first time with its parameters"
    return Diagnostic(
        "FC0623",
        f"`{name}` is lost in calls that have to let the stack grow, or the scheduler in, first",
        Label(span, "not in every call"),
        notes=(note, "`trace` tells such a call, and has `(fault)` there"),
        help=advice,
    )
