"""The symbols that .gnu_debugdata has: mini debug information, an ELF file packed by xz.

It has the function symbols that .dynsym lacks. Source: the GDB manual, "MiniDebugInfo".
"""

from __future__ import annotations

from fetchc.debuginfo.elf.image import Image
from fetchc.diag.diagnostic import DebugInfoError

__all__ = ["mini_image"]

_SECTION = ".gnu_debugdata"
_MOST = 1 << 28  # bytes unpacked: some megabytes in the biggest programs
_MEMORY = 1 << 27  # bytes that unpacking may take; xz -9 takes half of it


def mini_image(program: Image) -> Image:
    """The file inside of ``program``; FC0904 where it is missing or damaged."""
    section = program.open_section(_SECTION)
    if section is None:
        raise DebugInfoError("FC0904", program.path, "without bytes", _SECTION)
    packed = section.bytes_between(0, section.size)
    try:
        import lzma
    except ImportError:
        raise DebugInfoError(
            "FC0905",
            program.path,
            "packed by xz, and this Python was built without its module lzma",
            _SECTION,
            help="use a Python that has it",
        ) from None
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY)
    try:
        content = unpacker.decompress(packed, _MOST)
    except lzma.LZMAError as broken:
        raise section.error(f"damaged xz stream ({broken})") from None
    if not unpacker.eof:
        more = "more than is read" if len(content) == _MOST else "cut off"
        raise section.error(f"damaged xz stream ({more})")
    found = Image(f"{program.path}({_SECTION})", content)
    theirs = found.machine, found.bits64, found.little
    if theirs != (program.machine, program.bits64, program.little):
        raise section.error("for another machine than the program")
    return found
