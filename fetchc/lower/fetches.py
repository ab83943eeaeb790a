"""The fetch of one value: where its bytes are, and how a number in them is fetched and decoded."""

from __future__ import annotations

from fetchc.check.probe_site import steps
from fetchc.check.typed_tree import (
    Address,
    Computed,
    Conditional,
    Constant,
    Convert,
    Dispatched,
    FloatConstant,
    Indexed,
    Located,
    Operation,
    Pointee,
    Ranged,
    Shift,
    Special,
    Subobject,
)
from fetchc.diag.diagnostic import reject
from fetchc.ir.fetch import (
    Absolute,
    Bits,
    Comm,
    Cursor,
    Decode,
    Deref,
    Fetch,
    Image,
    Immediate,
    KernelValue,
    Register,
    ReturnValue,
    Scalar,
    StackEntry,
    StackPointer,
    Text,
    ThreadPointer,
    Value,
    Word,
    is_address,
)
from fetchc.program import entities
from fetchc.program.entities import Piece
from fetchc.program.types import (
    BoolType,
    ChannelType,
    CharType,
    EnumType,
    FloatType,
    FunctionType,
    IntType,
    MapType,
    PointerType,
    QualifiedType,
    SequenceType,
    StructType,
    VoidType,
)
from fetchc.quantities import TypeId
from fetchc.record import Record, assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.probe_site import Site
    from fetchc.check.typed_tree import Typed
    from fetchc.ir.fetch import Store
    from fetchc.program.types import Type
    from fetchc.quantities import DwarfRegister
    from fetchc.source import Span

__all__ = [
    "Composite",
    "ImplicitValue",
    "InValue",
    "Lowered",
    "Memory",
    "Plain",
    "Where",
    "bit_field_of",
    "fetch_scalar",
    "inside",
    "is_byte",
    "is_character",
    "is_string_pointer",
    "load_word",
    "located",
    "low_bits",
    "memory_of",
    "number",
    "piece_at",
    "plain",
    "pointed",
    "pointer",
    "scalar",
    "smallest_container",
    "special",
    "unwidened",
    "where",
]


class Lowered(Record):
    """One fetch of an expression.

    ``suffix`` is empty for the value itself; ``len``, ``x``, ... for a companion or a
    leaf of a whole structure, to be joined to the argument's name. A ``companion`` is
    there for the reader and is no value of its own.
    """

    suffix: str
    fetch: Fetch
    decode: Decode
    type: TypeId
    companion: bool = False


class Memory(Record):
    """An object in memory, ``offset`` bytes from the address that is the value ``base``.

    ``user``: in the memory of the program that a probe of the kernel finds running.
    """

    base: Value
    offset: int
    user: bool = False


class InValue(Record):
    """Part of a register or another word that is not memory.

    The word's low ``size`` bytes are an object; wanted is what starts ``offset`` bytes into it.
    """

    base: Value
    offset: int
    size: int


class ImplicitValue(Record):
    """A constant in place of an object (DW_OP_implicit_value, DW_OP_stack_value).

    ``left`` is how many bytes of it there are, None for as many as asked.
    """

    value: int
    left: int | None = None


class Composite(Record):
    """An object in several pieces (DW_OP_piece); the wanted part starts ``offset`` bytes in."""

    pieces: tuple[Piece, ...]
    offset: int
    name: str = ""


Where = Memory | InValue | ImplicitValue | Composite


def inside(found: Where, offset: int) -> Where:
    """What starts ``offset`` bytes into ``found``."""
    match found:
        case Memory(base=base, offset=start, user=user):
            return Memory(base, start + offset, user)
        case InValue(base=base, offset=start, size=size):
            return InValue(base, start + offset, size)
        case Composite(pieces=pieces, offset=start, name=name):
            return Composite(pieces, start + offset, name)
        case ImplicitValue(value=value, left=left):
            if offset < 0:
                return ImplicitValue(0, -1)
            return ImplicitValue(value >> (8 * offset), None if left is None else left - offset)
        case _:
            assert_never(found)


def low_bits(site: Site, found: InValue, size: int) -> int:
    """How many bits of the word are below ``size`` bytes of ``found``.

    A register holds an object as a load of it would: its first byte is the lowest one, or on a
    big-endian machine its last byte is.
    """
    if site.program.little_endian:
        return 8 * found.offset
    if found.offset == 0 and size > found.size:
        return 0  # more of the register than the object
    return 8 * (found.size - found.offset - size)


# ------------------------------------------------------------------------------
# Where the bytes of a typed node are, in the kernel's terms.


def where(site: Site, node: Typed) -> Where:
    """Where the object or value of ``node`` is."""
    match node:
        case Located(place=place, name=name):
            return located(site, place, _bytes(site, node), node.span, name)
        case Subobject(base=base, offset=offset):
            whole = where(site, base)
            if isinstance(whole, ImplicitValue) and not site.program.little_endian:
                raise reject(
                    "FC0406",
                    "the compiler keeps this structure as one number, not in memory",
                    node.span,
                    "not in memory",
                    notes=("the bits of each member in that number are not known on this machine",),
                    reason="computed",
                )
            return inside(whole, offset)
        case Pointee(base=base):
            found = _object(site, base)
            return pointed(site, base) if found is None else found
        case Convert(base=base):
            return where(site, base)
        case Constant(value=value):
            return ImplicitValue(value)
        case Special():
            return InValue(_special(site, node), 0, _bytes(site, node))
        case Shift() | Address() | Indexed():
            return _address(site, node)
        case Ranged():
            raise reject(
                "FC0312",
                "the length of the range is only known at run time",
                node.span,
                "not at the end",
                help="put the range at the end of the expression",
                reason="several fetch-args",
            )
        case Operation(operator="[]"):
            from fetchc.lower.element_addresses import selected

            return pointed(site, selected(site, node))
        case Computed() | Conditional() | Dispatched() | Operation() | FloatConstant():
            from fetchc.lower.no_fetch import part_of_computed

            raise part_of_computed(node)
        case _:
            assert_never(node)


def _object(site: Site, node: Typed) -> Where | None:
    """What the address ``node`` was taken of, in memory or not; None for other pointers."""
    match node:
        case Address(base=base):
            return where(site, base)
        case Convert(base=base):
            return _object(site, base)
        case Shift(base=base, offset=offset):
            whole = _object(site, base)
            return None if whole is None else inside(whole, offset)
        case _:
            return None


def pointed(site: Site, node: Typed) -> Memory:
    """What the pointer ``node`` leads to."""
    base, offset = pointer(site, node)
    if not site.program.in_kernel:
        return Memory(base, offset)
    from fetchc.lower.no_fetch import leads_to_user

    return Memory(base, offset, leads_to_user(site, node))


def pointer(site: Site, node: Typed) -> tuple[Value, int]:
    """The address that the pointer ``node`` holds, as a value plus a constant."""
    match node:
        case Shift(base=base, offset=offset):
            value, start = pointer(site, base)
            return value, start + offset
        case Indexed() | Located(place=entities.Arithmetic()):
            from fetchc.lower.element_addresses import element_address

            return element_address(site, node, pointer, number), 0
        case Convert(base=base):
            return pointer(site, base)
        case Constant(value=value):
            return Absolute(value), 0
        case Address(base=base):
            found = where(site, base)
            if isinstance(found, Memory):
                return found.base, found.offset
            kind = "a constant" if isinstance(found, ImplicitValue) else "a value in a register"
            what = f"{kind} has no address"
            raise reject("FC0405", what, node.span, "not in memory", reason="no address")
        case _:
            return load_word(site, where(site, node), node.span), 0


def load_word(site: Site, found: Where, span: Span) -> Value:
    """The machine word at ``found``, as a value to continue from."""
    size = site.program.word_bytes
    match found:
        case Memory(base=base, offset=offset, user=user):
            return _deref(base, offset, user)
        case InValue(base=base) if low_bits(site, found, size) == 0:
            return base
        case ImplicitValue(value=value):
            return Immediate(value)
        case Composite():
            return load_word(site, piece_at(site, found, size, span), span)
        case _:
            raise reject(
                "FC0404",
                "the pointer starts in the middle of a register",
                span,
                "cannot be dereferenced there",
                notes=("the kernel dereferences whole words only",),
                reason="in pieces",
            )


def piece_at(
    site: Site, found: Composite, size: int, span: Span
) -> Memory | InValue | ImplicitValue:
    """The one place that holds ``size`` bytes from ``found.offset`` of a composite one."""
    low = found.offset
    for piece in found.pieces:
        if piece.offset <= low and low + size <= piece.offset + piece.size:
            piece_location = located(site, piece.place, piece.size, span, found.name)
            inner = inside(piece_location, low - piece.offset)
            assert not isinstance(inner, Composite)
            return inner
    if not any(low < one.offset + one.size and one.offset < low + size for one in found.pieces):
        located(site, entities.NO_LOCATION, size, span, found.name)  # raises CompileError
    shown = ", ".join(f"+{p.offset}..+{p.offset + p.size}" for p in found.pieces)
    raise reject(
        "FC0404",
        f"the {size} bytes at +{low} are not in one piece",
        span,
        "spread over several places",
        notes=(f"its pieces are {shown}",) if shown else ("it has no location",),
        help="name a member that is inside one of them",
        reason="in pieces",
    )


def _bytes(site: Site, node: Located | Special) -> int:
    # A machine that counts from the low end need not know, and sizes are slow to compute.
    if site.program.little_endian:
        return site.program.word_bytes
    from fetchc.check.probe_site import SiteTypes

    size = SiteTypes(site).size(node.type)
    return site.program.word_bytes if size is None else size


def located(site: Site, place: entities.Place, size: int, span: Span, name: str = "") -> Where:
    """Where an object of ``size`` bytes with that place is; ``name`` is a variable's, for people.

    Raises CompileError where no probe can read it.
    """
    match place:
        case entities.InRegister(register=register):
            return InValue(Register(_register_name(site, register, span, name)), 0, size)
        case entities.InMemory(register=register, offset=offset):
            return Memory(Register(_register_name(site, register, span)), offset)
        case entities.AtAddress(address=address):
            return Memory(Image(site.program.image_offset(address, site.address)), 0)
        case entities.ThreadLocal(offset=offset, word=address):
            word = None
            if address is not None:
                word = Image(site.program.image_offset(address, site.address))
            return Memory(ThreadPointer(word), offset)
        case entities.AtSymbol(symbol=symbol, per_cpu=True):
            return Memory(KernelValue("per_cpu", f"this_cpu_ptr(@{symbol})"), 0)
        case entities.AtSymbol(symbol=symbol):
            return Memory(KernelValue("symbol", f"@{symbol}"), 0)
        case entities.Named(rule=rule, name=name):
            return InValue(KernelValue(rule, name), 0, size)
        case entities.Indirect(pointer=inner, offset=offset):
            pointer = located(site, inner, site.program.word_bytes, span, name)
            return Memory(load_word(site, pointer, span), offset)
        case entities.Constant(value=value, size=room):
            return ImplicitValue(value, room)
        case entities.Pieces(pieces=pieces):
            return Composite(pieces, 0, name)
        case entities.Absent(kind=kind, reason=reason):
            words = site.architecture.in_words(reason)
            what = f"this part cannot be fetched: {words}"
            raise reject(place.code, what, span, "no location", reason=kind)
        case entities.PointerTo() | entities.Arithmetic():
            from fetchc.lower.no_fetch import computed

            raise computed(site, place, span, name)
        case entities.OnEntry(register=register):
            from fetchc.lower.no_fetch import lost

            raise lost(site, register, span, name)
        case entities.FrameRelative():
            raise AssertionError(f"a frame-relative place was left: {place!r}")
        case _:
            assert_never(place)


def _register_name(site: Site, register: DwarfRegister, span: Span, variable: str = "") -> str:
    """The kernel's name of a DWARF register; refused for those that probes cannot read.

    ``variable`` is the name of the variable in it, if any.
    """
    name = site.architecture.registers.get(register)
    if name is not None:
        return name
    if register in site.architecture.unfetchable:
        from fetchc.lower.no_fetch import unsaved

        raise unsaved(site, register, span, variable)
    raise reject(
        "FC0512",
        f"the value is in DWARF register {register}, which the kernel does not save for a probe",
        span,
        "a probe cannot read it",
    )


def _special(site: Site, node: Special) -> Value:
    match node.kind:
        case "register":
            return Register(node.text)
        case "stack":
            return StackPointer()
        case "entry":
            return StackEntry(int(node.text))
        case "comm":
            return Comm()
        case "text":
            return KernelValue("event_field", node.text)
        case "cursor":
            return Cursor(int(node.text))
        case _:
            # At a return instruction no return probe has taken the result from its register.
            return Register(site.architecture.result) if site.leaving else ReturnValue()


def _address(site: Site, node: Shift | Address | Indexed) -> Where:
    value, offset = pointer(site, node)
    if offset == 0 and not (is_address(value) or isinstance(value, ThreadPointer)):
        if isinstance(value, Deref):
            return Memory(value.base, value.offset)
        return InValue(value, 0, site.program.word_bytes)
    if isinstance(value, Absolute):
        return ImplicitValue(value.address + offset)
    raise reject(
        "FC0405",
        "an address cannot be the value of a fetch-arg",
        node.span,
        "computed, not loaded",
        notes=("the kernel loads from base + offset, it cannot return base + offset itself",),
        help="fetch the pointer that it starts from, and add the offset to the output",
        reason="no address",
    )


def _deref(base: Value, offset: int, user: bool) -> Deref:
    # @+OFF is a load in itself: the constant belongs into it, not around it.
    match base:
        case Image(offset=start):
            return Deref(Image(start + offset), 0)
        case Absolute(address=start):
            return Deref(Absolute(start + offset), 0)
        case _:
            return Deref(base, offset, user)


# ------------------------------------------------------------------------------
# How one value is fetched and what the reader makes of it, by its type.

_SIZES = (1, 2, 4, 8)


class Plain(Record):
    """A scalar's store, what it means, and its size in bytes."""

    store: Scalar
    decode: Decode
    size: int


def is_character(resolved: Type) -> bool:
    """Whether a type is the character type of strings: ``signed char`` and the like are numbers."""
    return (
        isinstance(resolved, CharType)
        and resolved.size == 1
        and resolved.name in ("char", "char8_t")
    )


def is_byte(resolved: Type) -> bool:
    """Whether elements of the type are the characters of a string."""
    return isinstance(resolved, VoidType) or (
        isinstance(resolved, CharType | IntType) and resolved.size == 1
    )


def is_string_pointer(checker: Checker, resolved: Type) -> bool:
    """Whether a type is a pointer to a string.

    In the kernel that is `unsigned char *` too (names of files are), where bytes are `u8 *`.
    """
    if not isinstance(resolved, PointerType):
        return False
    if is_character(checker.resolved(resolved.target)):
        return True
    if not checker.program.in_kernel:
        return False
    target = next(
        (
            each
            for each in steps(checker.program, resolved.target)
            if not isinstance(each, QualifiedType)
        ),
        None,
    )
    return isinstance(target, CharType) and target.name == "unsigned char"


def _is_raw(checker: Checker, resolved: Type) -> bool:
    # A pointer of .NET that is no reference to an object.
    if not isinstance(resolved, PointerType) or resolved.reference:
        return True
    target = checker.resolved(resolved.target)
    if isinstance(target, SequenceType):
        return target.value
    return not (isinstance(target, StructType) and target.kind == "class")


def plain(checker: Checker, type_id: TypeId) -> Plain | None:
    """How a scalar of a type is fetched; None where the type is no scalar the kernel has.

    Source: the table "What the value becomes" of docs/language.md.
    """
    resolved = checker.resolved(type_id)
    match resolved:
        case PointerType() | MapType() | ChannelType():
            size = checker.program.word_bytes
            kind = "pointer"
            if isinstance(resolved, PointerType) and isinstance(
                checker.resolved(resolved.target), FunctionType
            ):
                # A function value of Go points to a closure, whose first word is the code.
                kind = "pointer" if checker.site.language.closures else "symbol"
            elif checker.site.language.references and not _is_raw(checker, resolved):
                kind = "reference"
            return Plain(Scalar("x", 8 * size), Decode(kind, 8 * size), size)
        case IntType(size=size, signed=signed) | CharType(size=size, signed=signed):
            if size not in _SIZES:
                return None
            unit = isinstance(resolved, CharType) and resolved.name == "char"  # of .NET: 2 bytes
            kind = "char" if unit or is_character(resolved) else "integer"
            store = Scalar("s" if signed else "u", 8 * size)
            return Plain(store, Decode(kind, 8 * size, signed), size)
        case BoolType(size=size):
            return Plain(Scalar("u", 8 * size), Decode("bool", 8 * size), size)
        case EnumType(size=size, signed=signed, enumerators=names, flags=flags) as enum:
            if size not in _SIZES:
                return None
            store = Scalar("s" if signed else "u", 8 * size)
            decode = Decode("enum", 8 * size, signed, None, names, None, flags, enum.otherwise)
            return Plain(store, decode, size)
        case FloatType(size=4 | 8 as size):
            return Plain(Scalar("x", 8 * size), Decode("float", 8 * size), size)
        case _:
            return None


# ------------------------------------------------------------------------------
# One number: from memory, from a register or the low bytes of one, or a constant.


def special(checker: Checker, node: Special) -> Lowered | None:
    """``%ax``, ``$stack``, ``$comm``, strings of events as the kernel gives them; else None."""
    found = where(checker.site, node)
    assert isinstance(found, InValue)
    if isinstance(found.base, Comm) or node.kind == "text":
        return Lowered("", Fetch(found.base, Text()), Decode("text"), node.type)
    if node.type == checker.word():
        bits = 8 * checker.program.word_bytes
        return Lowered("", Fetch(found.base, Word()), Decode("integer", bits), node.type)
    return None


def scalar(checker: Checker, node: Typed, described: Plain) -> Lowered:
    """The number ``node``, of the scalar type that ``described`` describes."""
    part = bit_field_of(node)
    if part is not None:
        return bit_field(checker, part, described, node)
    narrow = unwidened(checker, node, described)
    fetch = fetch_scalar(checker, node, narrow.store, narrow.size)
    return Lowered("", fetch, narrow.decode, node.type)


def number(checker: Checker, node: Typed) -> Lowered:
    """The number ``node``, as a length is; FC0311 where the debug information has another type."""
    described = plain(checker, node.type)
    if described is None:
        from fetchc.lower.no_fetch import incomplete

        raise incomplete(checker, node, checker.resolved(node.type))
    return scalar(checker, node, described)


def unwidened(checker: Checker, node: Typed, described: Plain) -> Plain:
    """What is fetched of ``node``, a scalar as ``described``: casts to wider types add nothing."""
    narrow = _narrowest(checker, node, described)
    decode = described.decode
    if narrow.size < described.size:
        decode = Decode(
            decode.kind, 8 * narrow.size, narrow.decode.signed, None, decode.enumerators, None,
            decode.flags,
        )  # fmt: skip
    return Plain(narrow.store, decode, narrow.size)


def _narrowest(checker: Checker, node: Typed, described: Plain) -> Plain:
    # A cast to a wider type does not change the value, so what is fetched is the narrower one.
    while isinstance(node, Convert):
        inner = plain(checker, node.base.type)
        if inner is not None and inner.size < described.size:
            described = inner
        node = node.base
    return described


def fetch_scalar(checker: Checker, node: Typed, store: Scalar, size: int) -> Fetch:
    """``size`` bytes at ``node``, stored as ``store``; part of a register as its bits."""
    found = where(checker.site, node)
    if isinstance(found, Composite):
        found = piece_at(checker.site, found, size, node.span)
    if not (checker.program.little_endian or isinstance(found, ImplicitValue)):
        found = inside(found, _high_bytes(checker, node, size))
    match found:
        case ImplicitValue(value=value, left=left):
            if left is not None and left < size:
                from fetchc.lower.no_fetch import outside

                raise outside(node.span)
            return Fetch(immediate(checker.site, _low(value, size), node.span), store)
        case Memory():
            return Fetch(load_word(checker.site, found, node.span), store)
        case InValue(base=base):
            word = 8 * checker.program.word_bytes
            low = low_bits(checker.site, found, size)
            if low < 0 or low + 8 * size > word:
                from fetchc.lower.no_fetch import straddles

                raise straddles(node.span)
            if low == 0:
                return Fetch(base, store)
            return Fetch(base, Bits(8 * size, low, word))
        case Composite():
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


def _high_bytes(checker: Checker, node: Typed, size: int) -> int:
    # Bytes before the low ``size`` ones of a number on a big-endian machine.
    while isinstance(node, Convert):
        node = node.base
    own = plain(checker, node.type)
    return 0 if own is None else max(0, own.size - size)


def bit_field_of(node: Typed) -> Subobject | None:
    """The bit field that ``node`` is, casts looked through."""
    while isinstance(node, Convert):
        node = node.base
    return node if isinstance(node, Subobject) and node.bits is not None else None


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
        reason="in pieces",
    )


# ------------------------------------------------------------------------------
# Bit fields: from the smallest container around them in memory, from a register, or a constant.


def bit_field(checker: Checker, part: Subobject, described: Plain, node: Typed) -> Lowered:
    """The bit field ``part``, which ``node`` is, casts looked through; ``described`` its type."""
    from fetchc.check.conversions import cut_by_casts

    bits = part.bits
    assert bits is not None
    width, signed = cut_by_casts(checker, node)
    decode = Decode(described.decode.kind, width, signed, None, described.decode.enumerators)
    holder = checker.size(part.base.type)
    # The member's own offset is already in bits.offset: the field lies in the base object.
    found = where(checker.site, part.base)
    first = bits.offset // 8
    last = (bits.offset + bits.width + 7) // 8
    if isinstance(found, Composite):
        inner = Composite(found.pieces, found.offset + first)
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
            store: Store = Bits(width, start, container)
            return Lowered("", Fetch(place, store), decode, node.type)
        case InValue(base=base, offset=offset, size=size):
            start = 8 * offset + bits.offset
            if not checker.program.little_endian:
                start = 8 * size - start - bits.width
            word = 8 * checker.program.word_bytes
            if start < 0 or start + bits.width > word:
                from fetchc.lower.no_fetch import straddles

                raise straddles(node.span)
            return Lowered("", Fetch(base, Bits(width, start, word)), decode, node.type)
        case ImplicitValue(value=value, left=left):
            if left is not None and 8 * left < bits.offset + bits.width:
                from fetchc.lower.no_fetch import outside

                raise outside(node.span)
            number = value >> bits.offset & ((1 << width) - 1)
            constant = immediate(checker.site, number, node.span)
            return Lowered("", Fetch(constant, Scalar("u", 64)), decode, node.type)


def _back(found: Memory | InValue | ImplicitValue, by: int) -> Memory | InValue | ImplicitValue:
    match found:
        case Memory(base=base, offset=offset, user=user):
            return Memory(base, offset - by, user)
        case InValue(base=base, offset=offset, size=size):
            return InValue(base, offset - by, size)
        case ImplicitValue(value=value, left=left):
            return ImplicitValue(value << (8 * by), None if left is None else left + by)


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
