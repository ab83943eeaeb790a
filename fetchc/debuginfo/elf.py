"""An ELF file and, where there is one, its separate debug file, as one thing to ask."""

from __future__ import annotations

from fetchc.debuginfo.image import Image, Segment
from fetchc.debuginfo.symbols import Symbol, SymbolTable, symbol_table
from fetchc.diag.errors import DebugInfoError
from fetchc.units import Address, FileOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.sections import Buffer, Section

__all__ = ["Elf", "Segment", "Symbol"]

_DEBUG_ROOT = "/usr/lib/debug"
_SHF_EXECINSTR = 4  # of a section's flags
_PF_X = 1  # of a segment's flags


class Elf:
    """A mapped ELF file of either class and byte order.

    Opening reads the headers. Code bytes and segments are the file's own; symbols and
    debug sections come from a separate debug file where the file has no .debug_info, found
    when first asked for. ``kind`` is e_type, ``machine`` e_machine, ``flags`` e_flags.
    """

    __slots__ = (
        "_debug",
        "_debug_root",
        "_image",
        "_tables",
        "entry",
        "flags",
        "kind",
        "little_endian",
        "machine",
        "path",
        "segments",
        "word_bytes",
    )

    def __init__(self, path: str, debug_root: str = _DEBUG_ROOT) -> None:
        self._image = Image(path)
        self._debug: Image | None = None
        self._debug_root: str | None = debug_root
        self._tables: tuple[SymbolTable, ...] | None = None
        self.path = path
        self.kind: int = self._image.kind
        self.machine: int = self._image.machine
        self.flags: int = self._image.flags
        self.entry = self._image.entry
        self.word_bytes = 8 if self._image.bits64 else 4
        self.little_endian = self._image.little
        self.segments = self._image.segments

    def _debug_file(self) -> Image | None:
        # The image with the debug sections when it is not the program itself.
        if self._debug_root is not None:
            if self._image.header(".debug_info") is None:
                from fetchc.debuginfo.separate import debug_image

                self._debug = debug_image(self._image, self._debug_root)
            self._debug_root = None
        return self._debug

    @property
    def debug_path(self) -> str:
        """The file that the debug sections are read from: the separate one, else the program."""
        debug = self._debug_file()
        return self.path if debug is None else debug.path

    def open_section(self, name: str) -> Section | None:
        """The section of that name to read piecewise; None when absent or without bytes.

        ``.debug_*`` come from the separate debug file where there is one.
        """
        if name.startswith(".debug_"):
            debug = self._debug_file()
            if debug is not None:
                return debug.open_section(name)
        return self._image.open_section(name)

    def section(self, name: str, limit: int | None = None) -> Buffer | None:
        """Its decompressed content, at least the first ``limit`` bytes; None when absent.

        A plain section is a view of the mapped file, whole whatever the limit.
        """
        found = self.open_section(name)
        return None if found is None else found.upto(limit)

    def section_address(self, name: str) -> Address | None:
        """Where the section of the program file is mapped (sh_addr); None when absent."""
        header = self._image.header(name)
        return None if header is None else header.address

    def _symbol_tables(self) -> tuple[SymbolTable, ...]:
        if self._tables is None:
            full = symbol_table(self._image, ".symtab")
            debug = self._debug_file() if full is None else None
            if debug is not None:
                full = symbol_table(debug, ".symtab")
            exported = symbol_table(self._image, ".dynsym")
            self._tables = tuple([table for table in (full, exported) if table is not None])
        return self._tables

    def symbols_named(self, name: str) -> tuple[Symbol, ...]:
        """Defined symbols of exactly that name, from .symtab, else from .dynsym."""
        for table in self._symbol_tables():
            found = table.named(name)
            if found:
                return found
        return ()

    def exported(self, name: str) -> tuple[Symbol, ...]:
        """Defined symbols of exactly that name that other files can link to (.dynsym)."""
        table = symbol_table(self._image, ".dynsym")
        return () if table is None else table.named(name)

    def function_symbols(self) -> Iterator[Symbol]:
        """Every defined function symbol of .symtab, of .dynsym where that is missing."""
        for table in self._symbol_tables()[:1]:
            yield from table.functions()

    def symbols_at(self, address: Address) -> tuple[Symbol, ...]:
        """Function symbols (and untyped ones) whose address is exactly that."""
        for table in self._symbol_tables():
            found = table.at(address)
            if found:
                return found
        return ()

    def segment_of(self, address: Address) -> Segment | None:
        """The PT_LOAD that holds ``address`` in the memory image."""
        for segment in self.segments:
            if segment.address <= address < segment.address + segment.memory_size:
                return segment
        return None

    def is_code(self, address: Address) -> bool:
        """Whether a section of instructions holds ``address``; a segment, where there is none."""
        marked = [header for header in self._image.headers if header.flags & _SHF_EXECINSTR]
        if not marked:
            segment = self.segment_of(address)
            return segment is not None and bool(segment.flags & _PF_X)
        return any(each.address <= address < each.address + each.size for each in marked)

    def file_offset(self, address: Address) -> FileOffset:
        """Where the byte at ``address`` is in the file; FC0904 where no segment has it."""
        segment = self.segment_of(address)
        if segment is None or address - segment.address >= segment.file_size:
            raise DebugInfoError(
                "FC0904", self.path, f"no segment has address {address:#x} in the file"
            )
        return FileOffset(address - segment.address + segment.offset)

    def read(self, address: Address, size: int) -> bytes:
        """Bytes of the file at ``address``, shorter where the segment's file part ends."""
        start = self.file_offset(address)
        segment = self.segment_of(address)
        stop = start if segment is None else segment.offset + segment.file_size
        return self._image.map[start : min(start + size, stop)]

    def window(self, name: str, address: Address) -> Section:
        """What the file has from ``address`` to the end of its segment, to read and to search.

        Errors call it ``name``; FC0904 where no segment has the address in the file.
        """
        start = self.file_offset(address)
        segment = self.segment_of(address)
        assert segment is not None
        end = min(segment.offset + segment.file_size, len(self._image.map))
        if start > end:
            raise DebugInfoError("FC0904", self.path, f"the file ends before {address:#x}")
        return self._image.window(name, start, end - start)

    def sections_of_kind(self, kind: int) -> Iterator[Section]:
        """The sections of the program file of that type (SHT_*)."""
        for header in self._image.headers:
            if header.kind == kind:
                yield self._image.content(header)

    def build_id(self) -> str | None:
        """NT_GNU_BUILD_ID in lower-case hex."""
        return self._image.build_id()
