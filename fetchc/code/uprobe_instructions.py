"""Instructions where uprobes set no probe, or one that changes what the program does.

A definition is taken whatever is at its offset. The kernel looks at the instruction when a process
maps it, and where it will not step it nothing is set, and nothing is said. The tables are in
``targets/arch`` (``uprobes``), with their sources; ``tests/live/test_unprobeable.py`` holds them to
the running kernel.
"""

from __future__ import annotations

from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from fetchc.target.machines import Instruction

__all__ = [
    "LONGEST",
    "Unprobeable",
    "is_emulated",
    "may_be_jumped_to",
    "nop_bytes",
    "unchanging_bytes",
    "unprobeable",
]

LONGEST = 15  # bytes of an instruction: Intel SDM, volume 2, 2.3.11
_OPERAND_SIZE = 0x66


class Unprobeable(Record):
    """Why an instruction takes no probe: ``what`` it has, and what a probe there does.

    ``harmful``: the probe is set, and the program does something else then.
    """

    what: str
    harmful: bool = False


def unprobeable(code: bytes, rules: Mapping[str, Any]) -> Unprobeable | None:
    """What keeps uprobes from the instruction at the start of ``code``; None where nothing does.

    ``rules`` is the ``uprobes`` table of the machine. ``code`` may go on after the instruction.
    """
    if "words" in rules:
        return _word(code, rules)
    narrow = False
    passed = bytes.fromhex(rules["passed"])
    for at, byte in enumerate(code):
        if byte == _OPERAND_SIZE:
            narrow = True
        elif name := rules["prefixes"].get(f"{byte:02x}"):
            return Unprobeable(f"it has the prefix `{name}`")
        elif byte not in passed:
            return _opcode(code[at:], rules, narrow)
    return None


def nop_bytes(code: bytes, rules: Mapping[str, Any]) -> int:
    """Bytes of the NOP of x86 at the start of ``code``, 0 where none is there.

    What the kernel takes for one (insn_is_nop, insn_is_nopl in arch/x86/kernel/uprobes.c): 90 and
    0f 1f /0 after any prefixes. ``rules`` is as in :func:`unprobeable`.
    """
    passed = bytes.fromhex(rules["passed"])
    for at, byte in enumerate(code):
        if byte == _OPERAND_SIZE or byte in passed:
            continue
        if byte == 0x90:
            return at + 1
        if code[at : at + 2] != b"\x0f\x1f" or len(code) < at + 3 or code[at + 2] >> 3 & 7:
            return 0
        mode, base = code[at + 2] >> 6, code[at + 2] & 7
        scaled = mode != 3 and base == 4  # an index byte follows
        if scaled:
            base = code[at + 3] & 7 if len(code) > at + 3 else 0
        far = mode == 2 or (mode == 0 and base == 5)
        return at + 3 + scaled + (4 if far else mode == 1)
    return 0


def _opcode(code: bytes, rules: Mapping[str, Any], narrow: bool) -> Unprobeable | None:
    # From after the prefixes on.
    first, second = code[0], code[1] if len(code) > 1 else 0
    length = rules["vector"].get(f"{first:02x}")
    if length is not None and second >= rules["vector_from"]:
        return _vector(code[length : length + 2], rules)
    if first in bytes.fromhex(rules["refused"]):
        return Unprobeable(f"its opcode is {first:#04x}")
    if _stack_segment(code, rules):
        return Unprobeable("it writes the stack segment")
    near = first == 0x0F and second in bytes.fromhex(rules["near_branches"])
    if narrow and (near or first in bytes.fromhex(rules["branches"])):
        return Unprobeable("it is a branch with the prefix `data16`")
    return None


def _vector(code: bytes, rules: Mapping[str, Any]) -> Unprobeable | None:
    # The kernel looks an instruction of AVX up by its opcode in the table of the plain ones, and
    # treats it as it treats those.
    opcode = code[0] if code else 0
    if opcode in bytes.fromhex(rules["refused"]) or _stack_segment(code, rules):
        return Unprobeable(f"it is a vector instruction with the opcode {opcode:#04x}")
    if opcode in bytes.fromhex(rules["branches"] + rules["own_ways"]):
        what = f"it is a vector instruction with the opcode {opcode:#04x}, as a branch has"
        return Unprobeable(what, harmful=True)
    return None


def _stack_segment(code: bytes, rules: Mapping[str, Any]) -> bool:
    # mov to %ss masks exceptions for the instruction after it.
    return len(code) > 1 and code[0] == rules["to_segment"] and code[1] >> 3 & 7 == 2


def _word(code: bytes, rules: Mapping[str, Any]) -> Unprobeable | None:
    word = int.from_bytes(code[:4], "little")
    if word in rules.get("taken", ()):
        return None
    for mask, value, what in rules["words"]:
        if word & mask == value:
            return Unprobeable(f"it is {what}")
    for mask, value, what in rules.get("harmful", ()):
        if word & mask == value:
            return Unprobeable(f"it is {what}", harmful=True)
    return None


# ------------------------------------------------------------------------------
# Instructions that the kernel emulates: a hit of one takes a fifteenth of the time.

_SHORT = frozenset([*range(0x70, 0x80), 0xE0, 0xE1, 0xE2, 0xE3, 0xEB])  # jcc, loop, jrcxz, jmp
_NEAR = rb"[\xe8\xe9]|\x0f[\x80-\x8f]"  # call, jmp, jcc


def is_emulated(code: bytes, encodings: Iterable[Instruction]) -> bool:
    """Whether the instruction at the start of ``code`` is one of those that a kernel emulates."""
    return any(each.starts(code, 0) for each in encodings)


def unchanging_bytes(code: bytes, rules: Mapping[str, Any], others: Iterable[Instruction]) -> int:
    """Bytes of the instruction at the start of ``code`` if nothing but the instruction pointer
    differs after it, else 0.

    A NOP, or one of ``others``. ``rules`` is as in :func:`unprobeable`.
    """
    for each in others:
        if each.starts(code, 0):
            return each.size
    return nop_bytes(code, rules)


def may_be_jumped_to(code: bytes, start: int, end: int) -> bool:
    """Whether a direct jump of x86 in ``code`` may lead past its offset ``start``, up to ``end``.

    All bytes that could be such a jump count, in the middle of other instructions, too: the answer
    may be yes where no jump is, never the other way round. It needs no disassembler, whose import
    takes as long as a small trace's start.
    """
    # rel8: jmp, jcc, loop and jrcxz lead 128 bytes back and 127 ahead. Intel SDM, volume 2.
    for at in range(max(start - 129, 0), min(end + 129, len(code) - 1)):
        if code[at] in _SHORT:
            distance = code[at + 1] - ((code[at + 1] & 0x80) << 1)
            if start < at + 2 + distance <= end:
                return True
    import re

    for found in re.finditer(_NEAR, code, re.DOTALL):
        at = found.end()
        distance = int.from_bytes(code[at : at + 4], "little", signed=True)
        if at + 4 <= len(code) and start < at + 4 + distance <= end:
            return True
    return False
