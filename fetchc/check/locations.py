"""What the debug information says of a parameter at the entry, and whether to believe it.

At entry the convention decides and the debug information is evidence: unoptimized
C puts parameters into slots that are not stored yet, clang measures stack parameters
from a stack pointer that has not moved yet, Go's compiler describes some parameters
wrongly in every version. ``variable_places`` weighs the two.
"""

from __future__ import annotations

from fetchc.diag.diagnostic import CompileError, Diagnostic, Label, reject
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
    Place,
    PointerTo,
    ThreadLocal,
)
from fetchc.quantities import DwarfRegister
from fetchc.record import assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.probe_site import Site
    from fetchc.program.entities import Function, Variable
    from fetchc.quantities import Address
    from fetchc.source import Span

__all__ = [
    "cloned_from",
    "code_parts",
    "confirmed_pieces",
    "credible_entry_place",
    "describe_place",
    "described_entry_place",
    "has_same_offsets",
    "is_clone",
    "is_consistent",
    "is_coroutine_resume",
    "is_fragment",
    "is_unfetchable",
    "is_untracked",
    "one_source_warning",
    "optimized_by_gcc",
    "refuse_contradiction",
    "unoptimized_by_gcc",
    "without_parts",
]

# ------------------------------------------------------------------------------
# What the debug information says of a parameter at the entry, and whether to believe it.

# Suffixes of functions whose signature GCC or LLVM may have changed.
# Source: GCC, gcc/ipa-*.cc (clone_function_name); LLVM ArgumentPromotion keeps the name.
_COLD = ".cold"
_CLONES = (".isra.", ".constprop.", ".part.", _COLD, ".llvm.")


def is_clone(function: Function) -> bool:
    """Whether the symbol says that the compiler changed a copy of the function."""
    return any(mark in function.symbol for mark in _CLONES)


def cloned_from(symbol: str) -> str:
    """The symbol of the function that a clone or a part is of; that of any other is its own."""
    marks = [at for mark in _CLONES if (at := symbol.find(mark)) > 0]
    return symbol[: min(marks)] if marks else symbol


def without_parts(symbols: list[str]) -> list[str]:
    """The symbols without those of unlikely parts (`f.cold`) whose function is among them."""
    known = set(symbols)
    parts = {one for one in symbols if _COLD in one and one[: one.find(_COLD)] in known}
    return [one for one in symbols if one not in parts] if parts else symbols


def code_parts(site: Site, function: Function) -> list[tuple[Address, bytes]]:
    """The code of the function and of its unlikely part, each with its address."""
    program = site.program
    parts = [function, *program.functions_named(f"{function.symbol}{_COLD}")]
    return [(one.address, program.code(one.address, one.size or 0)) for one in parts]


def is_coroutine_resume(function: Function) -> bool:
    """Whether it is the code that resumes a coroutine, and not the function that callers call.

    Source: LLVM, lib/Transforms/Coroutines/CoroSplit.cpp; GCC, cp/coroutines.cc.
    """
    return function.symbol.endswith((".resume", ".destroy", ".cleanup", ".actor"))


def is_fragment(function: Function) -> bool:
    """Whether it is only the unlikely part of a function, which is jumped to and never called."""
    return _COLD in function.symbol


def described_entry_place(site: Site, function: Function, variable: Variable) -> Place | None:
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
            return place if above and site.program.evidence.frame_base_is_cfa(function) else None
        case _:
            return None


def credible_entry_place(site: Site, function: Function, variable: Variable) -> Place | None:
    """The :func:`described_entry_place` of a parameter, if the compiler tracks its location.

    Of one that it does not track, in a clone, which does not follow the convention, the pieces
    whose registers the code reads, and never writes, if the convention has them in that order.
    """
    found = described_entry_place(site, function, variable)
    if not isinstance(found, Pieces) or not is_untracked(site, function, variable):
        return found
    if not is_clone(function):
        return None
    from fetchc.abi import convention_for

    order = list(convention_for(site.program, function).integer_registers)
    placed = [one.place.register for one in found.pieces if isinstance(one.place, InRegister)]
    start = order.index(placed[0]) if placed[0] in order else 0
    if placed != order[start : start + len(placed)]:
        return None
    untouched = _registers_only_read(site, function)
    pieces = tuple([piece for piece in found.pieces if piece.place in untouched])
    return Pieces(pieces) if pieces else None


def _registers_only_read(site: Site, function: Function) -> frozenset[Place]:
    # They have at the entry what they have wherever the function uses them.
    from fetchc.code.disassembly import only_read
    from fetchc.target.machines import call_rules

    machine, program = site.architecture, site.program
    if call_rules(machine.name) is None:
        return frozenset()
    code = program.code(function.address, function.size or 0)
    try:
        names = only_read(code, function.address, machine.name)
    except CompileError:
        return frozenset()  # without a disassembler
    return frozenset(
        InRegister(DwarfRegister(number))
        for number, name in machine.registers.items()
        if name in names
    )


def is_untracked(site: Site, function: Function, variable: Variable) -> bool:
    """Whether it is a number in two registers, and gcc does not say when they have it.

    gcc 12 describes those that it chose for the two halves, which the first instructions fill
    (often the other way round) and later ones overwrite, as if they had them all over the function.
    """
    if not optimized_by_gcc(function):
        return False
    place = site.program.place(variable, function, site.address)
    if not isinstance(place, Pieces) or len(place.pieces) < 2:
        return False
    if not all(isinstance(piece.place, InRegister) for piece in place.pieces):
        return False
    end = function.address + (function.size or 0)
    extents = site.program.extents(variable, function)
    return any(one.start <= function.address and end <= one.end for one in extents)


def optimized_by_gcc(function: Function) -> bool:
    """Whether gcc compiled the code, with optimization."""
    return function.compiler.is_gcc and function.compiler.optimized is True


def unoptimized_by_gcc(function: Function) -> bool:
    """Whether gcc compiled the code with ``-O0``."""
    return function.compiler.is_gcc and function.compiler.optimized is False


def is_unfetchable(site: Site, place: Place) -> bool:
    """Whether all of a place is in registers that no probe can read."""
    if isinstance(place, Pieces):
        return all(is_unfetchable(site, piece.place) for piece in place.pieces)
    return isinstance(place, InRegister) and place.register in site.architecture.unfetchable


def is_consistent(found: Place, by_convention: Place) -> bool:
    """Whether the evidence agrees: it may know less (a dead piece), never something else.

    Compilers describe padding as pieces of its own and repeat pieces (Go 1.16 to 1.21), so
    sizes and offsets of pieces prove nothing, their order does.
    """
    expected = iter(_flat(by_convention))
    return all(place in expected for place in _flat(found))


def has_same_offsets(found: Place, by_convention: Place) -> bool:
    """Whether every piece with a place starts where the convention has the same register.

    LLVM takes dead members out of a structure that a function of its own file is passed: what
    is left moves to the first registers.
    """
    if not isinstance(found, Pieces):
        return True
    expected: dict[int, Place] = {0: by_convention}
    if isinstance(by_convention, Pieces):
        expected = _by_offset(by_convention)
    placed = [piece for piece in found.pieces if not isinstance(piece.place, Absent)]
    return all(expected.get(piece.offset) == piece.place for piece in placed)


def confirmed_pieces(found: Place, by_convention: Place) -> Place:
    """The registers of the convention that the evidence names, too; no others.

    One that it does not name may be one that is not passed any more.
    """
    if not isinstance(found, Pieces | InRegister) or not isinstance(by_convention, Pieces):
        return by_convention
    # clang has an `__int128` in one register where the code uses that half only.
    named = {0: found} if isinstance(found, InRegister) else _by_offset(found)
    unconfirmed = Absent(
        "no location", "the function is local to its file and may no longer take it"
    )
    return Pieces(
        tuple(
            piece
            if named.get(piece.offset) == piece.place
            else Piece(piece.offset, piece.size, unconfirmed)
            for piece in by_convention.pieces
        )
    )


def _by_offset(whole: Pieces) -> dict[int, Place]:
    return {piece.offset: piece.place for piece in whole.pieces}


def _flat(place: Place) -> list[Place]:
    match place:
        case Pieces(pieces=pieces):
            flat = [_flat(p.place)[0] for p in pieces if not isinstance(p.place, Absent)]
            return list(dict.fromkeys(flat))
        case Indirect(pointer=InRegister(register=register), offset=offset):
            return [InMemory(register, offset)]
        case _:
            return [place]


# ------------------------------------------------------------------------------
# Places in words, and what is said of a parameter whose place two sources tell differently.


def one_source_warning(variable: Variable, note: str, span: Span) -> Diagnostic:
    """The warning that one source was taken against, or without, the other."""
    return Diagnostic(
        "FC0602",
        f"the place of `{variable.name}` comes from one source only",
        Label(span, "not confirmed by the other"),
        notes=(note,),
    )


def refuse_contradiction(
    site: Site,
    function: Function,
    variable: Variable,
    by_convention: Place,
    found: Place | None,
    span: Span,
    why: str | None = None,
) -> CompileError:
    """The refusal of a parameter whose place is not certain."""
    notes = [f"by the calling convention: {describe_place(site, by_convention)}"]
    label = "one source, and it may be wrong"
    if found is not None:
        agree = found == by_convention
        label = "two sources agree, and both may be wrong" if agree else "two sources disagree"
        notes.append(f"by the debug information: {describe_place(site, found)}")
    if why is not None:
        notes.append(why)
    return reject(
        "FC0407",
        f"where `{variable.name}` is at the entry of `{function.name}` is not certain",
        span,
        label,
        notes=tuple(notes),
        help="fetch the one you trust by its register or slot: "
        + (_written(site, by_convention, found) or "`$arg1`, `$stack1`"),
        reason="contradicted",
    )


def _written(site: Site, *places: Place | None) -> str:
    # How an expression names them: `%cx`, `$stack3`; empty where it has no word for one.
    machine, word = site.architecture, site.program.word_bytes
    words = []
    for place in places:
        if isinstance(place, InRegister):
            shown = machine.shown(place.register)
            if shown.removeprefix("%") in machine.named:
                words.append(f"`{shown}`")
        elif isinstance(place, InMemory) and place.register == machine.stack_pointer:
            slot, odd = divmod(place.offset, word)
            if slot >= 0 and not odd:
                words.append(f"`$stack{slot}`")
    return ", ".join(dict.fromkeys(words))


def describe_place(site: Site, place: Place) -> str:
    """A place for people: ``in %di``, ``in memory at +8(%sp)``."""
    shown = site.architecture.shown
    match place:
        case InRegister(register=register):
            return f"in {shown(register)}"
        case InMemory(register=register, offset=offset):
            return f"in memory at {offset:+d}({shown(register)})"
        case Pieces(pieces=pieces):
            return ", ".join(describe_place(site, piece.place) for piece in pieces) or "nowhere"
        case Absent():
            return "nowhere"
        case AtAddress(address=address):
            return f"in memory at {address:#x}"
        case ThreadLocal(offset=offset):
            return f"in memory at {offset:+d} from the thread pointer"
        case AtSymbol(symbol=symbol):
            return f"in memory at {symbol}"
        case Named(name=name):
            return f"in {name}"
        case Constant(value=value):
            return f"the constant {value}"
        case Indirect(pointer=pointer):
            return f"where the pointer {describe_place(site, pointer)} leads"
        case FrameRelative(offset=offset):
            return f"in memory at {offset:+d} from the frame"
        case PointerTo(target=target, offset=offset):
            inside = f" + {offset}" if offset else ""
            return f"a pointer to what is {describe_place(site, target)}{inside}"
        case Arithmetic(operation=operation):
            return f"nowhere, computed by DW_OP_{operation}"
        case OnEntry(register=register):
            return f"what {shown(register)} held on entry"
        case _:
            assert_never(place)
