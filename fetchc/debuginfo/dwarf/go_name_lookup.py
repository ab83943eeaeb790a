"""Go names as people write them, and as the linker does.

The linker writes the whole import path, with the dots of its last element escaped:
``example.com/zone%2ev2.(*Zone).Find``. People leave out the path (``zone.Find``) or the
escapes. Source: objabi.PathToPrefix of the Go source; the linker's symbol tables.
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import encode_number
from fetchc.debuginfo.dwarf import dies
from fetchc.debuginfo.dwarf.constants import (
    DW_AT_const_value,
    DW_AT_go_package_name,
    DW_AT_name,
    DW_AT_type,
    DW_FORM_ref_addr,
    DW_FORM_string,
    DW_TAG_constant,
)
from fetchc.debuginfo.dwarf.dies import Die
from fetchc.debuginfo.dwarf.languages import is_go
from fetchc.program.go_symbol_names import ALIASES, MOVED, customary_package
from fetchc.quantities import TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.units import Unit
    from fetchc.program.types import IntType

__all__ = [
    "constants_named",
    "constants_of_type",
    "escaped",
    "own_package",
    "package_of",
    "packages_called",
    "type_spellings",
    "unescaped",
    "with_import_path",
]


def unescaped(name: str) -> str:
    """The name with the dots of the import path as dots."""
    return name.replace("%2e", ".")


_DOTS = 32  # that are tried: the last element of an import path has a few


def escaped(name: str) -> Iterator[str]:
    """The name as given, then with more and more dots of the last path element escaped.

    Which dot ends the import path cannot be seen, so each is tried.
    """
    yield name
    start = _last_element(name)
    end = min(at for at in (name.find("(", start), name.find("[", start), len(name)) if at >= 0)
    # The dot before the function or type itself stays: the last one, or that before (*T).
    end = name.rfind(".", start, end)
    at = name.find(".", start, max(start, end))
    for _ in range(_DOTS):
        if at < 0:
            return
        name = name[:at] + "%2e" + name[at + 1 :]
        yield name
        end += 2
        at = name.find(".", at + 3, end)


def package_of(name: str) -> str:
    """Import path of a linker's name, escapes and all; empty where there is none."""
    dot = name.find(".", _last_element(name))
    return "" if dot < 0 else name[:dot]


def with_import_path(info: DebugInfo, name: str) -> Iterator[str]:
    """``dns.Msg`` as every package that is called ``dns`` would have it."""
    package, dot, rest = name.partition(".")
    if dot:
        for path in packages_called(info, package):
            yield f"{path}.{rest}"


def packages_called(info: DebugInfo, package: str) -> Iterator[str]:
    """Import paths of the packages that call themselves so, but for one that is that path."""
    if not package.isidentifier():
        return
    for unit in info.units():
        path = unit.name
        if not is_go(unit) or path is None or path == package:
            continue
        stated = unit.top.string(DW_AT_go_package_name)
        if package == (stated or customary_package(path)):
            head, slash, last = path.rpartition("/")
            yield f"{head}{slash}{last.replace('.', '%2e')}"


def own_package(info: DebugInfo, home: Die | None, called: str) -> str:
    """The import path of the unit of ``home``, as the linker writes it, if it calls itself so."""
    if home is None or not called.isidentifier():
        return ""
    path = unescaped(package_of(home.string(DW_AT_name) or ""))
    if called != (home.unit.top.string(DW_AT_go_package_name) or customary_package(path)):
        return ""
    head, slash, last = path.rpartition("/")
    return f"{head}{slash}{last.replace('.', '%2e')}"


def type_spellings(info: DebugInfo, name: str, home: Die | None) -> Iterator[tuple[str, ...]]:
    """Names under which the debug information may have the type that a person calls ``name``.

    ``home`` is the function around, or None. The names of one tuple are equally good: what has one
    of them is meant.
    """
    bare = _without_modifiers(name)
    modifiers = name[: len(name) - len(bare)]
    bare = ALIASES.get(bare, bare)
    called, dot, rest = bare.partition(".")
    own = own_package(info, home, called) if dot else ""
    if own:
        yield (f"{modifiers}{own}.{rest}",)
    for spelling in escaped(bare):
        yield (modifiers + spelling,)
    if not dot and home is not None and (package := package_of(home.string(DW_AT_name) or "")):
        yield (f"{modifiers}{package}.{bare}",)
    yield tuple([modifiers + spelling for spelling in with_import_path(info, bare)])
    if bare in MOVED:
        yield (modifiers + MOVED[bare],)


def _without_modifiers(name: str) -> str:
    # After any number of `*`, `[]`, `[12]` and `chan `.
    at = 0
    while True:
        if name.startswith("*", at):
            at += 1
        elif name.startswith("chan ", at):
            at += 5
        elif name.startswith("[", at):
            end = name.find("]", at)
            count = name[at + 1 : end]
            if end < 0 or (count and not (count.isascii() and count.isdecimal())):
                return name[at:]
            at = end + 1
        else:
            return name[at:]


def _last_element(name: str) -> int:
    # Type arguments may hold further paths: Sum[example.com/a.T].
    bracket = name.find("[")
    return name.rfind("/", 0, len(name) if bracket < 0 else bracket) + 1


# ------------------------------------------------------------------------------
# Constants of Go's packages: whole numbers alone, as children of the package's unit.
#
# Source: Go 1.15 to 1.27, cmd/compile/internal/gc/obj.go (dumpGlobalConst), cmd/internal/dwarf
# (PutIntConst): each has the package's path in its name; one without a type of its own is an int.


def _units_of(info: DebugInfo, package: str) -> Iterator[Unit]:
    path = unescaped(package)
    return (unit for unit in info.units() if is_go(unit) and unit.name == path)


def _constants(unit: Unit) -> Iterator[Die]:
    # In the order of the source.
    for start, declaration, _ in dies.entries(unit):
        if declaration.tag == DW_TAG_constant:
            yield Die(unit, start)


def _typed_constants(info: DebugInfo, unit: Unit, type_id: TypeId) -> Iterator[Die]:
    # Among them those of the type, found by bytes: the end of a name, and the type's offset. The
    # marks of the unit lead to the entry that has them, where thousands of others are.
    for _, declaration in unit.table.tagged(frozenset((DW_TAG_constant,))):
        if declaration.attributes[:2] != _NAME_AND_TYPE:
            yield from _of_type(info, unit, type_id)
            return
    size = unit.address_size if unit.version == 2 else unit.offset_size
    key = b"\0" + encode_number(type_id, size, unit.little)
    at = unit.data.find(key)
    while at >= 0:
        start = dies.entry_covering(unit, at)
        if start is not None:
            one = Die(unit, start)
            if one.tag == DW_TAG_constant and unit.data.find(b"\0", one.values_at) == at:
                yield one
        at = unit.data.find(key, at + 1)


_NAME_AND_TYPE = (DW_AT_name, DW_FORM_string, 0), (DW_AT_type, DW_FORM_ref_addr, 0)


def _of_type(info: DebugInfo, unit: Unit, type_id: TypeId) -> Iterator[Die]:
    wanted: dict[object, bool] = {}  # by a reference, which thousands of constants share
    for one in _constants(unit):
        reference = one.form(DW_AT_type), one.raw(DW_AT_type)
        if reference not in wanted:
            target = info.follow(one, DW_AT_type)
            wanted[reference] = target is not None and TypeId(target.offset) == type_id
        if wanted[reference]:
            yield one


def constants_named(info: DebugInfo, name: str) -> Iterator[Die]:
    """The constants of that name, which has the import path in front."""
    for unit in _units_of(info, package_of(name)):
        for one in _constants(unit):
            if unescaped(one.string(DW_AT_name) or "") == unescaped(name):
                yield one


def constants_of_type(
    info: DebugInfo, type_id: TypeId, integer: IntType
) -> tuple[tuple[str, int], ...]:
    """Names, without the package, and numbers of the constants that the type's package declares."""
    package = package_of(integer.name)
    found = []
    for unit in _units_of(info, package) if package else ():
        for one in _typed_constants(info, unit, type_id):
            name, value = one.string(DW_AT_name), one.constant(DW_AT_const_value)
            if name is None or value is None:
                continue
            bits = value & (1 << 8 * integer.size) - 1
            negative = integer.signed and bits >> 8 * integer.size - 1
            found.append((name[len(package) + 1 :], bits - (negative << 8 * integer.size)))
    return tuple(found)
