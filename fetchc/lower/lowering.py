"""From a typed tree to fetches: the default of every type, in the order of the types."""

from __future__ import annotations

from fetchc.check.typed_tree import Computed, Convert, Dispatched, Either, Part, Special
from fetchc.diag.diagnostic import CompileError, Diagnostic, Label, reject
from fetchc.ir.fetch import Bits, Comm, Decode, Fetch, Immediate, Scalar, Text, Word
from fetchc.lower.fetches import (
    InValue,
    Known,
    Lowered,
    Memory,
    Plain,
    Spread,
    inside,
    load_word,
    low_bits,
    piece_at,
    plain,
    where,
)
from fetchc.program.types import (
    ArrayType,
    CellType,
    ChannelType,
    ChoiceType,
    ComplexType,
    DeclaredType,
    DifferenceType,
    FunctionType,
    InterfaceType,
    IntType,
    MapType,
    PointerType,
    RangeType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
    UnknownType,
    VoidType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.probe_site import Site
    from fetchc.check.typed_tree import Typed
    from fetchc.ir.fetch import Store
    from fetchc.program.types import Member, Type
    from fetchc.source import Span
    from fetchc.syntax.tree import Format

__all__ = [
    "bit_field_of",
    "entries",
    "fetch_scalar",
    "immediate",
    "incomplete",
    "kept",
    "left_out",
    "lower",
    "memory_of",
    "named_members",
    "number",
    "outside",
    "scalar",
    "special",
    "straddles",
]

# ------------------------------------------------------------------------------
# One number: from memory, from part of a register, from a bit field, known now.


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
            reason = "the file does not define it"
        case UnknownType():
            reason = made.reason
        case _:
            reason = "it is not a number that a fetch-arg can hold"
    return reject(
        "FC0311",
        f"`{checker.spell(node.type)}` cannot be fetched: {reason}",
        node.span,
        "no size" if checker.size(node.type) is None else "not read",
        help="cast its address to a known type: `*(unsigned long *)&e`",
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
            reason="several fetch-args",
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
        notes=("the object is not in memory, so nothing is before it or behind it",),
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
        "the value is not in one register",
        span,
        "spread over several places",
        help="name a member that is inside one of them",
    )


_MOST_LEAVES = 64  # members of a whole structure that become arguments of their own


def lower(checker: Checker, node: Typed, format: Format | None, whole: bool) -> tuple[Lowered, ...]:
    """The fetches of ``node``: one, or with ``whole`` also companions and members.

    Raises CompileError where a value cannot be fetched, or (without ``whole``) where
    one fetch-arg cannot hold it.
    """
    if format is not None:
        from fetchc.lower.value_formats import formatted

        return (formatted(checker, node, format),)
    if isinstance(node, Special) and (given := special(checker, node)) is not None:
        return (given,)
    if isinstance(node, Computed | Either | Dispatched):
        from fetchc.lower.computed_values import made_of

        return made_of(checker, node, whole)
    made = checker.resolved(node.type)
    if isinstance(made, StructType):
        reader_value = checker.rules_for(made).reader_value
        if reader_value is not None:
            node = reader_value(checker, node)
            if isinstance(node, Computed | Either | Dispatched):
                return lower(checker, node, None, whole)
            made = checker.resolved(node.type)
    simple = plain(checker, node.type)
    pointing = isinstance(made, PointerType | MapType | ChannelType)
    if simple is not None and (not pointing or bit_field_of(node) is not None):
        return (scalar(checker, node, simple),)
    from fetchc.lower import strings

    if strings.is_text_pointer(checker, made):
        return (strings.pointed_text(checker, node),)
    if text := strings.units(checker, node):
        return strings.utf_16(checker, text[0], text[1], whole)
    if isinstance(made, StringType):
        return strings.string(checker, node, made, whole)
    if isinstance(made, MapType | ChannelType):
        return (entries(checker, node),)
    if simple is not None:
        return (scalar(checker, node, simple),)
    from fetchc.lower import aggregates

    match made:
        case ArrayType():
            return aggregates.array(checker, node, made, whole)
        case SliceType() | InterfaceType() if whole:
            return aggregates.words_of(checker, node, made)
        case StructType() if whole:
            return _leaves(checker, node, made)
        case SequenceType(name=name, size=size, members=members) if whole and size is not None:
            return _leaves(checker, node, StructType(name, "class", size, members))
        case DifferenceType():
            return aggregates.difference(checker, node, made, whole)
        case ChoiceType(tag=tag, cases=cases) if whole:
            parts = (tag, *[member for _, member in cases])
            return _leaves(checker, node, StructType(made.name, "class", made.size, parts))
        case ChoiceType():
            raise aggregates.refuse_choice(checker, node, made)
        case RangeType():
            from fetchc.lower.aggregates import ranged

            return ranged(checker, node, made, whole)
        case CellType():
            from fetchc.check.array_dimensions import refused

            raise refused(node, made)
        case ComplexType() | IntType() if whole and (both := _halves(checker, made)):
            return _leaves(checker, node, both)
        case FunctionType():
            raise reject(
                "FC0310", "a function is not a value that can be fetched", node.span, "a function"
            )
        case DeclaredType() | VoidType() | UnknownType():
            raise incomplete(checker, node, made)
        case _:
            raise aggregates.refuse_whole(checker, node, made)


def entries(checker: Checker, node: Typed) -> Lowered:
    """A map or channel is worth its number of entries."""
    from fetchc.check.builtins import length

    return number(checker, length(checker, node, node.span))


def _leaves(checker: Checker, node: Typed, made: StructType) -> tuple[Lowered, ...]:
    """The members of a structure, one level deep; anonymous ones are looked through."""
    from fetchc.check.members import through

    result: list[Lowered] = []
    left: list[str] = []
    for path, member in named_members(checker, made, ()):
        if len(result) >= _MOST_LEAVES:
            left.append(member.name)
            continue
        deeper = isinstance(checker.resolved(member.type), StructType)
        try:
            inner = through(checker, node, (*path, member), node.span)
            for leaf in lower(checker, inner, None, whole=not deeper):
                suffix = f"{member.name}_{leaf.suffix}" if leaf.suffix else member.name
                result.append(Lowered(suffix, leaf.fetch, leaf.decode, leaf.type, leaf.companion))
        except CompileError:
            left.append(member.name)
    if not result:
        from fetchc.lower.aggregates import refuse_whole

        raise refuse_whole(checker, node, made)
    if left:
        checker.warnings.append(left_out(checker, node, left))
    return tuple(result)


def left_out(checker: Checker, node: Typed, members: list[str]) -> Diagnostic:
    """The warning that a structure is told without some of its members."""
    return Diagnostic(
        "FC0605",
        f"members left out: {', '.join(members)}",
        Label(node.span, f"a `{checker.spell(node.type)}`"),
        notes=("each needs more than one fetch-arg, or is where a probe cannot read",),
        help="name the members that you want",
    )


def named_members(
    checker: Checker, made: StructType, path: tuple[Member, ...]
) -> list[tuple[tuple[Member, ...], Member]]:
    """The members of a structure, those of anonymous ones too, each with the way to it."""
    found: list[tuple[tuple[Member, ...], Member]] = []
    for member in made.members:
        inner = checker.resolved(member.type)
        if not member.name and isinstance(inner, StructType) and len(path) < 8:
            found += named_members(checker, inner, (*path, member))
        elif member.name:
            found.append((path, member))
    return found


def _halves(checker: Checker, made: Type) -> StructType | None:
    # Imported by the few definitions that fetch a number whole: on no compile's way.
    from fetchc.check.number_halves import halves

    return halves(checker, made)
