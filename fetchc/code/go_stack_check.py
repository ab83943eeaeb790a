"""Go's stack check: where a function's own code begins.

A Go function compares the stack pointer with its goroutine's limit first, and when the
stack must grow it is entered a second time. A probe after the check fires once a call.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.target.machines import Growth, Instruction, StackCheck

__all__ = ["after_stack_check", "behind_bare_call", "growth_start"]


def after_stack_check(code: bytes, check: StackCheck) -> int:
    """Offset of the instruction after the stack check at the start of ``code``, else 0.

    Only whole instructions of the tables are stepped over, and none of them writes the stack
    pointer or a register that contains an argument (the data says which, and the tests compare
    it with a disassembler). 40 bytes of code are enough.
    """
    position, size = _last(code, check)
    if size and check.target:
        return position + _distance(code, position, check.target)
    return position + size


def growth_start(code: bytes, check: StackCheck) -> int:
    """Offset of the code that lets the stack grow, which ends with a jump to the start of ``code``.

    0 where there is no check. 40 bytes of code are enough.
    """
    position, size = _last(code, check)
    if not size or check.growth is None:
        return 0
    for jump, parts, more in check.growth.jumps:
        if jump.starts(code, position):
            return position + _distance(code, position, parts) + more
    return position + size


def behind_bare_call(code: bytes, growth: Growth) -> int:
    """Bytes of ``code``, which lets the stack grow, up to the end of its call if that comes first.

    Then no register is saved, as no argument is in one. 0 where all of them are saved.
    32 bytes are enough.
    """
    position = 0
    while skipped := _matched(code, position, growth.padding):
        position += skipped
    called = _matched(code, position, growth.calls)
    return position + called + growth.more if called else 0


def _last(code: bytes, check: StackCheck) -> tuple[int, int]:
    # Offset and size of the check's last instruction; (0, 0) without a check.
    for sequence in check.sequences:
        position = size = 0
        for encodings in sequence:
            position += size
            size = _matched(code, position, encodings)
            if not size:
                break
        else:
            return position, size
    return 0, 0


def _distance(code: bytes, position: int, parts: tuple[tuple[int, int, int], ...]) -> int:
    # How far the jump at ``position`` leads.
    instruction = int.from_bytes(code[position : position + 8], "little")
    distance = 0
    for first, bits, to in parts:
        distance |= (instruction >> first & (1 << bits) - 1) << to
    return distance


def _matched(code: bytes, position: int, encodings: tuple[Instruction, ...]) -> int:
    for encoding in encodings:
        if encoding.starts(code, position):
            return encoding.size if position + encoding.size <= len(code) else 0
    return 0
