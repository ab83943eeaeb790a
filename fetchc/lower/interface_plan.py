"""Plans of Go interfaces: the dynamic type, and descriptions of the values of some types.

The types are those of ``targets/runtime/go/known.toml``. What a description needs is fetched with
the interface, whatever it holds; the reader uses it if the dynamic type is that one.
"""

from __future__ import annotations

import re

from fetchc.check import go_values
from fetchc.check.members import named_member
from fetchc.record import Record
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.lower.aggregate_plan import InterfacePlan
    from fetchc.program.entities import RuntimeType
    from fetchc.program.protocol import RuntimeTypes

__all__ = [
    "DescriptionPlan",
    "DynamicTypePlan",
    "description",
    "dynamic_type",
    "held",
    "runtime_types",
    "wordings",
]

_INNER = ("", "first", "second")
_PLACE = r"\{(\w*)(:errno)?\}"


class DynamicTypePlan(Record):
    """The dynamic type of an interface: ``word`` is the address of its type descriptor.

    The offsets of ``types`` are relative to ``start``. ``may_be_null``: the way to the word is
    through a pointer that is NULL where the interface holds nothing.
    """

    word: Typed
    start: Typed
    types: RuntimeTypes
    may_be_null: bool


class DescriptionPlan(Record):
    """How to describe a value whose type descriptor has the offset ``wanted``.

    ``parts`` are strings and values. ``numbered``: a number among them is an errno.
    """

    wanted: int
    parts: tuple[str | Typed, ...]
    numbered: bool


def dynamic_type(checker: Checker, planned: InterfacePlan) -> DynamicTypePlan | None:
    """The dynamic type of an interface; None where the program does not say how to find it."""
    node, resolved = planned.node, planned.type
    types = runtime_types(checker)
    word = go_values.dynamic_type(checker, node, resolved, node.span)
    start = go_values.types_start(checker, node.span)
    if types is None or word is None or start is None:
        return None
    return DynamicTypePlan(word, start, types, not resolved.empty)


def runtime_types(checker: Checker) -> RuntimeTypes | None:
    """The types that the program describes at run time; None of one that is not of Go."""
    go = checker.program.go
    return None if go is None else go.runtime_types()


def wordings(checker: Checker, planned: InterfacePlan, level: int) -> Mapping[str, str]:
    """The types whose values are described, each with its description.

    ``level`` counts the errors around the interface.
    """
    listed = table("runtime/go/known")
    found: Mapping[str, str] = {}
    if planned.type.empty:
        found = listed["any"] if level == 0 else {}
    elif checker.spell(planned.node.type) == "error" and level < len(_INNER):
        names = listed["inner"][_INNER[level]] if level else listed["error"]
        found = {name: listed["error"][name] for name in names}
    return found


def description(
    checker: Checker, planned: InterfacePlan, name: str, words: str
) -> DescriptionPlan | None:
    """How to describe a value of the type ``name``; None where the program has no such type.

    Raises CompileError where the type lacks a member that ``words`` name.
    """
    found = go_values.value_as_type(checker, planned.node, planned.type, name)
    if found is None:
        return None
    descriptor, value = found
    parts: list[str | Typed] = []
    numbered, at = False, 0
    for place in re.finditer(_PLACE, words):
        member = named_member(checker, value, place[1], value.span) if place[1] else value
        parts += [words[at : place.start()], member]
        numbered, at = numbered or place[2] is not None, place.end()
    parts.append(words[at:])
    return DescriptionPlan(descriptor.offset, tuple([one for one in parts if one != ""]), numbered)


_MOST_HELD = 8  # types that an interface can hold; what each needs is fetched at every hit


def held(checker: Checker, planned: InterfacePlan) -> list[tuple[int, Typed]]:
    """The value as each type that the program converts to the interface, by its offset.

    Of many types those of the probed function's package come first. Empty of an `any`: nothing
    says what a program puts into it.
    """
    function = checker.site.function
    package = "" if function is None else function.name.rpartition("/")[2].partition(".")[0]
    values = list(go_values.held_values(checker, planned.node, planned.type))

    def is_elsewhere(one: tuple[RuntimeType, Typed]) -> bool:
        return not checker.spell(one[1].type).lstrip("*").startswith(f"{package}.")

    listed = sorted(values, key=is_elsewhere)[:_MOST_HELD]
    return [(wanted.offset, value) for wanted, value in listed]
