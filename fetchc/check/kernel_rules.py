"""The kernel's rules: members that its source has by macros (``sk->sk_dport``)."""

from __future__ import annotations

from fetchc.check.members import find
from fetchc.check.type_rules import TypeRules
from fetchc.program.types import StructType
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.program.types import Member
    from fetchc.source import Span

__all__ = ["KERNEL"]


def _by_macro(checker: Checker, base: Typed, name: str, span: Span) -> tuple[Member, ...] | None:
    """The members to go through from the structure ``base`` to what the macro ``name`` means.

    None where it is no such macro of that structure.
    """
    resolved, holder = checker.resolved(base.type), base.type
    if not isinstance(resolved, StructType):
        return None
    macro = table("kernel/macros")["structures"].get(resolved.name)
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


KERNEL = TypeRules(accessor=_by_macro)
