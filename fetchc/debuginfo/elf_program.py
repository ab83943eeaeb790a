"""What an ELF file alone answers as a :class:`~fetchc.program.protocol.Program`.

Its headers, symbols, notes and code; :mod:`.dwarf.dwarf_program` adds its debug information.
"""

from __future__ import annotations

from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.elf.headers import architecture_of
from fetchc.debuginfo.elf.symbols import STT_GNU_IFUNC
from fetchc.debuginfo.environment import DEFAULT
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.environment import Environment
    from fetchc.debuginfo.separate.debug_file_search import Search
    from fetchc.program.entities import Function, StaticProbe
    from fetchc.quantities import FileOffset

__all__ = ["ElfProgram", "ElfSymbols"]

# What the kernel exports to modules: no program has it. Source: include/asm-generic/vmlinux.lds.h.
KERNEL_SECTION = "__ksymtab"
# Where NativeAOT puts methods: dotnet/runtime, src/coreclr/tools/aot/ILCompiler.Compiler.
MANAGED_CODE = "__managedcode"


def in_kernel(elf: Elf) -> bool:
    """Whether the file is a kernel or a module of one."""
    return elf.section_address(KERNEL_SECTION) is not None


class ElfSymbols:
    """What an ELF file answers as :class:`~fetchc.program.protocol.ElfFacts`."""

    __slots__ = ("_elf",)

    def __init__(self, elf: Elf) -> None:
        self._elf = elf

    def static_probes(self) -> tuple[StaticProbe, ...]:
        """The probes that the notes of ``<sys/sdt.h>`` tell about."""
        from fetchc.debuginfo.elf.usdt_notes import static_probes

        return static_probes(self._elf)

    def symbol_addresses(self, name: str) -> tuple[Address, ...]:
        """The addresses of the symbols of exactly that name, each once."""
        found = self._elf.symbols_named(name)
        return tuple(dict.fromkeys(symbol.address for symbol in found))

    def symbols_with_prefix(self, prefix: str) -> tuple[str, ...]:
        """The names of symbols of any kind that begin with ``prefix``, each once."""
        wanted = b"\0" + prefix.encode()
        found = [
            strings.cstring(at + 1).decode("utf-8", "surrogateescape")
            for strings in self._elf.symbol_strings()
            for at in strings.find_all(wanted)
        ]
        return tuple(dict.fromkeys(found))

    def is_ifunc(self, function: Function) -> bool:
        """Whether the symbol is an IFUNC: its code chooses the function that is called."""
        named = self._elf.symbols_named(function.symbol)
        return any(s.kind == STT_GNU_IFUNC and s.address == function.address for s in named)

    def local_entry(self, function: Function) -> int:
        """Bytes of the function that callers of its own module pass over.

        Source: 64-Bit ELF V2 ABI for Power, 3.4.1 Symbol Values, st_other.
        """
        named = self._elf.symbols_named(function.symbol)
        others = {s.other >> 5 for s in named if s.address == function.address}
        return max([(1 << other) >> 2 << 2 for other in others if other < 7], default=0)

    def bundled_assemblies(self) -> tuple[str, ...]:
        """Names of the images of .NET inside, where the file is a single-file program."""
        from fetchc.debuginfo.dotnet.portable_executable import bundle_of

        bundle = None if in_kernel(self._elf) else bundle_of(self._elf.path)
        return () if bundle is None else tuple(bundle.names())

    def has_symbol(self, name: str) -> bool:
        """Whether the file defines that name, or uses it of another file."""
        return bool(self._elf.symbols_named(name)) or self._elf.imports(name)

    def imported(self, name: str) -> tuple[tuple[str, ...], str] | None:
        """The libraries that it loads and the one that has the function, where it imports it."""
        from fetchc.debuginfo.elf.shared_libraries import imported

        return imported(self._elf, name)


class ElfProgram:
    """A mapped file and its separate debug file; opening reads the headers."""

    dotnet = None
    kernel = None  # tracepoints are described by BTF

    __slots__ = (
        "_elf",
        "architecture",
        "build_id",
        "elf",
        "in_kernel",
        "little_endian",
        "machine_flags",
        "path",
        "word_bytes",
    )

    def __init__(
        self,
        path: str,
        search: Search | None = None,
        online: bool = False,
        environment: Environment = DEFAULT,
    ) -> None:
        self._elf = elf = Elf(path, search, online, environment)
        self.architecture: str = architecture_of(elf)
        self.path: str = path
        self.word_bytes: int = elf.word_bytes
        self.little_endian: bool = elf.little_endian
        self.machine_flags: int = elf.flags
        self.build_id: str | None = elf.build_id()
        self.in_kernel = in_kernel(elf)
        self.elf = ElfSymbols(elf)

    @property
    def has_debug_info(self) -> bool:
        """Whether names and types can be asked for at all."""
        return self._elf.open_section(".debug_info") is not None

    def debug_info_advice(self) -> tuple[tuple[str, ...], str]:
        """Where its debug file was looked for, and how one is had."""
        if self.has_debug_info:
            return (), "build that part of the program with -g"
        notes, help = self._elf.finder.advice()
        if self._elf.section_address(MANAGED_CODE) is not None:
            notes += ("its code is C# that NativeAOT compiled, of which no names are left",)
            help = "fetch registers at addresses (`%di --at 0x...`), or publish it with ReadyToRun"
        return notes, help

    def function_names(self) -> Iterator[str]:
        """Names of the symbol table that have code, each once."""
        return self._elf.function_names()

    def file_offset(self, address: Address) -> FileOffset:
        """Where the byte at ``address`` is in the file, by the PT_LOAD that holds it."""
        return self._elf.file_offset(address)

    def image_offset(self, address: Address, probe: Address) -> int:
        """The OFF of ``@+OFF`` that reads ``address`` from a probe at ``probe``."""
        return address - self._elf.image_start(probe)

    def code(self, address: Address, size: int) -> bytes:
        """Machine code at ``address``, shorter where the segment ends, none outside of all."""
        if self._elf.segment_of(address) is None:
            return b""
        return self._elf.read(address, size)
