"""Where the units of a big file start, and the code of each where no .debug_aranges says it, kept.

A header is found by hopping over those before it, and what code a unit has is in its top entry. The
files have numbers of 64 bits in this machine's byte order: DieOffsets of the headers that earlier
runs passed, and where the next one would be; start, end and unit of each range of code that they
read, and the last unit of these.
"""

from __future__ import annotations

import sys
from array import array

from fetchc.debuginfo.cache import KeptFile, save_later
from fetchc.debuginfo.elf.headers import Image
from fetchc.quantities import Address, DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.dwarf.entries.stretches import Stretch

    # Start, end and unit of ranges; the last unit.
    Ranges = tuple[list[tuple[Address, Address, DieOffset]], DieOffset]

__all__ = ["known_ranges", "known_starts"]

_FEW = 64  # headers that a run passes in no time
_SUFFIX, _RANGES = ".units", ".ranges"


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


def known_ranges(info: DebugInfo, found: Callable[[], Ranges]) -> Ranges:
    """The code of the units that earlier runs read; ``found`` tells of more when this one ends."""
    image = info.elf.debug_image
    key = f"ranges {sys.byteorder} {image.identity()}"
    file = KeptFile(Image.cache_folder, image.build_id(), key, _RANGES)
    data = file.upto(file.have) if file.have else None
    numbers: list[int] = [] if data is None else data.cast("Q").tolist()
    last = DieOffset(numbers.pop() if numbers else -1)
    triples = zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
    ranges = [(Address(low), Address(high), DieOffset(unit)) for low, high, unit in triples]
    known = len(ranges)
    save_later(lambda: _save_ranges(found(), known, file))
    return ranges, last


def _save_ranges(found: Ranges, known: int, file: KeptFile) -> None:
    ranges, last = found
    beyond = any(high >> 64 for _, high, _ in ranges)  # of a hostile list
    if len(ranges) < known + _FEW or last < 0 or beyond:
        return
    if file.again:
        file.write(array("Q", [*(each for triple in ranges for each in triple), last]).tobytes())
    else:
        file.mark()
