"""Where the units of a big file start and the code of each, cached.

A header is found by hopping over those before it; where no .debug_aranges lists the code of units,
it is in their top entries.
The files have numbers of 64 bits in this machine's byte order: DieOffsets of the headers that
earlier runs passed, and where the next one would be; start, end and unit of each range of code
that they read, and the last unit of these.
"""

from __future__ import annotations

import sys
from array import array

from fetchc.debuginfo.cache import CachedFile
from fetchc.quantities import Address, DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.units import UnitSection

    Ranges = tuple[list[tuple[Address, Address, DieOffset]], DieOffset]

__all__ = ["cached_ranges", "cached_unit_starts"]

_FEW = 64  # headers that a run passes in no time
_STARTS_SUFFIX, _RANGES = ".units", ".ranges"


def cached_unit_starts(unit_section: UnitSection) -> tuple[list[int], int]:
    """The cached offsets of unit headers in a section of the program's own file; the next one."""
    elf = unit_section.sections.info.elf
    image, cache = elf.debug_image, elf.environment.cache
    assert cache is not None
    at = f"{unit_section.section.name} {unit_section.base}"
    key = f"units {sys.byteorder} {at} {image.identity()}"
    file = CachedFile(cache, image.build_id(), key, _STARTS_SUFFIX)
    data = file.upto(file.have) if file.have else None
    starts: list[int] = [] if data is None else data.cast("Q").tolist()
    following = starts.pop() if starts else unit_section.base
    cached = len(starts)
    cache.save_later(lambda: _save_starts(unit_section, cached, file))
    return starts, following


def _save_starts(unit_section: UnitSection, cached: int, file: CachedFile) -> None:
    starts, following = unit_section.found()
    if len(starts) < cached + _FEW:
        return
    if file.again:
        file.write(array("Q", [*starts, following]).tobytes())
    else:
        file.mark()


def cached_ranges(info: DebugInfo, found: Callable[[], Ranges]) -> Ranges:
    """The code of the units that earlier runs read; ``found`` tells of more when this one ends."""
    image, cache = info.elf.debug_image, info.elf.environment.cache
    assert cache is not None
    key = f"ranges {sys.byteorder} {image.identity()}"
    file = CachedFile(cache, image.build_id(), key, _RANGES)
    data = file.upto(file.have) if file.have else None
    numbers: list[int] = [] if data is None else data.cast("Q").tolist()
    last = DieOffset(numbers.pop() if numbers else -1)
    triples = zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
    ranges = [(Address(low), Address(high), DieOffset(unit)) for low, high, unit in triples]
    cached = len(ranges)
    cache.save_later(lambda: _save_ranges(found(), cached, file))
    return ranges, last


def _save_ranges(found: Ranges, cached: int, file: CachedFile) -> None:
    ranges, last = found
    beyond = any(high >> 64 for _, high, _ in ranges)  # of a hostile list
    if len(ranges) < cached + _FEW or last < 0 or beyond:
        return
    if file.again:
        file.write(array("Q", [*(each for triple in ranges for each in triple), last]).tobytes())
    else:
        file.mark()
