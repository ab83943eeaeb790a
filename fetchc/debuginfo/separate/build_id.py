"""Build IDs, .gnu_debuglink and .gnu_debugaltlink: which debug files fit a program."""

from __future__ import annotations

import os

from fetchc.debuginfo.elf.headers import Image
from fetchc.debuginfo.environment import DEFAULT
from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.debuginfo.environment import Environment

__all__ = [
    "MissingDebugFile",
    "opened",
    "other_build",
    "other_file",
    "other_machine",
    "read_alternate",
    "read_link",
]

_CRC_CHUNK = 1 << 20
_CRC_MOST = (
    4 << 30
)  # bytes that a checksum covers, in seconds: a sparse file costs its owner nothing


class MissingDebugFile(DebugInfoError):
    """A file that debug information refers to is nowhere (FC0909), or of another build (FC0908)."""


def read_link(image: Image) -> tuple[str, int] | None:
    """Name and CRC-32 of the debug file, by .gnu_debuglink; None where there is none.

    Source: the GDB manual, "Separate Debug Files".
    """
    link = image.open_section(".gnu_debuglink")
    if link is None:
        return None
    reader = link.cursor(0)
    name = os.fsdecode(reader.cstring())
    if not name or "/" in name:
        raise link.error(f"{name!r} is no name of a file", 0)
    reader.skip(-reader.offset % 4)
    return name, reader.u32()


def read_alternate(image: Image) -> tuple[str, str]:
    """Name and build ID of the supplementary file that dwz wrote for several files.

    In DWARF 5, a checksum of dwz's own is in the build-id's place.
    """
    link = image.open_section(".gnu_debugaltlink")
    if link is None:
        shared = _supplementary(image)
        if shared is not None and shared[0]:
            return shared
        raise DebugInfoError(
            "FC0904", image.path, "missing, but entries refer to it", ".gnu_debugaltlink"
        )
    reader = link.cursor(0)
    name = os.fsdecode(reader.cstring())
    if not name:
        raise link.error("'' is no name of a file", 0)
    return name, link.bytes_between(reader.offset, link.size).hex()


def opened(
    path: str,
    fits: Callable[[Image], str],
    tried: list[str],
    called: str = "",
    root: str = "",
    environment: Environment = DEFAULT,
) -> Image | None:
    """The file at ``path``, None where it is the wrong one: why goes to ``tried``, which calls it
    ``called``. ``fits`` says why a file is wrong, and nothing of the right one. ``root`` is the
    root directory of the process that names the file.
    """
    try:
        image = Image(path, root=root, environment=environment)
    except DebugInfoError as broken:
        tried.append(f"{called or path} ({broken.what})")
        return None
    reason = fits(image)
    if not reason:
        return image
    tried.append(f"{called or path} ({reason})")
    return None


def other_build(found: Image, build_id: str) -> str:
    """Why ``found`` is not of the build; empty where it is."""
    theirs = found.build_id()
    if theirs != build_id:
        shared = _supplementary(found)
        theirs = theirs if shared is None else shared[1]
    return "" if theirs == build_id else f"build-id {theirs or 'missing'}, not {build_id}"


def _supplementary(image: Image) -> tuple[str, str] | None:
    # File name, empty in the shared file itself, and checksum. Source: DWARF 5, section 7.3.6.
    section = image.open_section(".debug_sup")
    if section is None:
        return None
    reader = section.cursor(3)  # after the version, and whether it is the shared file
    name = os.fsdecode(reader.cstring())
    return name, reader.take(reader.uleb()).hex()


def other_machine(found: Image, program: Image) -> str:
    """Why ``found`` cannot be of the program at all: another machine, word size, byte order."""
    theirs = found.machine, found.bits64, found.little
    ours = program.machine, program.bits64, program.little
    return "" if theirs == ours else f"for {_machine(*theirs)}, not {_machine(*ours)}"


def _machine(number: int, bits64: bool, little: bool) -> str:
    order = "little" if little else "big"
    return f"machine {number} ({64 if bits64 else 32} bits, {order}-endian)"


def other_file(
    found: Image, program: Image, build_id: str | None, link: tuple[str, int] | None
) -> str:
    """Why ``found`` is not the debug file of the program; empty where it is.

    By what both state: the build-id, else the checksum of .gnu_debuglink, else the places of the
    sections that are mapped, which a debug file has without their bytes.
    """
    if build_id is not None and (link is None or found.build_id() is not None):
        return other_build(found, build_id)
    if link is not None:
        return _other_checksum(found, link[1])
    ours, theirs = _mapped(program), _mapped(found)
    different = [name for name in ours if theirs.get(name) != ours[name]]
    if not ours:
        return "no build-id, no checksum and no section says that it is of this one"
    return f"{different[0]} is not where the program has it" if different else ""


def _mapped(image: Image) -> dict[str, tuple[int, int]]:
    # SHF_ALLOC: address and size of each section that a process has.
    return {one.name: (one.address, one.size) for one in image.headers if one.flags & 2}


def _other_checksum(found: Image, expected: int) -> str:
    import zlib

    if len(found.map) > _CRC_MOST:
        return f"it has more than {_CRC_MOST >> 30} GiB, and only its checksum could identify it"
    crc = 0
    for start in range(0, len(found.map), _CRC_CHUNK):
        crc = zlib.crc32(found.map[start : start + _CRC_CHUNK], crc)
    return "" if crc == expected else f"its checksum is {crc:08x}, not {expected:08x}"
