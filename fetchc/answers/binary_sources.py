"""Programs out of folders, tar archives and OCI image layouts, one at a time.

What is in an archive is copied to a file without a name of the archive's choosing, and removed
when the next one is asked for. Archives are not trusted: the size and the number of members are
limited, links and devices are skipped, and nothing is unpacked to a path that an archive names.
Source: OCI image layout specification (index.json, blobs/ALGORITHM/ENCODED), image manifest and
layer (tar, tar+gzip, tar+zstd); an archive of `docker save` is such a layout, or has folders with
a `layer.tar` (moby, image/spec/v1.2.md).
"""

from __future__ import annotations

import json
import os
import re
import tarfile
import tempfile
import zlib
from contextlib import contextmanager

from fetchc.debuginfo.safe_open import open_regular, read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import IO, Any

__all__ = ["BinarySource", "programs_in", "sources"]

_ELF = b"\x7fELF"
_ZSTD = b"\x28\xb5\x2f\xfd"
_LAYER = re.compile(r"(\./)?(blobs/sha(256|512)/[0-9a-f]{64,128}|[0-9a-f]{64}/layer\.tar)\Z")
_LARGEST = 1 << 31  # bytes of a program
_MEMBERS = 1 << 20  # of an archive
_DOCUMENT = 1 << 24  # bytes of an index or a manifest
_LAYERS = 512  # of an image
_DIGEST = re.compile(r"(sha256|sha512):([0-9a-f]{64,128})\Z")
_COPY = 1 << 20
_UNREADABLE = (OSError, tarfile.TarError, EOFError, zlib.error, ValueError)


class BinarySource:
    """A program: what people call it, and where its bytes are while it is asked for."""

    __slots__ = ("label", "path")

    def __init__(self, label: str, path: str) -> None:
        self.label = label
        self.path = path


def sources(paths: Iterable[str], problems: list[str]) -> Iterator[BinarySource]:
    """The programs that ``paths`` are, or have in them, in the order of their names.

    A file that is none of an archive, a folder or an image is taken as it is. What cannot be read,
    or has no program, is a line in ``problems``. A copy out of an archive is there until the next
    one is asked for.
    """
    for path in paths:
        before, count = len(problems), 0
        try:
            for each in _within(path, problems):
                count += 1
                yield each
            if not count and len(problems) == before:
                problems.append(f"{path}: there is no program in it")
        except _UNREADABLE as refused:
            problems.append(f"{path}: {_why(refused)}")


def _within(path: str, problems: list[str]) -> Iterator[BinarySource]:
    if os.path.isdir(path):
        is_image = os.path.isfile(os.path.join(path, "oci-layout"))
        yield from _image(path, problems) if is_image else _folder(path)
        return
    with _opened(path) as file:
        begin = file.read(len(_ELF))
        file.seek(0)
        is_archive = begin != _ELF and (begin == _ZSTD or tarfile.is_tarfile(file))
        file.seek(0)
        if is_archive:
            yield from _archive(path, file, problems)
    if not is_archive:
        yield BinarySource(path, path)


def programs_in(paths: Iterable[str]) -> int | None:
    """How many programs ``sources`` finds; None where that takes the reading of an archive."""
    count = 0
    for path in paths:
        if os.path.isfile(os.path.join(path, "oci-layout")):
            return None
        if os.path.isdir(path):
            count += sum(1 for _ in _folder(path))
            continue
        try:
            with _opened(path) as file:
                if file.read(len(_ELF)) != _ELF:
                    return None
        except OSError:
            continue
        count += 1
    return count


def _why(refused: Exception) -> str:
    # An OSError's own text repeats the path.
    return (isinstance(refused, OSError) and refused.strerror) or str(refused)


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    handle, _ = open_regular(path)
    with os.fdopen(handle, "rb") as file:
        yield file


def _folder(path: str) -> Iterator[BinarySource]:
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            found = os.path.join(folder, name)
            if os.path.islink(found) or not os.path.isfile(found):
                continue
            try:
                with _opened(found) as file:
                    is_program = file.read(len(_ELF)) == _ELF
            except OSError:
                continue  # of another user
            if is_program:
                yield BinarySource(found, found)


def _archive(
    label: str, file: IO[bytes], problems: list[str], is_layer: bool = False
) -> Iterator[BinarySource]:
    stream: Any = _Unpacked(file) if file.read(len(_ZSTD)) == _ZSTD else file
    file.seek(0)
    with tarfile.open(fileobj=stream, mode="r|*") as archive:
        for number, member in enumerate(archive):
            if number >= _MEMBERS:
                problems.append(f"{label}: more than {_MEMBERS:,} members: the others are left out")
                return
            if not member.isreg() or member.size < len(_ELF):
                continue
            within = f"{label}:{member.name}"
            if member.size > _LARGEST:
                problems.append(f"{within}: {member.size:,} bytes are too many for a program")
                continue
            content = archive.extractfile(member)
            if content is None:
                continue
            begin = content.read(len(_ELF))
            if begin == _ELF:
                with _copied(begin, content) as copy:
                    yield BinarySource(within, copy.name)
            elif not is_layer and begin[:1] != b"{" and _LAYER.match(member.name):
                with _copied(begin, content) as copy:
                    yield from _archive(within, copy, problems, True)


@contextmanager
def _copied(begin: bytes, rest: IO[bytes]) -> Iterator[IO[bytes]]:
    with tempfile.NamedTemporaryFile(prefix="fetchc-") as copy:
        copy.write(begin)
        while part := rest.read(_COPY):
            copy.write(part)
        copy.seek(0)
        yield copy


class _Unpacked:
    # What zstd packed, to be read once.
    def __init__(self, file: IO[bytes]) -> None:
        try:
            import zstandard
        except ImportError:
            what = "it is packed by zstd: `python3 -m pip install zstandard`"
            raise ValueError(what) from None
        self._damage = zstandard.ZstdError
        self._reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)

    def read(self, size: int) -> bytes:
        try:
            return self._reader.read(size)
        except self._damage as wrong:
            raise ValueError(str(wrong)) from None


# ------------------------------------------------------------------------------
# OCI images


def _image(path: str, problems: list[str]) -> Iterator[BinarySource]:
    for number, layer in enumerate(_layers(path, _document(path, "index.json"), 0)):
        if number >= _LAYERS:
            problems.append(f"{path}: more than {_LAYERS} layers: the others are left out")
            return
        blob = os.path.join(path, _blob(layer))
        try:
            with _opened(blob) as file:
                yield from _archive(f"{path}:{layer[7:19]}", file, problems)
        except _UNREADABLE as refused:
            problems.append(f"{blob}: {_why(refused)}")


def _layers(path: str, document: Any, depth: int) -> Iterator[str]:
    # Digests of the layers of all manifests, each once; an index leads to manifests or indices.
    seen = set()
    try:
        for each in document.get("layers", ()):
            digest = each["digest"]
            if digest not in seen:
                seen.add(digest)
                yield digest
        for each in document.get("manifests", ()) if depth < 3 else ():
            for digest in _layers(path, _document(path, _blob(each["digest"])), depth + 1):
                if digest not in seen:
                    seen.add(digest)
                    yield digest
    except (KeyError, TypeError, AttributeError) as wrong:
        raise ValueError(f"the image's manifest makes no sense: {wrong}") from None


def _document(path: str, name: str) -> Any:
    text = read_regular(os.path.join(path, name), _DOCUMENT)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise ValueError(f"{name} is no JSON: {wrong}") from None


def _blob(digest: object) -> str:
    found = _DIGEST.match(digest) if isinstance(digest, str) else None
    if found is None:
        raise ValueError(f"{digest!r} is no digest")
    return f"blobs/{found[1]}/{found[2]}"
