"""Values on the stack of a location expression, without a process: symbols and what is added.

An entry is a number, an address (represented as the place in memory that starts there), what an
operation gives for such entries, or something that only a run could tell, with the words for the
user.
"""

from __future__ import annotations

from fetchc.program.entities import (
    Absent,
    Arithmetic,
    AtAddress,
    AtSymbol,
    Constant,
    FrameRelative,
    Indirect,
    InMemory,
    InRegister,
    Named,
    OnEntry,
    Piece,
    Pieces,
    PointerTo,
    ThreadLocal,
)
from fetchc.quantities import Address, ByteOffset
from fetchc.record import Record, assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.entities import Place

__all__ = [
    "Number",
    "Start",
    "Unknown",
    "Value",
    "as_memory",
    "as_value",
    "at_entry",
    "dereferenced",
    "moved",
    "operated",
    "plus",
    "pointer_to",
    "resolve_frame",
    "started",
    "wrapped",
]

MAX_DEREFERENCES = 32
"""Longer chains are refused: no compiler writes them, the kernel would not take them
(FETCH_INSN_MAX), and places are walked recursively."""

MAX_OPERATIONS = 16
"""Values of more are refused: compilers write two or three, and DW_OP_dup doubles them."""


class Number(Record):
    """A number, as the operation spells it: negative only from a signed operand."""

    value: int


class Start(Record):
    """The address at which ``place`` starts."""

    place: InMemory | FrameRelative | AtAddress | ThreadLocal | Indirect


class Unknown(Record):
    """Only a run could tell. ``how`` completes "it is ..."."""

    how: str
    thread_local: bool = False


Value = Number | Start | Arithmetic | Unknown


def moved(at: Place, distance: int) -> Place:
    """The place ``distance`` bytes after a place in memory; others have no such neighbour."""
    match at:
        case InMemory(register, offset):
            return InMemory(register, ByteOffset(offset + distance))
        case FrameRelative(offset):
            return FrameRelative(ByteOffset(offset + distance))
        case AtAddress(address):
            return AtAddress(Address(address + distance))
        case ThreadLocal(offset, word):
            return ThreadLocal(ByteOffset(offset + distance), word)
        case Indirect(pointer, offset):
            return Indirect(pointer, ByteOffset(offset + distance))
        case Absent():
            return at
        case InRegister() | AtSymbol() | Named() | Constant() | Pieces() | PointerTo() | OnEntry():
            return Absent("no address", "it is relative to something that is not in memory")
        case Arithmetic():
            return Absent("no address", "it is relative to something that is not in memory")
        case _:
            assert_never(at)


def resolve_frame(at: Place, cfa: Place) -> Place:
    """``at`` with every frame-relative part relative to ``cfa``.

    ``cfa`` is the place whose first byte the canonical frame address is, the answer of
    :func:`fetchc.debuginfo.dwarf.call_frames.cfa_at`.
    """
    match at:
        case FrameRelative(offset):
            return moved(cfa, offset)
        case Indirect(pointer, offset):
            resolved = resolve_frame(pointer, cfa)
            return resolved if isinstance(resolved, Absent) else Indirect(resolved, offset)
        case Pieces(pieces):
            return Pieces(
                tuple([Piece(p.offset, p.size, resolve_frame(p.place, cfa)) for p in pieces])
            )
        case PointerTo(target, offset):
            return pointer_to(resolve_frame(target, cfa), offset)
        case Arithmetic(operation, operands):
            return arithmetic(operation, tuple([resolve_frame(one, cfa) for one in operands]))
        case InRegister() | InMemory() | AtAddress() | AtSymbol() | Named() | Constant() | Absent():
            return at
        case OnEntry() | ThreadLocal():
            return at
        case _:
            assert_never(at)


def at_entry(at: Place) -> Place:
    """``at`` for a function's first instruction, where registers hold what they did on entry."""
    match at:
        case OnEntry(register):
            return InRegister(register)
        case Indirect(OnEntry(register), offset):
            return InMemory(register, offset)
        case Indirect(pointer, offset):
            return Indirect(at_entry(pointer), offset)
        case PointerTo(target, offset):
            return pointer_to(at_entry(target), offset)
        case Arithmetic(operation, operands):
            return Arithmetic(operation, tuple([at_entry(one) for one in operands]))
        case Pieces(pieces):
            return Pieces(tuple([Piece(p.offset, p.size, at_entry(p.place)) for p in pieces]))
        case _:
            return at


def pointer_to(target: Place, offset: ByteOffset) -> Place:
    """The address ``offset`` bytes into ``target``, as a value."""
    match target:
        case InMemory() | FrameRelative() | AtAddress() | ThreadLocal() | Indirect() if offset:
            return pointer_to(moved(target, offset), ByteOffset(0))
        case InMemory(register, 0):
            return InRegister(register)
        case Absent():
            return target
        case _:
            return PointerTo(target, offset)


def arithmetic(operation: str, operands: tuple[Place, ...]) -> Place:
    """What the operation of DWARF gives for ``operands``; Absent where one of them is."""
    missing = next((one for one in operands if isinstance(one, Absent)), None)
    return Arithmetic(operation, operands) if missing is None else missing


def operated(operation: str, operands: tuple[Value, ...]) -> Value:
    """What the operation of DWARF gives for ``operands``, the top of the stack last.

    Unknown where it takes an address of the file, which is not that of the running program.
    """
    unknown = Unknown(f"computed at run time (DW_OP_{operation})")
    places = []
    for one in operands:
        place = as_value(one, little_endian=True)
        moves = isinstance(one, Start) and isinstance(one.place, AtAddress)
        if moves or isinstance(place, Absent):
            return unknown
        places.append(place)
    found = Arithmetic(operation, tuple(places))
    return found if _operations(found) <= MAX_OPERATIONS else unknown


def _operations(at: Place) -> int:
    return 1 + sum(map(_operations, at.operands)) if isinstance(at, Arithmetic) else 0


def started(at: Place) -> Value:
    """The address of the first byte of ``at``, as DW_OP_fbreg takes it from a frame base.

    A frame base in a register means the address that the register holds.
    """
    match at:
        case InMemory() | FrameRelative() | AtAddress() | ThreadLocal() | Indirect():
            return Start(at)
        case InRegister(register):
            return Start(InMemory(register, ByteOffset(0)))
        case Absent(_, reason):
            return Unknown(f"relative to a frame base that is not available: {reason}")
        case Constant() | Pieces() | AtSymbol() | Named() | PointerTo() | Arithmetic() | OnEntry():
            return Unknown("relative to a frame base that is not in memory")
        case _:
            assert_never(at)


def plus(value: Value, number: int, address_size: int) -> Value:
    """``value + number`` in the modular arithmetic of an address."""
    if isinstance(value, Unknown):
        return value
    if isinstance(value, Number):
        return Number(wrapped(value.value + number, address_size))
    if isinstance(value, Arithmetic):
        return operated("plus", (value, Number(number)))
    match value.place:
        case InMemory(register, offset):
            return Start(InMemory(register, _distance(offset + number, address_size)))
        case FrameRelative(offset):
            return Start(FrameRelative(_distance(offset + number, address_size)))
        case AtAddress(address):
            return Start(AtAddress(Address((address + number) % (1 << 8 * address_size))))
        case ThreadLocal(offset, word):
            return Start(ThreadLocal(_distance(offset + number, address_size), word))
        case Indirect(pointer, offset):
            return Start(Indirect(pointer, _distance(offset + number, address_size)))
        case _:
            assert_never(value.place)


def dereferenced(value: Value) -> Value:
    """The word in memory at the address ``value``."""
    if isinstance(value, Unknown):
        return value
    if isinstance(value, Number):
        return Unknown(f"read from the fixed address {value.value:#x}")
    if isinstance(value, Arithmetic):
        return Unknown(f"computed at run time (DW_OP_{value.operation})")
    depth = 1
    at: Place = value.place
    while isinstance(at, Indirect):
        depth += 1
        at = at.pointer
    if depth > MAX_DEREFERENCES:
        return Unknown(f"reached through more than {MAX_DEREFERENCES} pointers")
    return Start(Indirect(value.place, ByteOffset(0)))


def as_memory(value: Value) -> Place:
    """The place of the object at the address ``value``."""
    match value:
        case Start(at):
            return at
        case Number(number):
            where = f"its address is the fixed number {number:#x}, which is in no part of the file"
            return Absent("no address", where)
        case Arithmetic(operation):
            how = f"computed at run time (DW_OP_{operation})"
            return Absent("no address", f"its address is {how}")
        case Unknown(how, thread_local):
            if thread_local:
                return Absent("thread-local", f"it is {how}")
            return Absent("no address", f"its address is {how}")
        case _:
            assert_never(value)


def as_value(value: Value, little_endian: bool) -> Place:
    """A place that holds ``value`` itself (DW_OP_stack_value).

    The word of a big-endian machine is refused: its low bytes, an object smaller than a
    word, would not be at its first byte.
    """
    match value:
        case Number(number):
            return Constant(number)
        case Start(Indirect(pointer, 0)) if little_endian:
            return pointer
        case Start(at):
            return pointer_to(at, ByteOffset(0))
        case Arithmetic():
            return value
        case Unknown(how, _):
            return Absent("computed", f"it is {how} and not stored in memory")
        case _:
            assert_never(value)


def wrapped(number: int, address_size: int) -> int:
    """``number`` modulo the word, left alone where it fits a signed or an unsigned word."""
    bits = 8 * address_size
    if -(1 << (bits - 1)) <= number < 1 << bits:
        return number
    return number % (1 << bits)


def _distance(number: int, address_size: int) -> ByteOffset:
    # An offset from a register: negative ones are spelled as huge unsigned ones by some.
    bits = 8 * address_size
    number %= 1 << bits
    return ByteOffset(number - (1 << bits) if number >> (bits - 1) else number)
