"""Which machine a program is for.

Source: https://www.sco.com/developers/gabi/latest/ch4.eheader.html and the psABIs.
"""

from __future__ import annotations

from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.elf.file import Elf

__all__ = ["architecture_of", "loaded_module"]

# e_machine -> key of targets/arch; (key of 64-bit files, key of 32-bit files).
ARCHITECTURES = {
    3: ("", "i386"),
    8: ("mips64", "mips"),
    21: ("ppc64le", ""),
    22: ("s390x", "s390"),
    40: ("", "arm"),
    62: ("x86_64", "x32"),
    183: ("aarch64", "aarch64_ilp32"),
    243: ("riscv64", "riscv32"),
    258: ("loongarch64", ""),
}
RELOCATABLE = 1  # ET_REL
_CORE = 4  # ET_CORE


def architecture_of(elf: Elf) -> str:
    """The machine's key of ``targets/arch``; DebugInfoError FC0905 where none can be.

    A file that is not linked is no program: its addresses are not final. Nor is a core dump.
    """
    if elf.kind == _CORE:
        help = "name the program that it was dumped from: `file` shows it"
        raise DebugInfoError(
            "FC0905", elf.path, "a core dump, which has no code to probe", help=help
        )
    if elf.kind == RELOCATABLE:
        raise DebugInfoError(
            "FC0905",
            elf.path,
            "an object file or kernel module, whose addresses are not final",
            help=loaded_module(elf.path) or "name the program or library that it is linked into",
        )
    wide, narrow = ARCHITECTURES.get(elf.machine, ("", ""))
    key = wide if elf.word_bytes == 8 else narrow
    if key == "ppc64le" and not elf.little_endian:
        key = "ppc64"
    if not key:
        what = f"programs for machine {elf.machine} of the ELF registry are not read"
        raise DebugInfoError("FC0905", elf.path, what)
    return key


def loaded_module(path: str) -> str | None:
    """What to name in place of a kernel module's file, as it is or compressed; None of others."""
    import re

    found = re.search(r"([\w-]+)\.ko(\.(xz|gz|zst))?\Z", path)
    if found is None:
        return None
    return (
        f"name the module in a kernel that has loaded it: `-x kernel:{found[1].replace('-', '_')}`"
    )
