"""What the file says of the offset that a hand-written definition probes.

The kernel does not look: it puts a breakpoint wherever it is told to. One inside an
instruction changes what the program does, one outside of the code is never met.
"""

from __future__ import annotations

import os

from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.diag.diagnostic import CompileError, DebugInfoError, Diagnostic, Label
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.entities import Function
    from fetchc.source import Span
    from fetchc.target.kernel_versions import Kernel

    Found = tuple[tuple[Diagnostic, ...], tuple[Diagnostic, ...]]

__all__ = ["harmful", "look", "nop_at"]

_EXECUTABLE = 1  # PF_X of a segment
_LONGEST = 16  # bytes, at least one instruction of every machine


def look(path: str, offset: int, named: Span, place: Span) -> Found:
    """Problems (FC0206, FC0515) and warnings (FC0606) about ``offset`` of the file at ``path``.

    ``named`` and ``place`` are where the path and the offset are written.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        what = f"`{path}` is not a regular file"
        return (Diagnostic("FC0206", what, Label(named, "no regular file")),), ()
    try:
        address = _address(Elf(path), offset)
        if address is None:
            what = f"no code of `{path}` is at offset {offset:#x}"
            note = "an offset counts from the start of the file; it is not an address"
            help = _as_address(Elf(path), offset)
            wrong = Diagnostic("FC0206", what, Label(place, "no code"), notes=(note,), help=help)
            return (wrong,), ()
        program = DwarfProgram(path)
        function = program.function_at(address)
        if function is None:
            return (), (_unknown(f"no function is known at offset {offset:#x}", place),)
        code = program.code(function.address, address - function.address + _LONGEST)
        before = _before(code, function.address, address, program.architecture)
    except DebugInfoError as unreadable:
        return (), (_unknown(str(unreadable), place),)
    except CompileError as refused:
        return (), (_unknown(refused.diagnostics[0].message, place),)
    if before == address:
        return _settable(program, function, address, offset, place), ()
    inside = address - function.address
    what = f"no instruction starts at offset {offset:#x}: it is inside one of `{function.name}`"
    start = offset - (address - before)
    return (
        Diagnostic(
            "FC0206",
            what,
            Label(place, "inside an instruction"),
            notes=(f"`{function.name}` begins {inside} bytes before",),
            help=f"the instruction around it starts at {start:#x}",
        ),
    ), ()


def _settable(
    program: DwarfProgram, function: Function, address: Address, offset: int, place: Span
) -> tuple[Diagnostic, ...]:
    from fetchc.code.uprobe_instructions import LONGEST, unprobeable
    from fetchc.target.machines import table

    rules = table(f"arch/{program.architecture}").get("uprobes")
    found = None if rules is None else unprobeable(program.code(address, LONGEST), rules)
    if found is None:
        return ()
    where = f"`{function.name}`+{address - function.address:#x}"
    what = f"the instruction at {where}, offset {offset:#x}, cannot be probed: {found.what}"
    help = "probe another instruction: `objdump -d` shows them"
    return (Diagnostic("FC0515", what, Label(place, "not here"), help=help),)


def nop_at(path: str, offset: int, machine: str) -> int:
    """Bytes of the NOP at ``offset`` of the file at ``path``; 0 where none is or can be read."""
    from fetchc.code.uprobe_instructions import LONGEST, nop_bytes
    from fetchc.debuginfo.safe_open import open_regular
    from fetchc.target.machines import table

    known = table(f"arch/{machine}").get("uprobes", {})
    if "passed" not in known:
        return 0
    try:
        handle, _ = open_regular(path)
        with os.fdopen(handle, "rb") as file:
            file.seek(offset)
            return nop_bytes(file.read(LONGEST), known)
    except (OSError, ValueError):
        return 0


def harmful(kernel: Kernel, size: int, offset: int, place: Span) -> Diagnostic:
    """FC0516 about the NOP of ``size`` bytes at ``offset``, which ``kernel`` replaces."""
    from fetchc.driver.points.replaced_nops import harm_of

    what = f"a probe on the NOP at offset {offset:#x} would harm the program"
    help = f"probe the instruction behind it: {offset + size:#x}"
    notes = (harm_of(kernel, size),)
    return Diagnostic("FC0516", what, Label(place, "not here"), notes=notes, help=help)


def _as_address(elf: Elf, number: int) -> str | None:
    for segment in elf.segments:
        inside = number - segment.address
        if segment.flags & _EXECUTABLE and 0 <= inside < segment.file_size:
            return f"the address {number:#x} is at offset {segment.offset + inside:#x}"
    return None


def _address(elf: Elf, offset: int) -> Address | None:
    for segment in elf.segments:
        start = segment.offset
        if segment.flags & _EXECUTABLE and start <= offset < start + segment.file_size:
            return Address(segment.address + offset - start)
    return None


def _before(code: bytes, base: Address, address: Address, architecture: str) -> Address:
    # The last instruction that starts at the address or before it.
    from fetchc.code.disassembly import instruction_starts

    before = base
    for start in instruction_starts(code, base, architecture):
        if start > address:
            break
        before = start
        if start == address:
            break
    return before


def _unknown(why: str, place: Span) -> Diagnostic:
    return Diagnostic(
        "FC0606",
        "whether an instruction starts at the offset is not known",
        Label(place, "not checked"),
        notes=(why, "a breakpoint inside an instruction changes what the program does"),
        help="make sure of it with a disassembler: `objdump -d`",
    )
