"""What interfaces of Go hold, in words, where it is of a type that is known by name.

Which types, and what is said of each, is in ``targets/runtime/go/known.toml``. What they need is
fetched beside the interface, whatever it holds; the reader takes it where the dynamic type is that
one, and else tells the type's name alone.
"""

from __future__ import annotations

import re

from fetchc.check.go_values import held_as
from fetchc.check.members import named_member
from fetchc.diag.diagnostic import CompileError
from fetchc.program.types import InterfaceType
from fetchc.target.machines import table
from fetchc.tracer.shape import Known, Worded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fetchc.check.probe_site import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.tracer.plan.extents import Limits
    from fetchc.tracer.plan.fields import Fields
    from fetchc.tracer.shape import Shape, TypeName

__all__ = ["Wording"]

_INNER = ("", "first", "second")
_SHORTEST = 64  # bytes of a text: where there is room for less, types are told alone
_PLACE = r"\{(\w*)(:errno)?\}"


class Wording:
    """Adds words to shapes of interfaces. ``shape`` and ``dynamic_type`` are the shaper's."""

    __slots__ = ("_checker", "_dynamic_type", "_fields", "_limits", "_shape")

    def __init__(
        self,
        checker: Checker,
        fields: Fields,
        limits: Limits,
        shape: Callable[[Typed, None, Limits], Shape],
        dynamic_type: Callable[[Typed, InterfaceType], TypeName | None],
    ) -> None:
        self._checker, self._fields, self._limits = checker, fields, limits
        self._shape, self._dynamic_type = shape, dynamic_type

    def of(self, node: Typed, made: InterfaceType, plain: Shape, level: int = 0) -> Shape:
        """``plain`` of the interface ``node``, with words of what it holds where that is known.

        ``level`` counts the errors around it. ``plain`` alone where the program has none of the
        types, or there is no room.
        """
        dynamic = self._dynamic_type(node, made)
        if dynamic is None or self._limits.text < _SHORTEST:
            return plain
        known = []
        for name, words in self._told(node, made, level).items():
            mark = self._fields.mark()
            try:
                with self._fields.assuming():
                    one = self._one(node, made, name, words, level)
            except CompileError:
                self._fields.forget(mark)
            else:
                known += one
        return Worded(dynamic, plain, tuple(known), level > 0) if known else plain

    def _told(self, node: Typed, made: InterfaceType, level: int) -> Mapping[str, str]:
        told = table("runtime/go/known")
        found: Mapping[str, str] = {}
        if made.empty:
            found = told["any"] if level == 0 else {}
        elif self._checker.spell(node.type) == "error" and level < len(_INNER):
            names = told["inner"][_INNER[level]] if level else told["error"]
            found = {name: told["error"][name] for name in names}
        return found

    def _one(
        self, node: Typed, made: InterfaceType, name: str, words: str, level: int
    ) -> list[Known]:
        # What is fetched for a value of that type; nothing where the program has no such type.
        found = held_as(self._checker, node, made, name)
        if found is None:
            return []
        descriptor, value = found
        parts: list[str | Shape] = []
        numbered, at = False, 0
        for place in re.finditer(_PLACE, words):
            parts += [words[at : place.start()], self._member(value, place[1], level)]
            numbered, at = numbered or place[2] is not None, place.end()
        parts.append(words[at:])
        return [Known(descriptor.offset, tuple([one for one in parts if one != ""]), numbered)]

    def _member(self, value: Typed, name: str, level: int) -> Shape:
        inner = named_member(self._checker, value, name, value.span) if name else value
        made = self._checker.resolved(inner.type)
        if not isinstance(made, InterfaceType):
            return self._shape(inner, None, self._limits)
        dynamic = self._dynamic_type(inner, made)
        assert dynamic is not None
        return self.of(inner, made, dynamic, level + 1)
