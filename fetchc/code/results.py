"""Whether code that called a function takes what it returned.

A register that a call changes holds nothing of the caller's behind it. So where it is read before
it is written there, the callee has returned something in it. A call may change fewer registers than
the convention lets it (gcc's -fipa-ra), so the callee's code is asked whether it writes them.
"""

from __future__ import annotations

from fetchc.code.instructions import instructions
from fetchc.target.load import architecture as machine_of
from fetchc.units import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from capstone import CsInsn

__all__ = ["first_writes", "stack_accesses", "taken", "written"]

_SAME = frozenset({"xor", "sub", "sbb", "pxor", "xchg"})  # of a register with itself: not its worth
_CONSTANT = {"or": -1, "and": 0}  # whatever the register held


def taken(code: bytes, address: Address, architecture: str) -> frozenset[str]:
    """The registers, by the kernel's names, that ``code`` reads first; up to the next call or jump.

    ``code`` is what stands at ``address``, behind a call. Raises CompileError FC0905 where there is
    no disassembler.
    """
    read: set[str] = set()
    written: set[str] = set()
    for instruction in _straight(code, address, architecture):
        reads, writes = instruction.regs_access()
        if _depends(instruction):
            read |= _names(instruction, reads, architecture) - written
        written |= _names(instruction, writes, architecture)
    return frozenset(read)


def stack_accesses(
    code: bytes, address: Address, architecture: str
) -> Iterator[tuple[Address, str, int]]:
    """What ``code`` reads, writes or takes the address of by a register and a distance.

    The instruction's address, the kernel's name of the register, and the distance in bytes. Raises
    CompileError as :func:`taken` does.
    """
    import capstone

    for instruction in instructions(code, address, architecture):
        for operand in instruction.operands:
            if operand.type == capstone.CS_OP_MEM and operand.mem.base:
                (base,) = _names(instruction, [operand.mem.base], architecture)
                yield Address(instruction.address), base, operand.mem.disp


def written(code: bytes, address: Address, architecture: str) -> frozenset[str]:
    """The registers, by the kernel's names, that the instructions of ``code`` write."""
    found: set[str] = set()
    for instruction in instructions(code, address, architecture):
        found |= _names(instruction, instruction.regs_access()[1], architecture)
    return frozenset(found)


def first_writes(
    code: bytes, address: Address, architecture: str
) -> Iterator[tuple[Address, set[str]]]:
    """Of each instruction of ``code`` up to the next call or jump: what is behind it, its writes.

    These are registers, by the kernel's names. Raises CompileError as :func:`taken` does.
    """
    for instruction in _straight(code, address, architecture):
        names = _names(instruction, instruction.regs_access()[1], architecture)
        yield Address(instruction.address + instruction.size), names


def _straight(code: bytes, address: Address, architecture: str) -> Iterator[CsInsn]:
    # Up to where control may come from elsewhere or go there, that included.
    import capstone

    away = (capstone.CS_GRP_JUMP, capstone.CS_GRP_RET, capstone.CS_GRP_CALL, capstone.CS_GRP_INT)
    for instruction in instructions(code, address, architecture):
        yield instruction
        if any(instruction.group(group) for group in away):
            return


def _depends(instruction: CsInsn) -> bool:
    # Not so what fills a gap, what makes room on the stack, and the shortest ways to a constant.
    name, operands = instruction.mnemonic, instruction.operands
    if name in ("nop", "push"):
        return False
    if len(operands) == 2 and name in _SAME:
        first, second = operands
        return not (first.type == second.type and first.reg == second.reg)
    if len(operands) == 2 and name in _CONSTANT:
        import capstone

        register, constant = operands
        whole = (1 << 8 * register.size) - 1
        known: bool = constant.type == capstone.CS_OP_IMM
        return not (known and (constant.imm - _CONSTANT[name]) & whole == 0)
    return True


def _names(instruction: CsInsn, registers: list[int], architecture: str) -> set[str]:
    aliases = machine_of(architecture).aliases
    spelled = [str(instruction.reg_name(each)) for each in registers]
    return {aliases[each][0] if each in aliases else each for each in spelled}
