"""Cached files: results that are expensive to compute, by the build ID of the file they are from.

A file is a header and then, at a page boundary, the bytes. The header has a checksum of itself, one
of each block of the bytes, and what the bytes are from (the key): build ID, device and inode, size
and times of the last change. Two files with one build ID do not mix, and a file that was replaced
or touched is read again. A cached file that does not agree, that another user owns or that others
can read is not used. Files are written under another name and renamed, so that any number of
processes can read and write.
"""

from __future__ import annotations

import os
from mmap import ACCESS_READ, ALLOCATIONGRANULARITY, mmap
from stat import S_ISREG
from struct import Struct
from zlib import crc32

from fetchc.debuginfo.safe_open import check_owner, own_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fetchc.debuginfo.elf.compressed import StreamInflater
    from fetchc.debuginfo.environment import CacheFolder

__all__ = [
    "LEAST",
    "CachedFile",
    "CachedSection",
    "ensure_folder",
    "entries",
    "removed",
    "store",
]

MOST = 1 << 29  # bytes of all files; those that were not used for longest go first
SUFFIXES = (".section", ".names", ".outline", ".units", ".ranges", ".btf", ".listing")
# Bytes under one checksum. A string has its whole block looked at: with 64 kB, the strings of one
# question about ceph-mds took a fifth of all checksums. Smaller blocks take longer to go through.
BLOCK = 1 << 13
_SUM = Struct("<I")
_HEADER = Struct("<8sIIQI")  # magic, checksum of what follows, bytes of it, of data, of the key
_MAGIC = b"fetchc\x00\x04"
_FRONT = 12  # bytes before what the header's checksum is of


def store(folder: CacheFolder, name: str, content: bytes) -> None:
    """Write a file for another process, whose :class:`CacheFolder` calls this to ``write``.

    An empty one never replaces another. Nothing is written under a name that this module would not
    choose, or where the folder refuses.
    """
    stem, dot, suffix = name.partition(".")
    plain = stem.replace("-", "").isalnum() and stem.isascii()
    if not plain or dot + suffix not in SUFFIXES or not ensure_folder(folder, folder.path):
        return
    path = os.path.join(folder.path, name)
    if not content:
        _mark(path)
        return
    _write(folder, path, (content,))
    _evict(folder.path)


class CachedFile:
    """One file of the folder, for the bytes that ``key`` tells from all others.

    ``again`` says whether an earlier run asked for it, ``have`` how many bytes are cached.
    """

    __slots__ = (
        "_checked", "_data", "_folder", "_good", "_key", "_name", "_sums", "_view", "again", "have",
    )  # fmt: skip

    def __init__(self, folder: CacheFolder, build_id: str | None, key: str, suffix: str) -> None:
        self._folder = folder
        self._key = f"{build_id} {key}".encode()
        # Readable for `cache show`; what it must agree with is in the header.
        self._name = f"{build_id or 'file'}-{crc32(self._key):08x}{suffix}"
        self._data: mmap | None = None
        self._view = memoryview(b"")  # of the same bytes
        self._sums = memoryview(b"")  # of the blocks, as _SUM has them
        self._good = 0  # so many first bytes are right
        self._checked: set[int] = set()  # blocks that are
        self.again = False
        self.have = 0
        self._look()

    def upto(self, size: int) -> memoryview | None:
        """At least the first ``size`` bytes; None where so many are not cached, or damaged."""
        if size > self.have:
            return None
        if self._good < size:
            behind = -(-size // BLOCK)
            if not self._right(self._good // BLOCK, behind):
                return None
            self._good = min(behind * BLOCK, self.have)
        return self._view[: self._good]

    def view(self, start: int, end: int) -> memoryview | None:
        """The bytes from ``start`` to ``end``, no others looked at; None as of :meth:`upto`."""
        if end > self.have or not self._right(start // BLOCK, -(-end // BLOCK)):
            return None
        return self._view[start:end]

    def reaching(self, start: int, end: int) -> memoryview | None:
        """At least the first ``end`` bytes, those from ``start`` on looked at; None as of upto."""
        behind = min(-(-end // BLOCK) * BLOCK, self.have)
        if end > self.have or self.view(start, behind) is None:
            return None
        return self._view[:behind]

    def _right(self, first: int, behind: int) -> bool:
        # Whether the blocks from ``first`` on are. Each is looked at once.
        if self._data is None:
            return False
        view, sums, checked = self._view, self._sums, self._checked
        for block in range(first, behind):
            if block in checked:
                continue
            start = block * BLOCK
            if crc32(view[start : start + BLOCK]) != _SUM.unpack_from(sums, 4 * block)[0]:
                self._unused("damaged")
                self.have = min(self.have, start)  # what was handed out before is right
                return False
            checked.add(block)
        return True

    def find(self, needle: bytes, start: int, end: int) -> int:
        """Where ``needle`` is between ``start`` and ``end``, which :meth:`view` has given."""
        assert self._data is not None
        return self._data.find(needle, start, end)

    def _unused(self, why: str) -> None:
        self._folder.notes.append(f"{self._path()} is not used: it is {why}")

    def _path(self) -> str:
        return os.path.join(self._folder.path, self._name)

    def _look(self) -> None:
        folder = self._folder
        if not own_folder(folder.path, folder.user):
            if os.path.lexists(folder.path):
                what = "it is not a folder that this user owns and only they can write to"
                why = check_owner(folder.path, folder.user) or what
                folder.notes.append(f"{folder.path} is not used: {why}")
            return
        try:
            handle = os.open(
                self._path(), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            )
        except FileNotFoundError:
            return
        except OSError as refused:
            self._unused(f"no file to read ({refused.strerror})")
            return
        try:
            wrong = self._read(handle)
            if wrong:
                self._unused(wrong)
            if folder.write is None:
                os.utime(handle)  # used now: not the first to go
        except (OSError, ValueError) as refused:
            # A folder that cannot be written to, or a file that is shorter than it says.
            folder.notes.append(f"{folder.path}: {refused}")
        finally:
            os.close(handle)

    def _read(self, handle: int) -> str:
        # What is wrong with it; empty where nothing is.
        status = os.fstat(handle)
        if not S_ISREG(status.st_mode):
            return "no regular file"
        user = os.geteuid() if self._folder.user is None else self._folder.user
        if status.st_uid != user or status.st_mode & 0o77:
            return "another user's, or open to others"
        self.again = True
        if not status.st_size:
            return ""  # the mark of a first run
        head = os.read(handle, ALLOCATIONGRANULARITY)
        if len(head) < _HEADER.size:
            return "damaged"
        magic, checksum, size, have, key_size = _HEADER.unpack_from(head)
        if magic != _MAGIC:
            return "of another version of fetchc, or damaged"
        if not have or status.st_size != _aligned(size) + have:
            return "damaged"
        head += os.read(handle, max(0, size - len(head)))
        behind = _HEADER.size + key_size
        sums = memoryview(head)[behind:size]
        if crc32(head[_FRONT:size]) != checksum or len(sums) != _SUM.size * -(-have // BLOCK):
            return "damaged"
        if head[_HEADER.size : behind] != self._key:
            return "of another file"
        self._data = mmap(handle, have, offset=_aligned(size), access=ACCESS_READ)
        self._view, self._sums = memoryview(self._data), sums
        self.have = have
        return ""

    def mark(self) -> None:
        """Leave an empty file: the next run knows that it is not the first."""
        folder = self._folder
        if folder.write is not None:
            folder.write(self._name, b"")
        elif ensure_folder(folder, folder.path):
            _mark(self._path())

    def write(self, data: bytes | memoryview) -> None:
        """Keep ``data``, or nothing where the folder refuses."""
        folder = self._folder
        if not data or (folder.write is None and not ensure_folder(folder, folder.path)):
            return
        sums = [crc32(data[start : start + BLOCK]) for start in range(0, len(data), BLOCK)]
        behind = self._key + Struct(f"<{len(sums)}I").pack(*sums)
        size = _HEADER.size + len(behind)
        front = _HEADER.pack(_MAGIC, 0, size, len(data), len(self._key))
        checksum = crc32(front[_FRONT:] + behind)
        head = _HEADER.pack(_MAGIC, checksum, size, len(data), len(self._key)) + behind
        head = head.ljust(_aligned(size), b"\0")
        if folder.write is not None:
            folder.write(self._name, head + data)
            return
        _write(folder, self._path(), (head, data))
        _evict(folder.path)


def ensure_folder(cache: CacheFolder, folder: str) -> bool:
    """Make ``folder``, which is the cache's or inside, so that only the user can read it.

    Whether it is there and the user's own.
    """
    foreign = check_owner(folder, cache.user)
    if foreign:
        cache.notes.append(f"nothing is cached in {folder}: {foreign}")
        return False
    try:
        os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    except OSError as refused:
        cache.notes.append(f"nothing is cached in {folder}: {refused.strerror}")
        return False
    own = own_folder(folder, cache.user)
    if not own:
        cache.notes.append(
            f"nothing is cached in {folder}: this user does not own it, or it is not a folder"
        )
    return own


def _mark(path: str) -> None:
    # Never in the place of what another process has written meanwhile.
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError:
        return


def _write(folder: CacheFolder, path: str, parts: Sequence[bytes | memoryview]) -> None:
    # Under a name of its own, so that nobody sees a part of it. The process's number alone is not:
    # in containers all have the same, and one that was killed leaves its file. A folder that is
    # read-only or full keeps nothing.
    partial = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as refused:
        folder.notes.append(f"{path} is not written: {refused.strerror}")
        return
    try:
        with os.fdopen(handle, "wb", buffering=0) as file:
            for part in parts:
                if file.write(part) != len(part):
                    raise OSError(0, "no room for all of it")
        os.rename(partial, path)
    except BaseException as stopped:
        removed(partial)
        if not isinstance(stopped, OSError):
            raise
        folder.notes.append(f"{path} is not written: {stopped.strerror}")


def removed(path: str) -> None:
    """Remove a file; another process may have been faster (`cache clear`, a full folder)."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def entries(folder: str) -> list[tuple[float, int, str]]:
    """Time of last use, bytes and name of each cached file, and of partial ones of killed runs."""
    found = []
    with os.scandir(folder) as names:
        for entry in names:
            ours = any(suffix in entry.name for suffix in SUFFIXES)
            if not ours or not entry.is_file(follow_symlinks=False):
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # another process has removed it
            found.append((status.st_mtime, status.st_size, entry.name))
    return sorted(found)


def _evict(folder: str) -> None:
    try:
        listed = entries(folder)
        total = sum(size for _, size, _ in listed)
        for _, size, name in listed:
            if total <= MOST:
                return
            removed(os.path.join(folder, name))
            total -= size
    except OSError:
        pass  # the folder is read-only, or gone


def _aligned(size: int) -> int:
    return (size + ALLOCATIONGRANULARITY - 1) // ALLOCATIONGRANULARITY * ALLOCATIONGRANULARITY


# ------------------------------------------------------------------------------
# Inflated debug sections.
#
# Inflating takes a third to a half of a request about a compressed file, and every run inflates the
# same bytes. The first bytes of a section, as far as a run has inflated them, are written to a file
# when the run ends, and mapped by the next one. Writing takes a fifth of the time of inflating,
# which is lost if there is no other request: the first run leaves an empty file, the second writes.

LEAST = 1 << 17  # bytes inflated in about 0.5 ms: a file for less saves no time


class CachedSection:
    """An inflater that first looks for the cached bytes of its section.

    ``create`` returns the one that inflates, and is called where that is needed. ``key``
    identifies the bytes of the file that the section consists of.
    """

    __slots__ = ("_cached", "_create", "_folder", "_inflater", "_key")

    def __init__(
        self,
        folder: CacheFolder,
        build_id: str | None,
        key: str,
        create: Callable[[], StreamInflater],
    ) -> None:
        self._folder = folder
        self._key = build_id, key
        self._create = create
        self._inflater: StreamInflater | None = None
        self._cached: CachedFile | None = None  # not looked for yet

    def upto(self, size: int) -> memoryview:
        """At least the first ``size`` bytes; FC0904 where the stream is damaged or too short."""
        found = self._lookup().upto(size)
        return self._inflate().upto(size) if found is None else found

    def view(self, start: int, end: int) -> memoryview:
        """The bytes from ``start`` to ``end``; the caller reads none before them."""
        found = self._lookup().view(start, end)
        return self._inflate().view(start, end) if found is None else found

    def reaching(self, start: int, end: int) -> memoryview:
        """At least the first ``end`` bytes; the caller reads none before ``start``."""
        found = self._lookup().reaching(start, end)
        return self._inflate().upto(end) if found is None else found

    def find(self, needle: bytes, start: int, end: int) -> int:
        """Where ``needle`` is between ``start`` and ``end``; -1 if nowhere."""
        cached = self._lookup()
        if cached.view(start, end) is None:
            return self._inflate().find(needle, start, end)
        return cached.find(needle, start, end)

    def _lookup(self) -> CachedFile:
        if self._cached is None:
            self._cached = CachedFile(self._folder, *self._key, ".section")
            self._folder.save_later(self.save)
        return self._cached

    def _inflate(self) -> StreamInflater:
        if self._inflater is None:
            self._inflater = self._create()
        return self._inflater

    def save(self) -> None:
        """Write what was inflated, where that is more than is cached and takes long enough."""
        cached, inflater = self._cached, self._inflater
        if cached is None or inflater is None:
            return
        inflated = inflater.inflated()
        if len(inflated) < LEAST or len(inflated) <= cached.have:
            return
        if cached.again:
            cached.write(inflated)
        else:
            cached.mark()
