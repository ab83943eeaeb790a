"""Arrays, slices and structures: values that are more than a number."""

from __future__ import annotations

from fetchc.check.dotnet_rules import uncompared_type
from fetchc.check.members import part
from fetchc.check.typed_tree import (
    Asserted,
    Convert,
    Counted,
    Described,
    Held,
    Part,
    Present,
    Ranged,
)
from fetchc.diag.diagnostic import CompileError, Diagnostic, Label, reject
from fetchc.ir.fetch import ELEMENTS, Array, Decode, Fetch, Scalar, Text, body
from fetchc.lower.fetches import Lowered, Memory, is_character, load_word, plain, where
from fetchc.lower.lowering import memory_of, number
from fetchc.lower.strings import TEXT_BYTES, array_text, is_text_pointer
from fetchc.program.entities import InRegister, Pieces
from fetchc.program.types import (
    ArrayType,
    ChoiceType,
    DifferenceType,
    InterfaceType,
    SequenceType,
    SliceType,
    StructType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.program.types import RangeType, Type
    from fetchc.quantities import TypeId

__all__ = [
    "array",
    "companions",
    "difference",
    "ranged",
    "refuse_choice",
    "refuse_whole",
    "unchecked",
    "words_of",
]

_DEEPEST = 64  # structures of one member in each other; only a cyclic, hostile type has more
_MOST_PARTS = 128  # arguments that an array becomes: an event has no more of them


def difference(
    checker: Checker, node: Typed, made: DifferenceType, whole: bool
) -> tuple[Lowered, ...]:
    """Both numbers that a difference is taken of; refused where one has to be the value."""
    assert isinstance(node, Part | Convert)
    both = (made.minuend, made.subtrahend)
    if not whole:
        words = [body(number(checker, part(node.base, one, node.span)).fetch) for one in both]
        divided = f", divided by {made.each}" if made.each > 1 else ""
        raise reject(
            "FC0312",
            f"it is `{both[0].name}` minus `{both[1].name}`, and a fetch-arg cannot subtract",
            node.span,
            "a difference",
            notes=(f"it is `{words[0]}` minus `{words[1]}`{divided}",),
            help="`--format probe` fetches both, `fetchc trace` subtracts them",
            reason="several fetch-args",
        )
    found = []
    for member in both:
        word = number(checker, part(node.base, member, node.span))
        found.append(Lowered(member.name.lstrip("_"), word.fetch, word.decode, member.type))
    return tuple(found)


def refuse_choice(checker: Checker, node: Typed, made: ChoiceType) -> CompileError:
    """The refusal of one of several values where one fetch-arg has to be it, with all of them."""
    from fetchc.lower.lowering import lower

    tag = body(number(checker, part(node, made.tag, node.span)).fetch)
    notes = []
    for value, member in made.cases:
        try:
            (one,) = lower(checker, part(node, member, node.span), None, whole=False)
        except CompileError:
            shown = f"a `{checker.spell(member.type)}`"
        else:
            shown = f"`{body(one.fetch)}`"
        notes.append(f"where `{tag}` is {value}, it is {shown}")
    return reject(
        "FC0312",
        f"which bytes of the `{made.name}` are the value is only known at run time",
        node.span,
        f"`{made.tag.name}` says",
        notes=tuple(notes),
        help="`--format probe` fetches them all, `fetchc trace` shows the one that is there",
        reason="several fetch-args",
    )


def words_of(checker: Checker, node: Typed, made: SliceType | InterfaceType) -> tuple[Lowered, ...]:
    """The header words of a slice or an interface, each an argument."""
    result = []
    for position, member in enumerate(made.members):
        word = number(checker, part(node, member, node.span))
        first = position == 0 and isinstance(made, SliceType)
        suffix = "" if first else member.name.lstrip("_")
        result.append(
            Lowered(
                suffix, word.fetch, word.decode, member.type,
                companion=not first and isinstance(made, SliceType),
            )
        )  # fmt: skip
    return tuple(result)


def array(checker: Checker, node: Typed, made: ArrayType, whole: bool) -> tuple[Lowered, ...]:
    """An array of scalars or of character pointers; several arguments where it is long."""
    element, count = _flattened(checker, made)
    inner = checker.resolved(element)
    is_text = is_character(inner) and made.element == element
    full = _in_full(checker, node) if count is None and (whole or not is_text) else None
    if count is None and is_text and full is None:
        return (array_text(checker, node, made),)  # `char name[]` at the end of a structure
    if full is not None:
        from fetchc.lower.lowering import lower

        return lower(checker, full, None, whole)
    if count is None:
        raise reject(
            "FC0311",
            f"`{checker.spell(node.type)}` has no fixed number of elements",
            node.span,
            "how many is not known",
            help="give a range: `a[0:4]`, or with a bound from the program `a[0:n]`",
        )
    if count == 0:
        raise reject("FC0303", "the array has no elements", node.span, "empty")
    if is_character(inner) and made.element == element:
        return (array_text(checker, node, made),)
    store: Scalar | Text
    if is_text_pointer(checker, inner):
        store, decode, each = Text(), Decode("text"), checker.program.word_bytes
    else:
        scalar = plain(checker, element)
        if scalar is None:
            raise refuse_whole(checker, node, checker.resolved(node.type))
        store, decode, each = scalar.store, scalar.decode, scalar.size
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
        held = min(ELEMENTS, count - low)
        start = Memory(found.base, found.offset + low * each, found.user)
        place = load_word(checker.site, start, node.span)
        shown = Decode(
            decode.kind, decode.bits, decode.signed, held, decode.enumerators, None, decode.flags
        )
        suffix = str(low) if low else ""
        result.append(Lowered(suffix, Fetch(place, Array(store, held)), shown, node.type))
    return tuple(result)


def _in_full(checker: Checker, node: Typed) -> Typed | None:
    from fetchc.check.array_ranges import in_full
    from fetchc.check.typed_tree import Computed

    full = in_full(checker, node)
    return None if full is None or isinstance(full.high, Computed) else full


def _flattened(checker: Checker, made: ArrayType) -> tuple[TypeId, int | None]:
    # An array of arrays is its elements in order, row by row.
    element, count = made.element, made.count
    for _ in range(16):
        inner = checker.resolved(element)
        if not isinstance(inner, ArrayType) or inner.count is None or count is None:
            break
        element, count = inner.element, count * inner.count
    return element, count


def _of_library(checker: Checker, node: Typed) -> str:
    """What can be had of a container of a C++ library; empty for what is none."""
    from fetchc.check.cpp_library import library_class

    found = library_class(checker, node.type, node.span)
    if found is None or not (found.index or found.flags):
        return ""
    ways = ", ".join(["`e[0]`", *(f"`e.{one}()`" for one in found.known if one != "data")])
    return f"name a part of it: {ways}" + ("; `fetchc trace` shows all" if found.index else "")


def _first(checker: Checker, made: Type) -> str:
    # `refs.counter` of a refcount_t: where there is one member, the number in it.
    words: list[str] = []
    for _ in range(_DEEPEST):
        if not isinstance(made, StructType | SequenceType):
            break
        first = next((member for member in made.members if member.name), None)
        if first is None:
            break
        words.append(first.name)
        if len(made.members) > 1:
            break
        made = checker.resolved(first.type)
    else:
        return words[0]
    return ".".join(words)


def refuse_whole(checker: Checker, node: Typed, made: Type) -> CompileError:
    """The refusal of a value that no single fetch-arg can hold, with what can be."""
    from fetchc.check.number_halves import halves

    try:
        where(checker.site, node)
    except CompileError as refusal:
        if refusal.reason == "computed":
            return refusal  # no part of it can be had either
    spelled, size = checker.spell(node.type), checker.size(node.type)
    if size == 0:
        return reject(
            "FC0312",
            f"`{spelled}` has no bytes to fetch",
            node.span,
            "it takes no room",
            reason="several fetch-args",
        )
    if size == 1 and isinstance(made, StructType) and made.kind != "union" and not made.members:
        what = f"`{spelled}` has no fields to fetch"
        return reject(
            "FC0312",
            what,
            node.span,
            "its one byte has no meaning",
            reason="several fetch-args",
        )
    notes: tuple[str, ...] = ()
    match made:
        case StructType(members=members) | SequenceType(members=members) if members:
            names = [f"{m.name or '(embedded)'} {checker.spell(m.type)}" for m in members[:12]]
            more = f" and {len(members) - 12} more" if len(members) > 12 else ""
            notes = (f"its members are {', '.join(names)}{more}",)
            first = _first(checker, made)
            help = f"name a member, as in `.{first}`; `--format probe` fetches each of them"
            if isinstance(made, StructType) and made.is_library:
                help = _of_library(checker, node) or help
        case StructType():
            # GCC 12 leaves them out of the transparent unions of connect() and its kin.
            notes = ("the debug information has no members of it",)
            help = "read its bytes as another type, by its address: `*(struct s **)&e`"
        case SliceType():
            help = "index it (`s[0]`), or ask for `len(s)`; `--format probe` fetches its words"
        case InterfaceType(members=(_, data)):
            help = f"fetch its data word (`.{data.name}`); `--format probe` fetches both words"
        case ArrayType():
            help = "name an element and a member of it: `a[0].x`"
        case _ if both := halves(checker, made):
            shown = ", ".join([f"`.{one.name}`" for one in both.members])
            help = f"fetch a half of it: {shown}; `fetchc trace` shows it whole"
        case _ if isinstance(node, Held) and isinstance(node.place, InRegister | Pieces):
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


# ------------------------------------------------------------------------------
# Ranges whose bounds are known when the program runs: the first elements, and their number.


def ranged(checker: Checker, node: Typed, made: RangeType, whole: bool) -> tuple[Lowered, ...]:
    """The first elements with their number; refused where one fetch-arg has to be the value."""
    assert isinstance(node, Ranged)
    if not whole:
        raise _refused(checker, node, made)
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
    (count,) = _one(checker, length)
    return (
        _elements(checker, node, made),
        Lowered("len", count.fetch, count.decode, length.type, companion=True),
    )


def _one(checker: Checker, node: Typed) -> tuple[Lowered, ...]:
    from fetchc.lower.lowering import lower

    return lower(checker, node, None, whole=False)


def _elements(checker: Checker, node: Ranged, made: RangeType) -> Lowered:
    found = memory_of(checker, node.first, "a range")
    place = load_word(checker.site, found, node.span)
    kind = "bytes" if made.text == "text" else made.text
    if kind == "bytes" and found.user:
        checker.warnings.append(_runs_on(node))
        start = load_word(checker.site, Memory(found.base, found.offset), node.span)
        return Lowered("", Fetch(start, Text(user=True)), Decode(kind), node.type)
    if made.text in ("text", "utf-16"):
        words = Array(Scalar("x", 64), _room(node, TEXT_BYTES // 8, made.text))
        decode = Decode(kind, 64, count=words.count)
        return Lowered("", Fetch(place, words), decode, node.type)
    count = min(node.bound, ELEMENTS) if isinstance(node.bound, int) else ELEMENTS
    store: Scalar | Text
    if is_text_pointer(checker, checker.resolved(made.element)):
        store, decode = Text(), Decode("text")
    else:
        scalar = plain(checker, made.element)
        if scalar is None:
            raise reject(
                "FC0312",
                f"`{checker.spell(made.element)}` does not fit into one fetch-arg",
                node.span,
                "elements of several parts",
                help="name an element and a member of it: `a[0].x`; `fetchc trace` shows them all",
                reason="several fetch-args",
            )
        store, decode = scalar.store, scalar.decode
    shown = Decode(
        decode.kind, decode.bits, decode.signed, count, decode.enumerators, None, decode.flags
    )
    return Lowered("", Fetch(place, Array(store, count)), shown, node.type)


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


def _refused(checker: Checker, node: Ranged, made: RangeType) -> CompileError:
    notes = []
    try:
        start = load_word(checker.site, memory_of(checker, node.first, "a range"), node.span)
        each = plain(checker, made.element)
        if each is not None:
            notes.append(f"its elements begin at `{body(Fetch(start, each.store))}`")
        for what, bound in (("first", node.low), ("end", node.high)):
            if not isinstance(bound, int):
                (word,) = _one(checker, bound)
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
# What a type assertion takes for granted, fetched beside the value.


def companions(checker: Checker) -> tuple[Lowered, ...]:
    """For each assertion of Go the word with the dynamic type, and once the address types count
    from.

    The reader takes the second from the first, and has a value of the type where that is the
    number that the decoding names.
    """
    found = []
    every = [one for one in checker.assertions if isinstance(one, Asserted)]
    for position, one in enumerate(every):
        word = number(checker, one.word)
        decode = Decode("type", 64, enumerators=((one.wanted.name, one.wanted.offset),))
        suffix = f"type{position or ''}"
        found.append(Lowered(suffix, word.fetch, decode, one.word.type, companion=True))
    for one in every[:1]:
        start = number(checker, one.start)
        found.append(Lowered("types", start.fetch, start.decode, one.start.type, companion=True))
    return tuple(found)


def unchecked(checker: Checker, whole: bool) -> list[Diagnostic]:
    """Warnings of what no fetch-arg compares: of Go only where there are no companions."""
    return [
        _uncompared(checker, one) if not isinstance(one, Asserted) else _unchecked(one)
        for one in checker.assertions
        if not isinstance(one, Counted) and not (whole and isinstance(one, Asserted))
    ]


def _uncompared(checker: Checker, one: Described | Present) -> Diagnostic:
    if isinstance(one, Described):
        return uncompared_type(checker, one.wanted, one.span)
    from fetchc.check.rust_rules import uncompared_variant

    return uncompared_variant(checker, one)


def _unchecked(one: Asserted) -> Diagnostic:
    return Diagnostic(
        "FC0614",
        f"the dynamic type is not compared with `{one.wanted.name}`",
        Label(one.span, "read as this type, whatever it holds"),
        notes=("a value of another type is read as if it had this type",),
        help="`--format probe` fetches the dynamic type as well",
    )
