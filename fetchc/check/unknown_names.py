"""The refusal of names that mean nothing at the probe site, with what there is."""

from __future__ import annotations

from fetchc.check.habits import name_meant
from fetchc.check.scope import visible
from fetchc.check.suggest import nearest
from fetchc.diag.diagnostic import reject
from fetchc.program.demangle import readable
from fetchc.program.types import UnknownType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Site
    from fetchc.diag.diagnostic import CompileError
    from fetchc.source import Span

__all__ = ["unknown"]


def unknown(site: Site, name: str, span: Span) -> CompileError:
    """The refusal of a name that means nothing here, with what there is."""
    if site.static is not None and (site.function is None or site.function.die is None):
        return reject(
            "FC0201",
            f"`{name}` means nothing at `{site.static.whole_name}`: the file says of its code "
            "only what is handed over there",
            span,
            "no debug information",
            help="use `$arg1`, `$arg2`, …: `fetchc variables` lists them",
        )
    if site.function is None and site.program.has_debug_info:
        return reject(
            "FC0201",
            f"`{name}` means nothing at a bare address",
            span,
            "no function is known here",
            help="name the function with --function, or use registers: `%di`, `$arg1`",
        )
    if site.function is None or site.function.die is None:
        function = site.function  # without an entry, its name is the symbol's
        where = f"{site.address:#x}" if function is None else f"`{readable(function.name)}`"
        notes, help = site.program.debug_info_advice()
        return reject(
            "FC0903",
            f"{where} has no debug information, no name is known there",
            span,
            "unknown name",
            notes=notes,
            help=f"{help}; or use `$arg1`, `%di` with a cast",
        )
    # Go's results without a name (~r0) are asked for by $ret0, its compiler's own (.dict) never.
    named = [v.name.lstrip("&") for v in visible(site, site.function)]
    known = [one for one in named if not one.startswith(("~", "."))]
    close = nearest(name, known)
    listed = ", ".join(filter(None, dict.fromkeys(known)))
    if name == "current" and site.program.in_kernel:
        close = ("$current",)  # the name that kernel code has for it
    elsewhere = name_meant(name, [one.name for one in site.program.parameters(site.function)])
    result = None if listed else site.program.result(site.function)
    made = None if result is None else site.program.type(result)
    why = f" that are known: {made.reason}" if isinstance(made, UnknownType) else ""
    hint = "build it with -g; or use `$arg1`, `%di` with a cast" if why else None
    imported = site.program.imported(name)
    if not named and site.function.language == "go":
        from fetchc.check.go.undescribed import is_assembly

        if is_assembly(site, site.function):
            why = (
                ": it is written in assembly, and its parameters are described where Go code has "
                "it as a function value, from Go 1.17 on"
            )
            hint = "use its words: `$arg1`; or probe what calls it"
    similar = f"a variable with a similar name is visible: `{close[0]}`" if close else None
    return reject(
        "FC0201",
        f"no variable `{name}` is visible at `{site.function.name}`",
        span,
        "unknown name",
        notes=(f"visible here: {listed}" if listed else f"the function has no variables{why}",),
        help="; ".join(
            filter(None, (imported and _of_library(*imported), elsewhere, similar, hint))
        )
        or None,
    )


def _of_library(needed: tuple[str, ...], path: str) -> str:
    # It has a symbol here, and the debug information neither a type nor a declaration.
    where = f"`{path}`" if path else f"one of {', '.join(f'`{one}`' for one in needed)}"
    return (
        "it is another file's, and nothing here describes it: probe a function of "
        f"{where}, which has it"
    )
