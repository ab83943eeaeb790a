"""Finds the library that defines an imported function. Only refusals ask: off the hot path."""

from __future__ import annotations

import glob

from fetchc.debuginfo.byte_reader import Cursor, record_layout
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.separate.debug_file_search import libraries
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["address_word", "imported", "is_executable", "may_be_copied", "relocations"]

# Source: <elf.h>.
_DT_NULL = 0
_DT_NEEDED = 1


def imported(elf: Elf, name: str) -> tuple[tuple[str, ...], str] | None:
    """The libraries that the file loads, and the path of the first of them here that has ``name``.

    The path is empty where none is found; None where the file imports no such function.
    """
    if not elf.imports(name):
        return None
    needed = tuple(_needed(elf))
    for library in needed:
        for path in [library] if "/" in library else libraries(glob.escape(library)):
            if _has(path, elf, name):
                return needed, path
    return needed, ""


def _needed(elf: Elf) -> Iterator[str]:
    data, names = elf.section(".dynamic"), elf.section(".dynstr")
    if data is None or names is None:
        return
    cursor = Cursor(elf.path, ".dynamic", data, little=elf.little_endian)
    while not cursor.at_end():
        tag, value = cursor.unsigned(elf.word_bytes), cursor.unsigned(elf.word_bytes)
        if tag == _DT_NULL:
            return
        if tag == _DT_NEEDED:
            yield bytes(names[value : value + 4096]).partition(b"\0")[0].decode("utf-8", "replace")


def _has(path: str, elf: Elf, name: str) -> bool:
    try:
        other = Elf(path, environment=elf.environment)
        return other.machine == elf.machine and bool(other.exported(name))
    except DebugInfoError:
        return False


# ------------------------------------------------------------------------------
# Variables of a shared library that an executable may hold a copy of.
#
# An executable that names a library's variable directly gets a copy of it in its own memory (a
# copy relocation), and the library then uses that copy: its own bytes go stale.

_ET_DYN = 3
_STT_OBJECT = 1
_STB_LOCAL = 0
# Source: <elf.h>, DT_NULL, DT_FLAGS_1, DF_1_PIE (set by binutils 2.26 and later, and lld).

_DT_FLAGS_1 = 0x6FFFFFFB
_DF_1_PIE = 0x08000000


def may_be_copied(elf: Elf, name: str, address: Address) -> bool:
    """Whether the variable ``name`` at ``address`` is exported by a shared library."""
    if is_executable(elf):
        return False
    return any(
        symbol.address == address and symbol.kind == _STT_OBJECT and symbol.binding != _STB_LOCAL
        for symbol in elf.exported(name)
    )


def is_executable(elf: Elf) -> bool:
    """Whether a file that is linked is an executable; a position-independent one is ET_DYN, too."""
    if elf.kind != _ET_DYN:
        return True
    data = elf.section(".dynamic")
    if data is None:
        return False
    cursor = Cursor(elf.path, ".dynamic", data, little=elf.little_endian)
    while not cursor.at_end():
        tag = cursor.unsigned(elf.word_bytes)
        value = cursor.unsigned(elf.word_bytes)
        if tag == _DT_FLAGS_1:
            return bool(value & _DF_1_PIE)
        if tag == _DT_NULL:
            break
    return False


# ------------------------------------------------------------------------------
# Words that the loader fills in with the address of a variable of this file or of another one.
#
# Code that does not know where a variable will be reads its address from the global offset table;
# tables of constant pointers are filled in the same way. Nothing writes to either afterwards, so
# the word says where the variable is in the process, whichever file of it has the variable.
# Source: System V gABI, chapter 5 (relocation, global offset table).

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
    for address, info, addend in relocations(elf):
        if info in wanted and not addend and any(low <= address < end for low, end in ranges):
            return Address(address)
    return None


def relocations(elf: Elf) -> Iterator[tuple[int, int, int]]:
    """r_offset, r_info and r_addend of each.

    Without a field of its own the addend is in the word, for the relocations of variables in the
    global offset table 0.
    """
    word = "Q" if elf.word_bytes == 8 else "I"
    for kind, fields in ((_SHT_RELA, word * 2 + word.lower()), (_SHT_REL, word * 2)):
        entry = record_layout(elf.little_endian, fields)
        for section in elf.sections_of_kind(kind):
            raw = section.upto()
            for found in entry.iter_unpack(raw[: len(raw) // entry.size * entry.size]):
                yield found if len(found) == 3 else (*found, 0)
