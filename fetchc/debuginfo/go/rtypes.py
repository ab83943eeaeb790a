"""Type descriptors of Go (abi.Type), which its run time reads.

Source: Go 1.15 to 1.27, src/internal/abi/type.go, src/reflect/type.go and src/runtime/type.go
(Type, UncommonType, ArrayType, ChanType, FuncType, InterfaceType, MapType, StructType, Name).
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import decode_number, read_uleb
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.record import Record
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.go.moduledata import GoVersion, Memory, Module

__all__ = ["Descriptor", "Descriptors", "Field"]

LABEL = "types of the run time"
# reflect.Kind
BOOL, INT, INT64 = 1, 2, 6
UINTPTR, FLOAT32, FLOAT64, COMPLEX64, COMPLEX128 = range(12, 17)
ARRAY, CHANNEL, FUNCTION, INTERFACE, MAP, POINTER, SLICE, STRING, STRUCT, UNSAFE = range(17, 27)
# Of the flags (tflag).
_UNCOMMON, _EXTRA_STAR, _NAMED, _DIRECT = 1 << 0, 1 << 1, 1 << 2, 1 << 5
_EMBEDDED = 1 << 3  # of a name's flags
_METHOD_BYTES = 16  # its name, its type, where its code is for interfaces and for others
_LONGEST_NAME = 1 << 16
_LONGEST_LENGTH = 3  # bytes of the number that is the length of a name, and one
_MOST_FIELDS = 1 << 16
_MOST_PARAMETERS = 1 << 10
# Bytes of a value, by kind; of the rest in words. Arrays and structures are as long as their parts.
_BYTES = {BOOL: 1, 3: 1, 4: 2, 5: 4, 6: 8, 8: 1, 9: 2, 10: 4, 11: 8}
_BYTES |= {FLOAT32: 4, FLOAT64: 8, COMPLEX64: 8, COMPLEX128: 16}
_WORDS = {INT: 1, 7: 1, UINTPTR: 1, CHANNEL: 1, FUNCTION: 1, INTERFACE: 2, MAP: 1, POINTER: 1}
_WORDS |= {SLICE: 3, STRING: 2, UNSAFE: 1}
_WIDEST_ALIGNMENT = 16
# Words after the common part, by kind; those of maps differ between versions.
_OWN_WORDS = {ARRAY: 3, CHANNEL: 2, FUNCTION: 1, INTERFACE: 4, POINTER: 1, SLICE: 1, STRUCT: 4}


class Field(Record):
    """A field of a structure; ``type`` is the address of its descriptor."""

    name: str
    type: int
    offset: int
    embedded: bool


class Descriptor(Record):
    """A type at ``address``. ``name`` is what ``%T`` prints, ``package`` the whole path.

    ``parts`` are the descriptors of its parts: the element, a map's key and element, the
    parameters and results of a function. ``count`` is of an array's elements, an interface's
    methods, a function's parameters; of a channel the ways it goes (1 receives, 2 sends).
    ``direct``: an interface has the value itself in its data word. ``methods`` is where the list
    of its methods is and how many they are, ``size_here`` is of the descriptor.
    """

    address: int
    kind: int
    size: int
    name: str
    package: str
    named: bool
    direct: bool
    parts: tuple[int, ...]
    count: int
    variadic: bool
    fields: tuple[Field, ...]
    related: tuple[int, ...]
    methods: tuple[int, int] | None
    size_here: int


class Descriptors:
    """The descriptors of one program, read when asked for.

    ``short_lengths``: two bytes have the length of a name. ``swiss``: maps are Swiss maps.
    """

    __slots__ = (
        "_descriptors",
        "_facts",
        "_left",
        "_minor",
        "end",
        "memory",
        "module",
        "short_lengths",
        "start",
        "swiss",
    )  # fmt: skip

    def __init__(self, memory: Memory, module: Module, version: GoVersion) -> None:
        self.memory, self.module = memory, module
        self.start, self.end = module.types, module.end
        self._minor = version.minor
        since = table("runtime/go/program")["maps"]["first_swiss"]
        self.swiss = self._minor >= since and "noswissmap" not in version.text
        self._facts = table("runtime/go/program")["descriptors"]
        self.short_lengths = self._minor < self._facts["variable_name_lengths"]
        self._descriptors: dict[int, Descriptor] = {}
        self._left = 2 * (self.end - self.start)

    def error(self, what: str, address: int) -> DebugInfoError:
        """A located FC0904 for ``raise``."""
        return self.memory.error(what, LABEL, address)

    def at(self, address: int) -> Descriptor:
        """The type at that address; DebugInfoError FC0904 where there is none."""
        found = self._descriptors.get(address)
        if found is None:
            found = self._descriptors[address] = self._read(address)
        return found

    def must_fit(self, one: Descriptor) -> None:
        """Raise DebugInfoError FC0904 where a type's size does not fit its parts.

        That is so of bytes which are no descriptor: of a type's own size, of its parts and fields.
        """
        parts = [self.at(part) for part in one.parts]
        end = one.size
        if one.kind == ARRAY:
            end = one.count * parts[0].size
        elif one.kind == STRUCT:
            # After a last field of no bytes there is one of padding.
            end = max([each.offset + self.at(each.type).size for each in one.fields], default=0)
        if not end <= one.size <= end + (_WIDEST_ALIGNMENT if one.fields else 0):
            raise self.error(f"a type of {one.size} bytes, whose parts end at {end}", one.address)

    def every(self) -> Iterator[Descriptor]:
        """All types that can be reached, each once, those of the file's own list first."""
        seen: set[int] = set()
        waiting = list(self._listed())
        waiting.reverse()
        while waiting:
            address = waiting.pop()
            if address in seen:
                continue
            seen.add(address)
            found = self.at(address)
            yield found
            waiting += [each for each in (*found.parts, *found.related) if each not in seen]
            waiting += [each.type for each in found.fields if each.type not in seen]

    def _listed(self) -> Iterator[int]:
        memory, word = self.memory, self.memory.word_bytes
        if self.module.described:
            at, end = self.start + word, self.start + self.module.described
            while at < end:
                yield at
                at += self.at(at).size_here
                at += -at % word
        start, count = self.module.listed
        for at in range(start, start + 4 * count, 4):
            yield self.start + memory.number(at, 4, LABEL)
        for both in self.interface_tables():
            yield from both

    def interface_tables(self) -> Iterator[tuple[int, int]]:
        """Where the descriptors of an interface with methods and of a type in it are.

        One for each itab that the linker writes, which is for a conversion in the source.
        """
        # itab: interface, type, hash, functions, at least room for one.
        memory, word = self.memory, self.memory.word_bytes
        start, count = self.module.tables
        for itab in memory.words(start, count, LABEL) if count else ():
            interface, holder = memory.words(itab, 2, LABEL)
            yield interface, holder
        if not self.module.described:
            return
        at, size = self.module.itabs
        end = at + size
        while at < end:
            interface, holder = memory.words(at, 2, LABEL)
            if not interface:
                return
            yield interface, holder
            at += 2 * word + 8 + word * max(1, self.at(interface).count)
            at += -at % word

    def entries(self, one: Descriptor) -> int:
        """The descriptor of a group of the map ``one``, or of a bucket."""
        words = self.memory.words(one.address + 4 * self.memory.word_bytes + 16, 3, LABEL)
        return words[2]

    def methods(self, address: int) -> frozenset[str]:
        """Names of the methods of the type at that address, and of pointers to it.

        The linker leaves out the code of methods that the program cannot reach, not their names.
        """
        found = set(self._method_names(address))
        pointer = self._offset(address + 4 * self.memory.word_bytes + 12)
        if pointer:
            found.update(self._method_names(self.start + pointer))
        return frozenset(found)

    def _method_names(self, address: int) -> Iterator[str]:
        one = self.at(address)
        if one.methods:
            at, count = one.methods
            for index in range(count):
                name = self._offset(at + _METHOD_BYTES * index)
                if name:
                    yield self.name(self.start + name)[1]

    def name(self, address: int) -> tuple[int, str]:
        """Flags and text of a name."""
        memory = self.memory
        flags = memory.number(address, 1, LABEL)
        if self.short_lengths:
            length = decode_number(memory.take(address + 1, 2, LABEL), False)
            start = address + 3
        else:
            length, used = self._name_length(address + 1)
            start = address + 1 + used
        if length > _LONGEST_NAME:
            raise self.error(f"a name of {length} bytes", address)
        try:
            return flags, memory.take(start, length, LABEL).decode()
        except UnicodeDecodeError:
            raise self.error("a name that is not UTF-8", address) from None

    def _name_length(self, address: int) -> tuple[int, int]:
        # An unsigned LEB128 number, and its bytes. A name at the end may be shorter than three.
        raw = b""
        while not raw or raw[-1] >= 0x80:
            if len(raw) > _LONGEST_LENGTH:
                raise self.error("a name without an end", address - 1)
            raw += self.memory.take(address + len(raw), 1, LABEL)
        return read_uleb(raw, 0)

    def _read(self, address: int) -> Descriptor:
        memory, word = self.memory, self.memory.word_bytes
        if not self.start < address < self.end or address % word:
            raise self.error("no type", address)
        size = memory.word(address, LABEL)
        flags, alignment, _, kind = memory.take(address + 2 * word + 4, 4, LABEL)
        in_flags = self._minor >= self._facts["direct_in_flags"]
        direct = bool((flags if in_flags else kind) & _DIRECT)
        kind &= 0x1F
        if not BOOL <= kind <= UNSAFE or alignment not in (1, 2, 4, 8, 16) or size % alignment:
            raise self.error("no type", address)
        text, pointer = (
            self._offset(address + 4 * word + 8),
            self._offset(address + 4 * word + 12),
        )
        if size != _BYTES.get(kind, word * _WORDS[kind] if kind in _WORDS else size):
            raise self.error(f"a type of kind {kind} with {size} bytes", address)
        _, name = self.name(self.start + text)
        if flags & _EXTRA_STAR:
            name = name[1:]
        own = address + 4 * word + 16
        own_words = _OWN_WORDS.get(kind, 0) if kind != MAP else self._map_words()
        behind = own + own_words * word
        related = [self.start + pointer] if pointer else []
        package, methods = "", (0, 0)
        if flags & _UNCOMMON:
            package, methods = self._uncommon(behind, related)
            behind += 16
        parts, count, variadic = self._parts(address, kind, own, behind, related)
        fields = self._fields(own, size) if kind == STRUCT else ()
        size_here = behind - address + _METHOD_BYTES * methods[1]
        size_here += word * len(parts) if kind == FUNCTION else 3 * word * len(fields)
        size_here += 8 * count if kind == INTERFACE else 0
        return Descriptor(
            address, kind, size, name, package, bool(flags & _NAMED), direct, parts, count,
            variadic, fields, tuple(related), methods if methods[1] else None, size_here,
        )  # fmt: skip

    def _spend(self, size: int, address: int) -> None:
        # No two types share their lists: so what is read of them is bounded by where all are.
        self._left -= size
        if self._left < 0:
            raise self.error("more members than there is room for", address)

    def _offset(self, address: int) -> int:
        value = self.memory.number(address, 4, LABEL)
        if value >= self.end - self.start:
            raise self.error("an offset beyond the types", address)
        return value

    def _map_words(self) -> int:
        since = 24 if self.swiss else 15
        since = 27 if self._minor >= 27 else since
        words: int = self._facts[f"map_words_{since}"]
        # Two sizes of a byte, one of two, and flags: 8 bytes up to 1.23.
        return words + 1 if since == 15 and self.memory.word_bytes == 4 else words

    def _uncommon(self, address: int, related: list[int]) -> tuple[str, tuple[int, int]]:
        # pkgPath, method count, exported count, offset of the methods; a method is four offsets.
        memory = self.memory
        path = self._offset(address)
        methods = memory.number(address + 4, 2, LABEL)
        first = address + memory.number(address + 8, 4, LABEL)
        for index in range(methods):
            signature = memory.number(first + _METHOD_BYTES * index + 4, 4, LABEL)
            if 0 < signature < self.end - self.start:
                related.append(self.start + signature)
        package = self.name(self.start + path)[1] if path else ""
        return package, (first, methods)

    def _parts(
        self, address: int, kind: int, own: int, behind: int, related: list[int]
    ) -> tuple[tuple[int, ...], int, bool]:
        memory = self.memory
        if kind in (POINTER, SLICE):
            return (memory.word(own, LABEL),), 0, False
        if kind == CHANNEL:
            element, ways = memory.words(own, 2, LABEL)
            return (element,), ways, False
        if kind == ARRAY:
            element, slice_of, count = memory.words(own, 3, LABEL)
            related.append(slice_of)
            return (element,), count, False
        if kind == MAP:
            key, element, inside = memory.words(own, 3, LABEL)
            related.append(inside)
            return (key, element), 0, False
        if kind == INTERFACE:
            return (), memory.word(own + 2 * memory.word_bytes, LABEL), False
        if kind == FUNCTION:
            inputs, outputs = memory.number(own, 2, LABEL), memory.number(own + 2, 2, LABEL)
            variadic, outputs = bool(outputs & 0x8000), outputs & 0x7FFF
            if inputs + outputs > _MOST_PARAMETERS:
                raise self.error(f"a function of {inputs + outputs} parameters", address)
            self._spend((inputs + outputs) * memory.word_bytes, address)
            return memory.words(behind, inputs + outputs, LABEL), inputs, variadic
        return (), 0, False

    def _fields(self, own: int, size: int) -> tuple[Field, ...]:
        memory, word = self.memory, self.memory.word_bytes
        _, start, count, _ = memory.words(own, 4, LABEL)
        if count > _MOST_FIELDS:
            raise self.error(f"a structure of {count} fields", own)
        in_name = self._minor >= self._facts["embedded_in_name"]
        found = []
        self._spend(3 * count * word, own)
        raw = memory.words(start, 3 * count, LABEL) if count else ()
        for index in range(count):
            name, type_at, offset = raw[3 * index : 3 * index + 3]
            flags, text = self.name(name)
            embedded = bool(flags & _EMBEDDED) if in_name else bool(offset & 1)
            offset = offset if in_name else offset >> 1
            if offset > size:
                raise self.error("a field beyond its structure", start + 3 * word * index)
            found.append(Field(text, type_at, offset, embedded))
        return tuple(found)
