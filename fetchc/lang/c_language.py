"""C and what is read with its rules (C++ has a record of its own)."""

from __future__ import annotations

from fetchc.lang.base import Language
from fetchc.program.types import (
    ArrayType,
    ChannelType,
    DeclaredType,
    EnumType,
    FunctionType,
    MapType,
    NamedType,
    PointerType,
    QualifiedType,
    StructType,
    VoidType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.entities import Function
    from fetchc.program.protocol import Program
    from fetchc.quantities import TypeId

__all__ = ["CPLUSPLUS", "OTHER", "C", "spell"]

_DEEPEST = 64  # hops of a declarator; only a cyclic, hostile type has more


def spell(program: Program, type_id: TypeId) -> str:
    """The abstract declarator of a type: ``struct s *``, ``char[16]``, ``int (*)[3]``."""
    return _declare(program, type_id, tagged=True)


def _spell_untagged(program: Program, type_id: TypeId) -> str:
    return _declare(program, type_id, tagged=False)


def _declare(program: Program, type_id: TypeId, tagged: bool) -> str:
    declarator = ""
    qualifiers = ""
    for _ in range(_DEEPEST):
        resolved = program.type(type_id)
        match resolved:
            case PointerType(target=target, reference=reference):
                mark = "&" if reference else "*"
                declarator = f"{mark}{qualifiers}{declarator}"
                qualifiers = ""
                type_id = target
            case ArrayType(element=element, count=count):
                if declarator.startswith(("*", "&")):
                    declarator = f"({declarator})"
                declarator += f"[{'' if count is None else count}]"
                type_id = element
            case FunctionType():
                inner = f"({declarator})" if declarator else ""
                return f"{resolved.name or 'void'} {inner}()".replace("  ", " ")
            case QualifiedType(qualifier=qualifier, target=target):
                if isinstance(program.type(target), PointerType):
                    qualifiers += f" {qualifier} " if declarator else f" {qualifier}"
                    type_id = target
                    continue
                # GCC calls both `const`, the array of __func__ and its elements.
                if f"{qualifier} " not in qualifiers:
                    qualifiers = f"{qualifier} {qualifiers}"
                type_id = target
            case _:
                base = qualifiers + _base(resolved, tagged)
                gap = " " if declarator.startswith(("*", "&", "(")) else ""
                return f"{base}{gap}{declarator}".rstrip()
    return "(a type that refers to itself)"


def _base(resolved: object, tagged: bool) -> str:
    match resolved:
        case StructType(name=name, kind=kind) | DeclaredType(name=name, kind=kind):
            if not name:
                return f"(anonymous {kind})"
            return f"{kind} {name}" if tagged else name
        case EnumType(name=name):
            if not name:
                return "(anonymous enum)"
            return f"enum {name}" if tagged else name
        case VoidType():
            return "void"
        case NamedType(name=name) | MapType(name=name) | ChannelType(name=name):
            return name
        case _:
            return str(getattr(resolved, "name", "")) or "(unnamed type)"


def _global_names(name: str, function: Function) -> tuple[str, ...]:
    # ns::C::f sees ns::C::name, then ns::name, then name.
    scopes = function.name.split("(")[0].split("::")[:-1]
    return tuple("::".join((*scopes[:depth], name)) for depth in range(len(scopes), -1, -1))


def _meant(wanted: str, program: Program) -> list[str]:
    from fetchc.lang.cpp_function_names import meant, overload

    found = meant(wanted, program.function_names())
    if found or not wanted.endswith((")", "&", "const", "volatile")):
        return found
    # A namespace that is left out may be an inline one: the debug information says it.
    return overload(wanted, lambda name: [one.symbol for one in program.functions_named(name)])


def _c_record(system_stack: bool) -> Language:
    return Language(
        name="C",
        spell=spell,
        global_names=lambda name, _function: (name,),
        return_probe=True,
        stack_check=False,
        pointer_indexes_array=False,
        convention_first=False,
        functions_meant=_meant,
        type_first=True,
        open_arrays=True,
        system_stack=system_stack,
    )


C = _c_record(system_stack=True)

OTHER = _c_record(system_stack=False)
"""Code that is read as C and may be no C: assembly, code without debug information."""

CPLUSPLUS = Language(
    name="C++",
    spell=_spell_untagged,
    global_names=_global_names,
    return_probe=True,
    stack_check=False,
    pointer_indexes_array=False,
    convention_first=False,
    functions_meant=_meant,
    type_first=True,
    open_arrays=True,
    type_rules="c++",
    truth="bool",
    enumerations="promoted",
    system_stack=True,
    unwound=True,
)
