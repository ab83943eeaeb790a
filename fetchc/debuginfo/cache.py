"""Inflated debug sections, kept between runs in a folder of the user's own.

Of a question about a compressed file, inflating is a third to a half, and every run inflates the
same bytes. So what a run has inflated, a section's first bytes, is written to a file when the run
ends, and mapped by the next one. To write takes a fifth of the time to inflate, which is lost on a
file that nobody asks about again: the first run leaves an empty file, the second one writes.

Such a file is a header and then, from a page's beginning, the bytes. The header has a checksum of
itself, one of each block of the bytes, and what the bytes are: build-id, device and inode, sizes,
places, times of the last change and the checksum that the compressed stream states. Two files with
one build-id do not mix, and one that was replaced or touched is inflated anew. What does not agree,
is another user's or open to others is not used, as if nothing were kept. Files are written under
another name and renamed, so that any number of processes can read and write.
"""

from __future__ import annotations

import os
from mmap import ACCESS_READ, ALLOCATIONGRANULARITY, mmap
from stat import S_ISDIR, S_ISREG
from struct import Struct
from zlib import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.image import Image
    from fetchc.debuginfo.inflate import ZlibInflater

__all__ = ["LEAST", "Kept", "entries", "kept", "own_folder", "save"]

LEAST = 1 << 18  # bytes inflated in about 1 ms: less is not worth a file
MOST = 1 << 29  # bytes of all files; those that were not used for longest go first
SUFFIX = ".section"
BLOCK = 1 << 20  # bytes under one checksum
_OPENED = 16  # sections remembered for save()
_HEADER = Struct("<8sIIQI")  # magic, checksum of what follows, bytes of it, of data, of the key
_MAGIC = b"fetchc\x00\x01"
_FRONT = 12  # bytes in front of what the header's checksum is of

_remembered: list[Kept] = []  # of this run, for save()


def kept(folder: str, image: Image, name: str, inflater: ZlibInflater, packed: bytes) -> Kept:
    """``inflater`` with what the folder has of its section; what it inflates is for :func:`save`.

    ``packed`` says which bytes of the file the section is made of, in words that no other has.
    """
    made = Kept(folder, image, name, inflater, packed)
    if len(_remembered) == _OPENED:
        _remembered.pop(0).save()
    _remembered.append(made)
    return made


def save() -> None:
    """Write what was inflated in this run and is not kept yet; a folder that refuses is left."""
    while _remembered:
        _remembered.pop().save()


class Kept:
    """An inflater that first looks at what is kept of its section."""

    __slots__ = ("_again", "_data", "_folder", "_good", "_have", "_image", "_inflater", "_name",
                 "_packed", "_sums")  # fmt: skip

    def __init__(
        self, folder: str, image: Image, name: str, inflater: ZlibInflater, packed: bytes
    ) -> None:
        self._folder = folder
        self._image = image
        self._name = name
        self._inflater = inflater
        self._packed = packed
        self._data: mmap | None = None
        self._again = False  # an earlier run asked as well
        self._have = -1  # bytes that are kept; not looked yet
        self._good = 0  # of those, whose checksum was found right
        self._sums: tuple[int, ...] = ()

    def upto(self, size: int) -> memoryview:
        """At least the first ``size`` bytes; FC0904 where the stream is damaged or too short."""
        if self._have < 0:
            self._look()
        if size <= self._have and self._right(size) and self._data is not None:
            return memoryview(self._data)[: self._good]
        return self._inflater.upto(size)

    def find(self, needle: bytes, start: int, end: int) -> int:
        """Where ``needle`` is between ``start`` and ``end``; -1 if nowhere."""
        self.upto(end)
        if self._data is not None and end <= self._good:
            return self._data.find(needle, start, end)
        return self._inflater.find(needle, start, end)

    def _key(self) -> bytes:
        return f"{self._image.build_id()} {self._name} ".encode() + self._packed

    def _path(self) -> str:
        # Readable for `cache show`; what it must agree with is in the header.
        name = f"{self._image.build_id()}-{crc32(self._key()):08x}{SUFFIX}"
        return os.path.join(self._folder, name)

    def _look(self) -> None:
        self._have = 0
        if self._image.build_id() is None or not own_folder(self._folder):
            return
        try:
            handle = os.open(self._path(), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return
        try:
            self._read(handle)
            os.utime(handle)  # used now: not the first to go
        except (OSError, ValueError):
            pass  # a folder that cannot be written to, or a file that is shorter than it says
        finally:
            os.close(handle)

    def _read(self, handle: int) -> None:
        status = os.fstat(handle)
        if not S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o77:
            return
        self._again = True
        head = os.read(handle, ALLOCATIONGRANULARITY)
        if len(head) < _HEADER.size:
            return
        magic, checksum, size, have, key_size = _HEADER.unpack_from(head)
        if magic != _MAGIC or not have or status.st_size != _aligned(size) + have:
            return
        head += os.read(handle, max(0, size - len(head)))
        key, blocks = self._key(), Struct(f"<{-(-have // BLOCK)}I")
        behind = _HEADER.size + key_size
        if crc32(head[_FRONT:size]) != checksum or size != behind + blocks.size:
            return
        if head[_HEADER.size : behind] != key:
            return
        self._data = mmap(handle, have, offset=_aligned(size), access=ACCESS_READ)
        self._sums = blocks.unpack_from(head, behind)
        self._have = have

    def _right(self, size: int) -> bool:
        # Whether the blocks up to ``size`` are what was written; each is looked at once.
        data = self._data
        while self._good < size and data is not None:
            end = min(self._good + BLOCK, self._have)
            with memoryview(data) as view:
                if crc32(view[self._good : end]) != self._sums[self._good // BLOCK]:
                    self._have = self._good  # what was handed out before is right
                    return False
            self._good = end
        return True

    def save(self) -> None:
        """Write what was inflated, where that is more than is kept and worth it."""
        inflated = self._inflater.inflated()
        if len(inflated) < LEAST or len(inflated) <= self._have:
            return
        if self._image.build_id() is None or not _made(self._folder):
            return
        if not self._again:
            _mark(self._path())
            return
        key = self._key()
        starts = range(0, len(inflated), BLOCK)
        sums = [crc32(inflated[start : start + BLOCK]) for start in starts]
        behind = key + Struct(f"<{len(sums)}I").pack(*sums)
        size = _HEADER.size + len(behind)
        front = _HEADER.pack(_MAGIC, 0, size, len(inflated), len(key))
        checksum = crc32(front[_FRONT:] + behind)
        head = _HEADER.pack(_MAGIC, checksum, size, len(inflated), len(key)) + behind
        _write(self._path(), head.ljust(_aligned(size), b"\0"), inflated)
        _evict(self._folder)


def own_folder(path: str) -> bool:
    """Whether the folder is there, the user's own, and nobody else can write to it."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    own = status.st_uid == os.geteuid()
    return S_ISDIR(status.st_mode) and own and not status.st_mode & 0o22


def _made(folder: str) -> bool:
    try:
        os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    except OSError:
        return False
    return own_folder(folder)


def _mark(path: str) -> None:
    # Never in the place of what another process has written meanwhile.
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError:
        return


def _write(path: str, head: bytes, data: memoryview) -> None:
    # Under a name of this process, so that nobody sees a part of it. A folder that is read-only
    # or full keeps nothing.
    partial = f"{path}.{os.getpid()}"
    try:
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb", buffering=0) as file:
            if file.write(head) != len(head) or file.write(data) != len(data):
                raise OSError("full")
        os.rename(partial, path)
    except BaseException as stopped:
        os.unlink(partial)
        if not isinstance(stopped, OSError):
            raise


def entries(folder: str) -> list[tuple[float, int, str]]:
    """Time of last use, bytes and name of what is kept, what writers left behind included."""
    found = []
    with os.scandir(folder) as names:
        for entry in names:
            if SUFFIX in entry.name and entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                found.append((status.st_mtime, status.st_size, entry.name))
    return sorted(found)


def _evict(folder: str) -> None:
    try:
        listed = entries(folder)
        total = sum(size for _, size, _ in listed)
        for _, size, name in listed:
            if total <= MOST:
                return
            os.unlink(os.path.join(folder, name))
            total -= size
    except OSError:
        pass  # another process does the same, or the folder is read-only


def _aligned(size: int) -> int:
    return (size + ALLOCATIONGRANULARITY - 1) // ALLOCATIONGRANULARITY * ALLOCATIONGRANULARITY
