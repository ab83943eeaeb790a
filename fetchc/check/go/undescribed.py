"""Go functions that nothing describes: what can be said of how they are called."""

from __future__ import annotations

from fetchc.abi import convention_for
from fetchc.diag.diagnostic import reject
from fetchc.target.machines import GoRules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Site
    from fetchc.program.entities import Function
    from fetchc.source import Span

__all__ = ["is_assembly", "must_follow_convention"]

# What a program's own table of functions says made them; see fetchc.debuginfo.go.stripped_program.
_ASSEMBLY = "Go cmd/asm"


def must_follow_convention(site: Site, function: Function, span: Span) -> None:
    """Raise CompileError FC0903 where the function's convention is not known for certain.

    Assembly, and what the linker makes around it, follow the stack convention or the other one, and
    only symbols tell which: not those of functions that are of their file alone.
    """
    if function.language != "go" or (function.die is not None and function.external):
        return
    convention = convention_for(site.program, function)
    if not isinstance(convention.rules, GoRules) or not convention.integer_registers:
        return  # one convention for all
    why = ""
    if function.die is not None:
        if is_assembly(site, function):
            why = "it is written in assembly, for its own file"
    elif function.producer.startswith(_ASSEMBLY):
        why = "it is written in assembly"
    else:
        twins = site.program.functions_named(function.symbol)
        compiled = [
            one
            for one in twins
            if one.symbol == function.symbol and not one.producer.startswith(_ASSEMBLY)
        ]
        if len(compiled) > 1:
            why = "another function of that name takes its calls from assembly, or this one does"
    if why:
        raise reject(
            "FC0903",
            f"nothing says how `{function.name}` is called: {why}",
            span,
            "no known place",
            notes=("of functions that other files call a symbol would tell it",),
            help="use registers and the stack, if you know: `%ax`, `$stack1`",
        )


def is_assembly(site: Site, function: Function) -> bool:
    """Whether a function was written in assembly, of which nothing lists the parameters."""
    # The debug information has no units of assembly's own.
    if site.program.parameters(function):
        return False
    lines = site.program.code_map()
    found = None if lines is None else lines.lines_of(function)
    return found is not None and found[0].endswith(".s")
