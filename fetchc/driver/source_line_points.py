"""Probe points by source line: every place where the line's code begins."""

from __future__ import annotations

from bisect import bisect_left

from fetchc.check.locations import is_fragment, optimized_by_gcc
from fetchc.check.probe_site import ProbePoint, Site
from fetchc.diag.diagnostic import CompileError, Diagnostic, reject
from fetchc.driver.function_lookup import (
    behind_stack_check,
    find_function,
    function_at_point,
    has_name,
    is_only_inlined,
)
from fetchc.ir.fetch import Bits, type_text
from fetchc.lang import language, language_at
from fetchc.quantities import Address
from fetchc.target.machines import architecture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fetchc.driver.probe_output import Named
    from fetchc.ir.fetch import Fetch
    from fetchc.program.entities import Function
    from fetchc.program.protocol import CodeMap, Program
    from fetchc.source import Span
    from fetchc.syntax.tree import Point

    Places = tuple[tuple[Address, ...], str]

__all__ = [
    "apart",
    "at_address",
    "body_of",
    "code_map",
    "inlined",
    "inlined_sites",
    "line_sites",
    "of_file",
    "of_function",
    "part_sites",
    "require_alike",
    "several",
    "sites_at",
]

_NEAR = 3  # lines on either side that a refusal names
_SHOWN = 8  # files


def code_map(program: Program, span: Span | None) -> CodeMap:
    """Lines and inlined calls of the program; FC0206 where there is nothing of the kind."""
    found = program.code_map()
    if found is None:
        notes, help = program.debug_info_advice()
        raise reject(
            "FC0206",
            f"the debug information does not describe the source lines of `{program.path}`",
            span,
            "cannot be found",
            notes=notes,
            help=help,
        )
    return found


def of_file(program: Program, point: Point) -> Places:
    """Addresses of ``main.c:17``, and what the place is called."""
    assert point.file is not None
    assert point.line is not None
    files = code_map(program, point.span).lines(point.file)
    if not files:
        raise reject(
            "FC0206",
            f"no code of `{program.path}` comes from a file `{point.file}`",
            point.span,
            "unknown file",
            help="list functions with their files: `fetchc functions --long`",
        )
    there = {path: lines[point.line] for path, lines in files.items() if point.line in lines}
    if len(there) > 1:
        shown = [f"`{path}`" for path in sorted(there)[:_SHOWN]]
        raise reject(
            "FC0206",
            f"{len(there)} files called `{point.file}` have code in line {point.line}",
            point.span,
            "which one is meant",
            notes=(f"they are {', '.join(shown)}",),
            help="write more of its path before the name",
        )
    if not there:
        lines = {line for listed in files.values() for line in listed}
        raise _no_code(program, point, f"`{point.file}`", lines)
    ((path, addresses),) = there.items()
    return addresses, f"{path.rpartition('/')[2]}:{point.line}"


def of_function(program: Program, function: Function, point: Point) -> Places:
    """Addresses of line 17 of the file, within the function's own code: ``main.run:17``."""
    assert point.line is not None
    found = code_map(program, point.span).lines_of(function)
    if found is None:
        raise reject(
            "FC0206",
            f"the debug information does not describe the source lines of `{function.name}`",
            point.span,
            "cannot be found",
        )
    path, lines = found
    if point.line not in lines:
        raise _no_code(program, point, f"`{function.name}`", lines)
    return lines[point.line], f"{path.rpartition('/')[2]}:{point.line}"


def body_of(program: Program, function: Function, point: Point) -> Address:
    """Where the function's own statements begin, its parameters stored: ``--at body``.

    Raises CompileError FC0206 where it is not known: optimized code of gcc has no such place, since
    what comes second in its line table need not be passed by every call.
    """
    code_map(program, point.span)
    if optimized_by_gcc(function):
        raise reject(
            "FC0206",
            f"the optimized code of `{function.name}` has no end of a prologue",
            point.span,
            "not in gcc's optimized code",
            help="probe the entry, where its parameters are: leave the `body` out",
        )
    address = program.body_address(function)
    if address > function.address and not _always_passed(program, function, address):
        raise reject(
            "FC0206",
            f"some calls of `{function.name}` leave before its prologue ends, by the line table",
            point.span,
            f"at +{address - function.address:#x}, after a branch",
            help="probe the entry, where its parameters are: leave the `body` out",
        )
    if address <= function.address:
        raise reject(
            "FC0206",
            f"the line table does not say where the prologue of `{function.name}` ends",
            point.span,
            "end not known",
            help="probe the entry: leave the `body` out",
        )
    return address


def _always_passed(program: Program, function: Function, body: Address) -> bool:
    # LLVM moves the mark after a branch at times (issue 139549 of llvm-project, from version 20
    # on). Loops before it are fine: they touch the pages of a large frame. So is the stack
    # check of Go: where the stack must grow, the function is entered again.
    from fetchc.code.disassembly import exits

    start = Address(function.address + behind_stack_check(program, function))
    if start > body:
        return False
    code = program.code(start, body - start)
    found = exits(code, start, program.architecture)
    return not found.returns and not [target for target in found.jumps if target != body]


def several(label: str, sites: Sequence[Site]) -> tuple[Diagnostic, ...]:
    """The warning that a line is probed at more than one address."""
    if len(sites) == 1:
        return ()
    listed = ", ".join(f"{site.address:#x}" for site in sites[:_SHOWN])
    more = f" and {len(sites) - _SHOWN} more" if len(sites) > _SHOWN else ""
    warning = Diagnostic(
        "FC0616",
        f"the code of `{label}` begins at {len(sites)} addresses",
        notes=(
            f"they are {listed}{more}",
            "each makes an event of its own: one pass through the line may be several",
        ),
        help="probe one of them: `--at 0x...`",
    )
    return (warning,)


def _no_code(program: Program, point: Point, what: str, lines: Iterable[int]) -> CompileError:
    assert point.line is not None
    numbers = sorted(lines)
    at = bisect_left(numbers, point.line)
    near = numbers[max(0, at - _NEAR) : at + _NEAR]
    notes = [f"lines near it that have: {', '.join(map(str, near))}"] if near else []
    if numbers and point.line < numbers[0]:
        notes.append("lines are counted from the start of the file, not of the function")
    if program.in_memory:
        notes.append("of run-time code only the first line of each function is known")
    following = numbers[at] if at < len(numbers) else None
    spelled = f"{point.file or point.function or ''}:{following}"
    return reject(
        "FC0206",
        f"line {point.line} has no code in {what}",
        point.span,
        "no statement begins there",
        notes=tuple(notes),
        help=None if following is None else f"the next line that has is {following}: `{spelled}`",
    )


def sites_at(program: Program, addresses: Iterable[Address], label: str) -> list[Site]:
    """The sites of statements, each by the function whose code it is.

    The event of ``main.c:17`` is called ``main_c_17``.
    """
    event = "".join([one if one.isalnum() else "_" for one in label])
    found = [_site(program, address, event) for address in addresses]
    # The line that declares a Go function also has the code, at its end, that grows the stack
    # and starts the function again.
    entered = {one.function for one in found if one.entry and one.language.stack_check}
    return [one for one in found if one.entry or one.function not in entered]


def _site(program: Program, address: Address, label: str) -> Site:
    machine = architecture(program.architecture)
    function = program.function_at(address)
    rules = language_at(function)
    begins = function is not None and function.address == address
    entry = begins and function is not None and not is_fragment(function)
    if entry and rules.stack_check:
        # The first instruction of a Go function runs again each time the stack grows.
        from fetchc.driver.function_lookup import behind_stack_check
        from fetchc.quantities import Address

        assert function is not None
        address = Address(address + behind_stack_check(program, function))
    return Site(program, machine, rules, function, address, entry, False, label=label)


# ------------------------------------------------------------------------------
# Points that are a source line, the body of a function, or its inlined copies.


def line_sites(program: Program, name: str | None, point: Point, returns: bool) -> ProbePoint:
    """Where the code of a source line begins, of a file or of the function of that name.

    Of a file's line with a ``name`` it is only the code in that function.
    """

    if returns:
        raise _no_return_here(point)
    warnings: tuple[Diagnostic, ...] = ()
    if point.file is not None:
        addresses, label = of_file(program, point)
    else:
        function, warnings = function_at_point(program, name, point)
        assert function is not None
        addresses, label = of_function(program, function, point)
    sites = sites_at(program, addresses, label)
    if point.file is not None and name is not None and not is_only_inlined(program, name):
        sites = _in_function(program, name, point, sites)
    of_addresses = several(label, sites)
    return ProbePoint(sites[0], "line", (*warnings, *of_addresses), tuple(sites[1:]))


def _in_function(program: Program, name: str, point: Point, sites: list[Site]) -> list[Site]:
    there = [one for one in sites if one.function and has_name(program, one.function, name)]
    if there:
        return there
    others = sorted({one.function.name for one in sites if one.function is not None})
    listed = ", ".join(f"`{one}`" for one in others[:_SHOWN]) or "no function"
    raise reject(
        "FC0206",
        f"line {point.line} of `{point.file}` has code in {listed}, not in `{name}`",
        point.span,
        "of another function",
        help="leave the function out: a line of a file needs none",
    )


def part_sites(
    program: Program, name: str | None, part: str, point: Point, returns: bool
) -> ProbePoint:
    """The ``part`` of a function: its ``body``, or ``inline`` for its copies in others."""
    if returns:
        raise _no_return_here(point)
    if part == "inline" and name is not None:
        return inlined(program, name, point)
    function, warnings = function_at_point(program, name, point)
    assert function is not None

    machine, rules = architecture(program.architecture), language(function.language)
    address = body_of(program, function, point)
    return ProbePoint(
        Site(program, machine, rules, function, address, False, False), "body", warnings
    )


def inlined(program: Program, name: str, point: Point | None) -> ProbePoint:
    """Every inlined copy of a function, with FC0617; CompileError where there is none."""

    sites = inlined_sites(program, name)
    if not sites:
        if point is None or is_only_inlined(program, name):
            from fetchc.driver.unknown_functions import unknown

            raise unknown(program, name)
        find_function(program, name)  # says what is wrong with the name
        raise reject(
            "FC0206",
            f"no inlined copy of `{name}` is known in `{program.path}`",
            point.span,
            "not inlined",
            help="probe its own code: leave `inline` out",
        )
    warning = Diagnostic(
        "FC0617",
        f"inlined copies of `{name}` are probed, {len(sites)} that the debug information has",
        notes=("where the compiler simplified a copy away, or merged two, calls are not seen",),
    )
    return ProbePoint(sites[0], "inline", (warning,), sites[1:])


def _no_return_here(point: Point) -> CompileError:
    return reject(
        "FC0206", "a return probe covers a whole function, not one address in it", point.span
    )


# ------------------------------------------------------------------------------
# Probe points where the body of an inlined function begins, in each function that has a copy.


def inlined_sites(program: Program, name: str) -> tuple[Site, ...]:
    """The sites of every inlined copy, by address; none where no copy is described.

    The event is called after the copied function.
    """
    machine = architecture(program.architecture)
    lines = code_map(program, None)
    found = {(one.address, one.function.address): one for one in lines.instances(name)}
    return tuple(
        [
            Site(
                program,
                machine,
                language(one.function.language),
                one.function,
                one.address,
                False,
                False,
                instance=one,
                label=one.name,
            )
            for one in found.values()
        ]
    )


# ------------------------------------------------------------------------------
# What is said of a probe with several addresses, where they do not agree.

_ADDRESSES_SHOWN = 4


def at_address(refusal: CompileError, found: ProbePoint) -> CompileError:
    """``refusal``, with the one of several addresses that it is about."""
    site = found.site
    where = f"{site.address:#x}"
    if site.function is not None:
        where += f", `{site.function.name}`+{site.address - site.function.address:#x}"
    note = f"this is at {where}; others of its addresses may have it: `--at 0x...`"
    return CompileError(
        tuple([one.replaced(notes=(*one.notes, note)) for one in refusal.diagnostics])
    )


def apart(expression: str, span: Span, fetched: Iterable[str]) -> CompileError:
    """The refusal of one fetch-arg for addresses that need several."""
    listed = sorted(fetched)
    shown = [f"`{one}`" for one in listed[:_ADDRESSES_SHOWN]]
    more = f" and {len(listed) - _ADDRESSES_SHOWN} more" if len(listed) > _ADDRESSES_SHOWN else ""
    return reject(
        "FC0312",
        f"`{expression}` is not in one place: the probe has several addresses",
        span,
        "more than one fetch-arg",
        notes=(f"it is fetched by {', '.join(shown)}{more}",),
        help="write a definition for each address: `--format probe`",
        reason="several fetch-args",
    )


def require_alike(places: Sequence[Sequence[Named]]) -> None:
    """Raises CompileError FC0312 where what is fetched at each address is not of one type.

    A kernel takes several definitions of one event only where names and types are the same: a
    static probe in a template, say, hands over what each instance has.
    """
    first = {each.name: _type(each.part.fetch) for each in places[0]}
    for others in places[1:]:
        for each in others:
            if first.get(each.name) == _type(each.part.fetch):
                continue
            types = {
                _type(one.part.fetch) for place in places for one in place if one.name == each.name
            }
            raise reject(
                "FC0312",
                f"`{each.text}` is not of one type: the probe has several addresses",
                notes=(
                    f"it is fetched as {', '.join(f'`{one}`' for one in sorted(types))}",
                    "definitions of one event have the same types",
                ),
                help="`fetchc trace` shows each as what it is there",
                reason="several fetch-args",
            )


def _type(fetch: Fetch) -> str:
    # As the kernel compares types: bits are the number that they are taken from.
    store = fetch.store
    return f"u{store.container}" if isinstance(store, Bits) else type_text(store)
