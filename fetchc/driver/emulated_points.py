"""A probe at an instruction that the kernel emulates, in place of one that it executes in steps.

Where a function begins with instructions that change nothing but the instruction pointer
(``endbr64``, a NOP), all values are where they were at the instruction after them. If that is a
``push``, which the kernel emulates, a hit takes a fifteenth of the time. ``targets/kernel`` and
``targets/arch`` have the instructions, with their sources.

The ``push`` is executed once a call, as the first instruction is: it is the function's prologue, to
which no loop and no part of the function that is split off leads back. The probe moves only in a
compiler's code, which other functions do not enter in the middle, and where no jump of the function
itself can lead past its first instruction.
"""

from __future__ import annotations

from fetchc.check.probe_site import ProbePoint
from fetchc.code.uprobe_instructions import (
    LONGEST,
    is_emulated,
    may_be_jumped_to,
    unchanging_bytes,
)
from fetchc.quantities import Address
from fetchc.target.machines import parse_instruction, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.check.probe_site import Site
    from fetchc.target.kernel_versions import Kernel
    from fetchc.target.machines import Instruction

__all__ = ["at_emulated", "is_single_stepped", "next_emulated"]

# Without debug information, or with an assembler's, code may be entered anywhere. What clang
# assembles has no DW_TAG_subprogram.
_ASSEMBLERS = ("", "gas", "go-asm")
_FAR = 64  # bytes in which another instruction is proposed


def at_emulated(found: ProbePoint, kernel: Kernel) -> ProbePoint:
    """``found`` at an instruction that ``kernel`` emulates, if one has the same values and hits.

    Itself otherwise, and where it is neither a function's entry nor its return probe.
    """
    site = found.site
    if not is_single_stepped(found, kernel):
        return found
    behind = _behind(site, kernel)
    if behind is None:
        return found
    return ProbePoint(site.replaced(address=behind), found.kind, found.warnings)


def is_single_stepped(found: ProbePoint, kernel: Kernel) -> bool:
    """Whether ``kernel`` executes the instruction of an entry or a return probe in a single step.

    False where the tables do not say what it emulates on the machine.
    """
    site = found.site
    encodings = _encodings(site, _emulated_kinds(site, kernel))
    if not encodings or found.more or found.kind not in ("entry", "return"):
        return False
    return not is_emulated(site.program.code(site.address, LONGEST), encodings)


def next_emulated(found: ProbePoint, kernel: Kernel) -> int | None:
    """Offset in the function of the next instruction that ``kernel`` emulates.

    Up to the first branch, and of an entry only. Values may be elsewhere there. None where there is
    none near. Raises CompileError FC0905 where there is no disassembler.
    """
    from fetchc.code.disassembly import first_writes

    site, function = found.site, found.site.function
    if found.kind != "entry" or function is None or function.size is None:
        return None
    encodings = _encodings(site, _emulated_kinds(site, kernel))
    end = function.address + function.size
    code = site.program.code(site.address, min(_FAR, end - site.address))
    for after, _ in first_writes(code, site.address, site.program.architecture):
        if after < end and is_emulated(code[after - site.address :], encodings):
            return after - function.address
    return None


def _behind(site: Site, kernel: Kernel) -> Address | None:
    # The instruction to take in place of that of ``site``.
    function, program = site.function, site.program
    if function is None or function.size is None or function.compiler.name in _ASSEMBLERS:
        return None
    code = program.code(function.address, function.size)
    start = position = site.address - function.address
    raw = table(f"arch/{program.architecture}")
    unchanging = _encodings(site, ["unchanging"])
    while skipped := unchanging_bytes(code[position:], raw["uprobes"], unchanging):
        position += skipped
        if position >= len(code):
            return None
    pushes = _encodings(site, [name for name in _emulated_kinds(site, kernel) if name == "pushes"])
    if not is_emulated(code[position:], pushes):
        return None
    behind = Address(function.address + position)
    if any(program.elf.begins_symbol(Address(behind - back)) for back in range(position - start)):
        return None  # others may call it there
    return None if may_be_jumped_to(code, start, position) else behind


def _emulated_kinds(site: Site, kernel: Kernel) -> tuple[str, ...]:
    return () if site.program.in_kernel else kernel.emulated(site.program.architecture)


# Parsed once: a glob asks for them of each function. By machine and kind.
_ENCODINGS: dict[tuple[str, str], list[Instruction]] = {}


def _encodings(site: Site, kinds: Iterable[str]) -> list[Instruction]:
    machine = site.program.architecture
    found: list[Instruction] = []
    for kind in kinds:
        if (machine, kind) not in _ENCODINGS:
            texts = table(f"arch/{machine}")["emulated"][kind]
            _ENCODINGS[machine, kind] = [parse_instruction(text) for text in texts]
        found += _ENCODINGS[machine, kind]
    return found
