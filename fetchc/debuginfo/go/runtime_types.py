"""The types that values in Go's interfaces can have: descriptors by their distance from the first.

A type has a descriptor where the program needs one: its values are in interfaces, or allocated
by it. All are in one range of the file, from the symbol runtime.types to runtime.etypes, and
the debug information states for each type how far its descriptor is from the range's beginning.

Source: Go 1.15 to 1.27, src/reflect/type.go and src/internal/abi/type.go (rtype, Type, Name);
src/cmd/link/internal/ld/dwarf.go (DW_AT_go_runtime_type).
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import decode_number, read_uleb
from fetchc.debuginfo.dwarf.constants import DW_AT_go_runtime_type, DW_TAG_typedef
from fetchc.debuginfo.dwarf.languages import is_go
from fetchc.debuginfo.go.rtype_names import descriptors_of, label
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import RuntimeType
from fetchc.program.types import QualifiedType, VoidType
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import Die
    from fetchc.debuginfo.dwarf.type_entries import TypeTable
    from fetchc.debuginfo.elf.elf_file import Elf
    from fetchc.debuginfo.go.rtypes import Descriptors
    from fetchc.quantities import TypeId

__all__ = ["DescriptorTable", "descriptor_table"]

_RTYPE_EXTRA_STAR, _RTYPE_DIRECT = 1 << 1, 1 << 5  # flags of tflag; the second of kind, up to 1.25
_KINDS = range(1, 27)  # reflect.Bool to reflect.UnsafePointer
_LONGEST_TYPE_NAME = 4096  # of what a trace can show with profit; the compiler's are shorter
_VARIABLE_LENGTHS = (1, 17)  # of names; two bytes before
_DIRECT_IN_FLAGS = (1, 26)  # in kind before
_DEEPEST = 8  # typedefs of one name


def descriptor_table(
    elf: Elf, architecture: str, info: DebugInfo, types: TypeTable
) -> DescriptorTable | None:
    """The table of one program, None where it is no Go program or has no symbols of the table."""
    starts, ends = elf.symbols_named("runtime.types"), elf.symbols_named("runtime.etypes")
    unit = next((unit for unit in info.units() if is_go(unit)), None) if info.present else None
    version = None if unit is None else unit.compiler.go_version
    if not starts or not ends or version is None:
        return None
    return DescriptorTable(elf, architecture, types, starts[0].address, ends[0].address, version)


class DescriptorTable:
    """Descriptors by type and by their distance from the table's beginning."""

    __slots__ = (
        "_architecture",
        "_by_offset",
        "_descriptors",
        "_elf",
        "_labels",
        "_size",
        "_start",
        "_types",
        "_version",
    )  # fmt: skip

    def __init__(
        self,
        elf: Elf,
        architecture: str,
        types: TypeTable,
        start: Address,
        end: Address,
        version: tuple[int, int],
    ) -> None:
        self._elf, self._architecture = elf, architecture
        self._types = types
        self._start = start
        self._size = end - start
        self._version = version
        self._by_offset: dict[int, RuntimeType | None] = {}
        self._labels: dict[int, str | None] = {}
        self._descriptors: Descriptors | None = None

    def of(self, type_id: TypeId) -> RuntimeType | None:
        """The descriptor of a type; None where the program has none of it."""
        if type_id < 0:
            return None
        die: Die | None = self._types.die(type_id)
        for _ in range(_DEEPEST):
            if die is None:
                return None
            offset = die.address(DW_AT_go_runtime_type)
            if offset:
                return self.at(offset)
            if die.tag != DW_TAG_typedef:
                return None
            die = self._types.target_die(die)
        return None

    def at(self, offset: int) -> RuntimeType | None:
        """The descriptor ``offset`` bytes into the table, None where there is none."""
        if offset not in self._by_offset:
            self._by_offset[offset] = self._read(offset)
        return self._by_offset[offset]

    def label(self, offset: int) -> str | None:
        """The name of the type there, with import paths where it would mean several."""
        if offset not in self._labels:
            self._labels[offset] = self._label(offset)
        return self._labels[offset]

    def _label(self, offset: int) -> str | None:
        found = self.at(offset)
        if found is None:
            return None
        try:
            every = self._every()
            if every is None:
                return found.name
            return label(every, every.at(self._start + offset), self._called)
        except DebugInfoError:
            return found.name

    def methods(self, offset: int) -> frozenset[str]:
        """Names of the methods of the type there, and of pointers to it."""
        try:
            every = self._every()
            return frozenset() if every is None else every.methods(self._start + offset)
        except DebugInfoError:
            return frozenset()

    def _every(self) -> Descriptors | None:
        if self._descriptors is None:
            self._descriptors = descriptors_of(self._elf, self._architecture)
        return self._descriptors

    def _called(self, name: str) -> set[str]:
        # Whole names of the types that the debug information has by that name.
        from fetchc.debuginfo.dwarf.type_lookup import types_named

        found = [self._types.type(one) for one in types_named(self._types, name, None)]
        return {one.name for one in found if not isinstance(one, QualifiedType | VoidType)}

    def _read(self, offset: int) -> RuntimeType | None:
        # Size, bytes with pointers, hash, tflag, two alignments, kind, equal, gcdata, name, ...
        word = self._elf.word_bytes
        if not 0 < offset < self._size or offset % word:
            return None
        data = self._elf.read(Address(self._start + offset), 4 * word + 16)
        if len(data) < 4 * word + 16:
            return None
        flags, kind = data[2 * word + 4], data[2 * word + 7]
        direct = (flags if self._version >= _DIRECT_IN_FLAGS else kind) & _RTYPE_DIRECT
        text = data[4 * word + 8 : 4 * word + 12]
        little = self._elf.little_endian
        named = decode_number(text, little, signed=True)
        name = self._name(named)
        if kind & 0x1F not in _KINDS or not name or not name.isprintable():
            return None
        if flags & _RTYPE_EXTRA_STAR:
            name = name[1:]
        return RuntimeType(name, offset, bool(direct))

    def _name(self, offset: int) -> str | None:
        # A byte of flags, the length, the text.
        if not 0 < offset < self._size:
            return None
        data = self._elf.read(Address(self._start + offset), _LONGEST_TYPE_NAME)
        if self._version < _VARIABLE_LENGTHS:
            length, start = decode_number(data[1:3], False), 3
        else:
            try:
                length, start = read_uleb(data[:4], 1)
            except IndexError:
                return None  # longer than any name that is shown
        text = data[start : start + length]
        if len(text) < length:
            return None
        try:
            return text.decode()
        except UnicodeDecodeError:
            return None
