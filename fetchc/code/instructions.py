"""Instruction boundaries and ways out of a function, by a disassembler.

What ``--at FUNCTION+N`` is checked with, and where ``--return`` of a Go function probes.

capstone is optional and dear to import; nothing on the usual way of ``compile`` comes here.
"""

from __future__ import annotations

from fetchc.code.sweep import not_code, swept
from fetchc.diag.errors import reject
from fetchc.record import Record
from fetchc.target.load import return_instructions, table
from fetchc.units import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from capstone import Cs, CsInsn

__all__ = [
    "Exits",
    "exits",
    "goes_on",
    "instruction_starts",
    "instructions",
    "is_instruction_start",
    "jump_targets",
]


_DISTANCES = ("movsxd", "ldrsw", "ldrh", "ldrb")  # by switches of gcc and clang: x86-64, arm64
_NEAR = 8  # instructions from there to the jump


class Exits(Record):
    """The ways out of a function's code.

    ``returns`` are its return instructions; ``jumps`` the targets of jumps that leave it (None
    for a computed one), ``calls`` those of calls (None likewise). ``by_table``: a jump goes to an
    address out of a table, of a switch as a rule.
    """

    returns: tuple[Address, ...]
    jumps: tuple[Address | None, ...]
    calls: frozenset[Address | None]
    by_table: bool = False


def is_instruction_start(code: bytes, base: Address, address: Address, architecture: str) -> bool:
    """Whether an instruction of the function ``code`` at ``base`` starts at ``address``.

    Raises CompileError FC0206 where the bytes before it cannot be decoded, FC0905 where
    there is no disassembler for the architecture, or none installed.
    """
    for start in instruction_starts(code, base, architecture):
        if start >= address:
            return start == address
    return False


def instruction_starts(code: bytes, base: Address, architecture: str) -> Iterator[Address]:
    """Addresses of the instructions from ``base`` on, one behind the other.

    Raises CompileError as :func:`is_instruction_start` does.
    """
    lengths = table(f"arch/{architecture}").get("instructions")
    if lengths is not None:
        yield from _by_length(code, base, lengths)
        return
    disassembler = _disassembler(architecture)
    decoded = 0
    for address, size, _, _ in disassembler.disasm_lite(code, base):
        yield address
        decoded = address + size - base
    if decoded < len(code):
        raise not_code(Address(base + decoded))


def _by_length(code: bytes, base: Address, lengths: Mapping[str, Any]) -> Iterator[Address]:
    position = 0
    while position < len(code):
        yield Address(base + position)
        position += lengths["bytes"][code[position] >> lengths["shift"] & lengths["mask"]]


def instructions(code: bytes, base: Address, architecture: str) -> Iterator[CsInsn]:
    """The instructions of ``code`` at ``base`` with their operands, up to bytes that are none.

    Raises CompileError FC0905 as :func:`is_instruction_start` does.
    """
    disassembler = _disassembler(architecture)
    disassembler.detail = True
    yield from disassembler.disasm(code, base)


def exits(code: bytes, base: Address, architecture: str) -> Exits:
    """How control leaves the function ``code`` at ``base``, by every instruction in it.

    Go keeps jump tables in sections of their own, so that nothing but constants, where the machine
    has them there, stands among instructions. Raises CompileError as :func:`is_instruction_start`
    does.
    """
    disassembler = _disassembler(architecture)
    import capstone

    disassembler.detail = True
    leaving = return_instructions(architecture)
    counter = table(f"arch/{architecture}")["disassembler"].get("counter")
    end = base + len(code)
    returns: list[Address] = []
    jumps: list[Address | None] = []
    calls: set[Address | None] = set()
    by_table = False
    distances = 0  # above 0 shortly behind an instruction that loads how far a case is
    for instruction in swept(disassembler, code, base, architecture):
        position = instruction.address - base
        if any(each.starts(code, position) for each in leaving):
            returns.append(Address(instruction.address))
        elif instruction.group(capstone.CS_GRP_CALL):
            calls.add(_target(instruction))
        elif instruction.group(capstone.CS_GRP_JUMP):
            target = _target(instruction)
            if target is None and _by_table(instruction):
                by_table = True
            elif target is None and distances:
                pass  # by distances: a switch
            elif target is None or not base <= target < end:
                jumps.append(target)
        elif counter is not None and counter in map(
            instruction.reg_name, instruction.regs_access()[1]
        ):
            jumps.append(None)
        distances = _NEAR if _loads_distance(instruction) else max(distances - 1, 0)
    return Exits(tuple(returns), tuple(jumps), frozenset(calls), by_table)


def goes_on(code: bytes, address: Address, architecture: str) -> bool:
    """Whether control passes on from the instruction at ``address``, the first of ``code``.

    Raises CompileError FC0905 as :func:`is_instruction_start` does.
    """
    first = next(instructions(code, address, architecture), None)
    import capstone

    away = (capstone.CS_GRP_JUMP, capstone.CS_GRP_RET, capstone.CS_GRP_IRET, capstone.CS_GRP_INT)
    return first is not None and not any(first.group(group) for group in away)


def jump_targets(code: bytes, base: Address, architecture: str) -> frozenset[Address | None]:
    """Where the jumps in the function ``code`` at ``base`` lead; None for computed ones.

    Raises CompileError as :func:`is_instruction_start` does.
    """
    disassembler = _disassembler(architecture)
    import capstone

    disassembler.detail = True
    return frozenset(
        [
            _target(instruction)
            for instruction in swept(disassembler, code, base, architecture)
            if instruction.group(capstone.CS_GRP_JUMP)
        ]
    )


def _loads_distance(instruction: CsInsn) -> bool:
    # movslq (%rdx,%rax,4),%rax: how far a case of a switch is. Pointers to functions are as wide as
    # a word, and loaded otherwise.
    import capstone

    if instruction.mnemonic not in _DISTANCES:
        return False
    last = instruction.operands[-1]
    return bool(last.type == capstone.CS_OP_MEM and last.mem.index)


def _by_table(instruction: CsInsn) -> bool:
    # jmp *(table)(,%rax,8): a switch, which leads back into the function.
    import capstone

    if not instruction.operands:
        return False
    last = instruction.operands[-1]
    return bool(last.type == capstone.CS_OP_MEM and last.mem.index)


def _target(instruction: CsInsn) -> Address | None:
    import capstone

    operands = instruction.operands
    if operands and operands[-1].type == capstone.CS_OP_IMM:
        return Address(operands[-1].imm)
    return None


def _disassembler(architecture: str) -> Cs:
    try:
        import capstone
    except ImportError as error:
        raise reject(
            "FC0905",
            "instruction boundaries cannot be checked without a disassembler",
            help="install it: pip install capstone",
        ) from error
    names = table(f"arch/{architecture}")["disassembler"]
    modes = sum([getattr(capstone, mode) for mode in names["modes"]])
    return capstone.Cs(getattr(capstone, names["architecture"]), modes)
