"""Conventions that pass word by word: one engine for all machines but x86-64, rules as data.

A value goes as a pointer, in floating-point registers, in integer registers, or on the stack;
targets/abi says which, for each machine with the text that it is from. Where gcc and clang agree
with each other and not with the text, they are followed; the conformance tests
(tests/conformance/test_architectures.py) ask the compilers.
"""

from __future__ import annotations

from fetchc.abi.c_alignment import Alignments
from fetchc.abi.signature import (
    MAX_NESTING,
    UnclassifiedError,
    bare,
    goes_by_reference,
    malformed,
    one_by_one,
    round_up,
    unaddressed,
    unclassified,
    undecided,
)
from fetchc.program.entities import Absent, Indirect, InMemory, InRegister, Piece, Pieces
from fetchc.program.types import (
    ArrayType,
    BoolType,
    CharType,
    ComplexType,
    DeclaredType,
    EnumType,
    FloatType,
    FunctionType,
    InterfaceType,
    IntType,
    NamedType,
    QualifiedType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
    UnknownType,
    VoidType,
)
from fetchc.quantities import ByteOffset, ByteSize
from fetchc.record import Record
from fetchc.target.machines import WordRules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fetchc.program.entities import Place
    from fetchc.program.protocol import Program
    from fetchc.program.types import Type
    from fetchc.quantities import DwarfRegister, TypeId
    from fetchc.target.machines import Convention

    Flat = tuple["Leaf", ...] | None
    Alignment = Callable[[], int]

__all__ = ["REFERENCE", "WORDS", "Leaf", "Passing", "Shapes", "parameter_places", "result_place"]

# ------------------------------------------------------------------------------
# The numbers that a C value consists of and their offsets, for conventions that ask for them.
#
# A structure of numbers of one floating-point type, or of two numbers, can go to registers that
# others do not go to. Its members alone decide whether it does. The answer for a type is
# cached, so that a type that contains another a thousand times costs no more than both.

_MOST_LEAVES = 16  # more than any convention takes apart


class Leaf(Record):
    """A number of a value: its offset and size in bytes."""

    offset: int
    size: int
    floating: bool

    def moved(self, by: int) -> Leaf:
        """The same in a value that holds this one ``by`` bytes from its start."""
        return Leaf(self.offset + by, self.size, self.floating)


class Shapes:
    """The numbers that values of one program's types consist of."""

    __slots__ = ("_equal", "_flat", "_gaps", "_program", "alignments")

    def __init__(self, program: Program) -> None:
        self._program = program
        self._equal: dict[TypeId, tuple[int, int] | None] = {}
        self._flat: dict[TypeId, Flat] = {}
        self._gaps: dict[TypeId, bool] = {}
        self.alignments = Alignments(program)

    def equal(self, type_id: TypeId, depth: int = 0) -> tuple[int, int] | None:
        """(size, count) of the equal floating-point numbers that the type consists of, else None.

        Members of a union are not added up. An empty structure or array has (0, 0). Where
        padding is, size times count is not the size of the type.
        """
        type_id, found = self._bare(type_id, depth)
        if type_id not in self._equal:
            self._equal[type_id] = self._equal_of(found, depth)
        return self._equal[type_id]

    def _equal_of(self, found: Type, depth: int) -> tuple[int, int] | None:
        match found:
            case FloatType(size=size):
                return size, 1
            case ComplexType(size=size):
                return size // 2, 2
            case ArrayType(vector=True, size=size) if size:
                return size, 1
            case ArrayType(element=element, count=count):
                inner = self.equal(element, depth + 1)
                return None if inner is None or count is None else (inner[0], inner[1] * count)
            case StructType(kind=kind):
                each = many = 0
                for member in found.members:
                    inner = None if member.bits else self.equal(member.type, depth + 1)
                    if inner is None or (each and inner[0] not in (0, each)):
                        return None
                    each = each or inner[0]
                    many = max(many, inner[1]) if kind == "union" else many + inner[1]
                return each, many
            case _:
                return None

    def flat(self, type_id: TypeId, depth: int = 0) -> Flat:
        """The numbers in order, bit fields as their units.

        None where there are many, and where a union or a pointer is among them.
        """
        type_id, found = self._bare(type_id, depth)
        if type_id not in self._flat:
            self._flat[type_id] = self._flat_of(found, depth)
        return self._flat[type_id]

    def _flat_of(self, found: Type, depth: int) -> Flat:
        match found:
            case FloatType(size=size):
                return (Leaf(0, size, True),)
            case ComplexType(size=size):
                return (Leaf(0, size // 2, True), Leaf(size // 2, size // 2, True))
            case (
                IntType(size=size) | CharType(size=size) | BoolType(size=size) | EnumType(size=size)
            ):
                return (Leaf(0, size, False),)
            case ArrayType(vector=False, element=element, count=int(count)):
                inner = self.flat(element, depth + 1)
                if inner is None or count * len(inner) > _MOST_LEAVES:
                    return None
                each = self.alignments.size(element)
                count = count if inner else 0
                return tuple([leaf.moved(each * at) for at in range(count) for leaf in inner])
            case StructType(kind=kind) if kind != "union":
                return self._flat_members(found, depth)
            case _:
                return None

    def _flat_members(self, found: StructType, depth: int) -> Flat:
        leaves: tuple[Leaf, ...] = ()
        for member in found.members:
            if member.bits is not None:
                size = max(1, self.alignments.size(member.type))
                start = member.bits.offset // (8 * size) * size
                leaves += (Leaf(start, size, False),)
                continue
            inner = self.flat(member.type, depth + 1)
            if inner is None or len(leaves) + len(inner) > _MOST_LEAVES:
                return None
            leaves += tuple([leaf.moved(member.offset) for leaf in inner])
        return leaves

    def has_gap(self, type_id: TypeId, depth: int = 0) -> bool:
        """Whether an unnamed bit field may be in the structure, which is nowhere said."""
        type_id, found = self._bare(type_id, depth)
        if not isinstance(found, StructType) or found.kind == "union":
            return False
        if type_id not in self._gaps:
            self._gaps[type_id] = bool(self.alignments.unexplained(type_id, found)) or any(
                self.has_gap(member.type, depth + 1) for member in found.members
            )
        return self._gaps[type_id]

    def _bare(self, type_id: TypeId, depth: int) -> tuple[TypeId, Type]:
        type_id, found = bare(self._program, type_id)
        if depth > MAX_NESTING:
            raise malformed(self._program, type_id, f"types nested more than {MAX_NESTING} deep")
        return type_id, found


# ------------------------------------------------------------------------------
# How a C value is passed by a convention of words: by a pointer, as numbers, or as its bytes.

REFERENCE = "reference"
WORDS = "words"


class Passing:
    """Answers for the types of one program, by the rules of one convention."""

    __slots__ = ("_program", "_rules", "_shapes", "_word")

    def __init__(self, program: Program, word_bytes: int, rules: WordRules) -> None:
        self._program = program
        self._word = word_bytes
        self._rules = rules
        self._shapes = Shapes(program)

    def how(self, type_id: TypeId) -> tuple[How, int, Callable[[], int]]:
        """How a value is passed, its size, and what gives its alignment in bytes.

        REFERENCE, WORDS, or the numbers that go to floating-point registers where these
        suffice. The alignment is not always available, and not always needed. Both raise
        UnclassifiedError or DebugInfoError.
        """
        type_id, found = bare(self._program, type_id)
        size = self._shapes.alignments.size(type_id)
        how = self._kind(type_id, found, size)
        return how, size, lambda: self._alignment(type_id, found, size)

    def _kind(self, type_id: TypeId, found: Type, size: int) -> How:
        if isinstance(found, StructType):
            return self._structure(type_id, found, size)
        return self._scalar(found, size)

    def halves(self, type_id: TypeId) -> tuple[Leaf, Leaf] | None:
        """The two numbers of a complex one, where these are passed like two parameters."""
        if self._rules.complex != "parameters":
            return None
        _, found = bare(self._program, type_id)
        if not isinstance(found, ComplexType) or found.size // 2 not in self._rules.float_sizes:
            return None
        half = found.size // 2
        return Leaf(0, half, True), Leaf(half, half, True)

    def is_returned_in_memory(self, type_id: TypeId) -> bool:
        """Whether a caller passes the address of memory for a result of the type."""
        type_id, found = bare(self._program, type_id)
        size = self._shapes.alignments.size(type_id)
        how = self._kind(type_id, found, size)
        if isinstance(found, StructType) and size and self._rules.result_bytes == 0:
            return True
        if how != WORDS or size == 0:
            return how == REFERENCE
        if isinstance(found, ComplexType):
            return size > 2 * self._word
        return isinstance(found, StructType) and size > self._rules.result_bytes

    def _scalar(self, found: Type, size: int) -> How:
        rules = self._rules
        match found:
            case FloatType(name=name):
                if size in rules.float_sizes:
                    return (Leaf(0, size, True),)
                return self._rare(rules.quad, name, size)
            case ComplexType(name=name):
                half = size // 2
                if rules.complex in ("float", "parameters") and half in rules.float_sizes:
                    return (Leaf(0, half, True), Leaf(half, half, True))
                if rules.value_bytes is not None and size > rules.value_bytes:
                    return REFERENCE
                as_whole = rules.complex in ("words", "reference")
                return self._rare(rules.complex if as_whole else "", name, size)
            case IntType(name=name) if size > self._word:
                return self._rare(rules.wide if size == 2 * self._word else "", name, size)
            case ArrayType(vector=True, name=name):
                if size in rules.vector_sizes:
                    return (Leaf(0, size, True),)
                raise UnclassifiedError(
                    f"how a vector of {size} bytes is passed depends on compiler options"
                )
            case UnknownType(reason=reason):
                raise UnclassifiedError(f"its type cannot be read: {reason}")
            case VoidType() | FunctionType() | ArrayType():
                raise UnclassifiedError("its type is no object's")
            case StringType() | SliceType() | InterfaceType() | SequenceType():
                raise UnclassifiedError(f"`{found.name}` is not a type of C")
            case StructType() | NamedType() | QualifiedType() | DeclaredType():
                raise AssertionError(f"not a scalar: {found!r}")
            case _:
                return WORDS

    def _rare(self, rule: str, name: str, size: int) -> How:
        match rule:
            case "float":
                return (Leaf(0, size, True),)
            case "words" | "reference":
                return rule
            case _:
                raise UnclassifiedError(f"how `{name}` of {size} bytes is passed is not known")

    def _structure(self, type_id: TypeId, found: StructType, size: int) -> How:
        rules = self._rules
        if goes_by_reference(self._program, type_id, found, rules.triviality_stated):
            return REFERENCE
        name = found.name or "(anonymous)"
        if not found.members and size:
            # An empty class of C++, or a transparent union, whose members gcc leaves out.
            raise UnclassifiedError(f"how `{name}` without members is passed is not known")
        leaves = self._float_leaves(type_id, found, size)
        if leaves:
            return leaves
        if size and rules.value_sizes and size not in rules.value_sizes:
            return REFERENCE
        if rules.value_bytes is not None and size > rules.value_bytes:
            return REFERENCE
        return WORDS

    def _alignment(self, type_id: TypeId, found: Type, size: int) -> int:
        if not isinstance(found, StructType):
            # Where each word has its position, numbers wider than one are not aligned.
            return 1 if self._rules.positions else self._shapes.alignments.own(type_id)
        # Registers in pairs go by the members' alignment, the stack by the structure's own.
        alignments, most = self._shapes.alignments, self._rules.stack_alignment
        if self._rules.pairs:
            alignment = alignments.of_members(found, 2 * self._word)
            # One of a member of its own is not read: it may be what raised the structure's.
            unsaid = (found.alignment or 0) >= 2 * self._word
        else:
            alignment = alignments.own(type_id)
            unsaid = False
        if not unsaid and found.alignment is None:
            unsaid = most > self._word and bool(alignments.unexplained(type_id, found))
        if unsaid and alignment < most and size % most == 0:
            raise UnclassifiedError(f"an alignment of `{found.name}` may be left unsaid")
        return alignment

    def _float_leaves(
        self, type_id: TypeId, found: StructType, size: int
    ) -> tuple[Leaf, ...] | None:
        match self._rules.float_structures:
            case "homogeneous":
                return self._homogeneous(type_id, size)
            case "flat":
                return self._flat(type_id, size)
            case "single":
                return self._single(found, size)
            case _:
                return None

    def _homogeneous(self, type_id: TypeId, size: int) -> tuple[Leaf, ...] | None:
        numbers = self._shapes.equal(type_id)
        if numbers is None:
            return None
        each, count = numbers
        sizes = (*self._rules.float_sizes, *self._rules.vector_sizes)
        if not 0 < count <= self._rules.float_members or each * count != size:
            return None
        if each not in sizes:
            raise UnclassifiedError(f"how a number of {each} bytes is passed is not known")
        return tuple([Leaf(each * index, each, True) for index in range(count)])

    def _flat(self, type_id: TypeId, size: int) -> tuple[Leaf, ...] | None:
        leaves = self._shapes.flat(type_id) if size <= 2 * self._word else None
        if leaves is None or not 1 <= len(leaves) <= 2:
            return None
        if not any(leaf.floating for leaf in leaves):
            return None
        sizes = self._rules.float_sizes
        if any(
            leaf.size not in sizes if leaf.floating else leaf.size > self._word for leaf in leaves
        ):
            return None
        if self._shapes.has_gap(type_id):
            raise UnclassifiedError("an unnamed bit field may be in it, which is not said")
        return leaves

    def _single(self, found: StructType, size: int) -> tuple[Leaf, ...] | None:
        resolved: Type = found
        for _ in range(MAX_NESTING):
            if not isinstance(resolved, StructType):
                break
            if len(resolved.members) != 1 or resolved.kind == "union" or resolved.members[0].bits:
                return None
            resolved = bare(self._program, resolved.members[0].type)[1]
        if (
            isinstance(resolved, FloatType)
            and resolved.size == size
            and size in self._rules.float_sizes
        ):
            return (Leaf(0, size, True),)
        return None


def _unaligned() -> int:
    return 1


def parameter_places(
    program: Program,
    convention: Convention,
    parameters: Sequence[TypeId],
    results: Sequence[TypeId],
) -> tuple[Place, ...]:
    """See :func:`fetchc.abi.placement.parameter_places`."""
    rules = _rules(convention)
    passing = Passing(program, convention.word_bytes, rules)
    call = _Call(convention, convention.integer_registers, convention.float_registers)
    stopped: Absent | None = None
    try:
        in_memory = any(passing.is_returned_in_memory(result) for result in results)
        if in_memory and rules.result_address is None:
            call.place(REFERENCE, convention.word_bytes, _unaligned)
    except UnclassifiedError as error:
        stopped = undecided(error, "the result")

    def place(_position: int, parameter: TypeId) -> Place:
        halves = passing.halves(parameter)
        return call.place(*passing.how(parameter)) if halves is None else call.parts(halves)

    return one_by_one(parameters, place, stopped)


def result_place(program: Program, convention: Convention, result: TypeId) -> Place:
    """See :func:`fetchc.abi.placement.result_place`."""
    rules = _rules(convention)
    passing = Passing(program, convention.word_bytes, rules)
    registers = convention.result_integer_registers
    try:
        if not passing.is_returned_in_memory(result):
            call = _Call(convention, registers, convention.result_float_registers)
            return call.place(*passing.how(result))
    except UnclassifiedError as error:
        return unclassified(error)
    if not rules.result_address_returned:
        return unaddressed()
    return InMemory(registers[0], ByteOffset(0))


class _Call:
    """Registers and stack handed out so far to the values of one call."""

    __slots__ = ("_convention", "_free", "_integers", "_next", "_rules", "_stack", "_word")

    def __init__(
        self,
        convention: Convention,
        integers: Sequence[DwarfRegister],
        floats: Sequence[DwarfRegister],
    ) -> None:
        self._convention = convention
        self._rules = _rules(convention)
        self._word = convention.word_bytes
        self._integers = integers
        self._next = 0  # of the integer registers; of all words where they are positions
        self._free: list[DwarfRegister | None] = list(floats)
        self._stack = 0

    def place(self, how: str | tuple[Leaf, ...], size: int, alignment: Alignment) -> Place:
        """The next value's place; ``how`` as :meth:`Passing.how` gives it."""
        if size == 0:
            return Pieces(())
        if how == REFERENCE:
            pointer = self._words(self._word, _unaligned)
            if isinstance(pointer, InRegister):
                return InMemory(pointer.register, ByteOffset(0))
            return Indirect(pointer, ByteOffset(0))
        if isinstance(how, str):
            return self._words(size, alignment)
        place = self._in_floats(how, size)
        if place is not None:
            if self._rules.positions:
                self._words(size, alignment)
            return place
        if self._rules.positions:
            return self._partly_in_floats(how, size, alignment)
        if self._rules.floats_overflow:
            return self._words(size, alignment)
        if self._rules.closes:
            self._free = []
        return self._push(size, alignment)

    def parts(self, leaves: tuple[Leaf, ...]) -> Place:
        """The place of a value whose numbers are passed like parameters of their own."""
        return Pieces(
            tuple(
                [
                    Piece(
                        ByteOffset(leaf.offset),
                        ByteSize(leaf.size),
                        self.place((Leaf(0, leaf.size, True),), leaf.size, _unaligned),
                    )
                    for leaf in leaves
                ]
            )
        )

    def _in_floats(self, leaves: tuple[Leaf, ...], size: int) -> Place | None:
        """A register each, in a row; None, and nothing taken, where there are too few."""
        whole = [leaf for leaf in leaves if not leaf.floating]
        if whole and len(whole) > len(self._integers) - self._next:
            return None
        each = max(1, leaves[0].size // self._rules.float_register_bytes)
        many = each * (len(leaves) - len(whole))
        for start in range(0, len(self._free) - many + 1, each):
            row = self._free[start : start + many]
            if None not in row:
                break
        else:
            return None
        self._free[start : start + many] = [None] * many
        registers = iter([register for register in row[::each] if register is not None])
        pieces = []
        for leaf in leaves:
            if leaf.floating:
                register = next(registers)
            else:
                register = self._integers[self._next]
                self._next += 1
            pieces.append(Piece(ByteOffset(leaf.offset), ByteSize(leaf.size), InRegister(register)))
        return _joined(pieces, size)

    def _partly_in_floats(self, leaves: tuple[Leaf, ...], size: int, alignment: Alignment) -> Place:
        # As many numbers as there are registers left, the others in their words.
        left = [register for register in self._free if register is not None]
        words = self._words(size, alignment)
        self._free = [None] * len(self._free)
        if not left:
            return words
        pieces = [
            Piece(ByteOffset(leaf.offset), ByteSize(leaf.size), InRegister(register))
            for leaf, register in zip(leaves, left, strict=False)
        ]
        rest = (
            words.pieces
            if isinstance(words, Pieces)
            else (Piece(ByteOffset(0), ByteSize(size), words),)
        )
        end = pieces[-1].offset + pieces[-1].size
        pieces += [piece for piece in rest if piece.offset + piece.size > end]
        return Pieces(tuple(pieces))

    def _words(self, size: int, alignment: Alignment) -> Place:
        """Integer registers, the stack, or both."""
        word, rules = self._word, self._rules
        paired = rules.pairs or rules.positions
        if paired and size > word and alignment() >= 2 * word:
            self._next = round_up(self._next, 2)
        count = round_up(size, word) // word
        left = self._integers[self._next : self._next + count]
        if rules.positions:
            return self._at_position(size, count)
        if len(left) < count and not (left and rules.splits and self._stack == 0):
            if rules.closes:
                self._next = len(self._integers)
            return self._push(size, alignment)
        self._next += len(left)
        pieces = self._pieces(left, size)
        rest = size - word * len(left)
        if rest > 0:
            start = ByteOffset(size - rest)
            pieces.append(Piece(start, ByteSize(rest), self._push(rest, _unaligned)))
        return _joined(pieces, size)

    def _at_position(self, size: int, count: int) -> Place:
        # The caller's frame has a slot for each word, those in registers among them.
        word, first = self._word, self._next
        self._next += count
        left = self._integers[first : first + count]
        pieces = self._pieces(left, size)
        rest = size - word * len(left)
        if rest > 0:
            at = self._convention.stack_offset + word * (first + len(left))
            slot = InMemory(self._convention.stack_pointer, ByteOffset(at))
            pieces.append(Piece(ByteOffset(size - rest), ByteSize(rest), slot))
        return _joined(pieces, size)

    def _pieces(self, registers: Sequence[DwarfRegister], size: int) -> list[Piece]:
        word = self._word
        return [
            Piece(
                ByteOffset(word * index),
                ByteSize(min(word, size - word * index)),
                InRegister(register),
            )
            for index, register in enumerate(registers)
        ]

    def _push(self, size: int, alignment: Alignment) -> InMemory:
        word, rules = self._word, self._rules
        start = self._stack
        if size > word < rules.stack_alignment:
            start = round_up(start, max(word, min(alignment(), rules.stack_alignment)))
        self._stack = start + round_up(size, word)
        if rules.right_adjusted and size < word:
            start += word - size
        offset = ByteOffset(self._convention.stack_offset + start)
        return InMemory(self._convention.stack_pointer, offset)


def _joined(pieces: list[Piece], size: int) -> Place:
    if len(pieces) == 1 and pieces[0].offset == 0 and pieces[0].size == size:
        return pieces[0].place
    return Pieces(tuple(pieces))


def _rules(convention: Convention) -> WordRules:
    assert isinstance(convention.rules, WordRules)
    return convention.rules


if TYPE_CHECKING:
    How = str | tuple[Leaf, ...]
