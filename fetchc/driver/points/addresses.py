"""From a function and an offset in it, or an address, to the instruction to probe."""

from __future__ import annotations

from fetchc.diag.diagnostic import reject
from fetchc.driver.points.functions import find_function, meant
from fetchc.lang import language
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.program.entities import Function
    from fetchc.program.protocol import Program
    from fetchc.syntax.tree import Point
    from fetchc.target.machines import Architecture

__all__ = ["address_at_point", "behind_stack_check", "function_at_point", "is_called"]


def function_at_point(
    program: Program, name: str | None, point: Point | None
) -> tuple[Function | None, tuple[Diagnostic, ...]]:
    """The function that a point is in, None where no known one is there; warnings about its name.

    Raises CompileError as :func:`find_function` does, and FC0206.
    """
    if point is not None and point.address is not None:
        function = program.function_at(Address(point.address))
        if name is not None and function is not None:
            named = [f for f in program.functions_named(name) if f.address == function.address]
            if not named and function.symbol not in meant(program, name):
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


def address_at_point(
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
    called = is_called(function)
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


def is_called(function: Function) -> bool:
    """Whether calls lead to its first instruction; a part that is split off is jumped to."""
    from fetchc.check.locations import is_fragment

    return not is_fragment(function)


def behind_stack_check(program: Program, function: Function) -> int:
    """Bytes from a function's first instruction to where its stack is known to be big enough."""
    if not language(function.language).stack_check:
        return 0
    from fetchc.abi import convention_for
    from fetchc.code.go_stack_check import after_stack_check
    from fetchc.target.machines import GoRules

    rules = convention_for(program, function).rules
    if not isinstance(rules, GoRules) or rules.stack_check is None:
        return 0
    size = min(function.size or 128, 128)
    return after_stack_check(program.code(function.address, size), rules.stack_check)
