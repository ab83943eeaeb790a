"""What a Go program's data will hold once it is loaded: bytes of the file, and relocated words.

The linker leaves addresses in position-independent programs to the loader, and the file may have
nothing in their place. Source: System V gABI, chapter 5 (relocation); Go, src/cmd/link/internal/ld.
"""

from __future__ import annotations

from struct import Struct

from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.elf.file import Elf

__all__ = ["Memory"]

_SHT_RELA = 4
_ELSEWHERE = 1 << 63
"""Where a word that another file fills in leads: behind this, there is no program's data."""


class Memory:
    """The data of one program by address. ``label`` of a failed read says what was read."""

    __slots__ = ("_architecture", "_relocated", "elf", "order", "word_bytes")

    def __init__(self, elf: Elf, architecture: str) -> None:
        self.elf = elf
        self.word_bytes = elf.word_bytes
        self.order = "<" if elf.little_endian else ">"
        self._architecture = architecture
        self._relocated: dict[int, int] | None = None

    def error(self, what: str, label: str, address: int) -> DebugInfoError:
        """A located FC0904 for ``raise``."""
        return DebugInfoError("FC0904", self.elf.path, f"{what} at {address:#x}", label)

    def take(self, address: int, size: int, label: str) -> bytes:
        """Exactly ``size`` bytes; DebugInfoError where the file does not have them."""
        if address >= _ELSEWHERE:
            what = "the loader takes it from another file"
            raise DebugInfoError("FC0904", self.elf.path, what, label)
        segment = self.elf.segment_of(Address(address))
        if segment is None or address + size > segment.address + segment.file_size:
            raise self.error(f"the file has no {size} bytes", label, address)
        return self.elf.read(Address(address), size)

    def number(self, address: int, size: int, label: str) -> int:
        """An unsigned number of the file's byte order, not relocated."""
        raw = self.take(address, size, label)
        return int.from_bytes(raw, "little" if self.elf.little_endian else "big")

    def packed(self, value: int, size: int) -> bytes:
        """A number as the file has it."""
        return value.to_bytes(size, "little" if self.elf.little_endian else "big")

    def word(self, address: int, label: str) -> int:
        """A machine word as the loader leaves it: an address, a length."""
        found = self._relocations().get(address)
        return self.number(address, self.word_bytes, label) if found is None else found

    def words(self, address: int, count: int, label: str) -> tuple[int, ...]:
        """``count`` machine words one behind the other."""
        size = self.word_bytes
        raw = self.take(address, count * size, label)
        plain = Struct(f"{self.order}{count}{'Q' if size == 8 else 'I'}").unpack(raw)
        relocated = self._relocations()
        if not relocated:
            return plain
        return tuple([relocated.get(address + i * size, each) for i, each in enumerate(plain)])

    def holding(self, wanted: int) -> Iterator[int]:
        """Addresses of the aligned words that hold ``wanted``, those that can be written first."""
        size = self.word_bytes
        seen = set()
        for address, value in self._relocations().items():
            if value == wanted and address % size == 0:
                seen.add(address)
                yield address
        needle = self.packed(wanted, size)
        filled = [one for one in self.elf.segments if one.file_size]
        for segment in sorted(filled, key=lambda one: not one.flags & 2):
            window = self.elf.window("data", segment.address)
            for at in window.find_all(needle):
                if (segment.address + at) % size == 0 and segment.address + at not in seen:
                    yield segment.address + at

    def _relocations(self) -> dict[int, int]:
        # What words hold whose value is an address: of this file, or of a symbol of any.
        if self._relocated is None:
            self._relocated = {}
            known = table(f"arch/{self._architecture}")["relocations"]
            kind, named = known["relative"], known["symbol"]
            bits = 32 if self.word_bytes == 8 else 8
            entry = Struct(self.order + ("QQq" if self.word_bytes == 8 else "IIi"))
            symbols: dict[int, int] | None = None
            for section in self.elf.sections_of_kind(_SHT_RELA):
                raw = section.upto()
                whole = len(raw) // entry.size * entry.size
                for offset, info, addend in entry.iter_unpack(raw[:whole]):
                    if info == kind:
                        self._relocated[offset] = addend
                    elif info & (1 << bits) - 1 == named:
                        symbols = self._symbols() if symbols is None else symbols
                        self._relocated[offset] = symbols.get(info >> bits, _ELSEWHERE) + addend
        return self._relocated

    def _symbols(self) -> dict[int, int]:
        # Addresses of the dynamic symbols that are of this file, by number. Plugins refer to types
        # so: the loader may take another file's, which are equal.
        raw = self.elf.section(".dynsym")
        if raw is None:
            return {}
        wide = self.word_bytes == 8
        entry = Struct(self.order + ("IBBHQQ" if wide else "IIIBBH"))
        place, section = (4, 3) if wide else (1, 5)
        whole = len(raw) // entry.size * entry.size
        rows = entry.iter_unpack(bytes(raw[:whole]))
        return {index: row[place] for index, row in enumerate(rows) if row[section]}
