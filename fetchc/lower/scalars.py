"""One number: from memory, from part of a register, from a bit field, known now."""

from __future__ import annotations

from fetchc.check.typed_tree import Convert, Part, Special
from fetchc.diag.diagnostic import reject
from fetchc.ir.fetch import Bits, Comm, Decode, Fetch, Immediate, Scalar, Text, Word
from fetchc.lower.model import InValue, Known, Lowered, Memory, Spread, inside, low_bits
from fetchc.lower.store import Plain, plain
from fetchc.lower.where import load_word, piece_at, where
from fetchc.program.types import DeclaredType, UnknownType, VoidType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.probe_site import Checker, Site
    from fetchc.check.typed_tree import Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.ir.fetch import Store
    from fetchc.program.types import Type
    from fetchc.source import Span

__all__ = [
    "bit_field_of",
    "fetch_scalar",
    "immediate",
    "incomplete",
    "kept",
    "memory_of",
    "number",
    "outside",
    "scalar",
    "special",
    "straddles",
]


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
        from fetchc.lower.bit_fields import bit_field

        return bit_field(checker, part, made, node)
    held = kept(checker, node, made)
    fetch = fetch_scalar(checker, node, held.store, held.size)
    return Lowered("", fetch, held.decode, node.type)


def number(checker: Checker, node: Typed) -> Lowered:
    """The number ``node``, as a length is; FC0311 where the debug information has another type."""
    made = plain(checker, node.type)
    if made is None:
        raise incomplete(checker, node, checker.resolved(node.type))
    return scalar(checker, node, made)


def incomplete(checker: Checker, node: Typed, made: Type) -> CompileError:
    """FC0311 for what has no size, no value, or is not the number that it should be."""
    match made:
        case VoidType():
            reason = "it has no value"
        case DeclaredType():
            reason = "it is defined nowhere in the file"
        case UnknownType():
            reason = made.reason
        case _:
            reason = "it is no number that a fetch-arg can hold"
    return reject(
        "FC0311",
        f"`{checker.spell(node.type)}` cannot be fetched: {reason}",
        node.span,
        "no size" if checker.size(node.type) is None else "not read",
        help="cast its address to a type that is known: `*(unsigned long *)&e`",
    )


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
                raise outside(node.span)
            return Fetch(immediate(checker.site, _low(value, size), node.span), store)
        case Memory():
            return Fetch(load_word(checker.site, found, node.span), store)
        case InValue(base=base):
            word = 8 * checker.program.word_bytes
            low = low_bits(checker.site, found, size)
            if low < 0 or low + 8 * size > word:
                raise straddles(node.span)
            if low == 0:
                return Fetch(base, store)
            bits: Store = Bits(8 * size, low, word)
            return Fetch(base, bits)
        case Spread():
            raise AssertionError(f"a part of one piece lies in several: {found!r}")


def immediate(site: Site, value: int, span: Span) -> Immediate:
    """The constant as a fetch-arg has it; refused where the kernel's word does not hold it.

    Source: FETCH_OP_IMM, ``unsigned long`` (kernel/trace/trace_probe.h).
    """
    bits = 8 * site.program.word_bytes
    if bits < 64 and not -(1 << (bits - 1)) <= value < 1 << bits:
        raise reject(
            "FC0312",
            f"the constant {value} has more than {bits} bits",
            span,
            "more than one fetch-arg can hold on this machine",
        )
    return Immediate(value)


def _low(value: int, size: int) -> int:
    # The low bytes of a longer constant; what fits is left as it is spelled, signs too.
    fits = -(1 << (8 * size - 1)) <= value < 1 << (8 * size)
    return value if fits else value & ((1 << (8 * size)) - 1)


def outside(span: Span) -> CompileError:
    """The refusal of a part that a constant does not have."""
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


def straddles(span: Span) -> CompileError:
    """The refusal of a value of which a register has a part."""
    return reject(
        "FC0404",
        "the value does not lie in one register",
        span,
        "spread over several places",
        help="name a member that lies within one of them",
    )
