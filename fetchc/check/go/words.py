"""``(string)($arg2)``, ``(error)(%bx)``: what takes several words of Go's convention.

Without debug information nothing says what a function takes and returns. A person who knows the
source names the type; the convention says where its words are.
Source: Go, src/cmd/compile/abi-internal.md.
"""

from __future__ import annotations

from fetchc.abi import argument_place, convention_for
from fetchc.check.typed import Held, Special
from fetchc.diag.diagnostic import reject
from fetchc.program.entities import InMemory, Piece, Pieces
from fetchc.program.types import InterfaceType, SliceType, StringType
from fetchc.quantities import ByteOffset, ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.quantities import TypeId
    from fetchc.source import Span
    from fetchc.target.machines import Convention

__all__ = ["from_word"]

_ARGUMENT = "$arg"


def from_word(checker: Checker, wanted: TypeId, base: Typed, span: Span) -> Typed | None:
    """The string, slice or interface whose first word is ``base``; None if that is no such word.

    Raises CompileError FC0404 where its words would be in registers and in memory: Go passes each
    of these whole.
    """
    site = checker.site
    made = checker.resolved(wanted)
    if not isinstance(made, StringType | SliceType | InterfaceType) or site.function is None:
        return None
    if site.static or not (site.entry or site.leaving):
        return None

    convention = convention_for(site.program, site.function, span)
    first = _number(checker, base, convention)
    if first is None:
        return None
    word = checker.program.word_bytes
    count = made.size // word
    places = [argument_place(convention, first + index) for index in range(count)]
    held = sum(not isinstance(place, InMemory) for place in places)
    if held == 0:
        return Held(places[0], checker.spell(wanted), wanted, span)
    if held < count:
        raise reject(
            "FC0404",
            f"`{checker.spell(wanted)}` takes {count} words, {held} of them would be in registers",
            span,
            "in two places",
            notes=("Go passes it in registers or on the stack, as a whole",),
            help=f"its first word there is `$arg{first + held}`" if site.entry else None,
        )
    pieces = [
        Piece(ByteOffset(index * word), ByteSize(word), place) for index, place in enumerate(places)
    ]
    return Held(Pieces(tuple(pieces)), checker.spell(wanted), wanted, span)


def _number(checker: Checker, base: Typed, convention: Convention) -> int | None:
    # Of the word, counted from 1: `$arg2`, or `%bx`, which at a return holds the second result.
    if isinstance(base, Held) and base.name.startswith(_ARGUMENT):
        return int(base.name.removeprefix(_ARGUMENT))
    if not isinstance(base, Special) or base.kind != "register":
        return None
    known = checker.site.architecture.registers
    names = [known[register] for register in convention.integer_registers]
    return names.index(base.text) + 1 if base.text in names else None
