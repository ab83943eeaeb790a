"""Values that a language prints in a form of its own: which of them there are, and their parts.

Types are known by their full names, which ``targets/runtime`` lists, and by what they are made of.
"""

from __future__ import annotations

from fetchc.check import scope
from fetchc.check.members import find, part, through
from fetchc.check.typed_tree import Follow
from fetchc.ir.fetch import Decode
from fetchc.lower.fetches import Plain, plain
from fetchc.program.types import (
    ArrayType,
    BoolType,
    IntType,
    PointerType,
    SliceType,
    StringType,
    StructType,
)
from fetchc.target.machines import table
from fetchc.tracer.plan.extents import Limits
from fetchc.tracer.plan.lists import Lists
from fetchc.tracer.shape import Referred, Spelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.typed_tree import Typed
    from fetchc.program.types import Type
    from fetchc.quantities import TypeId
    from fetchc.tracer.shape import Shape

__all__ = ["Written"]

_ADDRESS = 16  # bytes of the longest
_ZONE = 32  # bytes of an address' zone, the name of an interface of the machine
_WORDS = (Decode("integer", 64), Decode("pointer", 64))


class Written(Lists):
    """Shapes of values in a form of their own."""

    def _form(self, made: Type) -> str:
        # What the language's own table calls the form of a type; empty where it has none.
        listed = self._checker.site.language.written
        name = made.name if isinstance(made, StructType | ArrayType | SliceType | IntType) else ""
        return table(listed)["types"].get(name, "") if listed and "." in name else ""

    def _plain(self, type_id: TypeId) -> Plain | None:
        found = plain(self._checker, type_id)
        if found is None or found.decode.kind != "integer":
            return found
        made = self._checker.resolved(type_id)
        if found.size == 8 and found.decode.signed and self._form(made) == "duration":
            return Plain(found.store, Decode("duration", 64, True), 8)
        if isinstance(made, IntType) and "." in made.name:
            names = self._checker.program.named_constants(self._checker.bare(type_id))
            if names:
                bits, signed = found.decode.bits, found.decode.signed
                return Plain(found.store, Decode("enum", bits, signed, None, names), found.size)
        return found

    def _spelled(self, node: Typed, made: Type, limits: Limits) -> Spelled | None:
        """The shape of a value that is written as no other of its kind; None of all others."""
        form = self._form(made)
        match form, made:
            case "time", StructType():
                parts = self._time(node, made)
            case "ip", SliceType(element=element) if self._is_byte(element):
                few = Limits(limits.text, _ADDRESS, limits.items, limits.depth)
                parts = (("bytes", self._slice(node, made, few)),)
            case "uuid", ArrayType(element=element, count=16) if self._is_byte(element):
                parts = (("bytes", self._array(node, made, limits)),)
            case "addr", StructType():
                return self._internet_address(node, limits)
            case _:
                return None
        return Spelled(form, parts) if parts else None

    def _is_byte(self, element: TypeId) -> bool:
        found = plain(self._checker, element)
        return found is not None and found.size == 1 and found.decode == Decode("integer", 8)

    def _time(self, node: Typed, made: StructType) -> tuple[tuple[str, Shape], ...]:
        wanted = {"wall": Decode("integer", 64), "ext": Decode("integer", 64, True)}
        found = []
        for member in made.members:
            simple = plain(self._checker, member.type)
            if simple is not None and wanted.get(member.name) == simple.decode:
                found.append((member.name, self._leaf(self._word(part(node, member, node.span)))))
        return tuple(found) if len(found) == len(wanted) else ()

    def _internet_address(self, node: Typed, limits: Limits) -> Spelled | None:
        # From Go 1.23 on `z` leads to what is told of the address, before it is one of two pointers
        # that variables of the package have, or one to the name of a zone.
        words = [self._inside(node, "addr", "hi"), self._inside(node, "addr", "lo")]
        kind = self._inside(node, "z")
        if kind is not None and isinstance(self._checker.resolved(kind.type), PointerType):
            own = [self._variable("net/netip.z4"), self._variable("net/netip.z6noz")]
            return self._of_words(("hi", "lo", "z", "z4", "z6noz"), [*words, kind, *own])
        handle = None if kind is None else self._inside(kind, "value")
        told = None if handle is None else self._checker.resolved(handle.type)
        found = self._of_words(("hi", "lo"), words)
        if handle is None or found is None or not isinstance(told, PointerType):
            return None
        detail = Follow(handle, told.target, node.span)
        six, zone = self._inside(detail, "isV6"), self._inside(detail, "zoneV6")
        name = None if zone is None else self._checker.resolved(zone.type)
        if six is None or zone is None or not isinstance(name, StringType):
            return None
        if not isinstance(self._checker.resolved(six.type), BoolType):
            return None
        reference = self._leaf(self._word(handle))
        few = Limits(_ZONE, limits.row, limits.items, limits.depth)
        sixth = Referred(reference, self._leaf(self._word(six)))
        zoned = Referred(reference, self._string(zone, name, few))
        return Spelled("addr", (*found.parts, ("six", sixth), ("zone", zoned)))

    def _of_words(self, names: tuple[str, ...], words: list[Typed | None]) -> Spelled | None:
        # The first three are the value's own; None where one is no number of 64 bits.
        found: list[tuple[str, Shape]] = []
        for name, word in zip(names, words, strict=True):
            simple = None if word is None else plain(self._checker, word.type)
            if word is None or simple is None or simple.decode not in _WORDS:
                return None
            found.append((name, self._leaf(self._word(word))))
        return Spelled("addr", tuple(found[:3]), tuple(found[3:]))

    def _inside(self, node: Typed, *names: str) -> Typed | None:
        # The member of that name, in the member of the name before.
        for name in names:
            if not isinstance(self._checker.resolved(node.type), StructType):
                return None
            path = find(self._checker, node.type, name, node.span)
            if path is None:
                return None
            node = through(self._checker, node, path, node.span)
        return node

    def _variable(self, name: str) -> Typed | None:
        span = self._fields.span
        assert span is not None
        variable = scope.find_global(self._checker, name, None, span)
        if variable is None:
            return None
        return scope.held(self._checker, variable, span)
