"""An ELF file together with its separate debug file, where there is one."""

from __future__ import annotations

from fetchc.debuginfo.elf.headers import SHT_NOBITS, Image, Segment
from fetchc.debuginfo.elf.symbols import Symbol, SymbolTable, symbol_table
from fetchc.debuginfo.environment import DEFAULT
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address, FileOffset

_FEW_NAMES = 1 << 17  # bytes of the names of symbols: of some 3,000

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.elf.headers import Buffer, Section
    from fetchc.debuginfo.environment import Environment
    from fetchc.debuginfo.separate.debug_file_search import Finder, Search

__all__ = ["DISCARDED", "Elf", "Segment", "Symbol"]

DISCARDED = "of a part of the program that the linker left out"  # of an address
_ET_REL = 1  # an object file, which no linker has seen
_FOLDING = (b"LLD ", b"mold ")  # in .comment: linkers that make one of equal functions
_SHF_EXECINSTR = 4  # of a section's flags
_PF_X = 1  # of a segment's flags


class Elf:
    """A mapped ELF file of either class and byte order.

    Opening reads the headers. Code bytes and segments are the file's own; symbols and
    debug sections come from a separate debug file where the file has no .debug_info, found
    when first asked for, where ``search`` says and, if it may be ``online``, by debuginfod.
    ``kind`` is e_type, ``machine`` e_machine, ``flags`` e_flags.
    """

    __slots__ = (
        "_debug",
        "_divided",
        "_finder",
        "_image",
        "_online",
        "_search",
        "_tables",
        "_versions",
        "entry",
        "environment",
        "flags",
        "kind",
        "little_endian",
        "machine",
        "path",
        "segments",
        "thread_block",
        "word_bytes",
    )

    def __init__(
        self,
        path: str,
        search: Search | None = None,
        online: bool = False,
        environment: Environment = DEFAULT,
    ) -> None:
        self._image = Image(path, environment=environment)
        self.environment = environment
        self._debug: Image | None = None
        self._search = search
        self._online = online
        self._finder: Finder | None = None
        self._tables: tuple[SymbolTable, ...] | None = None
        self._divided = False  # between .gnu_debugdata and .dynsym
        self._versions: dict[tuple[str, Address], str] | None = None
        self.path = path
        self.kind: int = self._image.kind
        self.machine: int = self._image.machine
        self.flags: int = self._image.flags
        self.entry = self._image.entry
        self.word_bytes = 8 if self._image.bits64 else 4
        self.little_endian = self._image.little
        self.segments = self._image.segments
        self.thread_block = self._image.thread_block

    @property
    def identity(self) -> str:
        """That of the program's own file."""
        return self._image.identity()

    @property
    def finder(self) -> Finder:
        """Finds the other files that the debug information is split over."""
        if self._finder is None:
            from fetchc.debuginfo.separate.debug_file_search import Finder, Search

            self._finder = Finder(self._image, self._search or Search(), self._online)
        return self._finder

    @property
    def debug_image(self) -> Image:
        """The file that the debug sections are read from: the separate one, else the program."""
        if self._debug is None:
            named = self._search is not None and self._search.debug_file is not None
            here = not named and self._image.header(".debug_info") is not None
            self._debug = self._image if here else self.finder.debug_file() or self._image
        return self._debug

    @property
    def debug_path(self) -> str:
        """The path of :attr:`debug_image`."""
        return self.debug_image.path

    def open_section(self, name: str) -> Section | None:
        """The section of that name to read piecewise; None when absent or without bytes.

        ``.debug_*`` come from the separate debug file where there is one.
        """
        image = self.debug_image if name.startswith(".debug_") else self._image
        return image.open_section(name)

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

    def section_range(self, name: str) -> tuple[int, int] | None:
        """Addresses of the section's first byte and after its last; None if absent."""
        header = self._image.header(name)
        return None if header is None else (header.address, header.address + header.size)

    def _symbol_tables(self) -> tuple[SymbolTable, ...]:
        if self._tables is None:
            full = symbol_table(self._image, ".symtab")
            if full is None and self.debug_image is not self._image:
                full = symbol_table(self.debug_image, ".symtab")
            if full is None and self._image.header(".gnu_debugdata") is not None:
                from fetchc.debuginfo.separate.debug_file_search import mini_image

                full = symbol_table(mini_image(self._image), ".symtab")
                self._divided = True
            exported = symbol_table(self._image, ".dynsym")
            self._tables = tuple([table for table in (full, exported) if table is not None])
        return self._tables

    def symbol_lists(self) -> tuple[SymbolTable, ...]:
        """The symbol tables, .symtab first."""
        return self._symbol_tables()

    def symbol_strings(self) -> tuple[Section, ...]:
        """The names of all symbols, each ended by a NUL, table by table."""
        return tuple([table.names for table in self._symbol_tables()])

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

    def imports(self, name: str) -> bool:
        """Whether the file uses something of that name that another one has (.dynsym)."""
        table = symbol_table(self._image, ".dynsym")
        return table is not None and table.needs(name)

    def dynamic_numbers(self, name: str) -> tuple[int, ...]:
        """Which symbols of .dynsym have exactly that name, of this file and of others."""
        table = symbol_table(self._image, ".dynsym")
        return () if table is None else table.numbers(name)

    def version(self, name: str, address: Address) -> str:
        """What tells an exported symbol from others of its name: ``@V1``, ``@@V2`` or nothing."""
        if self._versions is None:
            from fetchc.debuginfo.elf.symbols import versions

            self._versions = versions(self._image)
        return self._versions.get((name, address), "")

    def function_symbols(self) -> Iterator[Symbol]:
        """Every defined function symbol of .symtab, of .dynsym where that is missing."""
        for table in self._listed_tables():
            yield from table.functions()

    def function_names(self) -> Iterator[str]:
        """The names of :meth:`function_symbols`, each once."""
        names = [n for table in self._listed_tables() for n in table.function_names()]
        return iter(dict.fromkeys(names))

    def names_identity(self) -> str | None:
        """What tells the files that :meth:`function_names` reads from all others.

        None where one of them is inside of another file, or has so few names that listing them
        takes no time.
        """
        if sum([strings.size for strings in self.symbol_strings()]) < _FEW_NAMES:
            return None
        images = [self._image]
        if self._image.header(".symtab") is None:
            images.append(self.debug_image)
        if any(image.status is None for image in images):
            return None
        return " ".join([image.identity() for image in images])

    def _listed_tables(self) -> tuple[SymbolTable, ...]:
        # Mini debug information leaves out what .dynsym has: of such a file both are read.
        tables = self._symbol_tables()
        return tables if self._divided else tables[:1]

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

    def first_code(self) -> Address:
        """Where the first segment with code begins; 0 without one."""
        found = [segment.address for segment in self.segments if segment.flags & _PF_X]
        return found[0] if found else Address(0)

    def is_code(self, address: Address) -> bool:
        """Whether a section of instructions holds ``address``; a segment, where there is none."""
        marked = [header for header in self._image.headers if header.flags & _SHF_EXECINSTR]
        if not marked:
            segment = self.segment_of(address)
            return segment is not None and bool(segment.flags & _PF_X)
        return any(each.address <= address < each.address + each.size for each in marked)

    def is_discarded(self, address: Address) -> bool:
        """Whether it replaces the address of what the linker left out (``--gc-sections``).

        GNU's linkers write 0, where nothing but the file's own header can be; LLVM's the highest
        number. Sources: binutils, bfd/reloc.c (_bfd_clear_contents); LLVM, lld/ELF/InputSection.cpp
        (getTombstone).
        """
        if address == 0:
            segment = self.segment_of(address)
            return self.kind != _ET_REL and (segment is None or segment.offset == 0)
        return address == (1 << 8 * self.word_bytes) - 1

    def may_fold(self) -> bool:
        """Whether its linker can fold functions with the same code."""
        if self.open_section(".note.gnu.gold-version") is not None:
            return True
        comment = self.section(".comment")
        return comment is not None and any(mark in bytes(comment) for mark in _FOLDING)

    def file_offset(self, address: Address) -> FileOffset:
        """Where the byte at ``address`` is in the file; FC0904 where no segment has it."""
        segment = self.segment_of(address)
        if segment is None or address - segment.address >= segment.file_size:
            code = self._image.header(".text")
            if code is not None and code.kind == SHT_NOBITS:
                raise DebugInfoError(
                    "FC0905",
                    self.path,
                    "it has debug information alone, and no code",
                    help="name the program with `-x`, and this file with `--debug-file`",
                )
            raise DebugInfoError(
                "FC0904", self.path, f"no segment has address {address:#x} in the file"
            )
        return FileOffset(address - segment.address + segment.offset)

    def image_start(self, address: Address) -> int:
        """Where the file's first byte would be, were all mapped as the segment of ``address`` is.

        What the kernel adds the OFF of ``@+OFF`` to, of a probe at ``address``. FC0904 where no
        segment has it. Source: translate_user_vaddr, kernel/trace/trace_uprobe.c.
        """
        segment = self.segment_of(address)
        if segment is None:
            what = f"no segment of the file holds the probe's address {address:#x}"
            raise DebugInfoError("FC0904", self.path, what)
        return segment.address - segment.offset

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
