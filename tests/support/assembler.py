"""Bytes with labels: numbers of a byte order, LEB128, and references filled in at the end."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Assembler", "sleb", "uleb"]


def uleb(value: int, width: int = 0) -> bytes:
    """An unsigned LEB128 number, padded with continuation bytes to ``width``."""
    out = bytearray()
    while True:
        byte = value & 0x7F
        value >>= 7
        if not value and len(out) + 1 >= width:
            out.append(byte)
            return bytes(out)
        out.append(byte | 0x80)


def sleb(value: int) -> bytes:
    """A signed LEB128 number."""
    out = bytearray()
    while True:
        byte = value & 0x7F
        value >>= 7
        if value == (-1 if byte & 0x40 else 0):
            out.append(byte)
            return bytes(out)
        out.append(byte | 0x80)


class Assembler:
    """Appends to ``data``; ``labels`` are positions in it."""

    def __init__(self, little: bool = True) -> None:
        self.little = little
        self.data = bytearray()
        self.labels: dict[str, int] = {}
        self._pending: list[tuple[int, int, str, Callable[[int], bytes]]] = []

    def number(self, value: int, size: int) -> None:
        """``value`` in ``size`` bytes, negative ones in two's complement."""
        self.data += self.packed(value, size)

    def packed(self, value: int, size: int) -> bytes:
        """The same as bytes."""
        return (value & ((1 << 8 * size) - 1)).to_bytes(size, "little" if self.little else "big")

    def raw(self, content: bytes) -> None:
        """Bytes as they are."""
        self.data += content

    def label(self, name: str) -> None:
        """Name the present position."""
        if name in self.labels:
            raise ValueError(f"label {name} twice")
        self.labels[name] = len(self.data)

    def reference(self, name: str, size: int, base: int = 0) -> None:
        """The distance of a label from ``base`` in ``size`` bytes."""
        self._later(name, size, lambda at: self.packed(at - base, size))

    def uleb_reference(self, name: str, base: int = 0, size: int = 4) -> None:
        """The same as unsigned LEB128, padded to ``size`` bytes."""
        self._later(name, size, lambda at: uleb(at - base, size))

    def length(self, offset_size: int, end: str) -> None:
        """An initial length that reaches to the label ``end``."""
        if offset_size == 8:
            self.number(0xFFFFFFFF, 4)
        self.reference(end, offset_size, len(self.data) + offset_size)

    def _later(self, name: str, size: int, encode: Callable[[int], bytes]) -> None:
        self._pending.append((len(self.data), size, name, encode))
        self.data += bytes(size)

    def finished(self) -> bytes:
        """The bytes, references filled in."""
        for at, size, name, encode in self._pending:
            self.data[at : at + size] = encode(self.labels[name])
        return bytes(self.data)
