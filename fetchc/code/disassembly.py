"""Finds instruction boundaries and the exits of a function, with a disassembler.

What ``--at FUNCTION+N`` is checked with, and where ``--return`` of a Go function probes.

Importing capstone is slow; nothing on the usual way of ``compile`` comes here.
"""

from __future__ import annotations

from fetchc.diag.diagnostic import reject
from fetchc.quantities import Address
from fetchc.record import Record
from fetchc.target.machines import architecture as machine_of
from fetchc.target.machines import parse_instruction, return_instructions, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import ModuleType
    from typing import Any

    from capstone import Cs, CsInsn

    from fetchc.diag.diagnostic import CompileError

__all__ = [
    "Exits",
    "bytes_left",
    "exits",
    "falls_through",
    "first_writes",
    "instruction_starts",
    "instructions",
    "is_instruction_start",
    "jump_targets",
    "keeps",
    "not_code",
    "only_read",
    "reaches",
    "stack_accesses",
    "swept",
    "taken",
    "taken_off",
    "written",
]

# ------------------------------------------------------------------------------
# A function's instructions one after the other, constants among them left out.
#
# 32-bit Arm loads what fits into no instruction from after the code, within the function. A load
# reaches ahead only, so each constant is found before the sweep gets there, and none is taken for
# an instruction. Other machines keep constants in sections of their own.


def swept(disassembler: Cs, code: bytes, base: Address, architecture: str) -> Iterator[CsInsn]:
    """The instructions of the function ``code`` at ``base``.

    Raises CompileError FC0206 where bytes are neither an instruction nor a constant of a load.
    """
    raw = table(f"arch/{architecture}").get("constants")
    undefined = [] if raw is None else [parse_instruction(text) for text in raw["undefined"]]
    constants: dict[int, int] = {}  # their sizes by their positions
    position = 0
    while position < len(code):
        skipped = constants.get(position, 0)
        for each in undefined:
            skipped = each.size if each.starts(code, position) else skipped
        start = position = position + skipped
        for found in disassembler.disasm(code[start:] if start else code, base + start):
            if position in constants:
                break
            loaded = None if raw is None else _loaded(code, position, raw)
            if loaded is not None:
                constants[loaded] = 4
            yield found
            position += found.size
        if not skipped and position == start:
            raise not_code(Address(base + position))


def taken_off(code: bytes, position: int, architecture: str) -> int | None:
    """By how many bytes the return instruction at ``position`` moves the stack pointer up.

    ``code`` is the function's. On most machines that is 0: the frame is gone before. None where the
    instruction does not say it.
    """
    raw = table(f"arch/{architecture}")["returns"]
    word = int.from_bytes(code[position : position + 8], "little")
    for text, (first, bits) in raw.get("takes", {}).items():
        if parse_instruction(text).starts(code, position):
            return int(word >> first & (1 << bits) - 1)
    for text, load in raw.get("takes_loaded", {}).items():
        if parse_instruction(text).starts(code, position):
            before = position - parse_instruction(load).size
            if before < 0 or not parse_instruction(load).starts(code, before):
                return None
            loaded = _loaded(code, before, table(f"arch/{architecture}")["constants"])
            return None if loaded is None else int.from_bytes(code[loaded : loaded + 4], "little")
    is_return = any(each.starts(code, position) for each in return_instructions(architecture))
    return 0 if is_return else None


def _loaded(code: bytes, position: int, raw: Mapping[str, Any]) -> int | None:
    # Where in the code the constant is that the instruction there loads, if it loads one.
    if not any(parse_instruction(text).starts(code, position) for text in raw["loads"]):
        return None
    word = int.from_bytes(code[position : position + 4], "little")
    return int(position + raw["ahead"] + (word & (1 << raw["bits"]) - 1))


def not_code(address: Address) -> CompileError:
    """The refusal of bytes that are no instruction."""
    return reject(
        "FC0206",
        f"the bytes at {address:#x} are not an instruction",
        help="probe at an address before them",
        reason="undecodable code",
    )


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
    """Addresses of the instructions from ``base`` on, one after the other.

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
    has them there, is among instructions. Raises CompileError as :func:`is_instruction_start`
    does.
    """
    disassembler = _disassembler(architecture)
    capstone = _capstone()

    disassembler.detail = True
    leaving = return_instructions(architecture)
    counter = table(f"arch/{architecture}")["disassembler"].get("counter")
    end = base + len(code)
    returns: list[Address] = []
    jumps: list[Address | None] = []
    calls: set[Address | None] = set()
    by_table = False
    distances = 0  # above 0 shortly after an instruction that loads how far a case is
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


def falls_through(code: bytes, address: Address, architecture: str) -> bool:
    """Whether control passes on from the instruction at ``address``, the first of ``code``.

    Raises CompileError FC0905 as :func:`is_instruction_start` does.
    """
    first = next(instructions(code, address, architecture), None)
    capstone = _capstone()

    away = (capstone.CS_GRP_JUMP, capstone.CS_GRP_RET, capstone.CS_GRP_IRET, capstone.CS_GRP_INT)
    return first is not None and not any(first.group(group) for group in away)


def jump_targets(code: bytes, base: Address, architecture: str) -> frozenset[Address | None]:
    """Where the jumps in the function ``code`` at ``base`` lead; None for computed ones.

    Raises CompileError as :func:`is_instruction_start` does.
    """
    disassembler = _disassembler(architecture)
    capstone = _capstone()

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
    capstone = _capstone()

    if instruction.mnemonic not in _DISTANCES:
        return False
    last = instruction.operands[-1]
    return bool(last.type == capstone.CS_OP_MEM and last.mem.index)


def _by_table(instruction: CsInsn) -> bool:
    # jmp *(table)(,%rax,8): a switch, which leads back into the function.
    capstone = _capstone()

    if not instruction.operands:
        return False
    last = instruction.operands[-1]
    return bool(last.type == capstone.CS_OP_MEM and last.mem.index)


def _target(instruction: CsInsn) -> Address | None:
    capstone = _capstone()

    operands = instruction.operands
    if operands and operands[-1].type == capstone.CS_OP_IMM:
        return Address(operands[-1].imm)
    return None


def _capstone() -> ModuleType:
    """The library; raises CompileError FC0905 where it is not installed."""
    try:
        import capstone
    except ImportError as error:
        raise reject(
            "FC0905",
            "instruction boundaries cannot be checked without a disassembler",
            help="install it: pip install capstone",
        ) from error
    library: ModuleType = capstone
    return library


def _disassembler(architecture: str) -> Cs:
    capstone = _capstone()
    names = table(f"arch/{architecture}")["disassembler"]
    modes = sum([getattr(capstone, mode) for mode in names["modes"]])
    found: Cs = capstone.Cs(getattr(capstone, names["architecture"]), modes)
    return found


# ------------------------------------------------------------------------------
# Whether code that called a function takes what it returned.
#
# A register that a call changes holds nothing of the caller's after it. So where it is read
# before it is written there, the callee has returned something in it. A call may change fewer
# registers than the convention lets it (gcc's -fipa-ra), so the callee's code is asked whether it
# writes them.

_SAME = frozenset(
    {"xor", "sub", "sbb", "pxor", "xchg"}
)  # of a register with itself: its value does not matter
_CONSTANT = {"or": -1, "and": 0}  # whatever the register contains


def taken(code: bytes, address: Address, architecture: str) -> frozenset[str]:
    """The registers, by the kernel's names, that ``code`` reads first; up to the next call or jump.

    ``code`` is the code at ``address``, after a call. Raises CompileError FC0905 where there is
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


def ignores(code: bytes, address: Address, architecture: str, register: str) -> bool:
    """Whether the function ``code`` surely reads nothing of ``register`` as its caller left it.

    ``register`` is by the kernel's name. False where a call, or code elsewhere, may read it.
    Raises CompileError FC0905 as :func:`is_instruction_start` does.
    """
    capstone = _capstone()

    straight, end = True, address + len(code)
    reached = address
    for instruction in instructions(code, address, architecture):
        reached = Address(instruction.address + instruction.size)
        reads, writes = instruction.regs_access()
        if _depends(instruction) and register in _names(instruction, reads, architecture):
            return False
        if straight and register in _names(instruction, writes, architecture):
            return True
        if instruction.group(capstone.CS_GRP_CALL):
            return False
        if instruction.group(capstone.CS_GRP_JUMP):
            target, straight = _target(instruction), False
            if target is None or not address <= target < end:
                return False
    return reached == end


def stack_accesses(
    code: bytes, address: Address, architecture: str
) -> Iterator[tuple[Address, str, int]]:
    """What ``code`` reads, writes or takes the address of by a register and a distance.

    The instruction's address, the kernel's name of the register, and the distance in bytes. Raises
    CompileError as :func:`taken` does.
    """
    capstone = _capstone()

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


def only_read(code: bytes, address: Address, architecture: str) -> frozenset[str]:
    """The registers, by the kernel's names, that instructions of ``code`` read and none writes."""
    read: set[str] = set()
    for instruction in instructions(code, address, architecture):
        if _depends(instruction):
            read |= _names(instruction, instruction.regs_access()[0], architecture)
    return frozenset(read - written(code, address, architecture))


def bytes_left(
    code: bytes, address: Address, architecture: str, register: str, start: Address
) -> int | None:
    """How many bytes after ``code`` a register has of a value that is there from ``start`` on.

    ``code`` is the function's from its entry at ``address`` on, ``register`` the kernel's name.
    Where the instruction before ``start`` copies the value there, it may copy the first bytes
    only and extend them (``movswq %di,%rcx``); a later one may do so in the register itself. 0
    where ``start`` is the entry and anything else writes the register, None where nothing does.
    Raises CompileError as :func:`taken` does.
    """
    capstone = _capstone()

    left: int | None = None
    for instruction in instructions(code, address, architecture):
        if register not in _names(instruction, instruction.regs_access()[1], architecture):
            continue
        copied, source = 0, ""
        if instruction.mnemonic.startswith("mov") and len(instruction.operands) == 2:
            last = instruction.operands[1]
            if last.type == capstone.CS_OP_REG:
                copied = last.size
                (source,) = _names(instruction, [last.reg], architecture)
        if instruction.address < start:
            left = copied or None
        elif source == register:
            left = copied if left is None else min(left, copied)
        elif start <= address:
            return 0
    return left


def keeps(
    parts: Iterable[tuple[Address, bytes]],
    architecture: str,
    register: str,
    start: Address,
    site: Address,
    survives: Callable[[Address], bool],
) -> bool:
    """Whether a register has at ``site`` what it has at ``start``, whichever way control takes.

    ``parts`` are the function's code, ``register`` is the kernel's name of one that calls may
    change, and ``survives`` says whether the value is still there after the call that ends at an
    address. After another call it is there again where the code loads it from where it has stored
    it. The function is one of x86-64. Raises CompileError as :func:`taken` does.
    """
    capstone = _capstone()

    code = {
        each.address: each
        for base, part in parts
        for each in instructions(part, base, architecture)
    }
    # A switch may lead to any of the instructions that no other one precedes.
    stops = (capstone.CS_GRP_RET, capstone.CS_GRP_INT)
    ends = {
        address
        for address, each in code.items()
        if each.mnemonic == "jmp" or any(each.group(group) for group in stops)
    }
    begins = [address + code[address].size for address in ends]
    slots = {slot for each in code.values() if (slot := _slot(each, 1, register, architecture))}
    first = next((address for address in sorted(code) if address >= start), site)
    waiting, seen = [(first, True)], set()
    while waiting:
        address, has = waiting.pop()
        if address not in code or (address, has) in seen:
            continue
        seen.add((address, has))
        if address == site and not has:
            return False
        instruction = code[address]
        after = address + instruction.size
        if instruction.group(capstone.CS_GRP_CALL):
            has = has and survives(Address(after))
        elif _slot(instruction, 0, register, architecture) in slots:
            has = True
        if instruction.group(capstone.CS_GRP_JUMP):
            target = _target(instruction)
            waiting += [(one, has) for one in (begins if target is None else (target,))]
        if address not in ends:
            waiting.append((after, has))
    return True


def reaches(
    code: bytes,
    base: Address,
    architecture: str,
    starts: Callable[[Address], bool],
    site: Address,
    stops: frozenset[Address],
) -> bool:
    """Whether control gets from an instruction of ``starts`` to ``site`` without one of ``stops``.

    Raises CompileError as :func:`taken` does.
    """
    capstone = _capstone()

    found = {each.address: each for each in instructions(code, base, architecture)}
    ending = (capstone.CS_GRP_RET, capstone.CS_GRP_INT)
    ends = {
        address
        for address, each in found.items()
        if each.mnemonic in ("jmp", "b", "br") or any(each.group(group) for group in ending)
    }
    begins = [address + found[address].size for address in ends]  # where a switch may lead
    waiting = [address for address in found if starts(Address(address))]
    seen = set(stops) - {site}
    while waiting:
        address = waiting.pop()
        if address == site:
            return True
        if address in seen or address not in found:
            continue
        seen.add(Address(address))
        each = found[address]
        if each.group(capstone.CS_GRP_JUMP):
            target = _target(each)
            waiting += begins if target is None else (target,)
        if address not in ends:
            waiting.append(address + each.size)
    return False


def _slot(instruction: CsInsn, position: int, register: str, architecture: str) -> str:
    # The stack slot that a `mov` loads the register from (position 0 has the register) or stores
    # it to (position 1); "" of other instructions.
    capstone = _capstone()

    operands = instruction.operands
    if instruction.mnemonic not in ("mov", "movabs") or len(operands) != 2:
        return ""
    own, other = operands[position], operands[1 - position]
    if own.type != capstone.CS_OP_REG or other.type != capstone.CS_OP_MEM or other.mem.index:
        return ""
    if register not in _names(instruction, [own.reg], architecture) or not other.mem.base:
        return ""
    return f"{instruction.reg_name(other.mem.base)}{other.mem.disp:+d}"


def first_writes(
    code: bytes, address: Address, architecture: str
) -> Iterator[tuple[Address, set[str]]]:
    """For each instruction up to the next call or jump: the address after it, and its writes.

    Writes are registers, by the kernel's names. Raises CompileError as :func:`taken` does.
    """
    for instruction in _straight(code, address, architecture):
        names = _names(instruction, instruction.regs_access()[1], architecture)
        yield Address(instruction.address + instruction.size), names


def _straight(code: bytes, address: Address, architecture: str) -> Iterator[CsInsn]:
    # Up to where control may come from elsewhere or go there, that included.
    capstone = _capstone()

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
        is_immediate: bool = constant.type == capstone.CS_OP_IMM
        return not (is_immediate and (constant.imm - _CONSTANT[name]) & whole == 0)
    return True


def _names(instruction: CsInsn, registers: list[int], architecture: str) -> set[str]:
    aliases = machine_of(architecture).aliases
    spelled = [str(instruction.reg_name(each)) for each in registers]
    return {aliases[each][0] if each in aliases else each for each in spelled}
