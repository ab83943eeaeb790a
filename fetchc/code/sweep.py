"""A function's instructions one behind the other, constants among them left out.

32-bit Arm loads what fits into no instruction from behind the code, within the function. A load
reaches ahead only, so each constant is known when the sweep gets there, and none is taken for an
instruction. Other machines keep constants in sections of their own.
"""

from __future__ import annotations

from fetchc.diag.errors import reject
from fetchc.target.load import instruction, return_instructions, table
from fetchc.units import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from capstone import Cs, CsInsn

    from fetchc.diag.errors import CompileError

__all__ = ["not_code", "swept", "taken_off"]


def swept(disassembler: Cs, code: bytes, base: Address, architecture: str) -> Iterator[CsInsn]:
    """The instructions of the function ``code`` at ``base``.

    Raises CompileError FC0206 where bytes are neither an instruction nor a known constant.
    """
    raw = table(f"arch/{architecture}").get("constants")
    undefined = [] if raw is None else [instruction(text) for text in raw["undefined"]]
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
        if instruction(text).starts(code, position):
            return int(word >> first & (1 << bits) - 1)
    for text, load in raw.get("takes_loaded", {}).items():
        if instruction(text).starts(code, position):
            before = position - instruction(load).size
            if before < 0 or not instruction(load).starts(code, before):
                return None
            loaded = _loaded(code, before, table(f"arch/{architecture}")["constants"])
            return None if loaded is None else int.from_bytes(code[loaded : loaded + 4], "little")
    known = any(each.starts(code, position) for each in return_instructions(architecture))
    return 0 if known else None


def _loaded(code: bytes, position: int, raw: Mapping[str, Any]) -> int | None:
    # Where in the code the constant is that the instruction there loads, if it loads one.
    if not any(instruction(text).starts(code, position) for text in raw["loads"]):
        return None
    word = int.from_bytes(code[position : position + 4], "little")
    return int(position + raw["ahead"] + (word & (1 << raw["bits"]) - 1))


def not_code(address: Address) -> CompileError:
    """The refusal of bytes that are no instruction."""
    return reject(
        "FC0206",
        f"the bytes at {address:#x} are not an instruction",
        help="probe at an address before them",
    )
