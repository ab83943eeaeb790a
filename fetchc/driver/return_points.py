"""Where functions return: a probe on each return instruction instead of a return probe.

The kernel's return probe puts a foreign return address on the stack. Go's runtime copies and
walks stacks, does not know the address, and ends the program; seen live with every version
from 1.15 to 1.27. The unwinder of C++ and Rust finds no code at the address, and ends the program
as well (g++ 12: `terminate called`; rustc). At a return instruction the results are where the
convention puts them.
"""

from __future__ import annotations

from fetchc.check.locations import is_fragment
from fetchc.check.probe_site import ProbePoint, Site, must_not_be_returned_from
from fetchc.diag.diagnostic import CompileError, Diagnostic, reject
from fetchc.lang import language, language_by_symbol
from fetchc.target.machines import architecture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.code.disassembly import Exits
    from fetchc.lang.base import Language
    from fetchc.program.entities import Function
    from fetchc.program.protocol import Program
    from fetchc.quantities import Address

__all__ = [
    "PASSED",
    "may_be_unwound",
    "must_not_be_returned_from",
    "refusal_of_returns",
    "return_addresses",
    "return_sites",
    "unsafe",
]

# What a file defines or uses whose code throws or catches (Itanium C++ ABI: Exception Handling, 1.6
# and 2.4), and C with -fexceptions that cleans up in its own programs (libgcc's unwind-c.c).
_THROWING = ("__gxx_personality_v0", "__cxa_throw", "__cxa_rethrow", "rust_eh_personality")
# What the C library runs of others within its own frames, and compiles for exceptions of theirs
# (-fexceptions in the Makefiles of glibc's stdlib, misc, io, dirent, nptl and elf).
_CALLS_BACK = frozenset((
    "qsort", "qsort_r", "__qsort_r", "msort_with_tmp", "msort_with_tmp.part.0", "bsearch",
    "__bsearch", "lfind", "lsearch", "tsearch", "tfind", "tdelete", "twalk", "twalk_r", "tdestroy",
    "ftw", "ftw64", "nftw", "nftw64", "scandir", "scandir64", "scandirat", "scandirat64", "glob",
    "glob64", "pthread_once", "__pthread_once", "call_once", "dl_iterate_phdr",
))  # fmt: skip
PASSED = "an exception or panic that unwinds through a return probe of the kernel ends the program"
_MOST_CODE = 1 << 12  # bytes of code that are looked at for what they call: some 20 ms
_MOST_FUNCTIONS = 8  # to look one up can take as long


def refusal_of_returns(program: Program, function: Function) -> str:
    """Why returns of the function cannot be probed in any way; empty where they can."""
    own = language(function.language)
    if own.return_refusal or own.system_stack:
        return own.return_refusal
    return language(program.main_language()).return_refusal


def unsafe(function: Function, refusal: str) -> Diagnostic:
    """What to know of a return probe that was asked for in spite of the refusal."""
    return Diagnostic(
        "FC0621",
        f"the return probe of `{function.name}` can end the program",
        notes=(refusal,),
        help="use it only if no exception leaves the function, or if the process may be lost",
        reason="program may end",
    )


def may_be_unwound(program: Program, function: Function) -> bool:
    """Whether an exception or a panic may pass through the function's frame.

    In a program that throws, and in C++ and Rust: unless all the code that the function reaches by
    direct calls and jumps is in the file, and has no other call. In C elsewhere: where the C
    library calls a function that it gets.
    """
    rules = language_by_symbol(function)
    if not rules.unwound or function.compiler.without_exceptions:
        if function.symbol.partition("@")[0] in _CALLS_BACK:
            return True
        if not any(program.elf.has_symbol(symbol) for symbol in _THROWING):
            return False
    return _reaches_unknown_code(program, function)


def _reaches_unknown_code(program: Program, function: Function) -> bool:
    reached, waiting, left = {function.address}, [function], _MOST_CODE
    while waiting:
        one = waiting.pop()
        try:
            _, targets, calls = _ways_out(program, one)
        except CompileError:
            return True
        left -= one.size or 0
        further = {*targets, *calls} - reached
        if None in further or left <= 0 or len(reached) + len(further) > _MOST_FUNCTIONS:
            return True
        for target in further:
            assert target is not None
            called = program.function_at(target)
            if called is None or called.address != target:
                return True
            reached.add(called.address)
            waiting.append(called)
    return False


def return_addresses(
    program: Program, function: Function, by_breakpoints: bool = False
) -> tuple[tuple[Address, ...], tuple[Diagnostic, ...]]:
    """Addresses of all return instructions, and what should be said of other ways out.

    ``by_breakpoints``: no probe of the kernel is set. Raises CompileError FC0409 where there are
    none, or where they cannot be found for certain.
    """
    refusal_of_all = "" if by_breakpoints else refusal_of_returns(program, function)
    if refusal_of_all:
        raise reject(
            "FC0409",
            f"the returns of `{function.name}` cannot be probed: {refusal_of_all}",
            help="probe its entry: leave out `--return`; `--unsafe-return` takes the risk",
        )
    returns, jumps, calls = _ways_out(program, function)
    leaving = _targets(program, jumps)
    if not returns:
        raise _no_return(program, function, leaving)
    return returns, _unseen(program, function, calls, leaving)


_Ways = tuple[tuple["Address", ...], tuple["Address | None", ...], "frozenset[Address | None]"]


def _ways_out(program: Program, function: Function) -> _Ways:
    # Return instructions, targets of jumps out of the function, and those of calls; those of the
    # unlikely part that gcc splits off (`f.cold`), too. Raises CompileError FC0409 where that is
    # not certain.
    own = not must_not_be_returned_from(program, function)
    returns: list[Address] = []
    exits: list[Address | None] = []
    calls: set[Address | None] = set()
    parts, waiting = {function.address: function}, [function]
    jumps: list[Address | None] = []
    while waiting:
        found = _exits(program, function, waiting.pop())
        returns += found.returns
        calls |= found.calls
        if found.by_table and own:
            exits.append(None)  # a switch, or a table of functions
        jumps += found.jumps
        for target in found.jumps:
            other = None if target is None else program.function_at(target)
            if own and other is not None and is_fragment(other) and other.address not in parts:
                parts[other.address] = other
                waiting.append(other)
    for target in dict.fromkeys(jumps):
        if target is not None and own:
            if any(0 <= target - one.address < (one.size or 0) for one in parts.values()):
                continue
            other = program.function_at(target)
            if other is not None and other.address != target:
                raise _unreadable(
                    program, function, f"it jumps into the middle of `{other.symbol}`, {target:#x}"
                )
        exits.append(target)
    return tuple(sorted(returns)), tuple(dict.fromkeys(exits)), frozenset(calls)


def _exits(program: Program, function: Function, part: Function) -> Exits:
    from fetchc.code.disassembly import exits

    if part.size is None:
        raise _unreadable(program, function, "where its code ends is not known")
    code = program.code(part.address, part.size)
    try:
        return exits(code, part.address, program.architecture)
    except CompileError as refusal:
        if refusal.reason != "undecodable code":
            raise
        raise _unreadable(program, function, refusal.diagnostics[0].message) from refusal


def return_sites(
    program: Program,
    rules: Language,
    function: Function,
    warnings: tuple[Diagnostic, ...],
    by_breakpoints: bool = False,
) -> ProbePoint:
    """The sites of all return instructions, as :func:`return_addresses` finds them."""
    machine = architecture(program.architecture)
    addresses, unseen = return_addresses(program, function, by_breakpoints)
    sites = [
        Site(program, machine, rules, function, address, False, False, leaving=True)
        for address in addresses
    ]
    return ProbePoint(sites[0], "return-site", (*warnings, *unseen), tuple(sites[1:]))


def _targets(program: Program, jumps: Iterable[Address | None]) -> list[str]:
    # Names of what the function jumps to instead of returning.
    names: list[str] = []
    for target in jumps:
        if target is None:
            names.append("a computed address")
            continue
        function = program.function_at(target)
        names.append(f"{target:#x}" if function is None else f"`{function.symbol}`")
    return names


def _unseen(
    program: Program,
    function: Function,
    calls: frozenset[Address | None],
    leaving: list[str],
) -> tuple[Diagnostic, ...]:
    notes: list[str] = []
    if leaving:
        notes.append(f"it ends by a jump to {_listed(leaving)}, which returns in its place")
    panics = {one.address for one in program.functions_named("runtime.gopanic")}
    if panics & calls:
        notes.append("it calls `panic`: where nothing recovers in it, it ends without returning")
    if not notes:
        return ()
    what = f"some calls of `{function.name}` do not end at its return instructions"
    return (Diagnostic("FC0609", what, notes=tuple(notes), reason="calls not seen"),)


def _no_return(program: Program, function: Function, leaving: list[str]) -> CompileError:
    if leaving:
        notes = [f"it ends by a jump to {_listed(leaving)}, which returns in its place"]
        help = "probe its entry: leave out `--return`"
        if leaving[0].startswith("`"):
            help = f"probe the return of {leaving[0]}"
        if not must_not_be_returned_from(program, function):
            notes.append(PASSED)
            help += "; `--unsafe-return` takes the risk"
        return reject(
            "FC0409",
            f"`{function.name}` has no return instruction",
            notes=tuple(notes),
            help=help,
        )
    return reject(
        "FC0409",
        f"`{function.name}` has no return instruction",
        notes=("it ends only in a panic or an exit, or never",),
        help="probe its entry: leave out `--return`",
    )


def _unreadable(program: Program, function: Function, why: str) -> CompileError:
    of_go = must_not_be_returned_from(program, function)
    harm = "a return probe of the kernel would crash the Go program" if of_go else PASSED
    return reject(
        "FC0409",
        f"the return instructions of `{function.name}` cannot be found for certain",
        notes=(why, harm),
        help="probe its entry: leave out `--return`"
        + ("" if of_go else "; `--unsafe-return` takes the risk"),
    )


def _listed(names: Iterable[str]) -> str:
    shown = list(names)
    more = f" and {len(shown) - 4} more" if len(shown) > 4 else ""
    return ", ".join(shown[:4]) + more
