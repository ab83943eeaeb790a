"""Go functions without debug information: what can be said of how they are called."""

from __future__ import annotations

from fetchc.diag.errors import reject
from fetchc.target.model import GoRules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Site
    from fetchc.program.model import Function
    from fetchc.source import Span

__all__ = ["must_follow_convention"]

# What a program's own table of functions says made them; see fetchc.debuginfo.go.stripped.
_ASSEMBLY = "Go cmd/asm"


def must_follow_convention(site: Site, function: Function, span: Span) -> None:
    """Raise CompileError FC0903 where the function's convention is not known for certain.

    Assembly, and what the linker makes around it, follow the stack convention or the other one, and
    only symbols tell which.
    """
    from fetchc.abi import convention_for

    if function.die is not None or function.language != "go":
        return
    convention = convention_for(site.program, function)
    if not isinstance(convention.rules, GoRules) or not convention.integer_registers:
        return  # one convention for all
    why = ""
    if function.producer.startswith(_ASSEMBLY):
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
            notes=("symbols would tell it, or debug information; this file has none of it",),
            help="use registers and the stack, if you know: `%ax`, `$stack1`",
        )
