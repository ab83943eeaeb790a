"""The refusals of values that no single fetch-arg holds, with what can be fetched instead."""

from __future__ import annotations

from fetchc.check.typed_tree import Computed, Conditional, Located
from fetchc.diag.diagnostic import CompileError, Diagnostic, Label, reject
from fetchc.ir.fetch import ELEMENTS, Fetch, body
from fetchc.lower.fetches import load_word, memory_of, number, plain, where
from fetchc.lower.no_fetch import incomplete
from fetchc.program.entities import InRegister, Pieces
from fetchc.program.types import (
    ArrayType,
    DeclaredType,
    FloatType,
    FunctionType,
    InterfaceType,
    SequenceType,
    SliceType,
    StructType,
    UnknownType,
    VoidType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Dispatched, Term, Typed
    from fetchc.lower.aggregate_plan import ChoicePlan, RangePlan, UnfetchablePlan
    from fetchc.lower.fetches import Lowered
    from fetchc.program.types import Type

    Lower = Callable[[Checker, Typed, bool], tuple[Lowered, ...]]

__all__ = [
    "left_out",
    "refuse_choice",
    "refuse_computed",
    "refuse_length",
    "refuse_range",
    "refuse_unfetchable",
    "refuse_whole",
    "too_deep",
]


_DEEPEST = 64  # structures of one member in each other; only a cyclic, hostile type has more


def refuse_whole(checker: Checker, node: Typed, resolved: Type) -> CompileError:
    """The refusal of a value that no single fetch-arg can hold, with what can be."""
    from fetchc.check.number_halves import halves

    try:
        where(checker.site, node)
    except CompileError as refusal:
        if refusal.reason == "computed":
            return refusal  # no part of it can be fetched either
    spelled, size = checker.spell(node.type), checker.size(node.type)
    if size == 0:
        return reject(
            "FC0312",
            f"`{spelled}` has no bytes to fetch",
            node.span,
            "it takes no room",
            reason="several fetch-args",
        )
    if (
        size == 1
        and isinstance(resolved, StructType)
        and resolved.kind != "union"
        and not resolved.members
    ):
        what = f"`{spelled}` has no fields to fetch"
        return reject(
            "FC0312",
            what,
            node.span,
            "its one byte has no meaning",
            reason="several fetch-args",
        )
    notes: tuple[str, ...] = ()
    match resolved:
        case StructType(members=members) | SequenceType(members=members) if members:
            names = [f"{m.name or '(embedded)'} {checker.spell(m.type)}" for m in members[:12]]
            more = f" and {len(members) - 12} more" if len(members) > 12 else ""
            notes = (f"its members are {', '.join(names)}{more}",)
            first = _first(checker, resolved)
            help = f"name a member, as in `.{first}`; `--format probe` fetches each of them"
            if isinstance(resolved, StructType) and resolved.is_library:
                help = _of_library(checker, node) or help
        case StructType():
            # GCC 12 leaves them out of the transparent unions of connect() and similar calls.
            notes = ("the debug information has no members of it",)
            help = "read its bytes as another type, by its address: `*(struct s **)&e`"
        case SliceType():
            help = "index it (`s[0]`), or ask for `len(s)`; `--format probe` fetches its words"
        case InterfaceType(members=(_, data)):
            help = f"fetch its data word (`.{data.name}`); `--format probe` fetches both words"
        case ArrayType():
            help = "name an element and a member of it: `a[0].x`"
        case FloatType() if size and halves(checker, resolved):
            help = f"fetch its bytes: `:x8[{size}]`; `fetchc trace` shows it whole"
        case _ if both := halves(checker, resolved):
            shown = ", ".join([f"`.{one.name}`" for one in both.members])
            help = f"fetch a half of it: {shown}; `fetchc trace` shows it whole"
        case _ if isinstance(node, Located) and isinstance(node.place, InRegister | Pieces):
            help = "probe where it is in memory: `fetchc variables FUNCTION --at +N`"
        case _:
            help = "fetch its bytes" + (f": `:x8[{size}]`" if size and size <= ELEMENTS else "")
    return reject(
        "FC0312",
        f"`{spelled}` does not fit into one fetch-arg",
        node.span,
        f"{'no known number of' if size is None else size} bytes",
        notes=notes,
        help=help,
        reason="several fetch-args",
    )


def _first(checker: Checker, resolved: Type) -> str:
    # `refs.counter` of a refcount_t: where there is one member, the number in it.
    words: list[str] = []
    for _ in range(_DEEPEST):
        if not isinstance(resolved, StructType | SequenceType):
            break
        first = next((member for member in resolved.members if member.name), None)
        if first is None:
            break
        words.append(first.name)
        if len(resolved.members) > 1:
            break
        resolved = checker.resolved(first.type)
    else:
        return words[0]
    return ".".join(words)


def _of_library(checker: Checker, node: Typed) -> str:
    """What can be fetched of a container of a C++ library; empty for other types."""
    from fetchc.check.cpp_library import library_class

    found = library_class(checker, node.type, node.span)
    if found is None or not (found.index or found.flags):
        return ""
    ways = ", ".join(["`e[0]`", *(f"`e.{one}()`" for one in found.method_names if one != "data")])
    return f"name a part of it: {ways}" + ("; `fetchc trace` shows all" if found.index else "")


def refuse_unfetchable(checker: Checker, planned: UnfetchablePlan) -> CompileError:
    """The refusal of a value that has no bytes, or more than one number or string of them."""
    node, resolved = planned.node, planned.type
    match resolved:
        case FunctionType():
            return reject(
                "FC0310", "a function is not a value that can be fetched", node.span, "a function"
            )
        case DeclaredType() | VoidType() | UnknownType():
            return incomplete(checker, node, resolved)
        case _:
            return refuse_whole(checker, node, resolved)


def refuse_length(checker: Checker, node: Typed) -> CompileError:
    """The refusal of an array of characters whose length only the running program has."""
    called = node.name if isinstance(node, Located) and node.name else "a"
    return reject(
        "FC0311",
        f"the length of `{checker.spell(node.type)}` is not known here",
        node.span,
        "the number of its characters is not known",
        notes=("a string in it may have no NUL, and continue after it",),
        help=f"cast it to read up to a NUL: `(char *){called}`, or name a length: `{called}[0:4]`",
    )


def refuse_choice(checker: Checker, planned: ChoicePlan, lower: Lower) -> CompileError:
    """The refusal of one of several values where one fetch-arg has to be it, with all of them."""
    tag = body(number(checker, planned.tag).fetch)
    notes = [
        f"where `{tag}` is {value}, it is {_shown(checker, one, lower)}"
        for value, _, one in planned.cases
    ]
    return reject(
        "FC0312",
        f"which bytes of the `{planned.layout.name}` are the value is only known at run time",
        planned.node.span,
        f"`{planned.layout.members[0].name}` says",
        notes=tuple(notes),
        help="`--format probe` fetches them all, `fetchc trace` shows the one that is there",
        reason="several fetch-args",
    )


def _shown(checker: Checker, node: Typed, lower: Lower) -> str:
    try:
        (one,) = lower(checker, node, False)
    except CompileError:
        return f"a `{checker.spell(node.type)}`"
    return f"`{body(one.fetch)}`"


def refuse_range(checker: Checker, planned: RangePlan, lower: Lower) -> CompileError:
    """The refusal of a range where one fetch-arg has to be the value, with its bounds."""
    node = planned.node
    notes = []
    try:
        start = load_word(checker.site, memory_of(checker, node.first, "a range"), node.span)
        each = plain(checker, planned.element)
        if each is not None:
            notes.append(f"its elements begin at `{body(Fetch(start, each.store))}`")
        for what, bound in (("first", node.low), ("end", node.high)):
            if not isinstance(bound, int):
                (word,) = lower(checker, bound, False)
                notes.append(f"its {what} is `{body(word.fetch)}`")
    except CompileError as refusal:
        return refusal  # a bound, or the elements, that no probe reads here
    low = node.low if isinstance(node.low, int) else 0
    return reject(
        "FC0312",
        "the number of elements is only known at run time",
        node.span,
        "a length that varies",
        notes=tuple(notes),
        help=f"write a number (`[{low}:{low + ELEMENTS}]`); "
        "`--format probe` fetches the length too, `fetchc trace` cuts there",
        reason="several fetch-args",
    )


# ------------------------------------------------------------------------------
# What a reader computes from others, or selects by such a number: no fetch-arg does.


def refuse_computed(
    checker: Checker, node: Computed | Conditional | Dispatched, lower: Lower
) -> CompileError:
    """The refusal of a computed value where one fetch-arg has to be it; names its parts."""
    if isinstance(node, Conditional):
        return _picked(checker, node, lower)
    return _summed(checker, node, lower) if isinstance(node, Computed) else _dispatched(node)


def _alone(checker: Checker, node: Typed, lower: Lower) -> str:
    (one,) = lower(checker, node, False)
    return body(one.fetch)


def _words(checker: Checker, node: Computed, lower: Lower) -> str:
    written = ""
    for term in node.terms:
        if not term.times:
            continue
        shown = f"`{_alone(checker, term.number, lower)}`"
        if term.subtrahend is not None:
            shown = f"({shown} less `{_alone(checker, term.subtrahend, lower)}`)"
        divided = f", divided by {term.each}" if term.each > 1 else ""
        times = abs(term.times)
        multiplied = f", times {times}" if times > 1 else ""
        joint = (" minus " if term.times < 0 else " and ") if written else ""
        written += f"{joint}{shown}{divided}{multiplied}"
    return written + (f" and {node.constant}" if node.constant else "")


def _summed(checker: Checker, node: Computed, lower: Lower) -> CompileError:
    if node.terms[0].names[0] and not node.is_zero:
        return _difference(checker, node, node.terms[0], lower)
    asked = "whether that is 0: " if node.is_zero else ""
    return reject(
        "FC0312",
        "the value is computed from others, and a fetch-arg does not compute",
        node.span,
        "computed by the program",
        notes=(f"it is {asked}{_words(checker, node, lower)}",),
        help="`--format probe` fetches them, `fetchc trace` computes it",
        reason="several fetch-args",
    )


def _difference(checker: Checker, node: Computed, term: Term, lower: Lower) -> CompileError:
    assert term.subtrahend is not None
    first, second = term.names
    words = [_alone(checker, one, lower) for one in (term.number, term.subtrahend)]
    divided = f", divided by {term.each}" if term.each > 1 else ""
    return reject(
        "FC0312",
        f"it is `{first}` minus `{second}`, and a fetch-arg cannot subtract",
        node.span,
        "a difference",
        notes=(f"it is `{words[0]}` minus `{words[1]}`{divided}",),
        help="`--format probe` fetches both, `fetchc trace` subtracts them",
        reason="several fetch-args",
    )


def _dispatched(node: Dispatched) -> CompileError:
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


_MOST_NOTES = 8  # of the places that a value can be in


def _picked(checker: Checker, node: Conditional, lower: Lower) -> CompileError:
    places = [node]
    last: Typed = node.if_nonzero
    while isinstance(last, Conditional):
        places.append(last)
        last = last.if_nonzero
    notes = []
    for place in places[:_MOST_NOTES]:
        number = place.number
        terms = Computed(number.terms, max(0, number.constant), False, number.type, number.span)
        what = f"{_words(checker, terms, lower)} is {max(0, -number.constant)}"
        notes.append(f"where {what}, it is {_shown(checker, place.if_zero, lower)}")
    many = len(places)
    if last != places[-1].if_zero:
        notes.append(f"else it is {_shown(checker, last, lower)}")
        many += 1
    if many > len(notes):
        notes.append(f"{many - len(notes)} more places are not listed")
    return reject(
        "FC0312",
        "which bytes are the value is only known at run time",
        node.span,
        f"one of {many} places" if many > 1 else "in this place, or in none",
        notes=tuple(notes),
        help="`fetchc trace` shows the one that is there",
        reason="several fetch-args",
    )


def left_out(checker: Checker, node: Typed, members: Mapping[str, str]) -> Diagnostic:
    """The warning that some members of a structure are left out, each for its reason."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in members.items():
        by_reason.setdefault(reason, []).append(f"`{name}`")
    notes = []
    for reason, names in list(by_reason.items())[:_MOST_NOTES]:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        notes.append(f"{names[0]}{more}: {reason}")
    return Diagnostic(
        "FC0605",
        f"members left out: {', '.join(members)}",
        Label(node.span, f"a `{checker.spell(node.type)}`"),
        notes=tuple(notes),
        help="name the members that you want",
    )


def too_deep(checker: Checker, node: Typed, most: int) -> CompileError:
    """The refusal of a structure in ``most`` others, by a reader that shows those."""
    return reject(
        "FC0312",
        f"a structure in {most} others is not shown with them",
        node.span,
        f"a `{checker.spell(node.type)}`",
        help="name it: `e.member`",
        reason="several fetch-args",
    )
