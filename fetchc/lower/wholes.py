"""Arrays, slices and structures: values that are more than a number."""

from __future__ import annotations

from fetchc.check.members import part
from fetchc.check.typed_tree import Convert, Held, Part
from fetchc.diag.diagnostic import CompileError, reject
from fetchc.ir.fetch import ELEMENTS, Array, Decode, Fetch, Scalar, Text, body
from fetchc.lower.model import Lowered, Memory
from fetchc.lower.scalars import memory_of, number
from fetchc.lower.store import is_character, plain
from fetchc.lower.texts import array_text, is_text_pointer
from fetchc.lower.where import load_word, where
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
    from fetchc.check.probe_site import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.program.types import Type
    from fetchc.quantities import TypeId

__all__ = ["array", "difference", "refuse_choice", "refuse_whole", "words_of"]

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
            f"the value is `{both[0].name}` less `{both[1].name}`, and no fetch-arg subtracts",
            node.span,
            "a difference",
            notes=(f"it is `{words[0]}` less `{words[1]}`{divided}",),
            help="`--format probe` fetches both, `fetchc trace` subtracts them",
        )
    found = []
    for member in both:
        word = number(checker, part(node.base, member, node.span))
        found.append(Lowered(member.name.lstrip("_"), word.fetch, word.decode, member.type))
    return tuple(found)


def refuse_choice(checker: Checker, node: Typed, made: ChoiceType) -> CompileError:
    """The refusal of one of several values where one fetch-arg has to be it, with all of them."""
    from fetchc.lower.lower import lower

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
        from fetchc.lower.lower import lower

        return lower(checker, full, None, whole)
    if count is None:
        raise reject(
            "FC0311",
            f"`{checker.spell(node.type)}` has no fixed number of elements",
            node.span,
            "how many is not known",
            help="say which: `a[0:4]`, or with a number of the program `a[0:n]`",
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
    return f"ask for a part of it: {ways}" + ("; `fetchc trace` shows all" if found.index else "")


def _first(checker: Checker, made: Type) -> str:
    # `refs.counter` of a refcount_t: where there is one member, the number in it.
    words = []
    while isinstance(made, StructType | SequenceType):
        first = next((member for member in made.members if member.name), None)
        if first is None:
            break
        words.append(first.name)
        if len(made.members) > 1:
            break
        made = checker.resolved(first.type)
    return ".".join(words)


def refuse_whole(checker: Checker, node: Typed, made: Type) -> CompileError:
    """The refusal of a value that no single fetch-arg can hold, with what can be."""
    from fetchc.check.builtins import halves

    try:
        where(checker.site, node)
    except CompileError as refusal:
        if refusal.diagnostics[0].code == "FC0406":
            return refusal  # no part of it can be had either
    spelled, size = checker.spell(node.type), checker.size(node.type)
    if size == 0:
        return reject("FC0312", f"`{spelled}` has no bytes to fetch", node.span, "it takes no room")
    if size == 1 and isinstance(made, StructType) and made.kind != "union" and not made.members:
        what = f"`{spelled}` has no fields to fetch"
        return reject("FC0312", what, node.span, "its one byte says nothing")
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
        f"`{spelled}` is more than one fetch-arg can hold",
        node.span,
        f"{'no known number of' if size is None else size} bytes",
        notes=notes,
        help=help,
    )
