"""What lies at an offset of an object, by its type: the way from a fetch-arg back to the source."""

from __future__ import annotations

from fetchc.program.types import (
    ArrayType,
    InterfaceType,
    PointerType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
    VoidType,
)
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.probe_site import Checker
    from fetchc.ir.fetch import Bits
    from fetchc.program.types import Member
    from fetchc.quantities import TypeId

__all__ = ["Spot", "behind", "inside"]

_DEEPEST = 32  # objects inside of objects


class Spot(Record):
    """What is at some place: in words of the source, with its type.

    ``type`` is None where nothing is known, and ``unknown`` completes "because ...".
    """

    text: str
    type: TypeId | None
    unknown: str | None = None


def behind(checker: Checker, pointer: Spot, offset: int, size: int, bits: Bits | None) -> Spot:
    """What is ``offset`` bytes behind where the value ``pointer`` leads.

    ``size`` is how many bytes are wanted of it: of the members of a union the first that has so
    many is taken.
    """
    if pointer.type is None:
        return Spot("", None, pointer.unknown)
    made = checker.resolved(pointer.type)
    spelled = checker.spell(pointer.type)
    if not isinstance(made, PointerType):
        return Spot("", None, f"`{pointer.text}` is a `{spelled}`, no pointer")
    target = made.target
    whole = checker.size(target)
    if not whole or isinstance(checker.resolved(target), VoidType):
        return Spot("", None, f"`{pointer.text}` is a `{spelled}`: what it leads to has no size")
    index, within = divmod(offset, whole)
    if offset > 0 and (tail := _tail(checker, target)) is not None and offset >= tail.offset:
        index, within = 0, offset
    base = f"({pointer.text})" if pointer.text[0] in "*&(" else pointer.text
    text = f"{base}[{index}]" if index else f"(*{pointer.text})"
    found = inside(checker, Spot(text, target), within, size, bits)
    # p->x reads better than (*p).x, and *p than (*p).
    if not index and found.text.startswith(f"{text}."):
        return Spot(f"{base}->{found.text[len(text) + 1 :]}", found.type, found.unknown)
    if not index and found.text == text:
        return Spot(f"*{pointer.text}", found.type, found.unknown)
    return found


def inside(checker: Checker, holder: Spot, offset: int, size: int, bits: Bits | None) -> Spot:
    """What is ``offset`` bytes into the object ``holder``."""
    text, type_id = holder.text, holder.type
    assert type_id is not None
    for _ in range(_DEEPEST):
        made = checker.resolved(type_id)
        match made:
            case ArrayType(element=element):
                each = checker.size(element)
                if not each:
                    break
                index, offset = divmod(offset, each)
                text, type_id = f"{text}[{index}]", element
            case StructType() | StringType() | SliceType() | InterfaceType() | SequenceType():
                step = _member(checker, made.members, offset, size, bits)
                tail = _tail(checker, type_id)
                if step is None and tail is not None and offset >= tail.offset:
                    step = tail
                if step is None:
                    spelled = checker.spell(type_id)
                    return Spot("", None, f"`{spelled}` has no member at +{offset}")
                text = f"{text}.{step.name}" if step.name else text
                offset, type_id = offset - step.offset, step.type
                if step.bits is not None:
                    break
            case _ if offset:
                spelled = checker.spell(type_id)
                return Spot("", None, f"+{offset} is not where a `{spelled}` starts")
            case _:
                break
    return Spot(text, type_id)


def _tail(checker: Checker, type_id: TypeId) -> Member | None:
    # `struct point items[]` at the end of a structure: what is behind it are elements of that.
    made = checker.resolved(type_id)
    if not isinstance(made, StructType) or made.kind == "union" or not made.members:
        return None
    last = made.members[-1]
    held = checker.resolved(last.type)
    return last if isinstance(held, ArrayType) and not held.count else None


def _member(
    checker: Checker, members: tuple[Member, ...], offset: int, size: int, bits: Bits | None
) -> Member | None:
    fitting = None
    for step in members:
        if step.bits is not None:
            if bits is not None and (step.bits.offset, step.bits.width) == (
                8 * offset + bits.offset,
                bits.width,
            ):
                return step
            continue
        whole = checker.size(step.type)
        if whole is None or not step.offset <= offset < step.offset + max(whole, 1):
            continue
        if whole >= size and (whole == size or fitting is None):
            fitting = step
            if whole == size:
                break
        fitting = fitting or step
    return fitting
