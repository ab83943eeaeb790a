"""Searches symbol tables by bytes, without decoding every symbol.

A name is looked for in the string table, its offset then in the symbol table: 15 ms on
130,000 symbols where decoding them takes seconds. Linkers merge tails, so a name may exist
only as the end of a longer one (``tcp_sock`` in a kernel); a hit needs no NUL in front.
"""

from __future__ import annotations

from fetchc.ceilings import HELP, joined_names
from fetchc.debuginfo.byte_reader import decode_number, encode_number, record_layout
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address, ByteSize
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from fetchc.debuginfo.elf.headers import Image, Section

__all__ = ["STT_FUNC", "STT_GNU_IFUNC", "Symbol", "SymbolTable", "symbol_table", "versions"]

STT_NOTYPE = 0
STT_FUNC = 2
STT_GNU_IFUNC = 10
_CODE = (STT_FUNC, STT_GNU_IFUNC)
_SHN_UNDEF = 0

# Beyond this many places in the string table (``f`` ends many names) one pass over the
# symbols is cheaper than a search for each.
_MANY = 8
LONGEST_SUFFIX = 128  # bytes that all marks of clones together take at most
_SEARCHES = 64  # for single names, each of which goes through all names; then all are read once


class Symbol(Record):
    """A defined symbol. ``kind`` is STT_* (2 function, 10 ifunc), ``binding`` STB_* (0 local)."""

    name: str
    address: Address
    size: ByteSize
    kind: int
    binding: int
    section: int
    other: int = 0  # st_other


class SymbolTable:
    """One of .symtab and .dynsym; ``names`` are its strings.

    Source: gABI chapter 4, symbol table: Elf64_Sym is name, info, other, shndx, value, size;
    Elf32_Sym is name, value, size, info, other, shndx.
    """

    __slots__ = (
        "_by_name", "_by_value", "_dotted", "_entry", "_little", "_searches", "_symbols",
        "_value_at", "_wide", "names",
    )  # fmt: skip

    def __init__(self, symbols: Section, names: Section, wide: bool) -> None:
        self._symbols = symbols
        self.names = names
        self._wide = wide
        self._little = symbols.little
        self._entry = record_layout(symbols.little, "IBBHQQ" if wide else "IIIBBH")
        self._value_at = 8 if wide else 4
        self._searches = 0
        # A listing asks often. Offsets of symbols by name and by value, and the names that
        # begin with each text that a dot ends.
        self._by_name: dict[bytes, list[int]] | None = None
        self._by_value: dict[int, list[int]] | None = None
        self._dotted: dict[bytes, list[bytes]] | None = None

    def named(self, name: str) -> tuple[Symbol, ...]:
        """Defined symbols of exactly that name, in the order of the string table."""
        return tuple([one for one in self._called(name) if one.section != _SHN_UNDEF])

    def needs(self, name: str) -> bool:
        """Whether exactly that name is an undefined symbol: another file defines it."""
        return any(one.section == _SHN_UNDEF for one in self._called(name))

    def numbers(self, name: str) -> tuple[int, ...]:
        """Where symbols of exactly that name stand in the table, which relocations have."""
        return tuple([at // self._entry.size for at in self._offsets(name)])

    def _called(self, name: str) -> list[Symbol]:
        return [self._at(at, name) for at in self._offsets(name)]

    def _offsets(self, name: str) -> list[int]:
        try:
            key = name.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return []
        if not key or b"\0" in key:
            return []
        self._searches += 1
        if self._searches > _SEARCHES:
            return self._named().get(key, [])
        places = list(self.names.find_all(key + b"\0"))
        if len(places) > _MANY:
            return self._named_in_one_pass(set(places))
        found = []
        for place in places:
            if place < 1 << 32:  # st_name has 32 bits
                for at in self._symbols.find_all(self._packed(place, 4)):
                    if at % self._entry.size == 0:
                        found.append(at)
        return found

    def beginning(self, prefix: bytes) -> list[bytes]:
        """Strings that begin with ``prefix``, which a dot ends, and are short after that.

        Also what is the end of another string: whether a symbol has that name is to be asked.
        """
        self._searches += 1
        if self._searches <= _SEARCHES:
            strings, found = self.names, []
            for at in strings.find_all(prefix):
                behind = at + len(prefix)
                window = strings.bytes_between(behind, min(behind + LONGEST_SUFFIX, strings.size))
                suffix, end, _ = window.partition(b"\0")
                if end:
                    found.append(prefix + suffix)
            return found
        if self._dotted is None:
            self._dotted = {}
            for name in self._named():
                dot = name.find(b".", max(0, len(name) - LONGEST_SUFFIX))
                while dot >= 0:
                    self._dotted.setdefault(name[: dot + 1], []).append(name)
                    dot = name.find(b".", dot + 1)
        return self._dotted.get(prefix, [])

    def _named(self) -> dict[bytes, list[int]]:
        if self._by_name is None:
            self._by_name = self._all_named()
        return self._by_name

    def _all_named(self) -> dict[bytes, list[int]]:
        # In the order of the string table, as a search has them.
        size = self._entry.size
        field = record_layout(self._little, f"I{size - 4}x")
        data = self._symbols.bytes_between(0, self._symbols.size // size * size)
        strings = self.names.bytes_between(0, self.names.size)
        found: dict[bytes, list[int]] = {}
        left = self._room()
        for place, at in sorted((at, i * size) for i, (at,) in enumerate(field.iter_unpack(data))):
            end = strings.find(b"\0", place)
            left -= end - place
            if left < 0:
                raise self._too_long()
            if end > place:
                found.setdefault(strings[place:end], []).append(at)
        return found

    def _packed(self, number: int, size: int) -> bytes:
        return encode_number(number, size, self._little)

    def _named_in_one_pass(self, places: set[int]) -> list[int]:
        size = self._entry.size
        field = record_layout(self._little, f"I{size - 4}x")
        count = self._symbols.size // size
        data = self._symbols.bytes_between(0, count * size)
        return [i * size for i, (at,) in enumerate(field.iter_unpack(data)) if at in places]

    def _at(self, offset: int, name: str) -> Symbol:
        fields = self._entry.unpack(self._symbols.bytes_between(offset, offset + self._entry.size))
        if self._wide:
            _, info, other, section, value, size = fields
        else:
            _, value, size, info, other, section = fields
        return Symbol(name, Address(value), ByteSize(size), info & 15, info >> 4, section, other)

    def functions(self) -> Iterator[Symbol]:
        """Defined function symbols in the order of the table."""
        strings = self.names.bytes_between(0, self.names.size)
        left = self._room()
        for name, value, length, info, section in self.entries():
            if info & 15 in _CODE and section != _SHN_UNDEF:
                end = strings.find(b"\0", name)
                if end < 0:
                    raise self._endless(name)
                left -= end - name
                if left < 0:
                    raise self._too_long()
                text = strings[name:end].decode("utf-8", "surrogateescape")
                yield Symbol(text, Address(value), ByteSize(length), info & 15, info >> 4, section)

    def function_names(self) -> list[str]:
        """Their names in that order, each place of the string table once.

        By columns, which takes a tenth of the instructions of :meth:`functions`.
        """
        kinds_at, sections_at = (4, 6) if self._wide else (12, 14)
        size = self._entry.size
        data = self._symbols.bytes_between(0, self._symbols.size // size * size)
        names, sections = self._column(data, "I", 0), self._column(data, "H", sections_at)
        is_code = data[kinds_at::size].translate(bytes([n & 15 in _CODE for n in range(256)]))
        fields = zip(names, is_code, sections, strict=True)
        places = {name: "" for name, code, section in fields if code and section != _SHN_UNDEF}
        if not places:
            return []
        starts = sorted(places)
        text = self.names.bytes_between(0, self.names.size).decode("latin-1")
        if starts[-1] > text.rfind("\0"):
            raise self._endless(starts[-1])
        left = self._room()
        for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
            name, ended, _ = text[start:end].partition("\0")
            if not ended:  # the next one is the end of this one
                name = text[start : text.index("\0", start)]
                left -= len(name)
                if left < 0:
                    raise self._too_long()
            places[start] = name
        if text.isascii():
            return list(places.values())
        written = [name.encode("latin-1") for name in places.values()]
        return [name.decode("utf-8", "surrogateescape") for name in written]

    def _room(self) -> int:
        # Bytes of names. Symbols may share the ends of names: with a few bytes more each, many
        # of them would take gigabytes.
        return joined_names() + 4 * self.names.size

    def _too_long(self) -> DebugInfoError:
        what = f"the names of its symbols have more than {self._room() >> 20:,} MB together"
        return DebugInfoError("FC0905", self.names.path, what, self.names.name, help=HELP)

    def _column(self, data: bytes, kind: Literal["H", "I"], at: int) -> list[int]:
        # One field of all entries, `at` bytes into each.
        from sys import byteorder

        width, size = (2 if kind == "H" else 4), self._entry.size
        if self._little == (byteorder == "little"):
            return memoryview(data).cast(kind)[at // width :: size // width].tolist()
        field = record_layout(self._little, f"{at}x{kind}{size - at - width}x")
        return [number for (number,) in field.iter_unpack(data)]

    def _endless(self, place: int) -> DebugInfoError:
        return self.names.error("symbol name without an end", place)

    def entries(self) -> Iterator[tuple[int, int, int, int, int]]:
        """All entries in order: offset in ``names``, st_value, st_size, st_info, st_shndx."""
        size = self._entry.size
        data = self._symbols.bytes_between(0, self._symbols.size // size * size)
        for fields in self._entry.iter_unpack(data):
            if self._wide:
                name, info, _, section, value, length = fields
            else:
                name, value, length, info, _, section = fields
            yield name, value, length, info, section

    def at(self, address: Address) -> tuple[Symbol, ...]:
        """Defined symbols with exactly that value: functions, and those without a type."""
        width = 8 if self._wide else 4
        if not 0 <= address < 1 << 8 * width:
            return ()
        found = []
        for offset in self._valued(address, width):
            unnamed = self._at(offset, "")
            if unnamed.section == _SHN_UNDEF or unnamed.kind not in (STT_NOTYPE, *_CODE):
                continue
            head = self._symbols.bytes_between(offset, offset + 4)
            name = self.names.cstring(decode_number(head, self._little))
            text = name.decode("utf-8", "surrogateescape")
            found.append(
                Symbol(
                    text,
                    unnamed.address,
                    unnamed.size,
                    unnamed.kind,
                    unnamed.binding,
                    unnamed.section,
                )
            )
        return tuple(found)

    def _valued(self, value: int, width: int) -> list[int]:
        # Offsets of the symbols with that value, in the order of the table.
        self._searches += 1
        size = self._entry.size
        if self._searches > _SEARCHES:
            if self._by_value is None:
                self._by_value = {}
                for number, entry in enumerate(self.entries()):
                    self._by_value.setdefault(entry[1], []).append(number * size)
            return self._by_value.get(value, [])
        found = [at - self._value_at for at in self._symbols.find_all(self._packed(value, width))]
        return [offset for offset in found if offset >= 0 and offset % size == 0]


def symbol_table(image: Image, name: str) -> SymbolTable | None:
    """The table ``.symtab`` or ``.dynsym`` of a file; None where it has none with bytes."""
    header = image.header(name)
    symbols = image.open_section(name)
    if header is None or symbols is None:
        return None
    if header.link >= len(image.headers):
        raise symbols.error(f"its string table {header.link} does not exist")
    return SymbolTable(symbols, image.content(image.headers[header.link]), image.bits64)


# ------------------------------------------------------------------------------
# Versions of the symbols that a library exports: `memcpy@GLIBC_2.2.5`, `memcpy@@GLIBC_2.14`.
#
# Source: Linux Standard Base 5.0, Core, chapter 10.7 (symbol versioning). .gnu.version has a
# number for each symbol of .dynsym, its highest bit set where programs are not linked to that
# version any more; .gnu.version_d has the versions' names.

_HIDDEN = 0x8000
_MOST = 4096  # versions of a library


def versions(image: Image) -> dict[tuple[str, Address], str]:
    """The version of each name in .dynsym, by name and address: ``@V1`` or ``@@V2``."""
    table, numbers = symbol_table(image, ".dynsym"), image.open_section(".gnu.version")
    defined = image.open_section(".gnu.version_d")
    if table is None or numbers is None or defined is None:
        return {}
    names = _names(defined, table.names)
    found: dict[tuple[str, Address], str] = {}
    listed = numbers.cursor(0)
    for (name, value, *_), _ in zip(table.entries(), range(numbers.size // 2), strict=False):
        number = listed.unsigned(2)
        version = names.get(number & ~_HIDDEN)
        if version is not None:
            text = table.names.cstring(name).decode("utf-8", "surrogateescape")
            found[text, Address(value)] = ("@" if number & _HIDDEN else "@@") + version
    return found


def _names(defined: Section, strings: Section) -> dict[int, str]:
    # The first one is the file itself, with the flag VER_FLG_BASE.
    names: dict[int, str] = {}
    at = 0
    for _ in range(_MOST):
        cursor = defined.cursor(at)
        _, flags, number, _ = (cursor.unsigned(2) for _ in range(4))
        _, first, following = (cursor.unsigned(4) for _ in range(3))
        if not flags & 1:
            name = strings.cstring(defined.cursor(at + first).unsigned(4))
            names[number] = name.decode("utf-8", "surrogateescape")
        if not following:
            return names
        at += following
    raise defined.error(f"more than {_MOST} versions")
