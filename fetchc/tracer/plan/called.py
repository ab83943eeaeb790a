"""What a register held on entry: by the address that the function returns to, from its caller.

For each call that is known (``Program.callers``) the variable has another place, so the expression
is fetched for each of them; calls that pass it in the same place share what is fetched.
"""

from __future__ import annotations

from fetchc.check.typed_tree import Address, Constant, Convert, Held, Part, Special
from fetchc.debuginfo.dwarf.enclosing_frames import entered_with
from fetchc.diag.diagnostic import CompileError
from fetchc.lower import strings
from fetchc.lower.fetches import plain
from fetchc.lower.lowering import kept
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
from fetchc.program.types import PointerType
from fetchc.tracer.plan.leaves import Leaves
from fetchc.tracer.shape import Called, Leaf, Sum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.typed_tree import Typed
    from fetchc.lower.fetches import Plain
    from fetchc.program.entities import Callers, Place
    from fetchc.syntax.tree import Format
    from fetchc.tracer.plan.extents import Limits
    from fetchc.tracer.shape import Shape

__all__ = ["Calls", "entered"]

_MOST_PLACES = 24  # of one variable, each fetched for itself


def entered(node: Typed) -> Held | None:
    """The variable in ``node`` whose place is known on entry alone; None where it has another."""
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


class Calls(Leaves):
    """Shapes of what only callers know."""

    def _by_caller(self, node: Typed, held: Held, format: Format | None, limits: Limits) -> Called:
        site = self._checker.site
        assert site.function is not None
        known = site.program.callers(site.function, site.address)
        found = None if known.reason else self._called(node, held, known, format, limits)
        if found is None:
            reason = known.reason or "no call in the file tells what it passes"
            raise lost(site, register_of(held.place), held.span, held.name, reason)
        return found

    def _called(
        self, node: Typed, held: Held, known: Callers, format: Format | None, limits: Limits
    ) -> Called | None:
        # None where no call tells anything.
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
        return Called(returned, tuple(cases))

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
        # Of a pointer that is in no memory, the address of what it leads to.
        made, place = self._checker.resolved(held.type), held.place
        if not isinstance(place, PointerTo) or not isinstance(made, PointerType):
            return held
        target: Typed = Held(place.target, held.name, made.target, held.span)
        if place.offset:
            target = Part(target, place.offset, None, made.target, held.span)
        return Address(target, held.type, held.span)

    def _unplaced(
        self, node: Typed, held: Held, simple: Plain, start: tuple[Leaf, int] | None
    ) -> Sum | None:
        # The value of the variable itself, where it is in no place: a constant, an address.
        inner = node
        while isinstance(inner, Convert):
            inner = inner.base
        if not isinstance(inner, Held):
            return None
        simple = kept(self._checker, node, simple)  # of a cast to a wider type the number itself
        match held.place:
            case Known(value=value, size=room):
                fits = room is None or room >= simple.size
                return Sum(None, value, simple.size, simple.decode) if fits else None
            case PointerTo(target=AtAddress(address=address), offset=offset) if start:
                word, distance = start
                return Sum(word, address + offset + distance, simple.size, simple.decode)
            case PointerTo(target=InMemory(register=register, offset=base), offset=offset):
                return self._sum(InRegister(register), base + offset, held, simple)
            case PointerTo(target=Indirect(pointer=pointer, offset=base), offset=offset):
                return self._sum(pointer, base + offset, held, simple)
            case _:
                return None

    def _computed(self, node: Typed) -> Sum | None:
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

    def _sum(self, place: Place, addend: int, held: Held, simple: Plain) -> Sum:
        word = self._leaf(self._word(Held(place, held.name, self._checker.word(), held.span)))
        return Sum(word, addend, simple.size, simple.decode)
