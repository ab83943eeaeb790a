"""Constants of Go's packages: whole numbers alone, as children of the package's unit.

Source: Go 1.15 to 1.27, cmd/compile/internal/gc/obj.go (dumpGlobalConst), cmd/internal/dwarf
(PutIntConst): each has the package's path in its name; one without a type of its own is an int.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.attributes import is_go
from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_const_value,
    DW_AT_name,
    DW_AT_type,
    DW_TAG_constant,
)
from fetchc.debuginfo.dwarf.names.go_names import package_of, unescaped
from fetchc.quantities import TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.program.types import IntType

__all__ = ["constants_named", "constants_of_type"]


def constants_of_package(info: DebugInfo, package: str) -> Iterator[Die]:
    """The constants of the package of that import path, in the order of the source."""
    path = unescaped(package)
    for unit in info.units():
        if is_go(unit) and unit.name == path:
            for child in info.children(unit.top):
                if child.tag == DW_TAG_constant:
                    yield child


def constants_named(info: DebugInfo, name: str) -> Iterator[Die]:
    """The constants of that name, which has the import path in front."""
    for one in constants_of_package(info, package_of(name)):
        if unescaped(one.text(DW_AT_name) or "") == unescaped(name):
            yield one


def constants_of_type(
    info: DebugInfo, type_id: TypeId, made: IntType
) -> tuple[tuple[str, int], ...]:
    """Names, without the package, and numbers of the constants that the type's package declares."""
    package = package_of(made.name)
    found = []
    for one in constants_of_package(info, package) if package else ():
        target = info.follow(one, DW_AT_type)
        name, value = one.text(DW_AT_name), one.constant(DW_AT_const_value)
        if target is None or TypeId(target.offset) != type_id or name is None or value is None:
            continue
        bits = value & (1 << 8 * made.size) - 1
        negative = made.signed and bits >> 8 * made.size - 1
        found.append((name[len(package) + 1 :], bits - (negative << 8 * made.size)))
    return tuple(found)
