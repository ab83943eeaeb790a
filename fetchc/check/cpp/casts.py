"""Casts between pointers to a class and to a base of it: the address moves, as in C++.

Source: C++17, [expr.cast] and [expr.static.cast]: a cast between related classes is one along
the inheritance, whatever its spelling.
"""

from __future__ import annotations

from fetchc.check.typed import Shift
from fetchc.diag.diagnostic import reject
from fetchc.program.types import PointerType, StructType, UnknownType
from fetchc.quantities import ByteOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = ["along"]

_DEEPEST = 16  # classes below each other; only a cyclic, hostile type has more


def along(
    checker: Checker, wanted: TypeId, pointer: Typed, source: TypeId, target: TypeId, span: Span
) -> Typed | None:
    """``pointer``, which leads to a ``source``, as ``wanted``, a pointer to a ``target``.

    None where both are at the same address or not related: then a cast reads the same address as
    another type. Raises CompileError FC0306 for the way back from a virtual base, FC0208 where a
    base is there several times.
    """
    down, up = _places(checker, source, target), _places(checker, target, source)
    if not down and not up:
        return None
    if len(down) + len(up) > 1:
        ways = [
            f"by {sign * at}"
            for sign, found in ((1, down), (-1, up))
            for way, at in found
            if not way
        ]
        ways += [f"to the virtual base `{way}`" for way, _ in (*down, *up) if way]
        raise reject(
            "FC0208",
            f"`{checker.spell(target)}` and `{checker.spell(source)}` are related in "
            f"{len(down) + len(up)} ways",
            span,
            "which one is meant",
            notes=(f"the address would move {', '.join(ways)}",),
            help="name the base in between, by a cast to it first",
        )
    ((way, at),) = down or up
    if way and up:
        raise _virtual(checker, target, source, span)
    if way:
        from fetchc.check.cpp.virtual_bases import pointer_to_virtual_base

        found = pointer_to_virtual_base(checker, wanted, pointer, source, (way, at), span)
        if found is None:
            raise _virtual(checker, source, target, span)
        return found
    offset = at if down else -at
    return Shift(pointer, ByteOffset(offset), wanted, span) if offset else None


def _places(checker: Checker, derived: TypeId, base: TypeId) -> list[tuple[str, int]]:
    """Where objects of ``base`` are in one of ``derived``, that class itself left out.

    Each is a number of bytes from the object's start or from the virtual base of that name, of
    which an object has one, however often it is named.
    """
    name = _name(checker, base)
    found: list[tuple[str, int]] = []
    level = {(checker.bare(derived), "", 0)} if name else set()
    for _ in range(_DEEPEST):
        below = set()
        for type_id, way, at in level:
            made = checker.resolved(type_id)
            for step in made.members if isinstance(made, StructType) else ():
                # A base class is embedded and has a name, other than anonymous members.
                inner = checker.resolved(step.type)
                if not step.embedded or not step.name or isinstance(inner, PointerType):
                    continue
                place, kind = (way, at + step.offset), step.type
                if isinstance(inner, UnknownType):
                    place = (inner.name, 0)
                    if inner.name == name:
                        found.append(place)
                    if inner.target is None:
                        continue
                    kind = inner.target
                elif _name(checker, kind) == name:
                    found.append(place)
                below.add((checker.bare(kind), *place))
        level = below
    return list(dict.fromkeys(found))


def _name(checker: Checker, type_id: TypeId) -> str:
    made = checker.resolved(type_id)
    return made.name if isinstance(made, StructType) else ""


def _virtual(checker: Checker, derived: TypeId, base: TypeId, span: Span) -> CompileError:
    return reject(
        "FC0306",
        f"`{checker.spell(base)}` is a virtual base of `{checker.spell(derived)}`, or in one",
        span,
        "how far apart they are is only known at run time",
        notes=("a fetch-arg adds constants only, and that distance is in the object's table",),
        help="probe a function that is passed the pointer as the type that you want",
    )
