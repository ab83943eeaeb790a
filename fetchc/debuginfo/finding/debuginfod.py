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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ask"]


def _servers() -> list[str]:
    words = os.environ.get("DEBUGINFOD_URLS", "").split()
    return [word.rstrip("/") for word in words if not word.startswith("ima:")]  # how to verify


def ask(build_id: str, fits: Callable[[Image], str], told: list[str]) -> Image | None:
    """The debug file with that build-id, kept or downloaded; None where nobody has it.

    ``fits`` says why a file is the wrong one. What was tried goes to ``told``.
    """
    asked = _servers()
    if not asked:
        return None
    store = Store(asked)
    known = store.known(build_id)
    if known == "":
        told.append("the servers of DEBUGINFOD_URLS (not there minutes ago)")
        return None
    for path in [known] if known else client_cache(build_id):
        if os.path.exists(path):
            image = opened(path, fits, told)
            if image is not None:
                return image
    absent = True
    for server in asked:
        scheme, slashes, rest = server.partition("://")
        host, slash, folder = rest.partition("/")
        _, at, host = host.rpartition("@")
        # Without the password: messages go to logs.
        url = f"{scheme}{slashes}{host}{slash}{folder}/buildid/{build_id}/debuginfo"
        try:
            if scheme not in ("http", "https") or not host:
                raise Unavailable("not http or https")
            if at:
                raise Unavailable("an address with a user or password is not asked")
            image = _from(url, build_id, store, fits, told)
            if image is not None:
                return image
            absent = False
        except Unavailable as refused:
            told.append(f"{url} ({refused})")
            absent = absent and refused.absent
    if absent:
        try:
            store.absent(build_id)
        except OSError as refused:
            told.append(f"{store.folder} ({refused.strerror})")
    return None


def _from(
    url: str, build_id: str, store: Store, fits: Callable[[Image], str], told: list[str]
) -> Image | None:
    try:
        handle, partial = store.partial(build_id)
    except OSError as refused:
        raise Unavailable(f"cannot be kept: {refused.strerror}") from None
    kept = False
    try:
        with os.fdopen(handle, "wb") as file:
            download(url, file, Limits.of(os.environ), Image.say)
        image = opened(partial, fits, told, url)
        if image is not None and store.folder:
            image = Image(store.keep(partial, build_id))
            kept = True
        elif image is not None:
            image.path = url  # its name is about to go: messages say where it came from
        return image
    except OSError as refused:
        raise Unavailable(f"cannot be kept: {refused.strerror or refused}") from None
    finally:
        if not kept:
            removed(partial)
