"""System V AMD64: divides a value into eightbytes, and passes each where its class says.

Source: System V ABI, AMD64 supplement, 3.2.3 Parameter Passing. Where gcc and clang
agree with each other and not with the text, they are followed; the conformance test
(tests/conformance/test_signatures.py) asks both.
"""

from __future__ import annotations

from fetchc.abi.signature import (
    MAX_NESTING,
    UnclassifiedError,
    bare,
    goes_by_reference,
    malformed,
    one_by_one,
    round_up,
    size_of,
    unaddressed,
    unclassified,
    undecided,
)
from fetchc.program.entities import Indirect, InMemory, InRegister, Piece, Pieces
from fetchc.program.types import (
    ArrayType,
    BoolType,
    CellType,
    ChannelType,
    CharType,
    ChoiceType,
    ComplexType,
    DeclaredType,
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
from fetchc.quantities import ByteOffset, ByteSize
from fetchc.record import assert_never
from fetchc.target.machines import EightbyteRules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.abi.c_alignment import Alignments
    from fetchc.program.entities import Absent, Place
    from fetchc.program.protocol import Program
    from fetchc.program.types import Type
    from fetchc.quantities import DwarfRegister, TypeId
    from fetchc.target.machines import Convention

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
    "classes_of",
    "parameter_places",
    "result_place",
]

# ------------------------------------------------------------------------------
# Classes of eightbytes: the System V AMD64 classification of a type.
#
# Numbers, pointers and vectors first, then what contains them.

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

        return classes_of(self, type_id, found)

    @property
    def alignments(self) -> Alignments:
        """Alignments of the same types, for aggregates and for what goes on the stack."""
        if self._alignments is None:
            from fetchc.abi.c_alignment import Alignments

            self._alignments = Alignments(self.program)
        return self._alignments

    def is_wide_integer(self, type_id: TypeId) -> bool:
        """Whether the type itself is a 16-byte integer, not a structure around one."""
        _, found = bare(self.program, type_id)
        return isinstance(found, IntType) and found.size == 2 * _EIGHTBYTE

    def scalar(self, found: Type) -> tuple[str, ...]:
        """The classes of a scalar type."""
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
                raise UnclassifiedError(f"`{found.name}` is not a type of C")
            case ChoiceType() | CellType() | RangeType():
                raise UnclassifiedError(f"`{found.name}` is not a type of C")
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


def parameter_places(
    program: Program,
    convention: Convention,
    parameters: Sequence[TypeId],
    results: Sequence[TypeId],
    receives: bool = False,
) -> tuple[Place, ...]:
    """See :func:`fetchc.abi.placement.parameter_places`."""
    classifier = Classifier(program, _rules(convention))
    assignment = _Assignment(convention, classifier)
    stopped: Absent | None = None
    hidden = 0
    try:
        for result in results:
            if _result_classes(classifier, result) in ((MEMORY,), (BY_REFERENCE,)):
                hidden = 1  # the address of the memory for the result
    except UnclassifiedError as error:
        stopped = undecided(error, "the result")
    rules = _rules(convention)
    if rules.reference_first and parameters and _is_reference(program, parameters[0]):
        receives = True
    behind = receives and rules.receiver_first

    def place(position: int, parameter: TypeId) -> Place:
        if position == behind:
            assignment.integers += hidden
        return assignment.place(parameter)

    return one_by_one(parameters, place, stopped)


def result_place(program: Program, convention: Convention, result: TypeId) -> Place:
    """See :func:`fetchc.abi.placement.result_place`."""
    rules = _rules(convention)
    classifier = Classifier(program, rules)
    try:
        classes = _result_classes(classifier, result)
        size = size_of(program, result)
    except UnclassifiedError as error:
        return unclassified(error)
    if classes in ((MEMORY,), (BY_REFERENCE,)):
        if not rules.result_address_returned:
            return unaddressed()
        return InMemory(convention.result_integer_registers[0], ByteOffset(0))
    if classes == (COMPLEX_X87,):
        half = ByteSize(size // 2)
        first, second = rules.x87_registers
        return Pieces(
            (
                Piece(ByteOffset(0), half, InRegister(first)),
                Piece(ByteOffset(half), half, InRegister(second)),
            )
        )
    if X87 in classes:
        return InRegister(rules.x87_registers[0])
    return _in_registers(
        classes, size, convention.result_integer_registers, convention.result_float_registers
    )


def _result_classes(classifier: Classifier, result: TypeId) -> tuple[str, ...]:
    classes = classifier.classes(result)
    if classifier.rules.plain_structures and len(classes) > 1:
        return (MEMORY,)
    if classes == (WIDE_COMPLEX,):
        raise UnclassifiedError("the debug information does not say which complex type it is")
    return classes


def _is_reference(program: Program, parameter: TypeId) -> bool:
    # To an object of .NET: pointers of other kinds lead to no class.
    resolved = program.type(parameter)
    if not isinstance(resolved, PointerType) or resolved.reference:
        return False
    target = program.type(resolved.target)
    return isinstance(target, SequenceType) or (
        isinstance(target, StructType) and target.kind == "class"
    )


class _Assignment:
    """Registers and stack handed out so far to the arguments of one call."""

    __slots__ = ("classifier", "convention", "counted", "floats", "integers", "stack")

    def __init__(self, convention: Convention, classifier: Classifier) -> None:
        self.convention = convention
        self.classifier = classifier
        self.integers = 0
        self.floats = 0
        self.stack = 0
        self.counted = 0  # registers that are filled, and that the compiler still counts with

    def place(self, parameter: TypeId) -> Place:
        """The next argument's place: wholly in registers or wholly on the stack."""
        classes = self.classifier.classes(parameter)
        size = size_of(self.classifier.program, parameter)
        if classes == (BY_REFERENCE,):
            return self._by_reference()
        if not any(classes):
            return Pieces(())  # nothing is passed: an empty structure
        integers = self.convention.integer_registers[self.integers :]
        floats = self.convention.float_registers[self.floats :]
        wanted_integers = classes.count(INTEGER)
        wanted_floats = classes.count(SSE)
        if (
            {*classes} <= {"", INTEGER, SSE, SSEUP}
            and wanted_integers <= len(integers)
            and wanted_floats <= len(floats)
        ):
            self.integers += wanted_integers
            self.floats += wanted_floats
            return _in_registers(classes, size, integers, floats)
        if 0 < wanted_integers <= self.counted and wanted_floats <= len(floats):
            self.counted -= wanted_integers
            self.floats += wanted_floats
            slots = [self._push(8, 8) for _ in range(wanted_integers)]
            return _in_registers(classes, size, (), floats, slots)
        split = _rules(self.convention).wide_splits and self.classifier.is_wide_integer(parameter)
        if split and len(integers) == 1:
            # clang asks for two registers, finds one, and leaves it for what follows. LLVM's back
            # end fills it, so the words of what follows go to the stack, each by itself.
            # Source: X86_64ABIInfo::computeInfo, clang/lib/CodeGen/TargetInfo.cpp (LLVM 14).
            self.integers += 1
            self.counted = 1
            low = Piece(ByteOffset(0), ByteSize(8), InRegister(integers[0]))
            return Pieces((low, Piece(ByteOffset(8), ByteSize(8), self._push(8, 8))))
        alignment = 8 if split else _rules(self.convention).stack_alignment
        if not alignment:
            alignments = self.classifier.alignments
            alignment = max(8, alignments.own(parameter))
            if self.stack % alignment:
                alignment = alignments.certain(parameter)
        return self._push(size, alignment)

    def _by_reference(self) -> Place:
        if self.integers < len(self.convention.integer_registers):
            register = self.convention.integer_registers[self.integers]
            self.integers += 1
            return InMemory(register, ByteOffset(0))
        self.counted = 0
        return Indirect(self._push(8, 8), ByteOffset(0))

    def _push(self, size: int, alignment: int) -> InMemory:
        start = round_up(self.stack, alignment)
        self.stack = start + round_up(size, 8)
        offset = ByteOffset(self.convention.stack_offset + start)
        return InMemory(self.convention.stack_pointer, offset)


def _in_registers(
    classes: tuple[str, ...],
    size: int,
    integers: Sequence[DwarfRegister],
    floats: Sequence[DwarfRegister],
    slots: Sequence[InMemory] = (),
) -> Place:
    """One piece a register; SSEUP widens the vector register before it.

    ``slots`` are words on the stack, which are taken when there are no more ``integers``.
    """
    words: list[InRegister | InMemory] = [*map(InRegister, integers), *slots]
    next_integer, next_float = iter(words), iter(floats)
    pieces: list[Piece] = []
    for index, name in enumerate(classes):
        start = 8 * index
        part = min(8, size - start)
        if name == INTEGER:
            place: Place = next(next_integer)
        elif name == SSE:
            place = InRegister(next(next_float))
        elif name == SSEUP:
            before = pieces.pop()
            pieces.append(Piece(before.offset, ByteSize(before.size + part), before.place))
            continue
        else:
            continue  # padding only: it goes nowhere
        pieces.append(Piece(ByteOffset(start), ByteSize(part), place))
    if len(pieces) == 1 and pieces[0].offset == 0 and pieces[0].size == size:
        return pieces[0].place
    return Pieces(tuple(pieces))


def _rules(convention: Convention) -> EightbyteRules:
    assert isinstance(convention.rules, EightbyteRules)
    return convention.rules


# ------------------------------------------------------------------------------
# Classes of structures and arrays that are passed by value: those of what is in each eightbyte.
#
# The walk over a type's leaves keeps a list and a set of what it has seen, so a type that holds
# itself, or the same union a thousand times over, costs no more than its distinct (type, offset)
# pairs.

_MOST_BYTES = 64  # 3.2.3: an object larger than eight eightbytes has class MEMORY


def classes_of(
    classifier: Classifier, type_id: TypeId, found: StructType | ArrayType
) -> tuple[str, ...]:
    """As :meth:`Classifier.classes`, of a structure or an array that is no vector."""
    program, rules = classifier.program, classifier.rules
    size = size_of(program, type_id)
    if isinstance(found, StructType):
        stated = rules.triviality_stated
        if goes_by_reference(program, type_id, found, stated):
            return (BY_REFERENCE,)
    if size > _MOST_BYTES:
        return (MEMORY,)
    merged = [NO_CLASS] * (round_up(size, _EIGHTBYTE) // _EIGHTBYTE)
    hidden: set[int] = set()
    if not _merge_leaves(classifier, type_id, size, merged, hidden):
        return (MEMORY,)
    if rules.plain_structures:
        return (INTEGER,) * len(merged) if 0 < len(merged) <= 2 else (MEMORY,)
    if rules.empty and not any(merged):
        return (rules.empty,)
    if rules.padding:
        merged = [name or rules.padding for name in merged]
    cleaned = _cleaned(merged)
    if cleaned != (MEMORY,) and any(merged[index] != INTEGER for index in hidden):
        if rules.empty:
            what = "it is not known how a structure with an empty structure in it is passed"
            raise UnclassifiedError(what)
        raise UnclassifiedError("an unnamed bit field may be in it, which is not said")
    return cleaned


def _merge_leaves(
    classifier: Classifier, type_id: TypeId, size: int, merged: list[str], hidden: set[int]
) -> bool:
    """Merge the classes of all scalars in; False for an unaligned one (MEMORY).

    ``hidden`` gets the eightbytes that may hold an unnamed bit field, or hold a structure
    without members where that counts.
    """
    program, rules, alignments = classifier.program, classifier.rules, classifier.alignments
    unaligned: list[TypeId] = []
    waiting = [(type_id, 0)]
    seen = set(waiting)
    while waiting:
        declared, offset = waiting.pop()
        current, found = bare(program, declared)
        if isinstance(found, SequenceType) and found.size is not None:
            found = StructType(found.name, "struct", found.size, found.members)
        if isinstance(found, StructType):
            if rules.empty and not found.members:
                if rules.empty == MEMORY:
                    return False  # nor is what holds one in registers
                hidden.add(min(offset, size - 1) // _EIGHTBYTE)
            if rules.typedef_alignment:
                unaligned += _unaligned(classifier, found, offset)
            inner = _members(program, current, found, offset, size, merged)
            if rules.unnamed_bit_fields and found.kind != "union":
                for first, end in alignments.unexplained(current, found):
                    start = 8 * offset + first
                    hidden.update(range(start // 64, (8 * offset + end - 1) // 64 + 1))
        elif isinstance(found, ArrayType) and not found.vector:
            inner = _elements(program, current, found, offset, size)
        else:
            classes = classifier.scalar(found)
            if offset + size_of(program, current) > size:
                raise malformed(program, current, "a member beyond its structure")
            alignment = alignments.own(current)
            if rules.typedef_alignment:
                alignment = alignments.declared(declared)
            if offset % alignment:
                if rules.typedef_alignment:
                    _refuse_unsaid_alignment(program, declared)
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
    for declared in unaligned:
        _refuse_unsaid_alignment(program, declared)
    return not unaligned


def _unaligned(classifier: Classifier, found: StructType, start: int) -> list[TypeId]:
    # Types of members that are structures or arrays and not at a multiple of their own alignment,
    # however aligned the scalars in them are: bit fields, or `aligned`. A base may be anywhere.
    waiting = []
    for member in found.members:
        offset = start + member.offset
        if member.bits is not None or not offset or (member.embedded and member.name):
            continue
        _, inner = bare(classifier.program, member.type)
        whole = isinstance(inner, StructType) or (isinstance(inner, ArrayType) and not inner.vector)
        if whole and offset % classifier.alignments.declared(member.type):
            waiting.append(member.type)
    return waiting


def _refuse_unsaid_alignment(program: Program, declared: TypeId) -> None:
    # DW_AT_alignment is new in DWARF 5, and clang writes it there only: a member where its
    # type's own alignment would not let it be is packed, or its typedef lowers that.
    for _ in range(MAX_NESTING):
        named = program.type(declared)
        if isinstance(named, NamedType):
            if named.alignment is None:
                raise UnclassifiedError(f"an alignment of `{named.name}` may be left unsaid")
            return
        if not isinstance(named, QualifiedType):
            return
        declared = named.target


def _members(
    program: Program, type_id: TypeId, found: StructType, start: int, size: int, merged: list[str]
) -> list[tuple[TypeId, int]]:
    if found.kind == "union" and not found.members and (found.size or 0) > 1:
        # gcc leaves the members of a transparent union out.
        name = found.name or "union"
        raise UnclassifiedError(f"the debug information does not have the members of `{name}`")
    inner = []
    for member in found.members:
        if member.bits is None:
            offset = start + member.offset
            if not 0 <= offset <= size:
                raise malformed(program, type_id, "a member beyond its structure")
            inner.append((member.type, offset))
        elif member.bits.width:
            first = 8 * start + member.bits.offset
            last = first + member.bits.width - 1
            if not 0 <= first <= last < 8 * size:
                raise malformed(program, type_id, "a bit field beyond its structure")
            for index in range(first // 64, last // 64 + 1):
                _merge(merged, index, INTEGER)
    return inner


def _elements(
    program: Program, type_id: TypeId, found: ArrayType, start: int, size: int
) -> list[tuple[TypeId, int]]:
    if found.count is None or found.count == 0:
        return []  # a flexible array holds nothing by itself
    each = size_of(program, found.element)
    if each == 0:
        return []
    if start + each * found.count > size:
        raise malformed(program, type_id, "an array beyond its structure")
    return [(found.element, start + each * index) for index in range(found.count)]


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
