"""Where the bytes of a typed node are, in the kernel's terms."""

from __future__ import annotations

from fetchc.check.typed_tree import (
    Address,
    Computed,
    Constant,
    Convert,
    Dispatched,
    Either,
    Follow,
    Held,
    Part,
    Ranged,
    Shift,
    Special,
)
from fetchc.diag.diagnostic import reject
from fetchc.ir.fetch import (
    Absolute,
    Comm,
    Deref,
    Image,
    Immediate,
    KernelValue,
    Register,
    ReturnValue,
    StackEntry,
    StackPointer,
    is_address,
)
from fetchc.lower.model import InValue, Known, Memory, Spread, inside, low_bits
from fetchc.program import entities
from fetchc.record import assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.probe_site import Site
    from fetchc.check.typed_tree import Typed
    from fetchc.ir.fetch import Value
    from fetchc.lower.model import Where
    from fetchc.quantities import DwarfRegister
    from fetchc.source import Span

__all__ = ["load_word", "piece_at", "pointed", "pointer", "where"]


def where(site: Site, node: Typed) -> Where:
    """Where the object or value of ``node`` is."""
    match node:
        case Held(place=place, name=name):
            return _held(site, place, _bytes(site, node), node.span, name)
        case Part(base=base, offset=offset):
            whole = where(site, base)
            if isinstance(whole, Known) and not site.program.little_endian:
                raise reject(
                    "FC0406",
                    "the compiler keeps this structure as one number and in no memory",
                    node.span,
                    "in no memory",
                    notes=("where its members are in that number is not known on this machine",),
                )
            return inside(whole, offset)
        case Follow(base=base):
            known = _object(site, base)
            return pointed(site, base) if known is None else known
        case Convert(base=base):
            return where(site, base)
        case Constant(value=value):
            return Known(value)
        case Special():
            return InValue(_special(site, node), 0, _bytes(site, node))
        case Shift() | Address():
            return _address(site, node)
        case Ranged():
            raise reject(
                "FC0312",
                "how long the range is, is only known when the program runs",
                node.span,
                "a part of nothing else",
                help="let the range be the last thing of the expression",
            )
        case Computed() | Either() | Dispatched():
            from fetchc.lower.reckoned import refused

            raise refused(node)
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
    from fetchc.lower.user_pointers import leads_to_user

    return Memory(base, offset, leads_to_user(site, node))


def pointer(site: Site, node: Typed) -> tuple[Value, int]:
    """The address that the pointer ``node`` holds, as a value plus a constant."""
    match node:
        case Shift(base=base, offset=offset):
            value, start = pointer(site, base)
            return value, start + offset
        case Convert(base=base):
            return pointer(site, base)
        case Constant(value=value):
            return Absolute(value), 0
        case Address(base=base):
            found = where(site, base)
            if isinstance(found, Memory):
                return found.base, found.offset
            kind = "a constant" if isinstance(found, Known) else "a value in a register"
            raise reject("FC0405", f"{kind} has no address", node.span, "not in memory")
        case _:
            return load_word(site, where(site, node), node.span), 0


def load_word(site: Site, found: Where, span: Span) -> Value:
    """The machine word at ``found``, as a value to go on from."""
    size = site.program.word_bytes
    match found:
        case Memory(base=base, offset=offset, user=user):
            return _deref(base, offset, user)
        case InValue(base=base) if low_bits(site, found, size) == 0:
            return base
        case Known(value=value):
            return Immediate(value)
        case Spread():
            return load_word(site, piece_at(site, found, size, span), span)
        case _:
            raise reject(
                "FC0404",
                "the pointer starts in the middle of a register",
                span,
                "cannot be followed from there",
                notes=("the kernel follows whole words only",),
            )


def piece_at(site: Site, found: Spread, size: int, span: Span) -> Memory | InValue | Known:
    """The one place that holds ``size`` bytes from ``found.offset`` of a spread object."""
    low = found.offset
    for piece in found.pieces:
        if piece.offset <= low and low + size <= piece.offset + piece.size:
            held = _held(site, piece.place, piece.size, span, found.name)
            inner = inside(held, low - piece.offset)
            assert not isinstance(inner, Spread)
            return inner
    shown = ", ".join(f"+{p.offset}..+{p.offset + p.size}" for p in found.pieces)
    raise reject(
        "FC0404",
        f"the {size} bytes at +{low} do not lie in one piece",
        span,
        "spread over several places",
        notes=(f"its pieces are {shown}",) if shown else ("it takes no place at all",),
        help="name a member that lies within one of them",
    )


def _bytes(site: Site, node: Held | Special) -> int:
    # A machine that counts from the low end need not know, and sizes are dear to ask for.
    if site.program.little_endian:
        return site.program.word_bytes
    from fetchc.check.probe_site import Checker

    size = Checker(site).size(node.type)
    return site.program.word_bytes if size is None else size


def _held(site: Site, place: entities.Place, size: int, span: Span, name: str = "") -> Where:
    match place:
        case entities.InRegister(register=register):
            return InValue(Register(_register_name(site, register, span, name)), 0, size)
        case entities.InMemory(register=register, offset=offset):
            return Memory(Register(_register_name(site, register, span)), offset)
        case entities.AtAddress(address=address):
            return Memory(Image(site.program.image_offset(address, site.address)), 0)
        case entities.AtSymbol(symbol=symbol):
            return Memory(KernelValue("symbol", f"@{symbol}"), 0)
        case entities.Named(rule=rule, name=name):
            return InValue(KernelValue(rule, name), 0, size)
        case entities.Indirect(pointer=inner, offset=offset):
            pointer = _held(site, inner, site.program.word_bytes, span, name)
            return Memory(load_word(site, pointer, span), offset)
        case entities.Constant(value=value, size=room):
            return Known(value, room)
        case entities.Pieces(pieces=pieces):
            return Spread(pieces, 0, name)
        case entities.Absent(code=code, reason=reason):
            words = site.architecture.in_words(reason)
            raise reject(code, f"this part cannot be fetched: {words}", span, "no place")
        case entities.PointerTo():
            from fetchc.lower.on_entry import computed

            raise computed(site, place, span, name)
        case entities.OnEntry(register=register):
            from fetchc.lower.on_entry import lost

            raise lost(site, register, span, name)
        case entities.FrameRelative():
            raise AssertionError(f"a frame-relative place was left: {place!r}")
        case _:
            assert_never(place)


def _register_name(site: Site, register: DwarfRegister, span: Span, variable: str = "") -> str:
    """The kernel's name of a DWARF register; refused for those that probes cannot read.

    ``variable`` is the name of what is in it, where that is known.
    """
    name = site.architecture.registers.get(register)
    if name is not None:
        return name
    if register in site.architecture.unfetchable:
        from fetchc.lower.unsaved import unsaved

        raise unsaved(site, register, span, variable)
    raise reject(
        "FC0512",
        f"the value is in DWARF register {register}, which the kernel gives to no probe",
        span,
        "no probe can read it",
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
        case _:
            # At a return instruction no return probe has taken the result from its register.
            return Register(site.architecture.result) if site.leaving else ReturnValue()


def _address(site: Site, node: Shift | Address) -> Where:
    value, offset = pointer(site, node)
    if offset == 0 and not is_address(value):
        if isinstance(value, Deref):
            return _loaded(value)
        return InValue(value, 0, site.program.word_bytes)
    if isinstance(value, Absolute):
        return Known(value.address + offset)
    raise reject(
        "FC0405",
        "an address cannot be the value of a fetch-arg",
        node.span,
        "computed, not loaded",
        notes=("the kernel loads from base + offset, it cannot give base + offset itself",),
        help="fetch the pointer it starts from and add where it is read",
    )


def _loaded(value: Deref) -> Memory:
    if isinstance(value.base, Image | Absolute):
        return Memory(value.base, 0)
    return Memory(value.base, value.offset)


def _deref(base: Value, offset: int, user: bool) -> Deref:
    # @+OFF is a load in itself: the constant belongs into it, not around it.
    match base:
        case Image(offset=start):
            return Deref(Image(start + offset), 0)
        case Absolute(address=start):
            return Deref(Absolute(start + offset), 0)
        case _:
            return Deref(base, offset, user)
