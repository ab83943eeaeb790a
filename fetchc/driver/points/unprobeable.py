"""The refusal of a point at an instruction that uprobes do not take."""

from __future__ import annotations

from fetchc.code.uprobe_instructions import unprobeable
from fetchc.diag.diagnostic import CompileError, reject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fetchc.check.probe_site import Site
    from fetchc.code.uprobe_instructions import Unprobeable
    from fetchc.program.entities import Function
    from fetchc.program.protocol import Program
    from fetchc.quantities import Address
    from fetchc.syntax.tree import Point

__all__ = ["refuse_unprobeable"]

_FAR = 256  # bytes of code behind the instruction, in which another one is looked for


def refuse_unprobeable(
    program: Program, site: Site, why: Unprobeable, rules: Mapping[str, Any], point: Point | None
) -> CompileError:
    """FC0515, for ``raise refuse_unprobeable(...)``: no probe can be at ``site``.

    ``rules`` is the ``uprobes`` table of the machine.
    """
    function = site.function
    where = f"{site.address:#x}"
    if function is not None:
        where = f"`{function.name}`+{site.address - function.address:#x}"
    return reject(
        "FC0515",
        f"the instruction at {where} of `{program.path}` cannot be probed: {why.what}",
        None if point is None else point.span,
        "not here",
        notes=(
            "the kernel sets a probe there, and no longer does what the instruction does"
            if why.harmful
            else "the kernel accepts the definition, and never sets the probe in a process",
        ),
        help=_help(program, function, site.address, rules),
    )


def _help(
    program: Program, function: Function | None, address: Address, rules: Mapping[str, Any]
) -> str:
    if function is None or function.size is None:
        return "find another instruction with a disassembler: `objdump -d`"
    try:
        other = _other(program, function, address, rules)
    except CompileError as refusal:  # no disassembler, or data among the code
        return f"probe another instruction; {refusal.diagnostics[0].message}: see `objdump -d`"
    if other is None:
        return "probe another instruction of the function: `objdump -d` shows them"
    side = "next" if other > address else "last"
    return f"probe the {side} one that can be: `--at +{other - function.address:#x}`"


def _other(
    program: Program, function: Function, address: Address, rules: Mapping[str, Any]
) -> Address | None:
    # The next instruction that can be probed; behind one that goes elsewhere, the last before it.
    from fetchc.code.disassembly import goes_on, instruction_starts

    assert function.size is not None
    code = program.code(function.address, function.size)
    at = address - function.address
    before: Address | None = None
    for start in instruction_starts(code[: at + _FAR], function.address, program.architecture):
        offset = start - function.address
        if start > address and goes_on(code[at:offset], address, program.architecture):
            if unprobeable(code[offset:], rules) is None:
                return start
        elif start > address:
            return before
        elif start < address and unprobeable(code[offset:], rules) is None:
            before = start
    return before
