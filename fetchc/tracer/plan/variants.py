"""Enums with fields and tuples: which of the variants is there is told by the record itself."""

from __future__ import annotations

from fetchc.check.members import part
from fetchc.diag.diagnostic import CompileError
from fetchc.lower import aggregates
from fetchc.lower.lowering import left_out
from fetchc.program.types import StructType
from fetchc.tracer.plan.leaves import Leaves, number_alone
from fetchc.tracer.shape import Case, Items, Members, Variants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.typed_tree import Typed
    from fetchc.program.types import Member, Variant
    from fetchc.tracer.plan.extents import Limits

__all__ = ["Enums", "is_tuple"]


def is_tuple(members: tuple[Member, ...]) -> bool:
    """Whether the members are numbered, as those of Rust's tuples are: ``__0``, ``__1``."""
    return bool(members) and all(
        member.name == f"__{number}" for number, member in enumerate(members)
    )


class Enums(Leaves):
    """The shapes of enums with fields."""

    def _variants(self, node: Typed, made: StructType, limits: Limits) -> Variants:
        if limits.depth <= 0 or (not made.members and len(made.variants) != 1):
            raise aggregates.refuse_whole(self._checker, node, made)
        self._fetch_bytes(node, limits)
        tag = None
        if made.members:
            word = self._word(part(node, made.members[0], node.span))
            tag = number_alone(self._leaf(word))
        left: list[str] = []
        cases = tuple([self._case(node, one, limits, left) for one in made.variants])
        if left:
            self._checker.warnings.append(left_out(self._checker, node, left))
        return Variants(tag, cases)

    def _case(self, node: Typed, variant: Variant, limits: Limits, left: list[str]) -> Case:
        member = variant.member
        fields = self._checker.resolved(member.type)
        filled = self._filled(fields) if isinstance(fields, StructType) else []
        if not filled:
            return Case(variant.value, member.name, None)
        mark = self._fields.mark()
        try:
            with self._fields.assuming():
                inner = self.shape(part(node, member, node.span), None, limits)
        except CompileError:
            self._fields.forget(mark)
            left.append(member.name)
            return Case(variant.value, member.name, None, left=len(filled))
        # What one field is in is not shown: `Some(3)`.
        if isinstance(inner, Items) and inner.parts and len(inner.items) == 1:
            return Case(variant.value, member.name, inner.items[0], single=True)
        return Case(variant.value, member.name, inner)

    def _filled(self, made: StructType) -> list[Member]:
        # Without what takes no room: markers, `()`.
        return [one for one in made.members if self._checker.size(one.type) != 0]

    def _structure(self, node: Typed, made: StructType, limits: Limits) -> Members | Items:
        raise NotImplementedError
