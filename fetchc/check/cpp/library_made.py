"""What methods of C++ library classes compute: sizes, emptiness, the last element, wide texts.

A fetch-arg has none of it; a reader makes it of what is fetched.
"""

from __future__ import annotations

from fetchc.check import indices
from fetchc.check.characters import encoding_by_name
from fetchc.check.cpp.library_data import elements_of_block, filled, number_of
from fetchc.check.cpp.library_paths import at
from fetchc.check.typed import Constant, Convert, Either, Follow, Part, Ranged, Reckoned, Term
from fetchc.diag.diagnostic import reject
from fetchc.program.types import (
    ArrayType,
    BitField,
    BoolType,
    PointerType,
    RangeType,
)
from fetchc.quantities import BitOffset, BitSize, ByteOffset, ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from fetchc.check.cpp.library_data import LibraryClass
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = ["computed", "element_of_block", "fixed_array", "flag", "wide_text"]

_MOST_PLACES = 16  # that an element of a deque can be in; each is a value to fetch


def computed(
    checker: Checker, holder: Typed, found: LibraryClass, name: str, span: Span, name_span: Span
) -> Typed | None:
    """What ``holder.name()`` computes, as what a reader makes it of; None of other methods.

    Raises CompileError FC0308 where the debug information lacks a type for it.
    """
    if name in found.through:
        from fetchc.check.cpp.library_methods import method

        path, _, inner = found.through[name].rpartition(".")
        return method(checker, _there(checker, holder, found, path, span), inner, name_span)
    if name in found.constants:
        number = number_of(checker, holder.type, found.constants[name])
        return None if number is None else Constant(number, checker.word(), span)
    if name in found.sums:
        return _sum(checker, holder, found, found.sums[name], span)
    if name in found.nones:
        return _none(checker, _sum(checker, holder, found, found.nones[name], span))
    if name in found.either:
        return _either(checker, holder, found, found.either[name], span)
    if name in found.maybe:
        return _there(checker, holder, found, found.maybe[name], name_span)
    return _empty(checker, holder, found, span) if name == "empty" else None


def _there(checker: Checker, holder: Typed, found: LibraryClass, path: str, span: Span) -> Typed:
    whole = filled(checker, holder, found, path, span)
    inner = None if whole is None else at(checker, holder, whole, span)
    if inner is None:
        raise reject(
            "FC0308",
            f"`{path}` of `{checker.spell(holder.type)}` cannot be fetched: the debug information "
            "of the file does not have it",
            span,
            "computed by the program",
        )
    return inner


def _sum(
    checker: Checker, holder: Typed, found: LibraryClass, terms: Sequence[Any], span: Span
) -> Reckoned:
    made, constant = [], 0
    for number, less, times in terms:
        if not number:
            constant += times
            continue
        one = _there(checker, holder, found, number, span)
        other = _there(checker, holder, found, less, span) if less else None
        made.append(_term(checker, holder, found, one, other, times, span))
    return Reckoned(tuple(made), constant, False, checker.word(), span)


def _term(
    checker: Checker,
    holder: Typed,
    found: LibraryClass,
    one: Typed,
    other: Typed | None,
    times: int | str,
    span: Span,
) -> Term:
    kind = checker.resolved(one.type)
    each = checker.size(kind.target) if isinstance(kind, PointerType) and other is not None else 1
    if not each:
        raise reject("FC0311", f"the elements of `{checker.spell(holder.type)}` have no size", span)
    if times == "assumed":
        return Term(one, other, each * elements_of_block(checker, holder, found, span), 0)
    if times == "bits":
        times = 8 * each
    elif times == "block":
        times = elements_of_block(checker, holder, found, span)
    assert isinstance(times, int)
    return Term(one, other, each, times)


def _none(checker: Checker, number: Reckoned) -> Reckoned:
    truth = checker.program.intern(BoolType("bool", ByteSize(1)))
    return Reckoned(number.terms, number.constant, True, truth, number.span)


def _either(
    checker: Checker, holder: Typed, found: LibraryClass, said: Mapping[str, Any], span: Span
) -> Either:
    number = _sum(checker, holder, found, said["number"], span)
    both = [_there(checker, holder, found, said[key], span) for key in ("at_none", "other")]
    return Either(number, both[0], both[1], both[0].type, span)


def _empty(checker: Checker, holder: Typed, found: LibraryClass, span: Span) -> Typed | None:
    # Whether the size is 0, where there is one.
    if "size" in found.distances:
        end, start = reversed(found.distances["size"])
        return _none(checker, _sum(checker, holder, found, [[end, start, 1]], span))
    if "size" in found.methods:
        return _none(checker, _sum(checker, holder, found, [[found.methods["size"], "", 1]], span))
    if "size" in found.sums:
        return _none(checker, _sum(checker, holder, found, found.sums["size"], span))
    if "size" in found.choices:
        sizes = [[[path, "", 1]] for path in found.choices["size"]]
        both = [_none(checker, _sum(checker, holder, found, one, span)) for one in sizes]
        number = _sum(checker, holder, found, [[found.choice["tag"], "", 1]], span)
        return Either(number, both[0], both[1], both[0].type, span)
    if "size" in found.constants:
        count = number_of(checker, holder.type, found.constants.get("size"))
        truth = checker.program.intern(BoolType("bool", ByteSize(1)))
        return None if count is None else Constant(int(count == 0), truth, span)
    return None


def wide_text(checker: Checker, node: Typed, found: LibraryClass) -> Typed | None:
    """The characters of a string whose characters are no ``char``; None of other objects."""
    span = node.span
    if found.units:
        data, size = (_there(checker, node, found, one, span) for one in found.units)
        return _characters(checker, data, size, span)
    if found.choice.get("cases") and "size" in found.choices:
        both = []
        for paths in zip(found.choice["cases"], found.choices["size"], strict=True):
            data, size = (_there(checker, node, found, one, span) for one in paths)
            characters = _characters(checker, data, size, span)
            if characters is None:
                return None
            both.append(characters)
        number = _sum(checker, node, found, [[found.choice["tag"], "", 1]], span)
        return Either(number, both[0], both[1], node.type, span)
    return None


def _characters(checker: Checker, data: Typed, size: Typed, span: Span) -> Ranged | None:
    held = checker.resolved(data.type)
    assert isinstance(held, PointerType | ArrayType)
    element = held.target if isinstance(held, PointerType) else held.element
    text = encoding_by_name(checker, element)
    if not text:
        return None
    bound = held.count if isinstance(held, ArrayType) else None
    first = indices.element(checker, data, 0, span, span)
    wanted = RangeType(f"{checker.spell(element)}[]", None, element, text)
    return Ranged(first, 0, 0, size, bound, checker.program.intern(wanted), span)


def fixed_array(checker: Checker, node: Typed, found: LibraryClass) -> Typed | None:
    """What a span leads to whose type has the number of elements; None of other objects."""
    if not found.fixed:
        return None
    data = _there(checker, node, found, found.fixed, node.span)
    made = checker.resolved(data.type)
    count = number_of(checker, node.type, found.constants.get("size"))
    each = checker.size(made.target) if isinstance(made, PointerType) else None
    if count is None or not each or not isinstance(made, PointerType):
        return None
    wanted = checker.array_of(made.target, count, each)
    return Follow(Convert(data, checker.pointer_to(wanted), node.span), wanted, node.span)


def element_of_block(
    checker: Checker, node: Typed, found: LibraryClass, index: int, span: Span, index_span: Span
) -> Typed:
    """The element ``node[index]`` of a deque, in each of the places that it can be in.

    Raises CompileError FC0303 for a negative index, FC0304 where the places are too many.
    """
    if "[]" in found.refused:
        raise reject(
            "FC0304",
            f"an element of a `{found.name}` cannot be fetched: {found.refused['[]']}",
            index_span,
            "computed by the program",
            help="`.size()` is the number of its elements",
        )
    if index < 0:
        raise reject(
            "FC0303", f"the index {index} is before the first element", index_span, "below zero"
        )
    each = elements_of_block(checker, node, found, span)
    if min(index + 1, each) > _MOST_PLACES:
        raise reject(
            "FC0304",
            f"element {index} of the `{found.name}` is in one of {min(index + 1, each)} places",
            index_span,
            f"up to {_MOST_PLACES} can be fetched",
            notes=("which place it is depends on how much of the first block is used",),
            help=f"the elements 0 to {_MOST_PLACES - 1}, `.front()` and `.back()` can be had",
        )
    # With more left in the first block than `index` it is there, else further on by as many.
    here, ahead = found.blocks["here"], found.blocks["ahead"]
    last = _there(checker, node, found, here.replace("{at}", str(index)), span)
    places: list[Typed] = []
    for left in range(1, min(index, each) + 1):
        block, place = divmod(index - left, each)
        path = ahead.replace("{block}", str(block + 1)).replace("{at}", str(place))
        places.append(_there(checker, node, found, path, span))
    if index >= each:
        last = places[-1]
    for left in range(len(places), 0, -1):
        terms = [*found.blocks["left"], ["", "", -left]]
        number = _sum(checker, node, found, terms, span)
        last = Either(number, places[left - 1], last, last.type, span, True)
    return last


def flag(
    checker: Checker, node: Typed, found: LibraryClass, index: int, span: Span, index_span: Span
) -> Typed | None:
    """The bit ``index`` of a class that packs truth values; None of other classes."""
    if not found.flags or not checker.program.little_endian:
        return None
    count = number_of(checker, node.type, found.constants.get("size"))
    if index < 0 or (count is not None and index >= count):
        raise reject(
            "FC0303", f"the index {index} is outside of the `{found.name}`", index_span, "outside"
        )
    word = _there(checker, node, found, found.flags, span)
    made = checker.resolved(word.type)
    if isinstance(made, PointerType | ArrayType):
        target = made.target if isinstance(made, PointerType) else made.element
        bits = 8 * (checker.size(target) or 1)
        word = indices.element(checker, word, index // bits, span, index_span)
        index %= bits
    truth: TypeId = checker.program.intern(BoolType("bool", ByteSize(1)))
    return Part(word, ByteOffset(0), BitField(BitOffset(index), BitSize(1)), truth, span)
