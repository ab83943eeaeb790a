"""Classes of eightbytes: the System V AMD64 classification of a type.

The walk over a type's leaves keeps a list and a set of what it has seen, so a type
that holds itself, or the same union a thousand times over, costs no more than its
distinct (type, offset) pairs.
"""

from __future__ import annotations

from fetchc.abi.alignment import Alignments
from fetchc.abi.layout import (
    MAX_NESTING,
    UnclassifiedError,
    bare,
    goes_by_reference,
    malformed,
    round_up,
)
from fetchc.program.types import (
    ArrayType,
    BoolType,
    CellType,
    ChannelType,
    CharType,
    ChoiceType,
    ComplexType,
    DeclaredType,
    DifferenceType,
    EnumType,
    FloatType,
    FunctionType,
    InterfaceType,
    IntType,
    MapType,
    NamedType,
    PointerType,
    QualifiedType,
    RangeType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
    UnknownType,
    VoidType,
)
from fetchc.record import assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.protocol import Program
    from fetchc.program.types import Type
    from fetchc.target.model import EightbyteRules
    from fetchc.units import TypeId

__all__ = [
    "BY_REFERENCE",
    "COMPLEX_X87",
    "INTEGER",
    "MEMORY",
    "NO_CLASS",
    "SSE",
    "SSEUP",
    "WIDE_COMPLEX",
    "X87",
    "X87UP",
    "Classifier",
]

# The classes of the psABI, and one for what C++ passes by a pointer that it does not show.
NO_CLASS = ""
INTEGER = "INTEGER"
SSE = "SSE"
SSEUP = "SSEUP"
X87 = "X87"
X87UP = "X87UP"
COMPLEX_X87 = "COMPLEX_X87"
MEMORY = "MEMORY"
BY_REFERENCE = "BY_REFERENCE"
# A complex number of 32 bytes whose name does not say of what (clang: "complex"): in memory
# as an argument either way, as a result on the x87 stack or in memory.
WIDE_COMPLEX = "WIDE_COMPLEX"

_EIGHTBYTE = 8
_MOST_BYTES = 64  # 3.2.3: an object larger than eight eightbytes has class MEMORY


class Classifier:
    """Classes of the types of one program."""

    __slots__ = ("_program", "alignments", "rules")

    def __init__(self, program: Program, rules: EightbyteRules) -> None:
        self._program = program
        self.rules = rules
        self.alignments = Alignments(program)

    def classes(self, type_id: TypeId) -> tuple[str, ...]:
        """One class an eightbyte; (MEMORY,) and (BY_REFERENCE,) stand for the whole.

        Empty for an object of no size. Raises UnclassifiedError or DebugInfoError.
        """
        type_id, found = bare(self._program, type_id)
        if isinstance(found, SequenceType) and found.size is not None:
            found = StructType(found.name, "struct", found.size, found.members)
        if not isinstance(found, StructType | ArrayType) or _is_vector(found):
            return self._scalar(found)
        size = self.alignments.size(type_id)
        if isinstance(found, StructType):
            stated = self.rules.triviality_stated
            if goes_by_reference(self._program, type_id, found, stated):
                return (BY_REFERENCE,)
        if size > _MOST_BYTES:
            return (MEMORY,)
        merged = [NO_CLASS] * (round_up(size, _EIGHTBYTE) // _EIGHTBYTE)
        hidden: set[int] = set()
        if not self._merge_leaves(type_id, size, merged, hidden):
            return (MEMORY,)
        if self.rules.plain_structures:
            return (INTEGER,) * len(merged) if 0 < len(merged) <= 2 else (MEMORY,)
        if self.rules.empty and not any(merged):
            return (self.rules.empty,)
        if self.rules.padding:
            merged = [name or self.rules.padding for name in merged]
        cleaned = _cleaned(merged)
        if cleaned != (MEMORY,) and any(merged[index] != INTEGER for index in hidden):
            raise UnclassifiedError("an unnamed bit field may be in it, which is not said")
        return cleaned

    def is_wide_integer(self, type_id: TypeId) -> bool:
        """Whether the type itself is a 16-byte integer, not a structure around one."""
        _, found = bare(self._program, type_id)
        return isinstance(found, IntType) and found.size == 2 * _EIGHTBYTE

    def _merge_leaves(
        self, type_id: TypeId, size: int, merged: list[str], hidden: set[int]
    ) -> bool:
        """Merge the classes of all scalars in; False for an unaligned one (MEMORY).

        ``hidden`` gets the eightbytes that may hold an unnamed bit field.
        """
        waiting = [(type_id, 0)]
        seen = set(waiting)
        while waiting:
            declared, offset = waiting.pop()
            current, found = bare(self._program, declared)
            if isinstance(found, SequenceType) and found.size is not None:
                found = StructType(found.name, "struct", found.size, found.members)
            if isinstance(found, StructType):
                inner = self._members(current, found, offset, size, merged)
                if self.rules.unnamed_bit_fields and found.kind != "union":
                    for first, end in self.alignments.unexplained(current, found):
                        start = 8 * offset + first
                        hidden.update(range(start // 64, (8 * offset + end - 1) // 64 + 1))
            elif isinstance(found, ArrayType) and not found.vector:
                inner = self._elements(current, found, offset, size)
            else:
                classes = self._scalar(found)
                if offset + self.alignments.size(current) > size:
                    raise malformed(self._program, current, "a member beyond its structure")
                alignment = self.alignments.own(current)
                if self.rules.typedef_alignment:
                    alignment = self.alignments.declared(declared)
                if offset % alignment:
                    if self.rules.typedef_alignment:
                        self._refuse_unsaid_alignment(declared)
                    return False
                if isinstance(found, ComplexType) and found.size == _EIGHTBYTE:
                    # float _Complex in a structure is two floats: it can straddle eightbytes.
                    _merge(merged, offset // _EIGHTBYTE, SSE)
                    _merge(merged, (offset + found.size // 2) // _EIGHTBYTE, SSE)
                    continue
                for index, name in enumerate(classes):
                    _merge(merged, offset // _EIGHTBYTE + index, name)
                continue
            for pair in inner:
                if pair not in seen:
                    seen.add(pair)
                    waiting.append(pair)
        return True

    def _refuse_unsaid_alignment(self, declared: TypeId) -> None:
        # DW_AT_alignment is new in DWARF 5, and clang writes it there only: a member where its
        # type's own alignment would not let it be is packed, or its typedef lowers that.
        for _ in range(MAX_NESTING):
            named = self._program.type(declared)
            if isinstance(named, NamedType):
                if named.alignment is None:
                    raise UnclassifiedError(f"an alignment of `{named.name}` may be left unsaid")
                return
            if not isinstance(named, QualifiedType):
                return
            declared = named.target

    def _members(
        self, type_id: TypeId, found: StructType, start: int, size: int, merged: list[str]
    ) -> list[tuple[TypeId, int]]:
        if found.kind == "union" and not found.members and (found.size or 0) > 1:
            # gcc leaves the members of a transparent union out.
            name = found.name or "union"
            raise UnclassifiedError(f"the debug information leaves out the members of `{name}`")
        inner = []
        for member in found.members:
            if member.bits is None:
                offset = start + member.offset
                if not 0 <= offset <= size:
                    raise malformed(self._program, type_id, "a member beyond its structure")
                inner.append((member.type, offset))
            elif member.bits.width:
                first = 8 * start + member.bits.offset
                last = first + member.bits.width - 1
                if not 0 <= first <= last < 8 * size:
                    raise malformed(self._program, type_id, "a bit field beyond its structure")
                for index in range(first // 64, last // 64 + 1):
                    _merge(merged, index, INTEGER)
        return inner

    def _elements(
        self, type_id: TypeId, found: ArrayType, start: int, size: int
    ) -> list[tuple[TypeId, int]]:
        if found.count is None or found.count == 0:
            return []  # a flexible array holds nothing by itself
        each = self.alignments.size(found.element)
        if each == 0:
            return []
        if start + each * found.count > size:
            raise malformed(self._program, type_id, "an array beyond its structure")
        return [(found.element, start + each * index) for index in range(found.count)]

    def _scalar(self, found: Type) -> tuple[str, ...]:
        """Classes of what is neither structure nor array."""
        match found:
            case IntType(name=name, size=size):
                if size == 2 * _EIGHTBYTE and name in self.rules.wide_integer_names:
                    return (INTEGER, INTEGER)
                return self._integer(name, size)
            case CharType() | BoolType() | EnumType():
                return self._integer(found.name, found.size)
            case PointerType(size=size) | MapType(size=size) | ChannelType(size=size):
                return self._integer("a pointer", size)
            case FloatType(name=name, size=size):
                return self._float(name, size)
            case ComplexType(name=name, size=size):
                if size in (4, 8):
                    return (SSE,)
                if size == 16:
                    return (SSE, SSE)
                if size == 32:
                    return (COMPLEX_X87 if "long double" in name else WIDE_COMPLEX,)
                raise UnclassifiedError(f"how `{name}` is passed is not known")
            case ArrayType():
                return self._vector(found)
            case VoidType() | FunctionType():
                raise UnclassifiedError("its type is no object's")
            case UnknownType(reason=reason):
                raise UnclassifiedError(f"its type cannot be read: {reason}")
            case StringType() | SliceType() | InterfaceType() | SequenceType():
                raise UnclassifiedError(f"`{found.name}` is no type of C")
            case DifferenceType() | ChoiceType() | CellType() | RangeType():
                raise UnclassifiedError(f"`{found.name}` is no type of C")
            case StructType() | NamedType() | QualifiedType() | DeclaredType():
                raise AssertionError(f"not a scalar: {found!r}")
            case _:
                assert_never(found)

    def _integer(self, name: str, size: int) -> tuple[str, ...]:
        if size in (1, 2, 4, 8):
            return (INTEGER,)
        raise UnclassifiedError(f"how `{name}` of {size} bytes is passed is not known")

    def _float(self, name: str, size: int) -> tuple[str, ...]:
        if size in (2, 4, 8):
            return (SSE,)
        if size == 16 and name in self.rules.x87_names:
            return (X87, X87UP)
        if size == 16 and name in self.rules.quad_names:
            return (SSE, SSEUP)
        raise UnclassifiedError(f"how `{name}` of {size} bytes is passed is not known")

    def _vector(self, found: ArrayType) -> tuple[str, ...]:
        if found.size == 8 and found.count != 1:
            return (SSE,)  # one element of 8 bytes: clang's answer depends on its version
        if found.size == 16:
            return (SSE, SSEUP)
        raise UnclassifiedError(
            f"how a vector of {found.size} bytes is passed depends on compiler options"
        )


def _is_vector(found: Type) -> bool:
    return isinstance(found, ArrayType) and found.vector


def _merge(merged: list[str], index: int, name: str) -> None:
    """3.2.3, step 4, (a) to (f)."""
    before = merged[index]
    if before == name or name == NO_CLASS:
        return
    if before == NO_CLASS:
        merged[index] = name
    elif MEMORY in (before, name):
        merged[index] = MEMORY
    elif INTEGER in (before, name):
        merged[index] = INTEGER
    elif {before, name} & {X87, X87UP, COMPLEX_X87}:
        merged[index] = MEMORY
    else:
        merged[index] = SSE


def _cleaned(merged: list[str]) -> tuple[str, ...]:
    """3.2.3, step 5: what a mixture makes of the whole."""
    if MEMORY in merged:
        return (MEMORY,)
    for index, name in enumerate(merged):
        if name == X87UP and (index == 0 or merged[index - 1] != X87):
            return (MEMORY,)
    if len(merged) > 2 and (merged[0] != SSE or any(name != SSEUP for name in merged[1:])):
        return (MEMORY,)
    for index, name in enumerate(merged):
        if name == SSEUP and (index == 0 or merged[index - 1] not in (SSE, SSEUP)):
            merged[index] = SSE
    return tuple(merged)
