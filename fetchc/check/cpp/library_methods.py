"""Methods of classes of C++ libraries, and ``std::get`` of their parts."""

from __future__ import annotations

from fetchc.check import members
from fetchc.check.cpp.library import chosen, followed, grant, known_at, member, object_of
from fetchc.check.cpp.library_data import library_class
from fetchc.check.cpp.library_paths import alternatives, numbered
from fetchc.check.typed import Constant, Convert, Counted
from fetchc.diag.diagnostic import reject
from fetchc.program.types import DifferenceType, PointerType, StructType
from fetchc.quantities import ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.source import Span

__all__ = ["counted_by", "gotten", "method"]

_DEEPEST = 8  # pointers to pointers; only a hostile type leads on
_OF_SOME = ("front", "back")  # no value where there is no element


def gotten(checker: Checker, node: Typed, wanted: str, span: Span, wanted_span: Span) -> Typed:
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
    part = numbered(checker, node, found, number, span)
    if part is None:
        many = len(alternatives(checker, node, found, span))
        raise reject(
            "FC0303",
            f"`{checker.spell(node.type)}` has no part {number}",
            wanted_span,
            f"its last one is {many - 1}" if many else "what it is made of is not known",
        )
    if found.choice:
        grant(checker, node, found, number, ".index()", span)
    return part


def _of_type(checker: Checker, node: Typed, wanted: str, array: bool, span: Span) -> int:
    """The number of the one part that has the type, by the arguments of the class's template."""
    from fetchc.program.cpp_names import arguments, canonical

    holder = checker.spell(node.type)
    made = checker.resolved(node.type)
    assert isinstance(made, StructType)
    # An array's parts have one type: its template's arguments are that and a number.
    parts = [] if array else arguments(made.name.partition("<")[2].removesuffix(">"))
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

    A smart pointer or an optional that has no such method stands for what it leads to.
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
            help="fetch what it is computed from, by those names",
        )
    if name in _OF_SOME and name not in found.through:
        given = counted_by(checker, holder, 1, span)
        if given is not None:
            checker.assertions.append(given)
    if name in found.methods and found.methods[name] == found.object:
        return object_of(checker, holder, found, span)
    if name in found.methods:
        return known_at(checker, holder, found.methods[name], span)
    if name in found.distances:
        return _distance(checker, holder, found.distances[name], span)
    if name in found.choices:
        return chosen(checker, holder, found, found.choices[name])
    from fetchc.check.cpp.library_made import computed

    value = computed(checker, holder, found, name, span, name_span)
    if value is not None:
        return value
    inner = followed(checker, holder, span) if deepest else None
    if inner is not None and library_class(checker, inner.type, span) is not None:
        return method(checker, inner, name, name_span, deepest - 1)
    known = ", ".join(f"`.{one}()`" for one in found.known)
    raise reject(
        "FC0302",
        f"`{found.name}::{name}()` is code that no fetch-arg can run",
        name_span,
        "not a member",
        notes=(f"what can be had: {known}",) if known else (),
    )


def counted_by(checker: Checker, holder: Typed, least: int, span: Span) -> Counted | None:
    """What a reader has to see to: that ``holder.size()`` is ``least`` or more.

    None of what is no library class, has no such method, or the same number of elements always.
    """
    found = library_class(checker, holder.type, span)
    if found is None or "size" not in found.known or "size" in found.constants:
        return None
    if found.units and found.index:
        least -= 1  # a string has a NUL behind its last character
    number = method(checker, holder, "size", span) if least > 0 else None
    if number is None or isinstance(number, Constant):
        return None
    return Counted(holder, least, False, span)


def _distance(checker: Checker, holder: Typed, paths: list[str], span: Span) -> Typed:
    # The number of elements between two pointers: no fetch-arg subtracts, a reader does.
    start, end = (known_at(checker, holder, path, span) for path in paths)
    made = checker.resolved(start.type)
    each = checker.size(made.target) if isinstance(made, PointerType) else None
    if not each:
        raise reject("FC0311", f"the elements of `{checker.spell(holder.type)}` have no size", span)
    names = [path.rpartition(".")[2].strip("_").removeprefix("M_") for path in paths]
    first, last = member(start, holder, names[0]), member(end, holder, names[1])
    word = ByteSize(checker.program.word_bytes)
    difference = DifferenceType("unsigned long", word, last, first, each)
    return Convert(holder, checker.program.intern(difference), span)
