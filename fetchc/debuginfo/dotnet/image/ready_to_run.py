"""The native code inside an image: ReadyToRun's header, and from a method to its first byte.

Source: dotnet/runtime, docs/design/coreclr/botr/readytorun-format.md.
"""

from __future__ import annotations

from fetchc.debuginfo.dotnet.image.native_format import (
    array_element,
    array_elements,
    native_number,
    table_entries,
)
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.byte_reader import Cursor
    from fetchc.debuginfo.dotnet.image.native_debug_info import NativeDebugInfo
    from fetchc.debuginfo.dotnet.image.pe import Pe

__all__ = ["ReadyToRun", "function_index", "native_header"]

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
            raise DebugInfoError("FC0905", image.path, "the image has no ReadyToRun code")
        cursor = image.at(found[1] - image.start, "ReadyToRun header")
        self.version = (cursor.u16(), cursor.u16())
        self.flags = cursor.u32()
        count = cursor.u32()
        if count > MOST_SECTIONS:
            raise cursor.error(f"{count} sections")
        self._sections = {cursor.u32(): (cursor.u32(), cursor.u32()) for _ in range(count)}
        if OWNER_COMPOSITE in self._sections:
            what = "the code of the image is in a composite image, beside it"
            raise DebugInfoError("FC0905", image.path, what)
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
        return Address(int.from_bytes(self._functions.data[at : at + 4], "little"))

    def end(self, index: int) -> Address:
        """The address behind a piece of code; where only begins are listed, the next one's."""
        if self._stride == 12:
            at = self._functions.offset + index * self._stride + 4
            return Address(int.from_bytes(self._functions.data[at : at + 4], "little"))
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
        from fetchc.debuginfo.dotnet.image.native_debug_info import debug_info_of

        return debug_info_of(self._image, self._sections)


def function_index(cursor: Cursor) -> int:
    """The piece of code that an entry of either table names."""
    value = native_number(cursor)
    return value >> 2 if value & 1 else value >> 1
