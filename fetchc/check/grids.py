"""Elements of arrays of several dimensions (.NET), ``a[1, 2]``, and of parts of arrays (Rust too).

How far apart rows are is in the array itself. A fetch-arg does not multiply: it has the elements of
the first row, and a reader that gets the lengths beside the elements has the others. Nor does it
add the index at which a part (a segment, a memory, a queue) begins.
"""

from __future__ import annotations

from fetchc.check import indices
from fetchc.check.typed import Follow, Part
from fetchc.diag.diagnostic import Label, reject
from fetchc.program.types import CellType, PointerType, SequenceType
from fetchc.quantities import ByteOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.source import Span
    from fetchc.syntax import tree

__all__ = ["cell", "grid", "of_window", "refused"]


def grid(checker: Checker, base: Typed) -> tuple[Typed, SequenceType] | None:
    """The array of several dimensions, or the part of one, that ``base`` is or refers to."""
    base = indices.of_library(checker, base, base.span)
    made = checker.resolved(base.type)
    if isinstance(made, PointerType):
        base = Follow(base, made.target, base.span)
        made = checker.resolved(base.type)
    if isinstance(made, SequenceType) and (made.dimensions or made.window):
        return base, made
    return None


def cell(checker: Checker, base: Typed, node: tree.Index) -> Typed:
    """``base[1, 2]``; raises CompileError FC0304 where ``base`` has not as many dimensions."""
    wanted = tuple(index for index in (node.index, *node.further) if isinstance(index, int))
    found = grid(checker, base)
    rank = 1 if found is None else len(found[1].dimensions) or 1
    if found is None or rank != len(wanted):
        raise reject(
            "FC0304",
            f"`{checker.spell(base.type)}` takes {_many(rank)}, not {len(wanted)}",
            node.index_span,
            f"{len(wanted)} given",
            secondary=(Label(base.span, f"this is `{checker.spell(base.type)}`"),),
            help="of arrays in arrays write `a[1][2]`" if found is None else None,
        )
    if min(wanted) < 0:
        raise reject(
            "FC0303",
            f"the index {min(wanted)} is before the first element",
            node.index_span,
            "below zero",
        )
    holder, made = found
    if made.window is None and not any(wanted[:-1]):
        return indices.element(checker, holder, wanted[-1], node.span, node.index_span)
    element = indices.element(checker, holder, 0, node.span, node.index_span).type
    name, size = checker.spell(element), checker.size(element)
    type_id = checker.program.intern(CellType(name, size, made, wanted))
    return Part(holder, ByteOffset(0), None, type_id, node.span)


def _many(count: int) -> str:
    return "1 index" if count == 1 else f"{count} indices"


def refused(node: Typed, made: CellType) -> CompileError:
    """The refusal of an element that no single fetch-arg reaches."""
    if made.array.window is not None:
        return of_window(made.array, node.span)
    first = ", ".join(["0"] * (len(made.indices) - 1) + [str(made.indices[-1])])
    return reject(
        "FC0304",
        "where the row of an array of several dimensions begins takes a multiplication",
        node.span,
        "no fetch-arg multiplies",
        notes=("how long the rows are is in the array, and known when the program runs",),
        help=f"count on from the first row (`[{first}]` is in it), or let `fetchc trace` read it",
    )


def of_window(made: SequenceType, span: Span) -> CompileError:
    """The refusal of elements whose place a fetch-arg would have to count from an index."""
    assert made.window is not None
    start = made.window.start.name
    items = made.elements.name
    if made.window.backwards:
        return reject(
            "FC0304",
            f"the first element of `{made.name}` is the last one of an array",
            span,
            "no fetch-arg subtracts",
            notes=(f"which one that is, is known when the program runs (`.{start}`)",),
            help=f"count from the bottom (`.{items}[0]`), or let `fetchc trace` read it",
        )
    return reject(
        "FC0304",
        f"the elements of `{made.name}` begin at the index `{start}` of an array",
        span,
        "no fetch-arg adds",
        notes=(f"which index that is, is known when the program runs (`.{start}`)",),
        help=f"count from the array's own start (`.{items}[0]`), or let `fetchc trace` read it"
        if not made.window.of_any
        else "let `fetchc trace` read it",
    )
