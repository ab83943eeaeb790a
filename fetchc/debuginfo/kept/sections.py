"""Inflated debug sections.

Of a question about a compressed file, inflating is a third to a half, and every run inflates the
same bytes. So what a run has inflated, a section's first bytes, is written to a file when the run
ends, and mapped by the next one. To write takes a fifth of the time to inflate, which is lost on a
file that nobody asks about again: the first run leaves an empty file, the second one writes.
"""

from __future__ import annotations

from fetchc.debuginfo.kept.files import KeptFile, save_later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.debuginfo.elf.inflate import StreamInflater

__all__ = ["LEAST", "KeptSection"]

LEAST = 1 << 17  # bytes inflated in about 0.5 ms: less is not worth a file


class KeptSection:
    """An inflater that first looks at what is kept of its section.

    ``made`` makes the one that inflates, where that is needed; ``key`` says which bytes of which
    file the section is made of, in words that no other has.
    """

    __slots__ = ("_folder", "_inflater", "_kept", "_key", "_made")

    def __init__(
        self, folder: str, build_id: str | None, key: str, made: Callable[[], StreamInflater]
    ) -> None:
        self._folder = folder
        self._key = build_id, key
        self._made = made
        self._inflater: StreamInflater | None = None
        self._kept: KeptFile | None = None  # not looked for yet

    def upto(self, size: int) -> memoryview:
        """At least the first ``size`` bytes; FC0904 where the stream is damaged or too short."""
        found = self._looked().upto(size)
        return self._inflating().upto(size) if found is None else found

    def part(self, start: int, end: int) -> memoryview:
        """The bytes from ``start`` to ``end``; what is in front of them is not looked at."""
        found = self._looked().part(start, end)
        return self._inflating().part(start, end) if found is None else found

    def reaching(self, start: int, end: int) -> memoryview:
        """At least the first ``end`` bytes; what is in front of ``start`` is not looked at."""
        found = self._looked().reaching(start, end)
        return self._inflating().upto(end) if found is None else found

    def find(self, needle: bytes, start: int, end: int) -> int:
        """Where ``needle`` is between ``start`` and ``end``; -1 if nowhere."""
        kept = self._looked()
        if kept.part(start, end) is None:
            return self._inflating().find(needle, start, end)
        return kept.find(needle, start, end)

    def _looked(self) -> KeptFile:
        if self._kept is None:
            self._kept = KeptFile(self._folder, *self._key, ".section")
            save_later(self.save)
        return self._kept

    def _inflating(self) -> StreamInflater:
        if self._inflater is None:
            self._inflater = self._made()
        return self._inflater

    def save(self) -> None:
        """Write what was inflated, where that is more than is kept and worth it."""
        kept, inflater = self._kept, self._inflater
        if kept is None or inflater is None:
            return
        inflated = inflater.inflated()
        if len(inflated) < LEAST or len(inflated) <= kept.have:
            return
        if kept.again:
            kept.write(inflated)
        else:
            kept.mark()
