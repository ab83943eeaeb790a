"""Places in words, and what is said of a parameter whose place two sources tell differently."""

from __future__ import annotations

from fetchc.diag.diagnostic import Diagnostic, Label, reject
from fetchc.program.entities import (
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
    Pieces,
    Place,
    PointerTo,
)
from fetchc.record import assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Site
    from fetchc.diag.diagnostic import CompileError
    from fetchc.program.entities import Function, Variable
    from fetchc.source import Span

__all__ = ["disagreement", "place_words", "settled"]


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
        help="fetch the one you trust by its register or slot: "
        + (_written(site, by_convention, found) or "`$arg1`, `$stack1`"),
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
    return ", ".join(words)


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
