"""Where the thread-local variables of a file are, counted from the thread pointer.

The block of an executable ends at the thread pointer: its linker knows how far each variable is
from there. That of a shared library is where the loader has found room. Where the library's own
code counts from the thread pointer (the initial-exec model, as libc does for ``errno``), the loader
has written how far that is into the global offset table. In other libraries only
``__tls_get_addr`` knows it: the tables that it goes through may be those of a library that is
unloaded by now, and nothing in them says so.

Sources: Ulrich Drepper, ELF Handling For Thread-Local Storage; what is true of a machine has its
source in ``targets/arch``.
"""

from __future__ import annotations

import re

from fetchc.debuginfo.elf.elf_file import DISCARDED
from fetchc.debuginfo.elf.headers import architecture_of
from fetchc.debuginfo.elf.shared_libraries import is_executable, relocations
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import ThreadLocal
from fetchc.quantities import Address, ByteOffset
from fetchc.record import Record
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.elf.elf_file import Elf

__all__ = ["ThreadStorage", "certain", "thread_storage"]

_PF_X = 1
_STT_TLS = 6
_LARGEST = 1 << 31  # bytes, as far as an instruction reaches


class ThreadStorage(Record):
    """The thread-local storage of a file: where its first byte is, and its size in bytes.

    A string is why that is not certain, here and in what follows. It continues "in thread-local
    storage, ".
    """

    start: ThreadLocal | str
    size: int

    def at(self, offset: int) -> ThreadLocal | str:
        """Where what begins ``offset`` bytes into it is."""
        if isinstance(self.start, str):
            return self.start
        if not 0 <= offset < self.size:  # LLVM's linkers write the highest number
            return DISCARDED
        return self.start.replaced(offset=ByteOffset(self.start.offset + offset))


def thread_storage(elf: Elf) -> ThreadStorage:
    """The thread-local storage of ``elf``."""
    return ThreadStorage(_start(elf), 0 if elf.thread_block is None else elf.thread_block.size)


def certain(elf: Elf, name: str, place: ThreadLocal, first: bool) -> ThreadLocal | str:
    """``place`` if the variable with the symbol ``name`` is there; ``first``: storage begins there.

    Linkers write the first place for a variable, too, that they left out. And what a relocation of
    a library names may be another file's variable of that name.
    """
    if first and not any(
        one.kind == _STT_TLS and one.address == 0 for one in elf.symbols_named(name)
    ):
        return "and no symbol says that the linker kept it"
    numbers = elf.dynamic_numbers(name) if place.word is not None else ()
    if numbers and any(info >> 32 in numbers for _, info, _ in relocations(elf)):
        return "and the library may use another file's variable of that name"
    return place


def _start(elf: Elf) -> ThreadLocal | str:
    machine = table(f"arch/{architecture_of(elf)}")
    rules = machine.get("thread_pointer")
    if rules is None:
        return "and the kernel does not say where that is on this machine"
    block = elf.thread_block
    if block is None:
        return "of which the file has none"
    if _writes_pointer(elf, rules["writes"]):
        return "whose place the file's code may set without the kernel (wrfsbase)"
    if not is_executable(elf):
        return _of_library(elf, machine["relocations"]["thread_offset"])
    whole = block.size + -(block.address + block.size) % max(1, block.alignment)
    if whole > _LARGEST:
        raise DebugInfoError("FC0904", elf.path, f"thread-local storage of {whole} bytes")
    return ThreadLocal(ByteOffset(-whole))


def _of_library(elf: Elf, kind: int) -> ThreadLocal | str:
    for address, info, addend in relocations(elf):
        if info == kind:  # of symbol 0: of the file itself
            return ThreadLocal(ByteOffset(-addend), Address(address))
    return "and where that of this shared library is, only `__tls_get_addr` knows"


def _writes_pointer(elf: Elf, pattern: str) -> bool:
    writes = re.compile(pattern.encode("latin-1"))
    code = [one for one in elf.segments if one.flags & _PF_X]
    return any(writes.search(elf.read(one.address, one.file_size)) for one in code)
