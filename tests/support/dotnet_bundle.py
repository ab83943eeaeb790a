"""The libraries within a .NET program that is one file, a bundle; a program of one's own in it.

``python -m tests.support.dotnet_bundle PROGRAM FOLDER`` writes the libraries to the folder.
`.ci/setup --dotnet-8` does so: .NET 8 comes as one. Source: dotnet/designs,
accepted/2020/single-file (bundler.md); dotnet/runtime, src/native/corehost/bundle (header.cpp,
file_entry.cpp, marker.cpp).
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["libraries", "with_program"]

# SHA-256 of ".net core bundle". The place of the list of files is the word before it.
MARKER = bytes.fromhex("8b1202b96a612038727b930214d7a03213f5b9e6efae3318ee3b2dce24b36aae")
_PAGE = 4096
VERSION = 6  # of the list, from .NET 6 on: each file has its size before it was packed, or 0


def libraries(program: bytes) -> Iterator[tuple[str, bytes]]:
    """The name and content of each library in a bundle; raises ValueError where it is none."""
    for at, name in _files(program):
        start, size, packed, _ = struct.unpack_from("<qqqB", program, at)
        if packed:
            raise ValueError(f"{name} is compressed")
        if name.endswith(".dll"):
            yield name, program[start : start + size]


def with_program(bundle: bytes, name: str, library: bytes) -> bytes:
    """The bundle with ``library`` in place of its program's own, which is called ``name``.

    The library and a second list of files are appended, and the word before the marker leads
    to that list.
    """
    word = bundle.index(MARKER) - 8
    (listed,) = struct.unpack_from("<q", bundle, word)
    made = bytearray(bundle)
    made += bytes(-len(made) % _PAGE)
    start = len(made)
    made += library
    moved = len(made) - listed
    made += bundle[listed:]
    (at,) = [at for at, found in _files(bundle) if found == name]
    struct.pack_into("<qqq", made, at + moved, start, len(library), 0)
    struct.pack_into("<q", made, word, listed + moved)
    return bytes(made)


def _files(program: bytes) -> Iterator[tuple[int, str]]:
    # Of each file the offset of its place, size, packed size and kind, and its name.
    (at,) = struct.unpack_from("<q", program, program.index(MARKER) - 8)
    version, _, files = struct.unpack_from("<IIi", program, at)
    if version != VERSION:
        raise ValueError(f"a bundle of version {version}")
    _, at = _text(program, at + 12)  # its identity
    at += 40  # where the lists of dependencies and of the runtime are, and flags
    for _ in range(files):
        begin = at
        name, at = _text(program, at + 25)
        yield begin, name


def _text(program: bytes, at: int) -> tuple[str, int]:
    # Its length is in groups of seven bits.
    size = shift = 0
    while True:
        byte = program[at]
        at += 1
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return program[at : at + size].decode(), at + size


def main(program: str, folder: str) -> None:
    """Write the libraries of ``program`` that are in no folder of it."""
    for name, content in libraries(Path(program).read_bytes()):
        if "/" not in name:
            Path(folder, name).write_bytes(content)


if __name__ == "__main__":
    main(*sys.argv[1:])
