"""Bit fields: from a container around them in memory, from part of a register, known now."""

from __future__ import annotations

from fetchc.diag.diagnostic import reject
from fetchc.ir.fetch import Bits, Decode, Fetch, Scalar
from fetchc.lower.fetches import (
    InValue,
    Known,
    Lowered,
    Memory,
    Spread,
    load_word,
    piece_at,
    plain,
    where,
)
from fetchc.lower.lowering import immediate, outside, straddles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Part, Typed
    from fetchc.ir.fetch import Store
    from fetchc.lower.fetches import Plain
    from fetchc.source import Span

__all__ = ["bit_field", "smallest_container"]


def bit_field(checker: Checker, part: Part, made: Plain, node: Typed) -> Lowered:
    """The bit field ``part``, which ``node`` is, casts looked through; ``made`` is of its type."""
    bits = part.bits
    assert bits is not None
    own = plain(checker, part.type)
    signed = own is not None and own.decode.signed
    kept = min(bits.width, 8 * made.size)  # a cast to a narrower type takes the low bits
    if kept < bits.width:
        signed = made.decode.signed
    decode = Decode(made.decode.kind, kept, signed, None, made.decode.enumerators)
    holder = checker.size(part.base.type)
    # The member's own offset is already in bits.offset: the field lies in the base object.
    found = where(checker.site, part.base)
    first = bits.offset // 8
    last = (bits.offset + bits.width + 7) // 8
    if isinstance(found, Spread):
        inner = Spread(found.pieces, found.offset + first)
        one = _back(piece_at(checker.site, inner, last - first, node.span), first)
        holder = None
    else:
        one = found
    match one:
        case Memory(base=base, offset=offset, user=user):
            byte, container = smallest_container(bits.offset, bits.width, holder, node.span)
            place = load_word(checker.site, Memory(base, offset + byte, user), node.span)
            start = bits.offset - 8 * byte
            if not checker.program.little_endian:
                start = container - start - bits.width  # offsets count from the other end
            store: Store = Bits(kept, start, container)
            return Lowered("", Fetch(place, store), decode, node.type)
        case InValue(base=base, offset=offset, size=size):
            start = 8 * offset + bits.offset
            if not checker.program.little_endian:
                start = 8 * size - start - bits.width
            word = 8 * checker.program.word_bytes
            if start < 0 or start + bits.width > word:
                raise straddles(node.span)
            return Lowered("", Fetch(base, Bits(kept, start, word)), decode, node.type)
        case Known(value=value, left=left):
            if left is not None and 8 * left < bits.offset + bits.width:
                raise outside(node.span)
            number = value >> bits.offset & ((1 << kept) - 1)
            store = Scalar("u", 64)
            constant = immediate(checker.site, number, node.span)
            return Lowered("", Fetch(constant, store), decode, node.type)


def _back(found: Memory | InValue | Known, by: int) -> Memory | InValue | Known:
    match found:
        case Memory(base=base, offset=offset, user=user):
            return Memory(base, offset - by, user)
        case InValue(base=base, offset=offset, size=size):
            return InValue(base, offset - by, size)
        case Known(value=value, left=left):
            return Known(value << (8 * by), None if left is None else left + by)


def smallest_container(offset: int, width: int, holder: int | None, span: Span) -> tuple[int, int]:
    """First byte and bits of the smallest container of a field, inside its object if it can be.

    A container that reaches past the object's end reads the field's bytes all the same: where
    the next page is missing the kernel keeps the bytes before it.
    """
    choices = []
    for container in (8, 16, 32, 64):
        byte = offset // 8
        if holder is not None and byte + container // 8 > holder:
            byte = max(0, holder - container // 8)
        if offset - 8 * byte + width <= container:
            outside = holder is not None and byte + container // 8 > holder
            choices.append((outside, container, byte))
    if not choices:
        raise reject(
            "FC0513",
            f"a bit field of {width} bits at bit {offset} lies in nine bytes",
            span,
            "wider than any container",
            help="fetch the bytes: take the structure's address with a cast and a range",
        )
    _, container, byte = min(choices)
    return byte, container
