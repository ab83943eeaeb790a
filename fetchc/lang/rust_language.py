"""Rust, whose types carry their names as the source writes them."""

from __future__ import annotations

from fetchc.diag.diagnostic import Diagnostic
from fetchc.lang.base import Language
from fetchc.lang.c_language import CPLUSPLUS
from fetchc.program.entities import FrameRelative, Indirect, InMemory
from fetchc.program.types import ArrayType, PointerType, VoidType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.entities import Function
    from fetchc.program.protocol import Program
    from fetchc.quantities import TypeId

__all__ = ["RUST"]

_DEEPEST = 64  # pointers and arrays of a type; only a cyclic, hostile one has more


def _spell(program: Program, type_id: TypeId) -> str:
    """``&demo::Request``, ``[u16; 3]``, ``*const u8``."""
    before, behind = "", ""
    for _ in range(_DEEPEST):
        resolved = program.type(type_id)
        match resolved:
            case PointerType(name=name, target=target) if not name:
                before, type_id = f"{before}*const ", target
            case ArrayType(element=element, count=count):
                counted = "" if count is None else f"; {count}"
                before, behind, type_id = f"{before}[", f"{counted}]{behind}", element
            case VoidType():
                return f"{before}(){behind}"
            case _:
                return before + (str(getattr(resolved, "name", "")) or "(unnamed type)") + behind
    return "(a type that refers to itself)"


def _meant(wanted: str, program: Program) -> list[str]:
    from fetchc.lang.rust_function_names import meant, of_type, without_arguments

    names = list(program.function_names())
    found = meant(wanted, names)
    if found or "<" not in wanted or wanted.startswith("<"):
        return found
    # Symbols of the legacy scheme have no type arguments.
    named = program.functions_named(wanted.replace("::<", "<"))
    if named:
        return [function.symbol for function in named]
    methods = [
        function
        for symbol in meant(without_arguments(wanted), names)
        for function in program.functions_named(symbol)
    ]
    return [one.symbol for one in methods if of_type(wanted, _receiver(program, one))]


def _receiver(program: Program, function: Function) -> str:
    for parameter in program.parameters(function) if function.die is not None else ():
        if parameter.name == "self":
            return _spell(program, parameter.type)
    return ""


def _cautions(program: Program, function: Function) -> tuple[Diagnostic, ...]:
    """That rustc, optimizing, makes one of functions with the same code and forgets the others.

    No symbol and no debug information is left of them. Source: LLVM, lib/Transforms/IPO/
    MergeFunctions.cpp; rustc's -Z merge-functions, on by default from opt-level 2 and s on.
    """
    if function.die is None or not _is_optimized(program, function):
        return ()
    return (
        Diagnostic(
            "FC0628",
            f"calls of functions with the code of `{function.name}` may hit the probe, too",
            notes=("rustc merges functions with the same code and leaves no trace of the others",),
            help="distinguish them by their callers: `fetchc trace --stack`",
        ),
    )


def _is_optimized(program: Program, function: Function) -> bool:
    # Otherwise all parameters, or their addresses, are in slots of the frame.
    return any(
        not isinstance(extent.place, InMemory | FrameRelative | Indirect)
        for parameter in program.parameters(function)
        for extent in program.extents(parameter, function)
    )


RUST = Language(
    name="Rust",
    spell=_spell,
    global_names=CPLUSPLUS.global_names,
    return_probe=True,
    stack_check=False,
    pointer_indexes_array=False,
    convention_first=False,
    promises_convention=False,
    functions_meant=_meant,
    type_rules="rust",
    arithmetic="rust",
    truth="bool",
    length_type=("usize", False),
    system_stack=True,
    dereferences=True,
    counting={"len": "len", "capacity": "cap"},
    missing_function="rustc may have merged it with another function of the same code",
    cautions=_cautions,
    unwound=True,
)
