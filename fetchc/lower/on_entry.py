"""The refusals of what is in no place of the function: held on entry alone, or computed."""

from __future__ import annotations

from fetchc.check.locations import place_words
from fetchc.diag.diagnostic import reject
from fetchc.program.entities import Indirect, InMemory, OnEntry, PointerTo, is_on_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.probe_site import Site
    from fetchc.diag.diagnostic import CompileError
    from fetchc.program.entities import Place
    from fetchc.quantities import DwarfRegister
    from fetchc.source import Span

__all__ = ["computed", "lost", "register_of"]


def computed(site: Site, place: PointerTo, span: Span, name: str) -> CompileError:
    """FC0406 for the variable ``name``, whose value is the address ``place``."""
    if is_on_entry(place):
        return lost(site, register_of(place), span, name)
    if not name:
        return reject("FC0406", "this part is an address, and in no memory", span, "computed")
    notes, help = _available(site, name, computed=False)
    return reject(
        "FC0406",
        f"`{name}` cannot be fetched here: it is {_sum(site, place)} and kept in no memory",
        span,
        "no place at this address",
        notes=notes,
        help=help or "no fetch-arg adds: let `fetchc trace` compute it",
    )


def _sum(site: Site, place: PointerTo) -> str:
    match place.target:
        case InMemory(register=register, offset=offset):
            return f"{site.architecture.shown(register)} {offset + place.offset:+d}"
        case Indirect(pointer=pointer, offset=offset):
            inner = place_words(site, pointer).removeprefix("in ")
            return f"what is in {inner} {offset + place.offset:+d}"
        case _:
            return f"computed, {place_words(site, place)},"


def lost(
    site: Site, register: DwarfRegister, span: Span, name: str, reason: str = ""
) -> CompileError:
    """FC0406 for the variable ``name``; ``reason`` says why no caller tells it either."""
    notes, help = _available(site, name)
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


def _available(site: Site, name: str, computed: bool = True) -> tuple[tuple[str, ...], str | None]:
    from fetchc.check.availability import available

    if site.function is not None:
        for variable in site.program.variables(site.function, site.address):
            if variable.name == name:
                return available(site, site.function, variable, computed)
    return (), None


def register_of(place: Place) -> DwarfRegister:
    """The register whose value of the entry ``place`` is made of."""
    match place:
        case OnEntry(register=register):
            return register
        case Indirect(pointer=inner) | PointerTo(target=inner):
            return register_of(inner)
        case _:
            raise AssertionError(f"it is known within the function: {place!r}")
