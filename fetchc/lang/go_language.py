"""Go: packages, promoted fields, and functions that a return probe would crash."""

from __future__ import annotations

from fetchc.lang.base import Language
from fetchc.program.go_symbol_names import package_of
from fetchc.program.types import (
    ArrayType,
    ChannelType,
    FunctionType,
    MapType,
    NamedType,
    PointerType,
    QualifiedType,
    SliceType,
    VoidType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.entities import Function
    from fetchc.program.protocol import Program
    from fetchc.quantities import TypeId

__all__ = ["GO"]

# What the compiler calls the types of a generic body's parameters; after it is their shape.
# Source: Go, src/cmd/internal/dwarf/dwarf.go (DictIndex).
_OF_SHAPE = ".param"
_DEEPEST = 64  # hops of a type's name; only a cyclic, hostile type has more


def spell(program: Program, type_id: TypeId) -> str:
    """A type as Go writes it: ``*main.Msg``, ``[]main.Question``, ``[4]int``."""
    prefix = ""
    for _ in range(_DEEPEST):
        resolved = program.type(type_id)
        match resolved:
            case PointerType(name=name, target=target):
                if name:
                    return prefix + name
                if isinstance(program.type(target), VoidType):
                    return prefix + "unsafe.Pointer"
                prefix += "*"
                type_id = target
            case ArrayType(element=element, count=count):
                prefix += f"[{'' if count is None else count}]"
                type_id = element
            case SliceType(name=name, element=element):
                if name:
                    return prefix + name
                prefix += "[]"
                type_id = element
            case QualifiedType(target=target):
                type_id = target
            case NamedType(name=name, target=target) if name.startswith(_OF_SHAPE):
                type_id = target
            case FunctionType():
                return prefix + (resolved.name or "func()")
            case MapType() | ChannelType():
                return prefix + resolved.name
            case VoidType():
                return prefix + "unsafe.Pointer"
            case _:
                return prefix + (resolved.name or "struct {...}")
    return "(a type that refers to itself)"


def _global_names(name: str, function: Function) -> tuple[str, ...]:
    if "." in name:
        return (name,)
    # The symbol: people's spelling of the name does not show where its import path ends.
    package = package_of(function.symbol).replace("%2e", ".")
    return (f"{package}.{name}",)


def _functions_meant(wanted: str, program: Program) -> list[str]:
    from fetchc.lang.go_function_names import meant, shapes

    return meant(
        wanted,
        program.function_names(),
        lambda argument, package: shapes(argument, package, program, spell),
        (lambda name: ()) if program.go is None else program.go.packages_called,
    )


def _shared_with(wanted: str, found: str, program: Program) -> list[str]:
    if "[" not in wanted:
        return []
    from fetchc.lang.go_function_names import DICTIONARIES, others_of_shape, shapes

    return others_of_shape(
        wanted,
        found,
        program.elf.symbols_with_prefix(package_of(found) + DICTIONARIES),
        lambda argument, package: shapes(argument, package, program, spell),
    )


def _methods_named(program: Program, type_name: str, method: str) -> tuple[str, ...]:
    # Of an instance of a generic type the code is that of its shape: `T[go.shape.int].M`.
    name, bracket, _ = type_name.partition("[")
    package = package_of(name)
    holder = name[len(package) + 1 :]
    if not holder:
        return ()
    if not bracket:
        return (f"{name}.{method}", f"{package}.(*{holder}).{method}")
    begins = (f"{name}[", f"{package}.(*{holder}[")
    symbols = [one for begin in begins for one in program.elf.symbols_with_prefix(begin)]
    return tuple([one for one in symbols if one.endswith((f"].{method}", f"]).{method}"))])


GO = Language(
    name="Go",
    spell=spell,
    global_names=_global_names,
    return_probe=False,
    stack_check=True,
    pointer_indexes_array=True,
    type_rules="go",
    arithmetic="go",
    truth="bool",
    length_type=("int", True),
    arrays_are_values=True,
    goroutines=True,
    closures=True,
    convention_first=True,
    functions_meant=_functions_meant,
    word_int=True,
    pointer_cast="(*{type})({value})",
    pointer_member="{pointer}.{name}",
    shared_with=_shared_with,
    written="runtime/go/written",
    methods_named=_methods_named,
)
