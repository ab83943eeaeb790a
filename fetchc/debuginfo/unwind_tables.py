"""The rules by which a frame of one file is unwound: which of its tables has an address.

Go's programs have pcsp tables for all of Go's own code; all others have call-frame information
(.eh_frame, else .debug_frame) or the stack trace format (.sframe). Methods of .NET say it by their
first instructions. All of them are given as rows of call-frame information.
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import number_at
from fetchc.debuginfo.dwarf.call_frames import Row, row
from fetchc.debuginfo.elf.headers import architecture_of
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import Absent, FrameRelative, InMemory, InRegister
from fetchc.quantities import Address, ByteOffset, DwarfRegister
from fetchc.target.machines import architecture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.elf.elf_file import Elf
    from fetchc.debuginfo.go.pclntab import FunctionTable
    from fetchc.debuginfo.sframe import StackTraceTable
    from fetchc.program.entities import Place
    from fetchc.target.machines import Architecture

__all__ = ["UnwindTables", "entry_row", "frame_pointer_row", "prologue_row", "row_of_offsets"]

_OUTERMOST = Absent("no location", "it is the first function of its stack")
_LOST = Absent("no location", "Go's functions keep no registers of their callers")


class UnwindTables:
    """The tables of one file, each looked for when it is first needed."""

    __slots__ = ("_elf", "_go", "_machine", "_sframe")

    def __init__(self, elf: Elf) -> None:
        self._elf = elf
        self._machine = architecture(architecture_of(elf))
        self._go: list[FunctionTable | None] = []  # looked for once
        self._sframe: list[StackTraceTable | None] = []

    def row(self, address: Address) -> Row | str:
        """How to find the caller of the code at ``address``; in words, why that is not known."""
        try:
            found = self._of_go(address)
            if found is None:
                found = row(self._elf, address)
            if found is None:
                found = self._of_sframe(address)
        except DebugInfoError as damaged:
            return f"its unwind information cannot be read: {damaged.reason}"
        return "no unwind information" if found is None else found

    def _of_go(self, address: Address) -> Row | str | None:
        if not self._go:
            self._go.append(self._go_functions())
        table = self._go[0]
        function = None if table is None else table.at(address)
        if table is None or function is None:
            return None
        machine = self._machine
        if table.is_top_frame(function):
            return row_of_offsets(machine, machine.stack_pointer, 0, _OUTERMOST)
        size = table.stack_bytes(function, address)
        if table.switches_stacks(function):
            return f"{function.name} switches stacks"
        if size is None:
            return f"Go's tables do not have the frame of {function.name}"
        frame = size + machine.entry_stack_bytes
        own = FrameRelative(ByteOffset(-machine.entry_stack_bytes))
        # The frame pointer is pushed behind the return address, but when differs.
        return row_of_offsets(machine, machine.stack_pointer, frame, own, _LOST)

    def _go_functions(self) -> FunctionTable | None:
        from fetchc.debuginfo.dwarf.languages import linked_by_go

        if not linked_by_go(self._elf) or not self._machine.entry_stack_bytes:
            return None  # where return addresses are in a register, call-frame information has them
        from fetchc.debuginfo.go.moduledata import Memory
        from fetchc.debuginfo.go.pclntab import function_table

        return function_table(Memory(self._elf, self._machine.name))

    def _of_sframe(self, address: Address) -> Row | str | None:
        if not self._sframe:
            from fetchc.debuginfo.sframe import stack_trace_table

            self._sframe.append(stack_trace_table(self._elf))
        table = self._sframe[0]
        return None if table is None else table.row(address, self._machine)


def row_of_offsets(
    machine: Architecture,
    base: DwarfRegister,
    offset: int,
    return_address: Place,
    frame_pointer: Place | None = None,
) -> Row:
    """A row whose CFA is ``base`` + ``offset`` bytes; no ``frame_pointer``: the callee's own."""
    column = return_register(machine)
    rules: list[tuple[DwarfRegister, Place]] = [(column, return_address)]
    if frame_pointer is not None:
        rules.append((frame_register(machine), frame_pointer))
    return Row(InMemory(base, ByteOffset(offset)), tuple(rules), column, signal_frame=False)


def entry_row(machine: Architecture) -> Row:
    """The row at the first instruction of any function, by the calling convention."""
    size = machine.entry_stack_bytes
    if not size:
        link = InRegister(return_register(machine))
        return row_of_offsets(machine, machine.stack_pointer, 0, link)
    own = FrameRelative(ByteOffset(-size))
    return row_of_offsets(machine, machine.stack_pointer, size, own)


def frame_pointer_row(machine: Architecture) -> Row:
    """The row of code that has the frame pointer of its machine set up, as the psABI shows it."""
    word = machine.word_bytes
    return row_of_offsets(
        machine,
        frame_register(machine),
        2 * word,
        FrameRelative(ByteOffset(-word)),
        FrameRelative(ByteOffset(-2 * word)),
    )


_PUSH, _EXTENDED = 0x50 >> 3, 0x41  # `push` of one of eight registers; the prefix for %r8 to %r15
_PUSH_FRAME_POINTER = b"\x55"
_SUBTRACT = {b"\x48\x83\xec": 1, b"\x48\x81\xec": 4}  # `sub $N,%rsp`, by the bytes of N


def prologue_row(code: bytes) -> Row:
    """The row after the prologue of a method of .NET on x86-64, which begins with ``code``.

    The method pushes the frame pointer first, or has none: then it moves the stack pointer in its
    prologue alone. The UNWIND_INFO of precompiled methods says the same. Source: Intel SDM, volume
    2, PUSH and SUB; dotnet/runtime, docs/design/coreclr/botr/clr-abi.md, "Prolog/epilog".
    """
    machine = architecture("x86_64")
    if code.startswith(_PUSH_FRAME_POINTER):
        return frame_pointer_row(machine)
    size = at = 0
    while True:
        opcode = at + code.startswith(bytes([_EXTENDED]), at)
        if opcode >= len(code) or code[opcode] >> 3 != _PUSH:
            break
        size, at = size + machine.word_bytes, opcode + 1
    number = _SUBTRACT.get(code[at : at + 3], 0)
    if number and at + 3 + number <= len(code):
        size += number_at(code, at + 3, number, True)
    size += machine.entry_stack_bytes
    own = FrameRelative(ByteOffset(-machine.entry_stack_bytes))
    return row_of_offsets(machine, machine.stack_pointer, size, own)


def return_register(machine: Architecture) -> DwarfRegister:
    """The column of the return address in the call-frame information of x86 (psABIs)."""
    return _numbered(machine, "ip")


def frame_register(machine: Architecture) -> DwarfRegister:
    """The register that the psABIs of x86 suggest for the frame pointer."""
    return _numbered(machine, "bp")


def _numbered(machine: Architecture, name: str) -> DwarfRegister:
    return next(DwarfRegister(number) for number, one in machine.registers.items() if one == name)
