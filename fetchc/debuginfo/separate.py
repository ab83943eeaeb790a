"""Where the separate debug file of a stripped program is.

Distributions install it by build-id; objcopy --add-gnu-debuglink names a file beside the
program. Source: the GDB manual, "Debugging Information in Separate Files".
"""

from __future__ import annotations

import os

from fetchc.debuginfo.image import Image
from fetchc.diag.errors import DebugInfoError

__all__ = ["debug_image"]

_CRC_CHUNK = 1 << 20


def debug_image(program: Image, root: str) -> Image | None:
    """The separate debug file of ``program``, None where there is none.

    By build-id under ``root``, else by .gnu_debuglink beside the program, in ``.debug/`` and
    under ``root``. A file of another build is refused with FC0903, never skipped silently.
    """
    build_id = program.build_id()
    if build_id is not None and len(build_id) > 2:
        path = os.path.join(root, ".build-id", build_id[:2], build_id[2:] + ".debug")
        if os.path.exists(path):
            return _same_build(Image(path), build_id, program)
    return _linked(program, build_id, root)


def _linked(program: Image, build_id: str | None, root: str) -> Image | None:
    link = program.open_section(".gnu_debuglink")
    if link is None:
        return None
    reader = link.cursor(0)
    name = os.fsdecode(reader.cstring())
    if not name or "/" in name:
        raise link.error(f"{name!r} is no name of a file", 0)
    reader.skip(-reader.offset % 4)
    expected = reader.u32()
    own = os.path.realpath(program.path)
    directory = os.path.dirname(own)
    for candidate in (
        os.path.join(directory, name),
        os.path.join(directory, ".debug", name),
        os.path.join(root, directory.lstrip("/"), name),
    ):
        if os.path.isfile(candidate) and os.path.realpath(candidate) != own:
            found = Image(candidate)
            if build_id is not None and found.build_id() is not None:
                return _same_build(found, build_id, program)
            if _crc32(found) != expected:
                raise _other_build(found, program, "its checksum differs")
            return found
    return None


def _same_build(found: Image, build_id: str, program: Image) -> Image:
    theirs = found.build_id()
    if theirs != build_id:
        raise _other_build(found, program, f"build-id {theirs or 'missing'}, not {build_id}")
    return found


def _other_build(found: Image, program: Image, why: str) -> DebugInfoError:
    return DebugInfoError(
        "FC0903",
        program.path,
        f"its debug file {found.path} is of another build: {why}",
        help="install the debug package of exactly this build, or remove the stale file",
    )


def _crc32(image: Image) -> int:
    import zlib

    crc = 0
    for start in range(0, len(image.map), _CRC_CHUNK):
        crc = zlib.crc32(image.map[start : start + _CRC_CHUNK], crc)
    return crc
