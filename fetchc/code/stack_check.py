"""Go's stack check: where a function's own code begins.

A Go function compares the stack pointer with its goroutine's limit first, and when the
stack must grow it is entered a second time. A probe behind the check fires once a call.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.target.model import Instruction, StackCheck

__all__ = ["after_stack_check"]


def after_stack_check(code: bytes, check: StackCheck) -> int:
    """Offset of the instruction behind the stack check at the start of ``code``, else 0.

    Only whole, known instructions are stepped over, and none of them writes the stack
    pointer or a register that holds an argument (the data says which, and the tests hold
    it to a disassembler). 40 bytes of code are enough.
    """
    for sequence in check.sequences:
        position = size = 0
        for encodings in sequence:
            size = _matched(code, position, encodings)
            if not size:
                break
            position += size
        else:
            return _target(code, position - size, check) if check.target else position
    return 0


def _target(code: bytes, position: int, check: StackCheck) -> int:
    # Where the jump at ``position``, which is the check's last instruction, goes.
    instruction = int.from_bytes(code[position : position + 4], "little")
    distance = 0
    for first, bits, to in check.target:
        distance |= (instruction >> first & (1 << bits) - 1) << to
    return position + distance


def _matched(code: bytes, position: int, encodings: tuple[Instruction, ...]) -> int:
    for encoding in encodings:
        if encoding.starts(code, position):
            return encoding.size if position + encoding.size <= len(code) else 0
    return 0
