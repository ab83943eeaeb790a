"""Why a method has no precompiled code, and whether callers may have it inlined."""

from __future__ import annotations

from fetchc.diag.errors import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly

__all__ = ["is_inlined", "why_no_code"]

# MethodAttributes and MethodImplAttributes: ECMA-335, II.23.1.10 and II.23.1.11; AggressiveInlining
# and AggressiveOptimization are of System.Runtime.CompilerServices.MethodImplOptions.
VIRTUAL, ABSTRACT, NATIVE_LIBRARY = 0x40, 0x400, 0x2000
CODE_TYPE, NO_INLINING, SYNCHRONIZED = 3, 8, 0x20
INLINED, OPTIMIZED, INTERNAL_CALL = 0x100, 0x200, 0x1000
# Bytes of intermediate language up to which the compiler inlines without weighing it up. Source:
# dotnet/runtime, src/coreclr/jit/inline.h, ALWAYS_INLINE_SIZE.
ALWAYS_INLINED = 16
TINY = 2  # low bits of the header of a short body: II.25.4.2


def why_no_code(assembly: Assembly, row: int) -> str:
    """The reason, as far as metadata has it, of a method that the image has no code of."""
    _, how, flags = assembly.metadata.row("MethodDef", row)[:3]
    if flags & ABSTRACT:
        return "it is abstract: its implementations have code"
    if flags & NATIVE_LIBRARY:
        return "it is a function of a native library"
    if how & (INTERNAL_CALL | CODE_TYPE):
        return "it is a part of the runtime itself"
    if assembly.type_parameters_of("TypeDef", assembly.owner(row)) or assembly.type_parameters_of(
        "MethodDef", row
    ):
        return "it is generic, and no instantiation of it is in this image"
    if how & OPTIMIZED:
        return "it is marked AggressiveOptimization, which leaves it to the runtime"
    return "the compiler left it to the runtime"


def is_inlined(assembly: Assembly, row: int) -> bool:
    """Whether compilers put the method into its callers wherever they can."""
    address, how, flags = assembly.metadata.row("MethodDef", row)[:3]
    if how & (NO_INLINING | SYNCHRONIZED) or flags & VIRTUAL or not address:
        return False
    return bool(how & INLINED) or _body_bytes(assembly, address) <= ALWAYS_INLINED


def _body_bytes(assembly: Assembly, address: int) -> int:
    try:
        cursor = assembly.image.cursor(address, "method body")
    except DebugInfoError:
        return ALWAYS_INLINED + 1  # the body was taken out of the image
    head = cursor.u8()
    if head & 3 == TINY:
        return head >> 2
    cursor.skip(3)
    return cursor.u32()
