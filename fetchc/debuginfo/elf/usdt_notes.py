"""USDT: the notes that ``<sys/sdt.h>`` writes about static probes in an ELF file.

A note has the address of the probed instruction, the address that the section ``.stapsdt.base``
had when the program was linked, that of a counter by which the program knows that somebody looks
(0 for none), and three strings: provider, name, arguments. A tool that moves the program later
(prelink) moves the section, and does not change notes: all addresses move by the difference.
Source: the wiki of SystemTap, UserSpaceProbeImplementation; sys/sdt.h of systemtap-sdt-dev 4.8.
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import decode_number
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import StaticProbe
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.elf.elf_file import Elf

__all__ = ["static_probes"]

SECTION = ".note.stapsdt"
BASE = ".stapsdt.base"
OWNER = b"stapsdt\0"
KIND = 3
HEADER = 12  # bytes: sizes of the owner's name and of the content, kind
ALIGNMENT = 4


def static_probes(elf: Elf) -> tuple[StaticProbe, ...]:
    """Every static probe of the file, in the order of its notes; none where it has no notes.

    Raises DebugInfoError FC0904 with the place of a note that is damaged.
    """
    found = elf.section(SECTION)
    if found is None:
        return ()
    data = bytes(found)
    probes = []
    at = 0
    while at < len(data):
        if at + HEADER > len(data):
            raise _broken(elf, at, "a note without a whole header")
        name_size, size, kind = [_word(elf, data, at + 4 * each, 4) for each in range(3)]
        content = at + HEADER + _aligned(name_size)
        end = content + size
        if end > len(data):
            raise _broken(elf, at, f"a note of {size} bytes runs past the end of the section")
        if kind == KIND and data[at + HEADER : at + HEADER + name_size] == OWNER:
            probes.append(_probe(elf, data, content, end))
        at = content + _aligned(size)
    return tuple(probes)


def _probe(elf: Elf, data: bytes, at: int, end: int) -> StaticProbe:
    width = elf.word_bytes
    if at + 3 * width > end:
        raise _broken(elf, at, "a note without its three addresses")
    address, base, semaphore = [_word(elf, data, at + width * each, width) for each in range(3)]
    texts = data[at + 3 * width : end].split(b"\0")
    if len(texts) != 4 or texts[3] or not texts[0] or not texts[1]:
        raise _broken(elf, at + 3 * width, "a note without its three strings")
    provider, name, arguments = [text.decode("utf-8", "surrogateescape") for text in texts[:3]]
    now = elf.section_address(BASE)
    moved = 0 if now is None or not base else now - base
    mask = (1 << 8 * width) - 1
    counter = Address(semaphore + moved & mask) if semaphore else None
    return StaticProbe(provider, name, Address(address + moved & mask), counter, arguments)


def _word(elf: Elf, data: bytes, at: int, size: int) -> int:
    return decode_number(data[at : at + size], elf.little_endian)


def _aligned(size: int) -> int:
    return size + ALIGNMENT - 1 & -ALIGNMENT


def _broken(elf: Elf, offset: int, what: str) -> DebugInfoError:
    return DebugInfoError("FC0904", elf.path, what, SECTION, offset)
