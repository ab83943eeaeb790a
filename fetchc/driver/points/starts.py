"""Whether an instruction starts at an address: what the kernel does not look at."""

from __future__ import annotations

from fetchc.diag.diagnostic import Diagnostic, reject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.entities import Function
    from fetchc.program.protocol import Program
    from fetchc.quantities import Address
    from fetchc.syntax.tree import Point

__all__ = ["require_start", "unknown_start"]


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
        notes=("the kernel would put its breakpoint there all the same",),
        help=f"probe the instruction around it: `--at +{before - function.address:#x}`",
    )


def unknown_start(address: Address) -> Diagnostic:
    """The warning that nothing is known of the code at an address."""
    return Diagnostic(
        "FC0606",
        f"no function is known at {address:#x}, nor whether an instruction starts there",
        notes=("a breakpoint inside an instruction changes what the program does",),
        help="make sure of it with a disassembler: `objdump -d`",
    )
