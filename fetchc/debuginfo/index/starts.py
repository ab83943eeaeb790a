"""Where the units of a big file start, kept: each header is found by hopping over those before it.

The file has numbers of 64 bits in this machine's byte order: DieOffsets of the headers that earlier
runs passed, and where the next one would be.
"""

from __future__ import annotations

import sys
from array import array

from fetchc.debuginfo.elf.image import Image
from fetchc.debuginfo.kept.files import KeptFile, save_later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.entries.stretches import Stretch

__all__ = ["known_starts"]

_FEW = 64  # headers that a run passes in no time
_SUFFIX = ".units"


def known_starts(stretch: Stretch) -> tuple[list[int], int]:
    """The headers of a section of the program's own file that are known, and where to go on."""
    image = stretch.sections.info.elf.debug_image
    key = f"units {sys.byteorder} {stretch.section.name} {stretch.base} {image.identity()}"
    file = KeptFile(Image.cache_folder, image.build_id(), key, _SUFFIX)
    data = file.upto(file.have) if file.have else None
    starts: list[int] = [] if data is None else data.cast("Q").tolist()
    following = starts.pop() if starts else stretch.base
    known = len(starts)
    save_later(lambda: _save(stretch, known, file))
    return starts, following


def _save(stretch: Stretch, known: int, file: KeptFile) -> None:
    starts, following = stretch.found()
    if len(starts) < known + _FEW:
        return
    if file.again:
        file.write(array("Q", [*starts, following]).tobytes())
    else:
        file.mark()
