"""Changes of bytes: of a file, or of a section's decompressed content, which is compressed again.

The file is taken apart here and not by the reader that is tested: 64-bit little-endian ELF.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Edit", "Header", "Stale", "applied", "content", "headers"]

COMPRESSED = 0x800  # SHF_COMPRESSED
SHF_AT, SHENTSIZE = 0x28, 64
NOBITS = 8


@dataclass(frozen=True)
class Edit:
    """In ``file`` the bytes ``was`` at ``at`` become ``now``.

    ``at`` counts in ``section`` when it is inflated, in the file where that is empty.
    """

    file: str
    section: str
    at: int
    was: bytes
    now: bytes


class Header(NamedTuple):
    """A section: where its header and its bytes are, ``SHF_*`` and ``SHT_*``."""

    header_at: int
    offset: int
    size: int
    flags: int
    kind: int


class Stale(Exception):
    """The file does not have the bytes that are to be changed."""


def headers(raw: bytes) -> dict[str, Header]:
    """The sections with bytes of an ELF file, by name; none of any other file."""
    if raw[:6] != b"\x7fELF\x02\x01" or len(raw) < SHENTSIZE:
        return {}
    (table,) = struct.unpack_from("<Q", raw, SHF_AT)
    count, names = struct.unpack_from("<HH", raw, 0x3C)
    listed = [struct.unpack_from("<IIQQQQ", raw, table + SHENTSIZE * n) for n in range(count)]
    texts = listed[names][4]
    found = {}
    for number, (name, kind, flags, _, offset, size) in enumerate(listed):
        text = raw[texts + name : raw.index(b"\0", texts + name)].decode()
        if text and size and kind != NOBITS:
            found[text] = Header(table + SHENTSIZE * number, offset, size, flags, kind)
    return found


def content(raw: bytes, section: str) -> bytes:
    """What a section holds, inflated where it is compressed."""
    if not section:
        return raw
    found = headers(raw)[section]
    held = raw[found.offset : found.offset + found.size]
    if found.flags & COMPRESSED:
        return zlib.decompress(held[24:])
    return zlib.decompress(held[12:]) if held[:4] == b"ZLIB" else held


def applied(files: Mapping[str, bytes], edits: Iterable[Edit]) -> dict[str, bytes]:
    """The files with the changes made: of sections in order, then of files as a whole.

    Raises Stale where they are other files.
    """
    changed = dict(files)
    listed = list(edits)
    held = {(e.file, e.section): content(changed[e.file], e.section) for e in listed if e.section}
    for edit in listed:
        if edit.section:
            held[edit.file, edit.section] = _edited(edit, held[edit.file, edit.section])
    # Sections are where the sound file has them: its own names may be what is damaged.
    sound = {file: headers(files[file]) for file, _ in held}
    for (file, section), new in held.items():
        changed[file] = _replaced(changed[file], sound[file][section], new)
    for edit in listed:
        if not edit.section:
            changed[edit.file] = _edited(edit, changed[edit.file])
    return changed


def _edited(edit: Edit, held: bytes) -> bytes:
    end = edit.at + len(edit.was)
    if held[edit.at : end] != edit.was:
        raise Stale(f"{edit.file}: {edit.section}+{edit.at:#x} is not {edit.was.hex()}")
    return held[: edit.at] + edit.now + held[end:]


def _replaced(raw: bytes, found: Header, new: bytes) -> bytes:
    # In its place where it fits, else after the end of the file.
    if found.flags & COMPRESSED:
        new = struct.pack("<IIQQ", 1, 0, len(new), 1) + zlib.compress(new)
    elif raw[found.offset : found.offset + 4] == b"ZLIB":
        new = b"ZLIB" + len(new).to_bytes(8, "big") + zlib.compress(new)
    out = bytearray(raw)
    offset = found.offset
    if len(new) > found.size:
        offset = len(out)
        out += new
    else:
        out[offset : offset + len(new)] = new
    struct.pack_into("<QQ", out, found.header_at + 24, offset, len(new))
    return bytes(out)
