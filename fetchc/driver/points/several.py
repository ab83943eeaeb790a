"""What is said of a probe with several addresses, where they do not agree."""

from __future__ import annotations

from fetchc.diag.errors import CompileError, reject
from fetchc.diag.model import Diagnostic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.driver.points.found import Found
    from fetchc.source import Span

__all__ = ["apart", "at_address"]

_SHOWN = 4


def at_address(refusal: CompileError, found: Found) -> CompileError:
    """``refusal``, with the one of several addresses that it is about."""
    site = found.site
    where = f"{site.address:#x}"
    if site.function is not None:
        where += f", `{site.function.name}`+{site.address - site.function.address:#x}"
    note = f"this is at {where}; others of its addresses may have it: `--at 0x...`"
    return CompileError(
        tuple(
            [
                Diagnostic(
                    one.code,
                    one.message,
                    one.primary,
                    one.secondary,
                    (*one.notes, note),
                    one.help,
                    one.origin,
                )
                for one in refusal.diagnostics
            ]
        )
    )


def apart(expression: str, span: Span, fetched: Iterable[str]) -> CompileError:
    """The refusal of one fetch-arg for addresses that need several."""
    listed = sorted(fetched)
    shown = [f"`{one}`" for one in listed[:_SHOWN]]
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return reject(
        "FC0312",
        f"`{expression}` is not in one place: the probe has several addresses",
        span,
        "more than one fetch-arg",
        notes=(f"it is fetched by {', '.join(shown)}{more}",),
        help="write a definition for each address: `--format probe`",
    )
