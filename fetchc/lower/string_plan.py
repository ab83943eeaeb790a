"""Plans of strings: up to a NUL, or with a length beside their pointer or in their object."""

from __future__ import annotations

from fetchc.check.members import subobject
from fetchc.check.typed_tree import Pointee
from fetchc.lower.fetches import plain
from fetchc.program.types import PointerType, SequenceType, SliceType
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.lower.fetches import Plain
    from fetchc.program.types import StringType

__all__ = [
    "STRING_BYTES",
    "CountedStringPlan",
    "StringPlan",
    "counted_string_plan",
    "utf_16_plan",
]

STRING_BYTES = 256  # of a counted string that a definition fetches; the reader cuts at its length


class StringPlan(Record):
    """A string up to its NUL, which the pointer ``node`` leads to."""

    node: Typed


class CountedStringPlan(Record):
    """A string of ``length`` units: bytes (``encoding`` text) or UTF-16 units (utf-16).

    ``first`` is the pointer to the bytes, or the first one of the UTF-16 units. ``reference``, a
    pointer and how it is fetched, leads to the object with the string, ``node``, and may be null.
    ``is_slice``: it is a slice of bytes.
    """

    node: Typed
    encoding: str
    first: Typed
    length: Typed
    type_name: str
    is_slice: bool = False
    reference: tuple[Typed, Plain] | None = None


def utf_16_plan(checker: Checker, node: Typed) -> CountedStringPlan | None:
    """The plan of the string object that ``node`` is or leads to; None if it is none.

    What has a part of a string or array is none: its units begin at no fixed place.
    """
    reference, resolved = None, checker.resolved(node.type)
    if isinstance(resolved, PointerType):
        scalar = plain(checker, node.type)
        assert scalar is not None
        reference = node, scalar
        node = Pointee(node, resolved.target, node.span)
        resolved = checker.resolved(resolved.target)
    if not (isinstance(resolved, SequenceType) and resolved.text and resolved.window is None):
        return None
    from fetchc.check.indexing import element_at

    first = element_at(checker, node, 0, node.span, node.span)
    length = subobject(node, resolved.length, node.span)
    return CountedStringPlan(node, "utf-16", first, length, resolved.name, False, reference)


def counted_string_plan(
    checker: Checker, node: Typed, resolved: StringType | SliceType
) -> CountedStringPlan:
    """The plan of a string with a length beside its pointer, or of a slice of bytes as one."""
    from fetchc.check.indexing import data_pointer

    first = data_pointer(checker, node, resolved)
    length = subobject(node, resolved.members[1], node.span)
    return CountedStringPlan(
        node, "text", first, length, resolved.name, isinstance(resolved, SliceType)
    )
