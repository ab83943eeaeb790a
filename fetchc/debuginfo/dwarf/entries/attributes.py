"""What several readers of entries share: languages, the error for nonsense."""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries import constants as dw
from fetchc.diag.errors import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.dwarf.entries.units import Unit
    from fetchc.debuginfo.elf.file import Elf

__all__ = [
    "counts_from_zero",
    "has_namespaces",
    "is_c_family",
    "is_cpp",
    "is_go",
    "is_rust",
    "language_key",
    "linked_by_go",
    "main_language",
    "malformed",
]

C = frozenset({dw.DW_LANG_C89, dw.DW_LANG_C, dw.DW_LANG_C99, dw.DW_LANG_C11, dw.DW_LANG_C17})
C |= {dw.DW_LANG_C23}
CPP = frozenset({dw.DW_LANG_C_plus_plus, dw.DW_LANG_C_plus_plus_03, dw.DW_LANG_C_plus_plus_11})
CPP |= {dw.DW_LANG_C_plus_plus_14, dw.DW_LANG_C_plus_plus_17, dw.DW_LANG_C_plus_plus_20}
CPP |= {dw.DW_LANG_C_plus_plus_23}
OBJECTIVE_C = frozenset({dw.DW_LANG_ObjC, dw.DW_LANG_ObjC_plus_plus})
# Their first index is 0, as in C (DWARF 5, table 7.17): UPC, D, OpenCL, Swift, and assemblers.
FROM_ZERO = C | CPP | OBJECTIVE_C | {dw.DW_LANG_Go, dw.DW_LANG_Rust}
ASSEMBLY = frozenset({dw.DW_LANG_Mips_Assembler, dw.DW_LANG_Assembly})
FROM_ZERO |= {0x12, 0x13, 0x15, 0x1E, 0x31, dw.DW_LANG_Mips_Assembler}
# Source: cmd/link of Go 1.15 to 1.27; an externally linked PIE lacks the last one.
GO_SECTIONS = (".go.buildinfo", ".note.go.buildid", ".gopclntab")
# Compilers of .NET that call their language C or C++, and neither types nor call by their rules:
# Mono describes structures as `int`. Source: mono/mono, mono/mini/dwarfwriter.c; dotnet/runtime,
# src/coreclr/tools/aot/ObjWriter.
MONO, NATIVE_AOT = "Mono AOT Compiler", "NetRuntime"


def main_language(elf: Elf, info: DebugInfo) -> str:
    """Language key of a program's own code: Go where Go linked it, else the first unit's."""
    # Go's linker leaves a mark, so that no walk over the units is needed: libc has 2000.
    if linked_by_go(elf):
        return "go"
    if not info.present:
        return ""
    return next((key for key in map(language_key, info.units()) if key), "")


def linked_by_go(elf: Elf) -> bool:
    """Whether Go's linker made the file."""
    return any(elf.section_address(mark) is not None for mark in GO_SECTIONS)


def language_key(unit: Unit) -> str:
    """``c``, ``c++``, ``go`` or ``rust``; of another language the number, empty for none.

    Of compilers of .NET that name another language, their own.
    """
    language = unit.language
    if language is None:
        return ""
    if language in C:
        mono = language == dw.DW_LANG_C and unit.producer.startswith(MONO)
        return "C# of Mono" if mono else "c"
    if language in CPP:
        return "C# of NativeAOT" if unit.producer.startswith(NATIVE_AOT) else "c++"
    if language == dw.DW_LANG_Go:
        return "go"
    if language in ASSEMBLY:
        return "asm"
    return "rust" if language == dw.DW_LANG_Rust else str(language)


def is_go(unit: Unit) -> bool:
    """Whether Go's own attributes mean what Go says."""
    return unit.language == dw.DW_LANG_Go


def is_rust(unit: Unit) -> bool:
    """Whether structures may be Rust's texts, slices and enums."""
    return unit.language == dw.DW_LANG_Rust


def is_c_family(unit: Unit) -> bool:
    """Whether a one-byte character type is a ``char``."""
    return unit.language in C or unit.language in CPP or unit.language in OBJECTIVE_C


def is_cpp(unit: Unit) -> bool:
    """Whether classes may be instances of templates."""
    return unit.language in CPP or unit.language == dw.DW_LANG_ObjC_plus_plus


def has_namespaces(unit: Unit) -> bool:
    """Whether a name is only whole with the scopes around it. Go writes it whole, C has none."""
    return unit.language is not None and unit.language not in C and unit.language != dw.DW_LANG_Go


def counts_from_zero(unit: Unit) -> bool:
    """Whether an array without a lower bound starts at 0; a unit that does not say is C."""
    return unit.language is None or unit.language in FROM_ZERO


def malformed(die: Die, what: str) -> DebugInfoError:
    """The error for an entry that is there and makes no sense."""
    return die.unit.error(what, die.position)
