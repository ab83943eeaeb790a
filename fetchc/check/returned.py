"""Whether a function returns what its type tells, where the type tells.

Compilers drop results that no caller takes, and of a structure the parts that none takes: gcc where
it copies a function (ipa-sra.cc: ``.isra``, ipa-split.cc: ``.part``), LLVM in any function of which
it sees all calls (DeadArgumentElimination.cpp), which it marks from LLVM 17 on (DW_CC_nocall). What
a caller takes is still returned, and so is what a function returns whose address is stored.
"""

from __future__ import annotations

from fetchc.check.unconfirmed import follows_convention
from fetchc.diag.diagnostic import reject
from fetchc.program.entities import InMemory, InRegister, Pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Site
    from fetchc.diag.diagnostic import CompileError
    from fetchc.program.entities import Function, Place
    from fetchc.quantities import Address, DwarfRegister
    from fetchc.source import Span

__all__ = ["foreign", "must_be_returned", "must_be_unchanged"]

_COPIES = (".isra.", ".part.")
_FAR = 64  # bytes of code behind a call, in which its result is taken
_LONGEST = 0x10000  # bytes of a function's own code that are looked at


def must_be_returned(
    site: Site,
    function: Function,
    place: Place,
    registers: tuple[DwarfRegister, ...],
    span: Span,
) -> None:
    """Refuse (FC0401) a result at ``place`` that may not be there.

    ``registers`` are those of the convention's whole numbers: of a long result the first of them
    has the address.
    """
    if not follows_convention(site, function):
        raise foreign(function.name, span)
    copied = any(mark in function.symbol for mark in _COPIES)
    unseen = "clang" in function.producer and not function.external
    if not (function.changed or copied or unseen):
        return
    uses = site.program.uses(function)
    if uses.stored or not (uses.optimised or function.changed or copied):
        return
    known = site.architecture.registers
    wanted = {known[each] for each in _registers(place, registers) if each in known}
    if any(wanted <= _taken(site, function, address) for address in uses.calls):
        return
    note = None
    if function.changed:
        note = "the debug information says so (DW_CC_nocall), and not what was changed"
    raise _gone(function, note or "no call is seen whose result is used as a whole", span)


def must_be_unchanged(function: Function, span: Span) -> None:
    """Refuse (FC0401) any result of a function that the debug information says was changed."""
    if function.changed:
        note = "the debug information says so (DW_CC_nocall), and not what was changed"
        raise _gone(function, note, span)


def foreign(name: str, span: Span) -> CompileError:
    """The refusal of what only the convention would tell of, which is another one."""
    return reject(
        "FC0401",
        f"`{name}` is called by a convention of its own",
        span,
        "where it is is not known",
        help="fetch the register that you know it to be in: `%ax`",
    )


def _gone(function: Function, note: str, span: Span) -> CompileError:
    return reject(
        "FC0401",
        f"the compiler changed how `{function.name}` is called: it may return nothing"
        if function.changed or any(mark in function.symbol for mark in _COPIES)
        else f"`{function.name}` is called in its own file alone: it may return nothing",
        span,
        "it may not be there",
        notes=(note,),
        help="probe the caller, or a return of what is exported",
    )


def _registers(place: Place, registers: tuple[DwarfRegister, ...]) -> frozenset[DwarfRegister]:
    match place:
        case InRegister(register=register):
            return frozenset({register})
        case Pieces(pieces=pieces):
            return frozenset().union(*[_registers(each.place, registers) for each in pieces])
        case InMemory():
            return frozenset(registers[:1])
        case _:
            return frozenset()


def _taken(site: Site, function: Function, address: Address) -> frozenset[str]:
    # What the code behind a call reads of what the function writes.
    from fetchc.code.disassembly import taken, written

    program = site.program
    behind = taken(program.code(address, _FAR), address, program.architecture)
    if not behind:
        return behind
    own = program.code(function.address, min(function.size or 0, _LONGEST))
    return behind & written(own, function.address, program.architecture)
