"""Methods of classes of C++ libraries, and ``std::get`` of their parts."""

from __future__ import annotations

from fetchc.check import indexing, members
from fetchc.check.conversions import encoding_by_name
from fetchc.check.cpp_library import (
    alternatives,
    assume_alternative,
    block_length,
    dereferenced,
    fill_path,
    library_class,
    member_at,
    numbered_part,
    object_of,
    required_member,
    selected_member,
    template_number,
)
from fetchc.check.typed_tree import (
    AssumedCount,
    Computed,
    Conditional,
    Constant,
    Convert,
    Pointee,
    Ranged,
    Subobject,
    Term,
)
from fetchc.diag.diagnostic import reject
from fetchc.program.types import (
    ArrayType,
    BitField,
    BoolType,
    PointerType,
    RangeType,
    StructType,
)
from fetchc.quantities import BitOffset, BitSize, ByteOffset, ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from fetchc.check.checker import Checker
    from fetchc.check.cpp_library import LibraryClass
    from fetchc.check.typed_tree import Typed
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = [
    "assumed_count",
    "computed_method",
    "element_of_block",
    "fixed_array",
    "flag",
    "get_part",
    "method",
    "wide_text",
]

_DEEPEST = 8  # pointers to pointers; only a hostile type leads on
_OF_SOME = ("front", "back")  # no value where there is no element


def get_part(checker: Checker, node: Typed, wanted: str, span: Span, wanted_span: Span) -> Typed:
    """``std::get<wanted>(node)`` of a tuple, pair, array or variant: a part's number or type."""
    node = members.follow_pointer(checker, node, span)
    found = library_class(checker, node.type, span)
    if found is None or not found.get:
        raise reject(
            "FC0304",
            f"`{checker.spell(node.type)}` has no numbered parts",
            node.span,
            "`std::get` of it",
            help="it is for `std::tuple`, `std::pair`, `std::array` and `std::variant`",
        )
    number = (
        int(wanted)
        if wanted.isdecimal()
        else _of_type(checker, node, wanted, "array" in found.get, wanted_span)
    )
    part = numbered_part(checker, node, found, number, span)
    if part is None:
        many = len(alternatives(checker, node, found, span))
        raise reject(
            "FC0303",
            f"`{checker.spell(node.type)}` has no part {number}",
            wanted_span,
            f"its last one is {many - 1}" if many else "its parts are not known",
        )
    if found.choice:
        assume_alternative(checker, node, found, number, ".index()", span)
    return part


def _of_type(checker: Checker, node: Typed, wanted: str, array: bool, span: Span) -> int:
    """The number of the one part that has the type, by the arguments of the class's template."""
    from fetchc.program.cpp_names import arguments, canonical

    holder = checker.spell(node.type)
    resolved = checker.resolved(node.type)
    assert isinstance(resolved, StructType)
    # An array's parts have one type: its template's arguments are that and a number.
    parts = [] if array else arguments(resolved.name.partition("<")[2].removesuffix(">"))
    found = [at for at, part in enumerate(parts) if canonical(part) == canonical(wanted)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join([f"{at}: `{part.strip()}`" for at, part in enumerate(parts)])
    many = f"{len(found)} parts" if found else "no part"
    raise reject(
        "FC0303",
        f"`{holder}` has {many} of the type `{wanted}`",
        span,
        "which one is meant" if found else "not among its types",
        notes=(f"its parts are {listed}",) if listed else (),
        help="name the part by its number: `std::get<0>`",
    )


def method(
    checker: Checker, node: Typed, name: str, name_span: Span, deepest: int = _DEEPEST
) -> Typed | None:
    """What ``node.name()`` gives; raises CompileError FC0308 where it is computed.

    Of a smart pointer or an optional without such a method, what it leads to is asked for it.
    """
    span = node.span.to(name_span)
    holder = members.follow_pointer(checker, node, span)
    found = library_class(checker, holder.type, span)
    if found is None:
        return None
    if name in found.refused:
        raise reject(
            "FC0308",
            f"`{found.name}::{name}()` cannot be fetched: {found.refused[name]}",
            name_span,
            "computed by the program",
            help="fetch the values that it is computed from",
        )
    if name in _OF_SOME and name not in found.through:
        given = assumed_count(checker, holder, 1, span)
        if given is not None:
            checker.assumptions.append(given)
    if name in found.methods and found.methods[name] == found.object:
        return object_of(checker, holder, found, span)
    if name in found.methods:
        return required_member(checker, holder, found.methods[name], span)
    if name in found.choices:
        return selected_member(checker, holder, found, found.choices[name])

    value = computed_method(checker, holder, found, name, span, name_span)
    if value is not None:
        return value
    inner = dereferenced(checker, holder, span) if deepest else None
    if inner is not None and library_class(checker, inner.type, span) is not None:
        return method(checker, inner, name, name_span, deepest - 1)
    listed = ", ".join(f"`.{one}()`" for one in found.method_names)
    raise reject(
        "FC0302",
        f"`{found.name}::{name}()` is code that a fetch-arg cannot run",
        name_span,
        "not a member",
        notes=(f"available: {listed}",) if listed else (),
    )


def assumed_count(checker: Checker, holder: Typed, least: int, span: Span) -> AssumedCount | None:
    """What a reader has to check: that ``holder.size()`` is ``least`` or more.

    None of what is no library class, has no such method, or the same number of elements always.
    """
    found = library_class(checker, holder.type, span)
    if found is None or "size" not in found.method_names or "size" in found.constants:
        return None
    if found.units and found.index:
        least -= 1  # a string has a NUL after its last character
    number = method(checker, holder, "size", span) if least > 0 else None
    if number is None or isinstance(number, Constant):
        return None
    return AssumedCount(holder, least, False, span)


# ------------------------------------------------------------------------------
# What methods of C++ library classes compute: sizes, emptiness, the last element, wide strings.
#
# A fetch-arg has none of it; a reader makes it of what is fetched.

_MOST_PLACES = 128  # that an element of a deque can be in: one block of 4-byte elements


def computed_method(
    checker: Checker, holder: Typed, found: LibraryClass, name: str, span: Span, name_span: Span
) -> Typed | None:
    """What ``holder.name()`` computes, as what a reader makes it of; None of other methods.

    Raises CompileError FC0308 where the debug information lacks a type for it.
    """
    if name in found.through:
        path, _, inner = found.through[name].rpartition(".")
        return method(checker, _there(checker, holder, found, path, span), inner, name_span)
    if name in found.constants:
        number = template_number(checker, holder.type, found.constants[name])
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
    whole = fill_path(checker, holder, found, path, span)
    inner = None if whole is None else member_at(checker, holder, whole, span)
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
) -> Computed:
    summands, constant = [], 0
    for number, less, times in terms:
        if not number:
            constant += times
            continue
        one = _there(checker, holder, found, number, span)
        other = _there(checker, holder, found, less, span) if less else None
        summands.append(_term(checker, holder, found, one, other, times, span))
    if len(terms) == 1 and terms[0][1]:
        names = [path.rpartition(".")[2].strip("_").removeprefix("M_") for path in terms[0][:2]]
        summands = [summands[0].replaced(names=(names[0], names[1]))]
    return Computed(tuple(summands), constant, False, checker.word(), span)


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
        return Term(one, other, each * block_length(checker, holder, found, span), 0)
    if times == "bits":
        times = 8 * each
    elif times == "block":
        times = block_length(checker, holder, found, span)
    assert isinstance(times, int)
    return Term(one, other, each, times)


def _none(checker: Checker, number: Computed) -> Computed:
    truth = checker.program.intern(BoolType("bool", ByteSize(1)))
    return Computed(number.terms, number.constant, True, truth, number.span)


def _either(
    checker: Checker, holder: Typed, found: LibraryClass, terms: Mapping[str, Any], span: Span
) -> Conditional:
    number = _sum(checker, holder, found, terms["number"], span)
    both = [_there(checker, holder, found, terms[key], span) for key in ("at_none", "other")]
    return Conditional(number, both[0], both[1], both[0].type, span)


def _empty(checker: Checker, holder: Typed, found: LibraryClass, span: Span) -> Typed | None:
    # Whether the size is 0, where there is one.
    if "size" in found.methods:
        return _none(checker, _sum(checker, holder, found, [[found.methods["size"], "", 1]], span))
    if "size" in found.sums:
        return _none(checker, _sum(checker, holder, found, found.sums["size"], span))
    if "size" in found.choices:
        sizes = [[[path, "", 1]] for path in found.choices["size"]]
        both = [_none(checker, _sum(checker, holder, found, one, span)) for one in sizes]
        number = _sum(checker, holder, found, [[found.choice["tag"], "", 1]], span)
        return Conditional(number, both[0], both[1], both[0].type, span)
    if "size" in found.constants:
        count = template_number(checker, holder.type, found.constants.get("size"))
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
        return Conditional(number, both[0], both[1], node.type, span)
    return None


def _characters(checker: Checker, data: Typed, size: Typed, span: Span) -> Ranged | None:
    storage = checker.resolved(data.type)
    assert isinstance(storage, PointerType | ArrayType)
    element = storage.target if isinstance(storage, PointerType) else storage.element
    text = encoding_by_name(checker, element)
    if not text:
        return None
    bound = storage.count if isinstance(storage, ArrayType) else None
    first = indexing.element_at(checker, data, 0, span, span)
    wanted = RangeType(f"{checker.spell(element)}[]", None, element, text)
    return Ranged(first, 0, 0, size, bound, checker.program.intern(wanted), span)


def fixed_array(checker: Checker, node: Typed, found: LibraryClass) -> Typed | None:
    """What a span leads to whose type has the number of elements; None of other objects."""
    if not found.fixed:
        return None
    data = _there(checker, node, found, found.fixed, node.span)
    resolved = checker.resolved(data.type)
    count = template_number(checker, node.type, found.constants.get("size"))
    each = checker.size(resolved.target) if isinstance(resolved, PointerType) else None
    if count is None or not each or not isinstance(resolved, PointerType):
        return None
    wanted = checker.array_of(resolved.target, count, each)
    return Pointee(Convert(data, checker.pointer_to(wanted), node.span), wanted, node.span)


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
    each = block_length(checker, node, found, span)
    if min(index + 1, each) > _MOST_PLACES:
        raise reject(
            "FC0304",
            f"element {index} of the `{found.name}` is in one of {min(index + 1, each)} places",
            index_span,
            f"up to {_MOST_PLACES} can be fetched",
            notes=("which place it is depends on how much of the first block is used",),
            help=f"the elements 0 to {_MOST_PLACES - 1}, `.front()` and `.back()` are available",
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
        last = Conditional(number, places[left - 1], last, last.type, span, True)
    return last


def flag(
    checker: Checker, node: Typed, found: LibraryClass, index: int, span: Span, index_span: Span
) -> Typed | None:
    """The bit ``index`` of a class that packs truth values; None of other classes."""
    if not found.flags or not checker.program.little_endian:
        return None
    count = template_number(checker, node.type, found.constants.get("size"))
    if index < 0 or (count is not None and index >= count):
        raise reject(
            "FC0303", f"the index {index} is outside of the `{found.name}`", index_span, "outside"
        )
    word = _there(checker, node, found, found.flags, span)
    resolved = checker.resolved(word.type)
    if isinstance(resolved, PointerType | ArrayType):
        target = resolved.target if isinstance(resolved, PointerType) else resolved.element
        bits = 8 * (checker.size(target) or 1)
        word = indexing.element_at(checker, word, index // bits, span, index_span)
        index %= bits
    truth: TypeId = checker.program.intern(BoolType("bool", ByteSize(1)))
    return Subobject(word, ByteOffset(0), BitField(BitOffset(index), BitSize(1)), truth, span)
