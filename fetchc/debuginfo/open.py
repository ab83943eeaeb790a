"""Which reader a file is for."""

from __future__ import annotations

from fetchc.debuginfo.program import DwarfProgram
from fetchc.diag.errors import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.protocol import Program

__all__ = ["open_binary"]


def open_binary(path: str, references: tuple[str, ...] = ()) -> Program:
    """Open an ELF file, ``kernel`` (the running one), ``kernel:MODULE``, a kernel's BTF, or .NET.

    ``HOST:NAME`` is an assembly of a single-file program of .NET. ``references`` are folders of
    assemblies that an image of .NET may refer to.

    Raises DebugInfoError FC0901, FC0902, FC0904 or FC0905 where it cannot be read.
    """
    if path == "kernel" or path.startswith("kernel:"):
        from fetchc.debuginfo.btf.open import open_running

        return open_running(path)
    try:
        program = DwarfProgram(path)
        if program.has_debug_info and not program.lacks_go:
            return program
        return _without_debug_info(program)
    except DebugInfoError as refused:
        if refused.code == "FC0901" and ":" in path:
            from fetchc.debuginfo.dotnet.bundle import open_in_bundle

            inside = open_in_bundle(path, references)
            if inside is not None:
                return inside
        if refused.code != "FC0902":
            raise
        # Seldom, so an ELF file does not pay for the question.
        with open(path, "rb") as file:
            head = file.read(0x206)
        # Firmware starts kernels as portable executables: they have magic numbers of their own.
        kernel = head[0x202:] == b"HdrS" or head[0x38:0x3C] in (b"ARM\x64", b"RSC\x05")
        if head.startswith(b"MZ") and not kernel:
            from fetchc.debuginfo.dotnet.program import DotnetProgram

            return DotnetProgram(path, references)
        from fetchc.debuginfo.btf.open import open_file

        opened = open_file(path)
        if opened is None:
            raise
        return opened


def _without_debug_info(program: DwarfProgram) -> Program:
    if program.in_kernel:
        from fetchc.debuginfo.btf.open import open_file

        return open_file(program.path, program.architecture) or program
    # Go's run time knows a program's functions and types, whatever the linker left out.
    from fetchc.debuginfo.go.stripped import stripped_go

    found = stripped_go(program.path, program.architecture)
    return program if found is None else found
