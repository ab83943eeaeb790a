"""What the debug information says of a parameter at the entry, and whether to believe it."""

from __future__ import annotations

from fetchc.diag.errors import reject
from fetchc.diag.model import Diagnostic, Label
from fetchc.program.places import (
    Absent,
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
    Place,
    PointerTo,
)
from fetchc.record import assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Site
    from fetchc.diag.errors import CompileError
    from fetchc.program.model import Function, Variable
    from fetchc.source import Span

__all__ = [
    "confirmed",
    "disagreement",
    "evidence",
    "exact",
    "goes_on",
    "is_clone",
    "is_fragment",
    "place_words",
    "same",
    "settled",
]

# Suffixes of functions whose signature GCC or LLVM may have changed.
# Source: GCC, gcc/ipa-*.cc (clone_function_name); LLVM ArgumentPromotion keeps the name.
_CLONES = (".isra.", ".constprop.", ".part.", ".cold", ".llvm.")


def is_clone(function: Function) -> bool:
    """Whether the symbol says that the compiler changed a copy of the function."""
    return any(mark in function.symbol for mark in _CLONES)


def goes_on(function: Function) -> bool:
    """Whether it is what a coroutine goes on with, and not what its callers call.

    Source: LLVM, lib/Transforms/Coroutines/CoroSplit.cpp; GCC, cp/coroutines.cc.
    """
    return function.symbol.endswith((".resume", ".destroy", ".cleanup", ".actor"))


def is_fragment(function: Function) -> bool:
    """Whether it is only the unlikely part of a function, which is jumped to and never called."""
    return ".cold" in function.symbol


def evidence(site: Site, function: Function, variable: Variable) -> Place | None:
    """What the debug information says at the first instruction, if it can be believed there.

    Believed: registers and register pieces, constants and addresses of the file, and the caller's
    part of the frame (at or above the CFA). Not believed: slots of the callee's own frame,
    anything measured from a frame base register, nothing.
    """
    place = site.program.place(variable, function, function.address)
    match place:
        case InRegister() | Constant() | PointerTo(target=AtAddress() | Constant()):
            return place
        case Pieces(pieces=pieces):
            found = [p for p in pieces if not isinstance(p.place, Absent)]
            if found and all(isinstance(p.place, InRegister) for p in found):
                return place
            return None
        case InMemory(register=register, offset=offset):
            if register != site.architecture.stack_pointer:
                return None
            machine = site.architecture
            above = offset >= machine.entry_stack_bytes and not machine.callee_slots
            return place if above and site.program.frame_base_is_cfa(function) else None
        case _:
            return None


def same(found: Place, by_convention: Place) -> bool:
    """Whether the evidence agrees: it may know less (a dead piece), never something else.

    Compilers describe padding as pieces of its own and repeat pieces (Go 1.16 to 1.21), so
    sizes and offsets of pieces prove nothing, their order does.
    """
    expected = iter(_flat(by_convention))
    return all(place in expected for place in _flat(found))


def exact(found: Place, by_convention: Place) -> bool:
    """Whether every known piece starts where the convention has the same register.

    LLVM takes dead members out of a structure that a function of its own file is passed: what
    is left moves to the first registers.
    """
    if not isinstance(found, Pieces):
        return True
    expected: dict[int, Place] = {0: by_convention}
    if isinstance(by_convention, Pieces):
        expected = {piece.offset: piece.place for piece in by_convention.pieces}
    known = [piece for piece in found.pieces if not isinstance(piece.place, Absent)]
    return all(expected.get(piece.offset) == piece.place for piece in known)


def confirmed(found: Place, by_convention: Place) -> Place:
    """The registers of the convention that the evidence names, too; no others.

    One that it does not name may be one that is not passed any more.
    """
    if not isinstance(found, Pieces) or not isinstance(by_convention, Pieces):
        return by_convention
    known = {piece.offset: piece.place for piece in found.pieces}
    gone = Absent("FC0401", "the function is local to its file and may no longer take it")
    return Pieces(
        tuple(
            piece
            if known.get(piece.offset) == piece.place
            else Piece(piece.offset, piece.size, gone)
            for piece in by_convention.pieces
        )
    )


def _flat(place: Place) -> list[Place]:
    match place:
        case Pieces(pieces=pieces):
            flat = [_flat(p.place)[0] for p in pieces if not isinstance(p.place, Absent)]
            return list(dict.fromkeys(flat))
        case Indirect(pointer=InRegister(register=register), offset=offset):
            return [InMemory(register, offset)]
        case _:
            return [place]


def settled(variable: Variable, note: str, span: Span) -> Diagnostic:
    """The warning that one source was taken against, or without, the other."""
    return Diagnostic(
        "FC0602",
        f"the place of `{variable.name}` comes from one source only",
        Label(span, "not confirmed by the other"),
        notes=(note,),
    )


def disagreement(
    site: Site,
    function: Function,
    variable: Variable,
    by_convention: Place,
    found: Place | None,
    span: Span,
    why: str | None = None,
) -> CompileError:
    """The refusal of a parameter whose place nobody knows for sure."""
    notes = [f"by the calling convention: {place_words(site, by_convention)}"]
    if found is not None:
        notes.append(f"by the debug information: {place_words(site, found)}")
    if why is not None:
        notes.append(why)
    return reject(
        "FC0407",
        f"where `{variable.name}` is at the entry of `{function.name}` is not certain",
        span,
        "two sources disagree" if found is not None else "one source, and it may be wrong",
        notes=tuple(notes),
        help="fetch the one you trust by its register or slot: `$arg1`, `$stack1`",
    )


def place_words(site: Site, place: Place) -> str:
    """A place for people: ``in %di``, ``in memory at +8(%sp)``."""
    shown = site.architecture.shown
    match place:
        case InRegister(register=register):
            return f"in {shown(register)}"
        case InMemory(register=register, offset=offset):
            return f"in memory at {offset:+d}({shown(register)})"
        case Pieces(pieces=pieces):
            return ", ".join(place_words(site, piece.place) for piece in pieces) or "nowhere"
        case Absent():
            return "nowhere"
        case AtAddress(address=address):
            return f"in memory at {address:#x}"
        case AtSymbol(symbol=symbol):
            return f"in memory at {symbol}"
        case Named(name=name):
            return f"in {name}"
        case Constant(value=value):
            return f"the constant {value}"
        case Indirect(pointer=pointer):
            return f"where the pointer {place_words(site, pointer)} leads"
        case FrameRelative(offset=offset):
            return f"in memory at {offset:+d} from the frame"
        case PointerTo(target=target, offset=offset):
            inside = f" + {offset}" if offset else ""
            return f"a pointer to what is {place_words(site, target)}{inside}"
        case OnEntry(register=register):
            return f"what {shown(register)} held on entry"
        case _:
            assert_never(place)
