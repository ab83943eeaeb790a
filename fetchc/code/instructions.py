"""Instruction boundaries, by a disassembler: what ``--at FUNCTION+N`` is checked with.

capstone is optional and dear to import; nothing on the usual way of ``compile`` comes here.
"""

from __future__ import annotations

from fetchc.diag.errors import reject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.units import Address

__all__ = ["instruction_starts", "is_instruction_start"]


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
    try:
        import capstone
    except ImportError as error:
        raise reject(
            "FC0905",
            "instruction boundaries cannot be checked without a disassembler",
            help="install it: pip install capstone",
        ) from error
    modes = {
        "x86_64": (capstone.CS_ARCH_X86, capstone.CS_MODE_64),
        "i386": (capstone.CS_ARCH_X86, capstone.CS_MODE_32),
        "aarch64": (capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM),
    }
    if architecture not in modes:
        raise reject("FC0905", f"`{architecture}` machine code cannot be disassembled")
    decoded = 0
    for address, size, _, _ in capstone.Cs(*modes[architecture]).disasm_lite(code, base):
        yield address
        decoded = address + size - base
    if decoded < len(code):
        raise reject(
            "FC0206",
            f"the bytes at {base + decoded:#x} are not an instruction",
            help="probe at an address before them",
        )
