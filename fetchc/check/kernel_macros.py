"""Members that the source of the kernel has by macros: ``sk->sk_dport``."""

from __future__ import annotations

from fetchc.check.members import find
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.program.types import Member, StructType
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = ["by_macro"]


def by_macro(
    checker: Checker, holder: TypeId, made: StructType, name: str, span: Span
) -> tuple[Member, ...] | None:
    """The members to go through from ``holder``, which is ``made``, to what ``name`` stands for.

    None where it is no such macro of that structure.
    """
    macro = table("kernel/macros")["structures"].get(made.name)
    if macro is None or not name.startswith(macro[0]):
        return None
    beginning, through, own = macro
    path: tuple[Member, ...] = ()
    for step in (*through, own + name.removeprefix(beginning)):
        found = find(checker, holder, step, span)
        if found is None:
            return None
        path += found
        holder = found[-1].type
    return path
