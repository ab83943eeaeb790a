"""Opens a file with the reader for its format."""

from __future__ import annotations

import os

from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.debuginfo.elf.headers import OtherFormat, UnreadableFile
from fetchc.debuginfo.environment import DEFAULT
from fetchc.debuginfo.safe_open import open_regular
from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.assemblies import Process
    from fetchc.debuginfo.environment import Environment
    from fetchc.debuginfo.separate.debug_file_search import Search
    from fetchc.program.protocol import Program

__all__ = ["open_binary"]


def open_binary(
    path: str,
    references: tuple[str, ...] = (),
    search: Search | None = None,
    machine: str | None = None,
    environment: Environment = DEFAULT,
    types: Program | None = None,
) -> Program:
    """Open a file, as :func:`_opened` says, that is of ``machine`` (a key of ``targets/arch``).

    BTF alone names no machine: it is taken for one of ``machine``, the running one by default.
    """
    program = _opened(path, references, search, machine, environment, types)
    if machine is not None and program.architecture != machine:
        what = f"it is of {program.architecture}, not of {machine}"
        raise DebugInfoError("FC0905", path, what, help="leave out --arch")
    return program


def _opened(
    path: str,
    references: tuple[str, ...],
    search: Search | None,
    machine: str | None,
    environment: Environment,
    types: Program | None,
) -> Program:
    """Open an ELF file, ``kernel`` (the running one), ``kernel:MODULE``, a kernel's BTF, or .NET.

    ``HOST:NAME`` is an assembly of a single-file program of .NET, ``/proc/PID:NAME`` what a
    process has compiled of one; ``types`` are for its casts. ``references`` are folders of
    assemblies that an image of .NET may refer to. ``search`` says where debug files are of an ELF
    file; of a process (``/proc/PID/exe``, ``/proc/PID/root/...``) it is opened as it is seen from
    here, with its own debug files.

    Raises DebugInfoError FC0901, FC0902, FC0904 or FC0905 where it cannot be read.
    """
    if path == "kernel" or path.startswith("kernel:"):
        _no_debug_file(path, search)
        from fetchc.debuginfo.btf.kernel_program import open_running

        return open_running(path, environment=environment)
    process = ""
    if path.startswith("/proc/"):
        if path[len("/proc/") :].partition(":")[0].isdecimal():
            from fetchc.debuginfo.running_process import open_in_process

            running = open_in_process(path, references, environment, types)
            if running is not None:
                return running
        from fetchc.debuginfo.separate.process_root import of_process

        process = "/".join(path.split("/", 3)[:3])
        path, search = of_process(path, search)
    try:
        program = DwarfProgram(path, search, True, environment)
        if program.has_debug_info and not program.lacks_go:
            return program
        return _without_debug_info(program, environment)
    except UnreadableFile as refused:
        if refused.path != path:
            raise
        if ":" in path:
            from fetchc.debuginfo.dotnet.dotnet_program import open_in_bundle

            inside = open_in_bundle(path, references, _runs_in(process, search))
            if inside is not None:
                return inside
        if "/" not in path:
            refused.help = _in_path(path) or refused.help
        raise
    except OtherFormat as refused:
        if refused.path != path:
            raise
        found = _no_elf(path, references, search, machine, refused, process, environment)
        if found is None:
            raise
        return found


def _no_elf(
    path: str,
    references: tuple[str, ...],
    search: Search | None,
    machine: str | None,
    refused: OtherFormat,
    process: str,
    environment: Environment,
) -> Program | None:
    # A file that is not ELF, by the reader of its format. None, and what helps, where none is.
    _no_debug_file(path, search)
    try:
        handle, _ = open_regular(path)
        with os.fdopen(handle, "rb") as file:
            head = file.read(0x206)
    except OSError as failed:  # of a disk, of /proc/PID/mem, or the file has gone meanwhile
        raise DebugInfoError.of(path, failed) from None
    # Firmware starts kernels as portable executables: they have magic numbers of their own.
    kernel = head[0x202:] == b"HdrS" or head[0x38:0x3C] in (b"ARM\x64", b"RSC\x05")
    if head.startswith(b"MZ") and not kernel:
        from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram

        process_of = _runs_in(process, search)
        return DotnetProgram(path, references, process=process_of, environment=environment)
    from fetchc.debuginfo.btf.kernel_program import open_file

    opened = open_file(path, of_btf=machine)
    if opened is None:
        from fetchc.debuginfo.elf.headers import loaded_module

        refused.help = _not_a_program(head) or loaded_module(path) or _PROGRAM
    return opened


def _runs_in(process: str, search: Search | None) -> Process | None:
    # The process whose program a path named, where its files are.
    if not process[len("/proc/") :].isdecimal():
        return None
    from fetchc.debuginfo.dotnet.assemblies import Process

    return Process(process, "" if search is None else search.root)


_PROGRAM = "name the program or library that the compiler wrote"


def _in_path(name: str) -> str | None:
    # A shell and a loader find files by their names alone; what is probed has a path.
    from fetchc.debuginfo.separate.debug_file_search import installed

    found = installed(name)
    return None if found is None else f"give its path: `{found}`"


def _not_a_program(head: bytes) -> str | None:
    if head.startswith(b"#!"):
        words = head[2:].split(b"\n")[0].decode("utf-8", "replace").split()
        return f"it is a script: probe what runs it, `{words[0]}`" if words else None
    if head.startswith((b"!<arch>\n", b"!<thin>\n")):
        return "it is an archive: name the program or library that it is linked into"
    return None


def _no_debug_file(path: str, search: Search | None) -> None:
    if search is not None and search.debug_file is not None:
        what = "debug files are of ELF programs and libraries"
        raise DebugInfoError("FC0905", path, what, help="leave out --debug-file")


def _without_debug_info(program: DwarfProgram, environment: Environment) -> Program:
    if program.in_kernel:
        from fetchc.debuginfo.btf.kernel_program import open_file

        return open_file(program.path, program.architecture) or program
    # Go's run time knows a program's functions and types, whatever the linker left out.
    from fetchc.debuginfo.go.stripped_program import stripped_go

    found = stripped_go(program.path, program.architecture, environment)
    return program if found is None else found
