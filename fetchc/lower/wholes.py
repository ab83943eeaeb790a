"""Texts, arrays, slices and structures: values that are more than a number."""

from __future__ import annotations

from fetchc.check import indices
from fetchc.check.members import part
from fetchc.check.typed import Convert, Follow, Held, Part
from fetchc.diag.errors import CompileError, reject
from fetchc.diag.model import Diagnostic, Label
from fetchc.ir.decode import Decode
from fetchc.ir.nodes import Array, Fetch, Scalar, Text
from fetchc.ir.notation import body
from fetchc.lower.model import Lowered
from fetchc.lower.scalars import memory_of
from fetchc.lower.store import is_character, plain
from fetchc.lower.where import Memory, load_word, pointed, where
from fetchc.program.places import InRegister, Pieces
from fetchc.program.types import (
    ArrayType,
    CharType,
    ChoiceType,
    DifferenceType,
    InterfaceType,
    PointerType,
    QualifiedType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.program.types import Type
    from fetchc.units import TypeId

__all__ = [
    "TEXT_BYTES",
    "array",
    "array_text",
    "difference",
    "is_text_pointer",
    "pointed_text",
    "refuse_choice",
    "refuse_whole",
    "string",
    "units",
    "utf_16",
    "words_of",
]

TEXT_BYTES = 256  # of a counted text that a definition fetches; the reader cuts at its length
_CHUNK = 64  # elements an argument holds: MAX_ARRAY_LEN, kernel/trace/trace_probe.h, since 4.20


def is_text_pointer(checker: Checker, made: Type) -> bool:
    """Whether a type is a pointer to a text.

    In the kernel that is `unsigned char *` too (names of files are), where bytes are `u8 *`.
    """
    if not isinstance(made, PointerType):
        return False
    if is_character(checker.resolved(made.target)):
        return True
    if not checker.program.in_kernel:
        return False
    target = checker.program.type(made.target)
    while isinstance(target, QualifiedType):
        target = checker.program.type(target.target)
    return isinstance(target, CharType) and target.name == "unsigned char"


def pointed_text(checker: Checker, node: Typed, user: bool = False) -> Lowered:
    """The text that the pointer ``node`` leads to, up to its NUL."""
    found = pointed(checker.site, node)
    user = user or found.user
    address = load_word(checker.site, Memory(found.base, found.offset), node.span)
    return Lowered("", Fetch(address, Text(user)), Decode("text"), node.type)


def array_text(checker: Checker, node: Typed, made: ArrayType) -> Lowered:
    """The text in a character array; a warning says that it may run past the end."""
    found = memory_of(checker, node, "a text")
    address = load_word(checker.site, found, node.span)
    if made.count is not None:
        checker.warnings.append(
            Diagnostic(
                "FC0604",
                f"text of `{checker.spell(node.type)}` ends at a NUL, which it may not hold",
                Label(node.span, f"{made.count} bytes"),
                notes=("a full array runs on into what stands behind it",),
                help=f"fetch its bytes instead if it can be full: `:x8[{min(made.count, 64)}]`",
            )
        )
    return Lowered("", Fetch(address, Text()), Decode("text", limit=made.count), node.type)


def string(checker: Checker, node: Typed, made: StringType, whole: bool) -> tuple[Lowered, ...]:
    """A counted string: the bare text with a warning, or its bytes with their number."""
    data = indices.data_pointer(checker, node, made)
    address = load_word(checker.site, pointed(checker.site, data), node.span)
    if not whole:
        spelled = "Go string" if made.name == "string" else f"`{checker.spell(node.type)}`"
        checker.warnings.append(
            Diagnostic(
                "FC0601",
                f"a {spelled} has no NUL at its end: the text runs on to the next one",
                Label(node.span, f"a {spelled}" if spelled != "Go string" else "a `string`"),
                notes=("the kernel shows what follows in memory, `(fault)`, or drops the event",),
                help="`--format probe` fetches the length and that many bytes",
            )
        )
        return (Lowered("", Fetch(address, Text()), Decode("text"), node.type),)
    count = part(node, made.members[1], node.span)
    length = _word(checker, count)
    words = Array(Scalar("x", 64), TEXT_BYTES // 8)
    return (
        Lowered("", Fetch(address, words), Decode("text", 64, count=words.count), node.type),
        Lowered("len", length.fetch, length.decode, count.type, companion=True),
    )


def units(checker: Checker, node: Typed) -> tuple[Typed, SequenceType] | None:
    """The text object that ``node`` is or leads to, with its type; None if it is none."""
    made = checker.resolved(node.type)
    if isinstance(made, PointerType):
        node = Follow(node, made.target, node.span)
        made = checker.resolved(made.target)
    return (node, made) if isinstance(made, SequenceType) and made.text else None


def utf_16(checker: Checker, node: Typed, made: SequenceType, whole: bool) -> tuple[Lowered, ...]:
    """A text of UTF-16 units: as many as an argument holds, with their number where wanted."""
    found = memory_of(checker, indices.element(checker, node, 0, node.span, node.span), "a text")
    address = load_word(checker.site, found, node.span)
    if not whole:
        checker.warnings.append(
            Diagnostic(
                "FC0619",
                f"{_CHUNK} units are fetched, whatever the length of the text is",
                Label(node.span, f"a `{checker.spell(node.type)}`"),
                notes=("what follows the text in memory is shown too",),
                help="`--format probe` fetches the length as well",
            )
        )
        store = Array(Scalar("x", 16), _CHUNK)
        return (Lowered("", Fetch(address, store), Decode("utf-16", 16, count=_CHUNK), node.type),)
    length = _word(checker, part(node, made.length, node.span))
    words = Array(Scalar("x", 64), TEXT_BYTES // 8)
    return (
        Lowered("", Fetch(address, words), Decode("utf-16", 64, count=words.count), node.type),
        Lowered("len", length.fetch, length.decode, made.length.type, companion=True),
    )


def difference(
    checker: Checker, node: Typed, made: DifferenceType, whole: bool
) -> tuple[Lowered, ...]:
    """Both numbers that a difference is taken of; refused where one has to be the value."""
    assert isinstance(node, Part | Convert)
    both = (made.minuend, made.subtrahend)
    if not whole:
        words = [body(_word(checker, part(node.base, one, node.span)).fetch) for one in both]
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
        word = _word(checker, part(node.base, member, node.span))
        found.append(Lowered(member.name.lstrip("_"), word.fetch, word.decode, member.type))
    return tuple(found)


def refuse_choice(checker: Checker, node: Typed, made: ChoiceType) -> CompileError:
    """The refusal of one of several values where one fetch-arg has to be it, with all of them."""
    from fetchc.lower.lower import lower

    tag = body(_word(checker, part(node, made.tag, node.span)).fetch)
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


def _word(checker: Checker, node: Typed) -> Lowered:
    from fetchc.lower.scalars import scalar

    made = plain(checker, node.type)
    assert made is not None
    return scalar(checker, node, made)


def words_of(checker: Checker, node: Typed, made: SliceType | InterfaceType) -> tuple[Lowered, ...]:
    """The header words of a slice or an interface, each an argument."""
    result = []
    for position, member in enumerate(made.members):
        word = _word(checker, part(node, member, node.span))
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
    if count is None and is_character(inner) and made.element == element:
        return (array_text(checker, node, made),)  # `char name[]` at the end of a structure
    if count is None and (full := _in_full(checker, node)) is not None:
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
    if count > _CHUNK and not whole:
        raise reject(
            "FC0505",
            f"the array has {count} elements, one fetch-arg holds {_CHUNK}",
            node.span,
            f"this is `{checker.spell(node.type)}`",
            help=f"fetch it in parts: `a[0:{_CHUNK}]`, `a[{_CHUNK}:{min(count, 2 * _CHUNK)}]`, …",
        )
    found = memory_of(checker, node, "an array")
    result = []
    for low in range(0, count, _CHUNK):
        number = min(_CHUNK, count - low)
        start = Memory(found.base, found.offset + low * each, found.user)
        place = load_word(checker.site, start, node.span)
        shown = Decode(
            decode.kind, decode.bits, decode.signed, number, decode.enumerators, None, decode.flags
        )
        suffix = str(low) if low else ""
        result.append(Lowered(suffix, Fetch(place, Array(store, number)), shown, node.type))
    return tuple(result)


def _in_full(checker: Checker, node: Typed) -> Typed | None:
    from fetchc.check.runtime_arrays import in_full
    from fetchc.check.typed import Reckoned

    full = in_full(checker, node)
    return None if full is None or isinstance(full.high, Reckoned) else full


def _flattened(checker: Checker, made: ArrayType) -> tuple[TypeId, int | None]:
    # An array of arrays is its elements in order, row by row.
    element, count = made.element, made.count
    for _ in range(16):
        inner = checker.resolved(element)
        if not isinstance(inner, ArrayType) or inner.count is None or count is None:
            break
        element, count = inner.element, count * inner.count
    return element, count


def refuse_whole(checker: Checker, node: Typed, made: Type) -> CompileError:
    """The refusal of a value that no single fetch-arg can hold, with what can be."""
    try:
        where(checker.site, node)
    except CompileError as refusal:
        if refusal.diagnostics[0].code == "FC0406":
            return refusal  # no part of it can be had either
    spelled, size = checker.spell(node.type), checker.size(node.type)
    if size == 0:
        return reject("FC0312", f"`{spelled}` has no bytes to fetch", node.span, "it takes no room")
    notes: tuple[str, ...] = ()
    match made:
        case StructType(members=members) | SequenceType(members=members) if members:
            names = [f"{m.name or '(embedded)'} {checker.spell(m.type)}" for m in members[:12]]
            more = f" and {len(members) - 12} more" if len(members) > 12 else ""
            notes = (f"its members are {', '.join(names)}{more}",)
            first = next((m.name for m in members if m.name), "")
            help = f"name a member, as in `.{first}`; `--format probe` fetches each of them"
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
        case _ if isinstance(node, Held) and isinstance(node.place, InRegister | Pieces):
            help = "probe where it is in memory: `fetchc variables FUNCTION --at +N`"
        case _:
            help = "fetch its bytes" + (f": `:x8[{size}]`" if size and size <= _CHUNK else "")
    return reject(
        "FC0312",
        f"`{spelled}` is more than one fetch-arg can hold",
        node.span,
        f"{'no known number of' if size is None else size} bytes",
        notes=notes,
        help=help,
    )
