"""Debug files from servers: ``GET URL/buildid/ID/debuginfo``.

Asked are the servers of DEBUGINFOD_URLS, and none where it is unset. What comes is only used where
it has the build-id that was asked for. Source: debuginfod(8), WEBAPI; the environment variables:
debuginfod_find_debuginfo(3).
"""

from __future__ import annotations

import os
import time
from http.client import HTTPException
from stat import S_ISREG
from threading import Event, Thread
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)
from zlib import crc32

from fetchc.debuginfo.cache import ensure_folder, removed
from fetchc.debuginfo.elf.headers import Image
from fetchc.debuginfo.environment import DEFAULT
from fetchc.debuginfo.safe_open import check_owner, exists, own_folder
from fetchc.debuginfo.separate.build_id import opened
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from http.client import HTTPMessage
    from typing import IO, Any, BinaryIO

    from fetchc.debuginfo.environment import CacheFolder, Environment

__all__ = [
    "SUFFIX",
    "Limits",
    "Store",
    "Transfers",
    "Unavailable",
    "ask",
    "client_cache",
    "download",
    "downloads",
]

# ------------------------------------------------------------------------------
# One download, from a server that may be slow, gone or hostile.
#
# It continues in a thread, so that a server which sends a byte a minute, or never answers, is left
# when its time is over, whatever the thread waits for.

_CHUNK = 1 << 16
_LEAST = 100 << 10  # bytes in the time of DEBUGINFOD_TIMEOUT: slower is given up
_FIRST, _EACH = 1.0, 5.0  # seconds until the first word about a download, and between others


class Unavailable(Exception):
    """The server has it not, or does not give it; ``absent`` where it said so."""

    def __init__(self, why: str, absent: bool = False) -> None:
        super().__init__(why)
        self.absent = absent


class _Unwritable(Exception):
    # Not the server refuses but the disk.
    def __init__(self, cause: OSError) -> None:
        super().__init__(cause)
        self.cause = cause


class Limits(Record):
    """Seconds without 100 KB, seconds in all, bytes; 0: as long as it takes.

    The first and the second are those of elfutils. A file is never longer than 4 GiB, unless
    DEBUGINFOD_MAXSIZE says so: more than any debug file, less than a disk.
    """

    quiet: float = 90.0
    seconds: float = 0.0
    size: int = 4 << 30

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Limits:
        """As the variables say; what is not a number above 0 counts as not set."""
        return cls(
            float(_number(environment, "DEBUGINFOD_TIMEOUT") or 90),
            float(_number(environment, "DEBUGINFOD_MAXTIME")),
            _number(environment, "DEBUGINFOD_MAXSIZE") or 4 << 30,
        )


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 19 else 0


def download(
    url: str, file: BinaryIO, limits: Limits, say: Callable[[str], None] | None = None
) -> None:
    """Write what is at ``url`` to ``file``; ``say`` gets the progress, where it takes long.

    Raises Unavailable, and OSError where it cannot be written.
    """
    transfer = _Transfer(url, file, limits)
    Thread(target=transfer.run, daemon=True).start()
    started = mark = time.monotonic()
    have, spoken = 0, started + _FIRST - _EACH
    try:
        while not transfer.ended.wait(0.05):
            now = time.monotonic()
            if transfer.have - have >= _LEAST:
                mark, have = now, transfer.have
            if now - mark > limits.quiet:
                raise Unavailable(f"less than 100 KB in {limits.quiet:g} s")
            if limits.seconds and now - started > limits.seconds:
                raise Unavailable(f"not there after {limits.seconds:g} s")
            if say is not None and now - spoken > _EACH:
                spoken = now
                say(f"downloading {url}: {transfer.progress()}")
    finally:
        transfer.stopped = True
    if transfer.failed is not None:
        raise transfer.failed


class _Transfer:
    def __init__(self, url: str, file: BinaryIO, limits: Limits) -> None:
        self.url = url
        self.file = file
        self.limits = limits
        self.have = 0
        self.whole: int | None = None
        self.stopped = False  # nobody waits any more
        self.failed: Exception | None = None
        self.ended = Event()

    def progress(self) -> str:
        of = "" if self.whole is None else f" of {self.whole / 1e6:.1f}"
        return f"{self.have / 1e6:.1f}{of} MB"

    def run(self) -> None:
        try:
            self._run()
        except HTTPError as refused:
            with refused:
                why = f"HTTP {refused.code} {refused.reason}"
            self.failed = Unavailable(why, absent=refused.code == 404)
        except URLError as refused:
            self.failed = Unavailable(_reason(refused.reason))
        except (HTTPException, ValueError) as broken:
            self.failed = Unavailable(f"no answer of a server: {broken or type(broken).__name__}")
        except _Unwritable as refused:
            self.failed = refused.cause
        except OSError as lost:
            self.failed = Unavailable(_reason(lost))
        finally:
            self.ended.set()

    def _run(self) -> None:
        request = Request(self.url, headers={"User-Agent": "fetchc"})
        with _opener().open(request, timeout=self.limits.quiet) as answer:
            length = answer.headers.get("Content-Length", "")
            self.whole = int(length) if length.isdecimal() else None
            self._room(self.whole or 0)
            while piece := answer.read1(_CHUNK):
                if self.stopped:
                    return
                self._room(self.have + len(piece))
                self._write(piece)
        if self.whole is not None and self.have != self.whole:
            raise ValueError(f"it ends after {self.have} of {self.whole} bytes")

    def _write(self, piece: bytes) -> None:
        try:
            self.file.write(piece)
            self.file.flush()
        except OSError as refused:
            raise _Unwritable(refused) from None
        self.have += len(piece)

    def _room(self, size: int) -> None:
        if size > self.limits.size:
            raise ValueError(f"longer than {self.limits.size} bytes (DEBUGINFOD_MAXSIZE)")


def _reason(reason: object) -> str:
    if isinstance(reason, OSError):
        return reason.strerror or str(reason)
    return str(reason)


class _Redirects(HTTPRedirectHandler):
    """To http and https alone, and not from https to http."""

    def redirect_request(
        self,
        req: Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> Request | None:
        """The request for ``newurl``; HTTPError where it is none to follow."""
        there = urlsplit(newurl).scheme
        if there not in ("http", "https") or (req.type, there) == ("https", "http"):
            raise HTTPError(
                newurl, code, f"redirects to {newurl}, which fetchc does not follow", headers, fp
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> OpenerDirector:
    # Without the handlers of files, FTP and data that urlopen has.
    opener = OpenerDirector()
    for handler in (
        ProxyHandler(),
        UnknownHandler(),
        HTTPHandler(),
        HTTPSHandler(),
        HTTPDefaultErrorHandler(),
        _Redirects(),
        HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


# ------------------------------------------------------------------------------
# Debug files that were downloaded, in a folder of the user's own: ``debuginfod`` in the cache.
#
# A file is named by its build-id. An empty one, which is also named by the servers, says that
# none of them had it when it was last changed. What is not used for a week goes when something
# else comes.

FOLDER = "debuginfod"
SUFFIX = ".debug"
ABSENT_SECONDS = 600  # as long as elfutils' client does not ask again
UNUSED_SECONDS = 7 * 24 * 3600  # and as long as it caches what nobody uses


class Store:
    """The folder. Without one, as in a library, files live as long as they are mapped."""

    __slots__ = ("_absent", "_cache", "folder")

    def __init__(self, servers: list[str], cache: CacheFolder | None) -> None:
        asked = crc32(" ".join(servers).encode("utf-8", "surrogateescape"))
        self._absent = f".{asked:08x}.absent"
        self._cache = cache
        self.folder = "" if cache is None else os.path.join(cache.path, FOLDER)

    def cached_path(self, build_id: str) -> str | None:
        """The path of a cached file; empty where the servers had none a while ago; None: ask."""
        cache = self._cache
        if cache is None or not self.folder or not own_folder(self.folder, cache.user):
            return None
        path = self._path(build_id, SUFFIX)
        if _own(path, cache.user) is not None:
            return path  # untouched: its cached sections depend on its times
        marked = _own(self._path(build_id, self._absent), cache.user)
        return "" if marked is not None and time.time() - marked < ABSENT_SECONDS else None

    def _path(self, build_id: str, suffix: str) -> str:
        return os.path.join(self.folder, build_id + suffix)

    def partial(self, build_id: str) -> tuple[int, str]:
        """A file to write a download to, open, and its path; OSError where none can be created."""
        from tempfile import mkstemp

        cache = self._cache
        if cache is not None and self.folder:
            ready = ensure_folder(cache, cache.path) and ensure_folder(cache, self.folder)
            self.folder = self.folder if ready else ""
        return mkstemp(".part", f"{build_id}.", self.folder or None)

    def keep(self, path: str, build_id: str, suffix: str = SUFFIX) -> str:
        """Where the whole file at ``path`` is from now on."""
        if not self.folder:
            return path
        final = self._path(build_id, suffix)
        os.rename(path, final)
        self._evict()
        return final

    def absent(self, build_id: str) -> None:
        """Remember that no server has it."""
        if self.folder:
            handle, path = self.partial(build_id)
            os.close(handle)
            self.keep(path, build_id, self._absent)

    def _evict(self) -> None:
        now = time.time()
        cache = os.path.dirname(self.folder)
        for used, _, name in downloads(cache):
            if now - used > UNUSED_SECONDS:
                try:
                    removed(os.path.join(cache, name))
                except OSError:
                    return


def _own(path: str, user: int | None) -> float | None:
    # When a file of the user's own was changed last; None where there is none.
    try:
        status = os.lstat(path)
    except OSError:
        return None
    ours = S_ISREG(status.st_mode) and status.st_uid == (os.geteuid() if user is None else user)
    return status.st_mtime if ours else None


def downloads(cache: str) -> list[tuple[float, int, str]]:
    """Time of last use, bytes and name of each file in the cache, half downloads of killed
    runs included. OSError where the folder cannot be read.
    """
    folder = os.path.join(cache, FOLDER)
    found = []
    if own_folder(folder):
        with os.scandir(folder) as names:
            for entry in names:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # another process has removed it
                if S_ISREG(status.st_mode):
                    name = os.path.join(FOLDER, entry.name)
                    # File systems note when a file is mapped, some once a day, some never.
                    used = max(status.st_atime, status.st_mtime)
                    found.append((used, status.st_size, name))
    return sorted(found)


def client_cache(build_id: str) -> Iterator[str]:
    """Where elfutils' client keeps the file, which gdb and others had it download.

    Source: debuginfod_find_debuginfo(3), ENVIRONMENT VARIABLES.
    """
    base = os.environ.get("DEBUGINFOD_CACHE_PATH", "")
    if not base:
        home = os.environ.get("HOME", "")
        cache = os.environ.get("XDG_CACHE_HOME", "") or f"{home}/.cache"
        base = f"{cache}/debuginfod_client"
    if base.startswith("/"):
        yield os.path.join(base, build_id, "debuginfo")


def _servers() -> list[str]:
    words = os.environ.get("DEBUGINFOD_URLS", "").split()
    return [word.rstrip("/") for word in words if not word.startswith("ima:")]  # how to verify


class Transfers:
    """Downloads into the user's folder. A process without rights has another one do them."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._partial: set[str] = set()

    def download(self, server: int, build_id: str) -> tuple[str, str, bool]:
        """A new file with what that server of DEBUGINFOD_URLS has, to be settled; else why not,
        and whether the server said that it has none.
        """
        try:
            url = _url(_servers()[server], build_id)
            return self._download(url, build_id), "", False
        except Unavailable as refused:
            return "", str(refused), refused.absent

    def _download(self, url: str, build_id: str) -> str:
        path = ""
        try:
            handle, path = Store(_servers(), self._environment.cache).partial(build_id)
            with os.fdopen(handle, "wb") as file:
                download(url, file, Limits.of(os.environ), self._environment.report)
        except BaseException as stopped:
            if path:
                removed(path)
            if not isinstance(stopped, OSError):
                raise
            raise Unavailable(f"cannot be kept: {stopped.strerror or stopped}") from None
        self._partial.add(path)
        return path

    def keep_download(self, path: str, build_id: str) -> tuple[str, str]:
        """Where a downloaded file is from now on, empty where there is no folder for it; and why
        it is not there, where it cannot be.
        """
        self._partial.remove(path)
        store = Store(_servers(), self._environment.cache)
        try:
            if os.path.dirname(path) == store.folder:
                return store.keep(path, build_id), ""
            removed(path)
            return "", ""
        except OSError as refused:
            removed(path)
            return "", f"cannot be kept: {refused.strerror or refused}"

    def discard(self, path: str) -> None:
        """Remove a downloaded file."""
        self._partial.remove(path)
        removed(path)

    def absent(self, build_id: str) -> str:
        """Remember that no server has it; why not, where that cannot be."""
        store = Store(_servers(), self._environment.cache)
        try:
            store.absent(build_id)
        except OSError as refused:
            return f"{store.folder} ({refused.strerror})"
        return ""


class _Delegated(Transfers):
    def __init__(self, environment: Environment, call: Callable[..., Any]) -> None:
        super().__init__(environment)
        self._call = call

    def download(self, server: int, build_id: str) -> tuple[str, str, bool]:
        found: tuple[str, str, bool] = self._call("download", server, build_id)
        return found

    def keep_download(self, path: str, build_id: str) -> tuple[str, str]:
        answer: tuple[str, str] = self._call("keep_download", path, build_id)
        return answer

    def discard(self, path: str) -> None:
        self._call("discard", path)

    def absent(self, build_id: str) -> str:
        why: str = self._call("absent", build_id)
        return why


def ask(
    build_id: str,
    fits: Callable[[Image], str],
    tried: list[str],
    environment: Environment = DEFAULT,
) -> Image | None:
    """The debug file with that build ID, cached or downloaded; None where nobody has it.

    ``fits`` says why a file is the wrong one. What was tried goes to ``tried``.
    """
    remote = environment.remote
    transfers = Transfers(environment) if remote is None else _Delegated(environment, remote)
    asked = _servers()
    if not asked:
        return None
    store = Store(asked, environment.cache)
    cached_path = store.cached_path(build_id)
    if cached_path == "":
        tried.append("the servers of DEBUGINFOD_URLS (not there minutes ago)")
        return None
    for path in [cached_path] if cached_path else client_cache(build_id):
        if exists(path):
            foreign = check_owner(path, environment.user)
            if foreign:
                tried.append(f"{path} (not used: {foreign})")
                continue
            image = opened(path, fits, tried, environment=environment)
            if image is not None:
                return image
    absent = True
    for number, server in enumerate(asked):
        url = _shown(server, build_id)
        try:
            image = _from(transfers, number, url, build_id, fits, tried, environment)
            if image is not None:
                return image
            absent = False
        except Unavailable as refused:
            tried.append(f"{url} ({refused})")
            absent = absent and refused.absent
    if absent and (why := transfers.absent(build_id)):
        tried.append(why)
    return None


def _url(server: str, build_id: str) -> str:
    scheme, _, rest = server.partition("://")
    host = rest.partition("/")[0]
    if scheme not in ("http", "https") or not host.rpartition("@")[2]:
        raise Unavailable("not http or https")
    if "@" in host:
        raise Unavailable("an address with a user or password is not asked")
    if not build_id.isalnum():
        raise Unavailable("not a build ID")
    return _shown(server, build_id)


def _shown(server: str, build_id: str) -> str:
    # Without the password: messages go to logs.
    scheme, slashes, rest = server.partition("://")
    host, slash, folder = rest.partition("/")
    host = host.rpartition("@")[2]
    return f"{scheme}{slashes}{host}{slash}{folder}/buildid/{build_id}/debuginfo"


def _from(
    transfers: Transfers,
    server: int,
    url: str,
    build_id: str,
    fits: Callable[[Image], str],
    tried: list[str],
    environment: Environment,
) -> Image | None:
    partial, why, absent = transfers.download(server, build_id)
    if why:
        raise Unavailable(why, absent)
    image = None
    try:
        image = opened(partial, fits, tried, url, environment=environment)
    finally:
        if image is None:
            transfers.discard(partial)
    if image is None:
        return None
    path, why = transfers.keep_download(partial, build_id)
    if why:
        raise Unavailable(why)
    if path:
        return Image(path, environment=environment)
    image.path = url  # its name is gone: messages say where it came from
    return image
