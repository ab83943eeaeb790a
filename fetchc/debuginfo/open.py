"""Which reader a file is for."""

from __future__ import annotations

from fetchc.debuginfo.program import DwarfProgram
from fetchc.diag.errors import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.protocol import Program

__all__ = ["open_binary"]


def open_binary(path: str) -> Program:
    """Open an ELF file, ``kernel`` (the running one), ``kernel:MODULE``, or a kernel's BTF.

    Raises DebugInfoError FC0901, FC0902, FC0904 or FC0905 where it cannot be read.
    """
    if path == "kernel" or path.startswith("kernel:"):
        from fetchc.debuginfo.btf.open import open_running

        return open_running(path)
    try:
        return DwarfProgram(path)
    except DebugInfoError as refused:
        if refused.code != "FC0902":
            raise
        # Seldom, so an ELF file does not pay for the question.
        from fetchc.debuginfo.btf.open import open_file

        opened = open_file(path)
        if opened is None:
            raise
        return opened
