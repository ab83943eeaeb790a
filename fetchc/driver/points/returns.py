"""Where Go functions return: a probe on each return instruction instead of a return probe.

The kernel's return probe puts a foreign return address on the stack. Go's runtime copies and
walks stacks, does not know the address, and ends the program; seen live with every version
from 1.15 to 1.27. At a return instruction the results are where the convention puts them.
"""

from __future__ import annotations

from fetchc.check.site import Site
from fetchc.diag.errors import CompileError, reject
from fetchc.diag.model import Diagnostic
from fetchc.driver.points.found import Found
from fetchc.lang import language
from fetchc.target.load import architecture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.code.instructions import Exits
    from fetchc.lang.base import Language
    from fetchc.program.model import Function
    from fetchc.program.protocol import Program
    from fetchc.units import Address

__all__ = [
    "must_not_be_returned_from",
    "passed_by",
    "refusal_of_returns",
    "return_addresses",
    "return_sites",
    "unsafe",
]

NO_EXCEPTIONS = "-fno-exceptions"  # gcc lists its options

_FOREIGN = frozenset({"c", "c++", "rust"})  # compiled by others, and on stacks of the system


def must_not_be_returned_from(program: Program, function: Function) -> bool:
    """Whether a return probe of the function would end the program.

    In a Go program that holds of all code that no other compiler is known to have made:
    assembly, and functions without debug information.
    """
    if not language(function.language).return_probe:
        return True
    return function.language not in _FOREIGN and not language(program.main_language()).return_probe


def refusal_of_returns(program: Program, function: Function) -> str:
    """Why returns of the function cannot be probed in any way; empty where they can."""
    own = language(function.language).return_refusal
    if own or function.language in _FOREIGN:
        return own
    return language(program.main_language()).return_refusal


def unsafe(function: Function, refusal: str) -> Diagnostic:
    """What to know of a return probe that was asked for in spite of the refusal."""
    return Diagnostic(
        "FC0621",
        f"the return probe of `{function.name}` can end the program",
        notes=(refusal,),
        help="take it where no exception leaves the function, and nothing is lost with the process",
    )


def passed_by(program: Program, function: Function, rules: Language) -> tuple[Diagnostic, ...]:
    """What to know of a return probe where functions are left by unwinding the stack, too.

    The unwinder meets the address that the kernel put in place of the return address, finds no
    code there, and ends the process (seen live: g++ 12, `terminate called`; rustc).
    """
    if not function.language and function.symbol.startswith("_Z"):
        rules = language("c++")
    if rules.unwound is None or NO_EXCEPTIONS in function.producer:
        return ()
    what, symbol = rules.unwound
    if not program.has_symbol(symbol):
        return ()
    return (
        Diagnostic(
            "FC0621",
            f"{what} that leaves `{function.name}` would end the program",
            notes=("who unwinds the stack does not get past the kernel's return probe",),
            help="take it where none does; entries, and lines behind the call, take no harm",
        ),
    )


def return_addresses(
    program: Program, function: Function
) -> tuple[tuple[Address, ...], tuple[Diagnostic, ...]]:
    """Addresses of all return instructions, and what should be said of other ways out.

    Raises CompileError FC0409 where there are none, or where they cannot be found for certain.
    """
    from fetchc.code.instructions import exits

    refusal_of_all = refusal_of_returns(program, function)
    if refusal_of_all:
        raise reject(
            "FC0409",
            f"the returns of `{function.name}` cannot be probed: {refusal_of_all}",
            help="probe its entry: leave out `--return`; `--unsafe-return` takes the risk",
        )
    if function.size is None:
        raise _unreadable(function, "where its code ends is not known")
    code = program.code(function.address, function.size)
    try:
        found = exits(code, function.address, program.architecture)
    except CompileError as refusal:
        if refusal.diagnostics[0].code != "FC0206":
            raise
        raise _unreadable(function, refusal.diagnostics[0].message) from refusal
    leaving = _targets(program, found)
    if not found.returns:
        raise _no_return(function, leaving)
    return found.returns, _unseen(program, function, found, leaving)


def return_sites(
    program: Program, rules: Language, function: Function, warnings: tuple[Diagnostic, ...]
) -> Found:
    """The sites of all return instructions, as :func:`return_addresses` finds them."""
    machine = architecture(program.architecture)
    addresses, unseen = return_addresses(program, function)
    sites = [
        Site(program, machine, rules, function, address, False, False, leaving=True)
        for address in addresses
    ]
    return Found(sites[0], "return-site", (*warnings, *unseen), tuple(sites[1:]))


def _targets(program: Program, found: Exits) -> list[str]:
    # Names of what the function jumps to instead of returning.
    names: list[str] = []
    for target in dict.fromkeys(found.jumps):
        if target is None:
            names.append("a computed address")
            continue
        function = program.function_at(target)
        names.append(f"{target:#x}" if function is None else f"`{function.symbol}`")
    return names


def _unseen(
    program: Program, function: Function, found: Exits, leaving: list[str]
) -> tuple[Diagnostic, ...]:
    notes: list[str] = []
    if leaving:
        notes.append(f"it ends by a jump to {_listed(leaving)}, which returns in its place")
    panics = {one.address for one in program.functions_named("runtime.gopanic")}
    if panics & found.calls:
        notes.append("it calls `panic`: where nothing recovers in it, it ends without returning")
    if not notes:
        return ()
    what = f"some calls of `{function.name}` pass none of its return instructions"
    return (Diagnostic("FC0609", what, notes=tuple(notes)),)


def _no_return(function: Function, leaving: list[str]) -> CompileError:
    if leaving:
        return reject(
            "FC0409",
            f"`{function.name}` has no return instruction",
            notes=(f"it ends by a jump to {_listed(leaving)}, which returns in its place",),
            help=f"probe the return of {leaving[0]}"
            if leaving[0].startswith("`")
            else "probe its entry: leave out `--return`",
        )
    return reject(
        "FC0409",
        f"`{function.name}` has no return instruction",
        notes=("each way out of it is a panic or an exit, or it never ends",),
        help="probe its entry: leave out `--return`",
    )


def _unreadable(function: Function, why: str) -> CompileError:
    return reject(
        "FC0409",
        f"the return instructions of `{function.name}` cannot be found for certain",
        notes=(why, "a return probe of the kernel would crash the Go program"),
        help="probe its entry: leave out `--return`",
    )


def _listed(names: Iterable[str]) -> str:
    shown = list(names)
    more = f" and {len(shown) - 4} more" if len(shown) > 4 else ""
    return ", ".join(shown[:4]) + more
