"""One download, from a server that may be slow, gone or hostile.

It goes on in a thread, so that a server which sends a byte a minute, or never answers, is left
when its time is over, whatever the thread waits for.
"""

from __future__ import annotations

import time
from http.client import HTTPException
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

from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from http.client import HTTPMessage
    from typing import IO, BinaryIO

__all__ = ["Limits", "Unavailable", "download"]

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
    DEBUGINFOD_MAXSIZE says so: more than any debug file known, less than a disk.
    """

    quiet: float = 90.0
    seconds: float = 0.0
    size: int = 4 << 30

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Limits:
        """As the variables say; what is no number above 0 counts as not set."""
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
    """Write what is at ``url`` to ``file``; ``say`` is told how far it is, where it takes long.

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
            raise HTTPError(newurl, code, f"leads to {newurl}, which is not followed", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> OpenerDirector:
    # Without the handlers of files, FTP and data that urlopen has.
    made = OpenerDirector()
    for handler in (
        ProxyHandler(),
        UnknownHandler(),
        HTTPHandler(),
        HTTPSHandler(),
        HTTPDefaultErrorHandler(),
        _Redirects(),
        HTTPErrorProcessor(),
    ):
        made.add_handler(handler)
    return made
