"""Texts, with a NUL at their end or counted: what is fetched of each."""

from __future__ import annotations

from fetchc.check.members import part
from fetchc.check.probe_site import steps
from fetchc.check.typed_tree import Follow, Held
from fetchc.diag.diagnostic import Diagnostic, Label
from fetchc.ir.fetch import ELEMENTS, Array, Decode, Fetch, Scalar, Text
from fetchc.lower.fetches import Lowered, Memory, is_character, load_word, pointed
from fetchc.lower.lowering import memory_of, number
from fetchc.program.types import (
    CharType,
    PointerType,
    QualifiedType,
    SequenceType,
    SliceType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.program.types import ArrayType, StringType, Type

__all__ = [
    "TEXT_BYTES",
    "array_text",
    "is_text_pointer",
    "pointed_text",
    "string",
    "units",
    "utf_16",
]

TEXT_BYTES = 256  # of a counted text that a definition fetches; the reader cuts at its length


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
    target = next(
        (
            each
            for each in steps(checker.program, made.target)
            if not isinstance(each, QualifiedType)
        ),
        None,
    )
    return isinstance(target, CharType) and target.name == "unsigned char"


def pointed_text(checker: Checker, node: Typed, user: bool = False) -> Lowered:
    """The text that the pointer ``node`` leads to, up to its NUL."""
    found = pointed(checker.site, node)
    user = user or found.user
    address = load_word(checker.site, Memory(found.base, found.offset), node.span)
    return Lowered("", Fetch(address, Text(user)), Decode("text"), node.type)


def array_text(checker: Checker, node: Typed, made: ArrayType) -> Lowered:
    """The text in a character array; a warning says that it may run past the end."""
    found = memory_of(checker, node, "a string")
    address = load_word(checker.site, found, node.span)
    if made.count is not None:
        checker.warnings.append(
            Diagnostic(
                "FC0604",
                f"a string in `{checker.spell(node.type)}` ends at its first NUL, if it has one",
                Label(node.span, f"{made.count} bytes"),
                notes=("a full array has no NUL: the string continues in the memory after it",),
                help="fetch its bytes instead if it can be full: "
                f"`:x8[{min(made.count, ELEMENTS)}]`",
            )
        )
    elif isinstance(node, Held):  # no member at the end of a structure: of variable length
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
    return Lowered("", Fetch(address, Text()), Decode("text", limit=made.count), node.type)


def string(
    checker: Checker, node: Typed, made: StringType | SliceType, whole: bool
) -> tuple[Lowered, ...]:
    """A counted string, or bytes as one: the bare text with a warning, or all with their number."""
    from fetchc.check.indexing import data_pointer

    data = data_pointer(checker, node, made)
    address = load_word(checker.site, pointed(checker.site, data), node.span)
    if not whole:
        spelled = "Go string" if made.name == "string" else f"`{checker.spell(node.type)}`"
        sliced = isinstance(made, SliceType)
        checker.warnings.append(
            Diagnostic(
                "FC0601",
                f"a {spelled} has no NUL at its end: the text runs on to the next one",
                Label(node.span, f"a {spelled}" if spelled != "Go string" else "a `string`"),
                notes=("the kernel shows what follows in memory, `(fault)`, or drops the event",),
                help="`fetchc trace` reads as many bytes as the length says"
                if sliced
                else "`--format probe` fetches the length and that many bytes",
            )
        )
        return (Lowered("", Fetch(address, Text()), Decode("text"), node.type),)
    count = part(node, made.members[1], node.span)
    length = number(checker, count)
    words = Array(Scalar("x", 64), TEXT_BYTES // 8)
    return (
        Lowered("", Fetch(address, words), Decode("text", 64, count=words.count), node.type),
        Lowered("len", length.fetch, length.decode, count.type, companion=True),
    )


def units(checker: Checker, node: Typed) -> tuple[Typed, SequenceType] | None:
    """The text object that ``node`` is or leads to, with its type; None if it is none.

    What has a part of a text or array is none: where its units begin is not at a fixed place.
    """
    made = checker.resolved(node.type)
    if isinstance(made, PointerType):
        node = Follow(node, made.target, node.span)
        made = checker.resolved(made.target)
    whole = isinstance(made, SequenceType) and made.text and made.window is None
    return (node, made) if isinstance(made, SequenceType) and whole else None


def utf_16(checker: Checker, node: Typed, made: SequenceType, whole: bool) -> tuple[Lowered, ...]:
    """A text of UTF-16 units: as many as an argument holds, with their number where wanted."""
    from fetchc.check.indexing import element_at

    found = memory_of(checker, element_at(checker, node, 0, node.span, node.span), "a string")
    address = load_word(checker.site, found, node.span)
    if not whole:
        checker.warnings.append(
            Diagnostic(
                "FC0619",
                f"{ELEMENTS} units are fetched, whatever the string's length",
                Label(node.span, f"a `{checker.spell(node.type)}`"),
                notes=("what follows the string in memory is shown too",),
                help="`--format probe` fetches the length as well",
            )
        )
        store = Array(Scalar("x", 16), ELEMENTS)
        return (
            Lowered("", Fetch(address, store), Decode("utf-16", 16, count=ELEMENTS), node.type),
        )
    length = number(checker, part(node, made.length, node.span))
    words = Array(Scalar("x", 64), TEXT_BYTES // 8)
    return (
        Lowered("", Fetch(address, words), Decode("utf-16", 64, count=words.count), node.type),
        Lowered("len", length.fetch, length.decode, made.length.type, companion=True),
    )
