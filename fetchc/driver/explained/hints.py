"""What the parts of an expression are called, and their types, by the values that fetch them."""

from __future__ import annotations

from fetchc.check.typed_tree import Part, Shift
from fetchc.diag.diagnostic import CompileError
from fetchc.driver.explained.landmarks import Spot, inside
from fetchc.ir.fetch import Array, Bits, Text
from fetchc.lower.model import InValue, Memory
from fetchc.lower.where import load_word, where
from fetchc.program.types import SliceType, StringType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.probe_site import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.ir.fetch import Store, Value

__all__ = ["Hints"]


class Hints:
    """The parts of the expression ``text``; none, until it learns of them."""

    def __init__(self, checker: Checker, text: str) -> None:
        self._checker = checker
        self._text = text
        self._known: dict[Value, list[Spot]] = {}

    def learn(self, node: Typed) -> None:
        """Take in ``node`` and all that it is made of, the innermost part first."""
        base: Typed | None = getattr(node, "base", None)
        if base is not None:
            self.learn(base)
        try:
            found = where(self._checker.site, node)
            if isinstance(found, Memory) or (isinstance(found, InValue) and not found.offset):
                value = load_word(self._checker.site, found, node.span)
                spot = Spot(self._shown(node), node.type)
                self._known.setdefault(value, []).append(spot)
        except CompileError:
            pass  # an address, part of a register: no value that a fetch goes through

    def _shown(self, node: Typed) -> str:
        # The place of a member starts behind the bracket of a cast, which is part of it.
        start, end = node.span.start, node.span.end
        text = self._text[start:end]
        while start and text.count(")") > text.count("(") and self._text[start - 1] == "(":
            start -= 1
            text = self._text[start:end]
        if isinstance(node, Part):
            holder = self._checker.resolved(node.base.type)
            if not isinstance(holder, SliceType | StringType) or node.offset != 0:
                return text
            if node.span == node.base.span:
                return f"{text}.{holder.members[0].name}"
        elif not isinstance(node, Shift):
            return text
        # s[1] of a slice or pointer: the pointer to the element has the element's place.
        return f"&{text}" if text.endswith("]") else text

    def of(self, value: Value, size: int, store: Store | None = None) -> Spot | None:
        """What is at ``value``: of an object and its first part the one that has ``size``."""
        known = self._known.get(value, [])
        if not known:
            return None
        fitting = [spot for spot in known if self._size(spot) == size]
        spot = (fitting or known)[-1]
        if fitting or isinstance(store, Bits | Text | Array):
            return spot
        return inside(self._checker, spot, 0, size, None)

    def _size(self, spot: Spot) -> int | None:
        assert spot.type is not None
        return self._checker.size(spot.type)
