"""Decompression of debug sections, piece by piece.

Two containers exist: SHF_COMPRESSED sections with an ELF compression header (gABI), and
the older ``.zdebug_*`` sections with ``ZLIB`` and a big-endian size in front.
"""

from __future__ import annotations

from fetchc.diag.errors import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap
    from typing import Protocol

    class Inflater(Protocol):
        """Gives the decompressed bytes in order."""

        def more(self, size: int) -> bytes:
            """Exactly the next ``size`` bytes."""


__all__ = ["ZlibInflater", "zstd_inflater"]

# The best that deflate can do is 258 bytes from two bits and a little; zlib's own text says
# 1032:1 (https://zlib.net/zlib_tech.html). A header that promises more is a lie, and would
# otherwise decide how much memory is taken.
ZLIB_RATIO = 1032
_CHUNK = 1 << 20  # compressed bytes handed to zlib at a time


class ZlibInflater:
    """A zlib stream of the mapped file, ``size`` bytes when inflated."""

    __slots__ = ("_at", "_end", "_given", "_map", "_name", "_path", "_size", "_stream", "_tail")

    def __init__(self, path: str, name: str, mapped: mmap, start: int, end: int, size: int) -> None:
        import zlib

        self._path = path
        self._name = name
        self._map = mapped
        self._at = start
        self._end = end
        self._size = size
        self._given = 0
        self._tail = b""
        self._stream = zlib.decompressobj()
        if size > ZLIB_RATIO * (end - start) + ZLIB_RATIO:
            raise self._error(f"cannot inflate {end - start} bytes to the {size} it promises")

    def _error(self, what: str) -> DebugInfoError:
        return DebugInfoError("FC0904", self._path, what, self._name)

    def more(self, size: int) -> bytes:
        """Exactly the next ``size`` bytes; FC0904 where the stream is damaged or too short."""
        pieces = []
        missing = size
        while missing:
            piece = self._piece(missing)
            pieces.append(piece)
            missing -= len(piece)
        self._given += size
        if self._given == self._size:
            self._finish()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _piece(self, limit: int) -> bytes:
        import zlib

        if not self._tail:
            stop = min(self._at + _CHUNK, self._end)
            self._tail = self._map[self._at : stop]
            self._at = stop
        had = self._tail
        try:
            piece = self._stream.decompress(had, limit)
        except zlib.error as broken:
            raise self._error(f"damaged zlib stream ({broken})") from None
        self._tail = self._stream.unconsumed_tail
        if not piece and (self._stream.eof or (not self._tail and self._at >= self._end)):
            raise self._error("the zlib stream ends before the promised size")
        return piece

    def _finish(self) -> None:
        # The checksum stands behind the last byte: zlib looks at it when asked for one more.
        import zlib

        while not self._stream.eof:
            if not self._tail:
                stop = min(self._at + _CHUNK, self._end)
                self._tail = self._map[self._at : stop]
                self._at = stop
                if not self._tail:
                    raise self._error("the zlib stream has no end")
            try:
                extra = self._stream.decompress(self._tail, 1)
            except zlib.error as broken:
                raise self._error(f"damaged zlib stream ({broken})") from None
            self._tail = self._stream.unconsumed_tail
            if extra:
                raise self._error("the zlib stream is longer than the promised size")


class _Whole:
    # A buffer that is inflated already, given out in order.
    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def more(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]


def zstd_inflater(path: str, name: str, packed: bytes, size: int) -> Inflater:
    """A zstd section, by the optional ``zstandard`` module; FC0905 where that is missing."""
    try:
        module = __import__("zstandard")
    except ImportError:
        raise DebugInfoError(
            "FC0905",
            path,
            "compressed with zstd, which needs the Python module zstandard",
            name,
            help="install zstandard, or run: objcopy --decompress-debug-sections",
        ) from None
    try:
        data: bytes = module.ZstdDecompressor().decompress(packed, max_output_size=size)
    except (module.ZstdError, MemoryError) as broken:
        raise DebugInfoError("FC0904", path, f"damaged zstd stream ({broken})", name) from None
    if len(data) != size:
        raise DebugInfoError("FC0904", path, "the zstd stream has not the promised size", name)
    return _Whole(data)
