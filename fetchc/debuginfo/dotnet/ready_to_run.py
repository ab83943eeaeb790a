"""ReadyToRun: reads the header of an image's native code and finds the code of a method.

Source: dotnet/runtime, docs/design/coreclr/botr/readytorun-format.md.
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import decode_number, number_at, record_layout
from fetchc.debuginfo.dotnet.portable_executable import NotSupported
from fetchc.program.entities import Absent, Indirect, InMemory, InRegister, Piece, Pieces
from fetchc.quantities import Address, ByteOffset, ByteSize, DwarfRegister
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from fetchc.debuginfo.byte_reader import Cursor
    from fetchc.debuginfo.dotnet.portable_executable import Pe
    from fetchc.program.entities import Place
else:
    Protocol = object

__all__ = [
    "Boundary",
    "NativeCode",
    "NativeDebugInfo",
    "ReadyToRun",
    "VariableRange",
    "array_element",
    "array_elements",
    "debug_info_of",
    "function_index",
    "native_header",
    "native_number",
    "signed_number",
    "table_entries",
]

# ------------------------------------------------------------------------------
# Numbers, sparse arrays and hash tables of the native format: ReadyToRun's tables are in it.
#
# Source: dotnet/runtime, docs/design/coreclr/botr/readytorun-format.md, "Native Format".

BLOCK = 16  # elements of an array that share a tree
FOUR_BYTES = record_layout(True, "i").unpack_from
NUMBER_BITS = (0, 7, 14, 21, 28, 32)  # of a number of so many bytes


def native_number(cursor: Cursor) -> int:
    """An unsigned number in the native format: the low set bits of its first byte give its size."""
    first = cursor.u8()
    for size in range(4):
        if not first >> size & 1:
            rest = decode_number(cursor.take(size), True)
            return first >> size + 1 | rest << 7 - size
    if first & 16:
        raise cursor.error(f"a number that begins with {first:#x}", cursor.offset - 1)
    return cursor.u32()


def signed_number(data: bytes, at: int) -> tuple[int, int]:
    """A signed number in the native format, and its size in bytes; any number if truncated."""
    first = data[at]
    size = next((size for size in range(1, 5) if not first >> size - 1 & 1), 5)
    if size < 5:
        value = decode_number(data[at : at + size], True) >> size
    else:
        value = decode_number(data[at + 1 : at + 5], True)
    bits = NUMBER_BITS[size]
    return value - (1 << bits) if value >> bits - 1 else value, size


def array_element(cursor: Cursor, index: int) -> Cursor | None:
    """``cursor``, at the start of a sparse array, moved to an element; None where it has none.

    Every 16 elements share a binary tree over the low four bits of their index.
    """
    head = native_number(cursor)
    count, width = head >> 2, (1, 2, 4, 4)[head & 3]
    if not 0 <= index < count:
        return None
    base = cursor.offset
    cursor.skip(width * (index // BLOCK))
    block = cursor.unsigned(width)
    cursor.offset = base
    cursor.skip(block)
    bit = BLOCK >> 1
    while bit:
        at = cursor.offset
        value = native_number(cursor)
        if index & bit:
            if value & 2:
                cursor.offset = at
                cursor.skip(value >> 2)
                bit >>= 1
                continue
        elif value & 1:
            bit >>= 1
            continue
        return cursor if not value & 3 and value >> 2 == index & BLOCK - 1 else None
    return cursor


def array_elements(cursor: Cursor) -> Iterator[tuple[int, Cursor]]:
    """All elements of a sparse array by their index; ``cursor`` is at each in turn."""
    head = native_number(cursor)
    count, width = head >> 2, (1, 2, 4, 4)[head & 3]
    base = cursor.offset
    for first in range(0, count, BLOCK):
        cursor.offset = base
        cursor.skip(width * (first // BLOCK))
        block = cursor.unsigned(width)
        cursor.offset = base
        cursor.skip(block)
        # Branches still to be taken: their offset, the bit that selects them, the index so far.
        left = [(cursor.offset, BLOCK >> 1, 0)]
        while left:
            at, bit, index = left.pop()
            cursor.offset = at
            while bit:
                value = native_number(cursor)
                if not value & 3:  # a branch of one element, or of none
                    index = value >> 2 if value >> 2 & -2 * bit == index else BLOCK
                    break
                if value & 2:
                    left.append((at + (value >> 2), bit >> 1, index | bit))
                if not value & 1:
                    index = BLOCK
                    break
                at, bit = cursor.offset, bit >> 1
            if index < BLOCK and first + index < count:
                yield first + index, cursor


def table_entries(cursor: Cursor) -> list[int]:
    """Where the entries of a hash table are, whatever their hash; ``cursor`` is at its start.

    An entry is the low byte of its hash and its distance from there.
    """
    head = cursor.u8()
    width = (1, 2, 4, 4)[head & 3]
    base = cursor.offset
    buckets = 1 << (head >> 2)
    if (buckets + 1) * width > cursor.remaining():
        raise cursor.error(f"{buckets} buckets")
    letter = {1: "B", 2: "H", 4: "I"}[width]
    bounds = list(
        record_layout(True, f"{buckets + 1}{letter}").unpack(cursor.take(width * (buckets + 1)))
    )
    if bounds != sorted(bounds) or bounds[-1] > cursor.end - base:
        raise cursor.error("buckets that are not in order", base)  # each byte is read once
    data, found = bytes(cursor.data[base : base + bounds[-1]]), []
    at, end = bounds[0], bounds[-1]
    # Buckets lie one after the other. Tens of thousands of entries: most of them are a byte and
    # a number of three bytes, and four bytes are read at once.
    last = end - 4
    while at < end:
        word = FOUR_BYTES(data, at)[0] if at <= last else 0
        if word & 0x700 == 0x300:
            found.append(base + at + 1 + (word >> 11))
            at += 4
            continue
        at += 1
        value, size = signed_number(data, at) if at < end else (0, 1)
        if at + size > end or data[at] & 31 == 31:
            raise cursor.error("an entry that is broken off", base + at)
        found.append(base + at + value)
        at += size
    return found


RUNTIME_FUNCTIONS, METHOD_ENTRY_POINTS, INSTANCE_ENTRY_POINTS = 102, 103, 109
OWNER_COMPOSITE = 116
MOST_SECTIONS = 64


def native_header(image: Pe) -> tuple[bytes, int] | None:
    """Signature and offset of the header of native code; None where the image has only IL."""
    found = image.cli
    if found is None:
        return None
    header = image.cursor(found[0], "CLI header")
    header.skip(64)
    address, size = header.u32(), header.u32()
    if not size:
        return None
    cursor = image.cursor(address, "native header")
    return cursor.take(4), cursor.offset


class ReadyToRun:
    """The ReadyToRun part of an image that declares so many ``methods``.

    Raises DebugInfoError FC0905 where the image is of another kind, FC0904 where it is damaged.
    """

    __slots__ = ("_functions", "_image", "_methods", "_sections", "_stride", "flags", "version")

    def __init__(self, image: Pe, methods: int) -> None:
        self._image = image
        self._methods = methods
        found = native_header(image)
        if found is None or found[0] != b"RTR\0":
            raise NotSupported("FC0905", image.path, "the image has no ReadyToRun code")
        cursor = image.at(found[1] - image.start, "ReadyToRun header")
        self.version = (cursor.u16(), cursor.u16())
        self.flags = cursor.u32()
        count = cursor.u32()
        if count > MOST_SECTIONS:
            raise cursor.error(f"{count} sections")
        self._sections = {cursor.u32(): (cursor.u32(), cursor.u32()) for _ in range(count)}
        if OWNER_COMPOSITE in self._sections:
            what = "the code of the image is in a composite image, beside it"
            raise NotSupported("FC0905", image.path, what)
        self._stride = 12 if image.machine == "x86_64" else 8
        # An assembly of nothing but forwards has no code.
        functions = self._section(RUNTIME_FUNCTIONS, "RUNTIME_FUNCTIONS")
        self._functions = image.at(0, "RUNTIME_FUNCTIONS", 0) if functions is None else functions

    def _section(self, kind: int, what: str) -> Cursor | None:
        if kind not in self._sections:
            return None
        address, size = self._sections[kind]
        return self._image.cursor(address, what, size)

    @property
    def functions(self) -> int:
        """How many pieces of code there are."""
        return self._functions.remaining() // self._stride

    def begin(self, index: int) -> Address:
        """Relative address of the first byte of a piece of code."""
        if not 0 <= index < self.functions:
            raise self._functions.error(f"there is no function {index}")
        at = self._functions.offset + index * self._stride
        return Address(number_at(self._functions.data, at, 4, True))

    def end(self, index: int) -> Address:
        """The address after a piece of code; where only begins are listed, the next one's."""
        if self._stride == 12:
            at = self._functions.offset + index * self._stride + 4
            return Address(number_at(self._functions.data, at, 4, True))
        return self.begin(min(index + 1, self.functions - 1))

    def entry(self, method: int) -> int | None:
        """The piece of code a method begins with, by its row; None where it was not compiled."""
        cursor = self._section(METHOD_ENTRY_POINTS, "METHODDEF_ENTRYPOINTS")
        if cursor is None:
            return None
        found = array_element(cursor, method - 1)
        return None if found is None else function_index(found)

    def entries(self) -> Iterator[tuple[int, int]]:
        """The rows of all methods that were compiled, each with its piece of code."""
        cursor = self._section(METHOD_ENTRY_POINTS, "METHODDEF_ENTRYPOINTS")
        if cursor is not None:
            for index, element in array_elements(cursor):
                if index >= self._methods:
                    raise element.error(f"code of method {index + 1} of {self._methods}")
                yield index + 1, function_index(element)

    def instances(self) -> list[int]:
        """Offsets in the file of what the table of instantiations has."""
        table = self._section(INSTANCE_ENTRY_POINTS, "INSTANCE_ENTRYPOINTS")
        return [] if table is None else table_entries(table)

    def debug_info(self) -> NativeDebugInfo | None:
        """What the image says of its code; None where nothing, or for another machine."""

        return debug_info_of(self._image, self._sections)


def function_index(cursor: Cursor) -> int:
    """The piece of code that an entry of either table names."""
    value = native_number(cursor)
    return value >> 2 if value & 1 else value >> 1


# ------------------------------------------------------------------------------
# What ReadyToRun images say of their native code: which instruction is of which IL, where
# variables are.
#
# Source: dotnet/runtime, docs/design/coreclr/botr/readytorun-format.md, "Debug Info";
# src/coreclr/vm/debuginfostore.cpp, inc/cordebuginfo.h. Numbers are in nibbles: three bits, and
# one that says whether more follow, the highest first.

# ICorDebugInfo::VarLocType, by number.
REGISTER, REGISTER_ADDRESS, FLOAT, STACK, STACK_ADDRESS, TWO_REGISTERS = range(6)
REGISTER_STACK, STACK_REGISTER, TWO_STACK = 6, 7, 8
OPERANDS = {
    REGISTER: 1, REGISTER_ADDRESS: 1, FLOAT: 1, STACK: 2, STACK_ADDRESS: 2, TWO_REGISTERS: 2,
    REGISTER_STACK: 3, STACK_REGISTER: 3, TWO_STACK: 2,
}  # fmt: skip
# Registers of x86-64 as ICorDebugInfo counts them (ax cx dx bx sp bp si di r8...), in DWARF's
# numbers; those of vectors count from 0.
NUMBERS = (0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15)
VECTORS = 17
FIRST_IL = 3  # -3, -2 and -1 are epilogue, prologue and no place in the source
FIRST_VARIABLE = 4  # -3 and up are the hidden type arguments, the result's address, ...
MOST = 1 << 16  # boundaries, variables; no method gets near
WORD = ByteSize(8)


class Boundary(Record):
    """The instruction ``native`` bytes into a method begins the code of the IL at ``il``."""

    native: int
    il: int


class VariableRange(Record):
    """Where variable ``number`` is from ``start`` up to ``end``, bytes into a method.

    Parameters count from 0, ``this`` with them, then the locals.
    """

    start: int
    end: int
    number: int
    kind: int
    operands: tuple[int, ...]

    def place(self, size: int | None) -> Place:
        """The place of a variable of ``size`` bytes."""
        match self.kind, self.operands:
            case (0, (one,)) if size is not None and size <= WORD and one < len(NUMBERS):
                return InRegister(_register(one))
            case (1, (one,)) if one < len(NUMBERS):
                return InMemory(_register(one), ByteOffset(0))
            case (2, (one,)):
                return InRegister(DwarfRegister(VECTORS + one % len(NUMBERS)))
            case (3, (base, offset)) if base < len(NUMBERS):
                return InMemory(_register(base), ByteOffset(_signed(offset)))
            case (4, (base, offset)) if base < len(NUMBERS):
                pointer = InMemory(_register(base), ByteOffset(_signed(offset)))
                return Indirect(pointer, ByteOffset(0))
            case (5, (one, two)) if one < len(NUMBERS) and two < len(NUMBERS):
                return Pieces(
                    (
                        Piece(ByteOffset(0), WORD, InRegister(_register(one))),
                        Piece(ByteOffset(8), WORD, InRegister(_register(two))),
                    )
                )
            case _:
                return Absent("in pieces", "the compiler says of a part of it only where it is")


def _register(number: int) -> DwarfRegister:
    return DwarfRegister(NUMBERS[number])


def _signed(encoded: int) -> int:
    # The sign is the lowest bit.
    return -(encoded >> 1) if encoded & 1 else encoded >> 1


class _Nibbles:
    def __init__(self, cursor: Cursor, start: int) -> None:
        self._cursor = cursor
        self._cursor.offset = start
        self._byte: int | None = None

    def number(self) -> int:
        value = 0
        for _ in range(11):
            if self._byte is None:
                self._byte = self._cursor.u8()
                one = self._byte & 15
            else:
                one, self._byte = self._byte >> 4, None
            value = value << 3 | one & 7
            if not one & 8:
                return value
        raise self._cursor.error("a number of too many nibbles")

    def count(self) -> int:
        value = self.number()
        if value > MOST:
            raise self._cursor.error(f"{value} of them")
        return value

    @property
    def behind(self) -> int:
        """The offset of the first byte that no nibble was taken of."""
        return self._cursor.offset


class NativeDebugInfo:
    """What the section of an image at ``address`` says of pieces of code, by their number."""

    __slots__ = ("_address", "_image", "_size")

    def __init__(self, image: Pe, address: int, size: int) -> None:
        self._image = image
        self._address = address
        self._size = size

    def of(self, function: int) -> tuple[list[Boundary], list[VariableRange]]:
        """All of one piece of code, in order; raises DebugInfoError FC0904 where it is broken."""
        section = self._image.cursor(self._address, "DEBUG_INFO", self._size)
        cursor = array_element(section, function)
        if cursor is None:
            return [], []
        start = cursor.offset
        back = native_number(cursor)
        head = _Nibbles(cursor, start - back if back else cursor.offset)
        sizes = head.number(), head.number()
        first = head.behind
        boundaries = self._boundaries(_Nibbles(cursor, first)) if sizes[0] else []
        variables = self._variables(_Nibbles(cursor, first + sizes[0])) if sizes[1] else []
        return boundaries, variables

    def _boundaries(self, read: _Nibbles) -> list[Boundary]:
        found, native = [], 0
        for _ in range(read.count()):
            native += read.number()
            il = read.number() - FIRST_IL
            read.number()  # why the compiler noted it
            found.append(Boundary(native, il))
        return found

    def _variables(self, read: _Nibbles) -> list[VariableRange]:
        found = []
        for _ in range(read.count()):
            start = read.number()
            end = start + read.number()
            number, kind = read.number() - FIRST_VARIABLE, read.number()
            if kind not in OPERANDS:
                break  # its length is unknown, so all that follow have no place
            operands = tuple([read.number() for _ in range(OPERANDS[kind])])
            found.append(VariableRange(start, end, number, kind, operands))
        return found


def debug_info_of(image: Pe, sections: dict[int, tuple[int, int]]) -> NativeDebugInfo | None:
    """That of an image for x86-64 with the section for it."""
    if DEBUG_INFO not in sections or image.machine != "x86_64":
        return None
    return NativeDebugInfo(image, *sections[DEBUG_INFO])


DEBUG_INFO = 105


# ------------------------------------------------------------------------------
# The questions about an assembly's native code, whatever its format.
#
# Nothing imports this module at run time: it is of use to type checkers alone.


class NativeCode(Protocol):
    """The code of methods. A piece of code goes by a number, which is the format's own matter."""

    def entry(self, method: int) -> int | None:
        """The piece of code that a method begins with, by its row; None where it has none."""

    def entries(self) -> Iterator[tuple[int, int]]:
        """The rows of all methods that have code, each with its piece of code."""

    def begin(self, index: int, /) -> Address:
        """Relative address of the first byte of a piece of code."""

    def end(self, index: int, /) -> Address:
        """The address after it."""

    def instances(self) -> list[int]:
        """Offsets in the file of the entries for instantiations; empty where there are none."""
