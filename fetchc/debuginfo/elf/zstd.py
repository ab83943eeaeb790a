"""Sections that zstd packed, by the PyPI library ``zstandard`` (the extra ``kernels``).

Source: the gABI's ELFCOMPRESS_ZSTD; RFC 8878, of which several frames may follow each other.
"""

from __future__ import annotations

from fetchc.debuginfo.elf.inflate import StreamInflater
from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap

__all__ = ["ZstdInflater"]

# A block that repeats one byte takes 4 bytes and gives up to 128 KiB. Source: RFC 8878, 3.1.1.2.
ZSTD_RATIO = 1 << 15


class ZstdInflater(StreamInflater):
    """A zstd stream of the mapped file; FC0905 where the library is missing."""

    __slots__ = ("_damage", "_reader")

    def __init__(self, path: str, name: str, mapped: mmap, start: int, end: int, size: int) -> None:
        super().__init__(path, name, size)
        try:
            import zstandard
        except ImportError:
            raise DebugInfoError(
                "FC0905",
                path,
                "compressed with zstd, which needs the Python module zstandard",
                name,
                help="install it: `python3 -m pip install zstandard`",
            ) from None
        if size > ZSTD_RATIO * (end - start):
            raise self._error(f"cannot inflate {end - start} bytes to the {size} it promises")
        self._damage = zstandard.ZstdError
        packed = memoryview(mapped)[start:end]
        self._reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)

    def _piece(self, limit: int) -> bytes:
        piece = self._read(limit)
        if not piece:
            raise self._error("the zstd stream ends before the promised size")
        return piece

    def _finish(self) -> None:
        if self._read(1):
            raise self._error("the zstd stream is longer than the promised size")

    def _read(self, limit: int) -> bytes:
        try:
            return self._reader.read(limit)
        except self._damage as broken:
            raise self._error(f"damaged zstd stream ({broken})") from None
