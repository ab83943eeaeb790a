"""Decompression of debug sections, piece by piece.

Two containers exist: SHF_COMPRESSED sections with an ELF compression header (gABI), and
the older ``.zdebug_*`` sections with ``ZLIB`` and a big-endian size in front.
"""

from __future__ import annotations

from sys import modules

from fetchc.ceilings import HELP, inflation
from fetchc.debuginfo.byte_reader import decode_number, record_layout
from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from mmap import mmap
    from types import ModuleType
    from typing import Protocol

    from fetchc.debuginfo.elf.headers import Image, SectionHeader

    class Inflater(Protocol):
        """Gives the decompressed bytes in order."""

        def upto(self, size: int) -> memoryview:
            """At least the first ``size`` bytes."""

        def view(self, start: int, end: int) -> memoryview:
            """The bytes from ``start`` to ``end``."""

        def reaching(self, start: int, end: int) -> memoryview:
            """At least the first ``end`` bytes, of which those from ``start`` on are looked at."""

        def find(self, needle: bytes, start: int, end: int) -> int:
            """Where ``needle`` is between ``start`` and ``end``; -1 if nowhere."""


__all__ = [
    "Inflation",
    "StreamInflater",
    "ZlibInflater",
    "ZstdInflater",
    "deflate_library",
    "inflated",
]

# The best that deflate can do is 258 bytes from two bits and a little; zlib's own text says
# 1032:1 (https://zlib.net/zlib_tech.html). A header that promises more is a lie, and would
# otherwise decide how much memory is taken.
ZLIB_RATIO = 1032
# Compressed bytes handed to zlib at a time. Handing over all at once takes a third longer:
# what it makes of these stays in the processor's cache until it is copied to its place.
_CHUNK = 1 << 15
# Bytes of a section from which isal is worth its import of 1.2 ms: it saves 1.8 ns a byte, half of
# zlib's time, and a question has a half of a section inflated, or two thirds.
_LEAST_ISAL = 1 << 20
_STEP = 1 << 13  # bytes inflated at least: a cursor asks for one after the other
_LEAST_CACHED = 1 << 17  # LEAST of fetchc.debuginfo.cache: else it is not even imported
_ZLIB, _ZSTD = 1, 2  # ch_type
_WINDOW_BITS = 15  # of deflate: 32 KiB
_BIG = 1 << 28  # bytes of a section that is seldom inflated whole


def inflated(image: Image, header: SectionHeader) -> tuple[int, Inflater]:
    """The size of a compressed section's content, and what inflates it as it is read.

    Raises DebugInfoError FC0904 where the container is damaged, FC0905 where the method is not
    supported or its library is missing.
    """
    path, name, mapped = image.path, header.name, image.map
    start, end = int(header.offset), header.offset + header.size
    if name.startswith(".zdebug_"):
        if header.size < 12 or mapped[start : start + 4] != b"ZLIB":
            raise DebugInfoError("FC0904", path, "no ZLIB header", name)
        method, size = _ZLIB, decode_number(mapped[start + 4 : start + 12], False)
        start += 12
    else:
        # type, (reserved,) size, alignment
        layout = record_layout(image.little, "IIQQ" if image.bits64 else "III")
        if header.size < layout.size:
            raise DebugInfoError("FC0904", path, "no compression header", name)
        method, *_, size, _ = layout.unpack_from(mapped, start)
        start += layout.size
    if method == _ZLIB:
        found = ZlibInflater(path, name, mapped, start, end, size)
        found.share = image.inflation
        return size, _cached(image, header, size, lambda: found)
    if method == _ZSTD:

        def create() -> StreamInflater:
            stream = ZstdInflater(path, name, mapped, start, end, size)
            stream.share = image.inflation
            return stream

        return size, _cached(image, header, size, create)
    raise DebugInfoError("FC0905", path, f"compressed by an unknown method ({method})", name)


def _cached(
    image: Image, header: SectionHeader, size: int, create: Callable[[], StreamInflater]
) -> Inflater:
    cache = image.environment.cache
    if cache is None or size < _LEAST_CACHED or image.status is None:
        return create()
    from fetchc.debuginfo.cache import CachedSection

    # A stream of zlib ends in the checksum of what it inflates to.
    end = header.offset + header.size
    which = f"{header.name} {image.identity()} {header.offset} {header.size} {size}"
    key = f"{which} {image.map[end - 4 : end].hex()}"
    return CachedSection(cache, image.build_id(), key, create)


class Inflation:
    """How many bytes of a file's sections may still be inflated, whatever they promise."""

    __slots__ = ("_left", "_most", "_path")

    def __init__(self, path: str, size: int) -> None:
        self._path = path
        self._most = self._left = inflation(size)

    def take(self, size: int, section: str) -> None:
        """Count ``size`` bytes of ``section``; FC0905 where all together are too many."""
        self._left -= size
        if self._left < 0:
            what = f"the file's sections inflate to more than {self._most >> 20:,} MB"
            raise DebugInfoError("FC0905", self._path, what, section, help=HELP)


class StreamInflater:
    """A compressed stream of ``size`` bytes when inflated, inflated as far as it is asked for.

    A kind of stream gives the next bytes (``_piece``) and looks at its end (``_finish``).
    """

    __slots__ = ("_buffer", "_have", "_name", "_path", "_size", "share")

    def __init__(self, path: str, name: str, size: int) -> None:
        self.share: Inflation | None = None  # of the file that the section is of
        self._path = path
        self._name = name
        self._size = size
        self._buffer: mmap | None = None  # its first ``_have`` bytes are inflated
        self._have = 0

    def _piece(self, limit: int) -> bytes:
        # Some of the next ``limit`` bytes; FC0904 where there are none.
        raise NotImplementedError

    def _finish(self) -> None:
        # FC0904 where the stream is longer than it promised, or ends badly.
        raise NotImplementedError

    def _error(self, what: str) -> DebugInfoError:
        return DebugInfoError("FC0904", self._path, what, self._name)

    def upto(self, size: int) -> memoryview:
        """At least the first ``size`` bytes; FC0904 where the stream is damaged or too short."""
        have = self._have
        if have < size:
            size = min(max(size, have + _STEP), self._size)
            if self.share is not None:
                self.share.take(size - have, self._name)
            buffer = self._buffer
            if buffer is None:
                buffer = self._buffer = self._room()
            while have < size:
                piece = self._piece(size - have)
                buffer[have : have + len(piece)] = piece
                have += len(piece)
                self._have = have
            if have == self._size:
                self._have = 0  # a stream that ends badly has nothing to give, now and later
                self._finish()
                self._have = have
        return memoryview(self._buffer or b"")[:have]

    def view(self, start: int, end: int) -> memoryview:
        """The bytes from ``start`` to ``end``."""
        return self.upto(end)[start:end]

    def reaching(self, start: int, end: int) -> memoryview:
        """At least the first ``end`` bytes."""
        return self.upto(end)

    def inflated(self) -> memoryview:
        """What is inflated so far."""
        return memoryview(self._buffer or b"")[: self._have]

    def _room(self) -> mmap:
        # Pages that cost nothing before they are written: nothing is copied when more is
        # inflated, and what is not takes no memory, whatever size a hostile header promises.
        # RLIMIT_DATA counts private pages before they are written, and shared ones never.
        from mmap import MAP_ANONYMOUS, MAP_PRIVATE, MAP_SHARED, mmap

        how = MAP_SHARED if self._size > _BIG else MAP_PRIVATE
        try:
            return mmap(-1, self._size, flags=how | MAP_ANONYMOUS)
        except (OSError, OverflowError) as refused:
            raise DebugInfoError(
                "FC0905", self._path, f"no room for {self._size} bytes ({refused})", self._name
            ) from None

    def find(self, needle: bytes, start: int, end: int) -> int:
        """Where ``needle`` is between ``start`` and ``end``; -1 if nowhere."""
        self.upto(end)
        return -1 if self._buffer is None else self._buffer.find(needle, start, end)


def deflate_library(size: int) -> ModuleType:
    """The module that inflates a section of ``size`` bytes: isal's, or zlib, whose words it has.

    zlib where the section is small and isal not imported yet, or where isal is not installed: it
    has wheels for few machines.
    """
    if size >= _LEAST_ISAL or "isal.isal_zlib" in modules:
        try:
            from isal import isal_zlib
        except ImportError:
            pass
        else:
            return isal_zlib
    import zlib

    return zlib


class ZlibInflater(StreamInflater):
    """A zlib stream of the mapped file, ``size`` bytes when inflated.

    The stream is read as bare deflate, whose checksum is looked at when the end is reached:
    zlib would count to the end, which does not help a reader that stops before.
    Source: RFC 1950, section 2.2.
    """

    __slots__ = ("_at", "_end", "_library", "_map", "_stream", "_tail")

    def __init__(self, path: str, name: str, mapped: mmap, start: int, end: int, size: int) -> None:
        super().__init__(path, name, size)
        self._map = mapped
        self._at = start + 2
        self._end = end
        self._tail = b""
        self._library = deflate_library(size)
        self._stream = self._library.decompressobj(-_WINDOW_BITS)
        if size > ZLIB_RATIO * (end - start) + ZLIB_RATIO:
            raise self._error(
                f"cannot inflate {end - start} bytes to the {size} that its header states"
            )
        head = mapped[start : min(start + 2, end)]
        # Method 8 with a window of at most 32 KiB and no preset dictionary; a multiple of 31.
        if len(head) < 2 or head[0] & 15 != 8 or head[0] > 0x78 or head[1] & 32:
            raise self._error("damaged zlib stream (its header is unknown)")
        if decode_number(head, False) % 31:
            raise self._error("damaged zlib stream (its header is wrong)")

    def _piece(self, limit: int) -> bytes:
        if not self._tail:
            stop = min(self._at + _CHUNK, self._end)
            self._tail = self._map[self._at : stop]
            self._at = stop
        try:
            piece: bytes = self._stream.decompress(self._tail, limit)
        except (self._library.error, RuntimeError) as broken:  # isal: of a damaged stream
            raise self._error(f"damaged zlib stream ({broken})") from None
        self._tail = self._stream.unconsumed_tail
        if not piece and (self._stream.eof or (not self._tail and self._at >= self._end)):
            raise self._error("the zlib stream ends before the stated size")
        return piece

    def _finish(self) -> None:
        # The deflate data ends after its last byte: zlib sees it when asked for one more.
        while not self._stream.eof:
            if not self._tail:
                stop = min(self._at + _CHUNK, self._end)
                self._tail = self._map[self._at : stop]
                self._at = stop
            all_given = not self._tail  # isal may still hold bytes back
            try:
                extra = self._stream.decompress(self._tail, 1)
            except (self._library.error, RuntimeError) as broken:
                raise self._error(f"damaged zlib stream ({broken})") from None
            self._tail = self._stream.unconsumed_tail
            if extra:
                raise self._error("the zlib stream is longer than the stated size")
            if all_given and not self._stream.eof:
                raise self._error("the zlib stream has no end")
        behind = self._stream.unused_data
        checksum = (behind + self._map[self._at : self._end])[:4]
        if len(checksum) < 4:
            raise self._error("the zlib stream has no end")
        if decode_number(checksum, False) != self._library.adler32(self._buffer or b""):
            raise self._error("damaged zlib stream (its checksum is another)")


# ------------------------------------------------------------------------------
# Sections that zstd packed, by the PyPI library ``zstandard`` (the extra ``kernels``).
#
# Source: the gABI's ELFCOMPRESS_ZSTD; RFC 8878, of which several frames may follow each other.

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
            raise self._error(
                f"cannot inflate {end - start} bytes to the {size} that its header states"
            )
        self._damage = zstandard.ZstdError
        packed = memoryview(mapped)[start:end]
        self._reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)

    def _piece(self, limit: int) -> bytes:
        piece = self._read(limit)
        if not piece:
            raise self._error("the zstd stream ends before the stated size")
        return piece

    def _finish(self) -> None:
        if self._read(1):
            raise self._error("the zstd stream is longer than the stated size")

    def _read(self, limit: int) -> bytes:
        try:
            return self._reader.read(limit)
        except self._damage as broken:
            raise self._error(f"damaged zstd stream ({broken})") from None
