"""What of a pattern's functions the running kernel lets be probed: a glob asks for those alone.

A function that was named is another matter: its refusal is the answer.
"""

from __future__ import annotations

from fetchc.cli.tracing.targets import LeftOut, Targets
from fetchc.diag.diagnostic import Diagnostic
from fetchc.tracer.install import PROBED, file_of
from fetchc.tracer.kallsyms import BLACKLIST, SYMBOLS, several, untraceable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.tracer.tracefs import Tracefs

__all__ = ["traceable"]


def traceable(
    targets: Targets,
    tracefs: Tracefs,
    blacklist: str = BLACKLIST,
    symbols: str = SYMBOLS,
) -> Targets:
    """``targets`` without the kernel's functions that it would refuse, where a glob chose them.

    Both probes of a call are left out together.
    """
    lines = {
        each.plan.definitions[0]: each.plan.function or ""
        for each in targets.chosen
        if each.plan.event in targets.by_glob
        if file_of(each.plan.definitions[0]) != PROBED[0]
    }
    if not lines:
        return targets
    refused: dict[str, Diagnostic] = {}
    for line, diagnostic in several(lines, symbols).items():
        refused.setdefault(lines[line], diagnostic)
    for line, notes in untraceable(tracefs, lines, blacklist).items():
        told = Diagnostic("FC0705", f"the kernel refuses a probe of `{lines[line]}`", notes=notes)
        refused.setdefault(lines[line], told)
    chosen = tuple(
        [
            each
            for each in targets.chosen
            if each.plan.event not in targets.by_glob or each.plan.function not in refused
        ]
    )
    left_out = tuple([LeftOut(name, "", (why,)) for name, why in refused.items()])
    return Targets(
        chosen, targets.left_out + left_out, targets.told, targets.by_glob, targets.without
    )
