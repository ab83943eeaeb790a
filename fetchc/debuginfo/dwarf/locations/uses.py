"""How a file uses one of its functions: by calls, or by its address.

A compiler may change how a function is called where it sees all of the calls: one whose address is
stored keeps what its type tells, and so does one whose calls are not described, which they are
wherever gcc or clang optimise (clang from DWARF 4 on).
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.locations.call_sites import tells_of_tail_calls
from fetchc.debuginfo.dwarf.locations.callers import described_calls
from fetchc.program.entities import Uses
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.dwarf.locations.code_uses import CodeUses
    from fetchc.debuginfo.elf.elf_file import Elf
    from fetchc.program.entities import Function

__all__ = ["uses"]

_ET_EXEC = 2
_PF_X = 1
_MOST_CALLS = 64  # that are looked at


def uses(elf: Elf, info: DebugInfo, function: Function, code: CodeUses | None) -> Uses:
    """How ``function`` is used; no uses where what calls of the machine look like is not told."""
    die = None if function.die is None else info.die(function.die)
    optimised = die is not None and (die.unit.version < 4 or tells_of_tail_calls(info, die))
    if code is None:
        return Uses((), False, optimised)
    calls: list[Address] = []
    for address in described_calls(elf, info, function, code):
        calls.append(address)
        if len(calls) == _MOST_CALLS:
            break
    return Uses(tuple(calls), _is_stored(elf, function, code), optimised)


def _is_stored(elf: Elf, function: Function, code: CodeUses) -> bool:
    # An aligned word of the data, which the addend of a relocation is, too; an instruction that
    # computes it from a distance; where the file has one place in memory, four bytes of the code.
    # Not so in the function's own code: AddressSanitizer stores the address of a function in its
    # frame, for its reports. Source: gcc/asan.cc (asan_emit_stack_protection, "frame[2]"); LLVM,
    # lib/Transforms/Instrumentation/AddressSanitizer.cpp ("Write the PC to redzone[2]").
    address, size = function.address, function.size or 0
    if code.takes_address(address, size):
        return True
    word = int(address).to_bytes(elf.word_bytes, "little" if elf.little_endian else "big")
    for segment in elf.segments:
        if not segment.file_size:
            continue
        data = elf.read(segment.address, segment.file_size)
        if segment.flags & _PF_X:
            own = address - segment.address
            others = data if own < 0 else data[:own] + data[own + size :]
            if elf.kind == _ET_EXEC and address < 1 << 31 and word[:4] in others:
                return True
            continue
        at = data.find(word)
        while at >= 0:
            if (segment.address + at) % elf.word_bytes == 0:
                return True
            at = data.find(word, at + 1)
    return False
