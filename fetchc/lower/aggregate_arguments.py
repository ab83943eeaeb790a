"""One argument a member, an element or a word: definitions of what is more than one value."""

from __future__ import annotations

from fetchc.check.typed_tree import Computed, Located
from fetchc.diag.diagnostic import CompileError, Diagnostic, Label, reject
from fetchc.ir.fetch import ELEMENTS, Array, Decode, Fetch, Scalar, Text
from fetchc.lower import argument_refusals as refusals
from fetchc.lower.aggregate_plan import (
    ArrayPlan,
    CellPlan,
    ChoicePlan,
    EntryCountPlan,
    EnumPlan,
    HalvesPlan,
    InterfacePlan,
    NotationPlan,
    OptionalPlan,
    RangePlan,
    SequencePlan,
    SlicePlan,
    StructPlan,
    UnfetchablePlan,
    elements,
    in_full,
    is_empty,
    member,
    members,
)
from fetchc.lower.fetches import Lowered, Memory, load_word, memory_of, number
from fetchc.lower.string_plan import STRING_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Ranged, Typed
    from fetchc.lower.aggregate_plan import Layout
    from fetchc.lower.argument_refusals import Lower
    from fetchc.lower.value_plan import Plan

__all__ = ["aggregate", "array", "array_string"]

_MOST_PARTS = 128  # arguments that an array becomes: an event has no more of them
_MOST_LEAVES = 64  # members of a whole structure that become arguments of their own


def aggregate(checker: Checker, planned: Plan, whole: bool, lower: Lower) -> tuple[Lowered, ...]:
    """The fetches of a value of several; ``lower`` gives those of a node in it."""
    match planned:
        case EntryCountPlan(count=count):
            return (number(checker, count),)
        case ArrayPlan(node=node):
            return array(checker, planned, whole, lower)
        case RangePlan():
            if not whole:
                raise refusals.refuse_range(checker, planned, lower)
            return _ranged(checker, planned, lower)
        case CellPlan(node=node, type=resolved):
            from fetchc.check.array_dimensions import refuse_grid_element

            raise refuse_grid_element(node, resolved)
        case UnfetchablePlan():
            raise refusals.refuse_unfetchable(checker, planned)
        case ChoicePlan() if not whole:
            raise refusals.refuse_choice(checker, planned, lower)
        case SlicePlan() | InterfacePlan() if whole:
            return _words(checker, planned)
        case (
            StructPlan(node=node, layout=layout)
            | OptionalPlan(node=node, layout=layout)
            | NotationPlan(node=node, layout=layout)
            | EnumPlan(node=node, layout=layout)
            | HalvesPlan(node=node, layout=layout)
            | ChoicePlan(node=node, layout=layout)
            | SequencePlan(node=node, layout=layout)
        ) if whole and layout is not None:
            return _leaves(checker, node, layout, lower)
        case SlicePlan(node=node) | InterfacePlan(node=node) | SequencePlan(node=node):
            raise refusals.refuse_whole(checker, node, checker.resolved(node.type))
        case StructPlan() | OptionalPlan() | NotationPlan() | EnumPlan() | HalvesPlan():
            node = planned.node
            raise refusals.refuse_whole(checker, node, checker.resolved(node.type))
        case _:
            raise AssertionError(f"only a program that decodes plans so: {planned!r}")


def _leaves(checker: Checker, node: Typed, layout: Layout, lower: Lower) -> tuple[Lowered, ...]:
    # The members, one level deep; anonymous ones are looked through.
    result: list[Lowered] = []
    left: dict[str, str] = {}
    for one in members(checker, layout):
        if is_empty(checker, one.path[-1].type):
            continue
        if len(result) >= _MOST_LEAVES:
            left[one.name] = f"a structure is at most {_MOST_LEAVES} arguments"
            continue
        try:
            for leaf in lower(checker, member(checker, node, one), not one.is_struct):
                suffix = f"{one.name}_{leaf.suffix}" if leaf.suffix else one.name
                result.append(Lowered(suffix, leaf.fetch, leaf.decode, leaf.type, leaf.companion))
        except CompileError as refusal:
            left[one.name] = refusal.diagnostics[0].message
    if not result:
        raise refusals.refuse_whole(checker, node, layout)
    if left:
        checker.warnings.append(refusals.left_out(checker, node, left))
    return tuple(result)


def _words(checker: Checker, planned: SlicePlan | InterfacePlan) -> tuple[Lowered, ...]:
    # The words of the header, each an argument; of a slice the pointer is the value.
    result = []
    is_slice = isinstance(planned, SlicePlan)
    for position, (name, node) in enumerate(planned.words):
        word = number(checker, node)
        companion = is_slice and position > 0
        suffix = "" if is_slice and not position else name.lstrip("_")
        result.append(Lowered(suffix, word.fetch, word.decode, node.type, companion))
    return tuple(result)


# ------------------------------------------------------------------------------
# Arrays, and ranges whose bounds are known when the program runs.


def array(checker: Checker, planned: ArrayPlan, whole: bool, lower: Lower) -> tuple[Lowered, ...]:
    """An array of scalars or of string pointers; several arguments where it is long."""
    node, count = planned.node, planned.flat_count
    inner = elements(checker, planned.flat)
    is_string = inner.are_characters and planned.element == planned.flat
    if count is None:
        full = in_full(checker, planned) if whole or not is_string else None
        if full is not None and isinstance(full.high, Computed):
            full = None
        if full is not None:
            return lower(checker, full, whole)
        if is_string:
            return (array_string(checker, planned),)  # `char name[]` at the end of a structure
        raise reject(
            "FC0311",
            f"`{checker.spell(node.type)}` has no fixed number of elements",
            node.span,
            "how many is not known",
            help="give a range: `a[0:4]`, or with a bound from the program `a[0:n]`",
        )
    if count == 0:
        raise reject("FC0303", "the array has no elements", node.span, "empty")
    if is_string:
        return (array_string(checker, planned),)
    if inner.are_string_pointers:
        store: Scalar | Text = Text()
        decode, each = Decode("text"), checker.program.word_bytes
    elif inner.scalar is None:
        raise refusals.refuse_whole(checker, node, checker.resolved(node.type))
    else:
        store, decode, each = inner.scalar.store, inner.scalar.decode, inner.scalar.size
    if count > (ELEMENTS * _MOST_PARTS if whole else ELEMENTS):
        raise reject(
            "FC0505",
            f"the array has {count} elements, one fetch-arg holds {ELEMENTS}",
            node.span,
            f"this is `{checker.spell(node.type)}`",
            help=f"fetch it in parts: `a[0:{ELEMENTS}]`, "
            f"`a[{ELEMENTS}:{min(count, 2 * ELEMENTS)}]`, …",
            reason="array count",
        )
    found = memory_of(checker, node, "an array")
    result = []
    for low in range(0, count, ELEMENTS):
        number_of = min(ELEMENTS, count - low)
        start = Memory(found.base, found.offset + low * each, found.user)
        place = load_word(checker.site, start, node.span)
        suffix = str(low) if low else ""
        fetch = Fetch(place, Array(store, number_of))
        result.append(Lowered(suffix, fetch, _of_several(decode, number_of), node.type))
    return tuple(result)


def _of_several(decode: Decode, count: int) -> Decode:
    return Decode(
        decode.kind, decode.bits, decode.signed, count, decode.enumerators, None, decode.flags
    )


def array_string(checker: Checker, planned: ArrayPlan) -> Lowered:
    """The string in a character array; a warning says that it may run past the end."""
    node, count = planned.node, planned.count
    found = memory_of(checker, node, "a string")
    address = load_word(checker.site, found, node.span)
    if count is not None:
        checker.warnings.append(
            Diagnostic(
                "FC0604",
                f"a string in `{checker.spell(node.type)}` ends at its first NUL, if it has one",
                Label(node.span, f"{count} bytes"),
                notes=("a full array has no NUL: the string continues in the memory after it",),
                help=f"fetch its bytes instead if it can be full: `:x8[{min(count, ELEMENTS)}]`",
            )
        )
    elif isinstance(node, Located):  # no member at the end of a structure: of variable length
        checker.warnings.append(
            Diagnostic(
                "FC0604",
                f"a string in `{checker.spell(node.type)}` ends at its first NUL, if it has one",
                Label(node.span, "the program sets its length"),
                notes=("a full array has no NUL: the string continues in the memory after it",),
                help="`fetchc trace` cuts it where the debug information has its length; or fetch "
                "bytes: `:x8[16]`",
            )
        )
    return Lowered("", Fetch(address, Text()), Decode("text", limit=count), node.type)


def _ranged(checker: Checker, planned: RangePlan, lower: Lower) -> tuple[Lowered, ...]:
    # The first elements with their number.
    node = planned.node
    length = node.high
    if node.low != 0 or isinstance(length, int):
        raise reject(
            "FC0312",
            "a definition has the elements from 0 on, and their number",
            node.span,
            "begins elsewhere",
            help="write `[0:high]`, or let `fetchc trace` cut the range out",
            reason="several fetch-args",
        )
    (count,) = lower(checker, length, False)
    return (
        _elements(checker, planned),
        Lowered("len", count.fetch, count.decode, length.type, companion=True),
    )


def _elements(checker: Checker, planned: RangePlan) -> Lowered:
    node, encoding = planned.node, planned.text
    found = memory_of(checker, node.first, "a range")
    place = load_word(checker.site, found, node.span)
    kind = "bytes" if encoding == "text" else encoding
    if kind == "bytes" and found.user:
        checker.warnings.append(_runs_on(node))
        start = load_word(checker.site, Memory(found.base, found.offset), node.span)
        return Lowered("", Fetch(start, Text(user=True)), Decode(kind), node.type)
    if encoding in ("text", "utf-16"):
        words = Array(Scalar("x", 64), _room(node, STRING_BYTES // 8, encoding))
        decode = Decode(kind, 64, count=words.count)
        return Lowered("", Fetch(place, words), decode, node.type)
    count = min(node.bound, ELEMENTS) if isinstance(node.bound, int) else ELEMENTS
    store: Scalar | Text
    inner = elements(checker, planned.element)
    if inner.are_string_pointers:
        store, decode = Text(), Decode("text")
    else:
        scalar = inner.scalar
        if scalar is None:
            raise reject(
                "FC0312",
                f"`{checker.spell(planned.element)}` does not fit into one fetch-arg",
                node.span,
                "elements of several parts",
                help="name an element and a member of it: `a[0].x`; `fetchc trace` shows them all",
                reason="several fetch-args",
            )
        store, decode = scalar.store, scalar.decode
    fetch = Fetch(place, Array(store, count))
    return Lowered("", fetch, _of_several(decode, count), node.type)


def _runs_on(node: Ranged) -> Diagnostic:
    # No kernel takes an array that is read by `+u`.
    return Diagnostic(
        "FC0604",
        "the kernel fetches a string up to its NUL, whatever its length is",
        Label(node.span, "a length that varies"),
        help="`fetchc trace` and the format `bpftrace` read as many bytes as the length says",
    )


def _room(node: Ranged, most: int, encoding: str) -> int:
    # Of an array that is shorter no more than it has, in whole words.
    if not isinstance(node.bound, int):
        return most
    size = node.bound * (1 if encoding == "text" else 2)
    return max(1, min(most, (size + 7) // 8))
