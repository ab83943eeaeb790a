"""From what a user says of a place to the instruction to probe."""

from __future__ import annotations

from fetchc.check.probe_site import ProbePoint, Site
from fetchc.code.uprobe_instructions import LONGEST, nop_bytes, unprobeable
from fetchc.diag.diagnostic import CompileError, reject
from fetchc.driver.function_lookup import (
    address_at_point,
    function_at_point,
    is_called,
    is_only_inlined,
)
from fetchc.lang import language, language_at
from fetchc.quantities import Address
from fetchc.record import Record
from fetchc.target.machines import architecture, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.program.entities import Function
    from fetchc.program.protocol import Program
    from fetchc.syntax.tree import Point
    from fetchc.target.kernel_versions import Kernel

__all__ = ["PointRequest", "find_site", "outside"]

_PARTS = ("%return", "%body", "%inline")  # what the name of a point may end in


class PointRequest(Record):
    """A probe point as a user asks for it.

    ``function`` is a name; one that no function has may be a point itself: ``main.c:17``,
    ``main+4``, ``0x401234``, ``main%inline``. ``point`` is that of ``--at`` or after ``@``.
    ``kernel`` is the one that is to run the probe. ``active`` is for how many calls at a time a
    return probe of the kernel has room. ``unsafe_return`` takes a return probe that can end the
    program. ``breakpoints``: the processor's are set, which any instruction can have: a return is
    each of the function's return instructions.
    """

    function: str | None = None
    point: Point | None = None
    returns: bool = False
    kernel: Kernel | None = None
    active: int | None = None
    unsafe_return: bool = False
    breakpoints: bool = False


def find_site(program: Program, request: PointRequest) -> ProbePoint:
    """The sites that ``request`` means, where the kernel takes probes.

    Raises CompileError FC0202, FC0203, FC0206, FC0409, FC0515, FC0516.
    """
    try:
        found = _probeable(program, request, _find(program, request))
    except CompileError as refusal:
        if refusal.reason != "undecodable code":
            raise
        raise _undecodable(program, request.point, refusal.diagnostics[0]) from refusal
    if request.active is None:
        return found
    from fetchc.driver.kernel_points import with_room

    return with_room(found, request.active)


def outside(program: Program) -> ProbePoint:
    """The file's first code, as a place in no function: globals are visible there."""
    machine, rules = architecture(program.architecture), language(program.main_language())
    address = program.elf.first_code()
    return ProbePoint(Site(program, machine, rules, None, address, False, False), "offset", ())


def _undecodable(program: Program, point: Point | None, said: Diagnostic) -> CompileError:
    return reject(
        said.code,
        f"the code of `{program.path}` cannot be read: {said.message}",
        None if point is None else point.span,
        "found on the way there",
        help=said.help,
        reason=said.reason,
    )


def _probeable(program: Program, request: PointRequest, found: ProbePoint) -> ProbePoint:
    # Refused where a uprobe cannot be, moved where it would harm the program.
    kernel, point = request.kernel, request.point
    rules = table(f"arch/{program.architecture}").get("uprobes")
    by_breakpoint = program.in_memory or request.breakpoints
    if rules is not None and not program.in_kernel and not by_breakpoint:
        replaced = 0 if kernel is None else kernel.replaced_nop(program.architecture)
        nops = False
        for site in (found.site, *found.more):
            code = program.code(site.address, LONGEST)
            why = unprobeable(code, rules)
            if why is not None:
                from fetchc.driver.refused_points import refuse_unprobeable

                raise refuse_unprobeable(program, site, why, rules, point)
            nops = nops or (replaced != 0 and nop_bytes(code, rules) == replaced)
        if nops:
            from fetchc.driver.refused_points import behind_replaced_nops

            assert kernel is not None
            return behind_replaced_nops(found, kernel, rules, point)
    return found


def _find(program: Program, request: PointRequest) -> ProbePoint:
    name, point, returns = request.function, request.point, request.returns
    if point is None and name is not None and (written := _as_point(program, name)) is not None:
        name, point = None, written
    if point is not None:
        part = _part(program, name, point)
        name = (None if part == point.function else point.function) or name
        returns = returns or point.returns
        if point.line is not None or point.file is not None:
            from fetchc.driver.source_line_points import line_sites

            return line_sites(program, name, point, returns)
        if part:
            from fetchc.driver.source_line_points import part_sites

            return part_sites(program, name, part, point, returns)
    if name is not None and ":" in name and program.in_kernel:
        from fetchc.driver.kernel_points import as_function, kernel_site

        if (kprobe := as_function(name, point, returns)) is not None:
            name, point, returns = kprobe
            named = request.replaced(function=name, point=point, returns=returns)
            return _find(program, named)
        return kernel_site(program, name, point, returns)
    if name is not None and ":" in name:
        from fetchc.driver.usdt_points import static_site

        if (static := static_site(program, name, point, returns)) is not None:
            return static
    if point is None and name is not None and is_only_inlined(program, name) and not returns:
        from fetchc.driver.source_line_points import inlined

        return inlined(program, name, None)
    function, warnings = function_at_point(program, name, point)
    machine = architecture(program.architecture)
    where, entry = address_at_point(program, machine, function, point, returns)
    if returns:
        if function is None or not entry:
            raise reject(
                "FC0206",
                "a return probe covers a whole function, not one address in it",
                None if point is None else point.span,
                "not a whole function",
            )
        return _return_of(program, function, where, warnings, request)
    rules = language_at(function)
    site = Site(program, machine, rules, function, where, entry, returns)
    if function is None:
        assert point is not None
        if not program.code(where, 1):
            raise reject(
                "FC0206", f"the file has no code at {where:#x}", point.span, "in no segment"
            )
        from fetchc.driver.refused_points import unknown_start

        warnings = (unknown_start(where, program.in_memory),)
    return ProbePoint(site, "entry" if entry else "offset", warnings)


def _return_of(
    program: Program,
    function: Function,
    where: Address,
    warnings: tuple[Diagnostic, ...],
    request: PointRequest,
) -> ProbePoint:
    # By the kernel's return probe on the entry ``where``, or on the return instructions.
    from fetchc.driver.return_points import (
        PASSED,
        may_be_unwound,
        must_not_be_returned_from,
        refusal_of_returns,
        return_sites,
        unsafe,
    )

    rules = language(function.language)
    if not is_called(function):
        raise reject(
            "FC0206",
            f"`{function.symbol}` is jumped to, not called: it has no return of its own",
            None if request.point is None else request.point.span,
            help=f"probe the return of the function it is a part of: `{function.name}`",
        )
    if program.in_memory or request.breakpoints:
        return return_sites(program, rules, function, warnings, by_breakpoints=True)
    refusal = refusal_of_returns(program, function)
    if request.unsafe_return and refusal:
        warnings = (*warnings, unsafe(function, refusal))
    elif must_not_be_returned_from(program, function):
        return return_sites(program, rules, function, warnings)
    elif not program.in_kernel and may_be_unwound(program, function):
        if not request.unsafe_return:
            return return_sites(program, rules, function, warnings)
        warnings = (*warnings, unsafe(function, PASSED))
    machine = architecture(program.architecture)
    site = Site(program, machine, rules, function, where, False, True)
    return ProbePoint(site, "return", warnings)


def _part(program: Program, name: str | None, point: Point) -> str:
    # `--at body` beside the name of a function, unless there is a function of that name.
    plain = (point.offset, point.line, point.returns, point.address) == (None, None, False, None)
    word = point.function
    if not point.part and name is not None and plain and word in ("body", "inline"):
        return "" if program.functions_named(word) else word
    return point.part


def _as_point(program: Program, name: str) -> Point | None:
    if not name.endswith(_PARTS):
        at = max(name.rfind("+"), name.rfind(":")) + 1
        if not name[at : at + 1].isdecimal() or name[: at - 1].endswith(":"):
            return None
        if program.in_kernel and name[at - 1 : at] != "+":  # `tracepoint:9p:9p_client_req`
            return None
        if not at and not name.startswith("0x"):
            return None
    if program.functions_named(name):
        return None
    from fetchc.syntax.expression_parser import parse_point

    return parse_point(name)
