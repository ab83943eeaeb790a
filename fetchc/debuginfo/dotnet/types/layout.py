"""Where the fields of an object are, as the runtime places them when it loads the class.

Offsets count from the first field: the start of a structure, and behind the header of an object.
Source: dotnet/runtime, src/coreclr/vm/methodtablebuilder.cpp and classlayoutinfo.cpp; mono/mono,
mono/metadata/class-init.c; held against the offsets of running runtimes (targets/runtime/dotnet
says which).
"""

from __future__ import annotations

from fetchc.debuginfo.dotnet.metadata.references import CORE_LIBRARIES
from fetchc.debuginfo.dotnet.types.closed import Code, Instance, Items, Link
from fetchc.diag.errors import DebugInfoError
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.types.closed import ClosedTypes
    from fetchc.target.dotnet import LayoutRules

__all__ = ["NUMBERS", "Field", "Layout", "Layouts"]

NUMBERS = {
    "bool": 1, "sbyte": 1, "byte": 1, "char": 2, "short": 2, "ushort": 2, "int": 4, "uint": 4,
    "long": 8, "ulong": 8, "float": 4, "double": 8, "nint": 8, "nuint": 8,
}  # fmt: skip
AUTO, SEQUENTIAL, EXPLICIT = 0, 8, 0x10  # TypeAttributes.LayoutMask
WORD = 8
DEEPEST = 64
BIGGEST = 1 << 24  # bytes; no type gets near
# A structure around one reference into an object, which garbage collectors treat as such.
BY_REFERENCE = "System.ByReference`1"
HARDWARE_VECTOR = "System.Numerics.Vector`1"
INLINE_ARRAY = "System.Runtime.CompilerServices.InlineArrayAttribute"


class Field(Record):
    """A field that a type declares: its row, name, closed type and offset."""

    row: int
    name: str
    type: int
    offset: int


class Layout(Record):
    """The fields of a type itself, the bytes of these and of all bases, and their alignment.

    ``repeated`` is how often an inline array has its one field; 1 of all others.
    """

    fields: tuple[Field, ...]
    size: int
    alignment: int
    repeated: int = 1


class _Open(Record):
    # A field without its place. kind: number, reference, byref, structure.
    row: int
    name: str
    type: int
    kind: str
    size: int
    alignment: int
    references: bool

    def at(self, offset: int) -> Field:
        return Field(self.row, self.name, self.type, offset)


class Layouts:
    """Layouts by the rules of one runtime.

    ``hardware_vector`` is the size of ``Vector<T>``, which depends on the processor; where it is
    not known, what holds one is refused (DebugInfoError FC0905).
    """

    __slots__ = (
        "_busy", "_holding", "_known", "_modules", "_ordered", "_rules", "_types", "_vector",
    )  # fmt: skip

    def __init__(
        self, types: ClosedTypes, rules: LayoutRules, hardware_vector: int | None = None
    ) -> None:
        self._types = types
        self._rules = rules
        self._vector = hardware_vector
        self._known: dict[int, Layout] = {}
        self._modules: dict[int, frozenset[str]] = {}
        self._busy: set[int] = set()
        self._holding: dict[int, bool] = {}
        self._ordered: dict[int, bool] = {}

    def of(self, number: int) -> Layout:
        """The layout of a class, structure or number."""
        found = self._known.get(number)
        if found is None:
            if number in self._busy or len(self._busy) > DEEPEST:
                raise self._types.instance(number).assembly.broken(
                    f"`{self._types.name(number)}` holds itself"
                )
            self._busy.add(number)
            try:
                found = self._known[number] = self._laid_out(number)
            finally:
                self._busy.discard(number)
        return found

    def _laid_out(self, number: int) -> Layout:
        made = self._types.types[number]
        plain = self._types.types[self._types.plain(number)]
        if isinstance(plain, Code):
            size = NUMBERS.get(plain.name, 2 * WORD)  # a typed reference has two words
            if not isinstance(made, Instance):
                return Layout((), size, min(size, WORD))
            fields = tuple([Field(*field, 0) for field in self._types.fields(number)])
            return Layout(fields, size, min(size, WORD))
        if not isinstance(made, Instance):
            return Layout((), WORD, WORD)
        name = self._types.name(number)
        if name in self._rules.vectors and made.assembly.name in CORE_LIBRARIES:
            return self._vector_layout(number, name)
        value = self._types.kind(number) == "value"
        start = 0
        above = -1 if value else self._types.base(number)
        if above >= 0:
            start = self.of(above).size
        listed = [self._open(*field) for field in self._types.fields(number)]
        flags = made.assembly.metadata.row("TypeDef", made.row)[0] & 0x18
        pack, stated = made.assembly.class_layout(made.row)
        if flags == EXPLICIT:
            found = self._explicit(made, listed, start, pack, stated, value)
        elif self._is_sequential(number, listed):
            found = self._sequential(listed, start, pack, stated, value)
        elif self._rules.algorithm == "mono":
            found = self._kept(listed, start, self.of(above).alignment if above >= 0 else 1)
        else:
            found = self._sorted(made, listed, start, above, value)
        if value and self._rules.inline_arrays:
            found = self._repeated(made, found)
        if found.size > BIGGEST:
            raise made.assembly.broken(f"`{name}` has {found.size} bytes")
        return found

    def _open(self, row: int, name: str, type_number: int) -> _Open:
        plain = self._types.plain(type_number)
        made = self._types.types[plain]
        match made:
            case Code("typedref"):
                return _Open(row, name, type_number, "structure", 2 * WORD, WORD, True)
            case Code():
                if made.name not in NUMBERS:
                    raise DebugInfoError("FC0904", self._path(), f"a field of type {made.name}")
                size = NUMBERS[made.name]
                return _Open(row, name, type_number, "number", size, size, False)
            case Items():
                return _Open(row, name, type_number, "reference", WORD, WORD, True)
            case Link(kind):
                what = "byref" if kind == "byref" else "number"
                return _Open(row, name, type_number, what, WORD, WORD, False)
            case Instance():
                if self._types.kind(plain) != "value":
                    return _Open(row, name, type_number, "reference", WORD, WORD, True)
                if self._types.name(plain) == BY_REFERENCE:
                    return _Open(row, name, type_number, "byref", WORD, WORD, False)
                inner = self.of(plain)
                holds = self.holds_references(plain)
                return _Open(
                    row, name, type_number, "structure", inner.size, inner.alignment, holds
                )

    def _path(self) -> str:
        return self._types.references.path

    def holds_references(self, number: int) -> bool:
        """Whether a structure holds a reference to an object, at any depth."""
        found = self._holding.get(number)
        if found is None:
            made = self._types.types[self._types.plain(number)]
            if isinstance(made, Instance):
                fields = self._types.fields(number)
                found = any(self._open(*field).references for field in fields)
            else:
                found = made == Code("typedref")
            self._holding[number] = found
        return found

    def _is_sequential(self, number: int, listed: list[_Open]) -> bool:
        """Whether sequential layout is stated and heeded."""
        made = self._types.instance(number)
        value = self._types.kind(number) == "value"
        if self._rules.algorithm == "mono" and value:
            return True
        if made.assembly.metadata.row("TypeDef", made.row)[0] & 0x18 != SEQUENTIAL:
            return False
        if self._rules.algorithm == "mono":
            return True
        if any(one.references for one in listed):
            return False
        if not value:
            above = self._types.base(number)
            if above >= 0 and self._types.name(above) != "System.Object":
                inner = [self._open(*field) for field in self._types.fields(above)]
                if not self._is_sequential(above, inner):
                    return False
        if not self._rules.sequential_needs_sequential_members:
            return True
        return all(self._keeps_order(one.type) for one in listed if one.kind == "structure")

    def _keeps_order(self, number: int) -> bool:
        found = self._ordered.get(number)
        if found is None:
            found = self._ordered[number] = self._has_order(number)
        return found

    def _has_order(self, number: int) -> bool:
        made = self._types.types[self._types.plain(number)]
        if not isinstance(made, Instance):
            return False
        flags = made.assembly.metadata.row("TypeDef", made.row)[0] & 0x18
        if flags == EXPLICIT:
            inside = [self._open(*one) for one in self._types.fields(number)]
            return not self.holds_references(number) and not self._is_converted(inside)
        return self._is_sequential(number, [self._open(*one) for one in self._types.fields(number)])

    def _vector_layout(self, number: int, name: str) -> Layout:
        hardware = name == HARDWARE_VECTOR
        size = self._vector if hardware else self._rules.vector_bytes.get(name)
        if size is None:
            what = f"`{name}` has as many bytes as the vectors of the processor it runs on"
            raise DebugInfoError("FC0905", self._path(), what)
        position, fields = 0, []
        for one in [self._open(*field) for field in self._types.fields(number)]:
            fields.append(one.at(position))
            position += one.size if one.kind == "structure" else WORD
        alignment = size if self._rules.vectors_aligned else WORD
        return Layout(tuple(fields), size, alignment)

    def _explicit(
        self, made: Instance, listed: list[_Open], start: int, pack: int, stated: int, value: bool
    ) -> Layout:
        fields, end, alignment = [], start, 1
        for one in listed:
            offset = start + made.assembly.field_offset(one.row)
            fields.append(one.at(offset))
            end = max(end, offset + one.size)
            alignment = max(alignment, self._limited(one.alignment, pack))
        if stated:
            end = max(end, start + stated)
        elif value and (self._rules.explicit_size_rounds or not self._is_converted(listed)):
            end = _up(end, alignment)
        return Layout(tuple(fields), end or value, alignment)

    def _is_converted(self, listed: list[_Open]) -> bool:
        # Whether native code has another form of it: that is so of truth values and characters.
        for one in listed:
            plain = self._types.plain(one.type)
            made = self._types.types[plain]
            if made in (Code("bool"), Code("char")):
                return True
            within = isinstance(made, Instance) and one.kind == "structure"
            fields = self._types.fields(plain) if within else ()
            if self._is_converted([self._open(*each) for each in fields]):
                return True
        return False

    def _limited(self, alignment: int, pack: int) -> int:
        return min(alignment, pack or self._rules.greatest_alignment)

    def _sequential(
        self, listed: list[_Open], start: int, pack: int, stated: int, value: bool
    ) -> Layout:
        fields, position, alignment = [], start, 1
        for one in listed:
            own = self._limited(one.alignment, pack)
            if one.references and self._rules.algorithm == "mono":
                own = max(own, WORD)  # whatever packing is stated
            alignment = max(alignment, own)
            position = _up(position, own)
            fields.append(one.at(position))
            position += one.size
        if stated:
            position = max(position, start + stated)
        elif value or self._rules.algorithm == "mono":
            position = _up(position, alignment)
        least = self._rules.least_structure if value else self._rules.least_class
        return Layout(tuple(fields), position or least, alignment)

    def _kept(self, listed: list[_Open], start: int, alignment: int) -> Layout:
        # Mono's classes: what holds references first, all else in the order of the source. A
        # class is aligned as its base is.
        fields, position = {}, start
        for one in sorted(listed, key=lambda one: not one.references):
            alignment = max(alignment, one.alignment)
            position = _up(position, one.alignment)
            fields[one.row] = one.at(position)
            position += one.size
        return Layout(
            tuple([fields[one.row] for one in listed]), _up(position, alignment), alignment
        )

    def _sorted(
        self, made: Instance, listed: list[_Open], start: int, above: int, value: bool
    ) -> Layout:
        rules = self._rules
        position = start
        if (
            rules.base_rounds_across_modules
            and above >= 0
            and made.assembly.kind != "IL"
            and self._types.name(above) != "System.Object"
            and len(self._depends_on(above) | {made.assembly.name}) > 1
        ):
            position = _up(position, WORD)
        fields: dict[int, Field] = {}

        def put(one: _Open) -> None:
            nonlocal position
            fields[one.row] = one.at(position)
            position += one.size

        groups: dict[int, list[_Open]] = {1: [], 2: [], 4: [], 8: []}
        for one in listed:
            if one.kind in ("number", "byref"):
                groups[one.size].append(one)
        references = [one for one in listed if one.kind == "reference"]
        structures = [one for one in listed if one.kind == "structure"]
        waiting = {**groups, WORD: references + groups[WORD]}
        # A hole behind the base's fields takes small ones, if one that fits it not is waiting.
        size = 1
        while size < WORD:
            if position % (2 * size) == 0:
                size *= 2
                continue
            if not any(waiting[bigger] for bigger in (2, 4, 8) if bigger > size):
                break
            fitting = next((small for small in (4, 2, 1) if small <= size and waiting[small]), 0)
            if not fitting:
                break
            position = _up(position, fitting)
            put(waiting[fitting].pop(0))
            size = 2 * fitting
        for size in (8, 4, 2, 1):
            if waiting[size]:
                position = _up(position, size)
            for one in waiting[size]:
                put(one)
        alignment = 1
        for one in structures:
            own = max(rules.structure_alignment, one.alignment if rules.vectors_aligned else 1)
            if one.references:
                own = max(own, WORD)
            position = _up(position, own)
            put(one)
            position = _up_from(position, one.size, rules.structure_size_multiple)
            alignment = max(alignment, own)
        if value:
            position = position or 1
            if position <= WORD:
                alignment = 1 << (position - 1).bit_length()
            elif len(structures) < len(listed) or rules.structure_alignment == WORD:
                alignment = max(alignment, WORD)
            position = _up(position, alignment)
        else:
            alignment = WORD
        return Layout(tuple([fields[one.row] for one in listed]), position, alignment)

    def _depends_on(self, number: int) -> frozenset[str]:
        # The assemblies whose metadata the layout of a type follows from.
        found = self._modules.get(number)
        if found is None:
            made = self._types.instance(number)
            names = {made.assembly.name}
            above = -1 if self._types.kind(number) == "value" else self._types.base(number)
            if above >= 0 and self._types.name(above) != "System.Object":
                names |= self._depends_on(above)
            for row, name, type_number in self._types.fields(number):
                if self._open(row, name, type_number).kind == "structure":
                    plain = self._types.plain(type_number)
                    if isinstance(self._types.types[plain], Instance):
                        names |= self._depends_on(plain)
            found = self._modules[number] = frozenset(names)
        return found

    def _repeated(self, made: Instance, found: Layout) -> Layout:
        value = made.assembly.attribute(made.row, INLINE_ARRAY)
        if value is None:
            return found
        times = int.from_bytes(value[2:6], "little")
        return Layout(found.fields, found.size * times, found.alignment, times)


def _up(position: int, alignment: int) -> int:
    return (position + alignment - 1) // alignment * alignment


def _up_from(position: int, size: int, multiple: int) -> int:
    # A structure of ``size`` bytes that ends here takes a multiple of bytes.
    return position + -size % multiple
