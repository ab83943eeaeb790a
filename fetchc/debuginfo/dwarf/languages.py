"""The language of a unit (DW_AT_language) and what it says of names, arrays and characters."""

from __future__ import annotations

from fetchc.debuginfo.dwarf import constants as dw
from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import Die
    from fetchc.debuginfo.dwarf.units import Unit
    from fetchc.debuginfo.elf.elf_file import Elf

    Around = tuple[int, "Around"] | None

__all__ = [
    "by_columns",
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
FORTRAN = frozenset({0x07, 0x08, 0x0E, 0x22, 0x23, 0x2D})
# Languages with a name and without rules of their own (DWARF 5, table 7.17, and the
# list of later numbers at dwarfstd.org/languages.html).
OTHERS = dict.fromkeys(FORTRAN, "Fortran") | dict.fromkeys((0x03, 0x0D, 0x2E, 0x2F), "Ada")
OTHERS |= dict.fromkeys(OBJECTIVE_C, "Objective C") | {0x05: "Cobol", 0x06: "Cobol", 0x09: "Pascal"}
OTHERS |= {0x0A: "Modula-2", 0x0B: "Java", 0x0F: "PL/I", 0x12: "UPC", 0x13: "D", 0x14: "Python"}
OTHERS |= {0x15: "OpenCL", 0x17: "Modula-3", 0x18: "Haskell", 0x1B: "OCaml", 0x1E: "Swift"}
OTHERS |= {0x1F: "Julia", 0x26: "Kotlin", 0x27: "Zig", 0x28: "Crystal"}
# Source: cmd/link of Go 1.15 to 1.27; an externally linked PIE lacks the last one.
GO_SECTIONS = (".go.buildinfo", ".note.go.buildid", ".gopclntab")
GCCGO_SECTION = ".go_export"  # gcc, gcc/go/go-backend.c (go_write_export_data); strip leaves it


def main_language(elf: Elf, info: DebugInfo) -> str:
    """Language key of a program's own code: Go where Go left its mark, else the first unit's."""
    # Go's linker leaves a mark, so that no walk over the units is needed: libc has 2000.
    if linked_by_go(elf):
        return "go"
    if elf.section_address(GCCGO_SECTION) is not None:
        return "gccgo"
    if not info.present:
        return ""
    return next((key for key in map(language_key, info.units()) if key), "")


def linked_by_go(elf: Elf) -> bool:
    """Whether Go's linker wrote the file."""
    return any(elf.section_address(mark) is not None for mark in GO_SECTIONS)


def language_key(unit: Unit) -> str:
    """``c``, ``c++``, ``go`` or ``rust``; of another language its name or number, empty for none.

    Mono and NativeAOT call their language C or C++, and neither describe types nor call by its
    rules (Mono describes structures as ``int``): they have names of their own.
    """
    language = unit.language
    if language is None:
        return ""
    if language in C:
        mono = language == dw.DW_LANG_C and unit.compiler.name == "mono"
        return "C# of Mono" if mono else "c"
    if language in CPP:
        return "C# of NativeAOT" if unit.compiler.name == "nativeaot" else "c++"
    if language == dw.DW_LANG_Go:
        return "go" if is_go(unit) else "gccgo"
    if language in ASSEMBLY:
        return "asm"
    return "rust" if language == dw.DW_LANG_Rust else OTHERS.get(language, str(language))


def is_go(unit: Unit) -> bool:
    """Whether Go's own attributes mean what Go says, and its own conventions hold.

    gccgo (``GNU Go 12.2.0``) describes types as C does, and calls as C does.
    """
    return unit.language == dw.DW_LANG_Go and (
        not unit.compiler.producer or unit.compiler.is_go_toolchain
    )


def is_rust(unit: Unit) -> bool:
    """Whether structures may be Rust's strings, slices and enums."""
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


def by_columns(unit: Unit) -> bool:
    """Whether the first index of an array that does not say runs fastest (DWARF 5, 5.5)."""
    return unit.language in FORTRAN


def counts_from_zero(unit: Unit) -> bool:
    """Whether an array without a lower bound starts at 0; a unit that does not say is C."""
    return unit.language is None or unit.language in FROM_ZERO


def malformed(die: Die, what: str) -> DebugInfoError:
    """The error for an entry that is there and makes no sense."""
    return die.unit.error(what, die.position)
