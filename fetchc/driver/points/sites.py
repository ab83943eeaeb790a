"""From what a user says of a place to the instruction to probe."""

from __future__ import annotations

from fetchc.check.site import Site
from fetchc.diag.errors import reject
from fetchc.diag.model import Diagnostic
from fetchc.lang import language
from fetchc.record import Record
from fetchc.target.load import architecture, table
from fetchc.units import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.diag.errors import CompileError
    from fetchc.lang.base import Language
    from fetchc.program.model import Function
    from fetchc.program.protocol import Program
    from fetchc.syntax.tree import Point
    from fetchc.target.model import Architecture

__all__ = ["Found", "behind_stack_check", "find_function", "find_site"]

_PARTS = ("%return", "%body", "%inline")  # what the name of a point may end in


class Found(Record):
    """A probe site, how it is called in output, and what should be said of it.

    ``kind``: entry, return, return-site, body, line, inline, static, offset. ``more`` are further
    addresses of the same event: a function may have several return instructions, a line several
    beginnings, an inlined function several copies.
    """

    site: Site
    kind: str
    warnings: tuple[Diagnostic, ...]
    more: tuple[Site, ...] = ()

    def each(self) -> tuple[Found, ...]:
        """This for each of its addresses."""
        if not self.more:
            return (self,)
        return tuple([Found(site, self.kind, self.warnings) for site in (self.site, *self.more)])


def find_site(
    program: Program,
    name: str | None,
    point: Point | None,
    returns: bool,
    unsafe_return: bool = False,
) -> Found:
    """The site of a function's name and a point (``--at`` or behind ``@``), either may be None.

    A name that no function has may be a point itself: ``main.c:17``, ``main+4``, ``0x401234``,
    ``main%inline``.
    ``unsafe_return`` takes a return probe that can end the program. Raises CompileError FC0202,
    FC0203, FC0206, FC0409, FC0515.
    """
    found = _find(program, name, point, returns, unsafe_return)
    rules = table(f"arch/{program.architecture}").get("uprobes")
    if rules is not None and not program.in_kernel:
        doubtful = bytes.fromhex(rules.get("looked_at", ""))
        for site in (found.site, *found.more):
            code = program.code(site.address, 15)
            # Most instructions need no more than this.
            if not doubtful or code.lstrip(bytes.fromhex(rules["passed"]))[:1] in doubtful:
                from fetchc.driver.points.unprobeable import require_probeable

                require_probeable(program, site, code, rules, point)
    return found


def _find(
    program: Program, name: str | None, point: Point | None, returns: bool, unsafe_return: bool
) -> Found:
    if point is None and name is not None and (written := _as_point(program, name)) is not None:
        name, point = None, written
    if point is not None:
        part = _part(program, name, point)
        name = (None if part == point.function else point.function) or name
        returns = returns or point.returns
        if point.line is not None or point.file is not None:
            return _line_sites(program, name, point, returns)
        if part:
            return _part_sites(program, name, part, point, returns)
    if name is not None and ":" in name and program.in_kernel:
        from fetchc.driver.points.kernel_points import kernel_site

        return kernel_site(program, name, point, returns)
    if name is not None and ":" in name:
        from fetchc.driver.points.usdt import static_site

        if (static := static_site(program, name, point, returns)) is not None:
            return static
    if point is None and name is not None and _only_inlined(program, name) and not returns:
        return _inlined(program, name, None)
    function, warnings = _function(program, name, point)
    machine = architecture(program.architecture)
    rules = language(function.language if function is not None else "c")
    where, entry = _address(program, machine, function, point, returns)
    if returns:
        if function is None or not entry:
            raise reject("FC0206", "a return probe is of a whole function, not of an address in it")
        from fetchc.driver.points.returns import must_not_be_returned_from, unsafe

        if not _called(function):
            raise reject(
                "FC0206",
                f"`{function.symbol}` is jumped to, not called: it has no return of its own",
                None if point is None else point.span,
                help=f"probe the return of the function it is a part of: `{function.name}`",
            )
        if unsafe_return and rules.return_refusal:
            warnings = (*warnings, unsafe(function, rules))
        elif must_not_be_returned_from(program, function):
            return _return_sites(program, rules, function, warnings)
        entry = False
    site = Site(program, machine, rules, function, where, entry, returns)
    kind = "return" if returns else "entry" if entry else "offset"
    if function is None:
        assert point is not None
        if not program.code(where, 1):
            raise reject(
                "FC0206", f"the file has no code at {where:#x}", point.span, "in no segment"
            )
        from fetchc.driver.points.starts import unknown_start

        warnings = (unknown_start(where),)
    return Found(site, kind, warnings)


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
        if program.in_kernel or not name[at : at + 1].isdecimal() or name[: at - 1].endswith(":"):
            return None
        if not at and not name.startswith("0x"):
            return None
    if program.functions_named(name):
        return None
    from fetchc.syntax.parse import parse_point

    return parse_point(name)


def _only_inlined(program: Program, name: str) -> bool:
    return not program.functions_named(name) and program.is_only_inlined(name)


def _line_sites(program: Program, name: str | None, point: Point, returns: bool) -> Found:
    from fetchc.driver.points.statements import of_file, of_function, several, sites_at

    if returns:
        raise _no_return_here(point)
    warnings: tuple[Diagnostic, ...] = ()
    if point.file is not None:
        addresses, label = of_file(program, point)
    else:
        function, warnings = _function(program, name, point)
        assert function is not None
        addresses, label = of_function(program, function, point)
    sites = sites_at(program, addresses, label)
    told = several(label, sites)
    return Found(sites[0], "line", (*warnings, *told), tuple(sites[1:]))


def _part_sites(
    program: Program, name: str | None, part: str, point: Point, returns: bool
) -> Found:
    if returns:
        raise _no_return_here(point)
    if part == "inline" and name is not None:
        return _inlined(program, name, point)
    function, warnings = _function(program, name, point)
    assert function is not None
    from fetchc.driver.points.statements import body_of

    machine, rules = architecture(program.architecture), language(function.language)
    address = body_of(program, function, point)
    return Found(Site(program, machine, rules, function, address, False, False), "body", warnings)


def _inlined(program: Program, name: str, point: Point | None) -> Found:
    from fetchc.driver.points.instances import inlined_sites

    sites = inlined_sites(program, name)
    if not sites:
        if point is None or _only_inlined(program, name):
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


def _return_sites(
    program: Program, rules: Language, function: Function, warnings: tuple[Diagnostic, ...]
) -> Found:
    from fetchc.driver.points.returns import return_addresses

    machine = architecture(program.architecture)
    addresses, unseen = return_addresses(program, function)
    sites = [
        Site(program, machine, rules, function, address, False, False, leaving=True)
        for address in addresses
    ]
    return Found(sites[0], "return-site", (*warnings, *unseen), tuple(sites[1:]))


def find_function(program: Program, name: str) -> tuple[Function, tuple[Diagnostic, ...]]:
    """The one function of that name; clones are left aside and told of in a warning.

    Raises CompileError FC0202 with the nearest names, FC0203 with all of them.
    """
    from fetchc.check.evidence import goes_on, is_clone, is_fragment

    found = program.functions_named(name)
    exact = [f for f in found if f.symbol == name]
    plain = exact if len(exact) == 1 else [f for f in found if not is_clone(f)]
    if len(plain) > 1:
        plain = [f for f in plain if not goes_on(f)] or plain
    if len(plain) == 1 or (not plain and len(found) == 1):
        chosen = (plain or list(found))[0]
        if program.is_indirect(chosen):
            from fetchc.driver.points.unfound import indirect

            raise indirect(chosen)
        # What is split off as cold is a part of a function that calls do not enter.
        others = [f for f in found if f is not chosen and is_clone(f)]
        clones = [f for f in others if not is_fragment(f)]
        return chosen, _told(program, chosen, clones)
    from fetchc.driver.points.unfound import ambiguous, several_called, unknown

    if found:
        raise several_called(program, name, plain or list(found))
    names = _meant(program, name)
    if len(names) == 1 and names[0] != name:
        chosen, warnings = find_function(program, names[0])
        return chosen, (*_star_told(name, names[0]), *warnings)
    if names:
        raise ambiguous(program, name, names)
    raise unknown(program, name)


def _meant(program: Program, name: str) -> list[str]:
    """Names of the functions that a glob, or a part of a name, stands for."""
    from fetchc.driver.listing import matching
    from fetchc.lang.go_functions import without_type_arguments

    by_part = language(program.main_language()).functions_meant
    # A star among type arguments (Stack[*Item].Push, f<int*>) or in a parameter's type is a
    # pointer's.
    start = name.partition("*")[0]
    glob = _is_glob(without_type_arguments(name)) and "(" not in start and "<" not in start
    names = [] if glob or by_part is None else by_part(name, program)
    if not names and _is_glob(name):
        return matching(program.function_names(), name)
    # One function may have several symbols: aliases, both kinds of a constructor.
    places = {f.address for one in names for f in program.functions_named(one) if f.symbol == one}
    return names[:1] if len(places) == 1 else names


def _is_glob(name: str) -> bool:
    return "*" in name.replace("(*", "(") or "?" in name


def _star_told(name: str, found: str) -> tuple[Diagnostic, ...]:
    # Who writes server.handle may have meant a method of values.
    if "(*" not in found or "*" in name or "?" in name or "." not in name:
        return ()
    what = f"`{name}` is taken for `{found}`"
    return (Diagnostic("FC0615", what, notes=("the method has a pointer receiver",)),)


def _function(
    program: Program, name: str | None, point: Point | None
) -> tuple[Function | None, tuple[Diagnostic, ...]]:
    if point is not None and point.address is not None:
        function = program.function_at(Address(point.address))
        if name is not None and function is not None:
            named = [f for f in program.functions_named(name) if f.address == function.address]
            if not named and function.symbol not in _meant(program, name):
                raise reject(
                    "FC0206",
                    f"{point.address:#x} is in `{function.name}`, not in `{name}`",
                    point.span,
                    "of another function",
                )
        return function, ()
    if name is None:
        raise reject(
            "FC0206",
            "no function is named",
            help="name it with `--function main.f`, or in the expression: `x @ main.f`",
        )
    return find_function(program, name)


def _address(
    program: Program,
    machine: Architecture,
    function: Function | None,
    point: Point | None,
    returns: bool,
) -> tuple[Address, bool]:
    """The instruction to probe, and whether the entry's places hold there."""
    if function is None:
        assert point is not None
        assert point.address is not None
        return Address(point.address), False
    first = program.local_entry(function) if machine.local_entries else 0
    behind = first or behind_stack_check(program, function)
    called = _called(function)
    if point is None or (point.offset is None and point.address is None):
        return Address(function.address + (first if returns else behind)), called or returns
    if point.address is not None:
        offset = point.address - function.address
    else:
        assert point.offset is not None
        offset = point.offset
    if offset in (0, behind):
        return Address(function.address + offset), called
    if offset < 0 or (function.size is not None and offset >= function.size):
        size = "unknown" if function.size is None else f"{function.size:#x}"
        raise reject(
            "FC0206",
            f"+{offset:#x} is outside of `{function.name}`, which has {size} bytes",
            point.span,
            "past its end",
        )
    from fetchc.driver.points.starts import require_start

    require_start(program, function, Address(function.address + offset), point)
    return Address(function.address + offset), False


def _called(function: Function) -> bool:
    from fetchc.check.evidence import is_fragment

    return not is_fragment(function)


def behind_stack_check(program: Program, function: Function) -> int:
    """Bytes from a function's first instruction to where its stack is known to be big enough."""
    if not language(function.language).stack_check:
        return 0
    from fetchc.abi import convention_for
    from fetchc.code.stack_check import after_stack_check
    from fetchc.target.model import GoRules

    rules = convention_for(program, function).rules
    if not isinstance(rules, GoRules) or rules.stack_check is None:
        return 0
    size = min(function.size or 128, 128)
    return after_stack_check(program.code(function.address, size), rules.stack_check)


def _inlined_help(program: Program, chosen: Function) -> str:
    if program.code_map() is None:
        return "probe a function that calls it, or have the compiler not inline it"
    return f"probe those with another event: `{chosen.name}%inline`"


def _told(program: Program, chosen: Function, clones: list[Function]) -> tuple[Diagnostic, ...]:
    from fetchc.check.evidence import is_clone

    cautions = language(chosen.language).cautions
    said = [] if cautions is None else list(cautions(program, chosen))
    if not is_clone(chosen) and program.is_inlined(chosen):
        said.append(
            Diagnostic(
                "FC0603",
                f"`{chosen.name}` may also be inlined into functions that call it",
                notes=("a probe of the function does not see the inlined calls",),
                help=_inlined_help(program, chosen),
            )
        )
    if clones:
        listed = ", ".join(f"`{clone.symbol}`" for clone in clones)
        said.append(
            Diagnostic(
                "FC0603",
                f"`{chosen.name}` also lives on in {listed}",
                notes=("a probe of the function does not see calls of its clones",),
                help="probe each of them by its own name",
            )
        )
    return tuple(said)
