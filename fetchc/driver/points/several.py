"""What is said of a probe with several addresses, where they do not agree."""

from __future__ import annotations

from fetchc.diag.diagnostic import CompileError, Diagnostic, reject
from fetchc.ir.fetch import Bits, type_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fetchc.driver.naming import Named
    from fetchc.driver.points.found import Found
    from fetchc.ir.fetch import Fetch
    from fetchc.source import Span

__all__ = ["apart", "at_address", "require_alike"]

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


def require_alike(places: Sequence[Sequence[Named]]) -> None:
    """Raises CompileError FC0312 where what is fetched at each address is not of one type.

    A kernel takes several definitions of one event only where names and types are the same: a
    static probe in a template, say, hands over what each instance has.
    """
    first = {each.name: _type(each.part.fetch) for each in places[0]}
    for others in places[1:]:
        for each in others:
            if first.get(each.name) == _type(each.part.fetch):
                continue
            types = {
                _type(one.part.fetch) for place in places for one in place if one.name == each.name
            }
            raise reject(
                "FC0312",
                f"`{each.text}` is not of one type: the probe has several addresses",
                notes=(
                    f"it is fetched as {', '.join(f'`{one}`' for one in sorted(types))}",
                    "definitions of one event have the same types",
                ),
                help="`fetchc trace` shows each as what it is there",
            )


def _type(fetch: Fetch) -> str:
    # As the kernel compares types: bits are the number that they are taken from.
    store = fetch.store
    return f"u{store.container}" if isinstance(store, Bits) else type_text(store)
