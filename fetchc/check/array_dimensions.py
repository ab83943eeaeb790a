"""Arrays of several dimensions (.NET), and parts of arrays (Rust too).

How far apart rows are is in the array itself. A fetch-arg does not multiply: it has the
elements of the first row, and a reader that gets the lengths beside the elements has the
others. Nor does it add the index at which a part (a segment, a memory, a queue) begins.
"""

from __future__ import annotations

from fetchc.check.typed_tree import Pointee, Subobject
from fetchc.diag.diagnostic import reject
from fetchc.program.types import PointerType, SequenceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.program.types import CellType
    from fetchc.source import Span

__all__ = ["grid", "refuse_cell_member", "refuse_grid_element", "refuse_window", "window_room"]


def grid(checker: Checker, base: Typed) -> tuple[Typed, SequenceType] | None:
    """The array of several dimensions, or the part of one, that ``base`` is or leads to."""
    resolved = checker.resolved(base.type)
    if isinstance(resolved, PointerType):
        base = Pointee(base, resolved.target, base.span)
        resolved = checker.resolved(base.type)
    if isinstance(resolved, SequenceType) and (resolved.dimensions or resolved.window):
        return base, resolved
    return None


def window_room(checker: Checker, node: Typed, resolved: SequenceType) -> Typed | None:
    """How many elements the array has that ``node`` goes around in; None where it does not."""
    window, span = resolved.window, node.span
    assert window is not None
    room = window.capacity
    if room is None and window.around:
        array = resolved.elements
        reference = Subobject(node, array.offset, None, array.type, span)
        kind = checker.resolved(array.type)
        assert isinstance(kind, PointerType)
        whole = checker.resolved(kind.target)
        assert isinstance(whole, SequenceType)
        node, room = Pointee(reference, kind.target, span), whole.length
    return None if room is None else Subobject(node, room.offset, None, room.type, span)


def refuse_grid_element(node: Typed, resolved: CellType) -> CompileError:
    """The refusal of an element that no single fetch-arg reaches."""
    if resolved.array.window is not None:
        return refuse_window(resolved.array, node.span)
    first = ", ".join(["0"] * (len(resolved.indices) - 1) + [str(resolved.indices[-1])])
    return reject(
        "FC0304",
        "a row of an array of several dimensions is found by a multiplication",
        node.span,
        "a fetch-arg cannot multiply",
        notes=("the length of the rows is in the array, and only known at run time",),
        help=f"count from the first row (`[{first}]` is in it), or let `fetchc trace` read it",
    )


def refuse_cell_member(resolved: CellType, name: str, span: Span) -> CompileError:
    """The refusal of a member of an element that only a reader finds, which has all of it."""
    window = resolved.array.window
    whole = window is None or window.of_any
    return reject(
        "FC0304",
        f"only the whole element of `{resolved.array.name}` can be read, not its `{name}`",
        span,
        "a member of an element",
        notes=("where the element is depends on numbers that are only known at run time",),
        help=f"let `fetchc trace` show the element: leave out `.{name}`"
        if whole
        else f"`fetchc trace` has it of all elements: `e[:].{name}`",
    )


def refuse_window(resolved: SequenceType, span: Span) -> CompileError:
    """The refusal of elements whose place a fetch-arg would have to count from an index."""
    assert resolved.window is not None
    start = resolved.window.start.name
    items = resolved.elements.name
    if resolved.window.backwards:
        return reject(
            "FC0304",
            f"the first element of `{resolved.name}` is the last one of an array",
            span,
            "a fetch-arg cannot subtract",
            notes=(f"its index (`.{start}`) is only known at run time",),
            help=f"count from the bottom (`.{items}[0]`), or let `fetchc trace` read it",
        )
    return reject(
        "FC0304",
        f"the elements of `{resolved.name}` begin at the index `{start}` of an array",
        span,
        "a fetch-arg cannot add",
        notes=(f"that index (`.{start}`) is only known at run time",),
        help=f"count from the array's own start (`.{items}[0]`), or let `fetchc trace` read it"
        if not resolved.window.of_any
        else "let `fetchc trace` read it",
    )
