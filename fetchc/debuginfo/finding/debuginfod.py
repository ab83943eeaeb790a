"""Debug files from servers: ``GET URL/buildid/ID/debuginfo``.

Asked are the servers of DEBUGINFOD_URLS, and none where it is unset. What comes is only used where
it has the build-id that was asked for. Source: debuginfod(8), WEBAPI; the environment variables:
debuginfod_find_debuginfo(3).
"""

from __future__ import annotations

import os

from fetchc.debuginfo.elf.image import Image
from fetchc.debuginfo.finding.same import opened
from fetchc.debuginfo.finding.store import Store, client_cache
from fetchc.debuginfo.finding.transfer import Limits, Unavailable, download
from fetchc.debuginfo.kept.files import removed
from fetchc.debuginfo.safe_open import check_owner, exists

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Transfers", "ask"]


def _servers() -> list[str]:
    words = os.environ.get("DEBUGINFOD_URLS", "").split()
    return [word.rstrip("/") for word in words if not word.startswith("ima:")]  # how to verify


class Transfers:
    """Downloads into the user's folder. A process without rights has another one do them."""

    def __init__(self) -> None:
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
            handle, path = Store(_servers()).partial(build_id)
            with os.fdopen(handle, "wb") as file:
                download(url, file, Limits.of(os.environ), Image.say)
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
        store = Store(_servers())
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
        store = Store(_servers())
        try:
            store.absent(build_id)
        except OSError as refused:
            return f"{store.folder} ({refused.strerror})"
        return ""


class _Delegated(Transfers):
    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__()
        self._call = call

    def download(self, server: int, build_id: str) -> tuple[str, str, bool]:
        found: tuple[str, str, bool] = self._call("download", server, build_id)
        return found

    def keep_download(self, path: str, build_id: str) -> tuple[str, str]:
        kept: tuple[str, str] = self._call("keep_download", path, build_id)
        return kept

    def discard(self, path: str) -> None:
        self._call("discard", path)

    def absent(self, build_id: str) -> str:
        why: str = self._call("absent", build_id)
        return why


def ask(
    build_id: str,
    fits: Callable[[Image], str],
    told: list[str],
    delegate: Callable[..., Any] | None = None,
) -> Image | None:
    """The debug file with that build ID, cached or downloaded; None where nobody has it.

    ``fits`` says why a file is the wrong one. What was tried goes to ``told``. ``delegate`` has
    another process call a method of its :class:`Transfers`, where this one has no network.
    """
    transfers = Transfers() if delegate is None else _Delegated(delegate)
    asked = _servers()
    if not asked:
        return None
    store = Store(asked)
    known = store.known(build_id)
    if known == "":
        told.append("the servers of DEBUGINFOD_URLS (not there minutes ago)")
        return None
    for path in [known] if known else client_cache(build_id):
        if exists(path):
            foreign = check_owner(path)
            if foreign:
                told.append(f"{path} (not used: {foreign})")
                continue
            image = opened(path, fits, told)
            if image is not None:
                return image
    absent = True
    for number, server in enumerate(asked):
        url = _shown(server, build_id)
        try:
            image = _from(transfers, number, url, build_id, fits, told)
            if image is not None:
                return image
            absent = False
        except Unavailable as refused:
            told.append(f"{url} ({refused})")
            absent = absent and refused.absent
    if absent and (why := transfers.absent(build_id)):
        told.append(why)
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
    told: list[str],
) -> Image | None:
    partial, why, absent = transfers.download(server, build_id)
    if why:
        raise Unavailable(why, absent)
    image = None
    try:
        image = opened(partial, fits, told, url)
    finally:
        if image is None:
            transfers.discard(partial)
    if image is None:
        return None
    path, why = transfers.keep_download(partial, build_id)
    if why:
        raise Unavailable(why)
    if path:
        return Image(path)
    image.path = url  # its name is gone: messages say where it came from
    return image
