"""Numbers and objects that a reader makes or picks: a fetch-arg cannot add, divides or compares."""

from __future__ import annotations

from fetchc.check.typed_tree import Computed, Dispatched, Either
from fetchc.diag.diagnostic import CompileError, reject
from fetchc.ir.fetch import body
from fetchc.lower.fetches import Lowered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed

__all__ = ["made_of", "refused"]


def made_of(
    checker: Checker, node: Computed | Either | Dispatched, whole: bool
) -> tuple[Lowered, ...]:
    """What the value is made of, each an argument; refused where one fetch-arg has to be it."""
    if isinstance(node, Either):
        raise _picked(checker, node)
    if isinstance(node, Dispatched):
        raise _dispatched(checker, node)
    if not whole:
        raise _summed(checker, node)
    found: list[Lowered] = []
    counted = [term for term in node.terms if term.times]
    for number, term in enumerate(counted):
        for name, one in (("", term.number), ("less", term.less)):
            if one is not None:
                word = _one(checker, one)
                suffix = f"{name}{number or ''}"
                found.append(Lowered(suffix, word.fetch, word.decode, one.type))
    return tuple(found)


def refused(node: Computed | Either | Dispatched) -> CompileError:
    """The refusal of more of it than the value."""
    made = isinstance(node, Computed)
    return reject(
        "FC0312",
        "which object it is, is only known at run time"
        if not made
        else "the number is not stored anywhere",
        node.span,
        "computed" if made else "one of several places",
        help="put it at the end of the expression, and use `fetchc trace`",
        reason="several fetch-args",
    )


def _one(checker: Checker, node: Typed) -> Lowered:
    from fetchc.lower.lowering import lower

    (one,) = lower(checker, node, None, whole=False)
    return one


def _words(checker: Checker, node: Computed) -> str:
    written = ""
    for term in node.terms:
        if not term.times:
            continue
        shown = f"`{body(_one(checker, term.number).fetch)}`"
        if term.less is not None:
            shown = f"({shown} less `{body(_one(checker, term.less).fetch)}`)"
        divided = f", divided by {term.each}" if term.each > 1 else ""
        times = abs(term.times)
        multiplied = f", times {times}" if times > 1 else ""
        joint = (" minus " if term.times < 0 else " and ") if written else ""
        written += f"{joint}{shown}{divided}{multiplied}"
    return written + (f" and {node.constant}" if node.constant else "")


def _summed(checker: Checker, node: Computed) -> CompileError:
    asked = "whether that is 0: " if node.is_none else ""
    return reject(
        "FC0312",
        "the value is computed from others, and a fetch-arg does not compute",
        node.span,
        "computed by the program",
        notes=(f"it is {asked}{_words(checker, node)}",),
        help="`--format probe` fetches them, `fetchc trace` computes it",
        reason="several fetch-args",
    )


def _shown(checker: Checker, node: Typed) -> str:
    try:
        return f"`{body(_one(checker, node).fetch)}`"
    except CompileError:
        return f"a `{checker.spell(node.type)}`"


def _dispatched(checker: Checker, node: Dispatched) -> CompileError:
    names = [f"`.({asserted.wanted.name})`" for asserted, _ in node.cases]
    return reject(
        "FC0312",
        "which of several types the interface holds is only known at run time",
        node.span,
        f"one of {len(names)} types",
        notes=(f"types with such a field are {', '.join(names)}",),
        help=f"name the type: `e{names[0][1:-1]}.f`; `fetchc trace` shows that of the one it has",
        reason="several fetch-args",
    )


def _picked(checker: Checker, node: Either) -> CompileError:
    notes = []
    last: Typed = node
    while isinstance(last, Either):
        number = last.number
        terms = Computed(number.terms, max(0, number.constant), False, number.type, number.span)
        what = f"{_words(checker, terms)} is {max(0, -number.constant)}"
        notes.append(f"where {what}, it is {_shown(checker, last.at_none)}")
        if last.other == last.at_none:
            break
        last = last.other
    else:
        notes.append(f"else it is {_shown(checker, last)}")
    return reject(
        "FC0312",
        "which bytes are the value is only known at run time",
        node.span,
        f"one of {len(notes)} places" if len(notes) > 1 else "in this place, or in none",
        notes=tuple(notes),
        help="`fetchc trace` shows the one that is there",
        reason="several fetch-args",
    )
