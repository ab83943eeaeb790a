"""What objects of .NET are of, by their headers: an assembly's name, a row of its types."""

from __future__ import annotations

from fetchc.debuginfo.dotnet.metadata.spelling import class_spelled
from fetchc.debuginfo.dotnet.types.ancestry import definitions
from fetchc.debuginfo.dotnet.types.closed import PRIMITIVE_TYPES, Code, Instance, Items
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import ObjectHeader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly
    from fetchc.debuginfo.dotnet.types.types import DotnetTypes
    from fetchc.program.protocol import ObjectTypes
    from fetchc.quantities import TypeId

__all__ = ["DotnetObjects"]


class DotnetObjects:
    """Answers for the objects of one program; see :class:`fetchc.program.protocol.ObjectTypes`."""

    __slots__ = ("_types", "header")

    def __init__(self, types: DotnetTypes, header: Mapping[str, Any]) -> None:
        self._types = types
        self.header = ObjectHeader(
            type=tuple(header["type"]),
            assembly=tuple(header["assembly"]),
            element=tuple(header["element"]),
            row=tuple(header["row"]),
            rank=tuple(header["rank"]),
            vector=header["vector"],
            ranks=header["ranks"],
            each_rank=header["each_rank"],
        )

    def rank(self, wanted: TypeId) -> int | None:
        """Of an array that can be told by its header, 0 or its dimensions; None of all else."""
        made = self._closed(wanted)
        return made.rank if isinstance(made, Items) else None

    def comparable(self, wanted: TypeId) -> bool:
        """Whether a header tells that an object is of a type, and of no other one."""
        number = self._types.number(wanted)
        if number is None:
            return False
        made = self._types.closed.types[number]
        # Type arguments are not among what is compared.
        return self._types.closed.is_plain(made.element if isinstance(made, Items) else number)

    def _closed(self, wanted: TypeId) -> object:
        number = self._types.number(wanted)
        return None if number is None else self._types.closed.types[number]

    def fits(self, assembly: str, row: int, wanted: TypeId) -> bool:
        """Whether an object, or an element of an array, of a type is one of ``wanted``."""
        closed = self._types.closed
        number = self._types.number(wanted)
        assert number is not None
        made = closed.types[number]
        in_array = isinstance(made, Items)
        if isinstance(made, Items):
            number, made = made.element, closed.types[made.element]
        found = self._assembly(assembly)
        if found is None or not 0 < row <= found.metadata.count("TypeDef"):
            return False
        if isinstance(made, Code):
            # An enumeration in a box can be taken out as its number.
            dynamic = Instance(found, row, ())
            return not found.type_parameters(row) and closed.plain(closed.number(dynamic)) == number
        assert isinstance(made, Instance)
        bases = definitions(closed.references, found, row)
        # An array of numbers is no array of objects, though each number can be one.
        number = any(one.type_name(at) == "System.ValueType" for one, at in bases)
        if in_array and number and (found, row) != (made.assembly, made.row):
            return False
        return (made.assembly, made.row) in bases

    def name(self, assembly: str, row: int) -> str:
        """The name of a type; of one whose assembly is not at hand what is known of it."""
        found = self._assembly(assembly)
        if found is None or not 0 < row <= found.metadata.count("TypeDef"):
            return f"{assembly}!{row:#x}"
        name = found.type_name(row)
        return PRIMITIVE_TYPES.get(name) or class_spelled(name, ())

    def _assembly(self, name: str) -> Assembly | None:
        try:
            return self._types.closed.references.assembly(name)
        except DebugInfoError as refused:
            if refused.code != "FC0907":
                raise
            return None  # loaded from elsewhere: name() says so


if TYPE_CHECKING:

    def _are_types(objects: DotnetObjects) -> ObjectTypes:
        return objects
