"""Where in a function a variable is to be had, told where it has no place."""

from __future__ import annotations

from fetchc.diag.diagnostic import reject
from fetchc.program.entities import Absent, FrameRelative, InMemory, InRegister, PointerTo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Site
    from fetchc.diag.diagnostic import CompileError
    from fetchc.program.entities import Extent, Function, Place, Variable
    from fetchc.source import Span

__all__ = ["absent", "available"]

_TRIED = 4  # ranges of a variable, for a place to probe


def absent(site: Site, variable: Variable, place: Absent, span: Span) -> CompileError:
    """The refusal of a variable that has no place at the site; ``place`` says why."""
    notes: tuple[str, ...] = ()
    hint: str | None = None
    elsewhere = place.code in ("FC0401", "FC0406")
    if elsewhere and variable.called is not None and site.address >= variable.called:
        lines, function = site.program.code_map(), site.function
        assert lines is not None
        assert function is not None
        behind = lines.statement_behind(function, site.address)
        hint = None if behind is None else f"probe the statement behind: `--at {behind:#x}`"
    elif elsewhere and site.function is not None and variable.kind != "global":
        notes, hint = available(site, site.function, variable)
        extents = site.program.extents(variable, site.function)
        never = all(isinstance(extent.place, Absent) for extent in extents)
        if not notes and never and place.code == "FC0401" and not site.program.in_kernel:
            notes = ("the compiler gives it no place anywhere in the function: optimised out",)
    why = site.architecture.in_words(place.reason)
    return reject(
        place.code,
        f"`{variable.name.lstrip('&')}` cannot be fetched here: {why}",
        span,
        "no place at this address",
        notes=notes,
        help=hint,
    )


def available(
    site: Site, function: Function, variable: Variable, computed: bool = True
) -> tuple[tuple[str, ...], str | None]:
    """Notes of where in ``function`` a variable is to be had, and help to probe there.

    Without ``computed`` where it is in some place, and not just known how it is made.
    """
    nowhere = Absent if computed else Absent | PointerTo
    hint: str | None = None
    where, later = [], []
    stored = False  # in a slot that is said to be there from the first instruction on
    for extent in site.program.extents(variable, function):
        if not isinstance(_sorted_out(site, function, variable, extent), nowhere):
            low, high = extent.start - function.address, extent.end - function.address
            where.append((low, f"+{low:#x}..+{high:#x} ({_words(site, extent.place)})"))
            if low > 0:
                later.append(extent)
            elif variable.kind == "parameter":
                stored = isinstance(extent.place, InMemory | FrameRelative)
    if not where:
        return (), None
    listed = ", ".join(text for _, text in where[:6])
    more = f" and {len(where) - 6} more" if len(where) > 6 else ""
    if where[0][0] == 0 and not site.entry and variable.kind == "local":
        hint = "probe where its frame is built: `--at body`, or a line"
    elif where[0][0] == 0 and not site.entry:
        option = "--return" if site.returns or site.leaving else "--at"
        hint = f"probe the function's entry: leave out `{option}`"
        if option == "--return":
            hint += "; `fetchc trace --latency` has both ends"
    elif stored and _has_prologue(site, function):
        hint = "probe where it has been stored: `--at body`"
    elif (first := _first_start(site, function, later)) is not None:
        hint = f"probe there: `--at +{first:#x}`"
    return (f"it is available at {listed}{more}",), hint


def _sorted_out(site: Site, function: Function, variable: Variable, extent: Extent) -> Place:
    # Of Go some part of a variable can be there, and which is not said.
    if not site.language.convention_first:
        return extent.place
    from fetchc.check.go.parts import arranged

    return arranged(site, function, variable, extent.place)


def _has_prologue(site: Site, function: Function) -> bool:
    from fetchc.check.evidence import optimised_by_gcc

    return not optimised_by_gcc(function) and site.program.body_address(function) > function.address


def _first_start(site: Site, function: Function, extents: list[Extent]) -> int | None:
    from fetchc.check.starts import start_within

    starts = (start_within(site, function, extent) for extent in extents[:_TRIED])
    return next((start for start in starts if start is not None), None)


def _words(site: Site, place: Place) -> str:
    if isinstance(place, InRegister):
        return site.architecture.shown(place.register)
    return "in memory"
