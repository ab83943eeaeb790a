"""Where precompiled code itself says that its parameters are: DEBUG_INFO of ReadyToRun images.

Source: dotnet/runtime, src/coreclr/debug/inc/readytorundebuginfo and vm/debuginfostore.cpp: numbers
of three bits and one that says whether more follow, the highest first.
"""

from __future__ import annotations

from dataclasses import dataclass

from fetchc.debuginfo.dotnet.assemblies import Assembly
from fetchc.debuginfo.dotnet.ready_to_run import array_element, native_header, native_number

__all__ = ["DebugInfo", "Printed"]

DEBUG_INFO = 105
REGISTERS = (
    "ax", "cx", "dx", "bx", "sp", "bp", "si", "di", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15", *(f"xmm{number}" for number in range(16)),
)  # fmt: skip
AMBIENT = 17  # as the base of a place on the stack: the stack pointer, REGNUM_AMBIENT_SP
# Kinds of places, by number: dotnet/runtime, src/coreclr/inc/cordebuginfo.h, VarLocType.
REGISTER, BY_REFERENCE, FLOAT, STACK, STACK_BY_REFERENCE, TWO = range(6)


@dataclass(frozen=True)
class Printed:
    """A variable at a method's first instruction: its number, and its registers or ``sp+8``."""

    number: int
    places: tuple[str, ...]


class _Nibbles:
    def __init__(self, data: memoryview, at: int) -> None:
        self.data, self.at, self.high = data, at, False

    def nibble(self) -> int:
        value = self.data[self.at]
        if self.high:
            self.at += 1
        self.high = not self.high
        return value & 15 if self.high else value >> 4

    def number(self) -> int:
        value = 0
        while True:
            one = self.nibble()
            value = value << 3 | one & 7
            if not one & 8:
                return value


class DebugInfo:
    """What an image says of its pieces of code."""

    def __init__(self, assembly: Assembly) -> None:
        self._image = assembly.image
        found = native_header(assembly.image)
        assert found is not None
        header = assembly.image.at(found[1] - assembly.image.start, "header")
        header.skip(8)
        sections = {header.u32(): (header.u32(), header.u32()) for _ in range(header.u32())}
        self._section = sections.get(DEBUG_INFO, (0, 0))  # none of an image without code

    def at_entry(self, function: int) -> list[Printed]:
        """The variables that have a place at the first instruction of a piece of code."""
        address, size = self._section
        if not size:
            return []
        cursor = array_element(self._image.cursor(address, "DEBUG_INFO", size), function)
        if cursor is None:
            return []
        start = cursor.offset
        back = native_number(cursor)
        at = start - back if back else cursor.offset
        head = _Nibbles(memoryview(cursor.data), at)
        lines, variables = head.number(), head.number()
        if not variables:
            return []
        behind = head.at + head.high
        body = _Nibbles(memoryview(cursor.data), behind + lines)
        found = []
        for _ in range(body.number()):
            begin = body.number()
            body.number()
            number, kind = body.number() - 4, body.number()
            places: tuple[str, ...] = ()
            if kind in (REGISTER, BY_REFERENCE):
                places = (REGISTERS[body.number()],)
            elif kind == FLOAT:
                places = (f"xmm{body.number() % 16}",)
            elif kind in (STACK, STACK_BY_REFERENCE):
                base, offset = body.number(), body.number()
                register = "sp" if base == AMBIENT else REGISTERS[base]
                places = (f"{register}{-(offset >> 1) if offset & 1 else offset >> 1:+}",)
            elif kind == TWO:
                places = (REGISTERS[body.number()], REGISTERS[body.number()])
            else:
                raise AssertionError(f"a place of kind {kind}")
            if begin == 0:
                found.append(Printed(number, places))
        return found
