"""Class layout: where the fields of an object are, as the runtime places them.

The kind and the fields of a type decide how: explicit, sequential or automatic. Source:
dotnet/runtime, src/coreclr/vm/methodtablebuilder.cpp and classlayoutinfo.cpp; mono/mono,
mono/metadata/class-init.c; compared with the offsets of running runtimes (targets/runtime/dotnet
says which).
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import decode_number
from fetchc.debuginfo.dotnet.assemblies import CORE_LIBRARIES
from fetchc.debuginfo.dotnet.closed_types import Code, Instance, Items, Link
from fetchc.debuginfo.dotnet.portable_executable import NotSupported
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.types import BoolType, CharType, FloatType, IntType, UnknownType, VoidType
from fetchc.quantities import ByteSize
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.assemblies import Assembly
    from fetchc.debuginfo.dotnet.closed_types import ClosedTypes
    from fetchc.debuginfo.dotnet.dotnet_types import DotnetTypes
    from fetchc.program.types import Type
    from fetchc.target.dotnet_runtimes import LayoutRules, Runtime

__all__ = [
    "NUMBERS",
    "SIGNED",
    "WORD",
    "Field",
    "Layout",
    "Layouts",
    "Open",
    "by_size",
    "explicit",
    "must_fit",
    "must_have_texts_at",
    "number_type",
    "references_first",
    "sequential",
    "up",
]

# ------------------------------------------------------------------------------
# Fields one after the other, in each of the ways in which runtimes arrange them.
#
# Offsets count from the first field: the start of a structure, and after the header of an
# object. ``start`` is the end of what a class inherits; ``value`` tells structures from classes.
# Source: dotnet/runtime, src/coreclr/vm/methodtablebuilder.cpp and classlayoutinfo.cpp;
# mono/mono, mono/metadata/class-init.c.

WORD = 8


class Field(Record):
    """A field that a type declares: its row, name, closed type and offset."""

    row: int
    name: str
    type: int
    offset: int


class Layout(Record):
    """The fields of a type itself, the bytes of these and of all bases, and their alignment.

    ``repeated`` is how often an inline array or a fixed buffer has its one field; 1 of all others.
    ``passed`` is how often a structure has it where it is passed, though it holds it once.
    """

    fields: tuple[Field, ...]
    size: int
    alignment: int
    repeated: int = 1
    passed: int = 1


class Open(Record):
    """A field without its place. ``kind``: number, reference, byref, structure."""

    row: int
    name: str
    type: int
    kind: str
    size: int
    alignment: int
    references: bool

    def at(self, offset: int) -> Field:
        """The field at that place."""
        return Field(self.row, self.name, self.type, offset)


def explicit(
    listed: list[Open],
    offsets: list[int],
    start: int,
    most: int,
    stated: int,
    value: bool,
    rounds: bool,
) -> Layout:
    """Fields at ``offsets``, which the source says.

    Each is aligned to ``most`` bytes at most; ``rounds``: the size is a multiple of the alignment
    where none is ``stated``.
    """
    fields, end, alignment = [], start, 1
    for one, own in zip(listed, offsets, strict=True):
        offset = start + own
        fields.append(one.at(offset))
        end = max(end, offset + one.size)
        alignment = max(alignment, min(one.alignment, most))
    if stated:
        end = max(end, start + stated)
    elif rounds:
        end = up(end, alignment)
    return Layout(tuple(fields), end or int(value), alignment)


def sequential(
    listed: list[Open], start: int, pack: int, stated: int, value: bool, rules: LayoutRules
) -> Layout:
    """Fields in the order of the source, as in C; ``pack`` and ``stated`` size are 0 if unsaid."""
    most = pack or rules.greatest_alignment
    fields, position, alignment = [], start, 1
    for one in listed:
        own = min(one.alignment, most)
        if one.references and rules.algorithm == "mono":
            own = max(own, WORD)  # whatever packing is stated
        alignment = max(alignment, own)
        position = up(position, own)
        fields.append(one.at(position))
        position += one.size
    if stated:
        position = max(position, start + stated)
    elif value or rules.algorithm == "mono":
        position = up(position, alignment)
    least = rules.least_structure if value else rules.least_class
    return Layout(tuple(fields), position or least, alignment)


def references_first(listed: list[Open], start: int, alignment: int) -> Layout:
    """Mono's classes: what holds references first, all else in the order of the source.

    A class is aligned as its base is.
    """
    fields, position = {}, start
    for one in sorted(listed, key=lambda one: not one.references):
        alignment = max(alignment, one.alignment)
        position = up(position, one.alignment)
        fields[one.row] = one.at(position)
        position += one.size
    return Layout(tuple([fields[one.row] for one in listed]), up(position, alignment), alignment)


def by_size(listed: list[Open], start: int, value: bool, rules: LayoutRules) -> Layout:
    """CoreCLR's automatic layout: big fields first, references before numbers, structures last."""
    position = start
    fields: dict[int, Field] = {}

    def put(one: Open) -> None:
        nonlocal position
        fields[one.row] = one.at(position)
        position += one.size

    groups: dict[int, list[Open]] = {1: [], 2: [], 4: [], 8: []}
    for one in listed:
        if one.kind in ("number", "byref"):
            groups[one.size].append(one)
    references = [one for one in listed if one.kind == "reference"]
    structures = [one for one in listed if one.kind == "structure"]
    waiting = {**groups, WORD: references + groups[WORD]}
    # A hole after the base's fields takes small ones, if one that fits it not is waiting.
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
        position = up(position, fitting)
        put(waiting[fitting].pop(0))
        size = 2 * fitting
    for size in (8, 4, 2, 1):
        if waiting[size]:
            position = up(position, size)
        for one in waiting[size]:
            put(one)
    alignment = 1
    for one in structures:
        own = max(rules.structure_alignment, one.alignment if rules.vectors_aligned else 1)
        if one.references:
            own = max(own, WORD)
        position = up(position, own)
        put(one)
        position = _up_from(position, one.size, rules.structure_size_multiple)
        alignment = max(alignment, own)
    if value:
        position = position or 1
        if position <= WORD:
            alignment = 1 << (position - 1).bit_length()
        elif len(structures) < len(listed) or rules.structure_alignment == WORD:
            alignment = max(alignment, WORD)
        position = up(position, alignment)
    else:
        alignment = WORD
    return Layout(tuple([fields[one.row] for one in listed]), position, alignment)


def up(position: int, alignment: int) -> int:
    """The next multiple of ``alignment``."""
    return (position + alignment - 1) // alignment * alignment


def _up_from(position: int, size: int, multiple: int) -> int:
    # A structure of ``size`` bytes that ends here takes a multiple of bytes.
    return position + -size % multiple


# ------------------------------------------------------------------------------
# Whether the core library that was found is the one that the image runs with, as far as it shows.
#
# Layouts differ from release to release, so one that does not fit gives wrong bytes. Two things
# tell: an image refers to assemblies of the release that it was compiled for, and a core library
# declares the fields of strings, whose places are also written down in targets/runtime/dotnet.

# The assemblies whose version is that of the release, from .NET 5 on.
TELLING = ("System.Runtime", "System.Private.CoreLib")
FIRST = 5
TEXT = "System.String"
NAMES = (("_stringLength", "m_stringLength"), ("_firstChar", "m_firstChar"))


def must_fit(assembly: Assembly, core: Assembly, version: tuple[int, int]) -> None:
    """Raise DebugInfoError FC0905 where an image is for a newer release than its core library."""
    metadata = assembly.metadata
    for row in metadata.rows("AssemblyRef"):
        major = row[0]
        if major >= FIRST and major > version[0] and metadata.text(row[6]) in TELLING:
            raise NotSupported(
                "FC0905",
                assembly.path,
                f"it was compiled for .NET {major}, and the core library {core.path} is of "
                f".NET {version[0]}.{version[1]}",
                help="name the folder of the runtime that it runs with: `--reference DIR`",
            )


def must_have_texts_at(types: DotnetTypes, runtime: Runtime) -> None:
    """Raise DebugInfoError FC0905 where the core library's strings are not where they should be."""
    core = types.closed.references.core()
    row = core.type_named(TEXT)
    if not row or not core.fields(row):
        return  # one of a test, or cut to what a compiler needs
    fields = types.layouts.of(types.closed.number(Instance(core, row, ()))).fields
    found = {field.name: field.offset + runtime.fields for field in fields}
    places = (runtime.string.length, runtime.string.text)
    actual = tuple([next((found[one] for one in names if one in found), None) for names in NAMES])
    if actual != places:
        raise NotSupported(
            "FC0905",
            core.path,
            f"its strings have length and characters at {actual[0]} and {actual[1]}, "
            f"and those of .NET "
            f"{runtime.version[0]}.{runtime.version[1]} at {places[0]} and {places[1]}",
            help="name the folder of the runtime that the program runs with: `--reference DIR`",
        )


# ------------------------------------------------------------------------------
# The types of .NET that signatures have codes for, by their keywords in C#.

NUMBERS = {
    "bool": 1, "sbyte": 1, "byte": 1, "char": 2, "short": 2, "ushort": 2, "int": 4, "uint": 4,
    "long": 8, "ulong": 8, "float": 4, "double": 8, "nint": 8, "nuint": 8,
}  # fmt: skip
SIGNED = ("sbyte", "short", "int", "long", "nint")


def number_type(name: str) -> Type:
    """The type of a keyword, ``void`` and ``typedref`` among them."""
    if name == "void":
        return VoidType()
    if name == "typedref":
        return UnknownType(name, ByteSize(16), "only the runtime knows the type that it refers to")
    size = ByteSize(NUMBERS[name])
    if name == "bool":
        return BoolType(name, size)
    if name == "char":
        return CharType(name, size, False)
    if name in ("float", "double"):
        return FloatType(name, size)
    return IntType(name, size, name in SIGNED)


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

    ``hardware_vector`` is the size of ``Vector<T>``, which depends on the processor; with
    None, a type that contains one is refused (DebugInfoError FC0905).
    """

    __slots__ = (
        "_busy", "_holding", "_layouts", "_modules", "_ordered", "_rules", "_types", "_vector",
    )  # fmt: skip

    def __init__(
        self, types: ClosedTypes, rules: LayoutRules, hardware_vector: int | None = None
    ) -> None:
        self._types = types
        self._rules = rules
        self._vector = hardware_vector
        self._layouts: dict[int, Layout] = {}
        self._modules: dict[int, frozenset[str]] = {}
        self._busy: set[int] = set()
        self._holding: dict[int, bool] = {}
        self._ordered: dict[int, bool] = {}

    def of(self, number: int) -> Layout:
        """The layout of a class, structure or number."""
        found = self._layouts.get(number)
        if found is None:
            if number in self._busy or len(self._busy) > DEEPEST:
                raise self._types.instance(number).assembly.broken(
                    f"`{self._types.name(number)}` holds itself"
                )
            self._busy.add(number)
            try:
                found = self._layouts[number] = self._laid_out(number)
            finally:
                self._busy.discard(number)
        return found

    def _laid_out(self, number: int) -> Layout:
        closed = self._types.types[number]
        plain = self._types.types[self._types.plain(number)]
        if isinstance(plain, Code):
            size = NUMBERS.get(plain.name, 2 * WORD)  # a typed reference has two words
            if not isinstance(closed, Instance):
                return Layout((), size, min(size, WORD))
            fields = tuple([Field(*field, 0) for field in self._types.fields(number)])
            return Layout(fields, size, min(size, WORD))
        if not isinstance(closed, Instance):
            return Layout((), WORD, WORD)
        name = self._types.name(number)
        if name in self._rules.vectors and closed.assembly.name in CORE_LIBRARIES:
            return self._vector_layout(number, name)
        value = self._types.kind(number) == "value"
        start = 0
        above = -1 if value else self._types.base(number)
        if above >= 0:
            start = self.of(above).size
        listed = [self._open(*field) for field in self._types.fields(number)]
        flags = closed.assembly.metadata.row("TypeDef", closed.row)[0] & 0x18
        pack, stated = closed.assembly.class_layout(closed.row)
        if flags == EXPLICIT:
            offsets = [closed.assembly.field_offset(one.row) for one in listed]
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
            begin = up(start, WORD) if self._rounds_behind(closed, above) else start
            found = by_size(listed, begin, value, self._rules)
        if value and stated and flags == SEQUENTIAL and len(listed) == 1:
            found = self._filled(closed, found, listed[0])
        if value and self._rules.inline_arrays:
            found = self._repeated(closed, found)
        if found.size > BIGGEST:
            raise closed.assembly.broken(f"`{name}` has {found.size} bytes")
        return found

    def _open(self, row: int, name: str, type_number: int) -> Open:
        plain = self._types.plain(type_number)
        closed = self._types.types[plain]
        match closed:
            case Code("typedref"):
                return Open(row, name, type_number, "structure", 2 * WORD, WORD, True)
            case Code():
                if closed.name not in NUMBERS:
                    raise DebugInfoError("FC0904", self._path(), f"a field of type {closed.name}")
                size = NUMBERS[closed.name]
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
            closed = self._types.types[self._types.plain(number)]
            if isinstance(closed, Instance):
                fields = self._types.fields(number)
                found = any(self._open(*field).references for field in fields)
            else:
                found = closed == Code("typedref")
            self._holding[number] = found
        return found

    def _is_sequential(self, number: int, listed: list[Open]) -> bool:
        """Whether sequential layout is stated and heeded."""
        instance = self._types.instance(number)
        value = self._types.kind(number) == "value"
        if self._rules.algorithm == "mono" and value:
            return True
        if instance.assembly.metadata.row("TypeDef", instance.row)[0] & 0x18 != SEQUENTIAL:
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
        closed = self._types.types[self._types.plain(number)]
        if not isinstance(closed, Instance):
            return False
        flags = closed.assembly.metadata.row("TypeDef", closed.row)[0] & 0x18
        if flags == EXPLICIT:
            inside = [self._open(*one) for one in self._types.fields(number)]
            return not self.holds_references(number) and not self._is_converted(inside)
        return self._is_sequential(number, [self._open(*one) for one in self._types.fields(number)])

    def _vector_layout(self, number: int, name: str) -> Layout:
        hardware = name == HARDWARE_VECTOR
        size = self._vector if hardware else self._rules.vector_bytes.get(name)
        if size is None:
            what = f"`{name}` has as many bytes as the vectors of the processor it runs on"
            raise NotSupported("FC0905", self._path(), what)
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
            closed = self._types.types[plain]
            if closed in (Code("bool"), Code("char")):
                return True
            within = isinstance(closed, Instance) and one.kind == "structure"
            fields = self._types.fields(plain) if within else ()
            if self._is_converted([self._open(*each) for each in fields]):
                return True
        return False

    def _rounds_behind(self, instance: Instance, above: int) -> bool:
        # Whether fields begin at a word after those of the base, whatever these are.
        return (
            self._rules.base_rounds_across_modules
            and above >= 0
            and instance.assembly.kind != "IL"
            and self._types.name(above) != "System.Object"
            and len(self._depends_on(above) | {instance.assembly.name}) > 1
        )

    def _depends_on(self, number: int) -> frozenset[str]:
        # The assemblies whose metadata the layout of a type follows from.
        found = self._modules.get(number)
        if found is None:
            instance = self._types.instance(number)
            names = {instance.assembly.name}
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

    def _filled(self, instance: Instance, found: Layout, only: Open) -> Layout:
        # A fixed buffer states its size, and has a field for its first element alone. By that
        # runtimes tell it, and pass others that look like it in the same way. Source:
        # dotnet/runtime, src/coreclr/vm/methodtable.cpp (HasImpliedRepeatedFields).
        times = found.size // only.size if only.size else 0
        if times < 2 or found.size % only.size or only.kind == "reference":
            return found
        if instance.assembly.attribute(instance.row, FIXED_BUFFER) is None:
            return Layout(found.fields, found.size, found.alignment, passed=times)
        return Layout(found.fields, found.size, found.alignment, times)

    def _repeated(self, instance: Instance, found: Layout) -> Layout:
        value = instance.assembly.attribute(instance.row, INLINE_ARRAY)
        if value is None:
            return found
        times = decode_number(value[2:6], True)
        return Layout(found.fields, found.size * times, found.alignment, times)
