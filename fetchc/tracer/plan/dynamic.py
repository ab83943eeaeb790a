"""Values whose type is told by the object: Go's interfaces, type assertions, .NET's casts."""

from __future__ import annotations

from fetchc.check.builtins import capacity, length
from fetchc.check.dotnet_references import described
from fetchc.check.go_values import dynamic_type, first_type
from fetchc.check.members import part
from fetchc.check.typed_tree import Asserted as AssertedNode
from fetchc.check.typed_tree import Counted, Described, Present
from fetchc.check.typed_tree import Dispatched as DispatchedNode
from fetchc.lower.lowering import lower
from fetchc.program.types import InterfaceType
from fetchc.tracer.plan.leaves import Leaves, number_alone
from fetchc.tracer.shape import (
    Asserted,
    Dispatched,
    Identity,
    Inside,
    Members,
    OfType,
    OfVariant,
    TypeName,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.check.typed_tree import Granted, Typed
    from fetchc.tracer.plan.extents import Limits
    from fetchc.tracer.shape import Shape

__all__ = ["Dynamic"]


class Dynamic(Leaves):
    """Shapes that compare or name a dynamic type."""

    def within(self, shape: Shape, limits: Limits, given: Iterable[Granted]) -> Shape:
        """``shape`` behind all that assertions and indices take for granted, the last first."""
        for one in given:
            if isinstance(one, Counted):
                count = capacity if one.most else length
                number = count(self._checker, one.holder, one.span)
                shape = Inside(self.shape(number, None, limits), one.least, shape)
                continue
            if isinstance(one, Described):
                shape = self._of_type(one, shape)
                continue
            if isinstance(one, Present):
                names = tuple([(each.value, each.member.name) for each in one.variants])
                tag = number_alone(self._leaf(self._word(one.tag)))
                shape = OfVariant(tag, names, one.wanted, shape)
                continue
            shape = Asserted(self._asserted_type(one), one.wanted.offset, shape)
        return shape

    def _asserted_type(self, one: AssertedNode) -> TypeName:
        types = self._checker.program.runtime_types()
        assert types is not None
        # The first word of an interface with methods is NULL where it holds nothing.
        word = self._leaf(self._word(one.word), empty=not one.empty)
        return TypeName(word, self._leaf(self._word(one.start)), types)

    def _dispatched(self, node: DispatchedNode, limits: Limits) -> Dispatched:
        first = node.cases[0][0]
        with self._fields.assuming():
            cases = [
                (one.wanted.offset, self.shape(value, None, limits)) for one, value in node.cases
            ]
        return Dispatched(self._asserted_type(first), tuple(cases))

    def _of_type(self, one: Described, inner: Shape, otherwise: OfType | None = None) -> OfType:
        checker = self._checker
        types = checker.program.object_types()
        assert types is not None
        told = described(checker, one, types)
        reference = self._leaf(self._word(one.reference))
        element = None
        if told.element_row is not None and told.element_assembly is not None:
            element = self._identity(told.element_row, told.element_assembly)
        own, rank = self._identity(told.row, told.assembly), self._leaf(self._word(told.rank))
        return OfType(reference, own, element, rank, types, one.wanted, inner, otherwise)

    def _identity(self, row: Typed, assembly: Typed) -> Identity:
        (name,) = lower(self._checker, assembly, None, whole=False)
        return Identity(self._leaf(self._word(row)), self._leaf(name))

    def _interface(self, node: Typed, made: InterfaceType, limits: Limits) -> Shape:
        self._fetch_bytes(node, limits)
        _, data = made.members
        words = [("data", self.shape(part(node, data, node.span), None, limits))]
        dynamic = self._dynamic_type(node, made)
        if dynamic is None:
            first = part(node, made.members[0], node.span)
            words.insert(0, (made.members[0].name.lstrip("_"), self.shape(first, None, limits)))
        else:
            words.insert(0, ("type", dynamic))
        plain = Members(tuple(words), self._guards_of(node))
        if dynamic is None:
            return plain
        from fetchc.tracer.plan.known import Wording

        wording = Wording(self._checker, self._fields, limits, self.shape, self._dynamic_type)
        return wording.of(node, made, plain)

    def _dynamic_type(self, node: Typed, made: InterfaceType) -> TypeName | None:
        types = self._checker.program.runtime_types()
        word = dynamic_type(self._checker, node, made, node.span)
        start = first_type(self._checker, node.span)
        if types is None or word is None or start is None:
            return None
        table = self._leaf(self._word(word), empty=not made.empty)
        return TypeName(table, self._leaf(self._word(start)), types)
