"""Classes of eightbytes: the System V AMD64 classification of a type.

Numbers, pointers and vectors here; :mod:`fetchc.abi.aggregates` has what is made of them.
"""

from __future__ import annotations

from fetchc.abi.layout import (
    UnclassifiedError,
    bare,
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
    from fetchc.abi.alignment import Alignments
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


class Classifier:
    """Classes of the types of one program."""

    __slots__ = ("_alignments", "program", "rules")

    def __init__(self, program: Program, rules: EightbyteRules) -> None:
        self.program = program
        self.rules = rules
        self._alignments: Alignments | None = None

    def classes(self, type_id: TypeId) -> tuple[str, ...]:
        """One class an eightbyte; (MEMORY,) and (BY_REFERENCE,) stand for the whole.

        Empty for an object of no size. Raises UnclassifiedError or DebugInfoError.
        """
        type_id, found = bare(self.program, type_id)
        if isinstance(found, SequenceType) and found.size is not None:
            found = StructType(found.name, "struct", found.size, found.members)
        if not isinstance(found, StructType | ArrayType) or _is_vector(found):
            return self.scalar(found)
        from fetchc.abi.aggregates import classes_of

        return classes_of(self, type_id, found)

    @property
    def alignments(self) -> Alignments:
        """Alignments of the same types, for aggregates and for what goes on the stack."""
        if self._alignments is None:
            from fetchc.abi.alignment import Alignments

            self._alignments = Alignments(self.program)
        return self._alignments

    def is_wide_integer(self, type_id: TypeId) -> bool:
        """Whether the type itself is a 16-byte integer, not a structure around one."""
        _, found = bare(self.program, type_id)
        return isinstance(found, IntType) and found.size == 2 * _EIGHTBYTE

    def scalar(self, found: Type) -> tuple[str, ...]:
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
        if self.rules.vectors:
            return (self.rules.vectors,)
        if found.size == 8 and found.count != 1:
            return (SSE,)  # one element of 8 bytes: clang's answer depends on its version
        if found.size == 16:
            return (SSE, SSEUP)
        raise UnclassifiedError(
            f"how a vector of {found.size} bytes is passed depends on compiler options"
        )


def _is_vector(found: Type) -> bool:
    return isinstance(found, ArrayType) and found.vector
