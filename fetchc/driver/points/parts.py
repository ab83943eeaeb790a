"""Points that are a source line, the body of a function, or its inlined copies."""

from __future__ import annotations

from fetchc.check.probe_site import Site
from fetchc.diag.diagnostic import Diagnostic, reject
from fetchc.driver.points.addresses import function_at_point
from fetchc.driver.points.found import Found
from fetchc.driver.points.functions import find_function, is_only_inlined
from fetchc.lang import language
from fetchc.target.machines import architecture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.diag.diagnostic import CompileError
    from fetchc.program.protocol import Program
    from fetchc.syntax.tree import Point

__all__ = ["inlined", "line_sites", "part_sites"]


def line_sites(program: Program, name: str | None, point: Point, returns: bool) -> Found:
    """Where the code of a source line begins, of a file or of the function of that name."""
    from fetchc.driver.points.statements import of_file, of_function, several, sites_at

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
    told = several(label, sites)
    return Found(sites[0], "line", (*warnings, *told), tuple(sites[1:]))


def part_sites(program: Program, name: str | None, part: str, point: Point, returns: bool) -> Found:
    """The ``part`` of a function: its ``body``, or ``inline`` for its copies in others."""
    if returns:
        raise _no_return_here(point)
    if part == "inline" and name is not None:
        return inlined(program, name, point)
    function, warnings = function_at_point(program, name, point)
    assert function is not None
    from fetchc.driver.points.statements import body_of

    machine, rules = architecture(program.architecture), language(function.language)
    address = body_of(program, function, point)
    return Found(Site(program, machine, rules, function, address, False, False), "body", warnings)


def inlined(program: Program, name: str, point: Point | None) -> Found:
    """Every inlined copy of a function, with FC0617; CompileError where there is none."""
    from fetchc.driver.points.instances import inlined_sites

    sites = inlined_sites(program, name)
    if not sites:
        if point is None or is_only_inlined(program, name):
            from fetchc.driver.points.unfound import unknown

            raise unknown(program, name)
        find_function(program, name)  # says what is wrong with the name
        raise reject(
            "FC0206",
            f"no inlined copy of `{name}` is known in `{program.path}`",
            point.span,
            "not inlined",
            help="probe its own code: leave `inline` out",
        )
    said = Diagnostic(
        "FC0617",
        f"inlined copies of `{name}` are probed, {len(sites)} that the debug information has",
        notes=("where the compiler simplified a copy away, or merged two, calls are not seen",),
    )
    return Found(sites[0], "inline", (said,), sites[1:])


def _no_return_here(point: Point) -> CompileError:
    return reject(
        "FC0206", "a return probe is of a whole function, not of an address in it", point.span
    )
