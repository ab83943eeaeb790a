"""The refusal of a point at an instruction that uprobes do not take."""

from __future__ import annotations

from fetchc.check.probe_site import ProbePoint, Site
from fetchc.code.disassembly import jump_targets
from fetchc.code.uprobe_instructions import LONGEST, nop_bytes, unprobeable
from fetchc.diag.diagnostic import CompileError, Diagnostic, reject
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fetchc.code.uprobe_instructions import Unprobeable
    from fetchc.program.entities import Function
    from fetchc.program.protocol import Program
    from fetchc.syntax.tree import Point
    from fetchc.target.kernel_versions import Kernel

__all__ = [
    "behind_replaced_nops",
    "harm_of",
    "refuse_unprobeable",
    "require_start",
    "unknown_start",
]

_FAR = 256  # bytes of code after the instruction, in which another one is looked for


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
            "the kernel sets a probe there, but does not execute the instruction as written"
            if why.harmful
            else "the kernel accepts the definition, and never sets the probe in a process",
            "`trace --engine breakpoint` takes any instruction, of one process",
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
    # The next instruction that can be probed; after one that goes elsewhere, the last before it.
    from fetchc.code.disassembly import falls_through, instruction_starts

    assert function.size is not None
    code = program.code(function.address, function.size)
    at = address - function.address
    before: Address | None = None
    for start in instruction_starts(code[: at + _FAR], function.address, program.architecture):
        offset = start - function.address
        if start > address and falls_through(code[at:offset], address, program.architecture):
            if unprobeable(code[offset:], rules) is None:
                return start
        elif start > address:
            return before
        elif start < address and unprobeable(code[offset:], rules) is None:
            before = start
    return before


# ------------------------------------------------------------------------------
# Probes on a NOP that the kernel replaces by a call, which harms the program.
#
# What the call writes and which kernels make it is in ``targets/kernel`` (``replaced_nops``). A
# NOP changes nothing, so the probe goes to the instruction after it, where every value still is
# where it was; a return probe finds the return address there, too. That place must only be
# reached through the NOP, or calls that jump to it would be events as well.

_MAKES_ROOM = (
    *[bytes([opcode]) for opcode in range(0x50, 0x58)],  # push
    *[bytes([0x41, opcode]) for opcode in range(0x50, 0x58)],
    b"\x48\x83\xec",  # sub $N,%rsp
    b"\x48\x81\xec",
)


def harm_of(kernel: Kernel, size: int) -> str:
    """What the kernel does to the program, as a note says it."""
    return (
        f"Linux {kernel.name} replaces a probed NOP of {size} bytes by a call, which overwrites "
        "data below the stack pointer and ends children of fork()"
    )


def behind_replaced_nops(
    found: ProbePoint, kernel: Kernel, rules: Mapping[str, Any], point: Point | None
) -> ProbePoint:
    """``found`` with each site that is on such a NOP at the instruction after it.

    ``rules`` is the ``uprobes`` table of the machine. Raises CompileError FC0516 for an address
    that was asked for itself, and where the place after it can be reached without the NOP.
    """
    sites = [_behind(site, kernel, rules, point, found.kind) for site in (found.site, *found.more)]
    return ProbePoint(sites[0], found.kind, found.warnings, tuple(sites[1:]))


def _behind(
    site: Site, kernel: Kernel, rules: Mapping[str, Any], point: Point | None, kind: str
) -> Site:
    program, function = site.program, site.function
    size = kernel.replaced_nop(program.architecture)
    behind = site.address
    while nop_bytes(program.code(behind, LONGEST), rules) == size:
        behind = Address(behind + size)
    if behind == site.address:
        return site
    if kind == "offset":
        where = f"{behind:#x}" if function is None else f"+{behind - function.address:#x}"
        raise _refused(site, kernel, point, "", f"probe the instruction after it: `--at {where}`")
    if function is None or function.size is None:
        raise _refused(
            site, kernel, point, "the start and the end of the code around it are not known"
        )
    end = Address(function.address + function.size)
    if behind >= end or unprobeable(program.code(behind, LONGEST), rules) is not None:
        raise _refused(site, kernel, point, "no instruction after it can be probed")
    code = program.code(function.address, function.size)
    try:
        targets = jump_targets(code, function.address, program.architecture)
    except CompileError as refusal:
        raise _refused(site, kernel, point, refusal.diagnostics[0].message) from refusal
    # What makes room on the stack begins no case of a switch.
    computed = None in targets and not program.code(behind, 4).startswith(_MAKES_ROOM)
    if behind in targets or computed:
        raise _refused(site, kernel, point, "a jump may lead to the instruction after it")
    return Site(
        program, site.architecture, site.language, function, behind, site.entry, site.returns,
        site.leaving, site.instance, site.label, site.static, site.means, site.active,
    )  # fmt: skip


def _refused(
    site: Site, kernel: Kernel, point: Point | None, why: str, help: str | None = None
) -> CompileError:
    size = kernel.replaced_nop(site.program.architecture)
    where = f"{site.address:#x}"
    if site.function is not None:
        where = f"`{site.function.name}`+{site.address - site.function.address:#x}"
    return reject(
        "FC0516",
        f"a probe on the NOP at {where} of `{site.program.path}` would harm the program",
        None if point is None else point.span,
        "not here",
        notes=tuple([note for note in (harm_of(kernel, size), why) if note]),
        help=help or "probe another instruction: `objdump -d` shows them",
    )


# ------------------------------------------------------------------------------
# Whether an instruction starts at an address: what the kernel does not look at.


def require_start(program: Program, function: Function, address: Address, point: Point) -> None:
    """Refuse a point inside of an instruction (FC0206).

    The kernel does not look: a breakpoint there changes the program. In its own code it does.
    """
    if program.in_kernel:
        return
    from fetchc.code.disassembly import instruction_starts

    code = program.code(function.address, address - function.address + 16)
    before = function.address
    for start in instruction_starts(code, function.address, program.architecture):
        if start == address:
            return
        if start > address:
            break  # not to the end, where the slice may cut an instruction
        before = start
    raise reject(
        "FC0206",
        f"no instruction starts at `{function.name}`+{address - function.address:#x}",
        point.span,
        "inside an instruction",
        notes=("the kernel would put its breakpoint there anyway",),
        help=f"probe the instruction around it: `--at +{before - function.address:#x}`",
    )


def unknown_start(address: Address, in_memory: bool) -> Diagnostic:
    """The warning that the file, or the process's perf map, does not describe the code there."""
    if in_memory:
        return Diagnostic(
            "FC0606",
            f"no function begins at {address:#x}, and whether an instruction does is not known",
            notes=("a breakpoint of the processor inside an instruction is never hit",),
            help="name a function: `-f NAME`, or the address in its line of the perf map",
        )
    return Diagnostic(
        "FC0606",
        f"no function is known at {address:#x}, nor whether an instruction starts there",
        notes=("a breakpoint inside an instruction changes what the program does",),
        help="check it with a disassembler: `objdump -d`",
    )
