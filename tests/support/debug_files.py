"""Debug files and programs without their debug information, as small as they can be."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from fetchc.debuginfo.elf.elf_file import Elf
from tests.support.elfwriter import elf_file

__all__ = ["OTHER", "OWN", "THIRD", "by_build_id", "debug_file", "info_of", "link", "note"]

OWN, OTHER, THIRD = b"\xab" * 20, b"\xcd" * 20, b"\xef" * 20


def note(build_id: bytes) -> bytes:
    """The content of .note.gnu.build-id."""
    return struct.pack("<III", 4, len(build_id), 3) + b"GNU\0" + build_id


def debug_file(path: Path, build_id: bytes = OWN, content: bytes = b"info") -> bytes:
    """A debug file of a build, with its folders; ``content`` tells it from others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = elf_file({".note.gnu.build-id": note(build_id), ".debug_info": content})
    path.write_bytes(written)
    return written


def link(name: str, content: bytes) -> bytes:
    """The content of .gnu_debuglink for a file with that content."""
    padded = name.encode() + b"\0"
    return padded + bytes(-len(padded) % 4) + struct.pack("<I", zlib.crc32(content))


def info_of(elf: Elf) -> bytes | None:
    """The .debug_info that a program has, wherever it is."""
    found = elf.section(".debug_info")
    return None if found is None else bytes(found)


def by_build_id(root: Path, build_id: bytes = OWN) -> Path:
    """Where a tree of debug files has the one of a build."""
    return root / ".build-id" / build_id.hex()[:2] / (build_id.hex()[2:] + ".debug")
