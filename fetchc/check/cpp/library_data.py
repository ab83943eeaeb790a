"""Which class of a C++ library a type is.

What classes are made of is data (targets/runtime/cpp). A class is one of them by its name and by
having the members that the data names.
"""

from __future__ import annotations

from fetchc.check.cpp.library_paths import alternatives, at, plain_name
from fetchc.check.typed import Constant, Follow, Part
from fetchc.diag.diagnostic import CompileError
from fetchc.program.types import ArrayType, PointerType, StructType
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = [
    "LibraryClass",
    "elements_of_block",
    "filled",
    "library_class",
    "number_of",
]

_TABLES = "runtime/cpp"
_DIGITS = 20  # of the longest number of 64 bits
_NONE: Mapping[str, Any] = {}


class LibraryClass(Record):
    """One class: paths of members, as targets/runtime/cpp has them; empty where it has none."""

    name: str
    value: str = ""
    worth: str = ""
    nothing: str = ""
    index: str = ""
    follow: str = ""
    object: str = ""
    fixed: str = ""
    flags: str = ""
    low_first: str = ""
    has: Sequence[str] = ()
    counted: Sequence[str] = ()
    units: Sequence[str] = ()
    ends: Sequence[str] = ()
    as_many: Sequence[Any] = ()
    block: Sequence[Any] = ()
    get: Mapping[str, Any] = _NONE
    choice: Mapping[str, Any] = _NONE
    methods: Mapping[str, str] = _NONE
    distances: Mapping[str, list[str]] = _NONE
    choices: Mapping[str, list[str]] = _NONE
    refused: Mapping[str, str] = _NONE
    constants: Mapping[str, int] = _NONE
    through: Mapping[str, str] = _NONE
    sums: Mapping[str, list[Any]] = _NONE
    nones: Mapping[str, list[Any]] = _NONE
    either: Mapping[str, Mapping[str, Any]] = _NONE
    maybe: Mapping[str, str] = _NONE
    blocks: Mapping[str, Any] = _NONE

    @property
    def known(self) -> list[str]:
        """The methods that can be had, in order."""
        named = {*self.methods, *self.distances, *self.choices, *self.through, *self.constants}
        named |= {*self.sums, *self.nones, *self.either, *self.maybe}
        return sorted(named | ({"empty"} if "size" in named else set()))


def library_class(checker: Checker, type_id: TypeId, span: Span) -> LibraryClass | None:
    """What is known of a class by its name; None of others, and of one that is made otherwise."""
    made = checker.resolved(type_id)
    if not isinstance(made, StructType) or not made.is_library:
        return None
    if "<" in made.name and not made.name.endswith(">"):
        return None  # a class inside of another one
    from fetchc.target.machines import tables_under

    name = plain_name(made.name)
    start = Constant(0, checker.pointer_to(type_id), span)
    sample = Follow(start, type_id, span)
    for table in tables_under(_TABLES).values():
        for raw in table["class"]:
            if raw["name"] == name:
                found = LibraryClass(**raw)
                if _is_made_so(checker, sample, found, span):
                    return found
    return None


def _is_made_so(checker: Checker, sample: Typed, found: LibraryClass, span: Span) -> bool:
    if not all(_has(checker, sample, path, span) for path in _paths(found)):
        return False
    if found.as_many:
        path, argument = found.as_many
        held = at(checker, sample, path, span)
        made = None if held is None else checker.resolved(held.type)
        if not isinstance(made, ArrayType) or made.count != number_of(
            checker, sample.type, argument
        ):
            return False
    if found.get and not alternatives(checker, sample, found, span, most=1):
        return False
    if not found.low_first:
        return True
    node = at(checker, sample, found.low_first, span)
    offset = 0
    while isinstance(node, Part):
        offset += node.offset
        node = node.base
    return offset == 0 and checker.program.little_endian


def _has(checker: Checker, sample: Typed, path: str, span: Span) -> bool:
    try:
        return at(checker, sample, path, span) is not None
    except CompileError:
        return False


def _paths(found: LibraryClass) -> list[str]:
    paths = [found.value, found.index, found.follow, found.object, *found.counted, *found.ends]
    paths += [found.choice.get("tag", ""), *found.choice.get("cases", ())]
    paths += found.methods.values()
    for some in (*found.distances.values(), *found.choices.values()):
        paths += some
    paths += [*found.has, *found.units, found.fixed, found.flags]
    paths += [path.rpartition(".")[0] for path in found.through.values()]
    sums = [*found.sums.values(), *found.nones.values()]
    if found.blocks:
        sums.append(found.blocks["left"])
    for terms in [*sums, *[one["number"] for one in found.either.values()]]:
        paths += [path for number, less, _ in terms for path in (number, less)]
    return [path for path in paths if path]


def number_of(checker: Checker, type_id: TypeId, argument: int | None) -> int | None:
    """The number that a class's template has as that argument; None where it has none there."""
    from fetchc.program.cpp_names import arguments, canonical

    made = checker.resolved(type_id)
    if not isinstance(made, StructType) or argument is None:
        return None
    given = arguments(made.name.partition("<")[2].removesuffix(">"))
    text = canonical(given[argument]) if argument < len(given) else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


def elements_of_block(checker: Checker, holder: Typed, found: LibraryClass, span: Span) -> int:
    """How many elements each block of a deque has: as many as fit, and one at least."""
    path, room = found.block
    start = at(checker, holder, path, span)
    made = None if start is None else checker.resolved(start.type)
    each = checker.size(made.target) if isinstance(made, PointerType) else None
    return max(1, room // each) if each else 1


def filled(
    checker: Checker, holder: Typed, found: LibraryClass, path: str, span: Span
) -> str | None:
    """``path`` with the index of the last element of a block or array for ``{last}``.

    None where there are no elements, or the name of the class does not tell how many.
    """
    if "{last}" not in path:
        return path
    if found.block:
        count = elements_of_block(checker, holder, found, span)
    else:
        count = number_of(checker, holder.type, found.constants.get("size")) or 0
    return path.replace("{last}", str(count - 1)) if count else None
