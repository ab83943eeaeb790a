"""Whether the debug information of a Go function lists all of its parameters.

Up to Go 1.21 it leaves out those without a name. Three things tell: up to 1.16 the number in the
name of a result that has none, from 1.17 on the run-time's table of arguments, and in all
versions the number of bytes that a call takes.
"""

from __future__ import annotations

from fetchc.abi import convention_for, go_version
from fetchc.lang.go import package_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Site
    from fetchc.program.entities import Function, Variable
    from fetchc.program.protocol import Program

__all__ = ["counted_by_results", "lists_every_parameter"]

_COUNTS_RESULTS = (1, 16)  # and before


def lists_every_parameter(site: Site, function: Function) -> bool:
    """Whether something proves that no parameter is missing, so that results are not shifted."""
    from fetchc.abi.go_arginfo import call_layout, told_in_full

    variables = site.program.parameters(function)
    counted = counted_by_results(site.program, function, variables)
    if counted is not None:
        return counted
    convention = convention_for(site.program, function)
    if told_in_full(site.program, convention, function):
        return True
    layout = call_layout(site.program, convention, function)
    total = site.program.argument_bytes(function)
    return layout is not None and layout.unused == 0 and layout.total == total


def counted_by_results(
    program: Program, function: Function, variables: tuple[Variable, ...]
) -> bool | None:
    """What the first result without a name says: up to Go 1.16 it is named by the parameters.

    It is ``~r3`` (``~b3`` for a blank one) behind three parameters, the receiver not counted.
    None where it says nothing. Source: Go 1.15, cmd/compile/internal/gc/dcl.go (funcargs).
    """
    from fetchc.abi.signature import missing_receiver

    version = go_version(function.producer)
    unnamed = [one.name for one in variables if one.kind == "result" and one.name[:1] == "~"]
    receivers = _receivers(function)
    if version is None or version > _COUNTS_RESULTS or not unnamed or receivers is None:
        return None
    number = unnamed[0][2:]
    if unnamed[0][1:2] not in ("r", "b") or not number.isdecimal():
        return None
    listed = sum(one.kind != "result" for one in variables)
    if receivers and missing_receiver(program, function, variables) is not None:
        receivers = 0
    return int(number) == listed - receivers


def _receivers(function: Function) -> int | None:
    """1 of methods, 0 of functions, None where the name does not tell them apart.

    A closure ``f.func1`` looks as a method ``func1`` of a type ``f`` does.
    """
    declared = function.symbol[len(package_of(function.symbol)) + 1 :]
    parts = declared.split(".")
    if len(parts) == 1:
        return 0
    method = parts[-1]
    if len(parts) != 2 or not parts[0] or "-" in method or method.startswith("func"):
        return None
    return 1
