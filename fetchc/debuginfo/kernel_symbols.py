"""Variables of a kernel's image: what they are to a kernel that runs, at whatever address."""

from __future__ import annotations

from fetchc.program.entities import Absent, AtSymbol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.elf.file import Elf
    from fetchc.program.entities import Place
    from fetchc.quantities import Address

__all__ = ["PER_CPU", "of_several", "symbol_place"]

PER_CPU = ".data..percpu"  # include/asm-generic/vmlinux.lds.h


def symbol_place(elf: Elf, name: str, address: Address, found: tuple[Address, ...]) -> Place:
    """Where the variable ``name``, at ``address`` in the image, is found by its symbol.

    ``found`` are the addresses of all symbols of that name.
    """
    section = elf.section_range(PER_CPU)
    if section is not None and section[0] <= address < section[1]:
        why = "each processor has a copy of its own, and no fetch-arg can add where"
        return Absent("FC0403", why)
    if found == (address,):
        return AtSymbol(name, known=False)
    if not found:
        why = "the kernel is at another address after each boot, and it has no symbol"
        return Absent("FC0401", why)
    return of_several(len(found))


def of_several(count: int) -> Absent:
    """What a name that so many symbols have leads to."""
    return Absent("FC0401", f"the kernel has {count} symbols of that name, and takes the first")
