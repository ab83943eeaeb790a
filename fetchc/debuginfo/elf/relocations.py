"""Words that the loader fills in with the address of a variable of this file or of another one.

Code that does not know where a variable will be reads its address from the global offset table;
tables of constant pointers are filled in the same way. Nothing writes to either afterwards, so the
word says where the variable is in the process, whichever file of it has the variable.
Source: System V gABI, chapter 5 (relocation, global offset table).
"""

from __future__ import annotations

from struct import Struct

from fetchc.quantities import Address
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.elf.file import Elf

__all__ = ["address_word"]

_SHT_RELA, _SHT_REL = 4, 9
_CONSTANT = (".got", ".data.rel.ro")  # sections that nobody but the loader writes to


def address_word(elf: Elf, architecture: str, name: str) -> Address | None:
    """Where the file has a word that holds the address of the symbol ``name`` once it is loaded.

    None where no constant word of the file is filled in with it alone.
    """
    kinds = table(f"arch/{architecture}").get("relocations")
    numbers = elf.dynamic_numbers(name) if kinds is not None else ()
    if kinds is None or not numbers:
        return None
    wide = elf.word_bytes == 8
    bits = 32 if wide else 8
    wanted = {
        number << bits | kinds[kind]
        for number in numbers
        for kind in ("global_offset_table", "symbol")
        if kind in kinds
    }
    ranges = [found for name in _CONSTANT if (found := elf.section_range(name)) is not None]
    for address, info, addend in _relocations(elf):
        if info in wanted and not addend and any(low <= address < end for low, end in ranges):
            return Address(address)
    return None


def _relocations(elf: Elf) -> Iterator[tuple[int, int, int]]:
    # r_offset, r_info, r_addend. Without a field of its own the addend is in the word, for the
    # relocations of variables in the global offset table 0.
    order, word = ("<" if elf.little_endian else ">"), ("Q" if elf.word_bytes == 8 else "I")
    for kind, fields in ((_SHT_RELA, word * 2 + word.lower()), (_SHT_REL, word * 2)):
        entry = Struct(order + fields)
        for section in elf.sections_of_kind(kind):
            raw = section.upto()
            for found in entry.iter_unpack(raw[: len(raw) // entry.size * entry.size]):
                yield found if len(found) == 3 else (*found, 0)
