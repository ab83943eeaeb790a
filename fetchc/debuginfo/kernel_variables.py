"""Variables that the linker or the loader places: by their symbols.

``extern char **environ`` is declared where it is used, and defined in another library (the
executable has a copy of it then, or the code reads its address from the global offset table), in
assembly, in a part without debug information, or as another name of a variable: there is no
location. And the location of what a shared library exports is stale where an executable has a copy.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.constants import DW_AT_external, DW_AT_linkage_name
from fetchc.program.entities import Absent, AtAddress, AtSymbol, Indirect, Variable
from fetchc.program.types import USER, Member, NamedType, PointerType, QualifiedType, StructType
from fetchc.quantities import ByteOffset, ByteSize
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import Die
    from fetchc.debuginfo.elf.elf_file import Elf
    from fetchc.program.entities import Place
    from fetchc.program.protocol import Program
    from fetchc.quantities import Address, TypeId

__all__ = [
    "PER_CPU",
    "linked_place",
    "linked_symbol",
    "loaded_place",
    "marked_members",
    "marked_parameters",
    "of_several",
    "symbol_place",
]

_STT_OBJECT = 1
_STB_LOCAL = 0


def linked_place(
    info: DebugInfo, elf: Elf, architecture: str, die: Die, name: str
) -> AtAddress | Indirect | None:
    """Where the variable ``name`` that ``die`` declares is; None if nothing in the file says so.

    None also where several symbols of that name are at different addresses.
    """
    external = info.inherited(die, DW_AT_external)
    if external is None or not external.flag(DW_AT_external):
        return None
    symbol = linked_symbol(info, die, name)
    found = {
        one.address
        for one in elf.symbols_named(symbol)
        if one.kind == _STT_OBJECT and one.binding != _STB_LOCAL
    }
    if not found:
        return loaded_place(elf, architecture, symbol)
    return AtAddress(found.pop()) if len(found) == 1 else None


def loaded_place(elf: Elf, architecture: str, symbol: str) -> Indirect | None:
    """The variable by the address that the loader gives the file; None where the file has none."""
    from fetchc.debuginfo.elf.shared_libraries import address_word

    word = address_word(elf, architecture, symbol)
    return None if word is None else Indirect(AtAddress(word), ByteOffset(0))


def linked_symbol(info: DebugInfo, die: Die, name: str) -> str:
    """The symbol of the variable ``name``: of C++ it is another word."""
    linked = info.inherited(die, DW_AT_linkage_name)
    return (None if linked is None else linked.string(DW_AT_linkage_name)) or name


# ------------------------------------------------------------------------------
# Variables of a kernel's image: what they are to a kernel that runs, at whatever address.

PER_CPU = ".data..percpu"  # include/asm-generic/vmlinux.lds.h


def symbol_place(elf: Elf, name: str, address: Address, found: tuple[Address, ...]) -> Place:
    """Where the variable ``name``, at ``address`` in the image, is found by its symbol.

    ``found`` are the addresses of all symbols of that name.
    """
    section = elf.section_range(PER_CPU)
    per_cpu = section is not None and section[0] <= address < section[1]
    if found == (address,):
        return AtSymbol(name, verified=False, per_cpu=per_cpu)
    if not found:
        why = "the kernel's address changes at each boot, and it has no symbol"
        return Absent("no location", why)
    return of_several(len(found))


def of_several(count: int) -> Absent:
    """What a name that so many symbols have leads to."""
    return Absent(
        "no location", f"the kernel has {count} symbols of that name, and takes the first"
    )


# ------------------------------------------------------------------------------
# Pointers of a kernel into the memory of the running program, which DWARF does not mark.
#
# The kernel's source says ``__user``; compilers leave it out. ``targets/kernel/user.toml`` has
# common ones, as for BTF.

_DEEPEST = 64


def marked_parameters(
    program: Program, function: str, parameters: tuple[Variable, ...]
) -> tuple[Variable, ...]:
    """The parameters of ``function``, those that lead to the program's memory marked so."""
    users = table("kernel/user")["parameters"].get(function, ())
    return tuple(
        [
            Variable(
                one.name, _marked(program, one.type), one.kind, one.die, one.line, one.artificial
            )
            if one.name in users
            else one
            for one in parameters
        ]
    )


def marked_members(program: Program, struct: StructType) -> StructType:
    """The structure, with the pointers to user memory marked ``__user``."""
    users = table("kernel/user")["members"].get(struct.name)
    if not users:
        return struct
    members = tuple(
        [
            Member(
                one.name,
                _marked(program, one.type),
                one.offset,
                one.bits,
                one.embedded,
                one.also,
                one.alignment,
            )
            if one.name in users
            else one
            for one in struct.members
        ]
    )
    return StructType(struct.name, struct.kind, struct.size, members, struct.alignment)


def _marked(program: Program, type_id: TypeId) -> TypeId:
    pointer = program.type(type_id)
    for _ in range(_DEEPEST):
        if not isinstance(pointer, NamedType | QualifiedType):
            break
        pointer = program.type(pointer.target)
    if not isinstance(pointer, PointerType):
        return type_id
    target = program.intern(QualifiedType(USER, pointer.target))
    return program.intern(PointerType("", ByteSize(program.word_bytes), target))
