"""The refusal of what a register held on entry, where nothing in the function has it any more."""

from __future__ import annotations

from fetchc.diag.errors import reject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Site
    from fetchc.diag.errors import CompileError
    from fetchc.source import Span
    from fetchc.units import DwarfRegister

__all__ = ["lost"]


def lost(
    site: Site, register: DwarfRegister, span: Span, name: str, reason: str = ""
) -> CompileError:
    """FC0406 for the variable ``name``; ``reason`` says why no caller tells it either."""
    from fetchc.check.scope import available

    notes: tuple[str, ...] = ()
    help: str | None = None
    if site.function is not None:
        for variable in site.program.variables(site.function, site.address):
            if variable.name == name:
                notes, help = available(site, site.function, variable)
                break
    if not reason:
        reason = "what its callers pass is known in `fetchc trace` alone"
    return reject(
        "FC0406",
        f"`{name}` cannot be fetched here: it is what {site.architecture.shown(register)} held on "
        "entry and kept in no memory",
        span,
        "no place at this address",
        notes=(*notes, reason),
        help=help or "probe the function's entry: leave out `--at`",
    )
