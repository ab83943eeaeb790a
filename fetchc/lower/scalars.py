"""One number: from memory, from part of a register, from a bit field, known now."""

from __future__ import annotations

from fetchc.check.typed import Convert, Part, Special
from fetchc.diag.errors import reject
from fetchc.ir.decode import Decode
from fetchc.ir.nodes import Bits, Comm, Fetch, Immediate, Scalar, Text, Word
from fetchc.lower.model import Lowered
from fetchc.lower.store import Plain, plain
from fetchc.lower.where import (
    InValue,
    Known,
    Memory,
    Spread,
    inside,
    load_word,
    low_bits,
    piece_at,
    where,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.diag.errors import CompileError
    from fetchc.ir.nodes import Store
    from fetchc.program.types import BitField
    from fetchc.source import Span

__all__ = ["bit_field_of", "fetch_scalar", "memory_of", "scalar", "smallest_container", "special"]


def special(checker: Checker, node: Special) -> Lowered | None:
    """``%ax``, ``$stack``, ``$comm``, texts of events as the kernel gives them; None for others."""
    found = where(checker.site, node)
    assert isinstance(found, InValue)
    if isinstance(found.base, Comm) or node.kind == "text":
        return Lowered("", Fetch(found.base, Text()), Decode("text"), node.type)
    if node.type == checker.word():
        bits = 8 * checker.program.word_bytes
        return Lowered("", Fetch(found.base, Word()), Decode("integer", bits), node.type)
    return None


def scalar(checker: Checker, node: Typed, made: Plain) -> Lowered:
    """The number ``node``, of the scalar type that ``made`` describes."""
    part = bit_field_of(node)
    if part is not None:
        assert part.bits is not None
        return _bit_field(checker, part, part.bits, made, node)
    held = kept(checker, node, made)
    fetch = fetch_scalar(checker, node, held.store, held.size)
    return Lowered("", fetch, held.decode, node.type)


def kept(checker: Checker, node: Typed, made: Plain) -> Plain:
    """What is fetched of ``node``, which ``made`` describes: casts to wider types add nothing."""
    held = _held_type(checker, node, made)
    decode = made.decode
    if held.size < made.size:
        decode = Decode(
            decode.kind, 8 * held.size, held.decode.signed, None, decode.enumerators, None,
            decode.flags,
        )  # fmt: skip
    return Plain(held.store, decode, held.size)


def _held_type(checker: Checker, node: Typed, made: Plain) -> Plain:
    # A cast to a wider type keeps the value, so what is fetched is the narrower one.
    while isinstance(node, Convert):
        inner = plain(checker, node.base.type)
        if inner is not None and inner.size < made.size:
            made = inner
        node = node.base
    return made


def fetch_scalar(checker: Checker, node: Typed, store: Scalar, size: int) -> Fetch:
    """``size`` bytes at ``node``, stored as ``store``; part of a register as its bits."""
    found = where(checker.site, node)
    if isinstance(found, Spread):
        found = piece_at(checker.site, found, size, node.span)
    if not (checker.program.little_endian or isinstance(found, Known)):
        found = inside(found, _high_bytes(checker, node, size))
    match found:
        case Known(value=value, left=left):
            if left is not None and left < size:
                raise _outside(node.span)
            return Fetch(Immediate(_low(value, size)), store)
        case Memory():
            return Fetch(load_word(checker.site, found, node.span), store)
        case InValue(base=base):
            word = 8 * checker.program.word_bytes
            low = low_bits(checker.site, found, size)
            if low < 0 or low + 8 * size > word:
                raise _straddles(node.span)
            if low == 0:
                return Fetch(base, store)
            bits: Store = Bits(8 * size, low, word)
            return Fetch(base, bits)
        case Spread():
            raise AssertionError(f"a part of one piece lies in several: {found!r}")


def _low(value: int, size: int) -> int:
    # The low bytes of a longer constant; what fits is left as it is spelled, signs too.
    fits = -(1 << (8 * size - 1)) <= value < 1 << (8 * size)
    return value if fits else value & ((1 << (8 * size)) - 1)


def _outside(span: Span) -> CompileError:
    return reject(
        "FC0404",
        "this is outside of the constant that the compiler keeps instead of the object",
        span,
        "not a part of it",
        notes=("the object is in no memory, so nothing is before it or behind it",),
    )


def _high_bytes(checker: Checker, node: Typed, size: int) -> int:
    # Bytes in front of the low ``size`` ones of a number on a big-endian machine.
    while isinstance(node, Convert):
        node = node.base
    own = plain(checker, node.type)
    return 0 if own is None else max(0, own.size - size)


def bit_field_of(node: Typed) -> Part | None:
    """The bit field that ``node`` is, casts looked through."""
    while isinstance(node, Convert):
        node = node.base
    return node if isinstance(node, Part) and node.bits is not None else None


def _bit_field(checker: Checker, part: Part, bits: BitField, made: Plain, node: Typed) -> Lowered:
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
                raise _straddles(node.span)
            return Lowered("", Fetch(base, Bits(kept, start, word)), decode, node.type)
        case Known(value=value, left=left):
            if left is not None and 8 * left < bits.offset + bits.width:
                raise _outside(node.span)
            number = value >> bits.offset & ((1 << kept) - 1)
            store = Scalar("u", 64)
            return Lowered("", Fetch(Immediate(number), store), decode, node.type)


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


def memory_of(checker: Checker, node: Typed, what: str) -> Memory:
    """The memory that ``node`` is in; refused for values in registers."""
    found = where(checker.site, node)
    if isinstance(found, Memory):
        return found
    raise reject(
        "FC0404",
        f"{what} can be fetched from memory only, and this value is in registers",
        node.span,
        "not in memory",
        help="fetch its parts by name or by index",
    )


def _straddles(span: Span) -> Exception:
    return reject(
        "FC0404",
        "the value does not lie in one register",
        span,
        "spread over several places",
        help="name a member that lies within one of them",
    )
