"""BTF written word by word, so that tests can say anything, broken things too.

Shares nothing with the reader. Layout: Documentation/bpf/btf.rst of Linux.
"""

from __future__ import annotations

import struct

__all__ = ["BtfWriter"]


class BtfWriter:
    """Collects types and names; ids count from ``first``, names from ``names_at``."""

    def __init__(self, order: str = "<", first: int = 1, names_at: int = 0) -> None:
        self.order = order
        self.types = b""
        self.names = b"\0"
        self._next = first
        self._names_at = names_at

    def name(self, text: str) -> int:
        """The offset of a new name; 0 for the empty one."""
        if not text:
            return 0
        at = self._names_at + len(self.names)
        self.names += text.encode() + b"\0"
        return at

    def type(
        self, kind: int, name: str, value: int, *words: int, count: int = 0, flag: bool = False
    ) -> int:
        """Add a type of any kind from its words; returns its id."""
        info = kind << 24 | count | int(flag) << 31
        common = (self.name(name), info, value)
        self.types += struct.pack(f"{self.order}{3 + len(words)}I", *common, *words)
        self._next += 1
        return self._next - 1

    def integer(self, name: str, size: int, encoding: int = 0, bits: int | None = None) -> int:
        """INT; ``encoding`` 1 signed, 2 char, 4 bool."""
        return self.type(1, name, size, encoding << 24 | (8 * size if bits is None else bits))

    def struct(
        self, name: str, size: int, *members: tuple[str, int, int], flag: bool = False
    ) -> int:
        """STRUCT with members of name, type and place (bits; width << 24 with ``flag``)."""
        words = [word for text, kind, place in members for word in (self.name(text), kind, place)]
        return self.type(4, name, size, *words, count=len(members), flag=flag)

    def function(self, name: str, result: int, *parameters: tuple[str, int]) -> int:
        """FUNC with its FUNC_PROTO; a parameter of no name and type 0 is the three dots."""
        words = [word for text, kind in parameters for word in (self.name(text), kind)]
        prototype = self.type(13, "", result, *words, count=len(parameters))
        return self.type(12, name, prototype, count=1)

    def bytes(self, magic: int = 0xEB9F, version: int = 1) -> bytes:
        """The whole of it."""
        size, length = len(self.types), len(self.names)
        header = struct.pack(f"{self.order}HBBIIIII", magic, version, 0, 24, 0, size, size, length)
        return header + self.types + self.names
