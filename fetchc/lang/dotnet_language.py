""".NET: types as C# writes them, and code that the runtime replaces."""

from __future__ import annotations

from fetchc.diag.diagnostic import Diagnostic
from fetchc.lang.base import Language
from fetchc.program.types import (
    ArrayType,
    FunctionType,
    NamedType,
    PointerType,
    QualifiedType,
    SequenceType,
    StructType,
    VoidType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.entities import Function
    from fetchc.program.protocol import Program
    from fetchc.quantities import TypeId

__all__ = ["DOTNET"]

CANON = "__Canon"  # any class, in the name of code that all of them share
_DEEPEST = 64  # hops of a type's name; only a cyclic, hostile type has more


def spell(program: Program, type_id: TypeId) -> str:
    """A type as C# writes it: ``string``, ``System.Uri``, ``int[]``, ``byte*``, ``ref int``."""
    prefix, suffix = "", ""
    for _ in range(_DEEPEST):
        resolved = program.type(type_id)
        match resolved:
            case PointerType(target=target, reference=reference):
                inner = program.type(target)
                if reference:
                    prefix += "ref "
                elif not _is_class(inner):
                    suffix = f"*{suffix}"
                type_id = target
            case ArrayType(element=element, count=count):
                suffix += f"[{'' if count is None else count}]"
                type_id = element
            case QualifiedType(target=target) | NamedType(target=target):
                type_id = target
            case FunctionType() | VoidType():
                return f"{prefix}{getattr(resolved, 'name', 'void')}{suffix}"
            case _:
                return f"{prefix}{resolved.name}{suffix}"
    return "(a type that refers to itself)"


def _is_class(resolved: object) -> bool:
    match resolved:
        case StructType(kind=kind):
            return kind == "class"
        case SequenceType(value=value):
            return not value
        case _:
            return False


def _global_names(name: str, function: Function) -> tuple[str, ...]:
    return (name,)


def _shared_with(wanted: str, found: str, program: Program) -> list[str]:
    # Code that all classes share: of List<string>.Add the runtime has none for strings alone.
    # Source: dotnet/runtime, docs/design/coreclr/botr/shared-generics.md.
    if "<" not in wanted or CANON not in found or CANON in wanted:
        return []
    return [found.partition("(")[0].replace(CANON, "any class")]


def _cautions(program: Program, function: Function) -> tuple[Diagnostic, ...]:
    # Code that was compiled at run time is followed to where it is compiled again.
    return (*_elsewhere(program, function), *(() if program.in_memory else _replaced(function)))


def _elsewhere(program: Program, function: Function) -> tuple[Diagnostic, ...]:
    """That the body of an iterator or an asynchronous method is another method's."""
    body = "" if program.dotnet is None else program.dotnet.state_machine_method(function)
    if not body:
        return ()
    return (
        Diagnostic(
            "FC0622",
            f"`{function.name}` only starts a state machine: its body is in `{body}`",
            notes=("it runs once for each step; parameters and locals are fields of its `this`",),
            help=f"to see the steps, probe `{body}`",
        ),
    )


def _replaced(function: Function) -> tuple[Diagnostic, ...]:
    """What the runtime does with precompiled code: from .NET Core 3.0 on it replaces it.

    Source: dotnet/runtime, docs/design/features/tiered-compilation.md; measured on 3.1 and 9.0:
    of 300 calls, 57 and 60 were seen, and all with the setting.
    """
    compiler = function.compiler
    if compiler.name != "dotnet" or compiler.version is None or compiler.version < (3, 0):
        return ()
    prefix = "DOTNET" if compiler.version >= (6, 0) else "COMPlus"
    return (
        Diagnostic(
            "FC0618",
            f"the runtime replaces the code of `{function.name}` after some 30 calls",
            notes=("the probe does not see later calls, or inlined calls",),
            help=f"start the program with `{prefix}_TieredCompilation=0`",
        ),
    )


DOTNET = Language(
    name=".NET",
    spell=spell,
    global_names=_global_names,
    return_probe=False,
    stack_check=False,
    pointer_indexes_array=False,
    convention_first=False,
    type_rules="dotnet",
    arithmetic="dotnet",
    truth="bool",
    enumerations="own",
    references=True,
    type_first=True,
    return_refusal="an exception that passes a return probe ends the program",
    cautions=_cautions,
    shared_with=_shared_with,
)
