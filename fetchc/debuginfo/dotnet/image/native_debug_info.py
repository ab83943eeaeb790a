"""What ReadyToRun images say of their native code: which instruction is of which IL, where
variables are.

Source: dotnet/runtime, docs/design/coreclr/botr/readytorun-format.md, "Debug Info";
src/coreclr/vm/debuginfostore.cpp, inc/cordebuginfo.h. Numbers are in nibbles: three bits, and one
that says whether more follow, the highest first.
"""

from __future__ import annotations

from fetchc.debuginfo.dotnet.image.native_format import array_element, native_number
from fetchc.program.entities import Absent, Indirect, InMemory, InRegister, Piece, Pieces
from fetchc.quantities import ByteOffset, ByteSize, DwarfRegister
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.byte_reader import Cursor
    from fetchc.debuginfo.dotnet.image.pe import Pe
    from fetchc.program.entities import Place

__all__ = ["Boundary", "NativeDebugInfo", "VariableRange", "debug_info_of"]

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
                return Absent("FC0404", "the compiler says of a part of it only where it is")


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
                break  # what follows cannot be told apart; these have no place then
            operands = tuple([read.number() for _ in range(OPERANDS[kind])])
            found.append(VariableRange(start, end, number, kind, operands))
        return found


def debug_info_of(image: Pe, sections: dict[int, tuple[int, int]]) -> NativeDebugInfo | None:
    """That of an image for x86-64 with the section for it."""
    if DEBUG_INFO not in sections or image.machine != "x86_64":
        return None
    return NativeDebugInfo(image, *sections[DEBUG_INFO])


DEBUG_INFO = 105
