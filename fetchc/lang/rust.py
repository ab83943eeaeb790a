"""Rust, whose types carry their names as the source writes them."""

from __future__ import annotations

from fetchc.lang.base import Language
from fetchc.lang.c import CPLUSPLUS
from fetchc.program.types import ArrayType, PointerType, VoidType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.protocol import Program
    from fetchc.units import TypeId

__all__ = ["RUST"]

_DEEPEST = 64  # pointers and arrays of a type; only a cyclic, hostile one has more


def _spell(program: Program, type_id: TypeId) -> str:
    """``&demo::Request``, ``[u16; 3]``, ``*const u8``."""
    before, behind = "", ""
    for _ in range(_DEEPEST):
        made = program.type(type_id)
        match made:
            case PointerType(name=name, target=target) if not name:
                before, type_id = f"{before}*const ", target
            case ArrayType(element=element, count=count):
                counted = "" if count is None else f"; {count}"
                before, behind, type_id = f"{before}[", f"{counted}]{behind}", element
            case VoidType():
                return f"{before}(){behind}"
            case _:
                return before + (str(getattr(made, "name", "")) or "(unnamed type)") + behind
    return "(a type that refers to itself)"


RUST = Language(
    name="Rust",
    spell=_spell,
    global_names=CPLUSPLUS.global_names,
    return_probe=True,
    stack_check=False,
    pointer_indexes_array=False,
    convention_first=False,
    promises_convention=False,
    dereferences=True,
    counting={"len": "len", "capacity": "cap"},
)
