"""Where the fields of an object are, as the runtime places them when it loads the class.

What of a type decides which of the ways of :mod:`.arrangement` is its own. Source: dotnet/runtime,
src/coreclr/vm/methodtablebuilder.cpp and classlayoutinfo.cpp; mono/mono,
mono/metadata/class-init.c; held against the offsets of running runtimes (targets/runtime/dotnet
says which).
"""

from __future__ import annotations

from fetchc.debuginfo.dotnet.metadata.references import CORE_LIBRARIES
from fetchc.debuginfo.dotnet.types.arrangement import (
    WORD,
    Field,
    Layout,
    Open,
    by_size,
    explicit,
    references_first,
    sequential,
    up,
)
from fetchc.debuginfo.dotnet.types.closed import Code, Instance, Items, Link
from fetchc.debuginfo.dotnet.types.numbers import NUMBERS
from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.types.closed import ClosedTypes
    from fetchc.target.dotnet_runtimes import LayoutRules

__all__ = ["Layouts"]

AUTO, SEQUENTIAL, EXPLICIT = 0, 8, 0x10  # TypeAttributes.LayoutMask
DEEPEST = 64
BIGGEST = 1 << 24  # bytes; no type gets near
# A structure around one reference into an object, which garbage collectors treat as such.
BY_REFERENCE = "System.ByReference`1"
HARDWARE_VECTOR = "System.Numerics.Vector`1"
FIXED_BUFFER = "System.Runtime.CompilerServices.UnsafeValueTypeAttribute"
INLINE_ARRAY = "System.Runtime.CompilerServices.InlineArrayAttribute"


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
            offsets = [made.assembly.field_offset(one.row) for one in listed]
            rounds = value and (
                self._rules.explicit_size_rounds or bool(stated) or not self._is_converted(listed)
            )
            most = pack or self._rules.greatest_alignment
            found = explicit(listed, offsets, start, most, stated, value, rounds)
        elif self._is_sequential(number, listed):
            found = sequential(listed, start, pack, stated, value, self._rules)
        elif self._rules.algorithm == "mono":
            aligned = self.of(above).alignment if above >= 0 else 1
            found = references_first(listed, start, aligned)
        else:
            begin = up(start, WORD) if self._rounds_behind(made, above) else start
            found = by_size(listed, begin, value, self._rules)
        if value and stated and flags == SEQUENTIAL and len(listed) == 1:
            found = self._filled(made, found, listed[0])
        if value and self._rules.inline_arrays:
            found = self._repeated(made, found)
        if found.size > BIGGEST:
            raise made.assembly.broken(f"`{name}` has {found.size} bytes")
        return found

    def _open(self, row: int, name: str, type_number: int) -> Open:
        plain = self._types.plain(type_number)
        made = self._types.types[plain]
        match made:
            case Code("typedref"):
                return Open(row, name, type_number, "structure", 2 * WORD, WORD, True)
            case Code():
                if made.name not in NUMBERS:
                    raise DebugInfoError("FC0904", self._path(), f"a field of type {made.name}")
                size = NUMBERS[made.name]
                return Open(row, name, type_number, "number", size, size, False)
            case Items():
                return Open(row, name, type_number, "reference", WORD, WORD, True)
            case Link(kind):
                what = "byref" if kind == "byref" else "number"
                return Open(row, name, type_number, what, WORD, WORD, False)
            case Instance():
                if self._types.kind(plain) != "value":
                    return Open(row, name, type_number, "reference", WORD, WORD, True)
                if self._types.name(plain) == BY_REFERENCE:
                    return Open(row, name, type_number, "byref", WORD, WORD, False)
                inner = self.of(plain)
                holds = self.holds_references(plain)
                return Open(row, name, type_number, "structure", inner.size, inner.alignment, holds)

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

    def _is_sequential(self, number: int, listed: list[Open]) -> bool:
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

    def _is_converted(self, listed: list[Open]) -> bool:
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

    def _rounds_behind(self, made: Instance, above: int) -> bool:
        # Whether fields begin at a word behind those of the base, whatever these are.
        return (
            self._rules.base_rounds_across_modules
            and above >= 0
            and made.assembly.kind != "IL"
            and self._types.name(above) != "System.Object"
            and len(self._depends_on(above) | {made.assembly.name}) > 1
        )

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

    def _filled(self, made: Instance, found: Layout, only: Open) -> Layout:
        # A fixed buffer states its size, and has a field for its first element alone. By that
        # runtimes tell it, and pass others that look like it in the same way. Source:
        # dotnet/runtime, src/coreclr/vm/methodtable.cpp (HasImpliedRepeatedFields).
        times = found.size // only.size if only.size else 0
        if times < 2 or found.size % only.size or only.kind == "reference":
            return found
        if made.assembly.attribute(made.row, FIXED_BUFFER) is None:
            return Layout(found.fields, found.size, found.alignment, passed=times)
        return Layout(found.fields, found.size, found.alignment, times)

    def _repeated(self, made: Instance, found: Layout) -> Layout:
        value = made.assembly.attribute(made.row, INLINE_ARRAY)
        if value is None:
            return found
        times = int.from_bytes(value[2:6], "little")
        return Layout(found.fields, found.size * times, found.alignment, times)
