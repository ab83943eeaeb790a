"""The shapes of values that depend on the dynamic type (interfaces, casts) or on the caller."""

from __future__ import annotations

import re

from fetchc.check.builtins import capacity, length
from fetchc.check.dotnet_rules import described
from fetchc.check.go_parameters import lost_by
from fetchc.check.go_values import dynamic_type, first_type, held_as
from fetchc.check.members import named_member, part
from fetchc.check.typed_tree import (
    Address,
    Constant,
    Convert,
    Counted,
    Described,
    Held,
    Part,
    Present,
    Special,
)
from fetchc.check.typed_tree import Asserted as AssertedNode
from fetchc.check.typed_tree import Dispatched as DispatchedNode
from fetchc.debuginfo.dwarf.enclosing_frames import entered_with
from fetchc.diag.diagnostic import CompileError
from fetchc.ir.fetch import Decode, Fetch, Register, Word
from fetchc.lower import strings
from fetchc.lower.fetches import plain
from fetchc.lower.lowering import kept, lower
from fetchc.lower.no_fetch import lost, register_of
from fetchc.program.entities import (
    AtAddress,
    Indirect,
    InMemory,
    InRegister,
    Pieces,
    PointerTo,
    is_on_entry,
)
from fetchc.program.entities import Constant as Known
from fetchc.program.types import InterfaceType, PointerType
from fetchc.target.machines import table
from fetchc.tracer.event_fields import LeafShapes, plain_number
from fetchc.tracer.value_shapes import (
    BoundsCheckShape,
    CallerShape,
    CastShape,
    GrowthCheckShape,
    InterfaceShape,
    Leaf,
    StructShape,
    SumShape,
    TypeAssertionShape,
    TypeDescription,
    TypeIdentity,
    TypeNameShape,
    TypeSwitchShape,
    VariantCheckShape,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Granted, Typed
    from fetchc.lower.fetches import Plain
    from fetchc.program.entities import Callers, Place
    from fetchc.program.protocol import RuntimeTypes
    from fetchc.syntax.tree import Format
    from fetchc.tracer.event_fields import Fields, Limits
    from fetchc.tracer.value_shapes import Shape

__all__ = [
    "CallerShapes",
    "DynamicTypeShapes",
    "InterfaceDescriptions",
    "checked_for_growth",
    "variable_on_entry",
]


class DynamicTypeShapes(LeafShapes):
    """Shapes that compare or name a dynamic type."""

    def within(self, shape: Shape, limits: Limits, given: Iterable[Granted]) -> Shape:
        """``shape`` with the checks of its assertions and indices around it, the last first."""
        for one in given:
            if isinstance(one, Counted):
                count = capacity if one.most else length
                number = count(self._checker, one.holder, one.span)
                shape = BoundsCheckShape(self.shape(number, None, limits), one.least, shape)
                continue
            if isinstance(one, Described):
                shape = self._of_type(one, shape)
                continue
            if isinstance(one, Present):
                names = tuple([(each.value, each.member.name) for each in one.variants])
                tag = plain_number(self._leaf(self._word(one.tag)))
                shape = VariantCheckShape(tag, names, one.wanted, shape)
                continue
            shape = TypeAssertionShape(self._asserted_type(one), one.wanted.offset, shape)
        return shape

    def _runtime_types(self) -> RuntimeTypes | None:
        go = self._checker.program.go
        return None if go is None else go.runtime_types()

    def _asserted_type(self, one: AssertedNode) -> TypeNameShape:
        types = self._runtime_types()
        assert types is not None
        # The first word of an interface with methods is NULL where it holds nothing.
        word = self._leaf(self._word(one.word), empty=not one.empty)
        return TypeNameShape(word, self._leaf(self._word(one.start)), types)

    def _dispatched(self, node: DispatchedNode, limits: Limits) -> TypeSwitchShape:
        first = node.cases[0][0]
        with self._fields.assuming():
            cases = [
                (one.wanted.offset, self.shape(value, None, limits)) for one, value in node.cases
            ]
        return TypeSwitchShape(self._asserted_type(first), tuple(cases))

    def _of_type(
        self, one: Described, inner: Shape, otherwise: CastShape | None = None
    ) -> CastShape:
        checker = self._checker
        dotnet = checker.program.dotnet
        types = None if dotnet is None else dotnet.object_types()
        assert types is not None
        parts = described(checker, one, types)
        reference = self._leaf(self._word(one.reference))
        element = None
        if parts.element_row is not None and parts.element_assembly is not None:
            element = self._identity(parts.element_row, parts.element_assembly)
        own, rank = self._identity(parts.row, parts.assembly), self._leaf(self._word(parts.rank))
        return CastShape(reference, own, element, rank, types, one.wanted, inner, otherwise)

    def _identity(self, row: Typed, assembly: Typed) -> TypeIdentity:
        (name,) = lower(self._checker, assembly, None, whole=False)
        return TypeIdentity(self._leaf(self._word(row)), self._leaf(name))

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
        plain = StructShape(tuple(words), self._guards_of(node))
        if dynamic is None:
            return plain

        wording = InterfaceDescriptions(
            self._checker, self._fields, limits, self.shape, self._dynamic_type
        )
        return wording.of(node, made, plain)

    def _dynamic_type(self, node: Typed, made: InterfaceType) -> TypeNameShape | None:
        types = self._runtime_types()
        word = dynamic_type(self._checker, node, made, node.span)
        start = first_type(self._checker, node.span)
        if types is None or word is None or start is None:
            return None
        table = self._leaf(self._word(word), empty=not made.empty)
        return TypeNameShape(table, self._leaf(self._word(start)), types)


# ------------------------------------------------------------------------------
# Descriptions of the values in Go interfaces, for the types in ``targets/runtime/go/known.toml``.
#
# What a description needs is fetched with the interface, whatever it holds. The reader uses it if
# the dynamic type is that one; else it shows the type's name only.

_INNER = ("", "first", "second")
_SHORTEST = 64  # bytes of a string: with less room only the type is shown
_PLACE = r"\{(\w*)(:errno)?\}"


class InterfaceDescriptions:
    """Adds descriptions to interfaces. ``shape`` and ``dynamic_type`` are the shaper's."""

    __slots__ = ("_checker", "_dynamic_type", "_fields", "_limits", "_shape")

    def __init__(
        self,
        checker: Checker,
        fields: Fields,
        limits: Limits,
        shape: Callable[[Typed, None, Limits], Shape],
        dynamic_type: Callable[[Typed, InterfaceType], TypeNameShape | None],
    ) -> None:
        self._checker, self._fields, self._limits = checker, fields, limits
        self._shape, self._dynamic_type = shape, dynamic_type

    def of(self, node: Typed, made: InterfaceType, plain: Shape, level: int = 0) -> Shape:
        """``plain`` of the interface ``node``, with descriptions of the values it may hold.

        ``level`` counts the errors around it. ``plain`` alone where the program has none of the
        types, or there is no room.
        """
        dynamic = self._dynamic_type(node, made)
        if dynamic is None or self._limits.text < _SHORTEST:
            return plain
        known = []
        for name, words in self._descriptions(node, made, level).items():
            mark = self._fields.mark()
            try:
                with self._fields.assuming():
                    one = self._one(node, made, name, words, level)
            except CompileError:
                self._fields.forget(mark)
            else:
                known += one
        return InterfaceShape(dynamic, plain, tuple(known), level > 0) if known else plain

    def _descriptions(self, node: Typed, made: InterfaceType, level: int) -> Mapping[str, str]:
        listed = table("runtime/go/known")
        found: Mapping[str, str] = {}
        if made.empty:
            found = listed["any"] if level == 0 else {}
        elif self._checker.spell(node.type) == "error" and level < len(_INNER):
            names = listed["inner"][_INNER[level]] if level else listed["error"]
            found = {name: listed["error"][name] for name in names}
        return found

    def _one(
        self, node: Typed, made: InterfaceType, name: str, words: str, level: int
    ) -> list[TypeDescription]:
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
        return [
            TypeDescription(descriptor.offset, tuple([one for one in parts if one != ""]), numbered)
        ]

    def _member(self, value: Typed, name: str, level: int) -> Shape:
        inner = named_member(self._checker, value, name, value.span) if name else value
        made = self._checker.resolved(inner.type)
        if not isinstance(made, InterfaceType):
            return self._shape(inner, None, self._limits)
        dynamic = self._dynamic_type(inner, made)
        assert dynamic is not None
        return self.of(inner, made, dynamic, level + 1)


# ------------------------------------------------------------------------------
# Entry values (DW_OP_entry_value): the caller, found by the return address, has the variable.
#
# For each call site (``Program.callers``) the variable has another location, so the expression is
# fetched for each of them; call sites with the same location share what is fetched.

_MOST_PLACES = 24  # of one variable, each fetched for itself


def variable_on_entry(node: Typed) -> Held | None:
    """The variable in ``node`` that is an entry value; None where it has a location."""
    while not isinstance(node, Held):
        if isinstance(node, Special | Constant) or not hasattr(node, "base"):
            return None
        node = node.base
    in_one = not isinstance(node.place, Pieces)
    return node if in_one and is_on_entry(node.place) else None


def _with(node: Typed, inner: Typed) -> Typed:
    # ``node`` with ``inner`` in place of its variable.
    if isinstance(node, Held):
        return inner
    kept = {name: getattr(node, name) for name in type(node).__match_args__}
    made: Typed = type(node)(**{**kept, "base": _with(kept["base"], inner)})
    return made


class CallerShapes(LeafShapes):
    """Shapes of entry values, by the caller."""

    def _by_caller(
        self, node: Typed, held: Held, format: Format | None, limits: Limits
    ) -> CallerShape:
        site = self._checker.site
        assert site.function is not None
        known = site.program.evidence.callers(site.function, site.address)
        found = None if known.reason else self._called(node, held, known, format, limits)
        if found is None:
            reason = known.reason or "no call site in the file describes what it passes"
            raise lost(site, register_of(held.place), held.span, held.name, reason)
        return found

    def _called(
        self, node: Typed, held: Held, known: Callers, format: Format | None, limits: Limits
    ) -> CallerShape | None:
        # None where no call site describes the value.
        checker = self._checker
        stem, self._fields.stem = self._fields.stem, None
        mark = self._fields.mark()
        behind = Held(known.return_address, "", checker.word(), held.span)
        returned = self._leaf(self._word(behind))
        self._fields.stem = stem
        made: dict[object, Shape | None] = {}
        cases: list[tuple[int, Shape]] = []
        for call in known.calls:
            place = entered_with(held.place, dict(call.values))
            if place is None:
                continue
            outer = call.outer if is_on_entry(place) else None
            moved = place.target if isinstance(place, PointerTo) else None
            key = (place, outer, call.returns_to if isinstance(moved, AtAddress) else 0)
            if key not in made:
                if len(made) == _MOST_PLACES:
                    continue
                one = Held(place, held.name, held.type, held.span)
                if not is_on_entry(place):
                    start = returned, -call.returns_to
                    made[key] = self._passed(node, one, start, format, limits)
                elif outer is None or outer.reason:
                    made[key] = None
                else:
                    made[key] = self._called(_with(node, one), one, outer, format, limits)
            shape = made[key]
            if shape is not None:
                cases.append((call.returns_to - checker.site.address, shape))
        if not cases:
            self._fields.forget(mark)
            return None
        return CallerShape(returned, tuple(cases))

    def _passed(
        self,
        node: Typed,
        held: Held,
        start: tuple[Leaf, int],
        format: Format | None,
        limits: Limits,
    ) -> Shape | None:
        # What is fetched where the variable is in that place; None where it cannot be.
        mark = self._fields.mark()
        stem = self._fields.stem
        try:
            simple = plain(self._checker, node.type) if format is None else None
            if simple is not None and not self._is_text(node):
                number = self._unplaced(node, held, simple, start)
                if number is not None:
                    return number
            return self.shape(_with(node, self._object(held)), format, limits)
        except CompileError:
            self._fields.forget(mark)
            self._fields.stem = stem
            return None

    def _is_text(self, node: Typed) -> bool:
        made = self._checker.resolved(node.type)
        return isinstance(made, PointerType) and strings.is_text_pointer(self._checker, made)

    def _object(self, held: Held) -> Typed:
        # An implicit pointer: the address of what it points to.
        made, place = self._checker.resolved(held.type), held.place
        if not isinstance(place, PointerTo) or not isinstance(made, PointerType):
            return held
        target: Typed = Held(place.target, held.name, made.target, held.span)
        if place.offset:
            target = Part(target, place.offset, None, made.target, held.span)
        return Address(target, held.type, held.span)

    def _unplaced(
        self, node: Typed, held: Held, simple: Plain, start: tuple[Leaf, int] | None
    ) -> SumShape | None:
        # The value of a variable without a location: a constant, an address.
        inner = node
        while isinstance(inner, Convert):
            inner = inner.base
        if not isinstance(inner, Held):
            return None
        simple = kept(self._checker, node, simple)  # of a cast to a wider type the number itself
        match held.place:
            case Known(value=value, size=room):
                fits = room is None or room >= simple.size
                return SumShape(None, value, simple.size, simple.decode) if fits else None
            case PointerTo(target=AtAddress(address=address), offset=offset) if start:
                word, distance = start
                return SumShape(word, address + offset + distance, simple.size, simple.decode)
            case PointerTo(target=InMemory(register=register, offset=base), offset=offset):
                return self._sum(InRegister(register), base + offset, held, simple)
            case PointerTo(target=Indirect(pointer=pointer, offset=base), offset=offset):
                return self._sum(pointer, base + offset, held, simple)
            case _:
                return None

    def _computed(self, node: Typed) -> SumShape | None:
        """The value of a variable that is a register's or a word's and a constant."""
        inner = node
        while isinstance(inner, Convert):
            inner = inner.base
        if not isinstance(inner, Held) or not isinstance(inner.place, PointerTo):
            return None
        simple = plain(self._checker, node.type)
        target = inner.place.target
        if simple is None or is_on_entry(target) or not isinstance(target, InMemory | Indirect):
            return None
        return self._unplaced(node, inner, simple, None)

    def _sum(self, place: Place, addend: int, held: Held, simple: Plain) -> SumShape:
        word = self._leaf(self._word(Held(place, held.name, self._checker.word(), held.span)))
        return SumShape(word, addend, simple.size, simple.decode)


# ------------------------------------------------------------------------------
# Parameters of Go that are lost when the stack grows: the reader detects these calls.


def checked_for_growth(checker: Checker, fields: Fields, shape: Shape) -> Shape:
    """``shape``, or a fault in calls that run again after the stack has grown."""
    site = checker.site
    if site.function is None or not any(
        one.reason == "lost by stack growth" for one in checker.warnings
    ):
        return shape
    found = lost_by(site, site.function)
    assert found is not None
    register, address = found
    machine = site.architecture
    field = fields.add(Fetch(Register(machine.registers[register]), Word()))
    word = Leaf(field, Decode("address", 8 * machine.word_bytes))
    return GrowthCheckShape(word, address - site.address, shape)
