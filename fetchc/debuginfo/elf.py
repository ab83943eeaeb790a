"""An ELF file and, where there is one, its separate debug file, as one thing to ask."""

from __future__ import annotations

from fetchc.record import Record
from fetchc.units import Address, ByteSize, FileOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.sections import Buffer, Section

__all__ = ["Elf", "Segment", "Symbol"]


class Segment(Record):
    """A PT_LOAD: bytes of the file that are mapped at an address. ``flags``: PF_R 4, W 2, X 1."""

    offset: FileOffset
    address: Address
    file_size: ByteSize
    memory_size: ByteSize
    flags: int


class Symbol(Record):
    """A defined symbol. ``kind`` is STT_* (2 function, 10 ifunc), ``binding`` STB_* (0 local)."""

    name: str
    address: Address
    size: ByteSize
    kind: int
    binding: int
    section: int


class Elf:
    """A mapped ELF file of either class and byte order.

    Opening reads the headers. Code bytes and segments are the file's own; symbols and
    debug sections may come from a separate debug file, found when first asked for.
    """

    path: str
    kind: int  # e_type
    machine: int  # e_machine
    word_bytes: int
    little_endian: bool
    entry: Address
    segments: tuple[Segment, ...]

    def __init__(self, path: str) -> None:
        raise NotImplementedError

    def open_section(self, name: str) -> Section | None:
        """The section of that name to read piecewise; None when absent or without bytes."""
        raise NotImplementedError

    def section(self, name: str, limit: int | None = None) -> Buffer | None:
        """Its decompressed content, at least the first ``limit`` bytes; None when absent."""
        raise NotImplementedError

    def section_address(self, name: str) -> Address | None:
        """Where the section of the program file is mapped (sh_addr); None when absent."""
        raise NotImplementedError

    def symbols_named(self, name: str) -> tuple[Symbol, ...]:
        """Defined symbols of exactly that name."""
        raise NotImplementedError

    def function_symbols(self) -> Iterator[Symbol]:
        """Every defined function symbol, in the order of the table."""
        raise NotImplementedError

    def symbols_at(self, address: Address) -> tuple[Symbol, ...]:
        """Function symbols (and untyped ones) whose address is exactly that."""
        raise NotImplementedError

    def segment_of(self, address: Address) -> Segment | None:
        """The PT_LOAD that holds ``address`` in the memory image."""
        raise NotImplementedError

    def file_offset(self, address: Address) -> FileOffset:
        """Where the byte at ``address`` is in the file; FC0904 where no segment has it."""
        raise NotImplementedError

    def read(self, address: Address, size: int) -> bytes:
        """Bytes of the file at ``address``, shorter where the segment's file part ends."""
        raise NotImplementedError

    def build_id(self) -> str | None:
        """NT_GNU_BUILD_ID in lower-case hex."""
        raise NotImplementedError
