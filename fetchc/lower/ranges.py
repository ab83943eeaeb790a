"""Ranges whose bounds are known when the program runs: the first elements, and their number."""

from __future__ import annotations

from fetchc.check.typed_tree import Ranged
from fetchc.diag.diagnostic import CompileError, Diagnostic, Label, reject
from fetchc.ir.fetch import ELEMENTS, Array, Decode, Fetch, Scalar, Text, body
from fetchc.lower.model import Lowered, Memory
from fetchc.lower.scalars import memory_of
from fetchc.lower.store import plain
from fetchc.lower.texts import TEXT_BYTES, is_text_pointer
from fetchc.lower.where import load_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.probe_site import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.program.types import RangeType

__all__ = ["ranged"]


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
        )
    (count,) = _one(checker, length)
    return (
        _elements(checker, node, made),
        Lowered("len", count.fetch, count.decode, length.type, companion=True),
    )


def _one(checker: Checker, node: Typed) -> tuple[Lowered, ...]:
    from fetchc.lower.lower import lower

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
                f"`{checker.spell(made.element)}` is more than one fetch-arg can hold",
                node.span,
                "elements of several parts",
                help="name an element and a member of it: `a[0].x`; `fetchc trace` shows them all",
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
        "the kernel fetches a program's text up to its NUL, wherever its length ends it",
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
        "how many elements there are is only known when the program runs",
        node.span,
        "a length that varies",
        notes=tuple(notes),
        help=f"write a number (`[{low}:{low + ELEMENTS}]`); "
        "`--format probe` fetches the length too, `fetchc trace` cuts there",
    )
