"""Casts between pointers to a class and to a base of it: the address moves, as in C++.

Source: C++17, [expr.cast] and [expr.static.cast]: a cast between related classes is one along
the inheritance, whatever its spelling.
"""

from __future__ import annotations

from fetchc.diag.errors import reject
from fetchc.program.types import PointerType, StructType, UnknownType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.diag.errors import CompileError
    from fetchc.source import Span
    from fetchc.units import TypeId

__all__ = ["moved_by"]

_DEEPEST = 16  # classes below each other; only a cyclic, hostile type has more


def moved_by(checker: Checker, source: TypeId, target: TypeId, span: Span) -> int:
    """Bytes by which a pointer to ``source`` moves to become one to ``target``.

    0 where the classes are not related: then a cast reads the same address as another type.
    Raises CompileError FC0306 for a virtual base, FC0208 where a base is there several times.
    """
    down = _offsets(checker, source, target, span, upward=True)
    up = [] if down else _offsets(checker, target, source, span, upward=False)
    found = sorted({*down, *[-offset for offset in up]})
    if len(found) > 1:
        raise reject(
            "FC0208",
            f"`{checker.spell(target)}` and `{checker.spell(source)}` are related in "
            f"{len(found)} ways",
            span,
            "which one is meant",
            notes=(f"the address would move by {', '.join(map(str, found))}",),
            help="name the base in between, by a cast to it first",
        )
    return found[0] if found else 0


def _offsets(
    checker: Checker, derived: TypeId, base: TypeId, span: Span, upward: bool
) -> list[int]:
    # Where objects of ``base`` are in one of ``derived``, that class itself left out.
    name = _name(checker, base)
    if not name:
        return []
    found = []
    level = [(checker.bare(derived), 0)]
    for _ in range(_DEEPEST):
        below = []
        for type_id, at in level:
            made = checker.resolved(type_id)
            for step in made.members if isinstance(made, StructType) else ():
                # A base class is embedded and has a name, other than anonymous members.
                if not step.embedded or not step.name:
                    continue
                inner = checker.resolved(step.type)
                if isinstance(inner, UnknownType):
                    if inner.name == name:
                        slot = inner.slot if upward and at == 0 else None
                        raise _virtual(checker, derived, base, slot, span)
                elif not isinstance(inner, PointerType):
                    if _name(checker, step.type) == name:
                        found.append(at + step.offset)
                    below.append((checker.bare(step.type), at + step.offset))
        level = below
    return found


def _name(checker: Checker, type_id: TypeId) -> str:
    made = checker.resolved(type_id)
    return made.name if isinstance(made, StructType) else ""


def _virtual(
    checker: Checker, derived: TypeId, base: TypeId, slot: int | None, span: Span
) -> CompileError:
    help = "probe a function that is passed the pointer as the type that you want"
    if slot is not None:
        help = (
            f"`(*(long **)p)[{slot}]` is that distance: in a trace with `--filter "
            f"'(*(long **)p)[{slot}] == N'` write `({checker.spell(base)} *)((char *)p + N)`"
        )
    return reject(
        "FC0306",
        f"`{checker.spell(base)}` is a virtual base of `{checker.spell(derived)}`",
        span,
        "how far apart they are is only known at run time",
        notes=("a fetch-arg adds constants only, and that distance is in the object's table",),
        help=help,
    )
