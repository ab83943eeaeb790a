"""Why an image or a method has no precompiled code, and whether callers may have it inlined."""

from __future__ import annotations

from fetchc.debuginfo.dotnet.metadata.spelling import class_spelled
from fetchc.debuginfo.dotnet.methods.mono import MonoCode
from fetchc.debuginfo.dotnet.methods.state_machines import continued_in
from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly
    from fetchc.debuginfo.dotnet.methods.methods import Method

__all__ = ["is_inlined", "must_have_code", "not_compiled", "why_no_code"]

# MethodAttributes and MethodImplAttributes: ECMA-335, II.23.1.10 and II.23.1.11; AggressiveInlining
# and AggressiveOptimization are of System.Runtime.CompilerServices.MethodImplOptions.
VIRTUAL, ABSTRACT, NATIVE_LIBRARY = 0x40, 0x400, 0x2000
CODE_TYPE, NO_INLINING, SYNCHRONIZED = 3, 8, 0x20
INLINED, OPTIMIZED, INTERNAL_CALL = 0x100, 0x200, 0x1000
# Bytes of intermediate language up to which the compiler inlines without weighing it up. Source:
# dotnet/runtime, src/coreclr/jit/inline.h, ALWAYS_INLINE_SIZE.
ALWAYS_INLINED = 16
TINY = 2  # low bits of the header of a short body: II.25.4.2
CURES = {
    "IL": "compile it ahead of time: `dotnet publish -r linux-x64 -p:PublishReadyToRun=true`",
    "fragile": "have crossgen write its map (`/CreatePerfMap`), and name the folder of it: "
    "`--reference DIR`",
    "unknown": "compile it for ReadyToRun: `dotnet publish -p:PublishReadyToRun=true`",
}
REASONS = {
    "IL": "it has intermediate language only: the runtime compiles it to memory that no probe "
    "can be set on",
    "fragile": "its code is of the fragile format of .NET Core 2, which tells nobody but one build "
    "of the runtime where methods are, and there is no map of it",
    "unknown": "its native code is of an unknown format",
}


def must_have_code(assembly: Assembly) -> None:
    """DebugInfoError FC0906 where no method of the image can be probed on this system."""
    path, kind = assembly.path, assembly.kind
    if kind == "Mono" or (kind == "fragile" and assembly.native is not None):
        return
    if kind != "ReadyToRun":
        raise DebugInfoError(
            "FC0906", path, f"it cannot be probed: {REASONS[kind]}", help=CURES[kind]
        )
    system = assembly.image.system
    if system != "linux":
        what = f"its native code is for {system or 'another system'}"
        raise DebugInfoError("FC0906", path, f"it cannot be probed: {what}", help=CURES["IL"])


def not_compiled(
    assembly: Assembly, path: str, row: int, shared: Sequence[Method] = ()
) -> DebugInfoError:
    """The refusal of a method that the image has no code of; ``path`` is what is probed.

    ``shared`` is code that it may share with others: if what it is for are classes.
    """
    holder = class_spelled(assembly.type_name(assembly.owner(row)), ())
    body = continued_in(assembly, row)
    if shared:
        what = f"`{holder}.{assembly.method_name(row)}` has no code for these types alone"
        help = f"all classes share code: name `{shared[0].symbol}`, or the folder of the assembly "
        help += "that has the type: `--reference DIR`"
        return DebugInfoError("FC0906", path, what, help=help)
    return DebugInfoError(
        "FC0906",
        path,
        f"`{holder}.{assembly.method_name(row)}` has no precompiled code: "
        f"{why_no_code(assembly, row)}",
        help=f"its body is in `{body}`" if body else "list what has: `fetchc functions -x IMAGE`",
    )


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
    if isinstance(assembly.native, MonoCode) and assembly.native.is_ambiguous(row):
        return "Mono's symbols do not tell it from another method"
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
