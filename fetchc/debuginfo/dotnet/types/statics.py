"""Static fields and constants of .NET: what they are called, and why only constants have a value.

Where a static field is the runtime decides when it loads the class: nothing in the image says it.
"""

from __future__ import annotations

from fetchc.debuginfo.dotnet.methods.methods import Methods
from fetchc.program.entities import Absent, Constant
from fetchc.quantities import ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly
    from fetchc.program.entities import Place

__all__ = ["static_fields", "static_place"]

STATIC, LITERAL = 0x10, 0x40  # FieldAttributes
# Codes of the types of constants that are numbers, and whether they have a sign.
NUMBERS = {
    0x02: False, 0x03: False, 0x04: True, 0x05: False, 0x06: True, 0x07: False, 0x08: True,
    0x09: False, 0x0A: True, 0x0B: False,
}  # fmt: skip


def static_fields(assembly: Assembly, name: str, owner: int) -> list[tuple[int, int]]:
    """Types and fields, by their rows, that ``Type.Field`` means, or a name alone in ``owner``."""
    *parts, short = name.replace("::", ".").replace("+", ".").split(".")
    types = Methods(assembly).types(parts) if parts else [owner] if owner else []
    found = []
    for row in types:
        for field in assembly.metadata.span("TypeDef", row, 4, "Field"):
            static = assembly.metadata.row("Field", field)[0] & STATIC
            if static and assembly.field_name(field) in (short, f"<{short}>k__BackingField"):
                found.append((row, field))
    return found


def static_place(assembly: Assembly, field: int) -> Place:
    """The value of a constant that is a number; nowhere of all else, with the reason."""
    if not assembly.metadata.row("Field", field)[0] & LITERAL:
        what = "it is a static field, which the runtime puts where it likes when it loads the class"
        return Absent("FC0401", what)
    for kind, _, blob in assembly.metadata.rows_of("Constant", 1, field << 2):
        if kind & 0xFF in NUMBERS:
            value = assembly.metadata.blob(blob)
            number = int.from_bytes(value, "little", signed=NUMBERS[kind & 0xFF])
            return Constant(number, ByteSize(len(value)))
    return Absent("FC0401", "it is a constant, which is in the code that uses it and nowhere else")
