"""What every shape is made of: numbers, texts, the bytes they are in, the pointers on the way."""

from __future__ import annotations

from fetchc.check.members import part
from fetchc.ir.fetch import Array, Bits, Decode, Deref, Symbol, Text, fixed_bytes
from fetchc.lower.fetches import Lowered, Memory, load_word, plain, where
from fetchc.lower.lowering import scalar
from fetchc.program.types import StructType
from fetchc.tracer.plan.extents import extents, joined
from fetchc.tracer.shape import Guard, Leaf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.probe_site import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.lower.fetches import Plain
    from fetchc.quantities import TypeId
    from fetchc.syntax.tree import Format
    from fetchc.tracer.plan.extents import Limits
    from fetchc.tracer.plan.fields import Fields
    from fetchc.tracer.shape import Shape

__all__ = ["Leaves", "number_alone"]


def number_alone(leaf: Leaf) -> Leaf:
    """The number that a value is told by, without the name that it has."""
    plain = Decode("integer", leaf.decode.bits, leaf.decode.signed)
    return Leaf(leaf.field, plain, leaf.offset, leaf.size, leaf.shift, leaf.guards)


class Leaves:
    """The parts of one argument that are fetched each by itself."""

    def __init__(self, checker: Checker, fields: Fields) -> None:
        self._checker = checker
        self._fields = fields

    def shape(self, node: Typed, format: Format | None, limits: Limits) -> Shape:
        """The shape of ``node``; raises CompileError where it cannot be fetched."""
        raise NotImplementedError

    def _plain(self, type_id: TypeId) -> Plain | None:
        """How a reader shows a scalar of a type; None where it is none that the kernel has."""
        return plain(self._checker, type_id)

    def _word(self, node: Typed) -> Lowered:
        simple = plain(self._checker, node.type)
        assert simple is not None
        return scalar(self._checker, node, simple)

    def _leaf(self, lowered: Lowered, empty: bool = False) -> Leaf:
        fetch = lowered.fetch
        spot = self._fields.spot(fetch)
        field, offset, size = spot or (self._fields.add(fetch), 0, 0)
        shift = fetch.store.offset if spot and isinstance(fetch.store, Bits) else 0
        dynamic = isinstance(fetch.store, Text | Array | Symbol)
        size_alone = 0 if dynamic else fixed_bytes(fetch.store)
        text = lowered.decode.kind == "text"
        guards = self._fields.guards(fetch.value, size_alone, empty or text)
        # NULL where a text begins is no text; a text in a structure at NULL is a fault.
        no_text = text and bool(guards) and not guards[-1].moved
        if (empty and guards) or no_text:
            last = guards[-1]
            emptied = Guard(last.field, last.offset, last.moved, True, last.kernel, last.told)
            guards = (*guards[:-1], emptied)
        return Leaf(field, lowered.decode, offset, size, shift, guards)

    def _numbers(self, node: Typed, made: StructType) -> tuple[tuple[str, Leaf], ...]:
        # Those of structures among the members too.
        found: list[tuple[str, Leaf]] = []
        for member in made.members:
            inner = part(node, member, node.span)
            kind = self._checker.resolved(member.type)
            if isinstance(kind, StructType):
                found += self._numbers(inner, kind)
            else:
                found.append((member.name, self._leaf(self._word(inner))))
        return tuple(found)

    def _fetch_bytes(self, node: Typed, limits: Limits, count: int = 1) -> None:
        # What is in memory comes in as few pieces as can be; its members are found in them.
        found = where(self._checker.site, node)
        if not isinstance(found, Memory):
            return
        stride = self._checker.size(node.type) or 0
        wanted = extents(self._checker, node.type, limits)
        starts = [stride * index for index in range(count)]
        for low, high in joined([(at + low, at + high) for at in starts for low, high in wanted]):
            place = Memory(found.base, found.offset + low, found.user)
            start = load_word(self._checker.site, place, node.span)
            assert isinstance(start, Deref)
            if high - low > 8:
                self._fields.block(start, high - low)

    def _guards_of(self, node: Typed) -> tuple[Guard, ...]:
        found = where(self._checker.site, node)
        if not isinstance(found, Memory):
            return ()
        return self._fields.guards(load_word(self._checker.site, found, node.span))
